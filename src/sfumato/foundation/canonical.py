"""Canonical JSON: one text for one meaning, so that a hash of it can name a promise.

UTF-8, keys sorted by code point, no white space, no floats, no integer of 2^53 or more (JavaScript
could not hold it: large integers and decimals travel as strings), strings in Unicode's NFC form.
"""

import base64
import hashlib
import json
import unicodedata
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["Json", "canonical_bytes", "decimal_text", "fingerprint", "pack_u32"]

Json = str | int | bool | None | Sequence["Json"] | Mapping[str, "Json"]
"""What may stand in a record: no floats."""

_LIMIT = 2**53


def canonical_bytes(data: Json) -> bytes:
    r"""Return the canonical text of ``data``.

    >>> canonical_bytes({"b": [1, "é"], "a": True})
    b'{"a":true,"b":[1,"\xc3\xa9"]}'
    """
    text = json.dumps(_normalize(data), ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return text.encode("utf-8")


def fingerprint(data: Json) -> str:
    """Return the SHA-256 of the canonical text, as 64 hexadecimal digits."""
    return hashlib.sha256(canonical_bytes(data)).hexdigest()


def decimal_text(number: Fraction | float) -> str:
    """Return an exact number as text: a plain decimal if there is one, else ``p/q``, or ``inf``.

    >>> decimal_text(Fraction(5, 4)), decimal_text(Fraction(1, 3)), decimal_text(Fraction(3))
    ('1.25', '1/3', '3')
    """
    if isinstance(number, float):
        if number != np.inf:
            raise TypeError(
                "decimal_text takes a Fraction or inf; a float other than inf is not exact."
            )
        return "inf"
    p = number.numerator
    q = number.denominator
    places = _decimal_places(q)
    if places is None:
        return f"{p}/{q}"
    sign = "-" if p < 0 else ""
    digits = str(abs(p) * 10**places // q).rjust(places + 1, "0")
    if places == 0:
        return f"{sign}{digits}"
    return f"{sign}{digits[:-places]}.{digits[-places:]}"


def pack_u32(numbers: ArrayLike) -> str:
    """Encode an array of integers below 2^32 as base64 of little-endian 32-bit words."""
    array = np.asarray(numbers)
    if array.size and not (array.min() >= 0 and array.max() < 2**32):
        raise ValueError("pack_u32 takes integers from 0 to 2^32 − 1.")
    return base64.b64encode(array.astype("<u4").tobytes()).decode("ascii")


def _decimal_places(q: int) -> int | None:
    """Return how many decimal places 1/q has, or ``None`` if it has no finite decimal."""
    twos = 0
    fives = 0
    while q % 2 == 0:
        q //= 2
        twos += 1
    while q % 5 == 0:
        q //= 5
        fives += 1
    return max(twos, fives) if q == 1 else None


def _is_ascii_text(items: Sequence[Json]) -> bool:
    """Whether all items are ASCII strings. NFC leaves them alone, and tables hold a million."""
    return set(map(type, items)) == {str} and "".join(items).isascii()  # type: ignore[arg-type]


def _normalize(data: Json) -> Json:
    if isinstance(data, str):
        return unicodedata.normalize("NFC", data)
    if data is None or isinstance(data, bool):
        return data
    if isinstance(data, int):
        if abs(data) >= _LIMIT:
            raise ValueError(
                "canonical JSON holds integers below 2^53; pass larger ones as strings."
            )
        return data
    if isinstance(data, Mapping):
        pairs = {
            unicodedata.normalize("NFC", key): _normalize(value) for key, value in data.items()
        }
        if len(pairs) != len(data):
            raise ValueError("two keys are the same in Unicode's NFC form; rename one.")
        return pairs
    if isinstance(data, Sequence) and not isinstance(data, bytes | bytearray):
        if _is_ascii_text(data):
            return data
        return [_normalize(item) for item in data]
    raise TypeError(
        f"canonical JSON cannot hold a {type(data).__name__}; pass exact numbers as text."
    )
