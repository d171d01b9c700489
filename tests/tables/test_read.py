"""Tables: batches of symbols and of reports, from any file."""

import gzip
import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.errors import InvalidArgument, InvalidSetting, InvalidTable, UnknownValue, WrongSurvey
from sfumato.tables import (
    AnswerColumns,
    ReportWriter,
    RowCounter,
    answer_batches,
    csv_file,
    lent_stream,
    open_table,
    report_batches,
    report_writer,
    table,
)

FINGERPRINT = "ab" * 32
PLACES = sf.Domain(["park", "bar", "NA"])


def _symbols(path, domain=PLACES, columns=None, **options):
    batches = answer_batches(str(path), columns or AnswerColumns("place"), domain, **options)
    counter = RowCounter(domain, columns or AnswerColumns("place"))
    symbols = []
    for batch in batches:
        counter.add(str(path), batch.counts)
        symbols += batch.symbols.tolist()
    counter.check()
    return symbols


def _written(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_symbols_of_a_csv_column(tmp_path):
    path = _written(tmp_path / "a.csv", "age,place\n1,bar\n2,park\n3,NA\n")
    assert _symbols(path) == [1, 0, 2]


def test_progress_counts_rows(tmp_path, monkeypatch):
    pq.write_table(pa.table({"place": ["bar"] * 10}), tmp_path / "a.parquet")
    monkeypatch.setattr(table, "BATCH_ROWS", 4)
    done = []
    assert _symbols(tmp_path / "a.parquet", on_progress=done.append) == [1] * 10
    assert done == [4, 8, 10]


def test_an_unknown_value_is_named_by_its_rows(tmp_path, monkeypatch):
    pq.write_table(pa.table({"place": ["bar"] * 9 + ["zoo"]}), tmp_path / "a.parquet")
    monkeypatch.setattr(table, "BATCH_ROWS", 4)
    with pytest.raises(
        UnknownValue, match=r"a.parquet: 1 of 10 rows .*\(the first in data row 10\)"
    ) as caught:
        _symbols(tmp_path / "a.parquet")
    assert "zoo" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize("block", [64, 100, 2**22])
def test_values_across_blocks(tmp_path, monkeypatch, block):
    monkeypatch.setattr(csv_file, "_BLOCK_SIZE", block)
    domain = sf.Domain(["two\nlines", 'a "quote"', "x"])
    path = _written(
        tmp_path / "a.csv", "n,place\n" + '1,"two\nlines"\n2,"a ""quote"""\n3,x\n' * 200
    )
    assert _symbols(path, domain) == [0, 1, 2] * 200


def test_other_columns_may_be_malformed(tmp_path):
    path = _written(tmp_path / "a.csv", b"name,place\n\xff\xfe,bar\n\xe9,park\n")
    assert _symbols(path) == [1, 0]


def test_columns_are_known_before_rows_are_read(tmp_path):
    path = _written(tmp_path / "a.csv", b'\xef\xbb\xbf"a,b",place \r\n1,2\r\n')
    with open_table(str(path)) as opened:
        assert opened.columns == ["a,b", "place "]
        assert opened.metadata == {}


@pytest.mark.parametrize("content", [b"\n", b"\r\n", b"a\rb\r", b'"a\n', b"y" * 150_000])
def test_empty_headers_are_rejected(tmp_path, content):
    path = _written(tmp_path / "a.csv", content)
    with pytest.raises(InvalidTable, match="must start with a header"), open_table(str(path)):
        pass


def test_gzip_and_parquet_are_detected_by_content(tmp_path):
    _written(tmp_path / "a.parquet", gzip.compress(b"place\nbar\n"))
    pq.write_table(pa.table({"place": ["park"]}), tmp_path / "a.csv.gz")
    assert _symbols(tmp_path / "a.parquet") == [1]
    assert _symbols(tmp_path / "a.csv.gz") == [0]


@pytest.mark.parametrize(
    ("columns", "domain"),
    [
        (AnswerColumns(), PLACES),
        (AnswerColumns("a", "b", "c"), PLACES),
        (AnswerColumns(latitude="a"), sf.GridDomain(0, 1, 0, 1, 1)),
        (AnswerColumns("a", longitude="c"), PLACES),
        (AnswerColumns("a"), sf.GridDomain(0, 1, 0, 1, 1)),
        (AnswerColumns(None, "a", "b"), PLACES),
    ],
)
def test_columns_must_fit_the_domain(columns, domain):
    with pytest.raises(InvalidArgument, match="--"):
        columns.check(domain)


def test_grid_positions(tmp_path):
    grid = sf.GridDomain(0, 2, 0, 2, 1, other="away")
    path = _written(tmp_path / "a.csv", "lon,lat\n0.5,1.5\n1.5,0.5\n1,1\n9,9\nnan,0\n,\n")
    assert _symbols(path, grid, AnswerColumns(None, "lat", "lon")) == [2, 1, 3, 4, 4, 4]


@pytest.mark.parametrize(
    "values", [["3", "-1", "7"], pa.array([3, -1, 7]), pa.array([3, -1, 7]).dictionary_encode()]
)
def test_integers(tmp_path, values):
    pq.write_table(pa.table({"place": values}), tmp_path / "a.parquet")
    assert _symbols(tmp_path / "a.parquet", sf.IntegerDomain(20, start=-1)) == [4, 0, 8]


def test_integers_at_the_edges(tmp_path):
    far = sf.IntegerDomain(2, start=2**52)
    path = _written(tmp_path / "a.csv", f"place\n{2**52}\n{2**52 + 1}\n")
    assert _symbols(path, far) == [0, 1]
    wide = sf.IntegerDomain(2**31)
    assert _symbols(_written(path, f"place\n{2**31 - 1}\n"), wide) == [2**31 - 1]
    with pytest.raises(UnknownValue):
        _symbols(_written(path, f"place\n{2**31}\n"), wide)


# --- reports --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["r.csv", "r.parquet"])
def test_reports_round_trip(tmp_path, name):
    path = str(tmp_path / name)
    with report_writer(path, FINGERPRINT) as writer:
        writer.write(np.array([1, 2, 2**31 - 1], dtype=np.uint32))
        writer.write(np.array([0], dtype=np.int64))
    batches = list(report_batches(path, FINGERPRINT))
    assert np.concatenate([batch.numbers for batch in batches]).tolist() == [1, 2, 2**31 - 1, 0]
    assert {batch.fingerprint for batch in batches} == {FINGERPRINT}
    with pytest.raises(WrongSurvey, match="abababababab"):
        list(report_batches(path, "cd" * 32))


@pytest.mark.parametrize("name", ["r.csv", "r.parquet"])
def test_a_failed_writer_keeps_the_old_file(tmp_path, name):
    path = tmp_path / name
    path.write_text("precious")
    with pytest.raises(KeyError), report_writer(str(path), FINGERPRINT) as writer:
        writer.write(np.array([1]))
        raise KeyError
    assert path.read_text() == "precious"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["r", "r.txt", "r.csv.gz", ".csv", "r.CSV"])
def test_unknown_endings_are_rejected(tmp_path, name):
    with (
        pytest.raises(InvalidSetting, match="must end in"),
        report_writer(str(tmp_path / name), FINGERPRINT),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("numbers", [[-1], [2**32], [1.5]])
def test_writers_store_32_bits(numbers):
    writer = ReportWriter(io.BytesIO(), FINGERPRINT, as_csv=True)
    with pytest.raises((pa.ArrowInvalid, OverflowError)):
        writer.write(np.array(numbers))


# --- Arrow's threads ------------------------------------------------------------------------------


class _Bytes:
    def __init__(self, content):
        self._content = content

    def read(self, size):
        content = self._content[:size]
        self._content = self._content[size:]
        return content


def test_a_loan_ends_when_nobody_refers_to_a_block(monkeypatch):
    monkeypatch.setattr(lent_stream, "_MAX_WAIT", 0.01)
    loan = lent_stream.Loan(_Bytes(b"abc"))
    block = loan.lend().read(2)
    assert block == b"ab"
    assert not loan.wait_for_release()
    del block
    assert loan.wait_for_release()


def test_arrow_has_released_a_csv_file_that_was_read(tmp_path, monkeypatch):
    """A thread that still needs Python while it exits aborts the process."""
    waits = []
    wait = lent_stream.Loan.wait_for_release
    monkeypatch.setattr(lent_stream.Loan, "wait_for_release", lambda loan: waits.append(wait(loan)))
    path = tmp_path / "a.csv"
    path.write_text("a,b\n" + "x,y\n" * 1000)
    with open_table(str(path)) as opened:
        assert sum(batch.num_rows for batch in opened.batches({"a": None})) == 1000
    path.write_text("a,b\nx,y\nx\n")
    with pytest.raises(InvalidTable), open_table(str(path)) as opened:
        list(opened.batches({"a": None}))
    assert waits == [True, True]


@pytest.mark.parametrize("size", range(40, 60))
def test_a_file_with_one_column_may_have_many_blocks(tmp_path, monkeypatch, size):
    monkeypatch.setattr(csv_file, "_BLOCK_SIZE", size)
    path = tmp_path / "a.csv"
    path.write_text("a\n" + "park\ncafe\nclinic\n\n" * 100 + "bar\n\n")
    with open_table(str(path)) as opened:
        assert sum(batch.num_rows for batch in opened.batches({"a": None})) == 401
