"""Cyclic response: the sets of a point are a few base blocks, turned around a circle to where the point is."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import exp
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.codes.circle import circle_transform, from_circle_transform
from sfumato.codes.code import Code
from sfumato.errors import InvalidContext, NothingToLearn
from sfumato.foundation.arrays import Booleans, Floats, Words
from sfumato.foundation.canonical import Json, packed_u32
from sfumato.foundation.elimination import solve_integers
from sfumato.randomness.odds import Epsilon
from sfumato.randomness.thresholds import TwoLevels, two_levels

__all__ = ["CyclicCode", "CyclicDesign", "convolved", "correlated"]

_NEARLY_BLIND = 1e-9  # a frequency seen this much less than the mean one is not seen at all


@dataclass(frozen=True)
class CyclicDesign:
    """Base blocks ``D_0 … D_{t−1}``, w points each, on a circle of K points: a family of cyclic codes, one for each ε.

    >>> CyclicDesign(7, ((0, 1, 3),))(7, Fraction(1), 12).shared
    Fraction(1, 1)
    """

    circle: int
    base: tuple[tuple[int, ...], ...]
    kind: ClassVar[str] = "cyclic"

    def __post_init__(self) -> None:
        sizes = {len(block) for block in self.base}
        inside = all(0 <= d < self.circle for block in self.base for d in block)
        if (
            len(sizes) != 1
            or not inside
            or any(tuple(sorted(set(block))) != block for block in self.base)
        ):
            raise InvalidContext(
                "base blocks must be equally large sets of points of one circle, in ascending order."
            )
        if not 0 < sizes.pop() < self.circle:
            raise InvalidContext(
                "a base block must have some of the circle's points, and not all of them."
            )

    @classmethod
    def of_arrays(cls, circle: int, base: NDArray[np.int64]) -> "CyclicDesign":
        """The design whose base blocks are the rows of an array."""
        return cls(circle, tuple(tuple(sorted(row)) for row in np.atleast_2d(base).tolist()))

    def __call__(self, points: int, epsilon: Epsilon, word_bits: int = 64) -> "CyclicCode":
        """The code of this design for ε; ``points`` symbols must fit it."""
        if not isinstance(epsilon, Fraction):
            raise InvalidContext("cyclic response needs a finite ε; use a clear code.")
        b, r = len(self.base) * self.circle, len(self.base) * len(self.base[0])
        code = CyclicCode(self, two_levels(b, r, epsilon, word_bits), epsilon, word_bits)
        if points > self.circle or (points < self.circle and not code.balanced):
            raise InvalidContext(
                f"base blocks on a circle of {self.circle} points cannot serve {points} symbols: they must "
                f"{'be at most as many' if code.balanced else 'use every point, for pairs differ in what they share'}."
            )
        return code


class CyclicCode(Code):
    """Outputs ``(i, y)``, numbered ``i·K + y``, are turned base blocks: ``S_x = {(i, y) : x − y mod K ∈ D_i}``.

    ``Q((i, y)|x) = e/Z`` on S_x and ``1/Z`` off it, ``Z = t(we + K − w)``. A difference set (one base block in which
    every difference occurs equally often) is balanced, and may have points to spare; other base blocks see the
    circle's frequency j with strength ``S_j = Σ_i |FFT(D_i)_j|²`` and need every point.
    Guarantee: odds of at most e^ε between any two points and any output.
    Cost per report: one word, a division and a table. Error: within a few per cent of the least that is possible,
    where base blocks are nearly flat and ``w ≈ K/(e + 1)``. Reference: Ye and Barg (2018) for the bound, Singer
    (1938) for the sets; randomized response is ``D = {0}``.

    >>> code = CyclicDesign(7, ((0, 1, 3),))(7, Fraction(1), 12)
    >>> code.outputs, code.raised, code.shared, code.high, code.low
    (7, 3, Fraction(1, 1), 916, 337)
    """

    kind: ClassVar[str] = "cyclic"

    def __init__(
        self, design: CyclicDesign, levels: TwoLevels, epsilon: Epsilon, word_bits: int
    ) -> None:
        self.design = design
        t, w, K = len(design.base), len(design.base[0]), design.circle
        self.points, self.outputs, self.raised = K, t * K, t * w
        # On average over pairs; for a balanced code, of every pair.
        self.shared = Fraction(t * w * (w - 1), K - 1)
        self.high, self.low, self.leftover = levels.high, levels.low, levels.leftover
        self.word_bits = word_bits
        self._epsilon = float(epsilon)
        self._demand_whole()
        if (
            not self.balanced
            and self._strengths[1:].min() <= _NEARLY_BLIND * self._strengths[1:].mean()
        ):
            raise NothingToLearn("these base blocks cannot tell two mixtures of points apart.")

    @property
    def family(self) -> CyclicDesign:
        """The design."""
        return self.design

    def record(self) -> dict[str, Json]:
        """The integers of the channel, with the base blocks."""
        base = self.design.base
        return {
            **super().record(),
            "base": packed_u32(np.array(base).ravel()),
            "base_blocks": len(base),
        }

    # --- the sets -----------------------------------------------------------------------------------

    @cached_property
    def _member(self) -> Booleans:
        """``[d ∈ D_i]``, a row per base block."""
        return _member(self.design)

    @cached_property
    def _steps(self) -> tuple[Words, Words]:
        """For each place: how far to go on around the circle, and the first output of its base block."""
        K = self.points
        blocks, offsets = np.nonzero(self._member)
        other_blocks, other_offsets = np.nonzero(~self._member)
        back = np.concatenate([offsets, other_offsets])
        first = np.concatenate([blocks, other_blocks]) * K
        return ((K - back) % K).astype(np.uint64), first.astype(np.uint64)

    def place(self, point: Words, index: Words) -> Words:
        """``(i, x − d mod K)`` for the index-th pair of a base block i and a point d in it, then of points outside."""
        steps, first = self._steps
        position = index.view(np.int64)
        y = steps.take(position, mode="clip")
        y += point
        # Around the circle: below K the difference wraps to a huge number, and the smaller one is right.
        np.minimum(y, y - np.uint64(self.points), out=y)
        if len(self.design.base) > 1:
            y += first.take(position, mode="clip")
        return y

    def contains(self, point: Words | np.uint64, output: Words | np.uint64) -> Booleans:
        """``x − y mod K ∈ D_i``."""
        K = np.uint64(self.points)
        i, y = output // K, output % K
        return self._member[i.astype(np.int64), ((point + K - y) % K).astype(np.int64)]

    def favoured(self, point: int) -> Booleans:
        """``[x − y mod K ∈ D_i]`` for all outputs: each base block, read backwards around the circle from x on."""
        down_to_zero = self._member[:, point::-1]
        down_from_top = self._member[:, :point:-1]
        return np.concatenate([down_to_zero, down_from_top], axis=1).reshape(-1)

    # --- transforms ---------------------------------------------------------------------------------

    @cached_property
    def _spectrum(self) -> NDArray[np.complex128]:
        return circle_transform(self._member.astype(np.float64))

    @cached_property
    def _strengths(self) -> Floats:
        """``S_j = Σ_i |FFT(D_i)_j|²``."""
        return (np.abs(self._spectrum) ** 2).sum(axis=0)

    @cached_property
    def balanced(self) -> bool:
        """Whether every difference but 0 occurs equally often in the base blocks."""
        return np.unique(_differences(self.design)[1:]).size == 1

    def gather(self, weights: Floats) -> Floats:
        """A convolution with each base block."""
        return convolved(weights, self._spectrum, self.points)

    def spread(self, weights: Floats) -> Floats:
        """A correlation with each base block."""
        return correlated(weights, self._spectrum, self.points)

    @cached_property
    def kernels(self) -> Floats:
        """``a_i`` with ``Σ_{i,y} [x2 − y ∈ D_i] a_i(x − y) = [x = x2] − 1/K``, a row per base block.

        In frequencies ``â_i(j) = FFT(D_i)_j / S_j`` and 0 at j = 0: of all that do so, the one of least squares.
        """
        spectrum = self._spectrum.copy()
        spectrum[:, 1:] /= self._strengths[1:]
        spectrum[:, 0] = 0
        return from_circle_transform(spectrum, self.points)

    def exact_kernels(self) -> list[list[Fraction]]:
        """``kernels`` in fractions."""
        return _exact_kernels(self.design)

    def ideal_levels(self) -> tuple[float, float]:
        """``e/Z`` and ``1/Z``."""
        e = exp(self._epsilon)
        Z = self.raised * e + self.outputs - self.raised
        return e / Z, 1 / Z


def convolved(weights: Floats, spectrum: NDArray[np.complex128], K: int) -> Floats:
    """``Σ_{i,y} weights[…, i·K + y] a_i(x − y)`` for every x, from the transforms of the a_i."""
    transforms = circle_transform(weights.reshape(*weights.shape[:-1], len(spectrum), K))
    transforms *= spectrum
    return from_circle_transform(
        transforms[..., 0, :] if len(spectrum) == 1 else transforms.sum(axis=-2), K
    )


def correlated(weights: Floats, spectrum: NDArray[np.complex128], K: int) -> Floats:
    """``Σ_x weights[…, x] a_i(x − y)`` for every (i, y), from the transforms of the a_i."""
    turned = from_circle_transform(circle_transform(weights)[..., None, :] * spectrum.conj(), K)
    return turned.reshape(*weights.shape[:-1], len(spectrum) * K)


@lru_cache(maxsize=64)
def _member(design: CyclicDesign) -> Booleans:
    member = np.zeros((len(design.base), design.circle), dtype=np.bool_)
    for i, block in enumerate(design.base):
        member[i, list(block)] = True
    member.flags.writeable = False
    return member


@lru_cache(maxsize=64)
def _differences(design: CyclicDesign) -> NDArray[np.int64]:
    """How often each difference occurs in the base blocks: whole numbers, so a transform rounded to them is exact."""
    spectrum = circle_transform(_member(design).astype(np.float64))
    counts = from_circle_transform((np.abs(spectrum) ** 2).sum(axis=0), design.circle)
    return np.rint(counts).astype(np.int64)


@lru_cache(maxsize=16)
def _exact_kernels(design: CyclicDesign) -> list[list[Fraction]]:
    """Solve ``C c = δ_0 − 1/K`` for the circulant C of differences; then ``a_i = Σ_{d ∈ D_i} c(· − d)``."""
    K, C = design.circle, _differences(design).tolist()
    circulant = [[C[(x - y) % K] for y in range(K)] for x in range(K)]
    solution = solve_integers(circulant, [[K * (x == 0) - 1] for x in range(K)])
    if solution is None:
        raise NothingToLearn("these base blocks cannot tell two mixtures of points apart.")
    c, determinant = [row[0] for row in solution[0]], solution[1]
    return [_turned_sum(c, block, K * determinant) for block in design.base]


def _turned_sum(c: Sequence[int], block: Sequence[int], denominator: int) -> list[Fraction]:
    return [Fraction(sum(c[x - d] for d in block), denominator) for x in range(len(c))]
