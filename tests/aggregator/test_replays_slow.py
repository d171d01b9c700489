"""A million reports, a tenth of their batches sent again: every one of them counts once."""

import random

import numpy as np
import pytest

from sfumato.aggregator.store import Outcome
from support.unrandomized import batch_of

BATCHES = 50_000
SIZE = 20
GROUP = 500


@pytest.mark.slow
def test_a_million_reports_with_a_tenth_replayed_count_once_each(store, survey):
    """Replays come at any time, also in the same group; counts equal those of a twin."""
    chance = random.Random(1)
    symbols = [[chance.randrange(10_000) for _ in range(SIZE)] for _ in range(BATCHES)]
    order = list(range(BATCHES)) + [chance.randrange(BATCHES) for _ in range(BATCHES // 10)]
    # The first time in order, a replay anywhere after it.
    order = sorted(
        order[:BATCHES] + order[BATCHES:], key=lambda number: number + chance.random() * BATCHES / 2
    )
    outcomes = []
    for start in range(0, len(order), GROUP):
        outcomes += store.commit(
            [batch_of(survey, number, *symbols[number]) for number in order[start : start + GROUP]]
        )
    seen = set()
    expected = []
    for number in order:
        expected.append(Outcome.REPLAYED if number in seen else Outcome.COUNTED)
        seen.add(number)
    assert outcomes == expected
    twin = np.bincount(np.ravel(symbols), minlength=10_000)
    assert store.tally(survey.fingerprint, 10_000).counts.tolist() == twin.tolist()
    assert store.read_status(survey.fingerprint).reports == BATCHES * SIZE == 10**6
