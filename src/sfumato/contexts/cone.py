"""The cone of a context: the columns that a channel satisfying the context can have.

A channel satisfies E if and only if each of its columns ``r = Q(y|·)``, a function of the symbol,
is in

    C_E = {r ≥ 0 : r_x ≤ e^{E[x, x2]} r_x2 for all x, x2}

Sums and non-negative multiples of members are members. So a mechanism is a way to write the column
of ones as a sum of members, and the best mechanisms use only extreme rays. Columns are computed in
floating point; membership is decided in integer arithmetic.
"""

from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.contexts.context import Context
from sfumato.contexts.exact import ExactMatrix
from sfumato.foundation.arrays import Booleans, Floats
from sfumato.randomness import exp_bounds

__all__ = ["Cone", "LongIntegers"]

LongIntegers = NDArray[np.object_]
"""An array of Python integers, which are unbounded."""

_FRACTION_BITS = 128  # bits after the binary point of e^−E in integer arithmetic

# Replaces any larger ε, whose exponential would be slow to compute. This makes no difference,
# because e^100 > 2^144 exceeds the ratio of any two word counts.
_MAX_EPSILON = Fraction(100)

_MIN_SHRINK_FACTOR = 1e-300  # replaces any smaller positive e^−E
_SAFETY_FACTOR = 1 + 1e-9  # closer comparisons use integers; relative float errors are below 1e-12
_SNAP_DISTANCE = 1e-8  # an entry is moved to a limit if their logarithms differ by at most this


class Cone:
    """The cone of a closed matrix. In an array of columns, each row is one column of a channel.

    >>> from sfumato.contexts import PrivacyMatrix
    >>> cone = Cone.from_context(PrivacyMatrix([[0, 1], [2, 0]]))
    >>> cone.lower(np.array([[9.0, 1.0]])).round(3)
    array([[2.718, 1.   ]])
    >>> cone.lift_integers(np.array([[1000, 300], [100, 800]], dtype=object)).tolist()
    [[1000, 368], [109, 800]]
    """

    def __init__(self, closed_matrix: ExactMatrix) -> None:
        self._closed_matrix = closed_matrix
        self.E = closed_matrix.to_floats()

    @classmethod
    def from_context(cls, context: Context) -> "Cone":
        """Return the cone of a context's closure."""
        return cls(context.exact_matrix().closure())

    @property
    def size(self) -> int:
        """The number of symbols, k."""
        return len(self.E)

    # --- floating-point arithmetic ---------------------------------------------------------------

    @cached_property
    def shrink_factors(self) -> Floats:
        """``e^−E``: 0 for pairs with no promise, and positive for all others."""
        factors = np.maximum(np.exp(-self.E), _MIN_SHRINK_FACTOR)
        return np.where(np.isfinite(self.E), factors, 0.0)

    @cached_property
    def growth_factors(self) -> Floats:
        """``e^E``: inf for pairs with no promise."""
        return np.exp(self.E)

    def lower(self, columns: Floats) -> Floats:
        """Return the largest member below each column: ``r_x = min_x2 e^{E[x, x2]} c_x2``."""
        members = columns.copy()
        for x2 in range(self.size):
            finite_mask = np.isfinite(self.growth_factors[:, x2])
            upper_limits = self.growth_factors[finite_mask, x2] * columns[:, x2, None]
            members[:, finite_mask] = np.minimum(members[:, finite_mask], upper_limits)
        return members

    def lift(self, columns: Floats) -> Floats:
        """Return the smallest member above each column: ``r_x2 = max_x e^{−E[x, x2]} c_x``.

        One pass is enough, because E is closed.
        """
        members = columns.copy()
        for x in range(self.size):
            np.maximum(members, columns[:, x, None] * self.shrink_factors[x], out=members)
        return members

    def snap(self, columns: Floats) -> Floats:
        """Return members of the cone near ``columns``, with entries moved to nearby limits.

        The result is in the cone up to float errors. If a solver leaves an entry 10⁻⁹ away from the
        limit set by a promise, that much of the promise is wasted: for ε = 0.01, 10⁻⁷ of the
        available information. So the entries of each column are placed one by one, starting with
        the largest. Placed entries set limits for the others. The next entry to place is always the
        one nearest to its limit. It is moved to the limit if it is close, and left unchanged
        otherwise.
        """
        with np.errstate(divide="ignore"):
            logs = np.log(columns)
        rows = np.arange(len(columns))
        is_placed = np.zeros(columns.shape, dtype=np.bool_)
        gap = np.full(columns.shape, np.finfo(np.float64).max)
        nearest_limit = logs.copy()
        x = logs.argmax(axis=1)
        for _ in range(self.size):
            is_close = gap[rows, x] <= _SNAP_DISTANCE
            logs[rows[is_close], x[is_close]] = nearest_limit[rows[is_close], x[is_close]]
            is_placed[rows, x] = True
            placed_log = logs[rows, x][:, None]
            _update_limits(placed_log, -self.E[x], logs, gap, nearest_limit)
            _update_limits(placed_log, self.E[:, x].T, logs, gap, nearest_limit)
            gap[is_placed] = np.inf
            x = gap.argmin(axis=1)
        return self.lift(np.exp(logs))

    def flat_parts(self, columns: Floats) -> Floats:
        """Return, for each column r, the largest t such that ``r − t`` is in the cone.

        t is negative if r itself is not in the cone. ``r_x − t ≤ e^E (r_x2 − t)`` if and only if
        ``t ≤ (r_x2 − e^−E r_x)/(1 − e^−E)``; for an infinite E, ``t ≤ r_x2``.
        """
        parts = columns.min(axis=1)
        for x in range(self.size):
            is_positive = self.E[x] > 0
            factors = self.shrink_factors[x, is_positive]
            slack = columns[:, is_positive] - factors * columns[:, x, None]
            quotients = slack / -np.expm1(-self.E[x, is_positive])
            parts = np.minimum(parts, quotients.min(axis=1, initial=np.inf))
        return parts

    # --- integer arithmetic ----------------------------------------------------------------------

    @cached_property
    def _exact_shrink_factors(self) -> LongIntegers:
        """``e^−E`` in units of 2^−128, rounded up; 0 for pairs with no promise."""
        numerators, inverse = np.unique(self._closed_matrix.numerators, return_inverse=True)
        factors = np.zeros(numerators.size, dtype=object)
        for i, numerator in enumerate(numerators.tolist()):
            if numerator != self._closed_matrix.infinity:
                epsilon = Fraction(numerator, self._closed_matrix.denominator)
                odds, _ = exp_bounds(min(epsilon, _MAX_EPSILON))  # a lower bound on e^ε
                factors[i] = -(-(odds.denominator << _FRACTION_BITS) // odds.numerator)
        return factors[inverse].reshape(self.E.shape)

    def lift_integers(self, columns: LongIntegers) -> LongIntegers:
        """Return the smallest integer member above each column of integers."""
        lifted_columns = columns.copy()
        pending_rows = np.arange(len(columns))
        while pending_rows.size:
            batch = lifted_columns[pending_rows]
            has_changed = self._lift_once(batch)
            lifted_columns[pending_rows] = batch
            pending_rows = pending_rows[has_changed]
        return lifted_columns

    def contains(self, column: LongIntegers) -> bool:
        """Return whether a column of integers is in the cone."""
        return bool(min(column) >= 0 and (self.lift_integers(column[None])[0] == column).all())

    def _lift_once(self, columns: LongIntegers) -> Booleans:
        """Raise entries in place to the minimum that the other entries require.

        Returns whether each column has changed.
        """
        floats = columns.astype(np.float64)
        has_changed = np.zeros(len(columns), dtype=np.bool_)
        for x in range(self.size):
            # Compare with floats first, and with integers only where floats are not precise enough.
            is_doubtful = floats[:, x, None] * self.shrink_factors[x] * _SAFETY_FACTOR > floats
            is_doubtful[:, x] = False
            y, x2 = np.nonzero(is_doubtful)
            minimum = -((-columns[y, x] * self._exact_shrink_factors[x, x2]) >> _FRACTION_BITS)
            is_too_low = columns[y, x2] < minimum
            columns[y[is_too_low], x2[is_too_low]] = minimum[is_too_low]
            has_changed[y[is_too_low]] = True
        return has_changed


def _update_limits(
    placed_log: Floats, step: Floats, logs: Floats, gap: Floats, nearest_limit: Floats
) -> None:
    """Replace the nearest limit of each entry with ``placed_log + step`` if that is nearer.

    ``nearest_limit``, and ``gap``, the distance to that limit, are updated in place.
    """
    # If an entry is 0 or nothing is promised, inf − inf is NaN, and the comparison is false.
    with np.errstate(invalid="ignore"):
        new_limit = placed_log + step
        distance = np.abs(new_limit - logs)
    is_nearer = distance < gap
    gap[is_nearer] = distance[is_nearer]
    nearest_limit[is_nearer] = new_limit[is_nearer]
