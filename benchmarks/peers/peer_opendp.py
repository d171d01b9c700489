"""OpenDP: k-ary randomized response, drawn exactly and from cryptographic randomness.

It leaves counting and decoding to you. The usual unbiased estimate is computed here, for accuracy
only.
"""

from collections.abc import Sequence
from math import exp
from typing import Any

import numpy as np
import opendp.prelude as dp  # type: ignore[import-not-found]
from contestant import Contestant, PeerEstimates


class OpenDpResponse(Contestant):
    def __init__(self, size: int, epsilon: float) -> None:
        dp.enable_features("contrib")
        self.p = exp(epsilon) / (exp(epsilon) + size - 1)
        self.q = 1 / (exp(epsilon) + size - 1)
        self.respond = dp.m.make_randomized_response(list(range(size)), self.p)
        self.counts = np.zeros(size)

    def privatize(self, people: Sequence[Any]) -> list[int]:
        respond = self.respond
        return [respond(person) for person in people]

    def gather(self, reports: Sequence[Any]) -> None:
        self.counts = self.counts + np.bincount(reports, minlength=self.counts.size)

    def estimates(self) -> PeerEstimates:
        return PeerEstimates((self.counts / self.counts.sum() - self.q) / (self.p - self.q), None)


def contestant(mechanism: str, size: int, epsilon: float) -> Contestant:
    return OpenDpResponse(size, epsilon)
