"""From a mixture to a table: few columns, weights that add up to the last digit, integers over a word."""

import numpy as np

from sfumato.arrays import Booleans, Floats
from sfumato.contexts import Context
from sfumato.designer.master import best_mixture
from sfumato.designer.search import Answer
from sfumato.mechanisms import TableResponse

__all__ = ["settled"]

_LIGHT = (0.3, 0.03, 3e-3)  # of the average weight: rays below it may be done without
_DEAR = 5e-7  # relative loss for which a ray is not done without
_TOLERANCE = 3e-8


def settled(context: Context, answer: Answer, weights: Floats, crowd: list[int]) -> TableResponse:
    """The answer of a search as a mechanism for the context, with scores that are best for the crowd."""
    rays, theta = _fewest(answer, weights)
    # The least change, relative to the weights, for which Σ θ r = 1 holds as well as floats can tell.
    for _ in range(3):
        scaled = rays * theta[:, None]
        theta = theta * (1 + rays @ np.linalg.lstsq(scaled.T @ rays, 1 - theta @ rays, rcond=None)[0])
    return TableResponse.near(context, (rays * theta[:, None]).T, crowd=crowd)


def _fewest(answer: Answer, weights: Floats) -> tuple[Floats, Floats]:
    """As few of the rays as do nearly as well, with their best weights.

    The central path gives a little weight to every ray of the pool; a report for each would be a waste.
    """
    rays, theta = answer.rays, answer.mixture.theta
    for share in (*_LIGHT, 0.0):
        kept: Booleans = theta > share / len(theta)
        if np.linalg.matrix_rank(rays[kept]) < rays.shape[1]:
            continue
        mixture = best_mixture(rays[kept], weights, theta[kept], _TOLERANCE)
        if mixture.value <= answer.mixture.value * (1 + _DEAR) or share == 0.0:
            return rays[kept], mixture.theta
    return rays, theta
