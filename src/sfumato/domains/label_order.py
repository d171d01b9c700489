"""Whether labels have an order that people want to see, such as ages."""

import re
from collections.abc import Collection, Sequence

from sfumato.domains.domain import Label

__all__ = ["are_in_numeric_order"]

_NUMBER = re.compile(r"(?<![\d.])-?\d+(?:\.\d+)?")


def are_in_numeric_order(labels: Sequence[Label], ignore: Collection[Label | None] = ()) -> bool:
    """Whether labels are numbers or intervals, such as "18 to 29", in ascending order.

    Pass the label for unknown answers, and the label for missing ones, as ``ignore``. A resolved
    survey does not say which label is for missing answers, so a last label without a number is
    ignored, too.

    >>> are_in_numeric_order(["under 18", "18 to 29", "30 to 59", "60 and over", "no answer"])
    True
    >>> are_in_numeric_order(["park", "café"])
    False
    """
    ordered_labels = [label for label in labels if label not in ignore]
    if ordered_labels and not _NUMBER.search(str(ordered_labels[-1])):
        ordered_labels.pop()
    bounds = []
    for label in ordered_labels:
        numbers = [float(text) for text in _NUMBER.findall(str(label))]
        if not numbers:
            return False
        bounds.append((numbers[0], numbers[-1]))
    return len(bounds) > 1 and bounds == sorted(bounds)
