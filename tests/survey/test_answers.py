"""Answers from lists, NumPy, Arrow, pandas and polars; no value in any error."""

import datetime
import math
import sys
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from sfumato.contexts import Blocks, HighLow, Uniform
from sfumato.domains import Domain, GridDomain, IntegerDomain
from sfumato.domains.partitions import grid_tiles
from sfumato.errors import InvalidSymbols, SfumatoError, UnknownValue
from sfumato.randomness import words_from
from sfumato.survey import AnswerColumns, AnswerReader, Survey
from support.error_text import full_error_text

CANARY = "canary-7f3a9"
PLACES = Domain(["park", "café", "clinic"])
OPEN = Domain(["park", "café", "clinic"], other="elsewhere")
AGES = IntegerDomain(100, start=18)
ANSWERS = ["clinic", "park", "park", "café", "clinic"]
SYMBOLS = [2, 0, 0, 1, 2]


def to_symbols(domain, answers):
    reader = AnswerReader(domain, AnswerColumns())
    batch = reader.read(answers)
    reader.rules.check(batch.counts)
    return batch.symbols


class _FixedWords:
    """NOT PRIVATE: the words of a fixed key."""

    def take(self, count, words=2):
        return words_from(bytes(32), 0, count)[:, :words]


class _Capsule:
    """What any library with the Arrow PyCapsule interface offers, and nothing else."""

    def __init__(self, column):
        self._column = column

    def __arrow_c_stream__(self, requested_schema=None):
        return self._column.__arrow_c_stream__(requested_schema)


class _ArrayCapsule:
    def __init__(self, column):
        self._column = column

    def __arrow_c_array__(self, requested_schema=None):
        return self._column.__arrow_c_array__(requested_schema)


def _columns(answers):
    yield "list", answers
    yield "tuple", tuple(answers)
    yield "generator", (answer for answer in answers)
    yield "NumPy", np.array(answers)
    yield "NumPy objects", np.array(answers, dtype=object)
    yield "Array", pa.array(answers)
    yield (
        "large",
        pa.array(answers, pa.large_string() if isinstance(answers[0], str) else pa.int64()),
    )
    yield "ChunkedArray", pa.chunked_array([answers[:2], answers[2:3], answers[3:]])
    yield (
        "empty chunk",
        pa.chunked_array([pa.array(answers[:2]), pa.array(answers[:2])[:0], pa.array(answers[2:])]),
    )
    yield "dictionary", pa.array(answers).dictionary_encode()
    yield (
        "dictionaries",
        pa.chunked_array(
            [pa.array(answers[:2]).dictionary_encode(), pa.array(answers[2:]).dictionary_encode()]
        ),
    )
    yield (
        "slice",
        pa.array(["x", *answers, "y"] if isinstance(answers[0], str) else [0, *answers, 0]).slice(
            1, len(answers)
        ),
    )
    yield "stream", _Capsule(pa.chunked_array([answers]))
    yield "array", _ArrayCapsule(pa.array(answers))


@pytest.mark.parametrize(
    "column", [pytest.param(column, id=name) for name, column in _columns(ANSWERS)]
)
def test_text_columns_of_any_library_agree(column):
    assert to_symbols(PLACES, column).tolist() == SYMBOLS


@pytest.mark.parametrize(
    "column", [pytest.param(column, id=name) for name, column in _columns([18, 117, 20, 20, 18])]
)
def test_integer_columns_of_any_library_agree(column):
    assert to_symbols(AGES, column).tolist() == [0, 99, 2, 2, 0]


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint8(), pa.int16(), pa.uint32(), pa.uint64()])
def test_integers_of_any_width(kind):
    assert to_symbols(AGES, pa.array([18, 100], kind)).tolist() == [0, 82]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_text_of_any_layout(kind):
    assert to_symbols(PLACES, pa.array(ANSWERS, kind)).tolist() == SYMBOLS


@pytest.mark.parametrize(
    ("index", "size"), [(pa.int8(), 127), (pa.int8(), 128), (pa.uint8(), 256), (pa.int16(), 300)]
)
def test_a_dictionary_may_use_all_of_its_indices(index, size):
    labels = [f"v{i}" for i in range(size)]
    column = pa.DictionaryArray.from_arrays(pa.array([size - 1, 0, None], index), pa.array(labels))
    assert to_symbols(Domain(labels, other="else"), column).tolist() == [size - 1, 0, size]


def test_labels_are_looked_up_in_normal_form():
    assert to_symbols(PLACES, pa.array(["cafe\u0301", "caf\u00e9"])).tolist() == [1, 1]
    assert to_symbols(PLACES, ["cafe\u0301", "caf\u00e9"]).tolist() == [1, 1]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_column_of_a_data_frame(library):
    frame = pytest.importorskip(library).DataFrame({"place": ANSWERS})
    assert to_symbols(PLACES, frame["place"]).tolist() == SYMBOLS
    with pytest.raises(InvalidSymbols):
        to_symbols(PLACES, frame)


def test_reports_do_not_depend_on_the_container():
    survey = Survey("lunch", Uniform(PLACES, 1))
    expected = survey.privatize(ANSWERS, _FixedWords())
    for name, column in _columns(ANSWERS):
        if name not in ("stream", "array"):
            assert survey.privatize(column, _FixedWords()) == expected, name


# --- missing and unknown values -------------------------------------------------------------------


@pytest.mark.parametrize(
    "column",
    [
        ["park", None],
        np.array(["park", None], dtype=object),
        np.ma.array(["park", "bar"], mask=[False, True]),
        pa.array(["park", None]),
        pa.chunked_array([["park"], [None]], pa.string()),
        pa.array(["park", None]).dictionary_encode(),
        pa.DictionaryArray.from_arrays(pa.array([1, 0]), pa.array([None, "park"])),
    ],
    ids=[
        "list",
        "NumPy",
        "masked",
        "Array",
        "ChunkedArray",
        "dictionary",
        "null in the dictionary",
    ],
)
def test_missing_values_are_unknown_or_other(column):
    with pytest.raises(
        UnknownValue, match=r"1 of 2 rows has no answer \(the first at position 1\)"
    ):
        to_symbols(PLACES, column)
    assert to_symbols(OPEN, column).tolist() == [0, 3]


def test_masked_numbers_are_missing():
    reader = AnswerReader(Domain([1, 2]), AnswerColumns(missing="skip"))
    for kind in (np.int64, np.float32, object):
        batch = reader.read(np.ma.array([1, 2, 1], mask=[False, True, False], dtype=kind))
        assert batch.symbol_of_row.tolist() == [0, -1, 0]
        assert (batch.counts.missing, batch.counts.unknown) == (1, 0)


def test_all_null_column():
    with pytest.raises(UnknownValue, match="3 of 3"):
        to_symbols(PLACES, pa.nulls(3))
    assert to_symbols(OPEN, pa.nulls(3)).tolist() == [3, 3, 3]


def test_error_positions_count_across_chunks():
    chunks = pa.chunked_array([["park", "park"], ["park", CANARY, "park", CANARY]])
    with pytest.raises(UnknownValue, match=r"at position 3\)") as caught:
        to_symbols(PLACES, chunks)
    assert CANARY not in full_error_text(caught.value)


@pytest.mark.parametrize(
    "column", [[], (), np.array([]), pa.array([], pa.string()), pa.chunked_array([], pa.string())]
)
def test_no_answers_give_no_reports(column):
    with pytest.raises(InvalidSymbols, match="at least one"):
        Survey("lunch", Uniform(PLACES, 1)).privatize(column)


@pytest.mark.parametrize(
    "answers", ["park", b"park", 7, None, object(), pa.table({"a": ["park"]}), pa.scalar("park")]
)
def test_values_that_are_not_columns_are_rejected(answers):
    with pytest.raises(InvalidSymbols):
        to_symbols(PLACES, answers)


def test_tables_are_rejected():
    for table in (pa.table({"a": ["park"]}), pa.record_batch({"a": ["park"]})):
        with pytest.raises(InvalidSymbols, match="column"):
            to_symbols(PLACES, table)


def test_positions_on_a_grid_are_pairs_not_a_column():
    grid = GridDomain(0, 2, 0, 2, 1)
    assert to_symbols(grid, [(0, 1), (1, 1)]).tolist() == [1, 3]
    with pytest.raises(InvalidSymbols, match="two columns"):
        to_symbols(grid, pa.array(["0,1"]))


# --- canaries -------------------------------------------------------------------------------------

GRID = GridDomain(0, 2, 0, 2, 1)
SURVEYS = {
    "labels": Survey("q", Uniform(PLACES, 1)),
    "range": Survey("q", Uniform(AGES, 1)),
    "high-low": Survey("q", HighLow(PLACES, ["clinic"], 1)),
    "grid": Survey("q", Blocks(grid_tiles(GRID, 1, 2), 1, domain=GRID)),
}
NUMBER = 790_431_337
BAD = {
    "text": [CANARY],
    "later": ["park", CANARY],
    "bytes": [CANARY.encode()],
    "number": [NUMBER],
    "negative": [-NUMBER],
    "float": [NUMBER + 0.5],
    "huge": [NUMBER * 10**400],
    "decimal": [Decimal(NUMBER)],
    "nested": [[CANARY]],
    "pair": [(CANARY, CANARY)],
    "pair of numbers": [(NUMBER, NUMBER)],
    "ragged": [(NUMBER, 1), (NUMBER,)],
    "mapping": [{CANARY: NUMBER}],
    "nan": [math.nan],
    "boolean": [True],
    "date": [datetime.date(1979, 4, 13)],
    "mixed": [1, CANARY, 2.5, None],
    "look-alike": ["\u0440ark" + CANARY],
    "half": ["\ud800" + CANARY],
    "NumPy text": np.array([CANARY]),
    "NumPy bytes": np.array([CANARY.encode()]),
    "NumPy floats": np.array([NUMBER + 0.5]),
    "NumPy times": np.array(["1979-04-13"], dtype="datetime64[D]"),
    "NumPy matrix": np.array([[NUMBER]]),
    "NumPy record": np.array([(CANARY, NUMBER)], dtype=[("a", "U20"), ("b", "i8")]),
    "Array": pa.array([CANARY]),
    "Array of integers": pa.array([NUMBER]),
    "Array of floats": pa.array([NUMBER + 0.5]),
    "Array of bytes": pa.array([CANARY.encode()]),
    "Array of lists": pa.array([[CANARY]]),
    "Array of structs": pa.array([{"a": CANARY}]),
    "Array of dates": pa.array([datetime.date(1979, 4, 13)]),
    "Array of decimals": pa.array([Decimal(NUMBER)]),
    "Array of booleans": pa.array([True]),
    "Array of runs": pa.RunEndEncodedArray.from_arrays([1], [CANARY]),
    "dictionary": pa.array([CANARY]).dictionary_encode(),
    "chunks": pa.chunked_array([["park"], [CANARY]]),
    "Array of text that is not UTF-8": pa.Array.from_buffers(
        pa.string(),
        1,
        [
            None,
            pa.py_buffer(np.array([0, len(CANARY) + 1], np.int32)),
            pa.py_buffer(CANARY.encode() + b"\xff"),
        ],
    ),
    "Array of years that no calendar has": pa.array([1979 * 10**9], pa.int64()).cast(
        pa.timestamp("s")
    ),
}


@pytest.mark.parametrize("answers", BAD.values(), ids=BAD)
def test_no_raw_value_in_any_error_of_privatize(answers):
    for name, survey in SURVEYS.items():
        with pytest.raises(SfumatoError) as caught:
            survey.privatize(answers)
        said = full_error_text(caught.value)
        for secret in (CANARY, str(NUMBER), "1979"):
            assert secret not in said, name


def test_errors_of_iterables_propagate():
    def answers():
        yield "park"
        raise ConnectionError("the line is down")

    with pytest.raises(ConnectionError):
        SURVEYS["labels"].privatize(answers())


def test_lists_need_no_pyarrow(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert to_symbols(PLACES, ANSWERS).tolist() == SYMBOLS
