"""Domains of labels (the possible answers to a question), and the validation of symbols."""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from sfumato.domains.label_order import Label, numeric_symbols
from sfumato.domains.layout import Layout, Line
from sfumato.errors import InvalidContext, InvalidSymbols, UnknownLabel, UnknownValue
from sfumato.foundation.arrays import Symbols
from sfumato.foundation.canonical import Json, require_fields
from sfumato.foundation.correct_call import shows_call
from sfumato.foundation.formatting import plural
from sfumato.foundation.missing_values import is_missing_value
from sfumato.foundation.notebook import facts_html
from sfumato.foundation.numpy_values import is_collection, require_unmasked

__all__ = [
    "Domain",
    "Label",
    "SymbolOrLabel",
    "all_in_range",
    "describe_kind",
    "require_column",
    "require_label",
    "require_symbols",
    "unknown_value_error",
]

_INTEGER_LIMIT = 2**53  # every client can represent smaller integers exactly
_MAX_SHOWN_LABELS = 4  # the maximum number of labels in a repr
_MAX_LABELS_IN_HTML = 12
_MAX_COMPARED_LABELS = 10_000  # a search for the closest label compares at most this many
_KIND_NAMES = {
    "f": "floats",
    "c": "complex numbers",
    "b": "booleans",
    "O": "objects",
    "U": "text",
    "S": "bytes",
}

SymbolOrLabel = int | str
"""A symbol as an integer, or the text of its label. An integer is never a label here."""


class Domain:
    """The possible answers to a question, in order: the symbol of a label is its zero-based index.

    Labels are text or integers, and distinct after Unicode normalization. ``other`` is the label
    for unknown and missing values; it is appended if it is not one of ``labels``. Without
    ``other``, an unknown value is an error.

    >>> places = Domain(["park", "café", "clinic"], other="elsewhere")
    >>> places.size, places.symbols(["clinic", "zoo", "park"])
    (4, array([2, 3, 0]))
    """

    kind: ClassVar[str] = "labels"
    """The name of this kind of domain in records and survey files."""

    @shows_call('sf.Domain(labels, other="no answer")')
    def __init__(self, labels: Iterable[Label], *, other: Label | None = None) -> None:
        all_labels = _read_labels(labels)
        if other is not None:
            other = require_label(other, "other")
            if other not in all_labels:
                all_labels.append(other)
        if not all_labels:
            raise InvalidContext("a domain must have at least one label; got none.")
        self._labels: Sequence[Label] = tuple(all_labels)
        self._symbol_of: Mapping[Label, int] = {label: x for x, label in enumerate(all_labels)}
        if len(self._symbol_of) != len(all_labels):
            duplicate = next(
                label for x, label in enumerate(all_labels) if self._symbol_of[label] != x
            )
            raise InvalidContext(
                f"labels must be distinct; {duplicate!r} occurs twice. Remove or rename one."
            )
        self._other = other

    @property
    def labels(self) -> Sequence[Label]:
        """The labels, in order."""
        return self._labels

    @property
    def other(self) -> Label | None:
        """The label for unknown values, if there is one."""
        return self._other

    @property
    def size(self) -> int:
        """The number of symbols, k."""
        return len(self._labels)

    @property
    def layout(self) -> Layout | None:
        """Where the symbols lie relative to each other, or ``None`` if that is unknown.

        Decoders use it. Labels that are numbers or ranges in ascending order lie on a line.
        """
        return Line(self.cells.size) if self.cells.size > 1 else None

    @property
    def cells(self) -> Symbols:
        """The symbols that ``layout`` arranges, in its order. ``other`` is not one of them."""
        return self._numeric_symbols

    @cached_property
    def _numeric_symbols(self) -> Symbols:
        symbols = numeric_symbols(self._labels, ignore=(self._other,))
        symbols.flags.writeable = False
        return symbols

    def for_edition(self, edition: int) -> Self:
        """Return the domain as surveys of an edition read values; its record stays the same."""
        return self

    def symbols(self, values: Iterable[object]) -> Symbols:
        """Return the symbols for people's values, which must be labels: 65.0 and "65" are not 65.

        ``Survey.privatize`` also reads answers as tables write them. Raise ``UnknownValue`` if a
        value is unknown and there is no ``other``. The error gives the number of unknown values and
        the position of the first, but not the values themselves.
        """
        require_column(values)
        symbols = np.fromiter(map(self.find, values), dtype=np.int64)
        if (symbols < 0).any():
            raise unknown_value_error(np.flatnonzero(symbols < 0), symbols.size)
        return symbols

    def find(self, value: object) -> int:
        """Return the symbol for a value.

        If the value is unknown, return the symbol for ``other``, or −1 if there is no ``other``.
        """
        symbol = self.find_label(value)
        if symbol < 0 and self._other is not None:
            return self.other_symbol
        return symbol

    def find_label(self, value: object) -> int:
        """Return the symbol for a value that is one of the labels, or −1 for any other value."""
        label = _normalize(value)
        return -1 if label is None else self._symbol_of.get(label, -1)

    @property
    def other_symbol(self) -> int:
        """The symbol for ``other``, or −1 without ``other``."""
        return -1 if self._other is None else self._symbol_of[self._other]

    def label_symbols(self, labels: Iterable[Label], name: str) -> Symbols:
        """Return the symbols for labels in a survey's definition.

        ``name`` is the argument that contains the labels, for error messages. Unlike a person's
        value, a label is not private, so error messages may quote it.
        """
        return np.array([self._label_symbol(label, name) for label in labels], dtype=np.int64)

    def _label_symbol(self, label: Label, name: str) -> int:
        symbol = self._find_label(require_label(label, name))
        if symbol is None:
            raise InvalidContext(
                f"{name} contains {label!r}, which is not {self._label_noun()}."
                f"{self._suggestion(label)}"
            )
        return symbol

    def symbol_of(self, label: Label) -> int:
        """Return the symbol of a label; raise ``UnknownLabel`` if the domain does not have it.

        Unlike ``find``, this is for labels that you write, not for people's values: an unknown
        label does not become ``other``, and the error names it.

        >>> Domain(["park", "clinic"]).symbol_of("clinic")
        1
        """
        normalized = _normalize(label)
        symbol = None if normalized is None else self._find_label(normalized)
        if symbol is None:
            raise UnknownLabel(f"{label!r} is not {self._label_noun()}.{self._suggestion(label)}")
        return symbol

    def as_symbols(self, symbols: ArrayLike) -> Symbols:
        """Return symbols that are given as integers, or by the text of their labels.

        An integer is always a symbol, even if it is also a label. To name an integer label, pass
        its text: in a domain of ages from 18, ``0`` and ``"18"`` are the same symbol.

        >>> Domain(["park", "clinic"]).as_symbols(["clinic", 0])
        array([1, 0])
        >>> Domain([10, 20]).as_symbols("20")
        array(1)
        """
        array = _as_array(symbols)
        if array.dtype.kind not in "UOT":
            return require_symbols(array, self.size)
        if not isinstance(symbols, np.ndarray):
            array = np.asarray(symbols, dtype=object)  # keep integers that stand among labels
        items = [self._symbol_or_label(item) for item in array.ravel().tolist()]
        return require_symbols(np.array(items).reshape(array.shape), self.size)

    def _symbol_or_label(self, item: object) -> object:
        """Return the symbol for the text of a label, and anything else unchanged."""
        if not isinstance(item, str):
            return item
        text = unicodedata.normalize("NFC", item)
        symbol = self._find_label(text)
        if symbol is None:
            with suppress(ValueError):
                number = int(text)
                symbol = self._find_label(number) if str(number) == text else None
        return self.symbol_of(item) if symbol is None else symbol

    def _find_label(self, label: Label) -> int | None:
        """Return the symbol of a label in its normal form, or ``None`` if it is unknown."""
        return self._symbol_of.get(label)

    def _label_noun(self) -> str:
        """Return what a label of this domain is, for error messages."""
        return "a label of the domain"

    def _suggestion(self, label: object) -> str:
        """Return a sentence with the closest label, or the first labels if none is close."""
        if self.size > _MAX_COMPARED_LABELS:
            return ""
        label_by_text = {str(own): own for own in self.labels}
        text_by_key = {text.casefold().strip(): text for text in label_by_text}
        matches = get_close_matches(str(label).casefold().strip(), text_by_key, n=1)
        if matches:
            return f" Did you mean {label_by_text[text_by_key[matches[0]]]!r}?"
        # An ellipsis must not stand for a single label.
        count = self.size if self.size == _MAX_SHOWN_LABELS + 1 else _MAX_SHOWN_LABELS
        return f" The labels are {self._list_labels(count)}."

    def to_record(self) -> Json:
        """Return the domain as JSON-compatible data, for fingerprints and files."""
        return {"kind": self.kind, "labels": list(self._labels), "other": self._other}

    @classmethod
    def from_record(cls, record: object) -> "Domain":
        """Return the domain stored in a record of this kind; see also ``domain_from_record``."""
        fields = require_fields(record, "domain", ("kind", "labels", "other"))
        return Domain(fields["labels"], other=fields["other"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Domain) and self.to_record() == other.to_record()

    def __hash__(self) -> int:
        return hash((self.size, self.labels[0], self._other))

    def __repr__(self) -> str:
        return f"Domain([{self._list_labels()}], size={self.size})"

    def _list_labels(self, count: int = _MAX_SHOWN_LABELS) -> str:
        """Return the first labels, separated by commas."""
        texts = [repr(label) for label in self.labels[:count]]
        if self.size > count:
            texts.append("…")
        return ", ".join(texts)

    def _repr_html_(self) -> str:
        """Return the number of labels and the first of them as HTML, for notebooks."""
        texts = list(map(str, self.labels[:_MAX_LABELS_IN_HTML]))
        if self.size > _MAX_LABELS_IN_HTML:
            texts.append("…")
        facts = {"labels": f"{self.size:,}: {', '.join(texts)}"}
        if self._other is not None:
            facts["other"] = str(self._other)
        return facts_html(type(self).__name__, facts)


def unknown_value_error(
    positions: Symbols,
    value_count: int,
    remedy: str = "add their labels, or give the domain an `other` label",
) -> UnknownValue:
    """Return the error for unknown values at these positions. It does not contain the values."""
    first = int(positions[0])
    count = int(positions.size)
    verb = "is" if count == 1 else "are"
    return UnknownValue(
        f"{count:,} of {plural(value_count, 'value')} {verb} not in the domain (the first at "
        f"position {first}). Correct them, {remedy}.",
        first=first,
        count=count,
    )


def require_column(values: object) -> None:
    """Raise ``InvalidSymbols`` for an array without dimensions, which has no entries."""
    if isinstance(values, np.ndarray) and values.ndim == 0:
        raise InvalidSymbols("values must be one column; got an array with 0 dimensions.")


def _read_labels(labels: object) -> list[Label]:
    require_unmasked(labels, "labels")
    if hasattr(labels, "columns"):  # a data frame, whose entries are the names of its columns
        raise InvalidContext(
            "labels must be the distinct answers in one column; got a table. Select a column: "
            'labels = table["vote"].dropna().unique().'
        )
    if not is_collection(labels) or isinstance(labels, Mapping):
        raise InvalidContext(
            "a domain must be a number of symbols or a sequence of labels; got "
            f"{type(labels).__name__}."
        )
    return [require_label(label, "a label") for label in labels]  # type: ignore[attr-defined]


def require_label(label: object, name: str) -> Label:
    """Return a label in its normal form: NFC text, or an integer that clients can represent.

    Raise ``InvalidContext`` for any other label. ``name`` describes the label in error messages.
    """
    normalized = _normalize(label)
    if isinstance(normalized, str):
        if not normalized:
            raise InvalidContext(f"{name} must not be empty.")
        if not normalized.isascii() and any("\ud800" <= c <= "\udfff" for c in normalized):
            raise InvalidContext(
                f"{name} must be valid Unicode text; got a lone surrogate. Repair the text."
            )
        return normalized
    if isinstance(normalized, int):
        if abs(normalized) >= _INTEGER_LIMIT:
            raise InvalidContext(
                f"{name} must be an integer below 2^53 in absolute value, or text."
            )
        return normalized
    if is_missing_value(label):
        raise InvalidContext(
            f"{name} must be text or an integer; got a missing value ({type(label).__name__}). "
            'Drop it. To give missing answers a label, pass sf.Domain(labels, other="no answer").'
        )
    raise InvalidContext(
        f"{name} must be text or an integer; got {type(label).__name__}. Convert the labels to "
        "text first, for example with astype(str), and the answers in the same way."
    )


def _normalize(value: object) -> Label | None:
    """Return a value in the normal form of labels, or ``None`` if it cannot be a label."""
    if isinstance(value, str):
        return unicodedata.normalize("NFC", str(value))
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        return None
    return int(value)


# --- validation of symbols ------------------------------------------------------------------------


def require_symbols(symbols: object, size: int) -> Symbols:
    """Return ``symbols`` as an array of integers in ``0 … size − 1``, of any shape.

    Raise ``InvalidSymbols`` if that is not possible.

    >>> require_symbols([2, 0, 1], size=3)
    array([2, 0, 1])
    """
    array = _as_array(symbols)
    if array.dtype.kind not in "iu":
        is_single_object = array.ndim == 0 and array.dtype.kind == "O"
        raise InvalidSymbols(
            f"symbols must be integers in 0..{size - 1}; got "
            f"{type(symbols).__name__ if is_single_object else describe_kind(array)}. Convert "
            "answers with domain.symbols(answers), or pass them to a survey, which accepts labels: "
            "survey.privatize(answers)."
        )
    if array.size and not all_in_range(array, size):
        is_outside = (array < 0) | (array >= size)
        first = int(np.argmax(is_outside.ravel()))
        raise InvalidSymbols(
            f"symbols must be in 0..{size - 1}; {int(is_outside.sum())} of {array.size} are not "
            f"(the first at position {first})."
        )
    return array.astype(np.int64, copy=False)


def _as_array(symbols: object) -> np.ndarray:
    """Return symbols as an array. NumPy's error could quote a value, so it is replaced."""
    require_unmasked(symbols, "symbols", InvalidSymbols)
    try:
        return np.asarray(symbols)
    except (ValueError, TypeError):
        pass  # raise below, where no other error is attached; `suppress` is slow for one person
    raise InvalidSymbols(
        "symbols must be an array of integers; got values that do not form an array."
    )


def all_in_range(array: np.ndarray, size: int) -> bool:
    """Return whether all integers are in ``0 … size − 1``.

    For native signed integers, one pass is enough: viewed as unsigned integers, negative ones
    become too large. For a single integer, a pass takes longer than Python.

    >>> all_in_range(np.array([-1], dtype=np.int8), 300), all_in_range(np.array([0, 299]), 300)
    (False, True)
    """
    if array.size == 1:
        return bool(0 <= array.item() < size)
    if array.dtype.kind == "i" and array.dtype.isnative and size <= 2 ** (8 * array.itemsize - 1):
        return bool(array.view(f"u{array.itemsize}").max() < size)
    return bool(array.min() >= 0 and array.max() < size)


def describe_kind(array: np.ndarray) -> str:
    """Describe the kind of values in an array, for error messages that must not reveal a value."""
    if array.size == 0:
        return "nothing"
    return _KIND_NAMES.get(array.dtype.kind, "something else")
