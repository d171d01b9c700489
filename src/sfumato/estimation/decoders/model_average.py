"""Average several models of where people are, by their evidence.

Nobody chooses a model. Each has a belief beforehand and an evidence, the probability density of the
unbiased shares if the model is true, and the estimate is the average of the models' estimates with
weights ``belief · evidence``:

- *no order*: cells are exchangeable, wherever they lie;
- *neighbours*: cells near each other are alike (``tree_model.py``);
- *smooth curve*: over a line or a circle (``curve_model.py``);
- *smooth curve with peaks*: trees, or cells without order, below a stiff curve.

Models treat the errors of different cells as independent; ``correlated_noise.py`` says what follows
from that for mechanisms whose errors are not.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from sfumato.estimation.decoders.cell_shares import CellShares, ShareModel
from sfumato.estimation.decoders.correlated_noise import widen_for_correlation
from sfumato.estimation.decoders.curve_model import CurveModel, has_curves
from sfumato.estimation.decoders.decoder import DecoderResult, Pools
from sfumato.estimation.decoders.rooted_cells import RootedCells
from sfumato.estimation.decoders.tree_model import TreeModel
from sfumato.estimation.decoders.unordered_model import UnorderedModel
from sfumato.estimation.decoders.unordered_shapes import learn_shapes, make_given_shapes
from sfumato.foundation.arrays import Floats
from sfumato.mechanisms import Mechanism
from sfumato.tally import Tally

__all__ = ["Average", "average_models", "build_models", "decode_cells"]

_BELIEF_UNORDERED = 0.05
_BELIEF_TREES = 0.30
_BELIEF_CURVES = 0.45
_BELIEF_BELOW_CURVES = 0.20
_BELIEF_ROOT = 0.50  # in addition to the others, which add up to 1
_MIN_ROOT = 1e-3
_TINY = 1e-300
_ROOT_CURVES = 2  # trees hang below this many stiff curves
_MIN_DECODED_WEIGHT = 0.001
_MIN_AVERAGED_WEIGHT = 0.005
_MAX_GAIN = 300.0
_NO_ORDER = UnorderedModel.title


@dataclass(frozen=True, eq=False)
class Average:
    """The average of several models.

    ``theta``: the intensities.
    ``weight_of``: the weight of the models with each title.
    """

    theta: Floats
    weight_of: Mapping[str, float]


def build_models(
    shares: CellShares, mechanism: Mechanism, tally: Tally, root: Floats | None = None
) -> Iterator[ShareModel]:
    """Yield the models for these cells, with their evidence.

    ``root``: a share of every symbol that the crowd's may resemble.
    """
    if root is not None:
        yield _build_model_below(shares, root)
    if np.unique(shares.group_of).size > 1:
        yield UnorderedModel(shares, mechanism, tally, belief=_BELIEF_UNORDERED)
    even = RootedCells.below(shares, np.ones(shares.size))
    unordered = make_given_shapes(even, belief=_BELIEF_UNORDERED / 2)
    unordered += learn_shapes(even, belief=_BELIEF_UNORDERED / 2)
    yield TreeModel("neighbours", even, belief=_BELIEF_TREES, unordered=unordered)
    if has_curves(shares.layout):
        yield from _build_curves(shares)


def _build_curves(shares: CellShares) -> Iterator[ShareModel]:
    """Yield smooth curves, and trees below the stiff ones under which cells are most likely."""
    curves = CurveModel("smooth curve", shares, belief=_BELIEF_CURVES)
    yield curves
    roots = []
    for curve in curves.stiff_curves():
        cells = RootedCells.below(shares, curve.intensities)
        unordered = make_given_shapes(cells, belief=_BELIEF_BELOW_CURVES / 2)
        log_weight = max(shape.log_weight for shape in unordered) + cells.log_unit + curve.cost
        roots.append((log_weight, curve, cells))
    roots.sort(key=lambda root: -root[0])
    belief = _BELIEF_BELOW_CURVES / 2 / len(roots)
    for _, curve, cells in roots[:_ROOT_CURVES]:
        unordered = make_given_shapes(cells, belief=belief)
        title = "smooth curve with peaks"
        yield TreeModel(title, cells, belief=belief, unordered=unordered, cost=curve.cost)


def _build_model_below(shares: CellShares, root: Floats) -> TreeModel:
    intensities = root[shares.symbols] * shares.size
    intensities = np.maximum(intensities / max(intensities.mean(), _TINY), _MIN_ROOT)
    cells = RootedCells.below(shares, intensities)
    belief = _BELIEF_ROOT / 2
    unordered = make_given_shapes(cells, belief=belief)
    return TreeModel("like the root", cells, belief=belief, unordered=unordered)


def average_models(models: list[ShareModel]) -> Average:
    """Average the models' estimates, by belief, evidence and gain."""
    log_weights = np.array([model.log_weight for model in models])
    weights = np.exp(log_weights - np.logaddexp.reduce(log_weights))
    parts = []
    for model, weight in zip(models, weights.tolist(), strict=True):
        if weight > _MIN_DECODED_WEIGHT:
            decoded = model.decode()
            gain = min(max(decoded.gain, 0.0), _MAX_GAIN)
            parts.append((math.log(weight) + gain, model.title, decoded))
    total = float(np.logaddexp.reduce([log_weight for log_weight, _, _ in parts]))
    parts = [part for part in parts if part[0] - total > math.log(_MIN_AVERAGED_WEIGHT)]
    total = float(np.logaddexp.reduce([log_weight for log_weight, _, _ in parts]))
    theta = np.zeros_like(parts[0][2].theta)
    weight_of: dict[str, float] = {}
    for log_weight, title, decoded in parts:
        weight = math.exp(log_weight - total)
        theta += weight * decoded.theta
        parts_of_title = {title: 1 - decoded.unordered_part, _NO_ORDER: decoded.unordered_part}
        for each, part in parts_of_title.items():
            if part > 0:
                weight_of[each] = weight_of.get(each, 0.0) + weight * part
    return Average(theta, weight_of)


def decode_cells(
    shares: CellShares,
    pools: Pools,
    mechanism: Mechanism,
    tally: Tally,
    root: Floats | None = None,
) -> DecoderResult:
    """Return the average estimate, and the models that carried it."""
    shares = widen_for_correlation(shares, pools, mechanism)
    average = average_models(list(build_models(shares, mechanism, tally, root)))
    weight_of = {title: round(weight, 3) for title, weight in average.weight_of.items()}
    return DecoderResult(shares.frequencies(pools, average.theta), {"models": weight_of})
