"""Search for cyclic codes with t base blocks of w numbers mod k that are as flat as possible.

Outputs are pairs (i, y), and point x favours those with ``x − y mod k ∈ D_i``. With
``S_j = Σ_i |FFT(D_i)_j|²``, the risk of the best linear unbiased estimate at uniform p is

    F · R(k, w, e),      F = mean_{j≠0} 1/S_j · t·w(k − w)/(k − 1) ≥ 1

where e stands for e^ε, and R is the function in Ye and Barg's bound ``min_w R(k, w, e)``, which no
ε-private response can beat. F is the *flatness*: it is 1 if and only if all S_j are equal, that is,
if the blocks are a difference family. For most sizes, no such family exists, so blocks are found by
search. The search moves one number at a time to the best of many positions. When no move helps, it
moves a few numbers at random and continues from there.

Blocks are part of a mechanism, so the search must find the same ones on every machine. Nothing
depends on floating-point rounding: cosines are integers in units of 1/B, with B a power of two;
quotients are rounded to integers, and all sums stay below 2^53. Doubles represent such integers
exactly, so the order of summation does not matter.

Reference: Ye and Barg (2018), for the bound and for block designs that attain it.
"""

import base64
import hashlib
import json
from collections.abc import Iterator
from functools import lru_cache
from importlib.resources import files
from math import exp, expm1, inf

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidContext
from sfumato.foundation.arrays import Floats

__all__ = [
    "best_sizes",
    "block_counts",
    "flatness",
    "package_sizes",
    "search",
    "search_blocks",
    "ye_barg_risk",
]

BaseBlocks = NDArray[np.int64]
"""Base blocks, one per row."""

MAX_STEPS = 4096
"""The maximum number of search steps, which take about 0.25 s for up to a thousand points."""

_MAX_EXPONENT = 700.0  # exp() overflows a float just above e^709
_MAX_POINTS = 1 << 16  # with more points, sums could exceed 2^53
_MAX_COST = 1 << 27  # maximum of points × size × blocks, the cost of the first transforms
_STEP_TERMS = 1 << 13  # the number of positions tried in one step × the number of frequencies
_MAX_RANDOM_MOVES = 4  # maximum number of random moves when no single move helps
_UNIT = 1 << 18  # the term of frequency j in the cost if S_j = t·w
_NEARLY_FLAT = 2.0**-12  # when no move helps, stop if the flatness is at most 1 plus this
_FLAT_ENOUGH = 2.0**-7  # the flatness minus 1 at which the search for a survey's blocks stops


def ye_barg_risk(points: int, size: int, epsilon: float) -> float:
    """Return the risk of flat blocks of w numbers mod k at uniform p, as in Ye and Barg's bound.

        R(k, w, e) = (k − 1)² (we + k − w)² / (k (e − 1)² w (k − w)),   e stands for e^ε

    >>> from math import log
    >>> round(ye_barg_risk(4, 2, log(3)), 12)
    9.0
    """
    k = points
    w = size
    ratio = k / expm1(epsilon) if epsilon < _MAX_EXPONENT else 0.0  # k/(e − 1)
    # (we + k − w)/(e − 1) = w + k/(e − 1) neither overflows nor loses digits.
    return (k - 1) ** 2 * (w + ratio) ** 2 / (k * w * (k - w))


def best_sizes(points: int, epsilon: float) -> list[int]:
    """Return the two w with the smallest ``R(k, w, e^ε)``, best first.

    R decreases up to w = k/(e^ε + 1) and increases from there, so the best two w are close to this
    optimum. For two points, there is only one w.

    >>> best_sizes(100, 1.0)
    [27, 26]
    """
    k = points
    e = exp(epsilon)
    below_optimum = int(k / (e + 1))
    nearby_sizes = range(max(below_optimum - 1, 1), min(max(below_optimum, 1) + 2, k - 1) + 1)
    return sorted(nearby_sizes, key=lambda w: ye_barg_risk(k, w, epsilon))[:2]


def flatness(base: BaseBlocks, points: int) -> float:
    """Return ``F = mean_{j≠0} 1/S_j · t·w(k−w)/(k−1)``, which is at least 1.

    Return ``inf`` if some S_j is 0, because p then cannot be estimated.

    >>> round(flatness(np.array([[0, 1, 3]]), 7), 12)  # a difference set
    1.0
    >>> flatness(np.array([[0, 2]]), 4)  # cannot tell 0 from 2
    inf
    """
    k = points
    t, w = base.shape
    indicators: Floats = np.zeros((t, k))
    indicators[np.arange(t)[:, None], base] = 1.0
    S = (np.abs(np.fft.fft(indicators)) ** 2).sum(axis=0)[1:]
    if S.min() <= 1e-9 * t * w:  # far above rounding errors, far below any usable code
        return inf
    return float((1 / S).mean() * t * w * (k - w) / (k - 1))


@lru_cache(maxsize=256)
def search_blocks(points: int, size: int, block_count: int) -> BaseBlocks:
    """Return base blocks ``D_i ⊂ Z_k``, each row in ascending order, as a read-only array.

    They are the same on every machine and in every version. The package ships with blocks of common
    sizes, found in longer searches by ``tools/search_codes.py``.

    >>> search_blocks(7, 3, 1).shape
    (1, 3)
    """
    is_in_range = 2 <= points <= _MAX_POINTS and 1 <= size < points and block_count >= 1
    if not is_in_range or points * size * block_count > _MAX_COST:
        raise InvalidContext(
            f"a search for blocks needs 2 to {_MAX_POINTS} points, a size from 1 to points − 1 and "
            f"at least one block, and the product of all three must be at most {_MAX_COST}; got "
            f"{points} points, size {size} and {block_count} blocks. For many points, use a "
            "Singer design."
        )
    packed_blocks = _package_blocks().get(f"{points} {size} {block_count}")
    if packed_blocks:
        base = unpack(packed_blocks, size)
    else:
        base = search(points, size, block_count, MAX_STEPS, _FLAT_ENOUGH)
    base.flags.writeable = False
    return base


def block_counts(points: int, size: int, output_limit: int) -> list[int]:
    """Return the numbers of blocks worth trying with at most ``output_limit`` outputs, ascending.

    These are the numbers for which the package contains blocks, the largest number that fits (at
    least 1), and 8 if it fits, because most codes with 8 blocks are within 1% of flat.

    >>> block_counts(500, 9, 8192)
    [8, 16]
    """
    max_count = max(output_limit // points, 1)
    counts = {min(8, max_count), max_count}
    for k, w, t in package_sizes():
        if (k, w) == (points, size) and t <= max_count:
            counts.add(t)
    return sorted(counts)


def package_sizes() -> list[tuple[int, int, int]]:
    """Return the ``(points, size, blocks)`` of all blocks that ship with the package."""
    sizes = []
    for key in _package_blocks():
        k, w, t = key.split()
        sizes.append((int(k), int(w), int(t)))
    return sizes


@lru_cache(maxsize=1)
def _package_blocks() -> dict[str, str]:
    """Return the packed blocks that ship with the package, keyed by ``"points size blocks"``."""
    text = files("sfumato.codes").joinpath("searched.json").read_text("utf-8")
    packed_blocks: dict[str, str] = json.loads(text)
    return packed_blocks


def pack(base: BaseBlocks) -> str:
    """Return blocks of numbers below 256 as Base64 text, one byte per number."""
    return base64.b64encode(base.astype(np.uint8).tobytes()).decode("ascii")


def unpack(text: str, size: int) -> BaseBlocks:
    """Return the blocks from a text that ``pack`` returned."""
    return np.frombuffer(base64.b64decode(text), dtype=np.uint8).reshape(-1, size).astype(np.int64)


def search(
    points: int, size: int, block_count: int, max_steps: int, tolerance: float = 0.0
) -> BaseBlocks:
    """Return the flattest blocks found in ``max_steps`` steps.

    With a ``tolerance``, stop at the first blocks whose flatness is at most ``1 + tolerance``.
    """
    draws = _random_draws(f"{points} {size} {block_count}")
    initial_blocks = [_shuffle(points, draws)[:size] for _ in range(block_count)]
    climb = _HillClimb(points, np.array(initial_blocks))
    target_cost = climb.cost_of_flatness(tolerance) if tolerance else 0
    best_blocks = climb.D.copy()
    best_cost = inf
    idle_step_count = 0
    order: list[int] = []
    for _ in range(max_steps):
        if idle_step_count >= size * block_count:  # no single move helps
            if climb.cost > best_cost:
                climb.restart(best_blocks.copy())
            else:
                best_blocks = climb.D.copy()
                best_cost = climb.cost
            if best_cost <= climb.nearly_flat_cost:
                break
            for _ in range(1 + _draw_below(_MAX_RANDOM_MOVES, draws)):
                climb.move_at_random(draws)
            idle_step_count = 0
        if not order:
            order = _shuffle(size * block_count, draws)
        i, m = divmod(order.pop(), size)
        idle_step_count = 0 if climb.step(i, m, draws) else idle_step_count + 1
        if climb.cost <= target_cost:
            break
    return np.sort(climb.D if climb.cost < best_cost else best_blocks, axis=1)


class _HillClimb:
    """The state of a search: the blocks D, their transforms, and S_j for j = 1 … k/2.

    All values are integers. ``cost`` is ``Σ_{j≠0} t·w/S_j`` in units of 1/_UNIT, with each term
    rounded.
    """

    def __init__(self, points: int, D: BaseBlocks) -> None:
        k = points
        t, w = D.shape
        # S_j is at most t·(w·B)², which must stay below 2^53.
        log_B = min((52 - (t * w * w).bit_length()) // 2, 16)
        self._waves = _Waves(k, log_B)
        self._k = k
        self._size = w
        self._B_squared = float(1 << 2 * log_B)
        self._max_tries = min(k, max(_STEP_TERMS // (k // 2), 8))
        reference_strength = t * w * self._B_squared  # S_j = t·w, in units of 1/B²
        # j and k − j have the same S_j, so each term counts twice, except j = k/2 for even k.
        self._numerators = np.full(k // 2, 2 * _UNIT * reference_strength)
        if k % 2 == 0:
            self._numerators[-1] = _UNIT * reference_strength
        # Smaller S_j are replaced by this one, to avoid dividing by 0.
        self._min_strength = reference_strength / _UNIT
        self.nearly_flat_cost = self.cost_of_flatness(_NEARLY_FLAT)
        self.restart(D)

    def cost_of_flatness(self, excess: float) -> int:
        """Return the cost of blocks with flatness ``1 + excess``; ``excess`` is a power of two."""
        k = self._k
        w = self._size
        return (_UNIT + int(_UNIT * excess)) * (k - 1) ** 2 // (k - w)

    def restart(self, D: BaseBlocks) -> None:
        """Restart from D, which later moves modify in place."""
        self.D = D
        self.cost = inf
        self._re = np.empty((len(D), self._k // 2))
        self._im = np.empty((len(D), self._k // 2))
        for i, block in enumerate(D):
            self._re[i], self._im[i] = self._waves.transform(block)
        self._S = (self._re**2 + self._im**2).sum(axis=0)

    def step(self, i: int, m: int, draws: Iterator[int]) -> bool:
        """Move entry m of block i to the best position tried; return whether it moved."""
        positions = self._positions_to_try(i, int(self.D[i, m]), draws)
        costs = self._move_costs(i, positions)
        best_index = int(np.argmin(costs))
        self.cost = float(costs[best_index])
        if best_index > 0:
            self._move(i, m, int(positions[best_index]))
        return best_index > 0

    def move_at_random(self, draws: Iterator[int]) -> None:
        """Move a randomly chosen number to a random free position."""
        i = _draw_below(self.D.shape[0], draws)
        m = _draw_below(self.D.shape[1], draws)
        free_positions = np.setdiff1d(np.arange(self._k), self.D[i])
        index = _draw_below(len(free_positions), draws)
        self._move(i, m, int(free_positions[index]))

    def _positions_to_try(self, i: int, a: int, draws: Iterator[int]) -> NDArray[np.int64]:
        """Return the positions to try for the number a in block i: a itself, then free positions.

        Try all free positions, or an arithmetic progression of them if there are too many.
        """
        positions = np.arange(self._k)
        if self._max_tries < self._k:
            first = _draw_below(self._k, draws)
            stride = 1 + _draw_below(self._k - 1, draws)
            positions = (first + stride * positions[: self._max_tries]) % self._k
        is_free = np.ones(self._k, dtype=np.bool_)
        is_free[self.D[i]] = False
        return np.concatenate([[a], positions[is_free[positions]]])

    def _move_costs(self, i: int, positions: NDArray[np.int64]) -> Floats:
        """Return the cost after moving a number of block i to each of the positions.

        The number is at the first position now. Adding b to a block with transform f changes
        ``|f|²`` to ``|f|² + 2 Re(f̄ ω^b) + 1``.
        """
        cos, sin = self._waves.rows_at(positions)
        re = self._re[i] - cos[0]
        im = self._im[i] - sin[0]
        S = self._S - self._re[i] ** 2 - self._im[i] ** 2 + re**2 + im**2 + self._B_squared
        terms = cos * (2 * re)
        terms += sin * (2 * im)
        terms += S
        np.maximum(terms, self._min_strength, out=terms)
        np.divide(self._numerators, terms, out=terms)
        np.rint(terms, out=terms)
        costs: Floats = terms.sum(axis=1)
        return costs

    def _move(self, i: int, m: int, b: int) -> None:
        cos, sin = self._waves.rows_at(np.array([self.D[i, m], b]))
        self._S -= self._re[i] ** 2 + self._im[i] ** 2
        self._re[i] += cos[1] - cos[0]
        self._im[i] += sin[1] - sin[0]
        self._S += self._re[i] ** 2 + self._im[i] ** 2
        self.D[i, m] = b


class _Waves:
    """Integers ``B cos(2πjx/k)`` and ``B sin(2πjx/k)`` for j = 1 … k/2, one row per position x."""

    def __init__(self, points: int, log_B: int) -> None:
        self._k = points
        self._cos, self._sin = _roots_of_unity(points, log_B)
        self._j = np.arange(1, points // 2 + 1)
        # Small tables (up to 4 MB) are precomputed; rows of larger ones are computed on demand.
        self._rows = self._compute(np.arange(points)) if points <= 1024 else None

    def rows_at(self, positions: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Return the cosine and sine rows at the given positions."""
        if self._rows is None:
            return self._compute(positions)
        cos, sin = self._rows
        return cos[positions], sin[positions]

    def transform(self, positions: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Return the transform of a set of positions: the sum of their rows.

        Rows are added in chunks to limit memory use.
        """
        re = np.zeros(len(self._j))
        im = np.zeros(len(self._j))
        for first in range(0, len(positions), 256):
            cos, sin = self.rows_at(positions[first : first + 256])
            re += cos.sum(axis=0)
            im += sin.sum(axis=0)
        return re, im

    def _compute(self, positions: NDArray[np.int64]) -> tuple[Floats, Floats]:
        angles = np.outer(positions, self._j) % self._k
        return self._cos[angles], self._sin[angles]


_PI = 0x3243F6A8885A308D313198A2E03707344  # in units of 2^−128


def _roots_of_unity(points: int, log_B: int) -> tuple[Floats, Floats]:
    """Return ``2^log_B · (cos, sin)(2πx/k)`` for x = 0 … k − 1, rounded.

    The computation uses integers in units of 2^−128, because floating-point cosines differ between
    processors.
    """
    one = 1 << 128
    angle = 2 * _PI // points
    step_cos, step_sin = _cos_and_sin(one, angle)
    half = one >> (log_B + 1)
    cos = np.empty(points)
    sin = np.empty(points)
    x = one
    y = 0
    for i in range(points):
        cos[i] = (x + half) >> (128 - log_B)
        sin[i] = (y + half) >> (128 - log_B)
        next_x = (x * step_cos - y * step_sin) >> 128
        y = (x * step_sin + y * step_cos) >> 128
        x = next_x
    return cos, sin


def _cos_and_sin(one: int, angle: int) -> tuple[int, int]:
    """Return the cosine and sine of a small angle from their series, in units of 2^−128."""
    cos_and_sin = [0, 0]
    term = one
    n = 0
    while term:
        cos_and_sin[n % 2] += -term if n & 2 else term
        n += 1
        term = term * angle // n >> 128
    return cos_and_sin[0], cos_and_sin[1]


def _random_draws(seed: str) -> Iterator[int]:
    """Yield pseudorandom integers below 2^64, from SHA-256 in counter mode.

    The stream does not depend on any library's generator, so it never changes.
    """
    counter = 0
    while True:
        digest = hashlib.sha256(f"searched blocks {seed} {counter}".encode()).digest()
        for start in range(0, 32, 8):
            yield int.from_bytes(digest[start : start + 8], "big")
        counter += 1


def _draw_below(bound: int, draws: Iterator[int]) -> int:
    """Return a pseudorandom non-negative integer below ``bound``."""
    return next(draws) * bound >> 64


def _shuffle(length: int, draws: Iterator[int]) -> list[int]:
    """Return the integers 0 … length − 1 in random order."""
    numbers = list(range(length))
    for last in range(length - 1, 0, -1):
        other = _draw_below(last + 1, draws)
        numbers[last], numbers[other] = numbers[other], numbers[last]
    return numbers
