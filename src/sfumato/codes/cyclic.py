"""Cyclic response: outputs are rotated base blocks, and a point favours those that contain it."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import gcd, isqrt
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.codes.code import Code
from sfumato.errors import InvalidContext, InvalidSurvey, NothingToLearn
from sfumato.foundation.arrays import Booleans, Floats, PerPerson, Words
from sfumato.foundation.canonical import Fields, Json, is_count, pack_u32, unpack_u32
from sfumato.foundation.elementwise import look_up, subtract_if_reached
from sfumato.foundation.elimination import solve_integers
from sfumato.foundation.notebook import facts_html
from sfumato.randomness import Epsilon, TwoLevels, two_levels

__all__ = [
    "CyclicCode",
    "CyclicDesign",
    "circle_transform",
    "convolve",
    "correlate",
    "from_circle_transform",
]

Spectrum = NDArray[np.complex128]

_MIN_RELATIVE_STRENGTH = 1e-9  # a frequency this weak relative to the mean cannot be estimated
_INDISTINGUISHABLE_MESSAGE = "these base blocks cannot tell two mixtures of points apart."
_MIN_TORUS_POINTS = 1 << 20  # with at least this many, a 2-D torus transform is faster


@dataclass(frozen=True)
class CyclicDesign:
    """A family of cyclic codes, one for each ε.

    ``base`` contains the base blocks ``D_0 … D_{t−1}``, each with w of the circle's K points.

    >>> CyclicDesign(7, ((0, 1, 3),))(7, Fraction(1), 12).shared
    Fraction(1, 1)
    """

    circle_size: int
    base: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        sizes = {len(block) for block in self.base}
        if len(sizes) != 1 or not all(self._is_ascending_set(block) for block in self.base):
            raise InvalidContext(
                "base blocks must be sets of points on the circle, all of the same size and in "
                "ascending order."
            )
        if not 0 < sizes.pop() < self.circle_size:
            raise InvalidContext(
                "a base block must contain some, but not all, of the circle's points."
            )

    def _repr_html_(self) -> str:
        """Return the size of the design as HTML, for notebooks."""
        blocks = f"{len(self.base)} of {len(self.base[0])} points each"
        facts = {"circle": f"{self.circle_size:,} points", "base blocks": blocks}
        return facts_html("CyclicDesign", facts)

    def _is_ascending_set(self, block: tuple[int, ...]) -> bool:
        is_in_range = all(0 <= d < self.circle_size for d in block)
        return is_in_range and tuple(sorted(set(block))) == block

    @classmethod
    def from_base_blocks(cls, circle_size: int, base: NDArray[np.int64]) -> "CyclicDesign":
        """Return the design whose base blocks are the rows of an array."""
        return cls(circle_size, tuple(tuple(sorted(row)) for row in np.atleast_2d(base).tolist()))

    def __call__(self, points: int, epsilon: Epsilon, word_bits: int = 64) -> "CyclicCode":
        """Return the code for ε; raise ``InvalidContext`` if it cannot serve ``points`` symbols.

        An unbalanced design needs a symbol for every point of the circle.
        """
        if not isinstance(epsilon, Fraction):
            raise InvalidContext("cyclic response needs a finite ε. For infinite ε, use ClearCode.")
        outputs = len(self.base) * self.circle_size
        raised = len(self.base) * len(self.base[0])
        levels = two_levels(outputs, raised, epsilon, word_bits)
        code = CyclicCode(self, levels, epsilon, word_bits)
        if not code.can_serve(points):
            quantifier = "at most" if code.is_balanced else "exactly"
            raise InvalidContext(
                f"base blocks on a circle of {self.circle_size} points cannot serve {points} "
                f"symbols: they serve {quantifier} {self.circle_size}."
            )
        return code


class CyclicCode(Code):
    """Outputs ``(i, y)`` are rotated base blocks: ``S_x = {(i, y) : x − y mod K ∈ D_i}``.

    Output ``(i, y)`` is represented by ``i·K + y``. ``Q((i, y)|x)`` is ``e/Z`` inside S_x and
    ``1/Z`` outside, with ``Z = t(we + K − w)``, where e stands for e^ε. If every nonzero
    difference occurs equally often in the base blocks, the code is balanced, and may leave points
    unused. Otherwise, it must use every point. Reports carry information about frequency j around
    the circle in proportion to its strength ``S_j = Σ_i |FFT(D_i)_j|²``.
    Randomized response is the case ``D = {0}``.
    Guarantee: odds of at most e^ε between any two points, for every output.
    Cost per report: one word, a division and a table lookup. Error: within a few percent of the
    minimum, if the base blocks are nearly flat and ``w ≈ K/(e + 1)``. Reference: Ye and Barg
    (2018) for the bound, Singer (1938) for the sets.

    >>> code = CyclicDesign(7, ((0, 1, 3),))(7, Fraction(1), 12)
    >>> code.outputs, code.raised, code.shared, code.high, code.low
    (7, 3, Fraction(1, 1), 916, 337)
    """

    kind: ClassVar[str] = "cyclic"

    def __init__(
        self, design: CyclicDesign, levels: TwoLevels, epsilon: Epsilon, word_bits: int
    ) -> None:
        self.design = design
        self._membership = _membership(design)
        t = len(design.base)
        w = len(design.base[0])
        K = design.circle_size
        self.points = K
        self.outputs = t * K
        self.raised = t * w
        # The mean over all pairs of points. In a balanced code, all pairs share this many outputs.
        self.shared = Fraction(t * w * (w - 1), K - 1)
        self._set_levels(levels, epsilon, word_bits)
        if not self.is_balanced:
            strengths = self._strengths[1:]
            if strengths.min() <= _MIN_RELATIVE_STRENGTH * strengths.mean():
                raise NothingToLearn(_INDISTINGUISHABLE_MESSAGE)

    @property
    def family(self) -> CyclicDesign:
        """The design, which builds such codes for any word length and ε."""
        return self.design

    def to_record(self) -> dict[str, Json]:
        """Return the channel's integers and the base blocks as plain data."""
        base = self.design.base
        return {
            **super().to_record(),
            "base": pack_u32(np.array(base).ravel()),
            "base_blocks": len(base),
        }

    @classmethod
    def from_record(cls, record: Fields, epsilon: Epsilon) -> Self:
        """Return the code stored in a record."""
        fields, levels = cls._read_fields(record, ("base", "base_blocks"))
        base = unpack_u32(fields["base"], "base", fields["points"])
        t = fields["base_blocks"]
        if not is_count(t) or t == 0 or base.size == 0 or base.size % t:
            raise InvalidSurvey("base must contain base_blocks blocks of equal size.")
        design = CyclicDesign.from_base_blocks(fields["points"], base.reshape(t, -1))
        return cls(design, levels, epsilon, fields["word_bits"])

    # --- the sets --------------------------------------------------------------------------------

    @cached_property
    def _steps_and_first_outputs(self) -> tuple[Words, Words]:
        """For each index, the number of steps around the circle, and its block's first output."""
        K = self.points
        blocks, offsets = np.nonzero(self._membership)
        other_blocks, other_offsets = np.nonzero(~self._membership)
        steps_back = np.concatenate([offsets, other_offsets])
        first_outputs = np.concatenate([blocks, other_blocks]) * K
        return ((K - steps_back) % K).astype(np.uint64), first_outputs.astype(np.uint64)

    def output_at(self, point: PerPerson, index: PerPerson) -> PerPerson:
        """Return the output ``(i, x − d mod K)``: first those with d in D_i, then the others."""
        steps, first_outputs = self._steps_and_first_outputs
        y = look_up(steps, index, clip=True)
        y += point
        y = subtract_if_reached(y, self.points)
        if len(self.design.base) > 1:
            y += look_up(first_outputs, index, clip=True)
        return y

    def contains(self, point: Words | np.uint64, output: Words | np.uint64) -> Booleans:
        """Return whether ``x − y mod K ∈ D_i``."""
        K = np.uint64(self.points)
        i = output // K
        y = output % K
        return self._membership[i.astype(np.int64), ((point + K - y) % K).astype(np.int64)]

    def membership(self, point: int) -> Booleans:
        """Return a mask of the outputs in S_point.

        It is the mask of each base block, read backwards around the circle from the point.
        """
        down_to_zero = self._membership[:, point::-1]
        down_from_top = self._membership[:, :point:-1]
        return np.concatenate([down_to_zero, down_from_top], axis=1).reshape(-1)

    # --- transforms ------------------------------------------------------------------------------

    @cached_property
    def _spectrum(self) -> Spectrum:
        return circle_transform(self._membership.astype(np.float64))

    @cached_property
    def _strengths(self) -> Floats:
        """``S_j = Σ_i |FFT(D_i)_j|²``."""
        return (np.abs(self._spectrum) ** 2).sum(axis=0)

    @cached_property
    def is_balanced(self) -> bool:
        """Whether every nonzero difference occurs equally often in the base blocks."""
        return np.unique(_count_differences(self.design)[1:]).size == 1

    def gather(self, weights: Floats) -> Floats:
        """Return the sum of convolutions with the base blocks."""
        return convolve(weights, self._spectrum, self.points)

    def spread(self, weights: Floats) -> Floats:
        """Return the correlation with each base block."""
        return correlate(weights, self._spectrum, self.points)

    @cached_property
    def kernels(self) -> Floats:
        """The kernels a_i, one per row: ``Σ_{i,y} [x2 − y ∈ D_i] a_i(x − y) = [x = x2] − 1/K``.

        This is the solution with the smallest sum of squares. In the frequency domain,
        ``â_i(j) = FFT(D_i)_j / S_j`` for j ≠ 0 and ``â_i(0) = 0``.
        """
        spectrum = self._spectrum.copy()
        spectrum[:, 1:] /= self._strengths[1:]
        spectrum[:, 0] = 0
        return from_circle_transform(spectrum, self.points)

    def exact_kernels(self) -> list[list[Fraction]]:
        """Return ``kernels`` as exact fractions."""
        return _exact_kernels(self.design)


# --- transforms on a circle of K points, which turn convolutions into products --------------------
#
# For most circles this is the real Fourier transform. If a large circle has ``K = a·b`` points and
# a and b are coprime, point i maps to the point ``(i mod a, i mod b)`` of a torus, and rotating the
# circle rotates the torus in both directions. So the two-dimensional transform also turns
# convolutions into products. Its rows and columns fit in the cache, which makes it twice as fast
# at 2^24 points. Reference: Good (1958), Thomas (1963).
#
# In either case, entry 0 of a transform is the sum of the values.


def circle_transform(values: Floats) -> Spectrum:
    """Return the transform of the values along the last axis."""
    K = values.shape[-1]
    a, b = _torus_sides(K)
    if a == 1:
        return np.fft.rfft(values)
    on_torus = np.empty(values.shape)
    on_torus[..., _torus_positions(a, b)] = values
    transform = np.fft.rfft2(on_torus.reshape(*values.shape[:-1], a, b))
    return transform.reshape(*values.shape[:-1], -1)


def from_circle_transform(transform: Spectrum, K: int) -> Floats:
    """Return the inverse of ``circle_transform`` along the last axis.

    >>> values = np.array([3.0, 1, 4, 1, 5])
    >>> from_circle_transform(circle_transform(values), 5).round(9)
    array([3., 1., 4., 1., 5.])
    """
    a, b = _torus_sides(K)
    if a == 1:
        return np.fft.irfft(transform, K)
    on_torus = np.fft.irfft2(transform.reshape(*transform.shape[:-1], a, -1), (a, b))
    return on_torus.reshape(*transform.shape[:-1], K).take(_torus_positions(a, b), axis=-1)


@lru_cache(maxsize=64)
def _torus_sides(K: int) -> tuple[int, int]:
    """Return the sides of the torus, shorter side first, as close to square as possible.

    Return ``(1, K)`` if the transform should stay on the circle.
    """
    if K >= _MIN_TORUS_POINTS:
        for a in range(isqrt(K), isqrt(K) // 16, -1):
            if K % a == 0 and gcd(a, K // a) == 1:
                return a, K // a
    return 1, K


@lru_cache(maxsize=2)
def _torus_positions(a: int, b: int) -> NDArray[np.intp]:
    """Return the row-major position on the torus of each point of the circle."""
    i = np.arange(a * b)
    positions = i % a
    positions *= b
    positions += i % b
    positions.flags.writeable = False
    return positions


def convolve(weights: Floats, spectrum: Spectrum, K: int) -> Floats:
    """Return ``Σ_{i,y} weights[…, i·K + y] a_i(x − y)`` for every x.

    ``spectrum`` contains the transform of each a_i.
    """
    transforms = circle_transform(weights.reshape(*weights.shape[:-1], len(spectrum), K))
    transforms *= spectrum
    total = transforms[..., 0, :] if len(spectrum) == 1 else transforms.sum(axis=-2)
    return from_circle_transform(total, K)


def correlate(weights: Floats, spectrum: Spectrum, K: int) -> Floats:
    """Return ``Σ_x weights[…, x] a_i(x − y)`` for every (i, y).

    ``spectrum`` contains the transform of each a_i.
    """
    transforms = circle_transform(weights)[..., None, :] * spectrum.conj()
    correlations = from_circle_transform(transforms, K)
    return correlations.reshape(*weights.shape[:-1], len(spectrum) * K)


@lru_cache(maxsize=64)
def _membership(design: CyclicDesign) -> Booleans:
    """Return the mask ``[d ∈ D_i]``, one row per base block."""
    membership = np.zeros((len(design.base), design.circle_size), dtype=np.bool_)
    for i, block in enumerate(design.base):
        membership[i, list(block)] = True
    membership.flags.writeable = False
    return membership


@lru_cache(maxsize=64)
def _count_differences(design: CyclicDesign) -> NDArray[np.int64]:
    """Return how many times each difference of two members occurs in the base blocks.

    The counts are integers, so rounding the inverse transform makes them exact.
    """
    spectrum = circle_transform(_membership(design).astype(np.float64))
    counts = from_circle_transform((np.abs(spectrum) ** 2).sum(axis=0), design.circle_size)
    return np.rint(counts).astype(np.int64)


@lru_cache(maxsize=16)
def _exact_kernels(design: CyclicDesign) -> list[list[Fraction]]:
    """Return ``a_i = Σ_{d ∈ D_i} c(· − d)``.

    Here c solves ``C c = δ_0 − 1/K``, where C is the circulant matrix of difference counts.
    """
    K = design.circle_size
    C = _count_differences(design).tolist()
    circulant = [[C[(x - y) % K] for y in range(K)] for x in range(K)]
    solution = solve_integers(circulant, [[K * (x == 0) - 1] for x in range(K)])
    if solution is None:
        raise NothingToLearn(_INDISTINGUISHABLE_MESSAGE)
    rows, determinant = solution
    c = [row[0] for row in rows]
    kernels = []
    for block in design.base:
        sums = [sum(c[x - d] for d in block) for x in range(K)]
        kernels.append([Fraction(total, K * determinant) for total in sums])
    return kernels
