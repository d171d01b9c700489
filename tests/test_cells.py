"""Cells add up in any order and any grouping, and keys have one form."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.cells import NO_KEY, CellKey, TallyCells
from sfumato.errors import InvalidTally, WrongSurvey
from sfumato.tally import Tally

LAWS = settings(max_examples=100, deadline=None, derandomize=True, database=None)
OUTPUTS = 3
PERIODS = ["", "2026-W01", "2026-W46", "2026-W47", "2027-W01"]


def tally(*counts, survey="lunch"):
    return Tally(np.array(counts), survey)


def cells(**counts_by_week):
    return TallyCells({CellKey(f"2026-{week}"): tally(*c) for week, c in counts_by_week.items()})


counts = st.lists(st.integers(0, 2**50), min_size=OUTPUTS, max_size=OUTPUTS)
cell_lists = st.dictionaries(st.sampled_from(PERIODS), counts, min_size=1)
tally_cells = cell_lists.map(
    lambda found: TallyCells({CellKey(period): tally(*c) for period, c in found.items()})
)


def add_by_hand(parts):
    """Add with plain dictionaries of lists."""
    sums = {}
    for part in parts:
        for key, found in part.cells.items():
            old = sums.get(key.period, [0] * OUTPUTS)
            sums[key.period] = [a + b for a, b in zip(old, found.counts.tolist(), strict=True)]
    return sums


def as_lists(part):
    return {key.period: found.counts.tolist() for key, found in part.cells.items()}


@LAWS
@given(tally_cells, tally_cells, tally_cells)
def test_cells_add_in_any_order_and_grouping(one, two, three):
    expected = add_by_hand([one, two, three])
    for a, b, c in permutations((one, two, three)):
        left = (a + b) + c
        right = a + (b + c)
        assert as_lists(left) == as_lists(right) == expected
        assert left == right
        assert hash(left) == hash(right)


@LAWS
@given(tally_cells, tally_cells)
def test_the_total_of_a_sum_is_the_sum_of_totals(one, two):
    assert (one + two).total() == one.total() + two.total()
    by_hand = np.sum([found.counts for found in one.cells.values()], axis=0)
    assert one.total().counts.tolist() == by_hand.tolist()


@LAWS
@given(cell_lists, st.randoms(use_true_random=False))
def test_the_order_of_cells_does_not_matter(found, choose):
    items = [(CellKey(period), tally(*c)) for period, c in found.items()]
    ordered = TallyCells(dict(items))
    choose.shuffle(items)
    shuffled = TallyCells(dict(items))
    assert ordered == shuffled
    assert hash(ordered) == hash(shuffled)
    assert list(shuffled.cells) == sorted(shuffled.cells)


def test_adding_leaves_the_parts_unchanged():
    one = cells(W46=[1, 0, 0])
    two = cells(W46=[0, 1, 0], W47=[0, 0, 1])
    assert as_lists(one + two) == {"2026-W46": [1, 1, 0], "2026-W47": [0, 0, 1]}
    assert as_lists(one) == {"2026-W46": [1, 0, 0]}
    assert as_lists(two) == {"2026-W46": [0, 1, 0], "2026-W47": [0, 0, 1]}


def test_cells_are_equal_only_with_the_same_keys_and_counts():
    one = cells(W46=[1, 0, 0])
    assert one == cells(W46=[1, 0, 0])
    others = [
        cells(W47=[1, 0, 0]),
        cells(W46=[0, 1, 0]),
        cells(W46=[1, 0, 0], W47=[0, 0, 0]),
        TallyCells.single(tally(1, 0, 0)),
        TallyCells({CellKey("2026-W46"): tally(1, 0, 0, survey="dinner")}),
        one.cells,
        tally(1, 0, 0),
    ]
    for other in others:
        assert one != other


def test_a_single_cell_has_no_key():
    single = TallyCells.single(tally(1, 0, 2))
    assert dict(single.cells) == {NO_KEY: tally(1, 0, 2)}
    assert single.total() == tally(1, 0, 2)
    assert (single.fingerprint, single.outputs) == ("lunch", 3)


def test_cells_belong_to_one_survey():
    with pytest.raises(InvalidTally, match="at least one cell"):
        TallyCells({})
    for other in (tally(1, 0, 0, survey="dinner"), tally(1, 0)):
        with pytest.raises(WrongSurvey):
            TallyCells({NO_KEY: tally(1, 0, 0), CellKey("2026-W46"): other})
        with pytest.raises(WrongSurvey):
            TallyCells.single(tally(1, 0, 0)) + TallyCells.single(other)


def test_only_cells_can_be_added():
    with pytest.raises(TypeError):
        cells(W46=[1, 0, 0]) + tally(1, 0, 0)


def test_totals_are_at_most_2_to_the_62():
    largest = cells(W46=[2**61, 0, 0], W47=[0, 2**61, 0])
    assert largest.total().reports == 2**62
    for part in ([1, 0, 0], [2**62, 0, 0]):
        with pytest.raises(InvalidTally, match="2\\^62"):
            (largest + cells(W48=part)).total()


# --- keys -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("period", PERIODS)
def test_keys_round_trip(period):
    key = CellKey(period)
    assert CellKey.from_record(key.to_record()) == key
    assert key.text == (f'{{"period":"{period}"}}' if period else "")


WRONG_KEYS = {
    "nothing": None,
    "text": "2026-W46",
    "a list": ["period"],
    "pairs": [["period", "2026-W46"]],
    "a reserved part": {"group": "north"},
    "a reserved part next to a period": {"cohort": 1, "period": "2026-W46"},
    "an empty period": {"period": ""},
    "no period": {"period": None},
    "a number": {"period": 2026},
    "a list of periods": {"period": ["2026-W46"]},
    "capitals": {"Period": "2026-W46"},
    "digits of another script": {"period": "٢٠٢٦"},
    "a lone surrogate": {"period": "\ud800"},
}


@pytest.mark.parametrize("record", WRONG_KEYS.values(), ids=WRONG_KEYS)
def test_malformed_keys_are_rejected(record):
    with pytest.raises(InvalidTally, match="of a cell"):
        CellKey.from_record(record)


def test_later_periods_sort_later():
    keys = [CellKey(period) for period in reversed(PERIODS)]
    assert [key.period for key in sorted(keys)] == PERIODS
