"""Metric contexts: the closer two symbols, the harder they must be to tell apart."""

from fractions import Fraction

import numpy as np

from sfumato.arrays import Floats, Symbols
from sfumato.canonical import Json, decimal_text
from sfumato.contexts.context import Context
from sfumato.contexts.exact import ExactMatrix
from sfumato.contexts.matrix import matrix_domain
from sfumato.errors import InvalidContext
from sfumato.randomness.odds import Epsilon, positive_epsilon

__all__ = ["Metric"]


class Metric(Context):
    """``E[x, x2] = ε · d(x, x2)`` for a symmetric matrix of distances.

    Distances need not obey the triangle inequality; ``closure`` makes them. Distance 0 between two
    symbols asks that nobody can ever tell them apart.

    >>> Metric([[0, 1, 3], [1, 0, 1], [3, 1, 0]], epsilon=0.5).closure().matrix()
    array([[0. , 0.5, 1. ],
           [0.5, 0. , 0.5],
           [1. , 0.5, 0. ]])
    """

    def __init__(self, distances: object, epsilon: object = 1.0, *, domain: object = None) -> None:
        exact = ExactMatrix.parsed(distances, "distances")
        super().__init__(matrix_domain(domain, exact.size))
        uneven = exact.numerators != exact.numerators.T
        if uneven.any():
            x, x2 = np.argwhere(uneven)[0]
            raise InvalidContext(
                f"distances must be symmetric; entries [{x}, {x2}] and [{x2}, {x}] differ. "
                "Use PrivacyMatrix for asymmetric promises."
            )
        self._hold(exact, positive_epsilon(epsilon))

    def _hold(self, distances: ExactMatrix, epsilon: Epsilon) -> None:
        self._distances, self._exact = distances, epsilon
        if isinstance(epsilon, Fraction):
            self._floats = distances.times(epsilon).floats()
        else:  # distance 0 promises 0 even then; the product 0 · inf has no value of its own
            self._floats = np.where(distances.numerators == 0, 0.0, np.inf)
        self._floats.flags.writeable = False

    @property
    def exact_smallest(self) -> Epsilon:
        """ε times the least distance."""
        return self._times_epsilon(self._distances.smallest())

    def exact_epsilon(self, x: int, x2: int) -> Epsilon:
        """ε times the distance, exactly."""
        return self._times_epsilon(self._distances.entry(x, x2))

    def exact_matrix(self) -> ExactMatrix:
        """ε times the distances."""
        if isinstance(self._exact, float):
            return super().exact_matrix()
        return self._distances.times(self._exact)

    def closure(self) -> "Metric":
        """The metric of shortest paths."""
        made = Metric.__new__(Metric)
        Context.__init__(made, self.domain)
        made._hold(self._distances.closed(), self._exact)
        return made

    def record(self) -> Json:
        """The context as plain data."""
        rows = range(self.size)
        distances = [[decimal_text(self._distances.entry(x, x2)) for x2 in rows] for x in rows]
        return {
            "kind": "metric",
            "domain": self.domain.record(),
            "epsilon": decimal_text(self._exact),
            "distances": distances,
        }

    def _epsilon(self, x: Symbols, x2: Symbols) -> Floats:
        return self._floats[x, x2]

    def _times_epsilon(self, distance: Epsilon) -> Epsilon:
        return self._exact * distance if distance != 0 else Fraction(0)

    def __repr__(self) -> str:
        return f"Metric({self.size} × {self.size} distances, epsilon={decimal_text(self._exact)})"
