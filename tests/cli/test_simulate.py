"""`simulate`: a seed gives the same bytes for every input format and engine."""

import json
import re

import numpy as np
import pytest

from sfumato.survey import Survey
from sfumato.tables import csv_file, table
from support.command import run_process, write_all_formats, write_parquet

PEOPLE = [("park", "café", "clinic", "bar", "office")[i * i % 5] for i in range(20_000)]
OPTIONS = ["--column", "place", "--runs", "4", "--seed", "1", "--json"]


@pytest.fixture
def people(folder):
    return write_all_formats(folder, PEOPLE)


@pytest.mark.parametrize("workers", ["1", "2", "7"])
@pytest.mark.parametrize("rows", [1, 1000, 65536])
def test_the_same_bytes_from_every_file_with_any_workers_and_batches(
    people, call, monkeypatch, workers, rows
):
    expected = call("simulate", "lunch.toml", "people.csv", *OPTIONS, "--workers", "1").out
    write_parquet(people / "few.parquet", place=PEOPLE[:50])
    monkeypatch.setattr(table, "BATCH_ROWS", rows)
    monkeypatch.setattr(csv_file, "_BLOCK_SIZE", max(rows * 8, 64))
    if rows == 1:
        expected = call("simulate", "lunch.toml", "few.parquet", *OPTIONS).out
        monkeypatch.setattr(table, "BATCH_ROWS", 17)
        assert (
            call("simulate", "lunch.toml", "few.parquet", *OPTIONS, "--workers", workers).out
            == expected
        )
        return
    for name in ("people.csv", "people.csv.gz", "people.parquet"):
        assert call("simulate", "lunch.toml", name, *OPTIONS, "--workers", workers).out == expected
        piped = (people / name).read_bytes()
        assert (
            call("simulate", "lunch.toml", "-", *OPTIONS, "--workers", workers, stdin=piped).out
            == expected
        )


def test_processes_agree_too(people, call):
    run = run_process(
        "simulate",
        "lunch.toml",
        "-",
        *OPTIONS,
        cwd=people,
        input=(people / "people.parquet").read_bytes(),
    )
    assert run.stdout.decode() == call("simulate", "lunch.toml", "people.csv", *OPTIONS).out


def test_another_seed_gives_other_numbers(people, call):
    outs = {
        call("simulate", "lunch.toml", "people.csv", *OPTIONS, "--seed", str(seed)).out
        for seed in range(4)
    }
    assert len(outs) == 4


def test_the_json_of_a_simulation(people, call):
    found = json.loads(call("simulate", "lunch.toml", "people.csv", *OPTIONS).out)
    assert {"survey", "runs", "people", "decoder", "total_variation", "rows"} == set(found)
    assert set(found["total_variation"]) == {"mean", "standard_error"}
    assert (found["runs"], found["people"]) == (4, len(PEOPLE))
    assert found["survey"] == Survey.load(people / "lunch.toml").fingerprint
    assert 0 < found["total_variation"]["mean"] < 0.1


def test_a_single_run_has_no_spread_and_valid_json(people, call):
    options = ["--column", "place", "--runs", "1"]
    found = json.loads(call("simulate", "lunch.toml", "people.csv", *options, "--json").out)
    assert found["total_variation"]["standard_error"] is None
    assert "±" not in call("simulate", "lunch.toml", "people.csv", *options).out


def test_simulate_prints_the_error_as_a_sentence(people, call):
    arguments = ("simulate", "lunch.toml", "people.csv", "--column", "place")
    data = json.loads(call(*arguments, "--runs", "3", "--json").out)
    text = call(*arguments, "--runs", "3").out
    match = re.fullmatch(
        r"With 20,000 people, the estimate misplaces ([\d.]+)% of them on average "
        r"\(± ([\d.]+)%, 3 runs\)\. Decoder: auto \(.+\)\.\n",
        text,
    )
    assert float(match[1]) == pytest.approx(100 * data["total_variation"]["mean"], rel=0.01)
    assert "on average (1 run). Decoder" in call(*arguments, "--runs", "1").out


def test_help_says_not_private(call):
    assert "NOT PRIVATE" in " ".join(call("simulate", "--help").out.split())


def test_no_file_is_written(people, call):
    before = sorted(people.iterdir())
    call("simulate", "lunch.toml", "people.csv", *OPTIONS)
    assert sorted(people.iterdir()) == before


def test_error_matches_the_variances(people, call):
    """Compare the mean of 40 runs with half the sum of mean absolute deviations."""
    survey = Survey.load(people / "lunch.toml")
    labels = list(survey.context.domain.labels)
    p = np.array([PEOPLE.count(label) for label in labels]) / len(PEOPLE)
    expected = (
        np.sqrt(2 / np.pi) * np.sqrt(survey.mechanism.scores.variances(p, len(PEOPLE))).sum() / 2
    )
    options = [
        "--column",
        "place",
        "--runs",
        "40",
        "--seed",
        "5",
        "--decoder",
        "unbiased",
        "--json",
    ]
    found = json.loads(call("simulate", "lunch.toml", "people.csv", *options).out)[
        "total_variation"
    ]
    # The data are given, so the people's own draw adds nothing: the error lies a little below.
    assert found["mean"] < expected * 1.3
    assert found["mean"] > expected * 0.4
