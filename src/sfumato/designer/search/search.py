"""The search for the best mechanism of one matrix: mix known rays, look for better ones, repeat.

Every round has a solution, so the search can stop after any round. A solution is a mixture of
members of the cone, which is a channel that keeps the matrix, and a bound below every channel. For
any matrix S and any ν, if ``|Sᵀr|² − ν·r ≤ δ`` for all members r of the cone with ``p·r = 1``, then
every channel has

    tr(W M⁻¹) ≥ (tr W^½ S)² / (ν·1 + δ)

(docs/designer.md has the three-line proof). With ``S = M⁻¹ W^½`` and the multipliers ν of the
mixture, the bound is as sharp as the mixture is good. The bound is *certified* if δ is taken over
all rays of a wider cone, and *estimated* if δ is the largest value that a search finds.

In the end, the best mixture becomes a table: few columns, precise weights, integers over a word.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, isfinite

import numpy as np

from sfumato.contexts import Context
from sfumato.designer.search.master import Mixture, Objective, best_mixture
from sfumato.designer.search.polyhedron import Polyhedron
from sfumato.designer.search.pricing import Price, climb, walk
from sfumato.designer.search.rays import CrossSection, wider_rays
from sfumato.foundation.arrays import Booleans, Floats
from sfumato.mechanisms import TableResponse
from sfumato.randomness import words_from

__all__ = ["Solution", "search_rounds", "to_table"]

_MAX_RAYS = 1_000_000
_MAX_ENUMERATED = 12  # symbols
_MAX_SPARSE = 16  # symbols, if few promises remain that others do not imply
_FIRST_TOLERANCE = 1e-2
_LAST_TOLERANCE = 1e-6
_NEW_SHARE = 1e-2  # of the weight, for new rays to start with
_PROGRESS = 1e-6  # of the risk, for a round to count as progress
_IDLE = 1e-3  # of the average weight: a lighter ray is dropped
_MIN_POOL = 600
_MAX_POOL = 1600
_SWEEPS = 40
_STARTS = 12  # per symbol: looking for rays costs far less than mixing them
_WALKS = 4  # per symbol
_WALKED_ENTRIES = 2048  # limit on the entries of all columns that walk in a round
_WALK_BELOW = 1.0  # the gap below which walking pays
_ROUNDING = 1 - 1e-12  # of the bound
_LIGHT = (0.3, 0.03, 3e-3, 0.0)  # of the average weight: a table drops lighter rays if it can
_MAX_LOSS = 5e-7  # of the risk, for dropping rays
_TABLE_TOLERANCE = 3e-8


@dataclass(frozen=True)
class Solution:
    """The mixture of a round, and a bound on ``tr(W M⁻¹)`` of every mechanism."""

    rays: Floats
    mixture: Mixture
    bound: float
    certified: bool


def search_rounds(
    section: CrossSection, weights: Floats, seed: int, columns: Floats
) -> Iterator[Solution]:
    """Yield the solution of one round after another, without end.

    ``columns``, from another mechanism for the same matrix, are rays to begin with. The same
    arguments give the same solutions, round by round.
    """
    pricing = _choose_pricing(section, _Random(seed))
    permanent = _distinct(np.vstack([section.simplest_rays(), section.lower(columns)]))
    offset = float(weights @ section.crowd**2)  # value minus risk
    rays = permanent
    theta = np.full(len(rays), 1 / len(rays))
    gap = 1.0
    best = inf
    tolerance = _FIRST_TOLERANCE
    while True:
        first = min(1.0, max(10 * gap, 1e-3))
        mixture = best_mixture(rays, weights, theta, tolerance, first=first)
        price = Price.from_mixture(mixture, weights)
        better, delta = pricing.best(price, rays, mixture, gap)
        trace = float(np.sqrt(weights) @ price.roots.diagonal())  # tr W^½ S
        bound = trace**2 / (float(mixture.multipliers.sum()) + delta) * _ROUNDING
        yield Solution(rays, mixture, bound, pricing.certified)

        value = mixture.value
        gap = (value - offset) / (bound - offset) - 1 if bound > offset else inf
        # The risk counts, and it may be a small part of the value. After a round without progress
        # there is nothing left to find at this tolerance.
        risk_share = (value - offset) / value if isfinite(value) else 1.0
        idle = value > best - _PROGRESS * (best - offset)
        if idle:
            tolerance /= 10
        tolerance = min(tolerance, gap / 10 * risk_share)
        tolerance = max(tolerance, _LAST_TOLERANCE * risk_share)
        best = min(best, value)
        keep = _choose_pool(mixture.theta, len(permanent), section.size)
        new_theta = np.full(len(better), _NEW_SHARE / max(len(better), 1))
        rays = np.vstack([rays[keep], better])
        theta = np.concatenate([mixture.theta[keep], new_theta])


def _choose_pool(theta: Floats, permanent: int, size: int) -> Booleans:
    """Return which rays to keep: the permanent ones, and the heaviest of the others.

    A best mixture needs at most ``k(k+1)/2 + k`` rays, but more to choose from.
    """
    pool = min(max(3 * size * (size + 1) // 5, _MIN_POOL), _MAX_POOL)
    number = np.arange(len(theta))
    rank = np.empty(len(theta), dtype=np.int64)
    rank[np.argsort(-theta, kind="stable")] = number
    heavy = (theta > _IDLE / len(theta)) & (rank < pool + permanent)
    return (number < permanent) | heavy


# --- looking for rays -----------------------------------------------------------------------------


def _choose_pricing(
    section: CrossSection, random: "_Random"
) -> "_ExactPricing | _HeuristicPricing":
    E = section.cone.E
    logarithms = wider_rays(E, _MAX_RAYS) if _is_enumerable(E) else None
    if logarithms is None:
        return _HeuristicPricing(section, random)
    return _ExactPricing(section, random, logarithms)


def _is_enumerable(E: Floats) -> bool:
    """Return whether there are few enough rays to try them all."""
    if len(E) <= _MAX_ENUMERATED:
        return True
    return len(E) <= _MAX_SPARSE and Polyhedron.around(E).tail.size <= 3 * len(E)


class _ExactPricing:
    """The search for rays of large φ among all rays of a wider cone: its bounds are certified."""

    certified = True

    def __init__(self, section: CrossSection, random: "_Random", logarithms: Floats) -> None:
        self._wider = section.normalise(np.exp(logarithms))
        # Several rays of the wider cone may be perturbations of the same ray of the true cone.
        self._true = _distinct(section.lower(self._wider))
        self._max_rays = 6 * section.size
        self._random = random

    def best(
        self, price: Price, rays: Floats, mixture: Mixture, gap: float
    ) -> tuple[Floats, float]:
        """Return rays of large φ, and a bound on φ for the whole cone.

        The choice is partly random, because the rays of largest φ are often alike. In a symmetric
        matrix, hundreds have the same φ, and the first few of them would add little.
        """
        chance = self._random.uniform("rays", (len(self._true), 1)).ravel()
        chosen = _largest(self._true, price(self._true) * chance, self._max_rays)
        return chosen, price.upper_bound(self._wider)


class _HeuristicPricing:
    """The search for rays of large φ by climbing and walking: its bounds are estimates."""

    certified = False

    def __init__(self, section: CrossSection, random: "_Random") -> None:
        k = section.size
        E = section.cone.E
        self._section = section
        self._random = random
        self._polyhedron = Polyhedron.around(E)
        self._max_depth = float(E[np.isfinite(E)].max())
        self._starts = _STARTS * k
        self._max_rays = 4 * k
        self._walks = min(_WALKS * k, max(_WALKED_ENTRIES // k, 4))

    def best(
        self, price: Price, rays: Floats, mixture: Mixture, gap: float
    ) -> tuple[Floats, float]:
        """Return the rays of largest φ that the search found, and the largest φ."""
        orders = np.argsort(self._random.uniform("orders", (_SWEEPS, self._section.size)), axis=1)
        heaviest = np.argsort(-mixture.theta, kind="stable")[: self._starts]
        starts = np.vstack([rays[heaviest], self._fresh_starts(price)])
        columns = _distinct(climb(self._section, price, starts, list(orders)))
        value = price(columns)
        positive = np.flatnonzero((columns > 0).all(axis=1))
        walks = self._walks if gap < _WALK_BELOW else 4
        best = positive[np.argsort(-value[positive], kind="stable")[:walks]]
        if best.size:
            ends = walk(self._section, price, columns[best], self._polyhedron)
            columns = _distinct(np.vstack([ends, columns]))
            value = price(columns)
        # The rays of the pool are members of the cone too.
        largest = max(float(value.max()), float(price(rays).max()))
        return _largest(columns, value, self._max_rays), largest

    def _fresh_starts(self, price: Price) -> Floats:
        """Return columns that each favour a set of symbols.

        The sets are the signs of the directions that are estimated worst, and random ones.
        """
        k = self._section.size
        count = self._starts
        favoured = self._random.uniform("signs", (count, k)) < 0.5
        worst = np.linalg.eigh(price.roots.T @ price.roots)[1][:, ::-1].T > 0
        both_signs = np.concatenate([worst, ~worst])[: count // 2]
        favoured[: len(both_signs)] = both_signs
        depth = self._random.uniform("depth", (count, 1)) * self._max_depth
        return self._section.cone.lift(np.exp(np.where(favoured, 0.0, -depth)))


class _Random:
    """Numbers between 0 and 1 that depend on the seed, the use and the number of earlier calls."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._calls = Counter[str]()

    def uniform(self, use: str, shape: tuple[int, int]) -> Floats:
        """Return an array of such numbers for a use."""
        self._calls[use] += 1
        text = f"sfumato/design/{self._seed}/{use}/{self._calls[use]}"
        key = hashlib.sha256(text.encode()).digest()
        words = words_from(key, 0, shape[0] * shape[1])[:, 0]
        return (words >> np.uint64(11)).astype(np.float64).reshape(shape) * 2.0**-53


def _largest(columns: Floats, value: Floats, count: int) -> Floats:
    """Return at most ``count`` columns, those of the largest positive values."""
    chosen = np.argsort(-value, kind="stable")[:count]
    return columns[chosen[value[chosen] > 0]]


def _distinct(columns: Floats) -> Floats:
    """Drop near duplicates; the tolerance is relative to the spread of all entries."""
    spread = float(np.abs(columns - 1).max())
    _, first = np.unique(np.round(columns / max(spread, 1e-300), 8), axis=0, return_index=True)
    return columns[np.sort(first)]


# --- from a mixture to a table --------------------------------------------------------------------


def to_table(context: Context, solution: Solution, objective: Objective) -> TableResponse:
    """Return the solution as a mechanism for the context, with the best scores for the crowd."""
    rays, theta = _select_rays(solution, objective)
    columns = rays * theta[:, None]
    return TableResponse.from_floats(context, columns.T, crowd=list(objective.counts))


def _select_rays(solution: Solution, objective: Objective) -> tuple[Floats, Floats]:
    """Return few rays that are nearly as good together, with their best weights.

    The central path gives some weight to every ray of the pool, and each would cost a report.
    """
    rays = solution.rays
    theta = solution.mixture.theta
    value = solution.mixture.value
    max_loss = _MAX_LOSS * (value - objective.offset)
    for share in _LIGHT:
        heavy: Booleans = theta > share / len(theta)
        mixture = _mix(rays[heavy], objective, theta[heavy])
        if mixture.value <= value + max_loss:
            return _to_vertex(rays[heavy], mixture, objective)
    return rays, theta


def _to_vertex(rays: Floats, mixture: Mixture, objective: Objective) -> tuple[Floats, Floats]:
    """Return at most ``k(k+1)/2`` of the rays, if they can be mixed to the same M.

    ``Σ θ r rᵀ = M`` is that many equations, and ``M p = 1`` makes the rows add up to 1. A vertex of
    the set of solutions has no more positive weights than equations. Matrices with symmetries have
    many more good rays than that.
    """
    from scipy.optimize import linprog

    k = rays.shape[1]
    if len(rays) <= k * (k + 1) // 2:
        return rays, mixture.theta
    row, column = np.triu_indices(k)
    products = (rays[:, :, None] * rays[:, None, :])[:, row, column]
    vertex = linprog(
        -mixture.theta, A_eq=products.T, b_eq=mixture.theta @ products, method="highs-ds"
    )
    if vertex.x is None:
        return rays, mixture.theta
    positive: Booleans = vertex.x > 0
    fewer = _mix(rays[positive], objective, vertex.x[positive])
    if fewer.value <= mixture.value + _MAX_LOSS * (mixture.value - objective.offset):
        return rays[positive], fewer.theta
    return rays, mixture.theta


def _mix(rays: Floats, objective: Objective, theta: Floats) -> Mixture:
    """Return the best mixture of some rays, as precise as the risk requires."""
    least_risk = max(objective.least_value - objective.offset, 1e-12)
    value_over_risk = 1 + objective.offset / least_risk
    tolerance = _TABLE_TOLERANCE / value_over_risk
    return best_mixture(rays, objective.weights, theta, tolerance, first=_FIRST_TOLERANCE)
