"""Canonical JSON: one text for one meaning, so that its hash can identify a promise.

UTF-8, keys sorted by code point, no white space, no floats, no integer of 2^53 or more (JavaScript
could not hold it: large integers and decimals are strings), strings in Unicode's NFC form.

Records are the JSON objects that domains, contexts, codes and mechanisms write. Their readers are
strict. They reject unknown fields and kinds, and anything that is not in its canonical form: a
promise that is half understood is no promise.
"""

import base64
import hashlib
import json
import unicodedata
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from sfumato.errors import InvalidSurvey
from sfumato.foundation.arrays import Symbols

Json = str | int | bool | None | Sequence["Json"] | Mapping[str, "Json"]
"""What a record may contain: no floats."""

Fields = Mapping[str, Any]
"""The fields of a record, by name."""

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
            raise TypeError("number must be a Fraction or inf; other floats are not exact.")
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
        raise ValueError("numbers must be integers from 0 to 2^32 − 1.")
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
    """Return whether all items are ASCII strings. NFC keeps them, and tables have a million."""
    return set(map(type, items)) == {str} and "".join(items).isascii()  # type: ignore[arg-type]


def _normalize(data: Json) -> Json:
    if isinstance(data, str):
        return unicodedata.normalize("NFC", data)
    if data is None or isinstance(data, bool):
        return data
    if isinstance(data, int):
        if abs(data) >= _LIMIT:
            raise ValueError("integers must be below 2^53; pass larger ones as strings.")
        return data
    if isinstance(data, Mapping):
        pairs = {
            unicodedata.normalize("NFC", key): _normalize(value) for key, value in data.items()
        }
        if len(pairs) != len(data):
            raise ValueError("two keys are equal in Unicode's NFC form. Rename one.")
        return pairs
    if isinstance(data, Sequence) and not isinstance(data, bytes | bytearray):
        if _is_ascii_text(data):
            return data
        return [_normalize(item) for item in data]
    raise TypeError(
        f"canonical JSON cannot contain a {type(data).__name__}; pass exact numbers as text."
    )


# --- records --------------------------------------------------------------------------------------


class Recorded(Protocol):
    """Any object that writes itself as a record."""

    def to_record(self) -> Json:
        """Return the object as plain data."""


_R = TypeVar("_R", bound=Recorded)


def require_fields(record: object, name: str, known: Sequence[str]) -> Fields:
    """Return ``to_record`` if it is a JSON object with exactly the fields ``known``.

    ``name`` says in messages what the record is.
    """
    if not isinstance(record, Mapping):
        raise InvalidSurvey(f"{name} must be an object with the fields {', '.join(known)}.")
    problems = []
    unknown = sorted(set(record) - set(known))
    if unknown:
        problems.append(f"unknown {unknown}")
    missing = sorted(set(known) - set(record))
    if missing:
        problems.append(f"missing {missing}")
    if problems:
        wanted = ", ".join(known)
        raise InvalidSurvey(f"{name} must have the fields {wanted}; {', '.join(problems)}.")
    return record


def record_kind(record: object, name: str) -> str:
    """Return the kind of a record, which says how to read its other fields."""
    if not isinstance(record, Mapping) or not isinstance(record.get("kind"), str):
        raise InvalidSurvey(f"{name} must be an object with a kind.")
    return str(record["kind"])


def require_canonical(restored: _R, record: object, name: str) -> _R:
    """Return ``restored`` if it writes exactly the record that it was read from."""
    if restored.to_record() != record:
        raise InvalidSurvey(f"{name} is not in its canonical form. Resolve the survey again.")
    return restored


def unpack_u32(text: object, name: str, size: int) -> Symbols:
    """Read an array of integers below ``size`` that ``pack_u32`` wrote."""
    try:
        raw = base64.b64decode(str(text), validate=True)
        numbers = np.frombuffer(raw, dtype="<u4").astype(np.int64)
    except ValueError:
        raise InvalidSurvey(f"{name} must be base64 of little-endian 32-bit integers.") from None
    if numbers.size and numbers.max() >= size:
        raise InvalidSurvey(f"{name} must contain numbers below {size}.")
    return numbers


def parse_count(text: object) -> int:
    """Read a number of words; it may be too large for JSON, so it is written as text."""
    if not isinstance(text, str) or not text.isascii() or not text.isdigit() or len(text) > 40:
        raise InvalidSurvey("counts of words must be non-negative integers, written as text.")
    return int(text)


def is_count(number: object) -> bool:
    """Return whether ``number`` is a non-negative integer; bool, an int subclass, is not."""
    return isinstance(number, int) and not isinstance(number, bool) and number >= 0


def require_index(number: object, limit: int, name: str) -> int:
    """Return ``number`` if it is an integer in 0 … limit − 1."""
    if not isinstance(number, int) or not is_count(number) or number >= limit:
        raise InvalidSurvey(f"{name} must contain non-negative integers below {limit}.")
    return int(number)


def require_word_bits(bits: object) -> int:
    """Return ``bits`` if a word can have that many."""
    if isinstance(bits, bool) or not isinstance(bits, int) or not 8 <= bits <= 64:
        raise InvalidSurvey("word_bits must be an integer from 8 to 64.")
    return bits
