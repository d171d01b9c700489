"""The distribution that a mechanism finds hardest: what "worst" means in a plan.

With ``M[x, x2] = Σ_y Q(y|x2) A[x, y]²`` the variance of one entry of the unbiased estimate is

    n Var_x(p) = Σ_x2 M[x, x2] p_x2 − p_x²,

concave in p. So are its root and sums of roots, and every maximum here is global.
"""

import numpy as np

from sfumato.foundation.arrays import Floats, Symbols
from sfumato.foundation.simplex import project
from sfumato.mechanisms import Mechanism

__all__ = ["hardest_for_l2", "hardest_for_tv", "worst_symbol_variance", "worst_total_variance"]

_SINGLE = 128  # symbols up to which each is looked at on its own
_SINGLE_UNCLASSED = 512  # the same for a mechanism that claims no structure
_MOST_GROUPS = 16
_ROUNDS = 500
_GAP = 1e-3
_TINY = 1e-300


def hardest_for_l2(mechanism: Mechanism) -> Floats:
    """The p of the largest ``risk(p) = ρ·p − ‖p‖²``: the point of the simplex nearest to ``ρ/2``."""
    return project(mechanism.adjoint(mechanism.squared_scores()) / 2)


def hardest_for_tv(mechanism: Mechanism) -> Floats:
    """The p of the largest ``Σ_x √Var_x(p)``, to 0.1 % of the sum, among the p that are level inside groups.

    Groups are single symbols in small domains. In large ones they are the symbols whose rows look alike (the row
    classes of the mechanism), where symmetry says that a hardest p is level, up to the padding of codes. Blocks of one
    size share evenly; blocks that must share a group share by the squares of their sizes, the optimum for blocks.

    Multiplicative ascent; it stops when the gradient shows that no p is better by more than the gap.
    """
    base, group_of = _groups(mechanism)
    groups = int(group_of.max()) + 1
    b = base / np.bincount(group_of, weights=base)[group_of]
    m = np.array(
        [mechanism.second_moments(mechanism.forward(b * (group_of == h))) for h in range(groups)]
    )
    pi = np.bincount(group_of, weights=np.full(base.size, 1 / base.size))
    for _ in range(_ROUNDS):
        p = pi[group_of] * b
        roots = np.sqrt(np.maximum(pi @ m - p**2, _TINY))
        gradient = m @ (0.5 / roots) - np.bincount(group_of, weights=p * b / roots)
        if gradient.max() - pi @ gradient <= _GAP * roots.sum():
            break
        pi = pi * np.maximum(gradient, _TINY)
        pi /= pi.sum()
    return pi[group_of] * b


def worst_symbol_variance(mechanism: Mechanism) -> float:
    """The largest ``n Var_x(p)`` over x and p.

    For one x exactly: a share t of x and the rest on the symbol that disturbs it most give
    ``t M[x, x] + (1 − t) m − t²``, largest at ``t = (M[x, x] − m)/2``. Every x is tried in small domains; in large
    ones, of each group of rows that look alike, those with the largest variance for a level p.
    """
    return max(_worst_of(mechanism, x) for x in _candidates(mechanism))


def worst_total_variance(mechanism: Mechanism, weights: Floats) -> float:
    """The largest ``n Var(Σ_x w_x p̂_x)`` over p, exactly.

    It is ``M·p − (w·p)²`` with ``M_x = Σ_y Q(y|x) (Σ_x2 w_x2 A[x2, y])²``. Because ``t² = max_s (2st − s²)``, the
    largest is the least over s of ``max_x (M_x − 2 s w_x) + s²``: convex in the one number s.
    """
    M = mechanism.adjoint(mechanism.total_scores(weights) ** 2)
    low, high = float(weights.min()), float(weights.max())
    for _ in range(100):
        s, s2 = low + (high - low) / 3, high - (high - low) / 3
        if _dual(M, weights, s) <= _dual(M, weights, s2):
            high = s2
        else:
            low = s
    return _dual(M, weights, (low + high) / 2)


def _dual(M: Floats, weights: Floats, s: float) -> float:
    return float((M - 2 * s * weights).max()) + s * s


def _worst_of(mechanism: Mechanism, x: int) -> float:
    unit = np.zeros(mechanism.inputs)
    unit[x] = 1.0
    M = mechanism.adjoint(mechanism.total_scores(unit) ** 2)
    own, M[x] = float(M[x]), -np.inf
    if mechanism.inputs == 1:
        return own - 1
    disturbed = float(M.max())
    t = min(max((own - disturbed) / 2, 0.0), 1.0)
    return t * own + (1 - t) * disturbed - t * t


def _candidates(mechanism: Mechanism) -> list[int]:
    if mechanism.inputs <= _SINGLE:
        return list(range(mechanism.inputs))
    base, group_of = _groups(mechanism)
    level = mechanism.second_moments(mechanism.forward(base / base.sum()))
    order = np.lexsort((-level, group_of))
    rank = np.arange(order.size) - np.searchsorted(group_of[order], group_of[order])
    return order[rank < 2].tolist()


def _groups(mechanism: Mechanism) -> tuple[Floats, Symbols]:
    """A weight for each symbol inside its group, and the group of each symbol."""
    k, classes = mechanism.inputs, mechanism.row_classes()
    if k <= _SINGLE or (not classes and k <= _SINGLE_UNCLASSED):
        return np.ones(k), np.arange(k)
    base, group_of = np.ones(k), np.zeros(k, dtype=np.int64)
    for i, rows in enumerate(classes):
        _, unit, sizes = np.unique(rows.first, return_inverse=True, return_counts=True)
        base[rows.symbols] = sizes[unit]  # rows that begin at one report are one block
        group_of[rows.symbols] = i
    if len(classes) > _MOST_GROUPS:
        typical = np.bincount(group_of, weights=base) / np.bincount(group_of)
        group_of = (np.argsort(np.argsort(typical)) * _MOST_GROUPS // typical.size)[group_of]
    return base, group_of
