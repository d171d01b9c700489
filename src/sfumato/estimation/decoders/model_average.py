"""Average several models of where people are, by their evidence.

Nobody chooses a model. Each has a belief beforehand and an evidence, the probability density of the
unbiased shares if the model is true. The posterior of a share is the mixture of the models'
posteriors with weights ``belief · evidence``:

- *no order*: cells are exchangeable, wherever they lie, within their group if there are groups;
- *neighbours*: cells near each other are alike (``tree_model.py``);
- *smooth curve*: over a line or a circle (``curve_model.py``);
- *smooth curve with peaks*: trees, or cells without order, below a stiff curve.

Models treat the errors of different cells as independent; ``correlated_noise.py`` says what follows
from that for mechanisms whose errors are not.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.domains.layout import Layout, Nested
from sfumato.estimation.decoders.cell_shares import CellShares, ShareModel
from sfumato.estimation.decoders.correlated_noise import widen_for_correlation
from sfumato.estimation.decoders.curve_model import CurveModel, has_curves
from sfumato.estimation.decoders.decoder import DecoderResult, Pools
from sfumato.estimation.decoders.group_means import cost_of_means, group_means
from sfumato.estimation.decoders.levels import MixedPosterior, Posterior
from sfumato.estimation.decoders.rooted_cells import RootedCells
from sfumato.estimation.decoders.tree_model import TreeModel, tree_shapes
from sfumato.estimation.decoders.unordered_shapes import (
    UnorderedShape,
    learn_shapes,
    make_given_shapes,
)
from sfumato.foundation.arrays import Floats
from sfumato.mechanisms import Mechanism

__all__ = ["Average", "average_models", "build_models", "decode_cells"]

_BELIEF_UNORDERED = 0.05
_BELIEF_TREES = 0.30
_BELIEF_CURVES = 0.45
_BELIEF_BELOW_CURVES = 0.20
_BELIEF_ROOT = 2.0  # the others add up to 1; a root is passed because it is likely
_MIN_ROOT = 1e-3
_TINY = 1e-300
_ROOT_CURVES = 2  # trees hang below this many stiff curves
_MIN_DECODED_LOG_WEIGHT = math.log(0.001)
_MIN_AVERAGED_LOG_WEIGHT = math.log(0.005)  # relative to the largest weight
_MAX_GAIN = 300.0
_NO_ORDER = "no order"
_NEIGHBOURS = "neighbours"


@dataclass(frozen=True, eq=False)
class Average:
    """The average of several models.

    ``posterior``: the distribution of every intensity.
    ``weight_of``: the weight of the models with each title.
    """

    posterior: Posterior
    weight_of: Mapping[str, float]


def build_models(shares: CellShares, root: Floats | None = None) -> Iterator[ShareModel]:
    """Yield the models for these cells, with their evidence.

    ``root``: a share of every symbol that the crowd's may resemble.
    """
    if root is not None:
        yield _build_model_below(shares, root)
    even = RootedCells.below(shares, np.ones(shares.size))
    shapes = tree_shapes(shares.layout)
    unordered = _make_unordered_shapes(even)
    title = _NEIGHBOURS if _has_neighbours(shares.layout) else _NO_ORDER
    yield TreeModel(title, even, shapes=shapes, belief=_BELIEF_TREES, unordered=unordered)
    if np.unique(shares.group_of).size > 1:
        yield _build_groups(shares)
    if has_curves(shares.layout):
        yield from _build_curves(shares)


def _has_neighbours(layout: Layout) -> bool:
    """Whether some cells are nearer to each other than to others."""
    return not (isinstance(layout, Nested) and not layout.levels)


def _make_unordered_shapes(cells: RootedCells) -> list[UnorderedShape]:
    """Return the given shapes, and the one that the cells teach."""
    belief = _BELIEF_UNORDERED / 2
    return make_given_shapes(cells, belief=belief) + learn_shapes(cells, belief=belief)


def _build_groups(shares: CellShares) -> TreeModel:
    """Return a model in which nothing matters but the group of a cell."""
    means = group_means(shares)
    cells = RootedCells.below(shares, means)
    unordered = _make_unordered_shapes(cells)
    return TreeModel(_NO_ORDER, cells, unordered=unordered, cost=cost_of_means(shares, means))


def _build_curves(shares: CellShares) -> Iterator[ShareModel]:
    """Yield smooth curves, and trees below the stiff ones under which cells are most likely."""
    curves = CurveModel("smooth curve", shares, belief=_BELIEF_CURVES)
    yield curves
    stiff_curves = list(curves.stiff_curves())
    belief = _BELIEF_BELOW_CURVES / 2 / len(stiff_curves)
    roots = []
    for curve in stiff_curves:
        cells = RootedCells.below(shares, curve.intensities)
        unordered = make_given_shapes(cells, belief=belief)
        log_weight = max(shape.log_weight for shape in unordered) + cells.log_unit + curve.cost
        roots.append((log_weight, curve, cells, unordered))
    roots.sort(key=lambda root: -root[0])
    for _, curve, cells, unordered in roots[:_ROOT_CURVES]:
        yield TreeModel(
            "smooth curve with peaks",
            cells,
            shapes=tree_shapes(shares.layout),
            belief=belief,
            unordered=unordered,
            cost=curve.cost,
        )


def _build_model_below(shares: CellShares, root: Floats) -> TreeModel:
    intensities = root[shares.symbols] * shares.size
    intensities = np.maximum(intensities / max(intensities.mean(), _TINY), _MIN_ROOT)
    cells = RootedCells.below(shares, intensities)
    belief = _BELIEF_ROOT / 2
    unordered = make_given_shapes(cells, belief=belief)
    shapes = tree_shapes(shares.layout)
    return TreeModel("like the root", cells, shapes=shapes, belief=belief, unordered=unordered)


def average_models(models: Sequence[ShareModel], size: int) -> Average:
    """Mix the models' posteriors of ``size`` cells, by belief, evidence and gain."""
    log_weights = np.array([model.log_weight for model in models])
    log_weights -= np.logaddexp.reduce(log_weights)
    decoded = []
    for model, log_weight in zip(models, log_weights.tolist(), strict=True):
        if log_weight > _MIN_DECODED_LOG_WEIGHT:
            result = model.decode()
            gain = min(max(result.gain, 0.0), _MAX_GAIN)
            decoded.append((log_weight + gain, model.title, result))
    largest = max(log_weight for log_weight, _, _ in decoded)
    parts = [part for part in decoded if part[0] - largest > _MIN_AVERAGED_LOG_WEIGHT]
    weights = np.exp([log_weight - largest for log_weight, _, _ in parts])
    weights /= weights.sum()
    weight_of: dict[str, float] = {}
    for weight, (_, title, result) in zip(weights.tolist(), parts, strict=True):
        # Without order below a curve, places matter. Without order below an even root, they do not.
        unordered_part = result.unordered_part if title == _NEIGHBOURS else 0.0
        for each, part in ((title, 1 - unordered_part), (_NO_ORDER, unordered_part)):
            if part > 0:
                weight_of[each] = weight_of.get(each, 0.0) + weight * part
    posteriors = [result.posterior for _, _, result in parts]
    if len(posteriors) == 1:
        return Average(posteriors[0], weight_of)
    return Average(MixedPosterior.mix(posteriors, weights.tolist(), size), weight_of)


def decode_cells(
    shares: CellShares, pools: Pools, mechanism: Mechanism, root: Floats | None = None
) -> DecoderResult:
    """Return the average estimate, and the models that carried it."""
    shares = widen_for_correlation(shares, pools, mechanism)
    average = average_models(list(build_models(shares, root)), shares.size)
    weight_of = {title: round(weight, 3) for title, weight in average.weight_of.items()}
    theta = shares.best_intensities(average.posterior)
    return DecoderResult(shares.frequencies(pools, theta), {"models": weight_of})
