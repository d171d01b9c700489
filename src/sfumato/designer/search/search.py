"""The search for the best mechanism of one matrix: mix the rays that are known, look for rays that would help, repeat.

Every round has an answer, so that the search can stop after any of them: a mixture of members of the cone, which is a
channel that keeps the matrix, and a bound below every other one. For any matrix S and any ν, if ``|Sᵀr|² − ν·r ≤ δ``
for all members r of the cone with ``p·r = 1``, then every channel has

    tr(W M⁻¹) ≥ (tr W^½ S)² / (ν·1 + δ)

(docs/designer.md has the three lines of proof). With ``S = M⁻¹ W^½`` and the multipliers ν of the mixture this is as
sharp as the mixture is good. The bound is *certified* if δ was taken over all rays of a wider cone, *estimated* if it
is the largest that a search has found.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, isfinite

import numpy as np
from numpy.typing import NDArray

from sfumato.designer.search.master import Mixture, best_mixture
from sfumato.designer.search.polyhedron import Polyhedron
from sfumato.designer.search.pricing import Price, climbed, walked
from sfumato.designer.search.rays import CrossSection, wider_rays
from sfumato.foundation.arrays import Floats
from sfumato.randomness import words_from

__all__ = ["Answer", "answers"]

_MOST_RAYS = 1_000_000
_LARGEST_ENUMERATED = 12
_LARGEST_SPARSE = 16
_FIRST_TOLERANCE = 1e-2
_LAST_TOLERANCE = 1e-6
_NEWCOMERS = 1e-2  # the share of the weight that rays start with
_PROGRESS = 1e-6  # of the risk, that makes a round count
_IDLE = 1e-3  # of the average weight: below it a ray is let go
_SMALLEST_POOL = 600
_LARGEST_POOL = 1600
_SWEEPS = 40
_STARTS = 12  # for each symbol: looking for rays costs far less than mixing them
_WALKS = 4
_WALKED = 2048  # symbols of all that walk in a round, above some dozen symbols
_WALK_BELOW = 1.0  # the gap from which on walking pays


@dataclass(frozen=True)
class Answer:
    """The mixture of a round, the bound on ``tr(W M⁻¹)`` of every mechanism, and whether it is certified."""

    rays: Floats
    mixture: Mixture
    bound: float
    certified: bool


def answers(section: CrossSection, weights: Floats, seed: int, columns: Floats) -> Iterator[Answer]:
    """The answer of one round after another; it never ends by itself.

    ``columns`` are some to begin with, from other mechanisms for the same matrix. The same arguments give the same
    answers, round by round.
    """
    logarithms = wider_rays(section.cone.E, _MOST_RAYS) if _enumerable(section.cone.E) else None
    random = _Random(seed)
    pricing: _Exact | _Searched = (
        _Searched(section, random) if logarithms is None else _Exact(section, random, logarithms)
    )
    always = _distinct(np.vstack([section.simplest_rays(), section.lower(columns)]))
    rays, theta = always, np.full(len(always), 1 / len(always))
    gap, tolerance, best, known = 1.0, _FIRST_TOLERANCE, inf, float(weights @ section.crowd**2)
    while True:
        mixture = best_mixture(rays, weights, theta, tolerance, first=min(1.0, max(10 * gap, 1e-3)))
        price = Price.of(mixture, weights)
        found, delta = pricing.best(price, rays, mixture, gap)
        root = float(np.sqrt(weights) @ price.roots.diagonal())
        bound = root**2 / (float(mixture.multipliers.sum()) + delta) * (1 - 1e-12)
        yield Answer(rays, mixture, bound, pricing.certified)
        gap = _gap(mixture.value, bound, known)
        # What counts is the risk, of which the value may be many times as much; and rounds that bring nothing
        # have nothing to find at this tolerance.
        share = (mixture.value - known) / mixture.value if isfinite(mixture.value) else 1.0
        idle = mixture.value > best - _PROGRESS * (best - known)
        tolerance = max(
            min(tolerance / 10 if idle else tolerance, gap / 10 * share), _LAST_TOLERANCE * share
        )
        best = min(best, mixture.value)
        kept = _kept(mixture.theta, len(always), _pool(section.size))
        rays = np.vstack([rays[kept], found])
        theta = np.concatenate(
            [mixture.theta[kept], np.full(len(found), _NEWCOMERS / max(len(found), 1))]
        )


def _enumerable(E: Floats) -> bool:
    """Whether all rays can be looked at: few symbols, or a few more with few promises that no others imply."""
    if len(E) <= _LARGEST_ENUMERATED:
        return True
    return len(E) <= _LARGEST_SPARSE and Polyhedron.around(E).tail.size <= 3 * len(E)


def _gap(value: float, bound: float, known: float) -> float:
    """By what share of the bound the risk exceeds it; ``known`` is what a value exceeds its risk by."""
    return (value - known) / (bound - known) - 1 if bound > known else np.inf


def _pool(size: int) -> int:
    """How many rays are kept: a best mixture needs at most ``k(k+1)/2 + k``, and room to choose them from."""
    return min(max(3 * size * (size + 1) // 5, _SMALLEST_POOL), _LARGEST_POOL)


def _kept(theta: Floats, always: int, most: int) -> NDArray[np.bool_]:
    """The rays that carry weight, the heaviest of them, and those that are there always."""
    rank = np.empty(len(theta), dtype=np.int64)
    rank[np.argsort(-theta, kind="stable")] = np.arange(len(theta))
    return (np.arange(len(theta)) < always) | (
        (theta > _IDLE / len(theta)) & (rank < most + always)
    )


class _Exact:
    """Looks at all rays of a wider cone: its bounds are certified."""

    certified = True

    def __init__(self, section: CrossSection, random: "_Random", logarithms: Floats) -> None:
        self._wider = section.normalise(np.exp(logarithms))
        # Rays of the wider cone that the perturbation has split are one ray of the true cone, or nearly.
        self._true = _distinct(section.lower(self._wider))
        self._most, self._random = 6 * section.size, random

    def best(
        self, price: Price, rays: Floats, mixture: Mixture, gap: float
    ) -> tuple[Floats, float]:
        """Rays of large φ, and a bound on φ for the whole cone.

        Chance has a say in which: the very largest are often alike, and in a symmetric matrix there are hundreds of
        the same φ, of which the first few would tell one story only.
        """
        chance = self._random.uniform("rays", (len(self._true), 1)).ravel()
        return _largest(self._true, price(self._true) * chance, self._most), price.at_most(
            self._wider
        )


class _Searched:
    """Looks where climbing and walking lead to: its bounds are estimates."""

    certified = False

    def __init__(self, section: CrossSection, random: "_Random") -> None:
        self._section, self._random = section, random
        self._polyhedron = Polyhedron.around(section.cone.E)
        self._depth = float(section.cone.E[np.isfinite(section.cone.E)].max())
        self._starts, self._most = _STARTS * section.size, 4 * section.size
        self._walks = min(_WALKS * section.size, max(_WALKED // section.size, 4))

    def best(
        self, price: Price, rays: Floats, mixture: Mixture, gap: float
    ) -> tuple[Floats, float]:
        """The rays of largest φ that were found, and the largest φ."""
        orders = np.argsort(self._random.uniform("orders", (_SWEEPS, self._section.size)), axis=1)
        starts = np.vstack(
            [rays[np.argsort(-mixture.theta, kind="stable")[: self._starts]], self._fresh(price)]
        )
        columns = _distinct(climbed(self._section, price, starts, list(orders)))
        value = price(columns)
        whole = (columns > 0).all(axis=1)
        count = self._walks if gap < _WALK_BELOW else 4
        best = np.flatnonzero(whole)[np.argsort(-value[whole], kind="stable")[:count]]
        if best.size:
            columns = _distinct(
                np.vstack([walked(self._section, price, columns[best], self._polyhedron), columns])
            )
            value = price(columns)
        # Rays of the pool are members of the cone too, and known to have φ < 0.
        return _largest(columns, value, self._most), max(
            float(value.max()), float(price(rays).max())
        )

    def _fresh(self, price: Price) -> Floats:
        """Starts that raise a set of symbols: the signs of the directions that are known worst, and random ones."""
        k, count = self._section.size, self._starts
        signs = self._random.uniform("signs", (count, k)) < 0.5
        worst = np.linalg.eigh(price.roots.T @ price.roots)[1][:, ::-1].T > 0
        both = np.concatenate([worst, ~worst])[: count // 2]
        signs[: len(both)] = both
        depth = self._random.uniform("depth", (count, 1)) * self._depth
        return self._section.cone.lift(np.exp(np.where(signs, 0.0, -depth)))


class _Random:
    """Numbers between 0 and 1 that depend on the seed, on their use and on how often that use has asked before."""

    def __init__(self, seed: int) -> None:
        self._seed, self._asked = seed, Counter[str]()

    def uniform(self, use: str, shape: tuple[int, int]) -> Floats:
        """An array of such numbers."""
        self._asked[use] += 1
        key = hashlib.sha256(
            f"sfumato/design/{self._seed}/{use}/{self._asked[use]}".encode()
        ).digest()
        words = words_from(key, 0, shape[0] * shape[1])[:, 0]
        return (words >> np.uint64(11)).astype(np.float64).reshape(shape) * 2.0**-53


def _largest(columns: Floats, value: Floats, most: int) -> Floats:
    chosen = np.argsort(-value, kind="stable")[:most]
    return columns[chosen[value[chosen] > 0]]


def _distinct(columns: Floats) -> Floats:
    """Columns that differ visibly, compared with how much their entries differ at all."""
    spread = float(np.abs(columns - 1).max())
    _, first = np.unique(np.round(columns / max(spread, 1e-300), 8), axis=0, return_index=True)
    return columns[np.sort(first)]
