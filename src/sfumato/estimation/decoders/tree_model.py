"""Cells on trees: each cell is like the cells near it, and large cells lie together.

Every node of a tree has an intensity. The root's is known; a child's is its parent's times a random
factor (see ``transitions.py``). How rough a crowd is, close up and from afar, is decided by the
evidence of all reports for about 25 shapes. The shapes that may be true then predict every cell
from all others, on trees with many different offsets, and a pool of these predictions is the cell's
prior.

The root may be a curve, such as a smooth estimate of the same crowd or last month's estimate of
another: then the cells' intensities are relative to it.
"""

import math
from collections.abc import Sequence

import numpy as np

from sfumato.domains.layout import Circle, Layout, Line, Tree
from sfumato.estimation.decoders.cell_shares import ModelResult
from sfumato.estimation.decoders.intensities import (
    BinnedPosterior,
    Floats32,
)
from sfumato.estimation.decoders.prediction_pool import PredictionPool
from sfumato.estimation.decoders.rooted_cells import RootedCells
from sfumato.estimation.decoders.transitions import (
    PeaksAboveDust,
    Roughness,
    TreeShape,
)
from sfumato.estimation.decoders.tree_passes import UpwardPass, evidence_of_shapes
from sfumato.estimation.decoders.unordered_shapes import UnorderedShape
from sfumato.foundation.arrays import Floats

__all__ = ["TreeModel", "tree_shapes"]

_EVEN = tuple(Roughness(b) for b in (0.03, 0.1, 0.2, 0.3, 0.45, 0.65, 0.95))
_PLANE_SHAPES: tuple[TreeShape, ...] = (
    *_EVEN,
    *(Roughness(b, -0.06) for b in (0.65, 0.95, 1.4)),
    *(Roughness(b, -0.12) for b in (0.95, 1.4, 2.0)),
    *(Roughness(b, -0.3) for b in (1.4, 2.0)),
    *(Roughness(b, -1.0) for b in (2.0, 3.0)),
    *(Roughness(b, 0.35, level) for level in (4, 7, 10) for b in (0.2, 0.5)),
)
_ROW_SHAPES: tuple[TreeShape, ...] = (
    *_EVEN,
    *(Roughness(b, -0.15) for b in (0.65, 0.95, 1.4)),
    *(Roughness(b, -0.4) for b in (1.4, 2.0)),
    *(Roughness(b, -1.0) for b in (2.0, 3.0)),
    *(Roughness(b, 0.7, level) for level in (2, 4, 6, 8) for b in (0.2, 0.4, 0.8)),
    *(Roughness(0.4, 0.7, level) for level in (10, 12)),
    *(PeaksAboveDust(share, 0.15, b) for share in (0.8, 0.95) for b in (0.1, 0.4)),
)

_POOLED_TREES = 16
_MAX_POOLED_SHAPES = 20
_POOLED_WEIGHT = 0.97  # the shapes with the largest weights are pooled, up to this total
_TREES_FOR_EVIDENCE = ((5_000, 4), (12_000, 2))  # (most cells, trees); one tree for more cells
_WITHIN_REACH = 4.0  # nats below the best shape, at which one tree's evidence is enough
_MAX_EXTRA_LEVELS = 2  # trees with other offsets may have one level more along each axis


class TreeModel:
    """Trees below a root, and cells without order below it.

    ``shapes``: the shapes of trees, which share ``belief``. ``unordered``: the shapes of cells
    without order. ``cost``: the log evidence of the root itself.
    """

    def __init__(
        self,
        title: str,
        cells: RootedCells,
        *,
        shapes: Sequence[TreeShape] = (),
        belief: float = 0.0,
        unordered: Sequence[UnorderedShape],
        cost: float = 0.0,
    ) -> None:
        self.title = title
        self._cells = cells
        self._unordered = unordered
        self._shapes: list[TreeShape] = []
        log_weights = np.array([shape.log_weight for shape in unordered])
        if shapes:
            tree_count = _count_trees_for_evidence(cells.y.size)
            trees = [cells.shares.layout.tree(5 * i + 3) for i in range(tree_count)]
            self._level_count = len(trees[0]) + _MAX_EXTRA_LEVELS
            self._shapes = [shape for shape in shapes if shape.fits(self._level_count)]
            evidence = self._evidence_on(trees) + math.log(belief / len(self._shapes))
            log_weights = np.concatenate([evidence, log_weights])
        self._log_weights = log_weights + cells.log_unit + cost
        self.log_weight = float(np.logaddexp.reduce(self._log_weights))

    def decode(self) -> ModelResult:
        """Return the posterior, and what many trees gain over one."""
        cells = self._cells
        rows = cells.likelihoods.rows
        pool = PredictionPool(rows)
        number = 0
        unordered_part = 0.0
        for index, weight in self._weights_to_pool():
            if index >= len(self._shapes):
                unordered_part += weight
                prediction = self._unordered[index - len(self._shapes)].prediction
                pool.add(np.broadcast_to(prediction, rows.shape), weight)
                continue
            tree_count = max(1, round(_POOLED_TREES * weight))
            for _ in range(tree_count):
                tree = cells.shares.layout.tree(number)
                upward = self._pass_up(self._shapes[index], tree)
                pool.add(upward.predictions(), weight / tree_count)
                number += 1
        prior, gain = pool.prior()
        posterior = BinnedPosterior.from_prior(
            cells.scale, prior, rows, cells.y, cells.s, cells.root
        )
        return ModelResult(posterior, gain, unordered_part)

    def _weights_to_pool(self) -> list[tuple[int, float]]:
        """Return the index and the weight of each shape to pool."""
        weights = np.exp(self._log_weights - self.log_weight)
        order = np.argsort(-weights)
        count = int((np.cumsum(weights[order]) < _POOLED_WEIGHT).sum()) + 1
        pooled = order[: min(count, _MAX_POOLED_SHAPES)]
        total = float(weights[pooled].sum())
        return [(int(index), float(weights[index]) / total) for index in pooled]

    def _evidence_on(self, trees: Sequence[Tree]) -> Floats:
        """Return the log evidence of each shape, averaged over trees for shapes within reach."""
        cells = self._cells
        rows = cells.likelihoods.rows
        matrices = [self._matrices(shape) for shape in self._shapes]
        sums = np.full(len(matrices), -math.inf)  # logarithms of sums over trees
        counts = np.zeros(len(matrices))
        within_reach = np.arange(len(matrices))
        for tree in trees:
            chosen = [matrices[index] for index in within_reach]
            evidence = evidence_of_shapes(rows, tree, chosen, cells.at_root)
            sums[within_reach] = np.logaddexp(sums[within_reach], evidence)
            counts[within_reach] += 1
            means = sums - np.log(counts)
            within_reach = np.flatnonzero(means > means.max() - _WITHIN_REACH)
        return sums - np.log(counts)

    def _matrices(self, shape: TreeShape) -> list[Floats32]:
        return shape.matrices(self._cells.transitions, self._level_count)

    def _pass_up(self, shape: TreeShape, tree: Tree) -> UpwardPass:
        rows = self._cells.likelihoods.rows
        return UpwardPass.run(rows, tree, self._matrices(shape), self._cells.at_root)


def tree_shapes(layout: Layout) -> tuple[TreeShape, ...]:
    """Return the shapes of trees over this layout."""
    return _ROW_SHAPES if isinstance(layout, Line | Circle) else _PLANE_SHAPES


def _count_trees_for_evidence(cell_count: int) -> int:
    for most_cells, count in _TREES_FOR_EVIDENCE:
        if cell_count <= most_cells:
            return count
    return 1
