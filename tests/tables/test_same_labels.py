"""The same answers have the same labels and the same symbols, whatever format the table has."""

import csv
import json

import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from sfumato.domains import Domain
from sfumato.errors import UnknownValue
from sfumato.survey import AnswerReader
from sfumato.tables import AnswerColumns, answer_batches, json_lines, summarize_column
from sfumato.tables.proposed_domain import propose_domain


def write_csv(path, values, true="True", false="False"):
    texts = {True: true, False: false}
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "a"])
        for index, value in enumerate(values):
            rows.writerow([index, texts[value] if isinstance(value, bool) else value])


def write_csv_as_r(path, values):
    write_csv(path, values, "TRUE", "FALSE")


def write_json_lines(path, values):
    path.write_text("".join(json.dumps({"a": value}) + "\n" for value in values), encoding="utf-8")


def write_json_decimals(path, values):
    """Write whole numbers with a decimal point, as some programs do."""
    lines = []
    for value in values:
        is_number = isinstance(value, int) and not isinstance(value, bool)
        lines.append(f'{{"a": {value}.0}}' if is_number else json.dumps({"a": value}))
    path.write_text("\n".join(lines), encoding="utf-8")


def arrow_table(values):
    is_huge = any(isinstance(value, int) and value >= 2**63 for value in values)
    return pa.table({"a": pa.array(values, pa.uint64() if is_huge else None)})


def write_parquet(path, values):
    pq.write_table(arrow_table(values), path)


def write_dictionary(path, values):
    table = arrow_table(values)
    pq.write_table(pa.table({"a": table.column("a").dictionary_encode()}), path)


def write_feather(path, values):
    pa.feather.write_feather(arrow_table(values), str(path))


def write_excel(path, values):
    workbook = openpyxl.Workbook()
    workbook.active.append(["id", "a"])
    for index, value in enumerate(values):
        workbook.active.append([index, value])
    workbook.save(path)


WRITERS = {
    "csv": write_csv,
    "csv by r": write_csv_as_r,
    "json lines": write_json_lines,
    "json decimals": write_json_decimals,
    "parquet": write_parquet,
    "dictionary": write_dictionary,
    "feather": write_feather,
    "excel": write_excel,
}
COLUMNS = {
    "booleans": ([True, False, True, None], ["False", "True", "no answer"]),
    "integers": ([65, 7, -1, None], [-1, 7, 65, "no answer"]),
    "the largest label": ([2**53 - 1, 5, 1 - 2**53], [1 - 2**53, 5, 2**53 - 1]),
    "too large for a float": (
        [2**53 + 3, 2**53 + 1, 5, -(2**53) - 1],
        ["-9007199254740993", "5", "9007199254740993", "9007199254740995"],
    ),
    "too large for 16 digits": (
        [10**18 + 1, 10**18, 5],
        ["5", "1000000000000000000", "1000000000000000001"],
    ),
    "too large for 63 bits": (
        [2**63 + 1, 2**63, 5],
        ["5", "9223372036854775808", "9223372036854775809"],
    ),
}


@pytest.fixture
def paths(tmp_path):
    """Write a column in every format; return the paths."""

    def write_all(values):
        written = {}
        largest = max(map(abs, filter(None, values)))
        for name, write in WRITERS.items():
            if name == "excel" and largest >= 2**53:
                continue  # no spreadsheet program writes such numbers
            written[name] = str(tmp_path / name.replace(" ", "-"))
            write(tmp_path / name.replace(" ", "-"), values)
        return written

    return write_all


def propose(path):
    columns = AnswerColumns("a")
    return propose_domain(summarize_column(path, columns), columns)


def symbols_in(path, proposal):
    batches = answer_batches(path, proposal.columns, proposal.domain)
    return np.concatenate([batch.symbol_of_row for batch in batches]).tolist()


@pytest.mark.parametrize("name", COLUMNS)
def test_labels_do_not_depend_on_the_format(paths, name):
    values, labels = COLUMNS[name]
    for path in paths(values).values():
        assert list(propose(path).domain.labels) == labels


@pytest.mark.parametrize("name", COLUMNS)
def test_every_format_can_be_read_with_the_same_survey(paths, name):
    values, _ = COLUMNS[name]
    written = paths(values)
    proposal = propose(written["csv"])
    expected = symbols_in(written["csv"], proposal)
    assert min(expected) >= 0
    assert len(set(expected)) == len(set(values))
    for path in written.values():
        assert symbols_in(path, proposal) == expected


@pytest.mark.parametrize("name", COLUMNS)
def test_python_reads_the_same_symbols(paths, name):
    values, _ = COLUMNS[name]
    path = paths(values)["csv"]
    proposal = propose(path)
    reader = AnswerReader(proposal.domain, proposal.columns)
    table = arrow_table(values)
    columns = [
        values,
        table.column("a"),
        pl.DataFrame(table)["a"],
        pd.Series(values, dtype=object),
        table.to_pandas(types_mapper=pd.ArrowDtype)["a"],
    ]
    if None not in values:
        columns.append(table.column("a").to_numpy())
    for column in columns:
        assert reader.read(column).symbol_of_row.tolist() == symbols_in(path, proposal)


@pytest.mark.parametrize(
    "answers",
    [
        [float(2**53)],
        np.array([float(2**53)]),
        pd.Series([2**53 + 1, None]),  # pandas turns these integers into floats
        pa.array([float(2**53)]),
    ],
    ids=["list", "numpy", "pandas", "arrow"],
)
def test_a_float_that_may_be_rounded_is_refused(answers):
    reader = AnswerReader(Domain([str(2**53), str(2**53 + 1)]), AnswerColumns(missing="skip"))
    batch = reader.read(answers)
    with pytest.raises(UnknownValue):
        reader.rules.check(batch.counts)
    assert batch.symbol_of_row[0] == -1


@pytest.mark.parametrize("name", ["csv", "json lines", "excel"])
def test_booleans_among_other_answers_are_read_with_any_capitals(tmp_path, name):
    WRITERS[name](tmp_path / "a", [True, False, "maybe"])
    for labels in (["TRUE", "FALSE"], ["true", "false"], ["True", "False"]):
        domain = Domain([*labels, "maybe"])
        (batch,) = answer_batches(str(tmp_path / "a"), AnswerColumns("a"), domain)
        assert batch.symbol_of_row.tolist() == [0, 1, 2]


def test_a_label_with_other_capitals_is_another_label():
    reader = AnswerReader(Domain(["TRUE", "true"]), AnswerColumns("a"))
    assert reader.read(["true", "TRUE", True]).symbol_of_row.tolist() == [1, 0, 1]
    assert reader.read(["tRUE"]).counts.unknown == 1


# --- planted faults -------------------------------------------------------------------------------


def test_a_rounded_number_is_detected(paths, monkeypatch):
    monkeypatch.setattr(json_lines, "_parse_decimal_number", float)
    with pytest.raises(AssertionError):
        test_labels_do_not_depend_on_the_format(paths, "too large for a float")


def test_booleans_as_mere_texts_are_detected(paths, monkeypatch):
    monkeypatch.setattr("sfumato.tables.column_summary.is_boolean_cell", lambda cell: False)
    with pytest.raises(AssertionError):
        test_labels_do_not_depend_on_the_format(paths, "booleans")
