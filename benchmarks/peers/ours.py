"""This package: the classical mechanisms of its peers, and two contexts that only it has."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from contestant import Contestant, PeerEstimates, Symbols

import sfumato as sf
from sfumato.codes.best import BestCode


class Ours(Contestant):
    def __init__(self, mechanism: sf.Mechanism) -> None:
        self.mechanism = mechanism
        self.total = mechanism.tally(np.zeros(0, dtype=np.uint32))

    def people(self, symbols: Symbols) -> Any:
        return symbols

    def privatize(self, people: Sequence[Any]) -> Any:
        return self.mechanism.privatize(people)

    def count(self, reports: Sequence[Any]) -> sf.Tally:
        return self.mechanism.tally(reports)

    def decode(self, counts: sf.Tally) -> object:
        return self.mechanism.scores.unbiased(counts)

    def gather(self, reports: Sequence[Any]) -> None:
        self.total = self.total + self.mechanism.tally(reports)

    def estimates(self) -> PeerEstimates:
        own = sf.estimate(self.mechanism, self.total).frequencies
        return PeerEstimates(self.mechanism.scores.unbiased(self.total), own)


def cyclic(size: int, epsilon: float) -> sf.PlainResponse:
    """Return a response with the best code, which must be cyclic here."""
    kind = BestCode()(size, Fraction(epsilon)).kind
    if kind != "cyclic":
        raise ValueError(
            f"the best code for {size} symbols must be cyclic; it is {kind}. Use another size."
        )
    return sf.PlainResponse(sf.Uniform(size, epsilon), BestCode())


def contestant(mechanism: str, size: int, epsilon: float) -> Contestant:
    uniform = sf.Uniform(size, epsilon)
    makers: dict[str, Callable[[], sf.Mechanism]] = {
        "Hadamard": lambda: sf.PlainResponse(uniform),
        "cyclic": lambda: cyclic(size, epsilon),
        "k-RR": lambda: sf.PlainResponse(uniform, sf.RandomizedCode),
        "high-low": lambda: sf.HighLowResponse(sf.HighLow(size, range(size // 4), epsilon)),
        "blocks of 25": lambda: sf.BlockResponse(sf.Blocks(np.arange(size) // 25, epsilon)),
    }
    return Ours(makers[mechanism]())
