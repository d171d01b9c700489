"""The distribution that a mechanism finds hardest: what "worst" means in a plan.

With ``M[x, x2] = Σ_y Q(y|x2) A[x, y]²`` the variance of one entry of the unbiased estimate is

    n Var_x(p) = Σ_x2 M[x, x2] p_x2 − p_x²,

which is concave in p. So are its root and sums of roots, and every maximum here is global.
"""

import numpy as np

from sfumato.foundation.arrays import Floats, Symbols
from sfumato.foundation.simplex import project
from sfumato.mechanisms import Mechanism

__all__ = ["hardest_for_l2", "hardest_for_tv", "worst_symbol_variance", "worst_total_variance"]

_MAX_SINGLE = 128  # symbols up to which each forms a group of its own
_MAX_SINGLE_UNCLASSED = 512  # the same for a mechanism that claims no structure
_MAX_GROUPS = 16
_MAX_ROUNDS = 500
_GAP = 1e-3
_TINY = 1e-300
_TERNARY_STEPS = 100


def hardest_for_l2(mechanism: Mechanism) -> Floats:
    """Return the p of the largest ``risk(p) = ρ·p − ‖p‖²``: the distribution nearest to ``ρ/2``."""
    rho = mechanism.adjoint(mechanism.scores.squares())
    return project(rho / 2)


def hardest_for_tv(mechanism: Mechanism) -> Floats:
    """Return the p of the largest ``Σ_x √Var_x(p)``, to 0.1 % of the sum.

    Only p that are level inside groups are considered. In small domains groups are single symbols.
    In large ones they are the symbols whose rows look alike (the row classes of the mechanism). By
    symmetry a hardest p is level there, up to the padding of codes. Blocks of one size share
    evenly; blocks that must share a group share by the squares of their sizes, the optimum for
    blocks.

    The method is multiplicative ascent. It stops when the gradient shows that no p is better by
    more than the gap.
    """
    weights, group_of = _groups(mechanism)
    groups = int(group_of.max()) + 1
    inside = weights / np.bincount(group_of, weights=weights)[group_of]
    # moments[h, x]: the second moment of entry x if all people are in group h
    moments = np.empty((groups, mechanism.inputs))
    for h in range(groups):
        q = mechanism.forward(inside * (group_of == h))
        moments[h] = mechanism.scores.moments(q, 2)
    level = np.full(mechanism.inputs, 1 / mechanism.inputs)
    shares = np.bincount(group_of, weights=level)
    for _ in range(_MAX_ROUNDS):
        p = shares[group_of] * inside
        roots = np.sqrt(np.maximum(shares @ moments - p**2, _TINY))
        gradient = moments @ (0.5 / roots) - np.bincount(group_of, weights=p * inside / roots)
        if gradient.max() - shares @ gradient <= _GAP * roots.sum():
            break
        shares = shares * np.maximum(gradient, _TINY)
        shares = shares / shares.sum()
    return shares[group_of] * inside


def worst_symbol_variance(mechanism: Mechanism) -> float:
    """Return the largest ``n Var_x(p)`` over x and p.

    For one x it is exact: a share t of x and the rest on the symbol that disturbs it most give
    ``t M[x, x] + (1 − t) m − t²``, largest at ``t = (M[x, x] − m)/2``. In small domains every x is
    tried; in large ones, in each group of rows that look alike, the two with the largest variance
    at a level p.
    """
    return max(_worst_variance_of(mechanism, x) for x in _candidates(mechanism))


def worst_total_variance(mechanism: Mechanism, weights: Floats) -> float:
    """Return the largest ``n Var(Σ_x w_x p̂_x)`` over p, exactly.

    It is ``M·p − (w·p)²`` with ``M_x = Σ_y Q(y|x) (Σ_x2 w_x2 A[x2, y])²``. Because
    ``t² = max_s (2st − s²)``, the largest is the least over s of ``max_x (M_x − 2 s w_x) + s²``,
    which is convex in the one number s.
    """
    M = mechanism.adjoint(mechanism.scores.totals(weights) ** 2)
    low = float(weights.min())
    high = float(weights.max())
    for _ in range(_TERNARY_STEPS):
        third = (high - low) / 3
        left = low + third
        right = high - third
        if _dual(M, weights, left) <= _dual(M, weights, right):
            high = right
        else:
            low = left
    return _dual(M, weights, (low + high) / 2)


def _dual(M: Floats, weights: Floats, s: float) -> float:
    return float((M - 2 * s * weights).max()) + s * s


def _worst_variance_of(mechanism: Mechanism, x: int) -> float:
    unit = np.zeros(mechanism.inputs)
    unit[x] = 1.0
    M = mechanism.adjoint(mechanism.scores.totals(unit) ** 2)
    own = float(M[x])
    if mechanism.inputs == 1:
        return own - 1
    M[x] = -np.inf
    others = float(M.max())
    t = min(max((own - others) / 2, 0.0), 1.0)
    return t * own + (1 - t) * others - t * t


def _candidates(mechanism: Mechanism) -> list[int]:
    """Return the symbols whose variance may be the largest."""
    if mechanism.inputs <= _MAX_SINGLE:
        return list(range(mechanism.inputs))
    weights, group_of = _groups(mechanism)
    level = mechanism.scores.moments(mechanism.forward(weights / weights.sum()), 2)
    order = np.lexsort((-level, group_of))
    rank = np.arange(order.size) - np.searchsorted(group_of[order], group_of[order])
    return order[rank < 2].tolist()


def _groups(mechanism: Mechanism) -> tuple[Floats, Symbols]:
    """Return the weight of each symbol inside its group, and the group of each symbol."""
    k = mechanism.inputs
    classes = mechanism.row_classes()
    if k <= _MAX_SINGLE or (not classes and k <= _MAX_SINGLE_UNCLASSED):
        return np.ones(k), np.arange(k)
    weights = np.ones(k)
    group_of = np.zeros(k, dtype=np.int64)
    for i, rows in enumerate(classes):
        _, block, sizes = np.unique(rows.first, return_inverse=True, return_counts=True)
        weights[rows.symbols] = sizes[block]  # rows that begin at one report are one block
        group_of[rows.symbols] = i
    if len(classes) > _MAX_GROUPS:
        typical = np.bincount(group_of, weights=weights) / np.bincount(group_of)
        rank = np.argsort(np.argsort(typical))
        group_of = (rank * _MAX_GROUPS // typical.size)[group_of]
    return weights, group_of
