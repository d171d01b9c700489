"""A domain of named labels: the answers a question admits, in order."""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

import numpy as np

from sfumato.errors import InvalidContext, UnknownValue
from sfumato.foundation.arrays import Symbols
from sfumato.foundation.canonical import Json
from sfumato.foundation.records import require_fields

__all__ = ["Domain", "Label", "checked_label", "unknown_value"]

_LARGEST_INTEGER = 2**53  # what every client can hold

Label = str | int
"""The name of a symbol: text (in Unicode's NFC form) or an integer."""


class Domain:
    """All labels, in order: label number x is symbol x.

    Labels are text or integers, distinct after Unicode normalisation. With ``other`` (one of the
    labels, or a new one that is appended) every unknown or missing value is answered with that label;
    without it, unknown values are refused.

    >>> places = Domain(["park", "café", "clinic"], other="elsewhere")
    >>> places.size, places.symbols(["clinic", "zoo", "park"])
    (4, array([2, 3, 0]))
    """

    kind: ClassVar[str] = "labels"
    """The kind of domain that a record and a survey file name."""

    def __init__(self, labels: object, *, other: Label | None = None) -> None:
        listed = _listed(labels)
        if other is not None and (other := checked_label(other, "other")) not in listed:
            listed = [*listed, other]
        if not listed:
            raise InvalidContext("a domain must have at least one label; found none.")
        self._labels: Sequence[Label] = tuple(listed)
        self._symbol_of: Mapping[Label, int] = {label: x for x, label in enumerate(listed)}
        if len(self._symbol_of) != len(listed):
            twice = next(label for x, label in enumerate(listed) if self._symbol_of[label] != x)
            raise InvalidContext(
                f"labels must be distinct; {twice!r} occurs twice. Remove or rename one."
            )
        self._other = other

    @property
    def labels(self) -> Sequence[Label]:
        """The labels, in order."""
        return self._labels

    @property
    def other(self) -> Label | None:
        """The label of unknown values, if there is one."""
        return self._other

    @property
    def size(self) -> int:
        """The number of symbols, k in the paper."""
        return len(self._labels)

    def symbols(self, values: Iterable[object]) -> Symbols:
        """The symbols of people's values; ``UnknownValue`` (with positions only) where there is none."""
        found = np.fromiter(map(self.find, values), dtype=np.int64)
        if (found < 0).any():
            raise unknown_value(np.flatnonzero(found < 0), found.size)
        return found

    def find(self, value: object) -> int:
        """The symbol of one value: that of ``other`` if it is unknown or missing, −1 if there is no such label."""
        default = -1 if self._other is None else self._symbol_of[self._other]
        label = _plain(value)
        return default if label is None else self._symbol_of.get(label, default)

    def label_symbols(self, labels: Iterable[Label], name: str) -> Symbols:
        """The symbols of labels that a *designer* wrote down; an unknown one is named in the error."""
        symbols: list[int] = []
        for label in labels:
            symbol = self._symbol_of.get(checked_label(label, name))
            if symbol is None:
                raise InvalidContext(f"{name} names {label!r}, which is not a label of the domain.")
            symbols.append(symbol)
        return np.array(symbols, dtype=np.int64)

    def record(self) -> Json:
        """The domain as plain data, for fingerprints and files."""
        return {"kind": self.kind, "labels": list(self._labels), "other": self._other}

    @classmethod
    def of_record(cls, record: object) -> "Domain":
        """Read the record of a domain of this kind; ``domain_of_record`` reads any kind."""
        fields = require_fields(record, "domain", ("kind", "labels", "other"))
        return Domain(fields["labels"], other=fields["other"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Domain) and self.record() == other.record()

    def __hash__(self) -> int:
        return hash((self.size, self.labels[0], self._other))

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self._labels[:4])) + (", …" if self.size > 4 else "")
        return f"Domain([{shown}], size={self.size})"


def unknown_value(positions: Symbols, people: int) -> UnknownValue:
    """The error for values outside the domain: where they stand, never what they are."""
    return UnknownValue(
        f"{positions.size} of {people} values are not in the domain (the first at position {positions[0]}). "
        "Correct them, add their labels, or give the domain an `other` label.",
        first=int(positions[0]),
        count=int(positions.size),
    )


def _listed(labels: object) -> list[Label]:
    if isinstance(labels, str | bytes | Mapping) or not isinstance(labels, Iterable):
        raise InvalidContext(
            f"a domain is made from a number of symbols or a sequence of labels; found {type(labels).__name__}."
        )
    return [checked_label(label, "a label") for label in labels]


def checked_label(label: object, name: str) -> Label:
    """A label in the form domains hold: NFC text, or an integer that every client can hold."""
    plain = _plain(label)
    if isinstance(plain, str):
        if not plain:
            raise InvalidContext(f"{name} must not be empty text. Name it.")
        if not plain.isascii() and any("\ud800" <= character <= "\udfff" for character in plain):
            raise InvalidContext(
                f"{name} must be text that UTF-8 can hold; found half a character. Repair the text."
            )
        return plain
    if isinstance(plain, int):
        if abs(plain) >= _LARGEST_INTEGER:
            raise InvalidContext(
                f"{name} must be an integer below 2^53 in absolute value, or text."
            )
        return plain
    raise InvalidContext(f"{name} must be text or an integer; found {type(label).__name__}.")


def _plain(value: object) -> Label | None:
    """A value in the form labels have; ``None`` for anything that can be no label."""
    if isinstance(value, str):
        return unicodedata.normalize("NFC", str(value))
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        return None
    return int(value)
