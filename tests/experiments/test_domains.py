"""Other kinds of real data: packages are read unchanged, and blocks reduce errors on all data."""

import csv
import json
import math
from dataclasses import replace

import numpy as np
import pytest

import sfumato as sf
from experiments import real_data
from experiments.domains import domains
from experiments.real_data import READERS, RealData
from sfumato.errors import MissingExtra
from sfumato.paper.experiment import RunOptions
from sfumato.paper.population import apportion
from sfumato.simulation import experiment_words

WORDS = {"blocks_are": "initial", "why": "It is shown anyway.", "credit": "Made up for a test."}
NAMES = {
    ("A", "Ann"): 300,
    ("B", "Bob"): 200,
    ("A", "Al"): 500,
    ("B", "Ben"): 100,
    ("A", "Ada"): 900,
}


@pytest.fixture
def tiny():
    return RealData.from_weights(NAMES, name="names", **WORDS)


@pytest.fixture
def result(tiny):
    return domains(RunOptions(runs=2), {"names": lambda: tiny}, workers=1)


def _symbols(data):
    """The symbol of each person."""
    return np.repeat(np.arange(data.size), data.counts)


def _truth(data):
    return data.counts / data.people


def _errors(result):
    return {
        (each["name"], error["promise"], error["scheme"]): error["mean"]
        for each in result.data["data"]
        for error in each["total_variation"]
    }


# --- what is measured -----------------------------------------------------------------------------


def _hadamard(row, column):
    return -1 if (row & column).bit_count() % 2 else 1


def _nearest_distribution(estimate):
    """Project by bisection of the number that is subtracted from every entry."""
    low = min(estimate) - 1
    high = max(estimate)
    for _ in range(200):
        middle = (low + high) / 2
        if sum(max(entry - middle, 0) for entry in estimate) > 1:
            low = middle
        else:
            high = middle
    return [max(entry - low, 0) for entry in estimate]


def _direct_error(data, block_of, run, seed):
    """Return the error of the paper's scheme, computed report by report from Hadamard rows."""
    mechanism = sf.mechanism_for(sf.Blocks(block_of, 1), code="hadamard")
    reports = mechanism.privatize(
        _symbols(data), experiment_words("domains/names", run, seed)
    ).tolist()
    c = (math.e + 1) / (math.e - 1)
    sizes = [1 << int(np.sum(block_of == block)).bit_length() for block in range(max(block_of) + 1)]
    estimate = []
    for x, block in enumerate(block_of):
        start = sum(sizes[:block])
        row = int(np.sum(block_of[:x] == block)) + 1
        inside = [y - start for y in reports if start <= y < start + sizes[block]]
        estimate.append(c * sum(_hadamard(row, y) for y in inside) / len(reports))
    nearest = _nearest_distribution(estimate)
    return sum(abs(p - q) for p, q in zip(nearest, _truth(data), strict=True)) / 2


@pytest.mark.parametrize("promise", ["blocks", "classical LDP"])
def test_paper_scheme_matches_a_direct_computation(tiny, promise):
    result = domains(RunOptions(runs=1, seed=3), {"names": lambda: tiny}, workers=1)
    block_of = tiny.block_of if promise == "blocks" else np.zeros(tiny.size, dtype=int)
    assert _errors(result)["names", promise, "paper's scheme"] == pytest.approx(
        _direct_error(tiny, block_of, 0, 3), abs=1e-9
    )


def test_best_scheme_is_the_default(tiny):
    context = sf.Blocks(tiny.block_of, 1)
    mechanism = sf.mechanism_for(context)
    tally = mechanism.tally(
        mechanism.privatize(_symbols(tiny), experiment_words("domains/names", 0, 3))
    )
    frequencies = sf.estimate(mechanism, tally).frequencies
    error = np.abs(frequencies - _truth(tiny)).sum() / 2
    result = domains(RunOptions(runs=1, seed=3), {"names": lambda: tiny}, workers=1)
    assert _errors(result)["names", "blocks", "best here"] == pytest.approx(error, abs=1e-12)


def test_seed_determines_results(tiny):
    first, again, other = (
        domains(RunOptions(runs=1, seed=s), {"names": lambda: tiny}, workers=1) for s in (0, 0, 1)
    )
    assert first.rows == again.rows
    assert first.rows != other.rows


@pytest.mark.slow
def test_workers_do_not_change_results(tiny):
    alone, shared = (
        domains(RunOptions(runs=2), {"names": lambda: tiny}, workers=w) for w in (1, 2)
    )
    assert alone.data == shared.data


# --- what is said of it ---------------------------------------------------------------------------


def test_table(result):
    assert result.columns[:5] == ("data", "symbols", "blocks are", "blocks", "people")
    assert result.rows[0][:5] == ("names", 5, "initial", 2, 2000)
    assert len(result.rows[0]) == len(result.columns) == 9
    for title, text in zip(result.columns[5:], result.rows[0][5:], strict=True):
        promise, scheme = title.split(", ")
        assert float(text.split(" ± ")[0]) == pytest.approx(
            _errors(result)["names", promise, scheme], abs=5e-5
        )


def test_notes_justify_the_context_and_name_the_source(result):
    text = "\n".join(result.notes)
    assert WORDS["why"] in text
    assert WORDS["credit"] in text
    assert "None of this is the paper's data" in text


def test_files(result, tmp_path):
    written = result.save(tmp_path)
    assert [path.name for path in written] == [
        f"domains.{kind}" for kind in ("png", "pdf", "csv", "json")
    ]
    assert (tmp_path / "domains.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "domains.pdf").read_bytes().startswith(b"%PDF")
    rows = list(csv.reader((tmp_path / "domains.csv").read_text(encoding="utf-8").splitlines()))
    assert rows == [list(result.columns), *([str(cell) for cell in row] for row in result.rows)]
    assert json.loads((tmp_path / "domains.json").read_text(encoding="utf-8")) == result.data


def test_one_run_has_no_standard_error(tiny):
    result = domains(RunOptions(runs=1), {"names": lambda: tiny}, workers=1)
    assert json.loads(json.dumps(result.data, allow_nan=False)) == result.data
    assert "±" not in result.rows[0][5]


# --- packages that are not there ------------------------------------------------------------------


def _absent():
    raise MissingExtra("this dataset requires elsewhere: pip install -e '.[dev]'")


def test_missing_packages_are_named_and_skipped(tiny):
    result = domains(RunOptions(runs=1), {"nowhere": _absent, "names": lambda: tiny}, workers=1)
    assert [row[0] for row in result.rows] == ["names"]
    assert "pip install -e '.[dev]'" in result.data["not_run"]["nowhere"]
    assert any(
        note.startswith("Nowhere left out") and "pip install" in note for note in result.notes
    )


def test_no_data_is_an_error():
    with pytest.raises(MissingExtra, match="pip install"):
        domains(RunOptions(runs=1), {"nowhere": _absent})


@pytest.mark.parametrize("name", READERS)
def test_readers_say_how_to_install_their_package(name, monkeypatch):
    monkeypatch.setattr(real_data, "find_spec", lambda package: None)
    with pytest.raises(MissingExtra, match=r"pip install -e '\.\[dev\]'"):
        READERS[name]()


# --- the data -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def all_data():
    return {name: reader() for name, reader in READERS.items()}


def test_sizes(all_data):
    assert all_data["flights"].size == 224
    assert all_data["flights"].people == 336_776  # all of them, also those that were cancelled
    assert 4_000 < all_data["first names"].size < 10_000
    assert all_data["home towns"].size > 15_000
    assert all_data["words"].size == 30_000
    assert {all_data[name].people for name in ("first names", "home towns", "words")} == {1_000_000}


def test_blocks(all_data):
    assert all_data["home towns"].blocks == 51  # with the District of Columbia
    assert all_data["first names"].blocks == all_data["words"].blocks == 26
    assert 40 <= all_data["flights"].blocks <= 50
    for data in all_data.values():
        assert sorted(set(data.block_of.tolist())) == list(range(data.blocks))
        assert data.block_of.size == data.size


def test_single_counts(all_data):
    assert all_data["flights"].counts.max() == 11_262  # from John F. Kennedy to Los Angeles
    # "the": 23,135,851,162 times in the list of words; "james": 3.318 % of men.
    the = _truth(all_data["words"]).max()
    assert 0.03 < the < 0.08
    james = _truth(all_data["first names"]).max()
    assert james == pytest.approx(0.0332 / 2 / 0.9, rel=0.03)  # the lists cover nine in ten people


def test_contexts_are_justified_in_sentences(all_data):
    for data in all_data.values():
        assert data.why.count(". ") == 1
        assert data.why.endswith(".")
        assert "package" in data.credit


# --- people in proportion -------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [[1, 1, 1], [5, 0, 3], [1e9, 1, 2], [0.3, 0.3, 0.4]])
def test_apportioned_counts_are_within_one_of_their_shares(weights):
    counts = apportion(np.array(weights, dtype=float), 1000)
    shares = np.array(weights) / sum(weights) * 1000
    assert counts.sum() == 1000
    assert np.abs(counts - shares).max() < 1


def test_people_are_counted_by_symbol(tiny):
    assert tiny.counts.tolist() == [300, 200, 500, 100, 900]
    assert _truth(tiny).tolist() == [0.15, 0.1, 0.25, 0.05, 0.45]
    assert replace(tiny, name="other").people == 2000


# --- what it must show ----------------------------------------------------------------------------


@pytest.mark.slow
def test_blocks_and_better_codes_help_on_all_data():
    errors = _errors(domains(RunOptions(quick=True)))
    for name in READERS:
        classical, blocks = (
            {scheme: errors[name, promise, scheme] for scheme in ("paper's scheme", "best here")}
            for promise in ("classical LDP", "blocks")
        )
        for scheme in classical:
            assert blocks[scheme] < 0.8 * classical[scheme]
        for promise in (classical, blocks):
            assert promise["best here"] < 0.9 * promise["paper's scheme"]
        assert blocks["best here"] < 0.6 * classical["paper's scheme"]
