"""Code scores: the amounts that a report adds to the estimates of the symbols in a group.

A *group* is a set of symbols that are encoded together: each symbol is a *point* of the group's
code. For point x, the code favours a set S_x of outputs. All scores are built from *contrasts* z,
which compare the symbols of a group with each other and do not depend on the group's total:
``Σ_x z(x, y) = 0`` and

    Σ_y P(y|x2) z(x, y) = [x = x2] − 1/k,
    P(y|x) = low + (high − low)·[y ∈ S_x],  as shares of all words

    balanced codes:   z(x, y) = ([y ∈ S_x] − mean of [y ∈ S_x] over the group) / Δ
    cyclic codes:     z(x, (i, y)) = a_i(x − y) / (high − low)          (``CyclicCode.kernels``)

Here k is the size of the group, Δ is ``Code.contrast`` and q is ``Code.overlap``. The mean
contrast over all outputs of the code is 0. Let ℓ be the share of leftover words, which map to
output 0 for every symbol, and let τ(y) be the contribution of report y to the group's total (1 for
a block). Then the corrected scores and those of Acharya et al. (2020), "the paper" from here on,
are both unbiased:

    corrected:   A[x, y] = z(x, y) − ℓ z(x, 0) + τ(y)/k                 (used by default)
    the paper's: A[x, y] = ([y ∈ S_x] − ℓ [0 ∈ S_x] − q) / Δ

Corrected scores add up to τ(y) for every report y; the paper's do so only on average. The
correction reduces the risk in a block by n·Var(Σp̂ − τ)/k for every distribution.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb

import numpy as np
from numpy.typing import NDArray

from sfumato.codes import Code
from sfumato.codes.cyclic import CyclicCode, circle_transform, convolve, correlate
from sfumato.errors import ContextMismatch
from sfumato.foundation.arrays import Booleans, Floats

__all__ = [
    "BatchScores",
    "MembershipKernel",
    "batch_scores",
    "exact_group_scores",
    "leftover_share",
    "paper_block_scores",
    "require_balanced",
    "row_sums",
    "zero_in_sets",
]

Sizes = Sequence[int] | NDArray[np.int64]

_TOLERANCE = 1e-12  # smaller differences, relative to the largest offset, are ignored


class ScoreKernel(ABC):
    """The part ``K(x, y)`` of a score that depends on both the symbol and the report.

    Arrays over outputs and points may have leading axes. ``used`` contains 1 for points that
    represent a symbol and 0 for the others.
    """

    @abstractmethod
    def moments(self, f: Floats, power: int) -> Floats:
        """Return ``Σ_y f(y) K(x, y)^power`` for every point x."""

    @abstractmethod
    def totals(self, weights: Floats) -> Floats:
        """Return ``Σ_x weights_x K(x, y)`` for every output y."""

    @abstractmethod
    def squares(self, used: Floats) -> Floats:
        """Return ``Σ_x K(x, y)²`` over the used points, for every output y."""

    @abstractmethod
    def maxima(self, offsets: Floats, sign: int) -> Floats:
        """Return the largest ``sign · K(x, y) + offsets[y]`` over all outputs y, for every x."""

    @abstractmethod
    def absolute_sums(self, used: Floats, offsets: Floats) -> Floats:
        """Return ``Σ_x |K(x, y) + offsets[y]|`` over the used points, for every output y."""


@dataclass(frozen=True)
class MembershipKernel(ScoreKernel):
    """``K(x, y) = gain · [y ∈ S_x]``."""

    code: Code
    gain: float

    def moments(self, f: Floats, power: int) -> Floats:
        """Return the moments with one transform: all powers of [y ∈ S_x] are equal."""
        return self.gain**power * self.code.gather(f)

    def totals(self, weights: Floats) -> Floats:
        """Return the totals with one transform."""
        return self.gain * self.code.spread(weights)

    def squares(self, used: Floats) -> Floats:
        """Return the squares with one transform: [y ∈ S_x] equals its square."""
        return self.gain**2 * self.code.spread(used)

    def maxima(self, offsets: Floats, sign: int) -> Floats:
        """Return the larger of two maxima: over the outputs in S_x, and over those outside it.

        Offsets have few distinct values. Try the values in descending order. For each value, one
        transform finds the points x for which an output inside S_x has that offset, and those for
        which an output outside S_x does. One or two transforms are almost always enough.
        """
        shape = (*offsets.shape[:-1], self.code.points)
        inside = np.full(shape, -np.inf)
        outside = np.full(shape, -np.inf)
        for value, has_value in _descending_values(offsets):
            inside_counts = self.code.gather(has_value.astype(np.float64))
            is_new = np.isinf(inside) & (inside_counts > 0.5)
            inside = np.where(is_new, value, inside)
            is_new = np.isinf(outside) & (inside_counts < row_sums(has_value) - 0.5)
            outside = np.where(is_new, value, outside)
            if not (np.isinf(inside).any() or np.isinf(outside).any()):
                break
        return np.maximum(sign * self.gain + inside, outside)

    def absolute_sums(self, used: Floats, offsets: Floats) -> Floats:
        """Return the sums. For each output there are only two distinct values to add."""
        inside_counts = self.code.spread(used)
        outside_counts = row_sums(used) - inside_counts
        return inside_counts * np.abs(self.gain + offsets) + outside_counts * np.abs(offsets)


@dataclass(frozen=True)
class CyclicKernel(ScoreKernel):
    """``K(x, (i, y)) = gain · a_i(x − y)`` for a cyclic code that uses all of its points."""

    code: CyclicCode
    gain: float

    def moments(self, f: Floats, power: int) -> Floats:
        """Return the convolution with powers of the kernels."""
        spectrum = circle_transform((self.gain * self.code.kernels) ** power)
        return convolve(f, spectrum, self.code.points)

    def totals(self, weights: Floats) -> Floats:
        """Return the correlation with the kernels."""
        spectrum = circle_transform(self.gain * self.code.kernels)
        return correlate(weights, spectrum, self.code.points)

    def squares(self, used: Floats) -> Floats:
        """Return the sums, which do not vary within a base block because every point is used."""
        by_block = ((self.gain * self.code.kernels) ** 2).sum(axis=-1)
        by_output = np.repeat(by_block, self.code.points)
        return np.broadcast_to(by_output, (*used.shape[:-1], self.code.outputs))

    def maxima(self, offsets: Floats, sign: int) -> Floats:
        """Return the maxima, which are equal for all points.

        Over the outputs, each point takes all values of all kernels. Offsets must be constant
        within each base block.
        """
        by_block = self._split_blocks(offsets).max(axis=-1)
        peaks = (sign * self.gain * self.code.kernels).max(axis=1)
        maximum = (by_block + peaks).max(axis=-1, keepdims=True)
        return np.broadcast_to(maximum, (*offsets.shape[:-1], self.code.points))

    def absolute_sums(self, used: Floats, offsets: Floats) -> Floats:
        """Return the sums over the kernel of each base block.

        Where offsets differ within a base block, add their difference. The sums are then upper
        bounds.
        """
        by_block = self._split_blocks(offsets)
        first_offsets = by_block[..., :1]
        sums = row_sums(np.abs(self.gain * self.code.kernels + first_offsets))
        sums = sums + self.code.points * np.abs(by_block - first_offsets)
        return sums.reshape(offsets.shape)

    def _split_blocks(self, offsets: Floats) -> Floats:
        """Split the last axis in two: base blocks, and the outputs in each block."""
        return offsets.reshape(*offsets.shape[:-1], -1, self.code.points)


@dataclass(frozen=True)
class BatchScores:
    """``A[x, y] = K(x, y) + offsets[j, y] + shifts[j, x]`` for groups j that share a code.

    Arrays over reports have shape ``(groups, outputs)``; arrays over symbols have shape
    ``(groups, points)``. ``used`` is a mask of the points that represent a symbol of each group.
    """

    kernel: ScoreKernel
    used: Booleans
    offsets: Floats
    shifts: Floats

    def moments(self, f: Floats, power: int) -> Floats:
        """Return ``Σ_y f(y) A[x, y]^power``, by expanding ``((K + g) + h)^power``.

        Here ``g(y)`` are the offsets and ``h(x)`` the shifts.
        """
        weights = [f]  # weights[i] is f·g^i
        for _ in range(power):
            weights.append(weights[-1] * self.offsets)
        total = np.zeros_like(self.shifts)
        for i in range(power + 1):
            # Σ f (K + g)^i
            inner = row_sums(weights[i])
            for j in range(1, i + 1):
                inner = inner + comb(i, j) * self.kernel.moments(weights[i - j], j)
            total = total + comb(power, i) * self.shifts ** (power - i) * inner
        return total

    def totals(self, weights: Floats) -> Floats:
        """Return ``Σ_x weights_x A[x, y]``; unused points must have weight 0."""
        constant = self.offsets * row_sums(weights)
        return self.kernel.totals(weights) + constant + row_sums(weights * self.shifts)

    def squares(self) -> Floats:
        """Return ``Σ_x A[x, y]²`` over the symbols of the group."""
        g = self.offsets
        h = self.shifts
        used = self.used.astype(np.float64)
        constant = g * g * row_sums(used) + 2 * g * row_sums(used * h)
        constant = constant + row_sums(used * h * h)
        squares = self.kernel.squares(used)
        with_offsets = 2 * g * self.kernel.totals(used)
        with_shifts = 2 * self.kernel.totals(used * h)
        return squares + with_offsets + with_shifts + constant

    def extremes(self) -> tuple[Floats, Floats]:
        """Return the largest and the smallest ``A[x, y]`` over all outputs y, for every point x."""
        highest = self.kernel.maxima(self.offsets, 1)
        lowest = -self.kernel.maxima(-self.offsets, -1)
        return highest + self.shifts, lowest + self.shifts

    def absolute_sums(self) -> Floats:
        """Return an upper bound on ``Σ_x |A[x, y]|`` for every y.

        The bound is exact if there are no leftover words.
        """
        used = self.used.astype(np.float64)
        shift_sums = row_sums(np.abs(self.shifts * used))
        return self.kernel.absolute_sums(used, self.offsets) + shift_sums


def paper_block_scores(code: Code, sizes: Sizes) -> BatchScores:
    """Return the paper's scores for blocks, which are not corrected."""
    require_balanced(code)
    used = _points_in_use(code, sizes)
    offsets = np.full((len(used), code.outputs), -float(code.overlap / code.contrast))
    leftover_shift = -float(leftover_share(code) / code.contrast)
    shifts = np.where(zero_in_sets(code), leftover_shift, 0.0)
    kernel = MembershipKernel(code, float(1 / code.contrast))
    return BatchScores(kernel, used, offsets, shifts[None, :])


def require_balanced(code: Code) -> None:
    """Raise ``ContextMismatch`` for an unbalanced code, which would bias the paper's estimator."""
    if not code.is_balanced:
        raise ContextMismatch(
            "the estimator of Acharya et al. (2020) needs a code in which any two points share the "
            "same number of outputs."
        )


def batch_scores(
    code: Code,
    sizes: Sizes,
    *,
    rise: Fraction,
    leftover: Fraction | Floats,
    totals: float | Floats = 1.0,
) -> BatchScores:
    """Return the corrected scores for groups that share a code.

    ``rise`` is ``high − low`` as a share of all words. ``leftover`` is the share of words that map
    to the group's output 0 for every symbol. ``totals`` is the contribution of a report to the
    group's total. ``leftover`` and ``totals`` are numbers, or columns with an entry for each group.
    """
    used = _points_in_use(code, sizes)
    group_size = np.maximum(row_sums(used), 1)
    kernel, offsets = _contrast_kernel(code, used, rise)
    zero_indicator = np.zeros((1, code.outputs))
    zero_indicator[0, 0] = 1.0
    z_at_zero = np.where(used, kernel.moments(zero_indicator, 1) + offsets[:, :1], 0.0)
    leftover_shares = leftover if isinstance(leftover, np.ndarray) else float(leftover)
    return BatchScores(kernel, used, offsets + totals / group_size, -leftover_shares * z_at_zero)


def _contrast_kernel(code: Code, used: Booleans, rise: Fraction) -> tuple[ScoreKernel, Floats]:
    """Return the contrasts z, as a kernel and an offset for each report."""
    if isinstance(code, CyclicCode) and not code.is_balanced:
        if not used.all():
            raise ContextMismatch(
                "a cyclic code that is not balanced must have a symbol for every point."
            )
        return CyclicKernel(code, float(1 / rise)), np.zeros((len(used), code.outputs))
    gain = float(1 / ((code.raised - code.shared) * rise))
    group_size = np.maximum(row_sums(used), 1)
    offsets = -gain * code.spread(used.astype(np.float64)) / group_size
    return MembershipKernel(code, gain), offsets


def exact_group_scores(
    code: Code,
    size: int,
    output: int | None,
    *,
    rise: Fraction,
    leftover: Fraction,
    total: Fraction,
) -> list[Fraction]:
    """Return a group's corrected scores for one report.

    ``output`` is the report's output in the group's code, or ``None`` for any other report.
    """
    if size == 0:
        return []
    z_at_zero = _exact_contrasts(code, size, 0, rise)
    z = [Fraction(0)] * size
    if output is not None:
        z = _exact_contrasts(code, size, output, rise)
    return [a - leftover * b + total / size for a, b in zip(z, z_at_zero, strict=True)]


def _exact_contrasts(code: Code, size: int, output: int, rise: Fraction) -> list[Fraction]:
    """Return ``z(·, output)`` as fractions."""
    if isinstance(code, CyclicCode) and not code.is_balanced:
        i, y = divmod(output, code.points)
        kernel = code.exact_kernels()[i]
        return [kernel[(x - y) % code.points] / rise for x in range(size)]
    is_in_set = code.contains(np.arange(size, dtype=np.uint64), np.uint64(output)).tolist()
    mean_membership = Fraction(sum(is_in_set), size)
    contrast = (code.raised - code.shared) * rise
    return [(int(in_set) - mean_membership) / contrast for in_set in is_in_set]


def leftover_share(code: Code) -> Fraction:
    """Return ℓ: the share of words that map to output 0 for every point."""
    return Fraction(code.leftover, code.denominator)


def zero_in_sets(code: Code) -> Booleans:
    """Return a mask of the points x with ``0 ∈ S_x``."""
    return code.contains(np.arange(code.points, dtype=np.uint64), np.uint64(0))


def _points_in_use(code: Code, sizes: Sizes) -> Booleans:
    """Return a mask of the points that represent a symbol, with one row per group."""
    return np.arange(code.points)[None, :] < np.asarray(sizes)[:, None]


def row_sums(table: Floats | Booleans) -> Floats:
    """Return the sums over the last axis, as a column."""
    return table.sum(axis=-1, keepdims=True)


def _descending_values(offsets: Floats) -> Iterator[tuple[Floats, Booleans]]:
    """Yield the distinct values of each row, largest first, with masks of the equal entries.

    Stop when no row has values left. Until then, an exhausted row yields −inf and an empty mask.
    """
    tolerance = _TOLERANCE * float(np.abs(offsets).max(initial=0.0))
    remaining = offsets.copy()
    while np.isfinite(remaining).any():
        largest = remaining.max(axis=-1, keepdims=True)
        has_value = np.isfinite(remaining) & (remaining >= largest - tolerance)
        yield largest, has_value
        remaining[has_value] = -np.inf
