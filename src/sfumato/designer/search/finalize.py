"""From a mixture to a table: few columns, weights that add up to the last digit, integers over a word."""

import numpy as np

from sfumato.contexts import Context
from sfumato.designer.search.master import Mixture, best_mixture
from sfumato.designer.search.objective import Aim
from sfumato.designer.search.search import Answer
from sfumato.foundation.arrays import Booleans, Floats
from sfumato.mechanisms import TableResponse

__all__ = ["settled"]

_LIGHT = (0.3, 0.03, 3e-3, 0.0)  # of the average weight: rays below it may be done without
_DEAR = 5e-7  # relative loss for which a ray is not done without
_TOLERANCE = 3e-8
_BEGUN = 1e-2  # the weights to begin with come from the path


def settled(context: Context, answer: Answer, aim: Aim) -> TableResponse:
    """The answer of a search as a mechanism for the context, with scores that are best for the crowd."""
    rays, theta = _fewest(answer, aim)
    return TableResponse.near(context, (rays * theta[:, None]).T, crowd=list(aim.counts))


def _fewest(answer: Answer, aim: Aim) -> tuple[Floats, Floats]:
    """As few of the rays as do nearly as well, with their best weights.

    The central path gives some weight to every ray of the pool; a report for each would be a waste.
    """
    rays, theta, value = answer.rays, answer.mixture.theta, answer.mixture.value
    dear = _DEAR * (value - aim.known)
    for share in _LIGHT:
        kept: Booleans = theta > share / len(theta)
        mixture = _mixed(rays[kept], aim, theta[kept])
        if mixture.value <= value + dear:
            return _basic(rays[kept], mixture, aim)
    return rays, theta


def _basic(rays: Floats, mixture: Mixture, aim: Aim) -> tuple[Floats, Floats]:
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
    corner = linprog(
        -mixture.theta, A_eq=products.T, b_eq=mixture.theta @ products, method="highs-ds"
    )
    if corner.x is None:
        return rays, mixture.theta
    kept: Booleans = corner.x > 0
    fewer = _mixed(rays[kept], aim, corner.x[kept])
    if fewer.value <= mixture.value + _DEAR * (mixture.value - aim.known):
        return rays[kept], fewer.theta
    return rays, mixture.theta


def _mixed(rays: Floats, aim: Aim, theta: Floats) -> Mixture:
    """The best mixture of some rays, as well as it matters for the risk."""
    value_over_risk = 1 + aim.known / max(aim.in_clear - aim.known, 1e-12)
    return best_mixture(rays, aim.weights, theta, _TOLERANCE / value_over_risk, first=_BEGUN)
