"""Scores of a code: what a report adds to the estimate of each symbol of a group.

A group is the set of symbols that answer through one code. All scores are made from *contrasts* z, which compare
the symbols of a group with each other and say nothing of their total: ``Σ_x z(x, y) = 0`` and

    Σ_y P(y|x2) z(x, y) = [x = x2] − 1/k,      P(y|x) = low + (high − low)·[y ∈ S_x],  in shares of all words

    balanced codes:   z(x, y) = ([y ∈ S_x] − mean of it over the group) / Δ
    cyclic codes:     z(x, (i, y)) = a_i(x − y) / (high − low)                   (``CyclicCode.kernels``)

Anything that is spread evenly over the code's outputs leaves z at 0. So, with ℓ the share of leftover words, which
say output 0 whatever the symbol, and τ(y) what report y says of the group's total (1 in a block),

    corrected:   A[x, y] = z(x, y) − ℓ z(x, 0) + τ(y)/k                          (what the software uses)
    simple:      A[x, y] = ([y ∈ S_x] − ℓ [0 ∈ S_x] − q) / Δ                     (the paper's estimators)

are both unbiased. Corrected scores add up to τ report by report, simple ones only on average: the correction lowers
the risk in a block by n·Var(Σp̂ − τ)/k for every distribution.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.codes import Code
from sfumato.codes.circle import circle_transform
from sfumato.codes.cyclic import CyclicCode, convolved, correlated
from sfumato.errors import ContextMismatch
from sfumato.foundation.arrays import Booleans, Floats

__all__ = [
    "GroupScores",
    "MembershipCore",
    "corrected_scores",
    "demand_balanced",
    "exact_contrasts",
    "exact_group_scores",
    "leftover_share",
    "simple_scores",
]

Sizes = Sequence[int] | NDArray[np.int64]

_ALIKE = 1e-12  # offsets that differ by less, relative to the largest, differ by rounding


class Core(ABC):
    """The part ``core(x, y)`` of scores that depends on symbol and report together, with its four sums."""

    @abstractmethod
    def moments(self, f: Floats, power: int) -> Floats:
        """``Σ_y f(y) core(x, y)^power``: last axis outputs → points."""

    def mean(self, f: Floats) -> Floats:
        """``Σ_y f(y) core(x, y)``."""
        return self.moments(f, 1)

    def second_moments(self, f: Floats) -> Floats:
        """``Σ_y f(y) core(x, y)²``."""
        return self.moments(f, 2)

    @abstractmethod
    def totals(self, weights: Floats) -> Floats:
        """``Σ_x weights_x core(x, y)``: last axis points → outputs."""

    @abstractmethod
    def squares(self, used: Floats) -> Floats:
        """``Σ_x core(x, y)²`` over the points used."""

    @abstractmethod
    def extremes(self, used: Floats) -> tuple[Floats, Floats]:
        """The largest and the least ``core(x, y)`` over the points used, for every y."""

    @abstractmethod
    def largest_of_points(self, offsets: Floats, sign: int) -> Floats:
        """The largest ``sign · core(x, y) + offsets[y]`` over all outputs y, for every point: outputs → points."""

    @abstractmethod
    def sizes(self, used: Floats, offsets: Floats) -> Floats:
        """``Σ_x |core(x, y) + offsets[y]|`` over the points used, for every y."""


@dataclass(frozen=True)
class MembershipCore(Core):
    """``gain · [y ∈ S_x]``."""

    code: Code
    gain: float

    def moments(self, f: Floats, power: int) -> Floats:
        """One transform: membership is its own square."""
        return self.gain**power * self.code.gather(f)

    def totals(self, weights: Floats) -> Floats:
        """One transform."""
        return self.gain * self.code.spread(weights)

    def squares(self, used: Floats) -> Floats:
        """Membership is its own square."""
        return self.gain**2 * self.code.spread(used)

    def extremes(self, used: Floats) -> tuple[Floats, Floats]:
        """Some symbol has y in its set unless none has; some has it not unless all have."""
        inside, size = self.code.spread(used), used.sum(axis=-1, keepdims=True)
        return np.where(inside > 0.5, self.gain, 0.0), np.where(inside > size - 0.5, self.gain, 0.0)

    def largest_of_points(self, offsets: Floats, sign: int) -> Floats:
        """The best output in S_x, or the best of the others.

        Offsets take few values. One transform for each of them, from the best on, tells who has it in S_x and who
        outside; nearly always one or two are enough.
        """
        shape = (*offsets.shape[:-1], self.code.points)
        inside, outside = np.full(shape, -np.inf), np.full(shape, -np.inf)
        for value, here in _by_value(offsets):
            members, all_of_them = (
                self.code.gather(here.astype(np.float64)),
                here.sum(axis=-1, keepdims=True),
            )
            inside = np.where(np.isinf(inside) & (members > 0.5), value, inside)
            outside = np.where(np.isinf(outside) & (members < all_of_them - 0.5), value, outside)
            if not (np.isinf(inside).any() or np.isinf(outside).any()):
                break
        return np.maximum(sign * self.gain + inside, outside)

    def sizes(self, used: Floats, offsets: Floats) -> Floats:
        """Two sizes, and how many symbols have each."""
        inside, size = self.code.spread(used), used.sum(axis=-1, keepdims=True)
        return inside * np.abs(self.gain + offsets) + (size - inside) * np.abs(offsets)


@dataclass(frozen=True)
class KernelCore(Core):
    """``gain · a_i(x − y)`` for a cyclic code that uses all of its points."""

    code: CyclicCode
    gain: float

    def moments(self, f: Floats, power: int) -> Floats:
        """A convolution with powers of the kernels."""
        return convolved(
            f, circle_transform((self.gain * self.code.kernels) ** power), self.code.points
        )

    def totals(self, weights: Floats) -> Floats:
        """A correlation."""
        return correlated(
            weights, circle_transform(self.gain * self.code.kernels), self.code.points
        )

    def squares(self, used: Floats) -> Floats:
        """The same on all outputs of a base block: every point is used."""
        by_block = ((self.gain * self.code.kernels) ** 2).sum(axis=-1)
        return np.broadcast_to(
            np.repeat(by_block, self.code.points), (*used.shape[:-1], self.code.outputs)
        )

    def extremes(self, used: Floats) -> tuple[Floats, Floats]:
        """Those of the kernel of the output's base block."""
        top, bottom = (
            np.repeat(self.gain * extreme, self.code.points)
            for extreme in (self.code.kernels.max(axis=1), self.code.kernels.min(axis=1))
        )
        shape = (*used.shape[:-1], self.code.outputs)
        return np.broadcast_to(top, shape), np.broadcast_to(bottom, shape)

    def largest_of_points(self, offsets: Floats, sign: int) -> Floats:
        """The same for every point, since each meets every value of every kernel: offsets are equal on a base block."""
        by_block = offsets.reshape(*offsets.shape[:-1], -1, self.code.points).max(axis=-1)
        best = (by_block + (sign * self.gain * self.code.kernels).max(axis=1)).max(
            axis=-1, keepdims=True
        )
        return np.broadcast_to(best, (*offsets.shape[:-1], self.code.points))

    def sizes(self, used: Floats, offsets: Floats) -> Floats:
        """The sum over a kernel, for each base block; where offsets differ inside one, the difference counts apart."""
        by_block = offsets.reshape(*offsets.shape[:-1], -1, self.code.points)
        first = by_block[..., :1]
        sums = np.abs(self.gain * self.code.kernels + first).sum(axis=-1, keepdims=True)
        return (sums + self.code.points * np.abs(by_block - first)).reshape(offsets.shape)


@dataclass(frozen=True)
class GroupScores:
    """``A[x, y] = core(x, y) + offsets[j, y] + shifts[j, x]`` for groups j that share a code.

    Arrays of frequencies have shape ``(groups, outputs)``, arrays over symbols ``(groups, points)``;
    ``used`` tells which points of the code each group has a symbol for.
    """

    core: Core
    used: Booleans
    offsets: Floats
    shifts: Floats

    def mean(self, f: Floats) -> Floats:
        """``Σ_y f(y) A[x, y]``."""
        constant = (f * self.offsets).sum(axis=-1, keepdims=True) + self.shifts * f.sum(
            axis=-1, keepdims=True
        )
        return self.core.mean(f) + constant

    def second_moments(self, f: Floats) -> Floats:
        """``Σ_y f(y) A[x, y]²``, by expanding the square of ``core(x, y) + g(y) + h(x)``."""
        g, h = self.offsets, self.shifts
        constant = (f * g * g).sum(-1, keepdims=True) + 2 * h * (f * g).sum(-1, keepdims=True)
        constant = constant + h * h * f.sum(-1, keepdims=True)
        return (
            self.core.second_moments(f)
            + 2 * self.core.mean(f * g)
            + 2 * h * self.core.mean(f)
            + constant
        )

    def totals(self, weights: Floats) -> Floats:
        """``Σ_x weights_x A[x, y]``; unused points must have weight 0."""
        constant = self.offsets * weights.sum(axis=-1, keepdims=True)
        return self.core.totals(weights) + constant + (weights * self.shifts).sum(-1, keepdims=True)

    def squares(self) -> Floats:
        """``Σ_x A[x, y]²`` over the symbols of the group."""
        g, h = self.offsets, self.shifts
        used = self.used.astype(np.float64)
        constant = g * g * used.sum(-1, keepdims=True) + 2 * g * (used * h).sum(-1, keepdims=True)
        constant = constant + (used * h * h).sum(-1, keepdims=True)
        return (
            self.core.squares(used)
            + 2 * g * self.core.totals(used)
            + 2 * self.core.totals(used * h)
            + constant
        )

    def largest(self) -> float:
        """A bound on ``|A[x, y]|``, attained but for the leftover words' share."""
        used = self.used.astype(np.float64)
        core_top, core_bottom = self.core.extremes(used)
        top = self.offsets + core_top + self.shifts.max(initial=0.0)
        bottom = self.offsets + core_bottom + self.shifts.min(initial=0.0)
        return float(max(top.max(initial=0.0), -bottom.min(initial=0.0)))

    def extremes_of_points(self) -> tuple[Floats, Floats]:
        """The largest and the least ``A[x, y]`` over the outputs, for every point."""
        highest = self.core.largest_of_points(self.offsets, 1)
        lowest = -self.core.largest_of_points(-self.offsets, -1)
        return highest + self.shifts, lowest + self.shifts

    def sizes(self) -> Floats:
        """``Σ_x |A[x, y]|`` for every y, or more by at most the leftover words' share."""
        used = self.used.astype(np.float64)
        return self.core.sizes(used, self.offsets) + np.abs(self.shifts * used).sum(
            axis=-1, keepdims=True
        )


def simple_scores(code: Code, sizes: Sizes) -> GroupScores:
    """The paper's scores, without total correction; only a balanced code has them."""
    demand_balanced(code)
    used = _used(code, sizes)
    offsets = np.full((len(used), code.outputs), -float(code.overlap / code.contrast))
    at_zero = code.contains(np.arange(code.points, dtype=np.uint64), np.uint64(0))
    shifts = np.where(at_zero, -float(leftover_share(code) / code.contrast), 0.0)
    return GroupScores(
        MembershipCore(code, float(1 / code.contrast)), used, offsets, shifts[None, :]
    )


def demand_balanced(code: Code) -> None:
    """Refuse a code for which the paper's estimator would be wrong on average."""
    if not code.balanced:
        raise ContextMismatch(
            "the paper's estimator needs a code in which any two points share equally many outputs."
        )


def corrected_scores(
    code: Code,
    sizes: Sizes,
    *,
    rise: Fraction,
    leftover: Fraction | Floats,
    totals: float | Floats = 1.0,
) -> GroupScores:
    """Scores with total correction.

    ``rise`` is ``high − low`` as a share of all words, ``leftover`` the share of words that say the group's output 0
    whatever the symbol, ``totals`` what a report of the code says of the group's total; the last two for each group
    as a column, or for all.
    """
    used = _used(code, sizes)
    size = np.maximum(used.sum(axis=-1, keepdims=True), 1)
    contrasts, offsets = _contrasts(code, used, rise)
    first = np.zeros((1, code.outputs))
    first[0, 0] = 1.0
    z_at_zero = np.where(used, contrasts.mean(first) + offsets[:, :1], 0.0)
    shifts = -(leftover if isinstance(leftover, np.ndarray) else float(leftover)) * z_at_zero
    return GroupScores(contrasts, used, offsets + totals / size, shifts)


def _contrasts(code: Code, used: Booleans, rise: Fraction) -> tuple[Core, Floats]:
    """The contrasts z, as a core and an offset for each report."""
    if isinstance(code, CyclicCode) and not code.balanced:
        if not used.all():
            raise ContextMismatch(
                "a cyclic code that is not balanced needs a symbol for every point."
            )
        return KernelCore(code, float(1 / rise)), np.zeros((len(used), code.outputs))
    gain = float(1 / ((code.raised - code.shared) * rise))
    size = np.maximum(used.sum(axis=-1, keepdims=True), 1)
    return MembershipCore(code, gain), -gain * code.spread(used.astype(np.float64)) / size


def exact_contrasts(code: Code, size: int, output: int, rise: Fraction) -> list[Fraction]:
    """``z(·, y)`` in fractions."""
    if isinstance(code, CyclicCode) and not code.balanced:
        i, y = divmod(output, code.points)
        kernel = code.exact_kernels()[i]
        return [kernel[(x - y) % code.points] / rise for x in range(size)]
    inside = code.contains(np.arange(size, dtype=np.uint64), np.uint64(output)).tolist()
    mean = Fraction(sum(inside), size)
    return [(int(member) - mean) / ((code.raised - code.shared) * rise) for member in inside]


def exact_group_scores(
    code: Code,
    size: int,
    output: int | None,
    *,
    rise: Fraction,
    leftover: Fraction,
    total: Fraction,
) -> list[Fraction]:
    """One column of corrected scores in fractions; ``output=None`` is a report outside the code's range."""
    if size == 0:
        return []
    at_zero = exact_contrasts(code, size, 0, rise)
    z = [Fraction(0)] * size if output is None else exact_contrasts(code, size, output, rise)
    return [here - leftover * zero + total / size for here, zero in zip(z, at_zero, strict=True)]


def leftover_share(code: Code) -> Fraction:
    """ℓ: the share of words that say output 0 whatever the point."""
    return Fraction(code.leftover, code.total)


def _used(code: Code, sizes: Sizes) -> Booleans:
    return np.arange(code.points)[None, :] < np.asarray(sizes)[:, None]


def _by_value(offsets: Floats) -> Iterator[tuple[Floats, Booleans]]:
    """For each row its largest value and where it is, then the second, and so on until all rows are through."""
    order = np.argsort(-offsets, axis=-1)
    falling = np.take_along_axis(offsets, order, axis=-1)
    scale = float(np.abs(falling).max(initial=0.0))
    steps = np.diff(falling, axis=-1, prepend=falling[..., :1]) < -_ALIKE * scale
    number = np.empty(offsets.shape, dtype=np.int64)
    np.put_along_axis(number, order, np.cumsum(steps, axis=-1), axis=-1)
    for value in range(int(number.max(initial=-1)) + 1):
        here = number == value
        yield np.where(here, offsets, -np.inf).max(axis=-1, keepdims=True), here
