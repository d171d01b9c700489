"""Two aggregators that share a store: each commits the same crowd's batches in an order of its own.

Run as a script it is one of them, in a process of its own: ``rivals.py URL SEED`` prints what became of its batches.
"""

import json
import random
import sys
from collections import Counter

from sfumato.aggregator.store import Outcome, Store
from support.unrandomized import batch_of, unrandomized_survey

SURVEYS = [unrandomized_survey("first", 2_000), unrandomized_survey("second", 9_000)]
NUMBERS = 60


def crowd(seed):
    """Every batch two times over, and one in three with contents that only this rival has: a conflict."""
    choose = random.Random(seed)
    found = []
    for place in range(2):
        for number in range(NUMBERS):
            report = number if number % 3 else 100 * seed + number
            found += [(place, number, report)] * 2
    choose.shuffle(found)
    return found


def compete(url, seed):
    """Commit the crowd in small groups; ``[place, number, report, outcome]`` for each batch."""
    store, choose, waiting, said = Store.open(url), random.Random(seed), crowd(seed), []
    while waiting:
        group = [waiting.pop() for _ in range(min(len(waiting), choose.randrange(1, 6)))]
        outcomes = store.commit(
            [batch_of(SURVEYS[place], number, report) for place, number, report in group]
        )
        said += [[*one, outcome.value] for one, outcome in zip(group, outcomes, strict=True)]
    store.close()
    return said


def judge(store, said):
    """Hold what two rivals were told against what the store counted."""
    counted = Counter(
        (place, number) for place, number, _, outcome in said if outcome == Outcome.COUNTED.value
    )
    assert counted == {(place, number): 1 for place in range(2) for number in range(NUMBERS)}
    winners = {
        (place, number): report
        for place, number, report, outcome in said
        if outcome == Outcome.COUNTED.value
    }
    for place, number, report, outcome in said:
        if outcome != Outcome.COUNTED.value:
            same = winners[place, number] == report
            assert outcome == (Outcome.REPLAYED if same else Outcome.CONFLICT).value
    for place, survey in enumerate(SURVEYS):
        counts = store.tally(survey.fingerprint, survey.mechanism.outputs).counts
        expected = Counter(report for (at, _), report in winners.items() if at == place)
        assert {int(report): int(counts[report]) for report in counts.nonzero()[0]} == expected


if __name__ == "__main__":
    json.dump(compete(sys.argv[1], int(sys.argv[2])), sys.stdout)
