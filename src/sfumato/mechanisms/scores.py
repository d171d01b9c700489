"""Scores of a code: what a report adds to the estimate of each symbol of a group.

Let ``I_x(y) = [y ∈ S_x] − ℓ·[0 ∈ S_x]``, where ℓ is the share of leftover words, which say output 0
whatever the symbol. Its mean is ``q + Δ`` for symbol x and ``q`` for every other symbol of the group, so

    simple:      A[x, y] = (I_x(y) − q) / Δ                                    (the paper's estimators)
    corrected:   A[x, y] = (I_x(y) − mean of I over the group) / Δ + τ(y)/k    (what the software uses)

are both unbiased. τ(y) is what report y says of the group's total (1 in a block): corrected scores add
up to it report by report, simple ones only on average. The correction lowers the risk in a block by
n·Var(Σp̂ − τ)/k for every distribution.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Booleans, Floats
from sfumato.codes import Code

__all__ = ["GroupScores", "corrected_scores", "exact_group_scores", "leftover_share", "simple_scores"]


@dataclass(frozen=True)
class GroupScores:
    """``A[x, y] = gain·[y ∈ S_x] + offsets[j, y] + shifts[x]`` for groups j that share a code.

    Arrays of frequencies have shape ``(groups, outputs)``, arrays over symbols ``(groups, points)``;
    ``used`` tells which points of the code each group has a symbol for.
    """

    code: Code
    used: Booleans
    gain: float
    offsets: Floats
    shifts: Floats

    def mean(self, f: Floats) -> Floats:
        """``Σ_y f(y) A[x, y]``."""
        constant = (f * self.offsets).sum(axis=-1, keepdims=True) + self.shifts * f.sum(axis=-1, keepdims=True)
        return self.gain * self.code.gather(f) + constant

    def second_moments(self, f: Floats) -> Floats:
        """``Σ_y f(y) A[x, y]²``, by expanding the square of ``gain·[y ∈ S_x] + g(y) + h(x)``."""
        s, g, h = self.gain, self.offsets, self.shifts
        constant = ((f * g * g).sum(-1, keepdims=True)) + 2 * h * (f * g).sum(-1, keepdims=True)
        constant = constant + h * h * f.sum(-1, keepdims=True)
        return (s * s + 2 * s * h) * self.code.gather(f) + 2 * s * self.code.gather(f * g) + constant

    def totals(self, weights: Floats) -> Floats:
        """``Σ_x weights_x A[x, y]``; unused points must have weight 0."""
        constant = self.offsets * weights.sum(axis=-1, keepdims=True)
        return self.gain * self.code.spread(weights) + constant + (weights * self.shifts).sum(-1, keepdims=True)

    def squares(self) -> Floats:
        """``Σ_x A[x, y]²`` over the symbols of the group."""
        s, g, h = self.gain, self.offsets, self.shifts
        used = self.used.astype(np.float64)
        inside = self.code.spread(used)
        constant = g * g * used.sum(-1, keepdims=True) + 2 * g * (used * h).sum(-1, keepdims=True)
        constant = constant + (used * h * h).sum(-1, keepdims=True)
        return s * (s + 2 * g) * inside + 2 * s * self.code.spread(used * h) + constant

    def largest(self) -> float:
        """A bound on ``|A[x, y]|``, attained but for the leftover words' share."""
        inside = self.code.spread(self.used.astype(np.float64))
        size = self.used.sum(axis=-1, keepdims=True)
        # Some symbol has y in its set unless none has; some has it not unless all have.
        top = self.offsets + self.gain * (inside > 0.5)
        bottom = self.offsets + self.gain * (inside > size - 0.5) + self.shifts.min(initial=0.0)
        return float(max(top.max(initial=0.0), -bottom.min(initial=0.0)))


def simple_scores(code: Code, sizes: Sequence[int] | NDArray[np.int64]) -> GroupScores:
    """The paper's scores, without total correction."""
    used = _used(code, sizes)
    offsets = np.full((len(used), code.outputs), -float(code.overlap / code.contrast))
    return GroupScores(code, used, float(1 / code.contrast), offsets, _shifts(code))


def corrected_scores(code: Code, sizes: Sequence[int] | NDArray[np.int64]) -> GroupScores:
    """Scores with total correction, for groups whose total is 1 on each of their outputs."""
    used = _used(code, sizes)
    gain, leftover = float(1 / code.contrast), float(leftover_share(code))
    inside = code.spread(used.astype(np.float64))
    size = np.maximum(used.sum(axis=-1, keepdims=True), 1)
    offsets = (1.0 - gain * (inside - leftover * inside[:, :1])) / size
    return GroupScores(code, used, gain, offsets, _shifts(code))


def exact_group_scores(code: Code, size: int, output: int | None, total: Fraction) -> list[Fraction]:
    """One column of corrected scores in fractions; ``output=None`` is a report outside the code's range."""
    if size == 0:
        return []
    points = np.arange(size, dtype=np.uint64)
    at_zero = code.contains(points, np.uint64(0)).tolist()
    inside = [False] * size if output is None else code.contains(points, np.uint64(output)).tolist()
    leftover = leftover_share(code)
    I = [Fraction(int(y)) - leftover * int(zero) for y, zero in zip(inside, at_zero, strict=True)]  # noqa: E741
    mean = sum(I, Fraction(0)) / size
    return [(i - mean) / code.contrast + total / size for i in I]


def leftover_share(code: Code) -> Fraction:
    """ℓ: the share of words that say output 0 whatever the point."""
    return Fraction(code.leftover, code.total)


def _used(code: Code, sizes: Sequence[int] | NDArray[np.int64]) -> Booleans:
    return np.arange(code.points)[None, :] < np.asarray(sizes)[:, None]


def _shifts(code: Code) -> Floats:
    at_zero = code.contains(np.arange(code.points, dtype=np.uint64), np.uint64(0))
    return np.where(at_zero, -float(leftover_share(code) / code.contrast), 0.0)
