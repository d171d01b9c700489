"""The cone of a context: the columns that a private channel may have.

A channel satisfies E if and only if each of its columns ``r = Q(y|·)``, a function of the symbol,
is in

    C_E = {r ≥ 0 : r_x ≤ e^{E[x, x2]} r_x2 for all x, x2}

Members can be added and scaled. So a mechanism is a way to write the column of ones as a sum of
members, and the best mechanisms use only extreme rays. Columns are computed in floats; membership
is decided in integers.
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

_FRACTION_BITS = 128  # of e^−E in integer arithmetic

# e^100 > 2^144 exceeds the ratio of any two word counts. Larger exponents are slow to compute.
_MAX_EPSILON = Fraction(100)

_MIN_SHRINK_FACTOR = 1e-300  # replaces a positive e^−E that underflows
_SAFETY_FACTOR = 1 + 1e-9  # closer comparisons need integers; float errors are below 1e-12
_SNAP_DISTANCE = 1e-8  # a solver's entry this close to a limit is moved to it


class Cone:
    """The cone of a closed matrix. In arrays of columns, each row is one column of a channel.

    >>> from sfumato.contexts import PrivacyMatrix
    >>> cone = Cone.from_context(PrivacyMatrix([[0, 1], [2, 0]]))
    >>> cone.lower(np.array([[9.0, 1.0]])).round(3)
    array([[2.718, 1.   ]])
    >>> cone.lift_integers(np.array([[1000, 300], [100, 800]], dtype=object)).tolist()
    [[1000, 368], [109, 800]]
    """

    def __init__(self, closed: ExactMatrix) -> None:
        self._closed = closed
        self.E = closed.to_floats()

    @classmethod
    def from_context(cls, context: Context) -> "Cone":
        """Return the cone of the closure of a context."""
        return cls(context.exact_matrix().closure())

    @property
    def size(self) -> int:
        """The number of symbols, k."""
        return len(self.E)

    # --- in floats ------------------------------------------------------------------------------

    @cached_property
    def shrink_factors(self) -> Floats:
        """``e^−E``: 0 if and only if nothing is promised."""
        shrink = np.maximum(np.exp(-self.E), _MIN_SHRINK_FACTOR)
        return np.where(np.isfinite(self.E), shrink, 0.0)

    @cached_property
    def growth_factors(self) -> Floats:
        """``e^E``: inf if nothing is promised."""
        return np.exp(self.E)

    def lower(self, columns: Floats) -> Floats:
        """Return the largest member below each column: ``r_x = min_x2 e^{E[x, x2]} c_x2``."""
        lowered = columns.copy()
        for x2 in range(self.size):
            finite_mask = np.isfinite(self.growth_factors[:, x2])
            upper_limit = self.growth_factors[finite_mask, x2] * columns[:, x2, None]
            lowered[:, finite_mask] = np.minimum(lowered[:, finite_mask], upper_limit)
        return lowered

    def lift(self, columns: Floats) -> Floats:
        """Return the smallest member above each column: ``r_x2 = max_x e^{−E[x, x2]} c_x``.

        One pass is enough, because E is closed.
        """
        lifted = columns.copy()
        for x in range(self.size):
            np.maximum(lifted, columns[:, x, None] * self.shrink_factors[x], out=lifted)
        return lifted

    def snap(self, columns: Floats) -> Floats:
        """Return members near ``columns``, up to rounding, with entries moved to nearby limits.

        An entry that a solver left 10⁻⁹ away from the limit that a promise sets wastes that much of
        the promise: for ε = 0.01, this is 10⁻⁷ of the available information. So place the entries
        of each column one by one, starting with the largest. The placed entries set limits for the
        others. The next entry to place is always the one nearest to its limit. It is moved to the
        limit if it is close, and left unchanged otherwise.
        """
        with np.errstate(divide="ignore"):
            logs = np.log(columns)
        row = np.arange(len(columns))
        placed = np.zeros(columns.shape, dtype=np.bool_)
        gap = np.full(columns.shape, np.finfo(np.float64).max)
        limit = logs.copy()
        x = logs.argmax(axis=1)
        for _ in range(self.size):
            is_close = gap[row, x] <= _SNAP_DISTANCE
            logs[row[is_close], x[is_close]] = limit[row[is_close], x[is_close]]
            placed[row, x] = True
            log = logs[row, x][:, None]
            _keep_nearer(log, -self.E[x], logs, gap, limit)
            _keep_nearer(log, self.E[:, x].T, logs, gap, limit)
            gap[placed] = np.inf
            x = gap.argmin(axis=1)
        return self.lift(np.exp(logs))

    def flat_parts(self, columns: Floats) -> Floats:
        """Return, for each column r, the largest t such that ``r − t`` is in the cone.

        t is negative if r itself is not in the cone. ``r_x − t ≤ e^E (r_x2 − t)`` if and only if
        ``t ≤ (r_x2 − e^−E r_x)/(1 − e^−E)``; for an infinite E, ``t ≤ r_x2``.
        """
        parts = columns.min(axis=1)
        for x in range(self.size):
            positive = self.E[x] > 0
            slack = columns[:, positive] - self.shrink_factors[x, positive] * columns[:, x, None]
            quotients = slack / -np.expm1(-self.E[x, positive])
            parts = np.minimum(parts, quotients.min(axis=1, initial=np.inf))
        return parts

    # --- in integers ----------------------------------------------------------------------------

    @cached_property
    def _exact_shrink_factors(self) -> LongIntegers:
        """``e^−E`` in units of 2^−128, rounded up; 0 if nothing is promised."""
        distinct, inverse = np.unique(self._closed.numerators, return_inverse=True)
        shrink = np.zeros(distinct.size, dtype=object)
        for i, numerator in enumerate(distinct.tolist()):
            if numerator != self._closed.infinite:
                epsilon = Fraction(numerator, self._closed.denominator)
                below, _ = exp_bounds(min(epsilon, _MAX_EPSILON))
                shrink[i] = -(-(below.denominator << _FRACTION_BITS) // below.numerator)
        return shrink[inverse].reshape(self.E.shape)

    def lift_integers(self, columns: LongIntegers) -> LongIntegers:
        """Return the smallest integer member above each column of integers."""
        lifted = columns.copy()
        pending = np.arange(len(columns))
        while pending.size:
            batch = lifted[pending]
            has_changed = self._lift_once(batch)
            lifted[pending] = batch
            pending = pending[has_changed]
        return lifted

    def contains(self, column: LongIntegers) -> bool:
        """Return whether a column of integers is in the cone."""
        return bool(min(column) >= 0 and (self.lift_integers(column[None])[0] == column).all())

    def _lift_once(self, columns: LongIntegers) -> Booleans:
        """Lift entries in place to what each other entry requires; return which columns changed."""
        floats = columns.astype(np.float64)
        has_changed = np.zeros(len(columns), dtype=np.bool_)
        for x in range(self.size):
            # Compare in floats first, and in integers only where floats are not precise enough.
            is_doubtful = floats[:, x, None] * self.shrink_factors[x] * _SAFETY_FACTOR > floats
            is_doubtful[:, x] = False
            y, x2 = np.nonzero(is_doubtful)
            needed = -((-columns[y, x] * self._exact_shrink_factors[x, x2]) >> _FRACTION_BITS)
            is_too_low = columns[y, x2] < needed
            columns[y[is_too_low], x2[is_too_low]] = needed[is_too_low]
            has_changed[y[is_too_low]] = True
        return has_changed


def _keep_nearer(log: Floats, step: Floats, logs: Floats, gap: Floats, limit: Floats) -> None:
    """Make ``log + step`` the limit of an entry wherever it is nearer than the current limit."""
    # If an entry is 0 or nothing is promised, inf − inf is NaN, and no comparison holds.
    with np.errstate(invalid="ignore"):
        bound = log + step
        distance = np.abs(bound - logs)
    is_nearer = distance < gap
    gap[is_nearer] = distance[is_nearer]
    limit[is_nearer] = bound[is_nearer]
