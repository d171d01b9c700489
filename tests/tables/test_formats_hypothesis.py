"""The same table in every format is read as the same texts."""

import csv
import io
import json
import tempfile
import unicodedata
from pathlib import Path

import openpyxl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sfumato.tables import open_table

# XML has no other control characters, and XML and CSV readers change carriage returns.
TEXTS = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff")
    | st.sampled_from('\n\t,;|"{}[] =#'),
    min_size=1,
    max_size=12,
)
INTEGERS = st.integers(-(2**53), 2**53)
COLUMNS = st.lists(st.none() | TEXTS) | st.lists(st.none() | INTEGERS)
COLUMNS |= st.lists(st.none() | TEXTS | INTEGERS)


def _write_csv(path, rows, delimiter):
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerows([["id", "answer"], *enumerate(rows)])
    path.write_text(text.getvalue(), encoding="utf-8", newline="")


def _arrow_table(rows):
    if all(value is None or isinstance(value, int) for value in rows):
        answers = pa.array(rows, pa.int64())
    else:
        answers = pa.array([None if value is None else str(value) for value in rows])
    return pa.table({"id": pa.array(range(len(rows)), pa.int64()), "answer": answers})


def _write_json(path, rows):
    with path.open("w", encoding="utf-8") as file:
        for index, value in enumerate(rows):
            record = {"id": index}
            if value is not None or index % 2:  # a missing key is a missing value
                record["answer"] = value
            file.write(json.dumps(record, ensure_ascii=bool(index % 3)) + "\n")


def _write_excel(path, rows):
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    sheet.append(["id", "answer"])
    for index, value in enumerate(rows):
        sheet.append([index, value])
        if isinstance(value, str):
            sheet.cell(index + 2, 2).data_type = "s"  # also if it begins with =
    workbook.save(path)


def _read_texts(path, **options):
    texts = []
    with open_table(str(path), **options) as opened:
        for batch in opened.batches({"answer": None}):
            texts += _as_texts(batch.column(0))
    return texts


def _as_texts(column):
    """The cells as text, normalized like labels; empty cells are None."""
    texts = []
    for cell in column.cast(pa.string()).to_pylist():
        texts.append(unicodedata.normalize("NFC", cell) if cell else None)
    return texts


@given(COLUMNS)
@example(["two\nlines", None, 'a "b"', "x,y", 1, "1"])
@example([None, None, "x"])
@example([2**53, None, -(2**53)])
@settings(max_examples=150, deadline=None, derandomize=True, database=None)
def test_every_format_is_read_as_the_same_texts(rows):
    rows = ["first", *rows] if any(isinstance(value, str) for value in rows) else [0, *rows]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table")
        pq.write_table(_arrow_table(rows), path)
        expected = _read_texts(path)
        assert len(expected) == len(rows)
        pa.feather.write_feather(_arrow_table(rows), str(path))
        assert _read_texts(path) == expected
        _write_csv(path, rows, ",")
        assert _read_texts(path) == expected
        _write_csv(path, rows, "\t")
        assert _read_texts(path, delimiter="tab") == expected
        _write_json(path, rows)
        assert _read_texts(path) == expected
        _write_excel(path, rows)
        assert _read_texts(path) == expected
