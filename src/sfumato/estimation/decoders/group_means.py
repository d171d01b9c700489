"""The means of groups of cells, as a root: cells may lie anywhere, if only their group matters.

Groups are blocks whose shares are known, or symbols that the context protects in the same way.
"""

import numpy as np

from sfumato.estimation.decoders.cell_shares import CellShares
from sfumato.foundation.arrays import Floats

__all__ = ["cost_of_means", "group_means"]

_MIN_ROOT = 1e-3


def group_means(shares: CellShares) -> Floats:
    """Return the mean intensity of each cell's group; 1 for cells that no model may move."""
    counts = np.bincount(shares.group_of, shares.movable_mask, minlength=shares.totals.size)
    means = shares.totals / np.maximum(counts, 1)
    root: Floats = np.where(shares.movable_mask, means[shares.group_of], 1.0)
    return np.maximum(root, _MIN_ROOT)


def cost_of_means(shares: CellShares, root: Floats) -> float:
    """Return the log evidence of the groups' means, as if the cells' shares had given them.

    Other models know nothing of groups. The cells' shares know the mean m of a group of k cells to
    a standard error σ, and beforehand m has the density exp(−m). So the evidence that they lose if
    they must find m out is ``exp(−m) √(2π) σ`` (Laplace).
    """
    members = np.bincount(shares.group_of, minlength=shares.totals.size)
    is_group = members > 0
    variances = np.bincount(shares.group_of, shares.s**2, minlength=shares.totals.size)
    sigma = np.sqrt(variances[is_group]) / members[is_group]
    sums = np.bincount(shares.group_of, root, minlength=shares.totals.size)[is_group]
    m = sums / members[is_group]
    costs = np.log(np.sqrt(2 * np.pi) * sigma) - m
    return float(np.minimum(costs, 0.0).sum())
