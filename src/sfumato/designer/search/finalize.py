"""From a mixture to a table: few columns, weights exact to the last digit, integers over a word."""

import numpy as np

from sfumato.contexts import Context
from sfumato.designer.search.master import Mixture, best_mixture
from sfumato.designer.search.objective import Objective
from sfumato.designer.search.search import Solution
from sfumato.foundation.arrays import Booleans, Floats
from sfumato.mechanisms import TableResponse

__all__ = ["to_table"]

_LIGHT = (0.3, 0.03, 3e-3, 0.0)  # of the average weight: lighter rays are dropped, if possible
_MAX_LOSS = 5e-7  # of the risk, for dropping rays
_TOLERANCE = 3e-8
_FIRST_TOLERANCE = 1e-2  # the weights to begin with come from the path


def to_table(context: Context, solution: Solution, objective: Objective) -> TableResponse:
    """Return the solution as a mechanism for the context, with the best scores for the crowd."""
    rays, theta = _select_rays(solution, objective)
    columns = rays * theta[:, None]
    return TableResponse.near(context, columns.T, crowd=list(objective.counts))


def _select_rays(solution: Solution, objective: Objective) -> tuple[Floats, Floats]:
    """Return as few rays as do nearly as well, with their best weights.

    The central path gives some weight to every ray of the pool; a report for each would be a waste.
    """
    rays = solution.rays
    theta = solution.mixture.theta
    value = solution.mixture.value
    max_loss = _MAX_LOSS * (value - objective.offset)
    for share in _LIGHT:
        heavy: Booleans = theta > share / len(theta)
        mixture = _mix(rays[heavy], objective, theta[heavy])
        if mixture.value <= value + max_loss:
            return _to_vertex(rays[heavy], mixture, objective)
    return rays, theta


def _to_vertex(rays: Floats, mixture: Mixture, objective: Objective) -> tuple[Floats, Floats]:
    """Return at most ``k(k+1)/2`` of the rays, if they can be mixed to the same M.

    ``Σ θ r rᵀ = M`` is that many equations, and ``M p = 1`` makes the rows add up to 1; a vertex of
    all solutions has no more positive weights than equations. Matrices with symmetries have many
    more good rays than that.
    """
    from scipy.optimize import linprog

    k = rays.shape[1]
    if len(rays) <= k * (k + 1) // 2:
        return rays, mixture.theta
    row, column = np.triu_indices(k)
    products = (rays[:, :, None] * rays[:, None, :])[:, row, column]
    vertex = linprog(
        -mixture.theta, A_eq=products.T, b_eq=mixture.theta @ products, method="highs-ds"
    )
    if vertex.x is None:
        return rays, mixture.theta
    positive: Booleans = vertex.x > 0
    fewer = _mix(rays[positive], objective, vertex.x[positive])
    if fewer.value <= mixture.value + _MAX_LOSS * (mixture.value - objective.offset):
        return rays[positive], fewer.theta
    return rays, mixture.theta


def _mix(rays: Floats, objective: Objective, theta: Floats) -> Mixture:
    """Return the best mixture of some rays, as precisely as it matters for the risk."""
    least_risk = max(objective.least_value - objective.offset, 1e-12)
    value_over_risk = 1 + objective.offset / least_risk
    tolerance = _TOLERANCE / value_over_risk
    return best_mixture(rays, objective.weights, theta, tolerance, first=_FIRST_TOLERANCE)
