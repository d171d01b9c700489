"""The cone of a context: the columns that a private channel may have.

A channel keeps E if and only if each of its columns ``r = Q(y|·)``, a function of the symbol, lies
in

    C_E = {r ≥ 0 : r_x ≤ e^{E[x, x2]} r_x2 for all x, x2}

Members can be added and scaled, so a mechanism is a way to write the column of ones as a sum of
members, and the best mechanisms use only extreme rays. A flat column lies deep inside. Floats move
columns around in the cone; integers decide whether they lie in it.
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

_FRACTION_BITS = 128  # of the exact e^−E

# Larger than any ratio of word counts: e^100 > 2^144. A sharper bound would take long to compute.
_MAX_EPSILON = Fraction(100)

_MIN_FLOAT = 1e-300  # for e^−E, which is positive even if it is too small for floats
_CLEARLY = 1 + 1e-9  # floats decide nothing closer than this; their errors are below 1e-12
_NEAR = 1e-8  # a solver's column that is this close to a face should lie in it


class Cone:
    """The cone of a closed matrix. Arrays of columns hold one column per row.

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
        """Return the cone of a context, after closing its matrix."""
        return cls(context.exact_matrix().closure())

    @property
    def size(self) -> int:
        """The number of symbols, k."""
        return len(self.E)

    # --- in floats ------------------------------------------------------------------------------

    @cached_property
    def shrink_factors(self) -> Floats:
        """``e^−E``: 0 if and only if nothing is promised."""
        shrink = np.maximum(np.exp(-self.E), _MIN_FLOAT)
        return np.where(np.isfinite(self.E), shrink, 0.0)

    @cached_property
    def growth_factors(self) -> Floats:
        """``e^E``: inf if nothing is promised."""
        return np.exp(self.E)

    def lower(self, columns: Floats) -> Floats:
        """Return the largest member below each column: ``r_x = min_x2 e^{E[x, x2]} c_x2``."""
        lowest = columns.copy()
        for x2 in range(self.size):
            finite = np.isfinite(self.growth_factors[:, x2])
            limit = self.growth_factors[finite, x2] * columns[:, x2, None]
            lowest[:, finite] = np.minimum(lowest[:, finite], limit)
        return lowest

    def lift(self, columns: Floats) -> Floats:
        """Return the least member above each column: ``r_x2 = max_x e^{−E[x, x2]} c_x``.

        One round is enough, because E is closed.
        """
        highest = columns.copy()
        for x in range(self.size):
            np.maximum(highest, columns[:, x, None] * self.shrink_factors[x], out=highest)
        return highest

    def snap(self, columns: Floats) -> Floats:
        """Return members near ``columns``, up to rounding; columns close to a face move into it.

        An entry that a solver left 10⁻⁹ away from the limit of a promise wastes that much of it,
        which for ε = 0.01 is 10⁻⁷ of what can be learned. So place the entries of each column one
        by one, beginning with the largest. Next comes the entry nearest to a limit that the placed
        ones set: move it to that limit if it is close, and leave it otherwise.
        """
        with np.errstate(divide="ignore"):
            logs = np.log(columns)
        row = np.arange(len(columns))
        placed = np.zeros(columns.shape, dtype=np.bool_)
        gap = np.full(columns.shape, np.finfo(np.float64).max)
        limit = logs.copy()
        x = logs.argmax(axis=1)
        for _ in range(self.size):
            near = gap[row, x] <= _NEAR
            logs[row[near], x[near]] = limit[row[near], x[near]]
            placed[row, x] = True
            log = logs[row, x][:, None]
            _keep_nearer(log, -self.E[x], logs, gap, limit)
            _keep_nearer(log, self.E[:, x].T, logs, gap, limit)
            gap[placed] = np.inf
            x = gap.argmin(axis=1)
        return self.lift(np.exp(logs))

    def flat_parts(self, columns: Floats) -> Floats:
        """Return the largest t for each column r such that ``r − t`` lies in the cone.

        A negative t is what r lacks. ``r_x − t ≤ e^E (r_x2 − t)`` if and only if
        ``t ≤ (r_x2 − e^−E r_x)/(1 − e^−E)``; for an infinite E, ``t ≤ r_x2``.
        """
        parts = columns.min(axis=1)
        for x in range(self.size):
            distinct = self.E[x] > 0
            rest = columns[:, distinct] - self.shrink_factors[x, distinct] * columns[:, x, None]
            quotients = rest / -np.expm1(-self.E[x, distinct])
            parts = np.minimum(parts, quotients.min(axis=1, initial=np.inf))
        return parts

    # --- in integers ----------------------------------------------------------------------------

    @cached_property
    def _exact_shrink_factors(self) -> LongIntegers:
        """Integers over 2^128 that are at least ``e^−E``; 0 if nothing is promised."""
        distinct, which = np.unique(self._closed.numerators, return_inverse=True)
        shrink = np.zeros(distinct.size, dtype=object)
        for i, numerator in enumerate(distinct.tolist()):
            if numerator != self._closed.infinite:
                epsilon = Fraction(numerator, self._closed.denominator)
                below, _ = exp_bounds(min(epsilon, _MAX_EPSILON))
                shrink[i] = -(-(below.denominator << _FRACTION_BITS) // below.numerator)
        return shrink[which].reshape(self.E.shape)

    def lift_integers(self, columns: LongIntegers) -> LongIntegers:
        """Return the least member in integers above each column of integers."""
        lifted = columns.copy()
        unfinished = np.arange(len(columns))
        while unfinished.size:
            some = lifted[unfinished]
            changed = self._lift_once(some)
            lifted[unfinished] = some
            unfinished = unfinished[changed]
        return lifted

    def contains(self, column: LongIntegers) -> bool:
        """Return whether a column of integers lies in the cone."""
        return bool(min(column) >= 0 and (self.lift_integers(column[None])[0] == column).all())

    def _lift_once(self, columns: LongIntegers) -> Booleans:
        """Lift entries as far as each symbol in turn requires; return which columns changed."""
        floats = columns.astype(np.float64)
        changed = np.zeros(len(columns), dtype=np.bool_)
        for x in range(self.size):
            unclear = floats[:, x, None] * self.shrink_factors[x] * _CLEARLY > floats
            unclear[:, x] = False
            y, x2 = np.nonzero(unclear)
            needed = -((-columns[y, x] * self._exact_shrink_factors[x, x2]) >> _FRACTION_BITS)
            low = columns[y, x2] < needed
            columns[y[low], x2[low]] = needed[low]
            changed[y[low]] = True
        return changed


def _keep_nearer(log: Floats, step: Floats, logs: Floats, gap: Floats, limit: Floats) -> None:
    """Make ``log + step`` the limit of an entry wherever it is nearer than the current limit."""
    # If an entry is 0 or nothing is promised, inf − inf is nan, and nothing is near.
    with np.errstate(invalid="ignore"):
        bound = log + step
        distance = np.abs(bound - logs)
    nearer = distance < gap
    gap[nearer] = distance[nearer]
    limit[nearer] = bound[nearer]
