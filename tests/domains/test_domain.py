"""Domains: from values to symbols, and never a value in an error."""

import json
import sys
import traceback
from datetime import date
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from sfumato.contexts import HighLow, Uniform
from sfumato.domains import (
    Domain,
    IntegerDomain,
    all_in_range,
    as_domain,
    describe_kind,
    domain_from_record,
    require_symbols,
)
from sfumato.errors import InvalidContext, InvalidSymbols, ReportRejected, UnknownValue
from sfumato.foundation.canonical import canonical_bytes
from sfumato.mechanisms import PlainResponse
from sfumato.tally import Tally
from support.error_text import full_error_text

COMPOSED = "caf\u00e9"
DECOMPOSED = "cafe\u0301"
CANARY = "canary-7f3a9"


# --- labels ---------------------------------------------------------------------------------------


def test_labels_are_numbered_in_order():
    domain = Domain(["park", "café", "clinic"])
    assert domain.size == 3
    assert domain.labels == ("park", "café", "clinic")
    assert domain.symbols(["clinic", "park", "café", "park"]).tolist() == [2, 0, 1, 0]


def test_symbols_are_64_bit_integers_for_any_iterable():
    domain = Domain(["a", "b", 7])
    for values in (
        ["b", 7],
        ("b", 7),
        iter(["b", 7]),
        np.array(["b", 7], dtype=object),
        (v for v in ["b", 7]),
    ):
        symbols = domain.symbols(values)
        assert symbols.tolist() == [1, 2]
        assert symbols.dtype == np.int64


def test_no_values_give_no_symbols():
    assert Domain(["a"]).symbols([]).tolist() == []
    assert IntegerDomain(3).symbols([]).tolist() == []


def test_labels_may_come_from_any_sequence():
    for labels in (("a", "b"), iter(["a", "b"]), np.array(["a", "b"]), (label for label in "ab")):
        domain = Domain(labels)
        assert domain.labels == ("a", "b")
        assert all(type(label) is str for label in domain.labels)


def test_integer_labels_are_plain_integers():
    domain = Domain(np.array([10, 20]))
    assert domain.labels == (10, 20)
    assert all(type(label) is int for label in domain.labels)
    assert domain.symbols([np.int8(20), 10]).tolist() == [1, 0]


def test_number_and_its_text_are_different_labels():
    domain = Domain([1, "1"])
    assert domain.symbols(["1", 1]).tolist() == [1, 0]


@pytest.mark.parametrize(
    "labels",
    [
        ["a", "b", "a"],
        [1, 2, 1],
        [COMPOSED, DECOMPOSED],
        ["\u212b", "\u00c5"],
        ["\u2126", "\u03a9"],
        [3, np.int64(3)],
    ],
    ids=["text", "integers", "accents", "angstrom", "ohm", "NumPy"],
)
def test_duplicate_labels_raise(labels):
    with pytest.raises(InvalidContext, match=r"occurs twice\. Remove or rename one"):
        Domain(labels)


def test_values_and_labels_meet_in_nfc():
    for label in (COMPOSED, DECOMPOSED):
        for value in (COMPOSED, DECOMPOSED, np.str_(DECOMPOSED)):
            assert Domain(["park", label]).symbols([value]).tolist() == [1]


@pytest.mark.parametrize("value", ["\u0430", "a ", " a", "\ufeffa", "A", "a\u200b", "\uff41", b"a"])
def test_lookalike_values_are_unknown(value):
    with pytest.raises(UnknownValue):
        Domain(["a", "b"]).symbols([value])


@pytest.mark.parametrize(
    "labels", [[], (), np.array([]), iter([])], ids=["list", "tuple", "array", "iterator"]
)
def test_empty_domains_raise(labels):
    with pytest.raises(InvalidContext, match="at least one label"):
        Domain(labels)


@pytest.mark.parametrize(
    "label",
    [
        True,
        np.True_,
        None,
        1.0,
        float("nan"),
        b"a",
        ("a",),
        Decimal(1),
        Fraction(1),
        date(2026, 1, 1),
    ],
    ids=lambda label: type(label).__name__,
)
def test_labels_must_be_text_or_integers(label):
    with pytest.raises(InvalidContext, match="text or an integer"):
        Domain(["a", label])


def test_empty_labels_raise():
    with pytest.raises(InvalidContext, match="must not be empty"):
        Domain(["a", ""])


@pytest.mark.parametrize(
    "labels", ["abc", b"abc", {"a": 1}, None, 3.5, object()], ids=lambda labels: str(type(labels))
)
def test_labels_must_be_a_sequence(labels):
    with pytest.raises(InvalidContext, match="sequence of labels"):
        Domain(labels)


@pytest.mark.parametrize("label", [2**53, -(2**53), 2**64, "\ud800", "a\udfff"], ids=repr)
def test_unrepresentable_labels_raise(label):
    """Canonical JSON cannot hold integers from 2^53 or lone surrogates: fail before it tries."""
    with pytest.raises(InvalidContext):
        Domain(["a", label])


@pytest.mark.parametrize("label", [2**53 - 1, -(2**53) + 1, "\U0001f600", "a\nb", "\x00"], ids=repr)
def test_representable_labels_are_accepted(label):
    domain = Domain(["a", label])
    assert domain.labels == ("a", label)
    assert domain_from_record(json.loads(canonical_bytes(domain.to_record()))) == domain


# --- unknown values -------------------------------------------------------------------------------


NOT_LABELS = [
    None,
    float("nan"),
    np.nan,
    True,
    np.True_,
    1.0,
    b"park",
    ("park",),
    ["park"],
    object(),
    Decimal(1),
]


@pytest.mark.parametrize("value", NOT_LABELS, ids=lambda value: f"{type(value).__name__}")
def test_values_of_other_types_are_unknown(value):
    with pytest.raises(UnknownValue, match=r"1 of 2 values .* position 1"):
        Domain(["park", "1", 1]).symbols(["park", value])


@pytest.mark.parametrize(
    "value", ["zoo", 17, *NOT_LABELS], ids=lambda value: f"{type(value).__name__}"
)
def test_other_label_catches_unknown_and_missing_values(value):
    assert Domain(["park", "1"], other="elsewhere").symbols(["park", value]).tolist() == [0, 2]


def test_other_may_be_one_of_the_labels():
    domain = Domain(["park", DECOMPOSED, "bar"], other=COMPOSED)
    assert domain.size == 3
    assert domain.other == COMPOSED
    assert domain.symbols(["zoo", "bar"]).tolist() == [1, 2]


def test_new_other_label_is_appended():
    domain = Domain(["park"], other=0)
    assert domain.labels == ("park", 0)
    assert domain.symbols(["zoo", 0, "park"]).tolist() == [1, 1, 0]


@pytest.mark.parametrize("other", [True, 1.5, "", float("nan"), ["x"]], ids=repr)
def test_other_must_be_a_label(other):
    with pytest.raises(InvalidContext, match="other"):
        Domain(["park"], other=other)


def test_unknown_value_error_has_count_and_first_position():
    with pytest.raises(
        UnknownValue, match=r"3 of 6 values are not in the domain \(the first at position 2\)"
    ):
        Domain(["a", "b"]).symbols(["a", "b", "x", "a", "y", "z"])


class _Speaking:
    """A value that says itself whenever it is looked at."""

    def __repr__(self) -> str:
        return CANARY

    __str__ = __repr__


CANARIES = {
    "text": CANARY,
    "bytes": CANARY.encode(),
    "list": [CANARY],
    "object": _Speaking(),
    "NumPy text": np.str_(CANARY),
    "dictionary": {CANARY: CANARY},
    "date": date(7391, 3, 7),
    "number": 739137,
    "decimal": Decimal("7391.37"),
}
HIDDEN = (CANARY, "7391", "canary")


@pytest.mark.parametrize("value", CANARIES.values(), ids=CANARIES.keys())
@pytest.mark.parametrize(
    "domain", [Domain(["park", "bar"]), IntegerDomain(5)], ids=["labels", "integers"]
)
def test_unknown_value_error_does_not_echo_the_value(domain, value):
    first = domain.labels[0]
    with pytest.raises(UnknownValue) as caught:
        domain.symbols([first, value])
    text = full_error_text(caught.value)
    assert not any(hidden in text for hidden in HIDDEN)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    "values",
    [
        np.array([0, 739137]),
        np.array([0.0, 7391.37]),
        np.array(["0", CANARY]),
        np.array([0, CANARY], dtype=object),
        np.array([CANARY.encode()]),
        np.array(["7391-03-07"], dtype="datetime64[D]"),
    ],
    ids=lambda values: str(values.dtype),
)
@pytest.mark.parametrize(
    "domain", [Domain(["park", 0, "0"]), IntegerDomain(5)], ids=["labels", "integers"]
)
def test_unknown_value_error_does_not_echo_array_values(domain, values):
    with pytest.raises(UnknownValue) as caught:
        domain.symbols(values)
    assert not any(hidden in full_error_text(caught.value) for hidden in HIDDEN)


# --- consecutive integers -------------------------------------------------------------------------


def test_integers_are_counted_from_their_start():
    ages = IntegerDomain(100, start=18)
    assert ages.size == 100
    assert ages.symbols([18, 20, 117]).tolist() == [0, 2, 99]
    assert (ages.labels[0], ages.labels[-1]) == (18, 117)
    assert IntegerDomain(3, start=-1).symbols([-1, 0, 1]).tolist() == [0, 1, 2]


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int64, np.uint8, np.uint64, object])
def test_integers_of_any_width_are_accepted(dtype):
    symbols = IntegerDomain(1000, start=18).symbols(np.array([18, 100], dtype=dtype))
    assert symbols.tolist() == [0, 82]
    assert symbols.dtype == np.int64


@pytest.mark.parametrize(
    "value",
    [
        17,
        118,
        -1,
        18.0,
        20.5,
        True,
        None,
        "18",
        float("nan"),
        2**63,
        2**64,
        10**30,
        np.float64(20),
        np.True_,
    ],
)
def test_values_outside_the_range_are_unknown(value):
    with pytest.raises(UnknownValue, match="position 1"):
        IntegerDomain(100, start=18).symbols([18, value])


@pytest.mark.parametrize("values", [[17], [118], [-5], [2**40]])
@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_arrays_outside_the_range_are_unknown(values, dtype):
    with pytest.raises(UnknownValue):
        IntegerDomain(100, start=18).symbols(np.array(values).astype(dtype))


@pytest.mark.parametrize(
    "values", [np.array([1.0]), np.array([True]), np.array(["1"]), np.array([1 + 0j])]
)
def test_arrays_of_other_types_are_unknown(values):
    with pytest.raises(UnknownValue):
        IntegerDomain(100).symbols(values)


def test_large_range_stores_no_list():
    domain = IntegerDomain(1_000_000)
    assert isinstance(domain.labels, range)
    assert sum(sys.getsizeof(part) for part in vars(domain).values()) < 1000
    assert domain.symbols(np.array([0, 999_999])).tolist() == [0, 999_999]


@pytest.mark.parametrize("size", [1, 2**31])
def test_sizes_up_to_2_to_the_31_are_accepted(size):
    assert IntegerDomain(size).size == size


@pytest.mark.parametrize("size", [0, -1, 2**31 + 1, 10**30])
def test_larger_sizes_raise(size):
    with pytest.raises(InvalidContext, match=r"must have 1 to 2\^31 symbols"):
        IntegerDomain(size)


@pytest.mark.parametrize("size", [True, 3.0, "3", None, float("nan")], ids=repr)
def test_size_must_be_an_integer(size):
    with pytest.raises(InvalidContext, match="integer"):
        IntegerDomain(size)


@pytest.mark.parametrize("start", [True, 1.0, "1", None, 2**52 + 1, -(2**52) - 1], ids=repr)
def test_start_must_be_a_representable_integer(start):
    with pytest.raises(InvalidContext, match="start"):
        IntegerDomain(3, start=start)


def test_numpy_integers_are_integers():
    assert IntegerDomain(np.int64(3)) == IntegerDomain(3)
    assert as_domain(np.int64(3)) == IntegerDomain(3)
    assert IntegerDomain(3, start=np.int64(18)) == IntegerDomain(3, start=18)


# --- what designers write -------------------------------------------------------------------------


def test_label_symbols_finds_labels():
    assert Domain(["a", COMPOSED, 7]).label_symbols([7, DECOMPOSED], "sensitive").tolist() == [2, 1]
    assert IntegerDomain(9, start=1).label_symbols([9, np.int64(1)], "sensitive").tolist() == [8, 0]


@pytest.mark.parametrize(
    "domain", [Domain(["a", "b"]), IntegerDomain(3)], ids=["labels", "integers"]
)
def test_label_symbols_error_names_unknown_labels(domain):
    with pytest.raises(InvalidContext, match="sensitive contains 'zoo'"):
        domain.label_symbols(["zoo"], "sensitive")


@pytest.mark.parametrize("label", [True, None, 1.0, [1]], ids=repr)
@pytest.mark.parametrize("domain", [Domain(["a", 1]), IntegerDomain(3)], ids=["labels", "integers"])
def test_label_symbols_rejects_other_types(domain, label):
    with pytest.raises(InvalidContext, match="sensitive"):
        domain.label_symbols([label], "sensitive")


# --- one domain or two ----------------------------------------------------------------------------


def test_equal_domains_have_equal_hashes():
    pairs = [
        (Domain(["a", COMPOSED]), Domain(["a", DECOMPOSED])),
        (Domain(["a", "b"], other="b"), Domain(["a", "b"], other="b")),
        (IntegerDomain(5, start=2), IntegerDomain(5, start=2)),
    ]
    for domain, twin in pairs:
        assert domain == twin
        assert hash(domain) == hash(twin)


@pytest.mark.parametrize(
    "other",
    [
        Domain(["b", "a"]),
        Domain(["a", "b"], other="b"),
        Domain(["a"]),
        Domain(["a", "b", "c"]),
        IntegerDomain(2),
        2,
    ],
    ids=repr,
)
def test_domains_differ_by_order_other_and_size(other):
    assert Domain(["a", "b"]) != other


def test_ranges_differ_by_start():
    assert IntegerDomain(3) != IntegerDomain(3, start=1)
    assert IntegerDomain(3) != IntegerDomain(4)


def test_as_domain_accepts_a_domain_a_number_or_labels():
    domain = Domain(["a"])
    assert as_domain(domain) is domain
    assert as_domain(3) == IntegerDomain(3)
    assert as_domain(["a"]) == domain


@pytest.mark.parametrize("domain", [True, None, 3.0, "abc", {"a": 1}, 0, -2, []], ids=repr)
def test_as_domain_rejects_anything_else(domain):
    with pytest.raises(InvalidContext):
        as_domain(domain)


def test_repr_is_short():
    assert repr(Domain(["a", "b"])) == "Domain(['a', 'b'], size=2)"
    assert len(repr(Domain(range(1000)))) < 80
    assert repr(IntegerDomain(10**6)) == "IntegerDomain(1000000, start=0)"


def test_label_symbols_accepts_numpy_integers_at_scale():
    """As many lookups as labels: each must be direct, not a walk through the range."""
    context = HighLow(50_000, sensitive=np.arange(0, 50_000, 100), epsilon=1)
    assert context.sensitive.tolist() == list(range(0, 50_000, 100))


# --- the check of symbols: integers in range, and no entry in a message --------------------------

SIZE = 1000


@pytest.mark.parametrize(
    "dtype", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
)
def test_integers_of_any_width_pass_as_64_bit_integers(dtype):
    symbols = require_symbols(np.array([0, 3, 100], dtype=dtype), SIZE)
    assert symbols.tolist() == [0, 3, 100]
    assert symbols.dtype == np.int64


def test_error_does_not_quote_the_array_protocol():
    class Talkative:
        def __array__(self, dtype=None, copy=None):
            raise ValueError("cannot convert 4711")

    with pytest.raises(InvalidSymbols) as caught:
        require_symbols(Talkative(), SIZE)
    assert "4711" not in full_error_text(caught.value)


@pytest.mark.parametrize(
    "symbols", [[0, 1], (0, 1), range(2), np.array([0, 1])], ids=lambda s: type(s).__name__
)
def test_sequences_are_accepted(symbols):
    assert require_symbols(symbols, 2).tolist() == [0, 1]


@pytest.mark.parametrize("shape", [(), (6,), (2, 3), (1, 2, 3)])
def test_shape_is_kept(shape):
    assert require_symbols(np.ones(shape, dtype=np.int64), 2).shape == shape


def test_ends_of_the_domain_are_accepted():
    assert require_symbols([0, SIZE - 1], SIZE).tolist() == [0, SIZE - 1]
    assert require_symbols([2**31 - 1], 2**31).tolist() == [2**31 - 1]


CANARY_NUMBER = 739137
WRONG = {
    "too large": [0, CANARY_NUMBER],
    "the size itself": [0, SIZE],
    "negative": [0, -CANARY_NUMBER],
    "minus one": [-1],
    "2^31": [2**31],
    "2^53": [2**53],
    "2^63": [2**63],
    "2^64": [2**64],
    "2^100": [2**100],
    "unsigned": np.array([2**64 - 1], dtype=np.uint64),
    "two rows": [[0, 1], [2, CANARY_NUMBER]],
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
def test_invalid_symbols_raise_without_echo(symbols):
    with pytest.raises(InvalidSymbols) as caught:
        require_symbols(symbols, SIZE)
    error = caught.value
    text = "".join(traceback.format_exception(error))
    while error is not None:
        text += str(error) + repr(error.args)
        error = error.__cause__ or error.__context__
    assert "7391" not in text
    assert "canary" not in text


@pytest.mark.parametrize("symbols", WRONG.values(), ids=WRONG.keys())
def test_mechanisms_reject_invalid_symbols(symbols):
    with pytest.raises(InvalidSymbols):
        PlainResponse(Uniform(SIZE, 1.0)).privatize(symbols)


def test_invalid_symbol_error_has_count_and_first_position():
    with pytest.raises(InvalidSymbols, match=r"0\.\.2; 2 of 6 are not \(the first at position 3\)"):
        require_symbols([[0, 1, 2], [3, 0, -1]], 3)


def test_error_for_floats_points_to_the_symbols_method():
    with pytest.raises(InvalidSymbols, match=r"got floats.*domain.symbols\(answers\)"):
        require_symbols([0.5], 3)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_narrow_integers_work_with_large_domains(dtype):
    assert require_symbols(np.array([100], dtype=dtype), 10**6).tolist() == [100]
    with pytest.raises(InvalidSymbols):
        require_symbols(np.array([100], dtype=dtype), 100)


def test_valid_array_is_not_copied():
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
def test_kind_of_reveals_no_entry(array, words):
    assert describe_kind(array) == words


@pytest.mark.parametrize(
    "kind", ["i1", "u1", "i2", "u2", ">i2", "i4", ">i4", "u4", "i8", ">i8", "u8", ">u8"]
)
def test_all_below_matches_python(kind):
    for size in (100, 127, 128, 129, 255, 256, 257, 300, 2**15, 2**15 + 1, 2**16 - 1, 2**16 + 1):
        _check_all_below(kind, size)


def _check_all_below(kind, size):
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
        assert all_in_range(array, size) == (0 <= number < size), number
        if not 0 <= number < size:
            with pytest.raises(InvalidSymbols):
                require_symbols(array, size)
            with pytest.raises(ReportRejected):
                Tally.from_reports(array, outputs=size, fingerprint="f")
        else:
            assert require_symbols(array, size).tolist() == [0, number]
            assert Tally.from_reports(array, outputs=size, fingerprint="f").reports == 2
