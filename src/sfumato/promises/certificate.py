"""Certificates: a finite, exact check that a realised mechanism keeps a context."""

from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.canonical import fingerprint
from sfumato.contexts import Context
from sfumato.errors import ContextMismatch, InvalidContext, PrivacyViolation
from sfumato.mechanisms import Mechanism
from sfumato.randomness.odds import Epsilon, epsilon_of_odds, within_odds

__all__ = ["LARGEST_ENUMERATION", "Certificate", "certify"]

LARGEST_ENUMERATION = 512
"""Up to this many outputs every pair of symbols is compared on every output."""


@dataclass(frozen=True)
class Certificate:
    """The outcome of a check that found no violation.

    ``tightest`` is the pair (x, x2) and the output where the promise is closest to being broken, or
    ``None`` where nothing is promised; ``realised_epsilon`` is the log-ratio there, rounded up, and
    ``slack`` what is left of the promise, rounded down.
    """

    mechanism: str
    context: str
    method: str
    pairs: int
    outputs: int
    tightest: tuple[int, int, int] | None
    promised_epsilon: float
    realised_epsilon: float

    @property
    def slack(self) -> float:
        """``promised − realised``, rounded down: how much of ε is left unused."""
        return max(self.promised_epsilon - self.realised_epsilon, 0.0)


def certify(mechanism: Mechanism, context: Context | None = None) -> Certificate:
    """Check in integers that ``Q(y|x) ≤ exp(E[x, x2]) Q(y|x2)`` for every x, x2 and y.

    The context is the mechanism's own unless another over the same domain is given. Raises
    ``PrivacyViolation`` with the pair and the output that show a violation.

    >>> from sfumato.contexts import Uniform
    >>> from sfumato.mechanisms import PlainResponse
    >>> certificate = certify(PlainResponse(Uniform(3, 1.0)))
    >>> certificate.pairs, certificate.realised_epsilon <= 1.0, certificate.slack < 1e-15
    (6, True, True)
    """
    promise = mechanism.context if context is None else context
    if promise.domain != mechanism.context.domain:
        raise ContextMismatch("the context and the mechanism speak of different domains.")
    if mechanism.outputs > LARGEST_ENUMERATION:
        raise InvalidContext(
            f"a channel is enumerated up to {LARGEST_ENUMERATION} outputs; this one has {mechanism.outputs}."
        )
    tightest = _Enumeration(mechanism, promise).tightest()
    found, promised, realised = tightest or (None, float("inf"), 0.0)
    return Certificate(
        mechanism=mechanism.fingerprint,
        context=fingerprint(promise.record()),
        method="enumerated",
        pairs=mechanism.inputs * (mechanism.inputs - 1),
        outputs=mechanism.outputs,
        tightest=found,
        promised_epsilon=promised,
        realised_epsilon=realised,
    )


class _Enumeration:
    """Every pair, every output. Equal integers are compared once per ε: rows hold few distinct ones."""

    def __init__(self, mechanism: Mechanism, context: Context) -> None:
        self._context = context
        number: dict[int, int] = {}
        rows = [[number.setdefault(n, len(number)) for n in mechanism.integer_row(x)] for x in range(mechanism.inputs)]
        self._values = list(number)
        self._ids: NDArray[np.int64] = np.array(rows)
        self._slacks: dict[tuple[int, int, Epsilon], float] = {}

    def tightest(self) -> tuple[tuple[int, int, int], float, float] | None:
        """The pair and output with the least slack, the ε promised there and the ε realised."""
        best: tuple[float, int, Epsilon, int, int] | None = None
        for x in range(len(self._ids)):
            for epsilon, others in self._promises(x).items():
                pairs = self._ids[x] * len(self._values) + self._ids[others]
                for pair in np.unique(pairs).tolist():
                    high, low = divmod(pair, len(self._values))
                    if not self._keeps(high, low, epsilon):
                        raise self._violation(x, others, pairs == pair, epsilon)
                    slack = self._slacks[high, low, epsilon]
                    if best is None or slack < best[0]:
                        best = slack, x, epsilon, high, low
        return None if best is None else self._described(*best[1:])

    def _promises(self, x: int) -> dict[Epsilon, list[int]]:
        """The other symbols, by the finite ε that x owes them."""
        owed: dict[Epsilon, list[int]] = defaultdict(list)
        for x2 in range(len(self._ids)):
            epsilon = self._context.exact_epsilon(x, x2)
            if x2 != x and isinstance(epsilon, Fraction):
                owed[epsilon].append(x2)
        return owed

    def _keeps(self, high: int, low: int, epsilon: Epsilon) -> bool:
        if (high, low, epsilon) in self._slacks:
            return True
        q, q2 = self._values[high], self._values[low]
        if not within_odds(q, q2, epsilon):
            return False
        self._slacks[high, low, epsilon] = float(epsilon) - epsilon_of_odds(q, q2)
        return True

    def _violation(self, x: int, others: list[int], where: NDArray[np.bool_], epsilon: Epsilon) -> PrivacyViolation:
        row, output = (int(i) for i in np.argwhere(where)[0])
        x2 = others[row]
        realised = epsilon_of_odds(self._values[self._ids[x, output]], self._values[self._ids[x2, output]])
        return PrivacyViolation(
            f"output {output} tells symbol {x} from symbol {x2} by ε = {realised!r}; the context promises "
            f"{float(epsilon)!r}. The mechanism must not be used for this context.",
            x=x,
            x2=x2,
            output=output,
        )

    def _described(self, x: int, epsilon: Epsilon, high: int, low: int) -> tuple[tuple[int, int, int], float, float]:
        others = self._promises(x)[epsilon]
        row, output = np.argwhere((self._ids[others] == low) & (self._ids[x] == high))[0].tolist()
        realised = epsilon_of_odds(self._values[high], self._values[low])
        return (x, others[row], output), float(epsilon), realised
