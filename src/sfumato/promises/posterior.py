"""What a report can do to what somebody already believes (Proposition 3 of the paper)."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sfumato.contexts import Context
from sfumato.errors import InvalidContext
from sfumato.foundation.arrays import Floats

__all__ = ["PosteriorOdds", "posterior_odds"]

_LARGEST_EXPONENT = 700  # e^700 is the last that a float holds


@dataclass(frozen=True, eq=False)
class PosteriorOdds:
    """Bounds on the odds of x against x2 after a report, for someone with a prior belief.

    ``P(x|y)/P(x2|y) ≤ exp(E[x, x2]) · p(x)/p(x2)``, whatever the report and whatever else is known.
    """

    context: Context
    prior: Floats

    def before(self, x: int, x2: int) -> float:
        """``p(x)/p(x2)``: the odds before the report."""
        return _odds(self.prior[x], self.prior[x2])

    def bound(self, x: int, x2: int) -> float:
        """The largest odds of x against x2 that any report can lead to."""
        if x == x2 or self.prior[x] == 0:
            return self.before(x, x2)
        epsilon = float(self.context.epsilon(x, x2))
        return math.exp(epsilon) * self.before(x, x2) if epsilon < _LARGEST_EXPONENT else math.inf

    def matrix(self) -> Floats:
        """All bounds, ``k × k``; refused above 4096 symbols."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            bounds = np.exp(self.context.matrix()) * (self.prior[:, None] / self.prior[None, :])
        bounds[self.prior == 0, :] = 0.0
        np.fill_diagonal(bounds, 1.0)
        return bounds

    def in_words(self, x: int, x2: int) -> str:
        """The bound as a sentence."""
        first, second = (repr(self.context.domain.labels[symbol]) for symbol in (x, x2))
        before, after = self.before(x, x2), self.bound(x, x2)
        moved = f"from {_as_text(before)} to at most {_as_text(after)}"
        if math.isinf(after):
            moved = f"from {_as_text(before)} to certainty: nothing is promised for this pair"
        return f"A report can move the odds of {first} against {second} {moved}."


def posterior_odds(context: Context, prior: ArrayLike | None = None) -> PosteriorOdds:
    """How far any report of a mechanism that keeps ``context`` can move someone's belief.

    The prior is uniform unless given.

    >>> from sfumato.contexts import Uniform
    >>> posterior_odds(Uniform(["no", "yes"], 1.0)).in_words(1, 0)
    "A report can move the odds of 'yes' against 'no' from 1:1 to at most 2.7:1."
    """
    k = context.size
    p = np.full(k, 1 / k) if prior is None else np.array(prior, dtype=np.float64)
    if p.shape != (k,) or not np.isfinite(p).all() or (p < 0).any() or abs(p.sum() - 1) > 1e-9:
        raise InvalidContext(
            f"prior must be a distribution over the {k} symbols: non-negative, adding up to 1."
        )
    p.flags.writeable = False
    return PosteriorOdds(context, p)


def _odds(p: float, p2: float) -> float:
    if p == 0:
        return 0.0
    return float(p / p2) if p2 > 0 else math.inf


def _as_text(odds: float) -> str:
    """``3:1`` or ``1:4``: the larger number of the two, to two digits."""
    if odds == 0 or math.isinf(odds):
        return "0:1" if odds == 0 else "certainty"
    return f"{_two_digits(odds)}:1" if odds >= 1 else f"1:{_two_digits(1 / odds)}"


def _two_digits(number: float) -> str:
    scale = 10.0 ** (math.floor(math.log10(number)) - 1)
    return f"{round(number / scale) * scale:.10g}"
