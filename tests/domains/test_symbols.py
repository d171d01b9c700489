"""The one gate for symbols: integers in range, and no entry in a message."""

import traceback
from decimal import Decimal

import numpy as np
import pytest

from sfumato.contexts import Uniform
from sfumato.domains.symbols import all_below, kind_of, require_symbols
from sfumato.errors import InvalidSymbols, ReportRejected
from sfumato.mechanisms import PlainResponse
from sfumato.tally import Tally
from support.error_text import full_error_text

SIZE = 1000


@pytest.mark.parametrize(
    "dtype", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
)
def test_integers_of_any_width_pass_as_64_bit_integers(dtype):
    symbols = require_symbols(np.array([0, 3, 100], dtype=dtype), SIZE)
    assert symbols.tolist() == [0, 3, 100]
    assert symbols.dtype == np.int64


def test_what_an_array_says_of_itself_is_in_no_error():
    class Talkative:
        def __array__(self, dtype=None, copy=None):
            raise ValueError("cannot convert 4711")

    with pytest.raises(InvalidSymbols) as caught:
        require_symbols(Talkative(), SIZE)
    assert "4711" not in full_error_text(caught.value)


@pytest.mark.parametrize(
    "symbols", [[0, 1], (0, 1), range(2), np.array([0, 1])], ids=lambda s: type(s).__name__
)
def test_sequences_pass(symbols):
    assert require_symbols(symbols, 2).tolist() == [0, 1]


@pytest.mark.parametrize("shape", [(), (6,), (2, 3), (1, 2, 3)])
def test_the_shape_is_kept(shape):
    assert require_symbols(np.ones(shape, dtype=np.int64), 2).shape == shape


def test_the_ends_of_the_domain_pass():
    assert require_symbols([0, SIZE - 1], SIZE).tolist() == [0, SIZE - 1]
    assert require_symbols([2**31 - 1], 2**31).tolist() == [2**31 - 1]


CANARY = 739137
WRONG = {
    "too large": [0, CANARY],
    "the size itself": [0, SIZE],
    "negative": [0, -CANARY],
    "minus one": [-1],
    "2^31": [2**31],
    "2^53": [2**53],
    "2^63": [2**63],
    "2^64": [2**64],
    "2^100": [2**100],
    "unsigned": np.array([2**64 - 1], dtype=np.uint64),
    "two rows": [[0, 1], [2, CANARY]],
    "floats": [739.137],
    "whole floats": [1.0, 2.0],
    "NaN": [float("nan")],
    "infinity": [float("inf")],
    "one NaN": [0, float("nan")],
    "booleans": [True, False],
    "None": [0, None],
    "text": ["canary739137"],
    "digits": ["1"],
    "mixed": [0, "canary739137"],
    "bytes": [b"canary739137"],
    "complex": [739137 + 1j],
    "objects": np.array([0, 1], dtype=object),
    "decimals": [Decimal("739137")],
    "dates": np.array(["7391-03-07"], dtype="datetime64[D]"),
    "ragged": [[739137, 1], [2]],
    "deeply ragged": [[0], [[739137]]],
    "a word": "canary739137",
    "nothing": None,
    "a dictionary": {"canary739137": 1},
    "a set": {739137},
    "an empty list": [],
}


@pytest.mark.parametrize("symbols", WRONG.values(), ids=WRONG.keys())
def test_what_is_no_symbol_is_refused_and_never_echoed(symbols):
    with pytest.raises(InvalidSymbols) as caught:
        require_symbols(symbols, SIZE)
    error, said = caught.value, ""
    while error is not None:
        said += str(error) + repr(error.args)
        error = error.__cause__ or error.__context__
    said += "".join(traceback.format_exception(caught.value))
    assert "7391" not in said
    assert "canary" not in said


@pytest.mark.parametrize("symbols", WRONG.values(), ids=WRONG.keys())
def test_a_mechanism_refuses_what_the_gate_refuses(symbols):
    with pytest.raises(InvalidSymbols):
        PlainResponse(Uniform(SIZE, 1.0)).privatize(symbols)


def test_symbols_outside_are_counted_and_the_first_is_placed():
    with pytest.raises(InvalidSymbols, match=r"0\.\.2; 2 of 6 do not \(the first at position 3\)"):
        require_symbols([[0, 1, 2], [3, 0, -1]], 3)


def test_floats_are_told_where_to_go():
    with pytest.raises(InvalidSymbols, match=r"got floats.*`symbols` method"):
        require_symbols([0.5], 3)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_narrow_integers_are_compared_with_a_large_domain(dtype):
    assert require_symbols(np.array([100], dtype=dtype), 10**6).tolist() == [100]
    with pytest.raises(InvalidSymbols):
        require_symbols(np.array([100], dtype=dtype), 100)


def test_a_checked_array_is_not_copied():
    symbols = np.array([0, 1, 2])
    assert require_symbols(symbols, 3) is symbols


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.array([]), "nothing"),
        (np.array([0.5]), "floats"),
        (np.array([True]), "booleans"),
        (np.array(["secret"]), "text"),
        (np.array([b"secret"]), "bytes"),
        (np.array([None]), "objects"),
        (np.array([1j]), "complex numbers"),
        (np.array(["2026-01-01"], dtype="datetime64[D]"), "something else"),
    ],
)
def test_a_kind_is_named_in_words_that_reveal_no_entry(array, words):
    assert kind_of(array) == words


@pytest.mark.parametrize(
    "size", [100, 127, 128, 129, 255, 256, 257, 300, 2**15, 2**15 + 1, 2**16 - 1, 2**16 + 1]
)
@pytest.mark.parametrize(
    "kind", ["i1", "u1", "i2", "u2", ">i2", "i4", ">i4", "u4", "i8", ">i8", "u8", ">u8"]
)
def test_all_below_is_what_python_says(kind, size):
    limits = np.iinfo(kind)
    edges = [
        -(2**56),
        -(2**15),
        -300,
        -1,
        0,
        1,
        126,
        127,
        128,
        254,
        255,
        256,
        size - 1,
        size,
        2**15,
        2**16,
        2**56,
    ]
    for number in (edge for edge in edges if limits.min <= edge <= limits.max):
        array = np.array([0, number], dtype=kind)
        assert all_below(array, size) == (0 <= number < size), number
        if not 0 <= number < size:
            with pytest.raises(InvalidSymbols):
                require_symbols(array, size)
            with pytest.raises(ReportRejected):
                Tally.of(array, outputs=size, fingerprint="f")
        else:
            assert require_symbols(array, size).tolist() == [0, number]
            assert Tally.of(array, outputs=size, fingerprint="f").reports == 2
