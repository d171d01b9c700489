"""The total variation distance, and projection onto the probability simplex.

For a total τ, the point of ``{p ≥ 0, Σp = τ}`` nearest to ``v`` is ``max(v − θ, 0)``, where θ is
the unique number that makes the entries sum to τ (Held, Wolfe, Crowder 1974). The local-privacy
literature calls this projection Norm-Sub.
"""

import numpy as np
from numpy.typing import ArrayLike

from sfumato.foundation.arrays import Floats


def total_variation(p: Floats, p2: Floats) -> float:
    """Return ``½ Σ_x |p_x − p2_x|``, the largest difference in the probability of any event.

    >>> total_variation(np.array([0.5, 0.5]), np.array([0.25, 0.75]))
    0.25
    """
    return float(np.abs(p - p2).sum() / 2)


def project(vector: ArrayLike, total: float = 1.0) -> Floats:
    """Return the point of ``{p ≥ 0, Σp = total}`` nearest to ``vector``, in O(k log k) time.

    >>> project([0.8, 0.5, -0.2])
    array([0.65, 0.35, 0.  ])
    """
    v = np.asarray(vector, dtype=np.float64)
    if v.ndim != 1 or v.size == 0:
        raise ValueError(f"vector must be a non-empty one-dimensional array; got shape {v.shape}.")
    return project_groups(v, np.zeros(v.shape, dtype=np.int64), np.array([total], dtype=np.float64))


def project_groups(vector: Floats, group_of: np.typing.NDArray[np.int64], totals: Floats) -> Floats:
    """Project each group of entries onto the simplex with its total, with one sort for all groups.

    ``group_of[x]``: the group of entry x, counting from 0.
    ``totals[group]``: the sum of the group's projected entries.

    >>> vector = np.array([3.0, 1.0, -1.0, 1.0])
    >>> project_groups(vector, np.array([0, 0, 1, 1]), np.array([2.0, 0.5]))
    array([2. , 0. , 0. , 0.5])
    """
    order = np.lexsort((-vector, group_of))
    group = group_of[order]
    group_start = np.searchsorted(group, np.arange(totals.size))
    # Relative to its group's largest entry, no entry below −total can stay positive. Clipping
    # there does not change the result, and avoids rounding errors when entries are huge.
    v = vector[order]
    largest_in_group = v[np.minimum(group_start, v.size - 1)]
    v = np.maximum(v - largest_in_group[group], -totals[group])
    rank = np.arange(v.size) - group_start[group]
    cumulative = np.cumsum(v)
    sum_before = np.where(group_start > 0, cumulative[np.maximum(group_start, 1) - 1], 0.0)
    # theta[i] is the θ of entry i's group if exactly the group's entries up to i stay positive. The
    # group's true θ is at the last entry that does stay positive.
    theta = (cumulative - sum_before[group] - totals[group]) / (rank + 1)
    positive_count = np.bincount(group[v > theta], minlength=totals.size)
    last_positive = np.minimum(group_start + np.maximum(positive_count, 1) - 1, v.size - 1)
    projected = np.empty_like(v)
    projected[order] = np.maximum(v - theta[last_positive][group], 0.0)
    return projected


def project_groups_weighted(
    vector: Floats, group_of: np.typing.NDArray[np.int64], totals: Floats, scales: Floats
) -> Floats:
    """Return the p ≥ 0 with these group totals that minimises ``Σ_x (p_x − v_x)²/d_x``.

    Here v is the vector and d the scales. The solution is ``max(v − θ_j d, 0)`` in group j. With
    equal scales, it is the projection. With variances as scales, entries with a smaller variance
    change less. Newton's method approaches θ from below: an entry that is negative for one θ stays
    negative for all larger ones (Michelot 1986).

    >>> scales = np.array([1.0, 2.0, 1.0])
    >>> vector = np.array([0.8, 0.5, -0.2])
    >>> project_groups_weighted(vector, np.zeros(3, dtype=int), np.ones(1), scales)
    array([0.7, 0.3, 0. ])
    """
    is_positive = np.ones(vector.size, dtype=np.bool_)
    positive_count = vector.size
    while True:
        scale_sum = np.bincount(group_of, scales * is_positive, minlength=totals.size)
        excess = np.bincount(group_of, vector * is_positive, minlength=totals.size) - totals
        theta = excess / np.where(scale_sum > 0, scale_sum, 1.0)
        p = vector - theta[group_of] * scales
        is_positive &= p > 0
        previous_count = positive_count
        positive_count = int(np.count_nonzero(is_positive))
        if positive_count == previous_count:
            return np.where(is_positive, p, 0.0)
