"""The exponential mechanism: what people use for metric privacy today, and what designs are compared with."""

import numpy as np

from sfumato.contexts import Context, ExactMatrix
from sfumato.designer.shelf.recognise import refuse_twins
from sfumato.errors import InvalidContext
from sfumato.foundation.arrays import Floats
from sfumato.mechanisms import TableResponse

__all__ = ["LARGEST_EXPONENTIAL", "exponential_response"]

LARGEST_EXPONENTIAL = 256
"""The exponential mechanism is written out up to this many symbols."""


def exponential_response(context: Context) -> TableResponse:
    """``Q(y|x) = e^{−d(x, y)/2} / Z_x`` with ``Z_x = Σ_y e^{−d(x, y)/2}``; reports are symbols.

    d is the largest metric below the promises of both directions: shortest paths over ``min(E, Eᵀ)``. Where it is
    infinite, y is not sent, but for what rounding leaves over.

    Guarantees: keeps E. By the triangle inequality ``e^{−d(x, y)/2} ≤ e^{d(x, x2)/2} e^{−d(x2, y)/2}`` for every y;
    summed over y, ``Z_x2 ≤ e^{d(x, x2)/2} Z_x``. Together ``Q(y|x) ≤ e^{d(x, x2)} Q(y|x2)``, and d is at most E.
    Cost per report: that of a table. Error: often many times that of a mechanism designed for the matrix.
    Reference: McSherry and Talwar (2007); for metrics Chatzikokolakis et al. (2013).

    >>> from sfumato.contexts import Metric
    >>> exponential_response(Metric([[0, 1, 2], [1, 0, 1], [2, 1, 0]], epsilon=2)).matrix().round(4)
    array([[0.6652, 0.2447, 0.09  ],
           [0.2119, 0.5761, 0.2119],
           [0.09  , 0.2447, 0.6652]])
    """
    if context.size > LARGEST_EXPONENTIAL:
        raise InvalidContext(
            f"the exponential mechanism is written out up to {LARGEST_EXPONENTIAL} symbols; this domain has "
            f"{context.size}. Merge labels, or let reports show blocks of them."
        )
    d = _mutual_distances(context)
    weights = np.exp(-d / 2)
    return TableResponse.near(context, weights / weights.sum(axis=1, keepdims=True))


def _mutual_distances(context: Context) -> Floats:
    """The largest metric with ``d(x, x2) ≤ E[x, x2]`` and ``d(x, x2) ≤ E[x2, x]``."""
    exact = context.exact_matrix()
    N = np.minimum(exact.numerators, exact.numerators.T)
    closed = ExactMatrix(N, exact.denominator, exact.infinite).closure()
    refuse_twins(closed)
    return closed.floats()
