"""Shapes of a crowd without order: every cell has the same distribution, wherever it lies.

Some shapes are given. One is learnt from the cells themselves, as in empirical Bayes. Its density
would be too large an evidence, because it has seen the shares. So each half of the cells is
predicted by the shape that the other half has learnt.
"""

import math
from dataclasses import dataclass

import numpy as np

from sfumato.estimation.decoders.intensities import Floats32, IntensityScale
from sfumato.estimation.decoders.prior import Prior, fit_prior
from sfumato.estimation.decoders.rooted_cells import RootedCells

__all__ = ["UnorderedShape", "learn_shapes", "make_given_shapes"]

_UNORDERED_SPREADS = (0.03, 0.3, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0)
_UNORDERED_PEAKS = ((0.8, 0.15), (0.95, 0.15), (0.95, 0.0), (0.99, 0.0))
_GOLDEN_RATIO = 0.6180339887498949


@dataclass(frozen=True, eq=False)
class UnorderedShape:
    """The distribution of every cell.

    ``log_weight``: the logarithm of the belief in it times its evidence, up to the unit of the
    likelihoods.
    """

    prediction: Floats32
    log_weight: float


def make_given_shapes(cells: RootedCells, *, belief: float) -> list[UnorderedShape]:
    """Return the given shapes; they share the belief."""
    at_root = cells.at_root
    predictions = [at_root @ cells.transitions.with_edges(b) for b in _UNORDERED_SPREADS]
    predictions += [at_root @ cells.transitions.peaks(*each) for each in _UNORDERED_PEAKS]
    log_belief = math.log(belief / len(predictions))
    return [UnorderedShape(w, cells.log_density(w) + log_belief) for w in predictions]


def learn_shapes(cells: RootedCells, *, belief: float) -> list[UnorderedShape]:
    """Return the shape that the cells teach: the mean of the shapes that their halves have learnt.

    Return nothing if some cells are fixed: they are known too well for a shape on a scale.
    """
    if not cells.shares.movable_mask.all():
        return []
    k = cells.y.size
    is_first = np.arange(k) * _GOLDEN_RATIO % 1 < 0.5  # spread over all cells
    mean_prediction = np.zeros_like(cells.at_root)
    log_weight = math.log(belief)
    for half in (is_first, ~is_first):
        prior = fit_prior(cells.y[half], cells.s[half], mean=1.0, max_theta=k, bag_count=0)
        prediction = _on_scale(prior, cells.scale)
        densities = cells.likelihoods.rows[~half] @ prediction
        log_weight += float(np.log(densities).sum(dtype=np.float64))
        mean_prediction += prediction / 2
    return [UnorderedShape(mean_prediction, log_weight)]


def _on_scale(prior: Prior, scale: IntensityScale) -> Floats32:
    """Return the prior's distribution on another scale, with the same mean."""
    distribution = np.zeros(scale.values.size, dtype=np.float32)
    for value, weight in zip(prior.scale.values.tolist(), prior.weights.tolist(), strict=True):
        distribution += np.float32(weight) * scale.at(value)
    return distribution
