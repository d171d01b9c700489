"""`compare`: a survey or a column against classical mechanisms, without showing a value."""

import gzip
import json

import numpy as np
import pyarrow as pa
import pytest

from sfumato.contexts import Uniform
from sfumato.errors import InvalidTable
from sfumato.simulation import Draws, UnaryEncoding, compare
from sfumato.survey import AnswerColumns, Survey
from sfumato.tables import summarize_column
from support.command import run_process, write_all_formats, write_parquet
from support.error_text import full_error_text

CANARY = "kanarienvogel-4711"
PEOPLE = [("park", "café", "clinic", "bar", "office")[i * i % 5] for i in range(2_000)]
QUICK = ["--runs", "3", "--seed", "1", "--decoder", "projection"]
COLUMN = ["--column", "place", "--epsilon", "1", *QUICK]
SURVEY = ["--survey", "lunch.toml", "--column", "place", *QUICK]
NAMES = ["sfumato", "k-rr", "hadamard", "oue", "olh"]


@pytest.fixture
def people(folder):
    return write_all_formats(folder, PEOPLE)


def to_dict(call, *arguments, **options):
    result = call("compare", *arguments, "--json", **options)
    assert (result.code, result.err) == (0, ""), result.both
    return json.loads(result.out)


def test_invalid_utf8_text_is_in_no_error(tmp_path):
    held = CANARY.encode() + b"\xff"
    ends = pa.py_buffer(np.array([0, len(held)], np.int32))
    column = pa.Array.from_buffers(pa.string(), 1, [None, ends, pa.py_buffer(held)])
    write_parquet(tmp_path / "people.parquet", place=column)
    with pytest.raises(InvalidTable, match="UTF-8") as caught:
        summarize_column(str(tmp_path / "people.parquet"), AnswerColumns("place"))
    assert CANARY not in full_error_text(caught.value)


def test_the_json_of_a_column(people, call):
    found = to_dict(call, "people.csv", *COLUMN)
    assert found["survey"] is None
    assert (found["people"], found["labels"], found["left_out"], found["classical_epsilon"]) == (
        2000,
        3,
        0,
        1,
    )
    assert (found["runs"], found["seed"], found["decoder"]) == (3, 1, "projection")
    rows = found["mechanisms"]
    assert [row["name"] for row in rows] == NAMES
    for row in rows:
        assert {"name", "epsilon", "total_variation", "decoded_total_variation", "l2"} <= set(row)
        assert {"bits", "leverage", "reach", "people_needed"} <= set(row)
        assert set(row["total_variation"]) == {"mean", "standard_error"}
        assert 0 < row["total_variation"]["mean"] < 0.5
    assert [row["decoded_total_variation"] is None for row in rows] == [
        False,
        False,
        False,
        True,
        True,
    ]


def test_command_agrees_with_the_library(people, call):
    """Labels in sorted order: café, park, office would not do."""
    labels = sorted(set(PEOPLE))
    counts = np.array([PEOPLE.count(label) for label in labels])
    expected = compare(Uniform(labels, 1), counts, decoder="projection", draws=Draws(3, 1))
    found = to_dict(call, "people.csv", *COLUMN)
    assert {name: found[name] for name in expected.to_dict()} == json.loads(
        json.dumps(expected.to_dict())
    )
    assert found["mechanisms"][3]["l2"] == pytest.approx(
        np.sqrt(UnaryEncoding(3, 1.0).variances(counts).sum())
    )


def test_the_json_of_a_survey(people, call):
    survey = Survey.load(people / "lunch.toml")
    found = to_dict(call, "people.csv", *SURVEY)
    assert (found["survey"], found["labels"], found["people"]) == (survey.fingerprint, 5, 2000)
    own = found["mechanisms"][0]
    assert (own["bits"], own["leverage"]) == (
        survey.mechanism.bits,
        survey.mechanism.scores.leverage,
    )
    assert own["people_needed"] == 1
    assert all(row["people_needed"] > 1 for row in found["mechanisms"][1:])


def test_the_same_bytes_from_every_file_with_any_workers(people, call):
    for options in (COLUMN, SURVEY):
        outs = {
            call("compare", name, *options, "--json", "--workers", workers).out
            for name, workers in (
                ("people.csv", "1"),
                ("people.csv.gz", "2"),
                ("people.parquet", "7"),
            )
        }
        piped = call(
            "compare", "-", *options, "--json", stdin=(people / "people.csv").read_bytes()
        ).out
        assert outs == {piped}
    run = run_process("compare", "people.csv", *COLUMN, "--json", cwd=people)
    assert run.stdout.decode() == call("compare", "people.csv", *COLUMN, "--json").out


def test_the_order_of_people_does_not_matter(people, call):
    (people / "turned.csv").write_text("place\n" + "\n".join(PEOPLE[::-1]) + "\n")
    assert to_dict(call, "turned.csv", *COLUMN) == to_dict(call, "people.csv", *COLUMN)


def test_the_default_decoder_is_that_of_surveys(people, call):
    found = to_dict(call, "people.csv", "--column", "place", "--epsilon", "1", "--runs", "1")
    assert found["decoder"] == "auto"
    assert found["mechanisms"][0]["total_variation"]["standard_error"] is None


def test_a_grid(folder, call):
    rows = [f"{i % 4 + 0.5},{i % 3 + 0.5}" for i in range(600)]
    (folder / "trips.csv").write_text("lat,lon\n" + "\n".join(rows) + "\n")
    options = ["--survey", "grid.toml", "--latitude", "lat", "--longitude", "lon", *QUICK]
    found = to_dict(call, "trips.csv", *options)
    assert (found["labels"], found["people"]) == (16, 600)
    assert [row["bits"] for row in found["mechanisms"][3:]] == [16, 66]
    text = call("compare", "trips.csv", *options).out
    assert "uses the smallest, ε = 1" in text
    assert "≥ 1" in text


def test_the_text_of_a_column(people, call):
    (people / "gaps.csv").write_text("place\npark\n\nbar\nbar\n\n\n")
    result = call("compare", "gaps.csv", *COLUMN)
    assert result.err == "4 rows: 3 counted, 1 skipped because it has no answer.\n"
    text = result.out
    assert text.startswith("NOT PRIVATE")
    assert "people: 3, labels: 2, runs of each mechanism: 3" in text
    assert "the column's 2 distinct values, sorted. A survey makes its labels public." in text
    assert "2 of them were given by fewer than 10 people" in text
    assert to_dict(call, "gaps.csv", *COLUMN)["left_out"] == 1
    with_label = to_dict(call, "gaps.csv", *COLUMN, "--missing", "none")
    assert (with_label["left_out"], with_label["labels"], with_label["people"]) == (0, 3, 4)
    for name in ("Sfumato", "k-RR", "Hadamard response", "OUE", "OLH"):
        assert f"\n{name}" in text


def test_labels_are_compared_in_nfc(folder, call):
    write_parquet(folder / "forms.parquet", place=["cafe\u0301", "café", "park", ""] * 5)
    found = to_dict(call, "forms.parquet", *COLUMN)
    assert (found["labels"], found["people"], found["left_out"]) == (2, 15, 5)


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, 2, 2, 30]),
        pa.array(["a", "b", "b", "c"]).dictionary_encode(),
        pa.array(["a", "b", "b", "c"], pa.large_string()),
        pa.array(["NA", "NULL", "NULL", "nan"]),
    ],
    ids=["numbers", "dictionary", "large", "words like NA"],
)
def test_columns_of_other_kinds(folder, call, values):
    write_parquet(folder / "v.parquet", place=values)
    found = to_dict(call, "v.parquet", *COLUMN)
    assert (found["labels"], found["people"]) == (3, 4)


def test_help_says_not_private(call):
    assert "NOT PRIVATE" in call("compare", "--help").out


def test_no_file_is_written(people, call):
    before = sorted(people.iterdir())
    call("compare", "people.csv", *COLUMN)
    assert sorted(people.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "ANSWERS"),
        (("people.csv",), "either --survey"),
        (("people.csv", "--column", "place"), "either --survey"),
        (("people.csv", *SURVEY, "--epsilon", "1"), "either --survey"),
        (("people.csv", "--epsilon", "1"), "pass --column"),
        (
            ("people.csv", "--epsilon", "1", "--latitude", "lat", "--longitude", "lon"),
            "require --survey",
        ),
        (("people.csv", *COLUMN, "--latitude", "lat"), "require --survey"),
        (("people.csv", "--column", "nowhere", "--epsilon", "1"), "no column 'nowhere'"),
        (("absent.csv", *COLUMN), "cannot open"),
        (("people.csv", "--survey", "absent.toml", "--column", "place"), "cannot be read"),
        (("people.csv", "--survey", "lunch.toml"), "pass --column"),
        (("people.csv", "--survey", "grid.toml", "--column", "place"), "needs positions"),
        (("people.csv", "--column", "place", "--epsilon", "0"), "above 0"),
        (("people.csv", "--column", "place", "--epsilon", "-1"), "not be negative"),
        (("people.csv", "--column", "place", "--epsilon", "much"), "decimal number"),
        (("people.csv", "--column", "place", "--epsilon", "41"), "at most 40"),
        (("people.csv", "--column", "place", "--epsilon", "inf"), "finite"),
        (("people.csv", *COLUMN, "--decoder", "nonsense"), "decoder must be one of"),
        (("people.csv", *COLUMN, "--runs", "0"), "runs"),
        (("people.csv", *COLUMN, "--runs", str(10**15)), "memory"),
        (("people.csv", *COLUMN, "--seed", "-1"), "seed"),
        (("people.csv", *COLUMN, "--seed", str(2**63)), "seed must be an integer"),
        (("people.csv", *COLUMN, "--workers", "0"), "workers"),
    ],
)
def test_wrong_calls_exit_2(people, error_from, arguments, said):
    assert said in error_from("compare", *arguments)


@pytest.mark.parametrize(
    "wrong", [["--decoder", "nonsense"], ["--seed", str(2**63)], ["--epsilon", "0"]]
)
def test_bad_options_are_rejected_before_reading_data(error_from, wrong):
    assert "absent" not in error_from("compare", "absent.csv", *COLUMN, *wrong)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (b"place\n", "contains no answers"),
        (b"place\n\n\n", "contains no answers"),
        (f"place\n{CANARY}\n{CANARY}\n".encode(), "got 1"),
        (f"{CANARY}\npark\n".encode(), "no column"),
        (f"place,age\n{CANARY},1\n{CANARY}\n".encode(), "line 3: expected 2 cells"),
        (f'place\n"{CANARY}\npark\n'.encode(), "quotation mark"),
        (f"place\npark\n{CANARY}é\n".encode("latin-1"), "UTF-8"),
        (gzip.compress(f"place\n{CANARY}\npark\n".encode() * 9)[:-9], "truncated"),
    ],
    ids=["empty", "header", "blank", "one label", "no header", "ragged", "quote", "latin", "cut"],
)
def test_bad_column_errors_do_not_echo_values(folder, error_from, content, said):
    (folder / "bad.csv").write_bytes(content)
    assert said in error_from("compare", "bad.csv", *COLUMN, never=[CANARY])


@pytest.mark.parametrize(
    "values",
    [
        pa.array([[CANARY], ["park"]]),
        pa.array([{"a": CANARY}, {"a": "park"}]),
        pa.array([CANARY.encode(), b"park"]),
        pa.Array.from_buffers(
            pa.string(),
            2,
            [
                None,
                pa.py_buffer(np.array([0, 2, 20], "<i4").tobytes()),
                pa.py_buffer(b"\xff\xfe" + CANARY.encode()),
            ],
        ),
    ],
    ids=["list", "struct", "binary", "not UTF-8"],
)
def test_columns_without_labels_are_rejected(folder, error_from, values):
    write_parquet(folder / "bad.parquet", place=values)
    error_from("compare", "bad.parquet", *COLUMN, never=[CANARY])


def test_unknown_value_errors_give_rows(folder, error_from):
    (folder / "bad.csv").write_text(f"place\npark\n{CANARY}\n")
    assert "row 2" in error_from("compare", "bad.csv", *SURVEY, never=[CANARY])


def test_values_are_never_shown(folder, call):
    """A label that is nobody's business shows neither as text nor as JSON."""
    (folder / "a.csv").write_text("place\n" + f"park\n{CANARY}\n" * 50)
    for arguments in (
        COLUMN,
        [*COLUMN, "--json"],
        ["--survey", "other.toml", "--column", "place", *QUICK],
    ):
        result = call("compare", "a.csv", *arguments)
        assert result.code == 0
        assert CANARY not in result.both
        assert "park" not in result.both


def test_compare_needs_a_promise(folder, error_from):
    (folder / "free.toml").write_text(
        (folder / "lunch.toml").read_text().replace('["clinic", "bar"]', "[]")
    )
    assert "smallest" in error_from(
        "compare", "answers.csv", "--survey", "free.toml", "--column", "place"
    )


def test_html_is_a_page_with_the_printed_error(people, call):
    result = call("compare", "people.csv", *COLUMN, "--json", "--html", "page.html")
    assert result.code == 0, result.both
    page = (people / "page.html").read_text(encoding="utf-8")
    own = json.loads(result.out)["mechanisms"][0]["total_variation"]["mean"]
    assert f"{100 * own:.1f}%" in page


def test_html_must_not_replace_the_answers(people, error_from):
    assert "an output must not be the same file" in error_from(
        "compare", "people.csv", *COLUMN, "--html", "people.csv"
    )
