"""Metric contexts: the closer two symbols, the harder they must be to tell apart."""

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from sfumato.contexts.assignment import Assignment
from sfumato.contexts.blocks import Blocks
from sfumato.contexts.context import Context
from sfumato.contexts.exact import ExactMatrix
from sfumato.contexts.matrix import matrix_domain
from sfumato.contexts.union import ContextUnion, union_of
from sfumato.domains import as_domain
from sfumato.errors import InvalidContext
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.foundation.canonical import Json, decimal_text
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

    @classmethod
    def of_points(
        cls, points: ArrayLike, epsilon: object = 1.0, *, domain: object = None
    ) -> "Metric":
        """The metric of straight lines between points, a row of coordinates each; distances to nine decimals.

        >>> Metric.of_points([[0, 0], [3, 4], [0, 4]], epsilon=0.5).matrix()
        array([[0. , 2.5, 2. ],
               [2.5, 0. , 1.5],
               [2. , 1.5, 0. ]])
        """
        return cls(_straight_lines(_coordinates(points)), epsilon, domain=domain)

    @classmethod
    def tiles_of_points(
        cls, points: ArrayLike, tile_of: object, epsilon: object = 1.0, *, domain: object = None
    ) -> Blocks | ContextUnion:
        """The same inside tiles of points, and no promise across: for domains too large for one matrix.

        A report may show the tile. ``tile_of`` names the tile of each point. Tiles of the same shape have the same
        matrix, so that one mechanism is designed for all of them.

        >>> points = [[0, 0], [0, 1], [5, 0], [5, 1]]
        >>> Metric.tiles_of_points(points, ["west", "west", "east", "east"], epsilon=2).matrix()
        array([[ 0.,  2., inf, inf],
               [ 2.,  0., inf, inf],
               [inf, inf,  0.,  2.],
               [inf, inf,  2.,  0.]])
        """
        at = _coordinates(points)
        tiles = Assignment.read(tile_of, as_domain(len(at)) if domain is None else domain, "tile")
        parts = [cls.of_points(at[tiles.class_of == j], epsilon) for j in range(len(tiles.names))]
        return union_of(parts, tiles.class_of, tiles.domain)

    def tiles(self, tile_of: object) -> Blocks | ContextUnion:
        """The promises inside each tile alone, and none across: a report may show the tile.

        This promises less than the metric itself: two neighbours on either side of a border can be told apart.

        >>> line = Metric([[0, 1, 2], [1, 0, 1], [2, 1, 0]])
        >>> line.tiles([0, 0, 1]).matrix()
        array([[ 0.,  1., inf],
               [ 1.,  0., inf],
               [inf, inf,  0.]])
        """
        tiles = Assignment.read(tile_of, self.domain, "tile")
        parts = []
        for j in range(len(tiles.names)):
            symbols = np.flatnonzero(tiles.class_of == j)
            part = Metric.__new__(Metric)
            Context.__init__(part, as_domain(int(symbols.size)))
            part._hold(self._distances.part(symbols), self._exact)
            parts.append(part)
        return union_of(parts, tiles.class_of, self.domain)

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


_DECIMALS = 9


def _coordinates(points: ArrayLike) -> Floats:
    try:
        at = np.asarray(points, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidContext("points must be rows of coordinates, equally many for each.") from None
    if at.ndim != 2 or at.size == 0 or not np.isfinite(at).all():
        raise InvalidContext(
            f"points must be rows of finite coordinates, one row per symbol; found shape {at.shape}."
        )
    return at


def _straight_lines(at: Floats) -> Floats:
    return np.sqrt(((at[:, None, :] - at[None, :, :]) ** 2).sum(axis=2)).round(_DECIMALS)
