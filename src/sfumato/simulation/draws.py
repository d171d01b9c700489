"""Repeated runs over one crowd, under a seed. NOT PRIVATE."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from sfumato.errors import InvalidContext
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.mechanisms import Mechanism
from sfumato.simulation.seeded import SeededWords
from sfumato.tally import Tally

__all__ = ["Draws", "crowd_tally"]

_STRETCH = 2**96  # positions that belong to one participant: more than there will ever be people
_CHUNK = 2**20  # people at a time


@dataclass(frozen=True)
class Draws:
    """How often everybody answers anew, under which seed, and how many runs go on at a time.

    The words of a run depend on the seed, the run's number and the participant alone, so results do not depend on
    ``workers``, and more runs begin like fewer.
    """

    runs: int = 10
    seed: int = 0
    workers: int = 1

    def __post_init__(self) -> None:
        for count in (self.runs, self.workers):
            if isinstance(count, bool) or not isinstance(count, int) or count < 1:
                raise InvalidContext("runs and workers must be whole numbers of at least 1.")
        SeededWords(self.seed)  # refuses what is no seed

    def each(
        self, participant: int, figures: int, run: Callable[[SeededWords], tuple[float, ...]]
    ) -> Floats:
        """What ``run`` makes of the words of every run: a row for each of its figures, a column per run."""
        found = np.empty((figures, self.runs))

        def portion(worker: int) -> None:
            for number in range(worker, self.runs, self.workers):
                found[:, number] = run(self._words(participant, number))

        workers = min(self.workers, self.runs)
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(portion, range(workers)))
        return found

    def _words(self, participant: int, run: int) -> SeededWords:
        return SeededWords(self.seed, run=run, position=participant * _STRETCH)


def crowd_tally(mechanism: Mechanism, counts: Symbols, words: SeededWords) -> Tally:
    """One report of each of ``counts[x]`` people with symbol x, counted; through the sampler that devices use."""
    ends = np.cumsum(counts)
    n = int(ends[-1])
    reports = np.zeros(mechanism.outputs, dtype=np.int64)
    for start in range(0, n, _CHUNK):
        people = np.arange(start, min(start + _CHUNK, n))
        symbols = np.searchsorted(ends, people, side="right")
        reports += np.bincount(mechanism.privatize(symbols, words), minlength=mechanism.outputs)
    return Tally(reports, mechanism.fingerprint)
