"""multi-freq-ldpy: a compiled function for one person, and one that counts and decodes all reports in one go.

The latter clips and rescales. What it starts from, ``(counts/n − q)/(p − q)``, is written out here.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from math import exp
from typing import Any

import numpy as np
from contestant import Contestant, Estimates, Floats
from multi_freq_ldpy.estimators.Histogram_estimator import MI  # type: ignore[import-not-found]
from multi_freq_ldpy.pure_frequency_oracles.GRR import (  # type: ignore[import-not-found]
    GRR_Aggregator_MI,
    GRR_Client,
)
from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Aggregator_MI, SS_Client  # type: ignore[import-not-found]
from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client  # type: ignore[import-not-found]


class MultiFreq(Contestant):
    """A report counts for its own symbol with probability p, and for any other with probability q."""

    client: Any
    p: float
    q: float

    def __init__(self, size: int, epsilon: float) -> None:
        self.size, self.epsilon = size, epsilon
        self.counts, self.reports = np.zeros(size), 0

    def privatize(self, people: Sequence[Any]) -> list[Any]:
        client, size, epsilon = self.client, self.size, self.epsilon
        return [client(person, size, epsilon) for person in people]

    @abstractmethod
    def histogram(self, reports: Sequence[Any]) -> Floats:
        """For every symbol, how many reports count for it."""

    def gather(self, reports: Sequence[Any]) -> None:
        self.counts = self.counts + self.histogram(reports)
        self.reports += len(reports)

    def estimates(self) -> Estimates:
        own = MI(self.counts, self.reports, self.p, self.q)
        return Estimates((self.counts / self.reports - self.q) / (self.p - self.q), own)


class RandomizedResponse(MultiFreq):
    client = staticmethod(GRR_Client)

    def __init__(self, size: int, epsilon: float) -> None:
        super().__init__(size, epsilon)
        self.p, self.q = exp(epsilon) / (exp(epsilon) + size - 1), 1 / (exp(epsilon) + size - 1)

    def count(self, reports: Sequence[Any]) -> object:
        return GRR_Aggregator_MI(reports, self.size, self.epsilon)

    def histogram(self, reports: Sequence[Any]) -> Floats:
        return np.bincount(reports, minlength=self.size).astype(np.float64)


class Subsets(MultiFreq):
    client = staticmethod(SS_Client)

    def __init__(self, size: int, epsilon: float) -> None:
        super().__init__(size, epsilon)
        w = max(1, round(size / (exp(epsilon) + 1)))
        self.p = w * exp(epsilon) / (w * exp(epsilon) + size - w)
        self.q = (w - self.p) / (size - 1)

    def count(self, reports: Sequence[Any]) -> object:
        return SS_Aggregator_MI(reports, self.size, self.epsilon)

    def histogram(self, reports: Sequence[Any]) -> Floats:
        return np.bincount(np.concatenate(reports), minlength=self.size).astype(np.float64)


class UnaryEncoding(MultiFreq):
    client = staticmethod(UE_Client)

    def __init__(self, size: int, epsilon: float) -> None:
        super().__init__(size, epsilon)
        self.p, self.q = 0.5, 1 / (exp(epsilon) + 1)

    def count(self, reports: Sequence[Any]) -> object:
        return UE_Aggregator_MI(reports, self.epsilon)

    def histogram(self, reports: Sequence[Any]) -> Floats:
        return np.sum(reports, axis=0)


KINDS: dict[str, Callable[[int, float], MultiFreq]] = {
    "k-RR": RandomizedResponse,
    "subsets": Subsets,
    "OUE": UnaryEncoding,
}


def contestant(mechanism: str, size: int, epsilon: float) -> Contestant:
    return KINDS[mechanism](size, epsilon)
