"""Search for the best mechanism for a matrix: mix known rays, look for better ones, repeat.

Every round yields a solution, so the search can stop after any round. A solution consists of a
mixture of members of the cone, which is a channel that satisfies the matrix, and a lower bound on
the value of every such channel. For any matrix S and any ν, if ``|Sᵀr|² − ν·r ≤ δ`` for all members
r of the cone with ``p·r = 1``, then for every channel

    tr(W M⁻¹) ≥ (tr W^½ S)² / (ν·1 + δ)

(docs/designer.md has the three-line proof). With ``S = M⁻¹ W^½`` and the multipliers ν of the
mixture, a better mixture gives a sharper bound. The bound is *certified* if δ is the maximum over
all rays of a wider cone, and *estimated* if δ is the largest value that a search finds.

Finally, the best mixture is converted to a table with few columns and integer entries.
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

_MAX_RAYS = 1_000_000  # the maximum number of rays to enumerate
_MAX_ENUMERATED_SIZE = 12  # symbols in the largest matrix for which to try all rays
_MAX_SPARSE_SIZE = 16  # the same, if most promises follow from others
_FIRST_TOLERANCE = 1e-2  # of the mixture in the first round, relative to the value
_LAST_TOLERANCE = 1e-6  # of the mixtures in late rounds, relative to the risk
_NEW_RAYS_WEIGHT = 1e-2  # total initial weight of new rays
_MIN_PROGRESS = 1e-6  # the smallest relative decrease in the risk that counts as progress
_MIN_POOL_WEIGHT = 1e-3  # relative to the average weight; lighter rays are dropped
_MIN_POOL_SIZE = 600
_MAX_POOL_SIZE = 1600
_SWEEP_COUNT = 40  # in a climb
_STARTS_PER_SYMBOL = 12  # looking for rays costs far less than mixing them
_WALKS_PER_SYMBOL = 4
_MAX_WALKED_ENTRIES = 2048  # total size of the columns from which the walks of a round start
_MAX_GAP_FOR_MANY_WALKS = 1.0  # with a larger gap, only a few walks are worth the time
_BOUND_SAFETY_FACTOR = 1 - 1e-12  # covers the rounding of the bound
_DROP_THRESHOLDS = (0.3, 0.03, 3e-3, 0.0)  # relative to the average weight, tried in this order
_MAX_LOSS = 5e-7  # the largest accepted relative increase in the risk when rays are dropped
_TABLE_TOLERANCE = 3e-8  # of the final mixture, relative to the risk


@dataclass(frozen=True)
class Solution:
    """The mixture found in a round, and a lower bound on ``tr(W M⁻¹)`` for any mechanism.

    The bound is proven if ``certified`` is true, and an estimate otherwise.
    """

    rays: Floats
    mixture: Mixture
    bound: float
    certified: bool


def search_rounds(
    section: CrossSection, weights: Floats, seed: int, columns: Floats
) -> Iterator[Solution]:
    """Yield the solutions of successive rounds, indefinitely.

    ``columns`` are the columns of another mechanism for the same matrix, used as additional initial
    rays. The same arguments always give the same solutions.
    """
    pricing = _choose_pricing(section, _Random(seed))
    initial_rays = np.vstack([section.simplest_rays(), section.lower(columns)])
    permanent_rays = _drop_duplicates(initial_rays)
    offset = float(weights @ section.prior**2)  # value minus risk
    rays = permanent_rays
    theta = np.full(len(rays), 1 / len(rays))
    gap = 1.0
    best_value = inf
    tolerance = _FIRST_TOLERANCE
    while True:
        first_tolerance = min(1.0, max(10 * gap, 1e-3))
        mixture = best_mixture(rays, weights, theta, tolerance, first_tolerance)
        price = Price.from_mixture(mixture, weights)
        new_rays, delta = pricing.find_rays(price, rays, mixture, gap)
        trace = float(np.sqrt(weights) @ price.weighted_inverse.diagonal())  # tr W^½ S
        bound = trace**2 / (float(mixture.multipliers.sum()) + delta) * _BOUND_SAFETY_FACTOR
        yield Solution(rays, mixture, bound, pricing.certified)

        value = mixture.value
        gap = (value - offset) / (bound - offset) - 1 if bound > offset else inf
        # The tolerance is relative to the value, but what matters is the risk, which may be a small
        # part of the value. If a round makes no progress, a smaller tolerance may lead to more.
        risk_share = (value - offset) / value if isfinite(value) else 1.0
        is_stalled = value > best_value - _MIN_PROGRESS * (best_value - offset)
        if is_stalled:
            tolerance /= 10
        tolerance = min(tolerance, gap / 10 * risk_share)
        tolerance = max(tolerance, _LAST_TOLERANCE * risk_share)
        best_value = min(best_value, value)
        is_kept = _choose_pool(mixture.theta, len(permanent_rays), section.size)
        new_theta = np.full(len(new_rays), _NEW_RAYS_WEIGHT / max(len(new_rays), 1))
        rays = np.vstack([rays[is_kept], new_rays])
        theta = np.concatenate([mixture.theta[is_kept], new_theta])


def _choose_pool(theta: Floats, permanent_count: int, size: int) -> Booleans:
    """Return a mask of the rays to keep: the permanent ones, which come first, and the heaviest.

    The best mixture needs at most ``k(k+1)/2 + k`` rays, but finding them takes a larger pool.
    """
    pool_size = min(max(3 * size * (size + 1) // 5, _MIN_POOL_SIZE), _MAX_POOL_SIZE)
    index = np.arange(len(theta))
    rank = np.empty(len(theta), dtype=np.int64)
    rank[np.argsort(-theta, kind="stable")] = index
    is_heavy = (theta > _MIN_POOL_WEIGHT / len(theta)) & (rank < pool_size + permanent_count)
    return (index < permanent_count) | is_heavy


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
    """Return whether there are likely to be few enough rays to try them all."""
    if len(E) <= _MAX_ENUMERATED_SIZE:
        return True
    return len(E) <= _MAX_SPARSE_SIZE and Polyhedron.enclosing(E).tail.size <= 3 * len(E)


class _ExactPricing:
    """Finds rays with a large φ (``pricing.py``) among all rays of a wider cone.

    The bounds are certified.
    """

    certified = True

    def __init__(self, section: CrossSection, random: "_Random", logarithms: Floats) -> None:
        self._wider_rays = section.normalise(np.exp(logarithms))
        # Several rays of the wider cone may be perturbations of the same ray of the true cone.
        self._true_rays = _drop_duplicates(section.lower(self._wider_rays))
        self._max_rays = 6 * section.size
        self._random = random

    def find_rays(
        self, price: Price, rays: Floats, mixture: Mixture, gap: float
    ) -> tuple[Floats, float]:
        """Return rays with a large φ, and an upper bound on φ over the entire cone.

        The choice is partly random, because the rays with the largest φ are often similar. For a
        symmetric matrix, hundreds of rays can have the same φ, and the first few would add little.
        """
        factors = self._random.uniform("rays", (len(self._true_rays), 1)).ravel()
        randomized_phi = price(self._true_rays) * factors
        chosen_rays = _select_largest(self._true_rays, randomized_phi, self._max_rays)
        return chosen_rays, price.upper_bound(self._wider_rays)


class _HeuristicPricing:
    """Finds rays with a large φ (``pricing.py``) by climbing and walking.

    The bounds are estimates.
    """

    certified = False

    def __init__(self, section: CrossSection, random: "_Random") -> None:
        k = section.size
        E = section.cone.E
        self._section = section
        self._random = random
        self._polyhedron = Polyhedron.enclosing(E)
        self._max_depth = float(E[np.isfinite(E)].max())
        self._start_count = _STARTS_PER_SYMBOL * k
        self._max_rays = 4 * k
        self._walk_count = min(_WALKS_PER_SYMBOL * k, max(_MAX_WALKED_ENTRIES // k, 4))

    def find_rays(
        self, price: Price, rays: Floats, mixture: Mixture, gap: float
    ) -> tuple[Floats, float]:
        """Return the rays with the largest φ among those found, and the largest φ itself."""
        sort_keys = self._random.uniform("orders", (_SWEEP_COUNT, self._section.size))
        orders = np.argsort(sort_keys, axis=1)
        heaviest = np.argsort(-mixture.theta, kind="stable")[: self._start_count]
        starts = np.vstack([rays[heaviest], self._new_starts(price)])
        columns = _drop_duplicates(climb(self._section, price, starts, list(orders)))
        phi = price(columns)
        positive_indices = np.flatnonzero((columns > 0).all(axis=1))
        walk_count = self._walk_count if gap < _MAX_GAP_FOR_MANY_WALKS else 4
        order = np.argsort(-phi[positive_indices], kind="stable")
        walk_starts = positive_indices[order[:walk_count]]
        if walk_starts.size:
            ends = walk(self._section, price, columns[walk_starts], self._polyhedron)
            columns = _drop_duplicates(np.vstack([ends, columns]))
            phi = price(columns)
        # The rays in the pool are also members of the cone, so include their φ.
        largest_phi = max(float(phi.max()), float(price(rays).max()))
        return _select_largest(columns, phi, self._max_rays), largest_phi

    def _new_starts(self, price: Price) -> Floats:
        """Return columns that each favour a set of symbols.

        Some sets consist of the symbols with the same sign in a poorly estimated direction; the
        others are random.
        """
        k = self._section.size
        count = self._start_count
        is_favoured = self._random.uniform("signs", (count, k)) < 0.5
        _, eigenvectors = np.linalg.eigh(price.weighted_inverse.T @ price.weighted_inverse)
        worst_signs = eigenvectors[:, ::-1].T > 0
        both_signs = np.concatenate([worst_signs, ~worst_signs])[: count // 2]
        is_favoured[: len(both_signs)] = both_signs
        depths = self._random.uniform("depth", (count, 1)) * self._max_depth
        return self._section.cone.lift(np.exp(np.where(is_favoured, 0.0, -depths)))


class _Random:
    """Pseudorandom numbers, with an independent stream for each purpose."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._call_counts = Counter[str]()

    def uniform(self, purpose: str, shape: tuple[int, int]) -> Floats:
        """Return the next random numbers between 0 and 1 from the stream for ``purpose``."""
        self._call_counts[purpose] += 1
        text = f"sfumato/design/{self._seed}/{purpose}/{self._call_counts[purpose]}"
        key = hashlib.sha256(text.encode()).digest()
        words = words_from(key, 0, shape[0] * shape[1])[:, 0]
        return (words >> np.uint64(11)).astype(np.float64).reshape(shape) * 2.0**-53


def _select_largest(columns: Floats, values: Floats, max_count: int) -> Floats:
    """Return the columns with the largest positive values, at most ``max_count`` of them."""
    chosen = np.argsort(-values, kind="stable")[:max_count]
    return columns[chosen[values[chosen] > 0]]


def _drop_duplicates(columns: Floats) -> Floats:
    """Return the columns without near-duplicates.

    The tolerance is relative to the largest deviation from 1.
    """
    spread = float(np.abs(columns - 1).max())
    rounded = np.round(columns / max(spread, 1e-300), 8)
    _, first_indices = np.unique(rounded, axis=0, return_index=True)
    return columns[np.sort(first_indices)]


# --- from a mixture to a table --------------------------------------------------------------------


def to_table(context: Context, solution: Solution, objective: Objective) -> TableResponse:
    """Return the solution as a mechanism for the context, with scores optimal at the prior."""
    rays, theta = _select_rays(solution, objective)
    columns = rays * theta[:, None]
    return TableResponse.from_floats(context, columns.T, crowd=list(objective.counts))


def _select_rays(solution: Solution, objective: Objective) -> tuple[Floats, Floats]:
    """Return some of the solution's rays, with weights that give nearly the same value.

    The central path gives some weight to every ray in the pool, but each ray adds an output to the
    mechanism.
    """
    rays = solution.rays
    theta = solution.mixture.theta
    value = solution.mixture.value
    max_loss = _MAX_LOSS * (value - objective.offset)
    for threshold in _DROP_THRESHOLDS:
        is_heavy: Booleans = theta > threshold / len(theta)
        mixture = _mix(rays[is_heavy], objective, theta[is_heavy])
        if mixture.value <= value + max_loss:
            return _reduce_to_vertex(rays[is_heavy], mixture, objective)
    return rays, theta


def _reduce_to_vertex(
    rays: Floats, mixture: Mixture, objective: Objective
) -> tuple[Floats, Floats]:
    """Return at most ``k(k+1)/2`` of the rays, with weights that give the same M.

    If that fails, return all rays and their weights in the mixture.

    ``Σ θ r rᵀ = M`` consists of ``k(k+1)/2`` equations, and ``M p = 1`` makes each row of the
    channel add up to 1. At a vertex of the set of solutions, there are no more positive weights
    than equations. A symmetric matrix has many more good rays than equations.
    """
    from scipy.optimize import linprog

    k = rays.shape[1]
    if len(rays) <= k * (k + 1) // 2:
        return rays, mixture.theta
    row, column = np.triu_indices(k)
    products = (rays[:, :, None] * rays[:, None, :])[:, row, column]
    result = linprog(
        -mixture.theta, A_eq=products.T, b_eq=mixture.theta @ products, method="highs-ds"
    )
    if result.x is None:
        return rays, mixture.theta
    is_positive: Booleans = result.x > 0
    reduced = _mix(rays[is_positive], objective, result.x[is_positive])
    if reduced.value <= mixture.value + _MAX_LOSS * (mixture.value - objective.offset):
        return rays[is_positive], reduced.theta
    return rays, mixture.theta


def _mix(rays: Floats, objective: Objective, theta: Floats) -> Mixture:
    """Return the best mixture of the rays, with a tolerance relative to the risk."""
    min_risk = max(objective.min_value - objective.offset, 1e-12)
    value_over_risk = 1 + objective.offset / min_risk
    tolerance = _TABLE_TOLERANCE / value_over_risk
    return best_mixture(rays, objective.weights, theta, tolerance, _FIRST_TOLERANCE)
