"""Groups of cells without order: exchangeable within their group, wherever they lie.

Groups are blocks whose shares are known, or symbols that the context protects in the same way.
Their cells may lie anywhere, so models of neighbours cannot know what they have in common.
"""

import numpy as np

from sfumato.estimation.decoders.cell_shares import CellShares, Decoded
from sfumato.estimation.decoders.empirical_bayes import EmpiricalBayes
from sfumato.estimation.decoders.halves import mix_with_projection
from sfumato.estimation.decoders.rooted_cells import RootedCells
from sfumato.estimation.decoders.unordered_shapes import learn_shapes, make_given_shapes
from sfumato.foundation.arrays import Floats
from sfumato.mechanisms import Mechanism
from sfumato.tally import Tally

__all__ = ["UnorderedModel"]

_MIN_ROOT = 1e-3


class UnorderedModel:
    """Its evidence is that of simple shapes around the groups' means.

    Its estimate is that of empirical Bayes, which learns the shape from the cells themselves. For
    that reason, the density of the shares under the learnt shape would be too large an evidence.
    """

    title = "no order"

    def __init__(
        self, shares: CellShares, mechanism: Mechanism, tally: Tally, *, belief: float
    ) -> None:
        self._shares = shares
        self._mechanism = mechanism
        self._tally = tally
        root = _group_means(shares)
        cells = RootedCells.below(shares, root)
        shapes = make_given_shapes(cells, belief=belief / 2) + learn_shapes(
            cells, belief=belief / 2
        )
        self.log_weight = float(np.logaddexp.reduce([shape.log_weight for shape in shapes]))
        self.log_weight += cells.log_unit + _cost_of_means(shares, root)

    def decode(self) -> Decoded:
        """Return the estimate of empirical Bayes."""
        decoded = mix_with_projection(EmpiricalBayes(), self._mechanism, self._tally)
        theta = decoded.frequencies[self._shares.symbols] / self._shares.mean_share
        return Decoded(theta, unordered_part=1.0)


def _group_means(shares: CellShares) -> Floats:
    """Return the mean intensity of each cell's group; 1 for cells that no model may move."""
    counts = np.bincount(shares.group_of, shares.movable_mask, minlength=shares.totals.size)
    means = shares.totals / np.maximum(counts, 1)
    root: Floats = np.where(shares.movable_mask, means[shares.group_of], 1.0)
    return np.maximum(root, _MIN_ROOT)


def _cost_of_means(shares: CellShares, root: Floats) -> float:
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
