"""Canonical JSON: equal data always gives equal bytes, so a hash can identify a promise.

The text is UTF-8 with keys sorted by code point, strings in Unicode's NFC form, no whitespace and
no floats. Decimals are strings, and so are integers of 2^53 or more, because JavaScript cannot
represent all such integers exactly.

Records are the JSON objects that represent domains, contexts, codes and mechanisms. Their readers
are strict: they reject unknown fields, unknown kinds and anything that is not in canonical form,
because nobody should rely on a promise that was only partly understood.
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
"""The types that a record may contain. Floats are not allowed."""

Fields = Mapping[str, Any]
"""The fields of a record, by name."""

_INTEGER_LIMIT = 2**53


def canonical_bytes(data: Json) -> bytes:
    r"""Serialize ``data`` to canonical JSON.

    >>> canonical_bytes({"b": [1, "é"], "a": True})
    b'{"a":true,"b":[1,"\xc3\xa9"]}'
    """
    text = json.dumps(_normalize(data), ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return text.encode("utf-8")


def fingerprint(data: Json) -> str:
    """Return the hex-encoded SHA-256 of the canonical JSON."""
    return hashlib.sha256(canonical_bytes(data)).hexdigest()


def decimal_text(number: Fraction | float) -> str:
    """Format an exact number as a plain decimal if possible, otherwise as ``p/q`` or ``inf``.

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
    """Encode integers below 2^32 as little-endian 32-bit integers, in base64."""
    array = np.asarray(numbers)
    if array.size and not (array.min() >= 0 and array.max() < 2**32):
        raise ValueError("numbers must be integers from 0 to 2^32 − 1.")
    return base64.b64encode(array.astype("<u4").tobytes()).decode("ascii")


def _decimal_places(q: int) -> int | None:
    """Return how many decimal places 1/q has, or ``None`` if its decimal expansion is infinite."""
    twos = 0
    fives = 0
    while q % 2 == 0:
        q //= 2
        twos += 1
    while q % 5 == 0:
        q //= 5
        fives += 1
    return max(twos, fives) if q == 1 else None


def _are_ascii_strings(items: Sequence[Json]) -> bool:
    """Return whether all items are ASCII strings, which NFC leaves unchanged.

    Lists may have a million items, so skipping normalization saves time.
    """
    return set(map(type, items)) == {str} and "".join(items).isascii()  # type: ignore[arg-type]


def _normalize(data: Json) -> Json:
    if isinstance(data, str):
        return unicodedata.normalize("NFC", data)
    if data is None or isinstance(data, bool):
        return data
    if isinstance(data, int):
        if abs(data) >= _INTEGER_LIMIT:
            raise ValueError(
                "integers must be below 2^53 in absolute value; pass larger ones as strings."
            )
        return data
    if isinstance(data, Mapping):
        normalized = {
            unicodedata.normalize("NFC", key): _normalize(value) for key, value in data.items()
        }
        if len(normalized) != len(data):
            raise ValueError("two keys have the same NFC form. Rename one.")
        return normalized
    if isinstance(data, Sequence) and not isinstance(data, bytes | bytearray):
        if _are_ascii_strings(data):
            return data
        return [_normalize(item) for item in data]
    raise TypeError(
        f"canonical JSON cannot contain a {type(data).__name__}; pass exact numbers as text."
    )


# --- records --------------------------------------------------------------------------------------


class HasRecord(Protocol):
    """An object that can be serialized to a record."""

    def to_record(self) -> Json:
        """Return the object as a record."""


_Restored = TypeVar("_Restored", bound=HasRecord)


def require_fields(record: object, name: str, fields: Sequence[str]) -> Fields:
    """Return ``record``; raise ``InvalidSurvey`` unless it is an object with exactly these fields.

    ``name`` identifies the record in error messages.
    """
    expected = ", ".join(fields)
    if not isinstance(record, Mapping):
        raise InvalidSurvey(f"{name} must be an object with the fields {expected}.")
    problems = []
    unknown = sorted(set(record) - set(fields))
    if unknown:
        problems.append(f"unknown {unknown}")
    missing = sorted(set(fields) - set(record))
    if missing:
        problems.append(f"missing {missing}")
    if problems:
        raise InvalidSurvey(f"{name} must have the fields {expected}; {', '.join(problems)}.")
    return record


def record_kind(record: object, name: str) -> str:
    """Return the kind of a record, which determines its other fields."""
    if not isinstance(record, Mapping) or not isinstance(record.get("kind"), str):
        raise InvalidSurvey(f"{name} must be an object with a kind.")
    return str(record["kind"])


def require_canonical(restored: _Restored, record: object, name: str) -> _Restored:
    """Return ``restored``; raise ``InvalidSurvey`` unless it serializes to exactly ``record``."""
    if restored.to_record() != record:
        raise InvalidSurvey(f"{name} is not in canonical form. Resolve the survey again.")
    return restored


def unpack_u32(text: object, name: str, limit: int) -> Symbols:
    """Decode integers that ``pack_u32`` encoded, which must be below ``limit``.

    ``name`` identifies the field in error messages.
    """
    try:
        raw = base64.b64decode(str(text), validate=True)
        numbers = np.frombuffer(raw, dtype="<u4").astype(np.int64)
    except ValueError:
        raise InvalidSurvey(f"{name} must be base64 of little-endian 32-bit integers.") from None
    if numbers.size and numbers.max() >= limit:
        raise InvalidSurvey(f"{name} must contain only numbers below {limit}.")
    return numbers


def parse_count(text: object) -> int:
    """Parse a count, which is a string because it may be too large for a JSON number."""
    if not isinstance(text, str) or not text.isascii() or not text.isdigit() or len(text) > 40:
        raise InvalidSurvey("counts must be strings of at most 40 decimal digits.")
    return int(text)


def is_count(number: object) -> bool:
    """Return whether ``number`` is a non-negative integer and not a bool."""
    return isinstance(number, int) and not isinstance(number, bool) and number >= 0


def require_index(index: object, limit: int, name: str) -> int:
    """Return ``index``; raise ``InvalidSurvey`` unless it is an integer in 0 … limit − 1."""
    if not isinstance(index, int) or not is_count(index) or index >= limit:
        raise InvalidSurvey(f"{name} must contain only non-negative integers below {limit}.")
    return int(index)


def require_word_bits(bits: object) -> int:
    """Return ``bits``; raise ``InvalidSurvey`` unless it is an integer from 8 to 64."""
    if isinstance(bits, bool) or not isinstance(bits, int) or not 8 <= bits <= 64:
        raise InvalidSurvey("word_bits must be an integer from 8 to 64.")
    return bits
