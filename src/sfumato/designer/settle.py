"""From a mixture to a table: few columns, weights that add up to the last digit, integers over a word."""

import numpy as np

from sfumato.arrays import Booleans, Floats
from sfumato.contexts import Context
from sfumato.designer.master import Mixture, best_mixture
from sfumato.designer.search import Answer
from sfumato.mechanisms import TableResponse

__all__ = ["settled"]

_LIGHT = (0.3, 0.03, 3e-3, 0.0)  # of the average weight: rays below it may be done without
_DEAR = 5e-7  # relative loss for which a ray is not done without
_TOLERANCE = 3e-8
_BEGUN = 1e-2  # the weights to begin with come from the path
_BALANCED = 1e-8  # how far Σ θ r may be from 1 before the last correction


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

    The central path gives some weight to every ray of the pool; a report for each would be a waste.
    """
    rays, theta, value = answer.rays, answer.mixture.theta, answer.mixture.value
    for share in _LIGHT:
        kept: Booleans = theta > share / len(theta)
        mixture = _mixed(rays[kept], weights, theta[kept])
        if mixture is not None and mixture.value <= value * (1 + _DEAR):
            return _basic(rays[kept], mixture, weights)
    return rays, theta


def _basic(rays: Floats, mixture: Mixture, weights: Floats) -> tuple[Floats, Floats]:
    """At most ``k(k+1)/2`` of the rays, if so few can be mixed to the same M: a corner of all ways to do it.

    ``Σ θ r rᵀ = M`` are so many equations, and ``M p = 1`` makes the rows add up. Matrices with symmetries have many
    more good rays than that.
    """
    from scipy.optimize import linprog

    k = rays.shape[1]
    if len(rays) <= k * (k + 1) // 2:
        return rays, mixture.theta
    upper = np.triu_indices(k)
    products = (rays[:, :, None] * rays[:, None, :])[:, upper[0], upper[1]]
    corner = linprog(-mixture.theta, A_eq=products.T, b_eq=mixture.theta @ products, method="highs-ds")
    if corner.x is None:
        return rays, mixture.theta
    kept: Booleans = corner.x > 0
    fewer = _mixed(rays[kept], weights, corner.x[kept])
    if fewer is None or fewer.value > mixture.value * (1 + _DEAR):
        return rays, mixture.theta
    return rays[kept], fewer.theta


def _mixed(rays: Floats, weights: Floats, theta: Floats) -> Mixture | None:
    """The best mixture of some rays; ``None`` if they do not tell all symbols apart, or cannot be mixed to 1."""
    if np.linalg.matrix_rank(rays) < rays.shape[1]:
        return None
    mixture = best_mixture(rays, weights, theta, _TOLERANCE, first=_BEGUN)
    return mixture if float(np.abs(mixture.theta @ rays - 1).max()) < _BALANCED else None
