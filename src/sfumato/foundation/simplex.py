"""Distributions: their total variation, and the nearest one to a vector of estimates.

For a total τ, the point of ``{p ≥ 0, Σp = τ}`` nearest to ``v`` is ``max(v − θ, 0)`` with the one θ
that makes it sum to τ (Held, Wolfe, Crowder 1974). The local-privacy literature calls it Norm-Sub.
"""

import numpy as np
from numpy.typing import ArrayLike

from sfumato.foundation.arrays import Floats


def total_variation(p: Floats, p2: Floats) -> float:
    """Return ``½ Σ_x |p_x − p2_x|``: the largest difference in probability of any set of symbols.

    >>> total_variation(np.array([0.5, 0.5]), np.array([0.25, 0.75]))
    0.25
    """
    return float(np.abs(p - p2).sum() / 2)


def project(vector: ArrayLike, total: float = 1.0) -> Floats:
    """Return the point of ``{p ≥ 0, Σp = total}`` nearest to ``vector``, in O(k log k).

    >>> project([0.8, 0.5, -0.2])
    array([0.65, 0.35, 0.  ])
    """
    v = np.asarray(vector, dtype=np.float64)
    if v.ndim != 1 or v.size == 0:
        raise ValueError(f"vector must be a row of numbers; got shape {v.shape}.")
    return project_groups(v, np.zeros(v.shape, dtype=np.int64), np.array([total], dtype=np.float64))


def project_groups(vector: Floats, group_of: np.typing.NDArray[np.int64], totals: Floats) -> Floats:
    """Project each group of entries onto its own total, all groups in one sort.

    ``group_of[x]``: the group of entry x, counting from 0. Its entries add up to ``totals[group]``.

    >>> vector = np.array([3.0, 1.0, -1.0, 1.0])
    >>> project_groups(vector, np.array([0, 0, 1, 1]), np.array([2.0, 0.5]))
    array([2. , 0. , 0. , 0.5])
    """
    order = np.lexsort((-vector, group_of))
    group = group_of[order]
    start = np.searchsorted(group, np.arange(totals.size))
    # Measured from its group's largest entry, no entry below −total can stay positive. Clipping
    # there changes nothing, and keeps huge entries from losing their total to rounding errors.
    v = vector[order]
    largest = v[np.minimum(start, v.size - 1)]
    v = np.maximum(v - largest[group], -totals[group])
    rank = np.arange(v.size) - start[group]
    running = np.cumsum(v)
    before = np.where(start > 0, running[np.maximum(start, 1) - 1], 0.0)
    # θ if exactly the entries up to this one stay positive; the true θ is the last consistent one.
    theta = (running - before[group] - totals[group]) / (rank + 1)
    kept = np.bincount(group[v > theta], minlength=totals.size)
    last = np.minimum(start + np.maximum(kept, 1) - 1, v.size - 1)
    projected = np.empty_like(v)
    projected[order] = np.maximum(v - theta[last][group], 0.0)
    return projected


def nearest_in_groups(
    vector: Floats, group_of: np.typing.NDArray[np.int64], totals: Floats, scales: Floats
) -> Floats:
    """Return the p ≥ 0 with these totals and the least ``Σ_x (p_x − v_x)²/d_x``, d the scales.

    It is ``max(v − θ_j d, 0)``. With equal scales it is the projection. With variances as scales,
    entries that are known better change less. Newton's method finds θ from below: an entry that is
    negative for one θ stays so for all larger ones (Michelot 1986).

    >>> scales = np.array([1.0, 2.0, 1.0])
    >>> nearest_in_groups(np.array([0.8, 0.5, -0.2]), np.zeros(3, dtype=int), np.ones(1), scales)
    array([0.7, 0.3, 0. ])
    """
    kept = np.ones(vector.size, dtype=np.bool_)
    left = vector.size
    while True:
        room = np.bincount(group_of, scales * kept, minlength=totals.size)
        excess = np.bincount(group_of, vector * kept, minlength=totals.size) - totals
        p = vector - (excess / np.where(room > 0, room, 1.0))[group_of] * scales
        kept &= p > 0
        still_left = int(np.count_nonzero(kept))
        if still_left == left:
            return np.where(kept, p, 0.0)
        left = still_left
