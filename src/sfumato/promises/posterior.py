"""How far a report can move an observer's belief (Proposition 3 of the paper)."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sfumato.contexts import Context
from sfumato.errors import InvalidArgument
from sfumato.foundation.arrays import Floats

__all__ = ["PosteriorOdds", "posterior_odds"]

_MAX_EXPONENT = 700  # e^700 is among the last that a float holds


@dataclass(frozen=True, eq=False)
class PosteriorOdds:
    """Bounds on the odds of x against x2 after a report, for an observer with a prior belief.

    ``P(x|y)/P(x2|y) ≤ exp(E[x, x2]) · p(x)/p(x2)`` for every report y and any side information.
    """

    context: Context
    prior: Floats

    def before(self, x: int, x2: int) -> float:
        """Return ``p(x)/p(x2)``: the odds before the report."""
        p = self.prior[x]
        p2 = self.prior[x2]
        if p == 0:
            return 0.0
        return float(p / p2) if p2 > 0 else math.inf

    def bound(self, x: int, x2: int) -> float:
        """Return the largest odds of x against x2 that any report can lead to."""
        if x == x2 or self.prior[x] == 0:
            return self.before(x, x2)
        epsilon = float(self.context.epsilon(x, x2))
        if epsilon >= _MAX_EXPONENT:
            return math.inf
        return math.exp(epsilon) * self.before(x, x2)

    def matrix(self) -> Floats:
        """Return all bounds, ``k × k``; raises ``InvalidContext`` above 4096 symbols."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            before = self.prior[:, None] / self.prior[None, :]
            bounds = np.exp(self.context.matrix()) * before
        bounds[self.prior == 0, :] = 0.0
        np.fill_diagonal(bounds, 1.0)
        return bounds

    def in_words(self, x: int, x2: int) -> str:
        """Return the bound as a sentence."""
        label = repr(self.context.domain.labels[x])
        label2 = repr(self.context.domain.labels[x2])
        before = _format_odds(self.before(x, x2))
        after = self.bound(x, x2)
        if math.isinf(after):
            move = f"from {before} to certainty: nothing is promised for this pair"
        else:
            move = f"from {before} to at most {_format_odds(after)}"
        return f"A report can move the odds of {label} against {label2} {move}."


def posterior_odds(context: Context, prior: ArrayLike | None = None) -> PosteriorOdds:
    """Return how far a report can move a belief, for any mechanism that keeps ``context``.

    ``prior`` is a distribution over the symbols, by default uniform.

    >>> from sfumato.contexts import Uniform
    >>> posterior_odds(Uniform(["no", "yes"], 1.0)).in_words(1, 0)
    "A report can move the odds of 'yes' against 'no' from 1:1 to at most 2.7:1."
    """
    k = context.size
    p = np.full(k, 1 / k) if prior is None else np.array(prior, dtype=np.float64)
    non_negative = p.shape == (k,) and np.isfinite(p).all() and (p >= 0).all()
    if not non_negative or abs(p.sum() - 1) > 1e-9:
        raise InvalidArgument(
            f"prior must be a distribution over the {k} symbols: non-negative, adding up to 1."
        )
    p.flags.writeable = False
    return PosteriorOdds(context, p)


def _format_odds(odds: float) -> str:
    """Return ``3:1`` or ``1:4``, the larger number with two digits."""
    if odds == 0:
        return "0:1"
    if math.isinf(odds):
        return "certainty"
    return f"{_two_digits(odds)}:1" if odds >= 1 else f"1:{_two_digits(1 / odds)}"


def _two_digits(number: float) -> str:
    scale = 10.0 ** (math.floor(math.log10(number)) - 1)
    return f"{round(number / scale) * scale:.10g}"
