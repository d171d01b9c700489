"""Labels in numeric order: numbers and intervals, with a label for those who gave no answer."""

import pytest

from sfumato.domains.label_order import are_in_numeric_order
from sfumato.tables.proposed_domain import bin_labels

ORDERED = [
    ["under 18", "18 to 29", "30 to 59", "60 and over"],
    ["under 18", "18 to 29", "30 to 59", "60 or more"],
    ["0-4.5", "4.5-9", "9-13"],
    [1, 2, 30],
    [-3, -1, 0, 2],
    ["-3 to -1", "0 to 4"],
    bin_labels([18, 30, 60], whole=True),
    bin_labels([-2.5, 5, 10], whole=False),
    ["ward 1a", "ward 1b", "ward 2"],
]
OTHERS = [
    ["30 to 59", "18 to 29"],
    ["park", "café"],
    ["1 child", "none"],
    ["no answer", "18 to 29", "park", "30 to 59"],
    ["18 to 29", "30 to 59", "no answer", "refused"],
    [3, 2],
    ["flat 1", "house 1", "tent 1"],
    ["7"],
    [],
]


@pytest.mark.parametrize("labels", ORDERED)
def test_numbers_and_intervals_are_in_order(labels):
    assert are_in_numeric_order(labels)
    assert are_in_numeric_order([*labels, "no answer"])
    assert are_in_numeric_order(["other", "no answer", *labels], ignore=("other", "no answer"))
    assert are_in_numeric_order([*labels, "no answer", "other"], ignore=("other", None))
    assert not are_in_numeric_order(labels[::-1])


@pytest.mark.parametrize("labels", OTHERS)
def test_other_labels_have_no_numeric_order(labels):
    assert not are_in_numeric_order(labels)
    assert not are_in_numeric_order([*labels, "other"], ignore=("other",))
