"""Read untrusted records: the JSON objects that domains, contexts, codes and mechanisms write.

Readers are strict. They reject fields and kinds that they do not know, and anything that is not
written in its canonical form: a promise that is half understood is no promise.
"""

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from sfumato.errors import InvalidSurvey
from sfumato.foundation.arrays import Symbols
from sfumato.foundation.canonical import Json

__all__ = [
    "Fields",
    "is_count",
    "parse_count",
    "record_kind",
    "require_canonical",
    "require_fields",
    "require_index",
    "require_word_bits",
    "unpack_u32",
]

Fields = Mapping[str, Any]
"""The fields of a record, by name."""


class Recorded(Protocol):
    """Anything that writes itself as a record."""

    def record(self) -> Json:
        """Return the object as plain data."""


_R = TypeVar("_R", bound=Recorded)


def require_fields(record: object, name: str, known: Sequence[str]) -> Fields:
    """Return ``record`` if it is a JSON object with exactly the fields ``known``.

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
    """Return ``restored`` if it writes the very record it was read from: nothing is mended."""
    if restored.record() != record:
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
    """Read a number of words, which is too large for JSON and so written as text."""
    if not isinstance(text, str) or not text.isascii() or not text.isdigit() or len(text) > 40:
        raise InvalidSurvey("counts of words must be non-negative integers, written as text.")
    return int(text)


def is_count(number: object) -> bool:
    """Return whether ``number`` is a non-negative integer; bool is an int subclass, reject it."""
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
