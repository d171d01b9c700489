"""Canonical JSON: one text for one meaning."""

import base64
import hashlib
import json
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from sfumato.foundation.canonical import canonical_bytes, decimal_text, fingerprint, pack_u32

COMPOSED = "caf\u00e9"
DECOMPOSED = "cafe\u0301"


def test_keys_are_sorted_by_code_point_at_every_depth():
    data = {"b": 1, "a": {"z": 1, "Z": 2, "é": 3, "~": 4}, "B": 2, "\U0001f600": 5, "\uffff": 6}
    text = '{"B":2,"a":{"Z":2,"z":1,"~":4,"é":3},"b":1,"\uffff":6,"\U0001f600":5}'
    assert canonical_bytes(data) == text.encode("utf-8")


def test_the_order_in_which_a_record_was_built_does_not_matter():
    assert canonical_bytes({"a": 1, "b": [2]}) == canonical_bytes({"b": [2], "a": 1})
    assert fingerprint({"a": 1, "b": [2]}) == fingerprint({"b": [2], "a": 1})


def test_list_order_matters():
    assert fingerprint(["park", "bar"]) != fingerprint(["bar", "park"])


def test_there_is_no_white_space_and_no_escape_of_letters():
    assert (
        canonical_bytes(["a b", "é", None, True, False, -3])
        == '["a b","é",null,true,false,-3]'.encode()
    )


def test_the_text_is_json_that_reads_back_as_the_record():
    data = {
        "labels": ["park", 'quo"te', "back\\slash", "new\nline", "\x00"],
        "size": 5,
        "other": None,
    }
    assert json.loads(canonical_bytes(data)) == data


def test_strings_and_keys_are_in_nfc():
    assert canonical_bytes({DECOMPOSED: DECOMPOSED}) == canonical_bytes({COMPOSED: COMPOSED})
    assert canonical_bytes([DECOMPOSED]) == f'["{COMPOSED}"]'.encode()


def test_keys_equal_in_nfc_are_rejected():
    with pytest.raises(ValueError, match="Rename one"):
        canonical_bytes({COMPOSED: 1, DECOMPOSED: 2})


@pytest.mark.parametrize(
    "number",
    [
        1.0,
        0.1,
        math.nan,
        math.inf,
        np.float64(1.0),
        np.int64(1),
        Fraction(1, 2),
        Decimal("1"),
        1j,
        object(),
        {1, 2},
    ],
    ids=lambda number: type(number).__name__,
)
def test_ambiguous_values_are_rejected_anywhere(number):
    for data in (number, [number], {"a": {"b": [number]}}):
        with pytest.raises(TypeError, match="cannot contain"):
            canonical_bytes(data)


@pytest.mark.parametrize("number", [2**53, -(2**53), 2**64, 10**30])
def test_integers_beyond_javascript_are_rejected(number):
    with pytest.raises(ValueError, match="as strings"):
        canonical_bytes({"a": [number]})


@pytest.mark.parametrize("number", [2**53 - 1, -(2**53) + 1, 0])
def test_safe_integers_are_written_as_numbers(number):
    assert canonical_bytes([number]) == f"[{number}]".encode()


def test_true_is_not_one():
    assert fingerprint([True]) != fingerprint([1])


def test_surrogates_are_rejected():
    with pytest.raises(ValueError, match="surrogates"):
        canonical_bytes(["\ud800"])


def test_non_text_keys_are_rejected():
    with pytest.raises(TypeError):
        canonical_bytes({1: "one"})


def test_the_fingerprint_is_sha_256_of_the_text():
    data = {"kind": "uniform", "epsilon": "1"}
    assert fingerprint(data) == hashlib.sha256(b'{"epsilon":"1","kind":"uniform"}').hexdigest()
    assert len(fingerprint(data)) == 64


# --- exact numbers as text ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (Fraction(0), "0"),
        (Fraction(3), "3"),
        (Fraction(100), "100"),
        (Fraction(5, 4), "1.25"),
        (Fraction(1, 10), "0.1"),
        (Fraction(1, 1000), "0.001"),
        (Fraction(1, 3), "1/3"),
        (Fraction(22, 7), "22/7"),
        (Fraction(-5, 4), "-1.25"),
        (Fraction(-1, 100), "-0.01"),
        (Fraction(1, 10**18), "0." + "0" * 17 + "1"),
        (Fraction(1, 2**10), "0.0009765625"),
        (Fraction(12345, 10), "1234.5"),
        (math.inf, "inf"),
        (np.inf, "inf"),
    ],
)
def test_a_number_has_one_exact_text(number, text):
    assert decimal_text(number) == text


def test_the_text_of_a_number_reads_back_as_the_number():
    for p in range(-30, 31):
        for q in range(1, 60):
            assert Fraction(decimal_text(Fraction(p, q))) == Fraction(p, q)


@pytest.mark.parametrize("number", [1.0, 0.1, math.nan, -math.inf])
def test_a_float_other_than_inf_has_no_exact_text(number):
    with pytest.raises(TypeError, match="not exact"):
        decimal_text(number)


# --- large arrays ---------------------------------------------------------------------------------


def test_packed_numbers_are_little_endian_32_bit_words():
    expected = b"\x01\x00\x00\x00" + b"\x04\x03\x02\x01" + b"\xff\xff\xff\xff"
    for dtype in (np.int64, np.uint32, ">u4", ">i8", object):
        numbers = np.array([1, 0x01020304, 2**32 - 1], dtype=dtype)
        assert base64.b64decode(pack_u32(numbers)) == expected


def test_packing_does_not_depend_on_the_layout_in_memory():
    numbers = np.arange(20)
    assert (
        pack_u32(numbers[::2]) == pack_u32(numbers[::2].copy()) == pack_u32(list(range(0, 20, 2)))
    )


def test_empty_array_packs_to_empty_text():
    assert pack_u32(np.array([], dtype=np.int64)) == ""
