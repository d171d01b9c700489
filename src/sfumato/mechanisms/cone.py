"""The cone of a context: the columns that a channel which keeps it may have.

A channel keeps E exactly when each of its columns ``r = Q(y|·)`` lies in ``{r ≥ 0 : r_x ≤ e^{E[x,x2]} r_x2}``. The cone
is closed under sums, and a column that is flat lies deep inside. Floats move columns about in it; that they lie in it
is decided in integers.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.contexts import Context
from sfumato.contexts.exact import ExactMatrix
from sfumato.foundation.arrays import Booleans, Floats
from sfumato.randomness.odds import exp_bounds

__all__ = ["Cone", "Integers"]

Integers = NDArray[np.object_]
"""Python integers, which have no largest one, in an array."""

_SHARE_BITS = 128
_MORE_THAN_A_WORD_CAN_SHOW = Fraction(
    100
)  # e^100 is above 2^144; a sharper bound would take long to compute
_CLEAR = (
    1 + 1e-9
)  # floats decide nothing that is closer than this; their own errors are below 1e-12
_NEXT_TO = 1e-8  # columns come from floating-point solvers: what is so close to a face is meant to lie in it


class Cone:
    """The columns r of a context, ``k`` entries each, as columns of arrays.

    >>> from sfumato.contexts import PrivacyMatrix
    >>> cone = Cone(PrivacyMatrix([[0, 1], [2, 0]]))
    >>> cone.raised(np.array([[1000, 100], [300, 800]], dtype=object)).tolist()
    [[1000, 109], [368, 800]]
    """

    def __init__(self, context: Context) -> None:
        closed = context.exact_matrix().closed()
        self._E = closed.floats()
        # e^-E, and 0 only where nothing is promised: a share too small for floats is not nothing.
        self._shares = np.where(np.isfinite(self._E), np.maximum(np.exp(-self._E), 1e-300), 0.0)
        self._exact_shares = _exact_shares(closed)

    # --- in integers --------------------------------------------------------------------------------

    def raised(self, columns: Integers) -> Integers:
        """The least columns of integers above ``columns`` that lie in the cone."""
        raised, open_ones = columns.copy(), np.arange(columns.shape[1])
        while open_ones.size:
            some = raised[:, open_ones]
            changed = self._raise_once(some)
            raised[:, open_ones] = some
            open_ones = open_ones[changed]
        return raised

    def holds(self, column: Integers) -> bool:
        """Whether one column of integers lies in the cone."""
        return bool(min(column) >= 0 and (self.raised(column[:, None])[:, 0] == column).all())

    def _raise_once(self, columns: Integers) -> Booleans:
        """Raise entries to what each symbol in turn asks of them; which columns that changed."""
        floats, changed = columns.astype(np.float64), np.zeros(columns.shape[1], dtype=np.bool_)
        for x in range(len(columns)):
            unclear = floats[x] * self._shares[x][:, None] * _CLEAR > floats
            unclear[x] = False
            x2, y = np.nonzero(unclear)
            asked = -((-columns[x, y] * self._exact_shares[x, x2]) >> _SHARE_BITS)
            low = columns[x2, y] < asked
            columns[x2[low], y[low]] = asked[low]
            changed[y[low]] = True
        return changed

    # --- in floats ----------------------------------------------------------------------------------

    def settled(self, Q: Floats) -> Floats:
        """Columns in the cone, up to rounding, near those of Q: what lay next to a face now lies in it.

        An entry that a solver left 10⁻⁹ away from where a promise is used up loses that much of it, which for
        ε = 0.01 is 10⁻⁷ of what can be learned. So each column grows from its largest entry: the entry that is
        nearest to a limit set by those already placed is placed there, or left alone if it is not near.
        """
        with np.errstate(divide="ignore"):
            logs = np.log(Q)
        placed = np.zeros(Q.shape, dtype=np.bool_)
        gap, limit, columns = (
            np.full(Q.shape, np.finfo(np.float64).max),
            logs.copy(),
            np.arange(Q.shape[1]),
        )
        z = logs.argmax(axis=0)
        for _ in range(len(Q)):
            near = gap[z, columns] <= _NEXT_TO
            logs[z[near], columns[near]] = limit[z[near], columns[near]]
            placed[z, columns] = True
            _keep_nearer(logs[z, columns], -self._E[z].T, logs, gap, limit)
            _keep_nearer(logs[z, columns], self._E[:, z], logs, gap, limit)
            gap[placed] = np.inf
            z = gap.argmin(axis=0)
        return self._raised_floats(np.exp(logs))

    def _raised_floats(self, Q: Floats) -> Floats:
        """The least columns above those of Q that lie in the cone; one round does, because E is closed."""
        for share, row in zip(self._shares, Q.copy(), strict=True):
            Q = np.maximum(Q, share[:, None] * row)
        return Q

    def flat_parts(self, columns: Floats) -> Floats:
        """The largest t for each column r such that ``r − t`` lies in the cone; below 0, what r is short of it.

        ``r_x − t ≤ e^E (r_x2 − t)`` if ``t ≤ (r_x2 − e^−E r_x)/(1 − e^−E)``; with an infinite E, if ``t ≤ r_x2``.
        """
        parts = columns.min(axis=0)
        for x, share in enumerate(self._shares):
            tells = self._E[x] > 0
            quotients = (columns[tells] - share[tells, None] * columns[x]) / -np.expm1(
                -self._E[x, tells]
            )[:, None]
            parts = np.minimum(parts, quotients.min(axis=0, initial=np.inf))
        return parts


def _keep_nearer(placed: Floats, step: Floats, logs: Floats, gap: Floats, limit: Floats) -> None:
    """Where a limit at ``placed + step`` is nearer to an entry than the one known so far, it takes its place."""
    with np.errstate(
        invalid="ignore"
    ):  # where an entry is 0 or nothing is promised, nothing is near
        bound = placed + step
        away = np.abs(bound - logs)
    nearer = away < gap
    gap[nearer], limit[nearer] = away[nearer], bound[nearer]


def _exact_shares(closed: ExactMatrix) -> Integers:
    """For every pair an integer over 2^128 that is at least ``e^−E``; 0 where nothing is promised."""
    distinct, which = np.unique(closed.numerators, return_inverse=True)
    shares = np.zeros(distinct.size, dtype=object)
    for i, numerator in enumerate(distinct.tolist()):
        if numerator != closed.infinite:
            epsilon = Fraction(numerator, closed.denominator)
            odds, _ = exp_bounds(min(epsilon, _MORE_THAN_A_WORD_CAN_SHOW))
            shares[i] = -(-(odds.denominator << _SHARE_BITS) // odds.numerator)
    return shares[which].reshape(closed.numerators.shape)
