"""multi-freq-ldpy: one compiled function per person, and one that counts and decodes all reports.

The latter clips and rescales ``(counts/n − q)/(p − q)``, which is the raw estimate here.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from math import exp
from typing import Any

import numpy as np
from contestant import Contestant, Floats, PeerEstimates
from multi_freq_ldpy.estimators.Histogram_estimator import MI  # type: ignore[import-not-found]
from multi_freq_ldpy.pure_frequency_oracles.GRR import (  # type: ignore[import-not-found]
    GRR_Aggregator_MI,
    GRR_Client,
)
from multi_freq_ldpy.pure_frequency_oracles.SS import (  # type: ignore[import-not-found]
    SS_Aggregator_MI,
    SS_Client,
)
from multi_freq_ldpy.pure_frequency_oracles.UE import (  # type: ignore[import-not-found]
    UE_Aggregator_MI,
    UE_Client,
)


class MultiFreq(Contestant):
    """A mechanism whose reports count for their symbol with probability p, for others with q."""

    client: Any
    p: float
    q: float

    def __init__(self, size: int, epsilon: float) -> None:
        self.size = size
        self.epsilon = epsilon
        self.counts = np.zeros(size)
        self.reports = 0

    def privatize(self, people: Sequence[Any]) -> list[Any]:
        # Local names, so that attribute look-ups are not measured.
        client = self.client
        size = self.size
        epsilon = self.epsilon
        return [client(person, size, epsilon) for person in people]

    @abstractmethod
    def histogram(self, reports: Sequence[Any]) -> Floats:
        """Return how many reports count for each symbol."""

    def gather(self, reports: Sequence[Any]) -> None:
        self.counts = self.counts + self.histogram(reports)
        self.reports += len(reports)

    def estimates(self) -> PeerEstimates:
        own = MI(self.counts, self.reports, self.p, self.q)
        return PeerEstimates((self.counts / self.reports - self.q) / (self.p - self.q), own)


class MultiFreqResponse(MultiFreq):
    client = staticmethod(GRR_Client)

    def __init__(self, size: int, epsilon: float) -> None:
        super().__init__(size, epsilon)
        self.p = exp(epsilon) / (exp(epsilon) + size - 1)
        self.q = 1 / (exp(epsilon) + size - 1)

    def count(self, reports: Sequence[Any]) -> object:
        return GRR_Aggregator_MI(reports, self.size, self.epsilon)

    def histogram(self, reports: Sequence[Any]) -> Floats:
        return np.bincount(reports, minlength=self.size).astype(np.float64)


class MultiFreqSubsets(MultiFreq):
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


class MultiFreqUnary(MultiFreq):
    client = staticmethod(UE_Client)

    def __init__(self, size: int, epsilon: float) -> None:
        super().__init__(size, epsilon)
        self.p = 0.5
        self.q = 1 / (exp(epsilon) + 1)

    def count(self, reports: Sequence[Any]) -> object:
        return UE_Aggregator_MI(reports, self.epsilon)

    def histogram(self, reports: Sequence[Any]) -> Floats:
        return np.sum(reports, axis=0)


KINDS: dict[str, Callable[[int, float], MultiFreq]] = {
    "k-RR": MultiFreqResponse,
    "subsets": MultiFreqSubsets,
    "OUE": MultiFreqUnary,
}


def contestant(mechanism: str, size: int, epsilon: float) -> Contestant:
    return KINDS[mechanism](size, epsilon)
