"""Bad input is rejected with a helpful message, and nothing is written."""

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.foundation.decoder_table import DECODER_TABLE
from sfumato.survey import Survey
from support.command import LUNCH, OTHER, PLACES, read_folder, write_parquet

PRIVATIZE = ("privatize", "{survey}", "{answers}", "--column", "place", "-o", "out.csv")
SIMULATE = ("simulate", "{survey}", "{answers}", "--column", "place")
INIT = ("init", "--from", "{answers}", "--column", "place", "new.toml")
ALL = (PRIVATIZE, SIMULATE, INIT)
READERS = (PRIVATIZE, SIMULATE)
POSITIONS = (
    (
        "privatize",
        "grid.toml",
        "{answers}",
        "--latitude",
        "lat",
        "--longitude",
        "lon",
        "-o",
        "out.parquet",
    ),
    ("simulate", "grid.toml", "{answers}", "--latitude", "lat", "--longitude", "lon"),
)


def _filled(arguments, answers, survey="lunch.toml"):
    return [argument.format(survey=survey, answers=answers) for argument in arguments]


def _each(commands):
    return pytest.mark.parametrize("arguments", commands, ids=[command[0] for command in commands])


# --- files that are no tables ---------------------------------------------------------------------

GOOD = ("place\n" + "park\n" * 20_000).encode()
FILES = {
    "empty": (b"", "empty"),
    "utf16": ("place\npark\n".encode("utf-16"), "UTF-8"),
    "latin1-header": ("plaçe\npark\n".encode("latin-1"), "UTF-8"),
    "latin1-value": ("place\npark\ncafé\n".encode("latin-1"), "UTF-8"),
    "ragged-long": (b"place,age\npark,1\npark,1,2\n", "expected 2 cells as in the header, got 3"),
    "ragged-short": (b"place,age\npark,1\npark\n", "expected 2 cells as in the header, got 1"),
    "no-such-column": (b"where,age\npark,1\n", "no column 'place'"),
    "other-case": (b"Place\npark\n", "did you mean 'Place'"),
    "twice-the-same-name": (b"place,place\npark,bar\n", "Rename"),
    "carriage-returns-only": (b"place,age\rpark,1\rbar,2\r", "header"),
    "long-first-line": (b"x" * 200_000, "header"),
    "open-quote-in-header": (b'"place\npark\n', "header"),
    "blank-first-line": (b"\nplace\npark\n", "header"),
    "truncated-gzip": (
        gzip.compress(np.random.default_rng(1).bytes(4000) + GOOD)[:-60],
        "truncated or corrupt|UTF-8",
    ),
    "truncated-gzip-body": (gzip.compress(GOOD)[:-12], "truncated or corrupt"),
    "damaged-gzip": (gzip.compress(GOOD)[:20] + b"\xff" * 60, "truncated or corrupt"),
    "gzip-of-nothing": (gzip.compress(b""), "header"),
    "parquet-by-its-first-letters": (b"PAR1\x15 and no more", "truncated or corrupt"),
}


@pytest.mark.parametrize("pipe", [False, True], ids=["file", "pipe"])
@pytest.mark.parametrize("name", FILES)
@_each(READERS)
def test_files_that_are_not_tables_are_rejected(folder, error_from, arguments, name, pipe):
    content, wanted = FILES[name]
    (folder / "bad.csv").write_bytes(content)
    message = error_from(
        *_filled(arguments, "-" if pipe else "bad.csv"), stdin=content if pipe else b""
    )
    assert any(part in message for part in wanted.split("|")), message
    assert ("standard input" if pipe else "bad.csv") in message


@pytest.mark.parametrize("name", FILES)
def test_init_rejects_them_too(folder, error_from, name):
    (folder / "bad.csv").write_bytes(FILES[name][0])
    assert "bad.csv" in error_from(*_filled(INIT, "bad.csv"))


@_each(ALL)
@pytest.mark.parametrize("cut", [3, 5, 40, 200])
def test_truncated_parquet_is_refused(folder, error_from, arguments, cut):
    write_parquet(folder / "whole.parquet", place=PLACES)
    (folder / "cut.parquet").write_bytes((folder / "whole.parquet").read_bytes()[:-cut])
    assert "truncated or corrupt" in error_from(*_filled(arguments, "cut.parquet"))


@_each(READERS)
def test_parquet_with_damaged_pages_is_refused(folder, error_from, arguments):
    pq.write_table(pa.table({"place": PLACES * 50}), folder / "whole.parquet", compression="gzip")
    raw = bytearray((folder / "whole.parquet").read_bytes())
    raw[30:70] = b"\xff" * 40
    (folder / "bad.parquet").write_bytes(raw)
    assert "bad.parquet" in error_from(*_filled(arguments, "bad.parquet"))


@_each(READERS)
@pytest.mark.parametrize("content", [b"place", b"place\n", b"place\r\n", b"\xef\xbb\xbfplace\n"])
def test_a_header_without_rows_is_refused(folder, error_from, arguments, content):
    (folder / "bare.csv").write_bytes(content)
    assert "no rows" in error_from(*_filled(arguments, "bare.csv"))


@_each(READERS)
def test_parquet_without_rows_is_refused(folder, error_from, arguments):
    write_parquet(folder / "bare.parquet", place=pa.array([], pa.string()))
    assert "no rows" in error_from(*_filled(arguments, "bare.parquet"))


def test_init_needs_two_different_answers(folder, error_from):
    (folder / "one.csv").write_text("place\npark\npark\n")
    assert "at least two" in error_from(*_filled(INIT, "one.csv"))
    for content in ("place\n", 'place\n""\n""\n'):
        (folder / "one.csv").write_text(content)
        assert "contains no answers" in error_from(*_filled(INIT, "one.csv"))


@_each(ALL)
def test_missing_files_and_folders_are_rejected(folder, error_from, arguments):
    (folder / "sub").mkdir()
    assert "No such file" in error_from(*_filled(arguments, "absent.csv"))
    assert "directory" in error_from(*_filled(arguments, "sub"))


@_each(READERS)
def test_parquet_with_two_columns_of_a_name_is_refused(folder, error_from, arguments):
    pq.write_table(
        pa.table([pa.array(["park"]), pa.array(["bar"])], names=["place", "place"]),
        folder / "two.parquet",
    )
    assert "more than one column named" in error_from(*_filled(arguments, "two.parquet"))


@_each(READERS)
def test_missing_column_error_lists_the_columns(folder, error_from, arguments):
    write_parquet(folder / "a.parquet", where=["park"], age=[1])
    assert "its columns are where, age" in error_from(*_filled(arguments, "a.parquet"))


# --- values that are no answers -------------------------------------------------------------------

VALUES = [
    "",
    "Park",
    " park",
    "park ",
    "раrk",
    "ｐａｒｋ",
    "park\u200b",
    "NaN",
    "inf",
    "-1",
    "0",
    "None",
    "null",
    "2147483648",
]


@_each(READERS)
@pytest.mark.parametrize("value", VALUES)
def test_unknown_value_errors_give_positions(folder, error_from, arguments, value):
    (folder / "a.csv").write_text(f"age,place\n1,park\n2,{value}\n", encoding="utf-8")
    message = error_from(*_filled(arguments, "a.csv"))
    if value:
        problem = "1 of 2 rows has an answer that is not in the domain (the first in data row 2)"
        assert problem in message
        assert "`other`" in message
    else:
        assert "1 of 2 rows has no answer (the first in data row 2)" in message
        assert "--missing skip" in message


@pytest.mark.parametrize("value", VALUES)
def test_unknown_values_become_other(folder, call, value):
    rows = "1,park\n" * 9 + f"2,{value}\n"
    (folder / "a.csv").write_text(f"age,place\n{rows}", encoding="utf-8")
    result = call("privatize", "other.toml", "a.csv", "--column", "place", "-o", "out.csv")
    reason = "not among the labels" if value else "without an answer"
    assert result.code == 0
    assert f"10 rows: 10 counted (1 {reason} as " in result.err


def test_many_unknown_values_cause_a_warning_and_most_are_refused(folder, call, error_from):
    arguments = ("privatize", "other.toml", "a.csv", "--column", "place", "-o", "out.csv")
    (folder / "a.csv").write_text("age,place\n" + "1,park\n" * 7 + "2,65.0\n" * 3)
    result = call(*arguments)
    assert result.code == 0
    assert "Warning: 3 of 10 rows have an answer that is not in the domain" in result.err
    (folder / "a.csv").write_text("age,place\n" + "1,park\n" * 4 + "2,65.5\n" * 6)
    (folder / "out.csv").unlink()
    message = error_from(*arguments)
    assert "6 of 10 rows, more than half, would count as 'elsewhere' (the first" in message
    assert "They look like decimal numbers; the labels are text." in message


INTEGERS = [
    "-3",
    "8",
    "nan",
    "inf",
    "1.5",
    "1.000",
    "1e0",
    "True",
    "0x1",
    " 1",
    "+1",
    "１",
    "1_0",
    "001",
    str(2**31),
    str(2**53),
]
INTEGERS += [str(2**63), str(-(2**63) - 1), "9" * 400]


@_each(READERS)
@pytest.mark.parametrize("value", INTEGERS)
def test_non_integer_text_is_rejected(folder, error_from, arguments, value):
    (folder / "a.csv").write_text(f"age,place\n1,5\n2,{value}\n", encoding="utf-8")
    assert "1 of 2 rows has an answer that is not in the domain" in error_from(
        *_filled(arguments, "a.csv", "ages.toml")
    )


@pytest.mark.parametrize("value", ["1.0", "1.00", "1", "-0"])
def test_whole_numbers_written_as_decimals_are_read(folder, call, value):
    (folder / "a.csv").write_text(f"age,place\n1,5\n2,{value}\n", encoding="utf-8")
    result = call("privatize", "ages.toml", "a.csv", "--column", "place", "-o", "out.csv")
    assert (result.code, result.err) == (0, "2 rows: 2 counted.\n")


@_each(READERS)
@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, -3]),
        pa.array([1, 8], pa.int8()),
        pa.array([1, None]),
        pa.array([1, 2**31]),
        pa.array([1, 2**53]),
        pa.array([1, 2**64 - 1], pa.uint64()),
        pa.array([1, -(2**63)], pa.int64()),
        pa.array([1, None]).dictionary_encode(),
    ],
    ids=str,
)
def test_an_integer_outside_the_range_is_refused(folder, error_from, arguments, column):
    write_parquet(folder / "a.parquet", place=column)
    problem = (
        "rows has no answer"
        if column.null_count
        else "rows has an answer that is not in the domain"
    )
    assert f"1 of 2 {problem}" in error_from(*_filled(arguments, "a.parquet", "ages.toml"))


UNREADABLE = {
    "binary": pa.array([b"park", b"bar"]),
    "list": pa.array([["park"], ["bar"]]),
    "struct": pa.array([{"a": "park"}, {"a": "bar"}]),
}
UNLIKE = {
    "decimal numbers": pa.array([1.5, 2.5, float("inf")]),
    "true or false": pa.array([True, False]),
    "dates": pa.array([1, 2], pa.date32()),
}


@pytest.mark.parametrize("survey", ["lunch.toml", "other.toml", "ages.toml", "numbered.toml"])
@pytest.mark.parametrize("kind", UNREADABLE)
def test_a_column_that_cannot_hold_answers_is_refused(folder, error_from, kind, survey):
    write_parquet(folder / "a.parquet", place=UNREADABLE[kind])
    for arguments in READERS:
        message = error_from(*_filled(arguments, "a.parquet", survey))
        assert "column 'place' must contain text, numbers or dates" in message


@pytest.mark.parametrize("survey", ["lunch.toml", "other.toml", "ages.toml", "numbered.toml"])
@pytest.mark.parametrize("kind", UNLIKE)
def test_a_column_of_another_kind_is_refused_even_if_there_is_other(
    folder, error_from, kind, survey
):
    write_parquet(folder / "a.parquet", place=UNLIKE[kind])
    for arguments in READERS:
        message = error_from(*_filled(arguments, "a.parquet", survey))
        assert f"They look like {kind}; the labels are " in message


@pytest.mark.parametrize("kind", UNREADABLE)
def test_init_refuses_columns_that_cannot_hold_answers(folder, error_from, kind):
    write_parquet(folder / "a.parquet", place=UNREADABLE[kind])
    message = error_from(*_filled(INIT, "a.parquet"))
    assert "column 'place' must contain text, numbers or dates" in message


# --- positions ------------------------------------------------------------------------------------


@_each(POSITIONS)
@pytest.mark.parametrize(
    "value", ["nan", "inf", "-inf", "", "-0.0000001", "4", "1e300", "1e999", str(2**53)]
)
def test_a_position_outside_is_refused(folder, error_from, arguments, value):
    (folder / "a.csv").write_text(f"lat,lon\n1,1\n{value},2\n1,{value}\n")
    is_missing = value in ("", "nan")
    problem = (
        "rows have no answer" if is_missing else "rows have an answer that is not in the domain"
    )
    assert f"2 of 3 {problem}" in error_from(*_filled(arguments, "a.csv"))


@_each(POSITIONS)
@pytest.mark.parametrize("value", ["north", "1,5", "0x1p3", "1°"])
def test_a_position_that_is_no_number_is_refused(folder, error_from, arguments, value):
    (folder / "a.csv").write_text(f'lat,lon\n1,1\n"{value}",2\n', encoding="utf-8")
    message = error_from(*_filled(arguments, "a.csv"), never=[value])
    assert "a.csv, line 3: column 'lat' must contain numbers" in message


@_each(POSITIONS)
@pytest.mark.parametrize(
    "column", [["1", "CANARY"], [True, False], [[1.0], [2.0]], [b"1", b"2"]], ids=str
)
def test_positions_of_another_kind_are_refused(folder, error_from, arguments, column):
    write_parquet(folder / "a.parquet", lat=column, lon=[1.0, 2.0])
    message = error_from(*_filled(arguments, "a.parquet"), never=["CANARY"])
    assert "column 'lat' must contain degrees" in message


@_each(POSITIONS)
def test_huge_whole_degrees_are_refused(folder, error_from, arguments):
    write_parquet(folder / "a.parquet", lat=[2**53 + 1, 1, None], lon=[1, 2, 3])
    message = error_from(*_filled(arguments, "a.parquet"))
    assert "1 of 3 rows has no answer (the first in data row 3)" in message
    assert (
        "1 of 3 rows has an answer that is not in the domain (the first in data row 1)" in message
    )


@pytest.mark.parametrize(
    ("survey", "options", "wanted"),
    [
        ("grid.toml", ["--column", "lat"], "--latitude and --longitude"),
        ("grid.toml", ["--latitude", "lat"], "both --latitude and --longitude"),
        ("grid.toml", [], "pass --latitude and --longitude"),
        ("grid.toml", ["--latitude", "lat", "--longitude", "lon", "--column", "lat"], "either"),
        ("lunch.toml", ["--latitude", "lat", "--longitude", "lon"], "pass --column"),
    ],
)
@pytest.mark.parametrize("command", [("privatize", "-o", "out.csv"), ("simulate",)], ids=str)
def test_columns_that_do_not_fit_the_survey_are_refused(
    folder, error_from, survey, options, wanted, command
):
    (folder / "a.csv").write_text("lat,lon\n1,1\n")
    assert wanted in error_from(command[0], survey, "a.csv", *command[1:], *options)


# --- outputs --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "wanted"),
    [("out.txt", "end in .csv or .parquet"), ("out", "end in"), ("out.csv.gz", "end in"),
     ("no/out.csv", "no folder no"), ("sub", "is a folder"), ("sub.csv", "is a folder"), ("",
     "must be a file")],
)  # fmt: skip
def test_an_output_that_cannot_be_written_is_refused(folder, error_from, output, wanted):
    (folder / "sub").mkdir()
    (folder / "sub.csv").mkdir()
    assert wanted in error_from(
        "privatize", "lunch.toml", "answers.csv", "--column", "place", "-o", output
    )


@pytest.mark.parametrize(
    "options",
    [
        ["-o", "estimate.txt"],
        ["-o", "no/estimate.csv"],
        ["-o", "estimate.csv", "--html", "no/page.html"],
        ["-o", "estimate.csv", "--png", "no/page.png"],
        ["-o", "estimate.csv", "--html", "-"],
        ["-o", "-", "--json"],
        ["-o", "estimate.csv", "--decoder", "nonsense"],
    ],
    ids=" ".join,
)
def test_estimate_writes_all_outputs_or_none(folder, call, error_from, options):
    call("privatize", "lunch.toml", "answers.csv", "--column", "place", "-o", "r.csv")
    error_from("estimate", "lunch.toml", "r.csv", *options)


@pytest.mark.parametrize(
    "options", [["-o", "no/c.json"], ["-o", "c.json", "--resolved", "no/s.json"], ["-o", "-"]]
)
def test_verify_writes_all_outputs_or_none(error_from, options):
    error_from("verify", "lunch.toml", *options)


@pytest.mark.parametrize("output", ["out.csv", "out.parquet", "-"])
@pytest.mark.parametrize("pipe", [False, True], ids=["file", "pipe"])
def test_bad_last_row_keeps_the_old_file(folder, error_from, output, pipe):
    """The bad value comes batches after the first reports were made."""
    content = b"place\n" + b"park\n" * 1_000_000 + b"zoo\n"
    (folder / "long.csv").write_bytes(content)
    (folder / "out.csv").write_text("precious")
    (folder / "out.parquet").write_text("precious")
    source = "-" if pipe else "long.csv"
    error_from(
        "privatize",
        "lunch.toml",
        source,
        "--column",
        "place",
        "-o",
        output,
        stdin=content if pipe else b"",
    )
    assert (folder / "out.csv").read_text() == "precious"


def test_failing_randomness_writes_nothing(folder, error_from, monkeypatch):
    def fail(_):
        raise OSError("no entropy")

    monkeypatch.setattr("sfumato.randomness.words.os.urandom", fail)
    error_from("privatize", "lunch.toml", "answers.csv", "--column", "place", "-o", "-")


# --- reports --------------------------------------------------------------------------------------


def _reports(folder, text, header="report@{fingerprint}"):
    fingerprint = Survey.load(folder / "lunch.toml").fingerprint
    (folder / "r.csv").write_text(
        header.format(fingerprint=fingerprint) + "\n" + text, encoding="utf-8"
    )


@pytest.mark.parametrize(
    "text",
    ["1\n1000\n", "1\n-1\n", "1\n1.0\n", "1\n1.5\n", "1\nCANARY\n", "1\nnan\n",
     f"1\n{2**31}\n", f"1\n{2**32}\n", f"1\n{2**53}\n", f"1\n{2**64}\n",
     "1\ntrue\n", '1\n""\n', "1,2\n"],
)  # fmt: skip
def test_impossible_reports_are_rejected(folder, error_from, text):
    _reports(folder, text)
    error_from("estimate", "lunch.toml", "r.csv", "-o", "e.csv", never=["CANARY"])


@pytest.mark.parametrize(
    "column",
    [
        [1, 1000],
        [1, -1],
        [1.0, 2.0],
        ["1", "CANARY"],
        [1, None],
        [1, 2**31],
        [1, 2**53],
        [True, False],
        [None, None],
    ],
    ids=str,
)
def test_impossible_parquet_reports_are_rejected(folder, error_from, column):
    fingerprint = Survey.load(folder / "lunch.toml").fingerprint
    table = pa.table({"report": column}).replace_schema_metadata(
        {b"sfumato.survey": fingerprint.encode()}
    )
    pq.write_table(table, folder / "r.parquet")
    error_from("estimate", "lunch.toml", "r.parquet", "-o", "e.csv", never=["CANARY"])


def test_reports_of_another_survey_are_refused(folder, call, error_from):
    for name in ("r.csv", "r.parquet"):
        call("privatize", "other.toml", "answers.csv", "--column", "place", "-o", name)
        message = error_from("estimate", "lunch.toml", name)
        assert "contains reports for survey" in message
        assert Survey.load(folder / "lunch.toml").fingerprint[:12] in message


def test_one_foreign_file_rejects_all(folder, call, error_from):
    call("privatize", "lunch.toml", "answers.csv", "--column", "place", "-o", "good.csv")
    call("privatize", "other.toml", "answers.csv", "--column", "place", "-o", "bad.csv")
    assert "bad.csv" in error_from("estimate", "lunch.toml", "good.csv", "bad.csv", "-o", "e.csv")


def test_simulated_reports_are_refused(folder, error_from):
    _reports(folder, "1\n", header="simulated@{fingerprint}")
    assert "simulated reports, not private ones" in error_from("estimate", "lunch.toml", "r.csv")
    fingerprint = Survey.load(folder / "lunch.toml").fingerprint.encode()
    marks = {b"sfumato.survey": fingerprint, b"sfumato.simulated": b"true"}
    pq.write_table(pa.table({"report": [1]}).replace_schema_metadata(marks), folder / "r.parquet")
    assert "simulated reports, not private ones" in error_from(
        "estimate", "lunch.toml", "r.parquet"
    )


def test_answers_are_not_reports(folder, error_from):
    write_parquet(folder / "a.parquet", place=PLACES)
    for name in ("answers.csv", "a.parquet"):
        message = error_from("estimate", "lunch.toml", name, never=["park"])
        assert "not a report file" in message
        assert "sfumato privatize" in message


@pytest.mark.parametrize(
    "header", ["report", "report@", "report@0123", "REPORT@{fingerprint}", "x@{fingerprint}"]
)
def test_a_header_without_the_right_fingerprint_is_refused(folder, error_from, header):
    _reports(folder, "1\n", header=header)
    error_from("estimate", "lunch.toml", "r.csv")


def test_empty_report_files_are_rejected(folder, error_from):
    _reports(folder, "")
    assert "report" in error_from("estimate", "lunch.toml", "r.csv", "-o", "e.csv")


def test_too_few_reports_are_refused(folder, call, error_from):
    (folder / "min.toml").write_text("minimum_reports = 1000\n" + LUNCH, encoding="utf-8")
    call("privatize", "min.toml", "answers.csv", "--column", "place", "-o", "r.csv")
    assert "at least 1000 reports; there are 200" in error_from("estimate", "min.toml", "r.csv")
    assert "1000" in error_from("simulate", "min.toml", "answers.csv", "--column", "place")


@pytest.mark.parametrize("name", ["empty.csv", "cut.parquet", "cut.gz", "absent.csv", "sub"])
def test_report_files_that_cannot_be_read_are_refused(folder, call, error_from, name):
    call("privatize", "lunch.toml", "answers.csv", "--column", "place", "-o", "r.parquet")
    call("privatize", "lunch.toml", "answers.csv", "--column", "place", "-o", "r.csv")
    (folder / "sub").mkdir()
    (folder / "empty.csv").write_bytes(b"")
    (folder / "cut.parquet").write_bytes((folder / "r.parquet").read_bytes()[:-5])
    (folder / "cut.gz").write_bytes(gzip.compress((folder / "r.csv").read_bytes())[:-9])
    assert name in error_from("estimate", "lunch.toml", "r.csv", name, "-o", "e.csv")


# --- surveys --------------------------------------------------------------------------------------

EPSILONS = ["0", "-1", "inf", "nan", "1e-12", "50", '"one"', "true", "[1.0]"]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("command", ["verify", "privatize", "simulate", "estimate"])
def test_unusual_epsilon_is_rejected_or_correct(folder, call, epsilon, command):
    (folder / "s.toml").write_text(
        LUNCH.replace("epsilon = 1.0", f"epsilon = {epsilon}"), encoding="utf-8"
    )
    rest = {
        "verify": ["--json"],
        "privatize": ["answers.csv", "--column", "place", "-o", "out.csv"],
        "simulate": ["answers.csv", "--column", "place"],
        "estimate": ["answers.csv"],
    }
    before = read_folder(folder)
    result = call(command, "s.toml", *rest[command])
    assert "Traceback" not in result.err
    if result.code == 0:
        assert epsilon in ("1e-12", "inf")  # next to nothing can be learned; everything is told
    else:
        assert result.code == 2
        assert read_folder(folder) == before
        assert command == "estimate" or "epsilon" in result.err


SURVEYS = {
    "duplicate labels": LUNCH.replace('"park", ', '"park", "park", '),
    "duplicate in NFD": LUNCH.replace('"park", ', '"park", "cafe\u0301", '),
    "empty label": LUNCH.replace('"park"', '""'),
    "no labels": LUNCH.replace('["park", "café", "clinic", "bar", "office"]', "[]"),
    "unknown sensitive": LUNCH.replace('["clinic", "bar"]', '["clinik"]'),
    "label too large": LUNCH.replace('"park"', str(2**53)),
    "label of another kind": LUNCH.replace('"park"', "1.5"),
    "unknown field": LUNCH.replace("epsilon", "epsilom"),
    "no TOML": "name = ",
    "empty": "",
    "unknown kind": LUNCH.replace("high-low", "hi-lo"),
    "too large a range": (
        'name="a"\n[domain]\nkind="range"\nsize=2147483649\n[context]\nkind="uniform"\nepsilon=1'
    ),
}


@pytest.mark.parametrize("name", SURVEYS)
def test_invalid_surveys_are_rejected(folder, error_from, name):
    (folder / "s.toml").write_text(SURVEYS[name], encoding="utf-8")
    error_from("verify", "s.toml", "-o", "c.json")
    error_from("privatize", "s.toml", "answers.csv", "--column", "place", "-o", "out.csv")


def test_survey_must_be_a_file(folder, error_from):
    (folder / "latin.toml").write_bytes(OTHER.encode("latin-1"))
    (folder / "broken.json").write_text("{")
    (folder / "sub.toml").mkdir()
    for name in ("absent.toml", "sub.toml", "latin.toml", "broken.json"):
        error_from("verify", name)


def test_a_survey_with_a_byte_order_mark_is_read(folder, call):
    (folder / "s.toml").write_bytes(b"\xef\xbb\xbf" + LUNCH.encode())
    assert call("verify", "s.toml").code == 0


def test_one_category_is_refused_or_certified(folder, call):
    (folder / "s.toml").write_text(
        'name="a"\n[domain]\nkind="labels"\nlabels=["x"]\n[context]\nkind="uniform"\nepsilon=1'
    )
    result = call("verify", "s.toml")
    assert result.code in (0, 2)
    assert "Traceback" not in result.err


@pytest.mark.parametrize("decoder", ["nonsense", "", "Projection"])
def test_an_unknown_decoder_is_refused(error_from, decoder):
    message = error_from(
        "simulate", "lunch.toml", "answers.csv", "--column", "place", "--decoder", decoder
    )
    assert f"one of {', '.join(DECODER_TABLE)}; got" in message
