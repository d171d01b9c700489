"""Two aggregators that share a store: each commits the same batches in its own order.

To run one of them as a process: ``python -m support.concurrent_writers URL SEED``. It prints the
outcome of each batch.
"""

import json
import random
import sys
from collections import Counter

from sfumato.aggregator.store import Outcome, Store, counting
from support.unrandomized import batch_of, counts_of, unrandomized_survey

SURVEYS = [unrandomized_survey("first", 2_000), unrandomized_survey("second", 9_000)]
NUMBERS = 60


def shuffled_batches(seed):
    """Return every batch twice, in random order, as (survey index, batch number, report).

    One batch in three has a report that depends on the seed, so two writers conflict.
    """
    batches = []
    for survey in range(2):
        for number in range(NUMBERS):
            report = number if number % 3 else 100 * seed + number
            batches += [(survey, number, report)] * 2
    random.Random(seed).shuffle(batches)
    return batches


def write(url, seed):
    """Commit the batches in small groups; return each as [survey, number, report, outcome]."""
    store = Store.open(url)
    choose = random.Random(seed)
    waiting = shuffled_batches(seed)
    results = []
    while waiting:
        size = min(len(waiting), choose.randrange(1, 6))
        group = [waiting.pop() for _ in range(size)]
        outcomes = store.commit(
            [batch_of(SURVEYS[survey], number, report) for survey, number, report in group]
        )
        for batch, outcome in zip(group, outcomes, strict=True):
            results.append([*batch, outcome.value])
    store.close()
    return results


def check_outcomes(store, results):
    """Compare the outcomes that both writers got with what the store counted."""
    commits = Counter()
    winners = {}
    for survey, number, report, outcome in results:
        if outcome == Outcome.COUNTED.value:
            commits[survey, number] += 1
            winners[survey, number] = report
    assert commits == {(survey, number): 1 for survey in range(2) for number in range(NUMBERS)}

    for survey, number, report, outcome in results:
        if outcome != Outcome.COUNTED.value:
            is_replay = winners[survey, number] == report
            assert outcome == (Outcome.REPLAYED if is_replay else Outcome.CONFLICT).value

    for index, survey in enumerate(SURVEYS):
        expected = Counter(report for (at, _), report in winners.items() if at == index)
        assert counts_of(store, survey) == expected


if __name__ == "__main__":
    # Keep a checksum of every batch, so that small batches can conflict.
    counting._MIN_DIGEST_REPORTS = 1
    json.dump(write(sys.argv[1], int(sys.argv[2])), sys.stdout)
