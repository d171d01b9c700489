"""Searched cyclic codes: t base blocks of w numbers mod k, as flat as a search can make them.

Outputs are pairs (i, y), and point x favours those with ``x − y mod k ∈ D_i``. With
``S_j = Σ_i |FFT(D_i)_j|²``, the risk of the best linear unbiased estimate at uniform p is

    F · R(k, w, e),      F = mean_{j≠0} 1/S_j · t·w(k − w)/(k − 1) ≥ 1

where R is the term of w in the bound of Ye and Barg, ``min_w R(k, w, e)``, which no ε-private
response beats. F is the *flatness*: it is 1 if and only if all S_j are equal, that is, if the
blocks are a difference family. Most sizes have no such family, so blocks are searched. The search
moves one number after another to the best of many places. When no move helps any more, it moves a
few numbers at random and continues from there.

Blocks are part of a mechanism, so the search must find the same ones on every machine. Nothing
depends on the rounding of floats: cosines are integers in units of 1/B, quotients are rounded to
integers, and all sums stay below 2^53. Doubles represent such integers exactly, so the order of
summation does not matter.

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

STEPS = 4096
"""The length of a search: about a quarter of a second for up to a thousand points."""

_MAX_EXPONENT = 700.0  # e^700 is close to the largest float
_MAX_POINTS = 1 << 16  # with more points, sums could exceed 2^53
_MAX_COST = 1 << 27  # points × size × blocks: the cost of the first transforms
_STEP_TERMS = 1 << 13  # places tried in one step × frequencies
_MAX_RANDOM_MOVES = 4  # when no move helps
_UNIT = 1 << 18  # of the cost: the term of j if S_j = t·w
_NEARLY_FLAT = 2.0**-12  # when no move helps, a search this close to the least cost ends
_FLAT_ENOUGH = 2.0**-7  # at design time, a search ends as soon as it is this close


def ye_barg_risk(points: int, size: int, epsilon: float) -> float:
    """Return the risk at uniform p of flat blocks of w numbers out of k, in Ye and Barg's bound.

        R(k, w, e) = (k − 1)² (we + k − w)² / (k (e − 1)² w (k − w)),   e = e^ε

    >>> from math import log
    >>> round(ye_barg_risk(4, 2, log(3)), 12)
    9.0
    """
    k = points
    w = size
    spread = k / expm1(epsilon) if epsilon < _MAX_EXPONENT else 0.0  # k/(e − 1)
    # (we + k − w)/(e − 1) = w + k/(e − 1) neither overflows nor loses digits.
    return (k - 1) ** 2 * (w + spread) ** 2 / (k * w * (k - w))


def best_sizes(points: int, epsilon: float) -> list[int]:
    """Return the two w with the least ``R(k, w, e^ε)``, the best first; for two points, the only w.

    R falls until w = k/(e + 1) and rises from there, so the best are next to it.

    >>> best_sizes(100, 1.0)
    [27, 26]
    """
    k = points
    e = exp(epsilon)
    least = int(k / (e + 1))
    near = range(max(least - 1, 1), min(max(least, 1) + 2, k - 1) + 1)
    return sorted(near, key=lambda w: ye_barg_risk(k, w, epsilon))[:2]


def flatness(base: BaseBlocks, points: int) -> float:
    """Return ``F = mean_{j≠0} 1/S_j · t·w(k−w)/(k−1)``, at least 1.

    Return ``inf`` if some S_j is 0, so that p cannot be estimated.

    >>> round(flatness(np.array([[0, 1, 3]]), 7), 12)  # a difference set
    1.0
    >>> flatness(np.array([[0, 2]]), 4)  # favours 0 and 2 alike
    inf
    """
    k = points
    t, w = base.shape
    indicators: Floats = np.zeros((t, k))
    indicators[np.arange(t)[:, None], base] = 1.0
    S = (np.abs(np.fft.fft(indicators)) ** 2).sum(axis=0)[1:]
    if S.min() <= 1e-9 * t * w:  # far above rounding, far below what a usable code has
        return inf
    return float((1 / S).mean() * t * w * (k - w) / (k - 1))


@lru_cache(maxsize=256)
def search_blocks(points: int, size: int, blocks: int) -> BaseBlocks:
    """Return base blocks ``D_i ⊂ Z_k``, each row in ascending order, as a read-only array.

    They are the same on every machine and in every version. Blocks of common sizes come with the
    package: ``tools/search_codes.py`` searched longer for them.

    >>> search_blocks(7, 3, 1).shape
    (1, 3)
    """
    in_range = 2 <= points <= _MAX_POINTS and 1 <= size < points and blocks >= 1
    if not in_range or points * size * blocks > _MAX_COST:
        raise InvalidContext(
            f"searched blocks need 2 to {_MAX_POINTS} points, a size from 1 to points − 1 and at "
            f"least one block, with a product of at most {_MAX_COST}; got {points} points, size "
            f"{size} and {blocks} blocks. For many points, use a Singer design."
        )
    stored = _package_blocks().get(f"{points} {size} {blocks}")
    base = unpack(stored, size) if stored else search(points, size, blocks, STEPS, _FLAT_ENOUGH)
    base.flags.writeable = False
    return base


def block_counts(points: int, size: int, outputs: int) -> list[int]:
    """Return the numbers t of blocks worth trying with at most ``outputs`` outputs, fewest first.

    These are the numbers that come with the package; 8, which leaves few codes more than 1 % from
    flat; and as many as fit.

    >>> block_counts(500, 9, 8192)
    [8, 16]
    """
    most = max(outputs // points, 1)
    counts = {min(8, most), most}
    for k, w, t in package_sizes():
        if (k, w) == (points, size) and t <= most:
            counts.add(t)
    return sorted(counts)


def package_sizes() -> list[tuple[int, int, int]]:
    """Return the (points, size, blocks) that come with the package."""
    sizes = []
    for name in _package_blocks():
        k, w, t = name.split()
        sizes.append((int(k), int(w), int(t)))
    return sizes


@lru_cache(maxsize=1)
def _package_blocks() -> dict[str, str]:
    """Return the stored blocks, by ``"points size blocks"``."""
    text = files("sfumato.codes").joinpath("searched.json").read_text("utf-8")
    stored: dict[str, str] = json.loads(text)
    return stored


def pack(base: BaseBlocks) -> str:
    """Encode blocks of numbers below 256 as text, one byte per number."""
    return base64.b64encode(base.astype(np.uint8).tobytes()).decode("ascii")


def unpack(text: str, size: int) -> BaseBlocks:
    """Decode the text that ``pack`` returns."""
    return np.frombuffer(base64.b64decode(text), dtype=np.uint8).reshape(-1, size).astype(np.int64)


def search(points: int, size: int, blocks: int, steps: int, enough: float = 0.0) -> BaseBlocks:
    """Return the flattest blocks that a search finds, or the first within ``enough`` of flat."""
    draws = _draws(f"{points} {size} {blocks}")
    first = [_shuffle(points, draws)[:size] for _ in range(blocks)]
    climb = _Climb(points, np.array(first))
    enough_cost = climb.cost_of_flatness(enough) if enough else 0
    best = climb.D.copy()
    best_cost = inf
    idle_steps = 0
    order: list[int] = []
    for _ in range(steps):
        if idle_steps >= size * blocks:  # no single move helps
            if climb.cost > best_cost:
                climb.start(best.copy())
            else:
                best = climb.D.copy()
                best_cost = climb.cost
            if best_cost <= climb.nearly_flat:
                break
            for _ in range(1 + _below(_MAX_RANDOM_MOVES, draws)):
                climb.move_at_random(draws)
            idle_steps = 0
        if not order:
            order = _shuffle(size * blocks, draws)
        i, m = divmod(order.pop(), size)
        idle_steps = 0 if climb.step(i, m, draws) else idle_steps + 1
        if climb.cost <= enough_cost:
            break
    return np.sort(climb.D if climb.cost < best_cost else best, axis=1)


class _Climb:
    """The current blocks D of a search, the transform of each, and S_j for j = 1 … k/2.

    All are integers. ``cost`` is ``Σ_{j≠0} t·w/S_j`` in units of 1/_UNIT, each term rounded.
    """

    def __init__(self, points: int, D: BaseBlocks) -> None:
        k = points
        t, w = D.shape
        # S_j, at most t·(w·B)², stays below 2^53.
        log_B = min((52 - (t * w * w).bit_length()) // 2, 16)
        self._waves = _Waves(k, log_B)
        self._k = k
        self._size = w
        self._square = float(1 << 2 * log_B)
        self._tries = min(k, max(_STEP_TERMS // (k // 2), 8))
        mean = t * w * self._square
        # j and k − j have the same S_j, so each term counts twice. For even k, k/2 counts once.
        self._numerators = np.full(k // 2, 2 * _UNIT * mean)
        if k % 2 == 0:
            self._numerators[-1] = _UNIT * mean
        self._least = mean / _UNIT  # a floor under S_j, against division by 0
        self.nearly_flat = self.cost_of_flatness(_NEARLY_FLAT)
        self.start(D)

    def cost_of_flatness(self, missing: float) -> int:
        """Return the cost of blocks that exceed a flatness of 1 by ``missing``, a power of two."""
        k = self._k
        w = self._size
        return (_UNIT + int(_UNIT * missing)) * (k - 1) ** 2 // (k - w)

    def start(self, D: BaseBlocks) -> None:
        """Continue from D, which later moves change in place."""
        self.D = D
        self.cost = inf
        self._re = np.empty((len(D), self._k // 2))
        self._im = np.empty((len(D), self._k // 2))
        for i, block in enumerate(D):
            self._re[i], self._im[i] = self._waves.total(block)
        self._S = (self._re**2 + self._im**2).sum(axis=0)

    def step(self, i: int, m: int, draws: Iterator[int]) -> bool:
        """Move number m of block i to the best of the places tried; return whether it moved."""
        places = self._places(i, int(self.D[i, m]), draws)
        costs = self._costs(i, places)
        best = int(np.argmin(costs))
        self.cost = float(costs[best])
        if best:
            self._move(i, m, int(places[best]))
        return best > 0

    def move_at_random(self, draws: Iterator[int]) -> None:
        """Move any number to any free place."""
        i = _below(self.D.shape[0], draws)
        m = _below(self.D.shape[1], draws)
        free = np.setdiff1d(np.arange(self._k), self.D[i])
        self._move(i, m, int(free[_below(len(free), draws)]))

    def _places(self, i: int, a: int, draws: Iterator[int]) -> NDArray[np.int64]:
        """Return the places to try for number a of block i: a itself, then free places.

        These are all free places, or those in an arithmetic progression if there are too many.
        """
        places = np.arange(self._k)
        if self._tries < self._k:
            first = _below(self._k, draws)
            stride = 1 + _below(self._k - 1, draws)
            places = (first + stride * places[: self._tries]) % self._k
        is_free = np.ones(self._k, dtype=np.bool_)
        is_free[self.D[i]] = False
        return np.concatenate([[a], places[is_free[places]]])

    def _costs(self, i: int, places: NDArray[np.int64]) -> Floats:
        """Return the costs after the first of the places, a number of block i, moves to each.

        If a block has the transform f, adding b gives it the squared transform
        ``|f|² + 2 Re(f̄ ω^b) + 1``.
        """
        cos, sin = self._waves.at(places)
        re = self._re[i] - cos[0]
        im = self._im[i] - sin[0]
        S = self._S - self._re[i] ** 2 - self._im[i] ** 2 + re**2 + im**2 + self._square
        terms = cos * (2 * re)
        terms += sin * (2 * im)
        terms += S
        np.maximum(terms, self._least, out=terms)
        np.divide(self._numerators, terms, out=terms)
        np.rint(terms, out=terms)
        costs: Floats = terms.sum(axis=1)
        return costs

    def _move(self, i: int, m: int, b: int) -> None:
        cos, sin = self._waves.at(np.array([self.D[i, m], b]))
        self._S -= self._re[i] ** 2 + self._im[i] ** 2
        self._re[i] += cos[1] - cos[0]
        self._im[i] += sin[1] - sin[0]
        self._S += self._re[i] ** 2 + self._im[i] ** 2
        self.D[i, m] = b


class _Waves:
    """Integers ``B cos(2πjx/k)`` and ``B sin(2πjx/k)`` for j = 1 … k/2, one row per place x."""

    def __init__(self, points: int, log_B: int) -> None:
        self._k = points
        self._cos, self._sin = _circle(points, log_B)
        self._j = np.arange(1, points // 2 + 1)
        # Small tables (at most 4 MB each) are kept; rows of larger ones are computed on demand.
        self._rows = self._compute(np.arange(points)) if points <= 1024 else None

    def at(self, places: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Return the rows of some places."""
        if self._rows is None:
            return self._compute(places)
        cos, sin = self._rows
        return cos[places], sin[places]

    def total(self, places: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Return the sums of the rows of some places: the transform of the set.

        Add them up in pieces, to bound the memory.
        """
        re = np.zeros(len(self._j))
        im = np.zeros(len(self._j))
        for first in range(0, len(places), 256):
            cos, sin = self.at(places[first : first + 256])
            re += cos.sum(axis=0)
            im += sin.sum(axis=0)
        return re, im

    def _compute(self, places: NDArray[np.int64]) -> tuple[Floats, Floats]:
        angles = np.outer(places, self._j) % self._k
        return self._cos[angles], self._sin[angles]


_PI = 0x3243F6A8885A308D313198A2E03707344  # in units of 2^−128


def _circle(points: int, log_B: int) -> tuple[Floats, Floats]:
    """Return ``2^log_B · (cos, sin)(2πx/k)`` for x = 0 … k − 1, rounded.

    Compute in units of 2^−128, because processors differ in the last digits of a cosine.
    """
    one = 1 << 128
    angle = 2 * _PI // points
    turn_cos, turn_sin = _cos_and_sin(one, angle)
    half = one >> (log_B + 1)
    cos = np.empty(points)
    sin = np.empty(points)
    x = one
    y = 0
    for i in range(points):
        cos[i] = (x + half) >> (128 - log_B)
        sin[i] = (y + half) >> (128 - log_B)
        next_x = (x * turn_cos - y * turn_sin) >> 128
        y = (x * turn_sin + y * turn_cos) >> 128
        x = next_x
    return cos, sin


def _cos_and_sin(one: int, angle: int) -> tuple[int, int]:
    """Return the series of ``cos + i·sin`` at a small angle, in units of 2^−128."""
    parts = [0, 0]
    term = one
    n = 0
    while term:
        parts[n % 2] += -term if n & 2 else term
        n += 1
        term = term * angle // n >> 128
    return parts[0], parts[1]


def _draws(seed: str) -> Iterator[int]:
    """Yield pseudorandom integers below 2^64, from SHA-256 in counter mode.

    No library can change this stream.
    """
    counter = 0
    while True:
        digest = hashlib.sha256(f"searched blocks {seed} {counter}".encode()).digest()
        for start in range(0, 32, 8):
            yield int.from_bytes(digest[start : start + 8], "big")
        counter += 1


def _below(limit: int, draws: Iterator[int]) -> int:
    return next(draws) * limit >> 64


def _shuffle(length: int, draws: Iterator[int]) -> list[int]:
    """Return 0 … length − 1 in an order that the draws determine."""
    numbers = list(range(length))
    for last in range(length - 1, 0, -1):
        other = _below(last + 1, draws)
        numbers[last], numbers[other] = numbers[other], numbers[last]
    return numbers
