"""Errors that are correlated between neighbouring cells.

Models treat the errors of different cells as independent. With codes they are, but for what cells
have in common through their total. A mechanism that was designed for a metric is different: its
reports hardly tell neighbours apart, so the errors of neighbours have opposite signs, and their sum
is known better than independent errors would allow. To ignore that is safe: models take sums of
neighbours for less certain than they are, and smooth less than they might.

If errors of neighbours had the same sign, the opposite would hold, and noise could pass for a peak.
Then all standard errors are multiplied so that sums of neighbours have the variance that they
really have.
"""

import numpy as np

from sfumato.domains.layout import Layout
from sfumato.estimation.decoders.cell_shares import CellShares
from sfumato.estimation.decoders.decoder import Pools
from sfumato.foundation.arrays import Symbols
from sfumato.mechanisms import Mechanism

__all__ = ["variance_ratio", "widen_for_correlation"]

_SUMS = 8  # how many sums of neighbours are examined


def widen_for_correlation(shares: CellShares, pools: Pools, mechanism: Mechanism) -> CellShares:
    """Return the shares with larger standard errors if those of neighbours have the same sign."""
    ratio = variance_ratio(shares, pools, mechanism)
    return shares if ratio <= 1 else shares.with_errors(shares.s * np.sqrt(ratio))


def variance_ratio(shares: CellShares, pools: Pools, mechanism: Mechanism) -> float:
    """Return the error variance of a sum of neighbours, over the sum of their error variances.

    The result is the mean over some nodes half-way up a tree.
    """
    p = pools.means / pools.means.sum()
    q = mechanism.forward(p)
    node_of = _nodes_of_neighbours(shares.layout)
    nodes = np.unique(node_of)
    ratios = []
    for node in nodes[:: max(1, nodes.size // _SUMS)]:
        weights = np.zeros(mechanism.inputs)
        weights[shares.symbols[node_of == node]] = 1.0
        scores = mechanism.scores.totals(weights)
        variance = float(q @ scores**2 - (weights @ p) ** 2) / pools.report_count
        sum_of_variances = float(weights @ pools.errors**2)
        if sum_of_variances > 0:
            ratios.append(variance / sum_of_variances)
    return float(np.mean(ratios)) if ratios else 1.0


def _nodes_of_neighbours(layout: Layout) -> Symbols:
    """Return the node of each cell, half-way up a tree."""
    tree = layout.tree(0)
    node_of: Symbols = np.arange(layout.size)
    for merge in tree[: len(tree) // 2]:
        parent_of = np.empty(node_of.max() + 1, dtype=np.int64)
        parents = np.arange(merge.first.size)
        parent_of[merge.first] = parents
        has_second = merge.second >= 0
        parent_of[merge.second[has_second]] = parents[has_second]
        node_of = parent_of[node_of]
    return node_of
