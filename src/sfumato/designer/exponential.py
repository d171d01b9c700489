"""The exponential mechanism, the usual choice for metric privacy, as a baseline for designs."""

import numpy as np

from sfumato.contexts import Context, ExactMatrix
from sfumato.designer.recognise import require_distinct_symbols
from sfumato.errors import InvalidContext
from sfumato.mechanisms import TableResponse

__all__ = ["exponential_response"]

_MAX_SIZE = 256  # symbols; the channel is stored as a full table


def exponential_response(context: Context) -> TableResponse:
    """Return the mechanism ``Q(y|x) = e^{−d(x, y)/2} / Z_x``, with ``Z_x = Σ_y e^{−d(x, y)/2}``.

    Reports are symbols. d is the largest metric that is at most E in both directions: the
    shortest-path distances over ``min(E, Eᵀ)``. If d(x, y) is infinite, Q(y|x) is 0 up to rounding.

    Guarantee: the mechanism satisfies E. By the triangle inequality,
    ``e^{−d(x, y)/2} ≤ e^{d(x, x2)/2} e^{−d(x2, y)/2}`` for every y; summed over y,
    ``Z_x2 ≤ e^{d(x, x2)/2} Z_x``. Together, ``Q(y|x) ≤ e^{d(x, x2)} Q(y|x2)``, and d is at most E.
    Cost per report: the same as for any table. Error: often many times that of a mechanism designed
    for the matrix.
    Reference: McSherry and Talwar (2007); Chatzikokolakis et al. (2013) for metrics.

    >>> from sfumato.contexts import Metric
    >>> metric = Metric([[0, 1, 2], [1, 0, 1], [2, 1, 0]], epsilon=2)
    >>> exponential_response(metric).matrix().round(4)
    array([[0.6652, 0.2447, 0.09  ],
           [0.2119, 0.5761, 0.2119],
           [0.09  , 0.2447, 0.6652]])
    """
    if context.size > _MAX_SIZE:
        raise InvalidContext(
            f"the exponential mechanism needs a domain of at most {_MAX_SIZE} symbols; this one "
            f"has {context.size}. Merge labels, or let reports reveal blocks of labels."
        )
    exact = context.exact_matrix()
    numerators = np.minimum(exact.numerators, exact.numerators.T)
    d = ExactMatrix(numerators, exact.denominator, exact.infinity).closure()
    require_distinct_symbols(d)
    weights = np.exp(-d.to_floats() / 2)
    return TableResponse.from_floats(context, weights / weights.sum(axis=1, keepdims=True))
