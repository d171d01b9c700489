"""Whether labels have an order that people want to see, such as ages."""

import re
from collections.abc import Collection, Sequence

import numpy as np

from sfumato.foundation.arrays import Symbols

__all__ = ["Label", "are_in_numeric_order", "numeric_symbols"]

Label = str | int
"""The name of a symbol: text (in Unicode's NFC form) or an integer."""

_NUMBER = re.compile(r"(?<![\d.,])-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?")


def are_in_numeric_order(labels: Sequence[Label], ignore: Collection[Label | None] = ()) -> bool:
    """Whether labels are numbers or intervals, such as "18 to 29", in ascending order.

    Pass the label for unknown answers, and the label for missing ones, as ``ignore``. A resolved
    survey does not say which label is for missing answers, so a last label without a number is
    ignored, too.

    >>> are_in_numeric_order(["under 18", "18 to 29", "30 to 59", "60 and over", "no answer"])
    True
    >>> are_in_numeric_order(["0 to 999", "1,000 to 9,999", "10,000 or more"])
    True
    >>> are_in_numeric_order(["park", "café"])
    False
    """
    return numeric_symbols(labels, ignore).size > 1


def numeric_symbols(labels: Sequence[Label], ignore: Collection[Label | None] = ()) -> Symbols:
    """Return the symbols of labels that are numbers or intervals, if they are in ascending order.

    Otherwise, return no symbols. ``ignore`` is that of ``are_in_numeric_order``.

    >>> numeric_symbols(["no answer", 10, 20, "other"], ignore=["no answer"])
    array([1, 2])
    """
    symbols = [symbol for symbol, label in enumerate(labels) if label not in ignore]
    if symbols and not _NUMBER.search(str(labels[symbols[-1]])):
        symbols.pop()
    bounds = []
    for symbol in symbols:
        texts = _NUMBER.findall(str(labels[symbol]))
        numbers = [float(text.replace(",", "")) for text in texts]
        if not numbers:
            return np.empty(0, dtype=np.int64)
        bounds.append((numbers[0], numbers[-1]))
    # Labels with the same numbers, such as "ward 1a" and "ward 1b", are neighbours. If all labels
    # have the same number, it does not order them.
    is_ordered = len(bounds) > 1 and bounds == sorted(bounds) and bounds[0] < bounds[-1]
    return np.array(symbols if is_ordered else [], dtype=np.int64)
