"""Metric contexts: the closer two symbols are, the harder they must be to tell apart."""

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from sfumato.contexts.assignment import Assignment
from sfumato.contexts.composite import union
from sfumato.contexts.context import Context
from sfumato.contexts.exact import ExactMatrix
from sfumato.contexts.matrix import matrix_domain
from sfumato.domains import Domain, DomainLike, IntegerDomain
from sfumato.errors import InvalidContext
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.foundation.canonical import Fields, Json, decimal_text
from sfumato.foundation.correct_call import shows_call
from sfumato.foundation.inputs import ClassesLike, MatrixLike, NumberLike
from sfumato.foundation.numpy_values import to_doubles
from sfumato.randomness import Epsilon, positive_epsilon

__all__ = ["Metric"]

_DISTANCE_DECIMALS = 9  # distances between points are rounded to this many decimals


class Metric(Context):
    """``E[x, x2] = ε · d(x, x2)`` for a symmetric matrix of distances.

    Distances need not satisfy the triangle inequality; those of the closure always do. A distance
    of 0 means that no report may tell the two symbols apart.

    >>> Metric([[0, 1, 3], [1, 0, 1], [3, 1, 0]], epsilon=0.5).closure().matrix()
    array([[0. , 0.5, 1. ],
           [0.5, 0. , 0.5],
           [1. , 0.5, 0. ]])
    """

    kind = "metric"
    gist = "by distance"
    is_metric = True

    @shows_call("sf.Metric(distances, epsilon=1, domain=labels)")
    def __init__(
        self,
        distances: MatrixLike,
        epsilon: NumberLike = 1.0,
        *,
        domain: DomainLike | None = None,
    ) -> None:
        exact_distances = ExactMatrix.parse(distances, "distances")
        super().__init__(matrix_domain(domain, exact_distances.size))
        is_asymmetric = exact_distances.numerators != exact_distances.numerators.T
        if is_asymmetric.any():
            x, x2 = np.argwhere(is_asymmetric)[0]
            raise InvalidContext(
                f"distances must be symmetric; entries [{x}, {x2}] and [{x2}, {x}] differ. "
                "Use PrivacyMatrix for asymmetric promises."
            )
        self._set_distances(exact_distances, positive_epsilon(epsilon))

    @classmethod
    def _from_exact(cls, distances: ExactMatrix, epsilon: Epsilon, domain: Domain) -> "Metric":
        """Return a metric without validating its distances."""
        metric = cls.__new__(cls)
        Context.__init__(metric, domain)
        metric._set_distances(distances, epsilon)
        return metric

    def _set_distances(self, distances: ExactMatrix, epsilon: Epsilon) -> None:
        self._distances = distances
        self._exact_epsilon = epsilon
        if isinstance(epsilon, Fraction):
            self._floats = distances.scale(epsilon).to_floats()
        else:  # ε is inf; a distance of 0 still promises 0, although 0 · inf is undefined
            self._floats = np.where(distances.numerators == 0, 0.0, np.inf)
        self._floats.flags.writeable = False

    @classmethod
    def from_points(
        cls, points: ArrayLike, epsilon: NumberLike = 1.0, *, domain: DomainLike | None = None
    ) -> "Metric":
        """Return the Euclidean metric on points, given as rows of coordinates.

        Distances are rounded to nine decimals.

        >>> Metric.from_points([[0, 0], [3, 4], [0, 4]], epsilon=0.5).matrix()
        array([[0. , 2.5, 2. ],
               [2.5, 0. , 1.5],
               [2. , 1.5, 0. ]])
        """
        return cls(_euclidean_distances(_parse_coordinates(points)), epsilon, domain=domain)

    @classmethod
    def tiles_of_points(
        cls,
        points: ArrayLike,
        tile_of: ClassesLike,
        epsilon: NumberLike = 1.0,
        *,
        domain: DomainLike | None = None,
    ) -> Context:
        """Return a context with the Euclidean metric inside each tile and no promise between tiles.

        Use this for domains too large for one matrix. A report may reveal the tile. ``tile_of``
        contains the tile of each point. Tiles of the same shape have the same matrix, so a design
        needs only one mechanism for all of them.

        >>> points = [[0, 0], [0, 1], [5, 0], [5, 1]]
        >>> Metric.tiles_of_points(points, ["west", "west", "east", "east"], epsilon=2).matrix()
        array([[ 0.,  2., inf, inf],
               [ 2.,  0., inf, inf],
               [inf, inf,  0.,  2.],
               [inf, inf,  2.,  0.]])
        """
        coordinates = _parse_coordinates(points)
        point_domain = len(coordinates) if domain is None else domain
        tiles = Assignment.parse(tile_of, point_domain, "tile")
        parts = []
        for j in range(len(tiles.names)):
            parts.append(cls.from_points(coordinates[tiles.class_of == j], epsilon))
        return union(parts, block_of=tiles.class_of, domain=tiles.domain)

    def tiles(self, tile_of: ClassesLike) -> Context:
        """Return a context with only the promises inside each tile; a report may reveal the tile.

        The result promises less than the metric itself: a report may distinguish two neighbours on
        opposite sides of a border between tiles.

        >>> line = Metric([[0, 1, 2], [1, 0, 1], [2, 1, 0]])
        >>> line.tiles([0, 0, 1]).matrix()
        array([[ 0.,  1., inf],
               [ 1.,  0., inf],
               [inf, inf,  0.]])
        """
        tiles = Assignment.parse(tile_of, self.domain, "tile")
        parts = []
        for j in range(len(tiles.names)):
            symbols = np.flatnonzero(tiles.class_of == j)
            distances = self._distances.submatrix(symbols)
            tile_domain = IntegerDomain(symbols.size)
            parts.append(Metric._from_exact(distances, self._exact_epsilon, tile_domain))
        return union(parts, block_of=tiles.class_of, domain=self.domain)

    @property
    def exact_minimum(self) -> Epsilon:
        """The smallest distance between two different symbols, times ε."""
        return self._times_epsilon(self._distances.minimum())

    def exact_epsilon(self, x: int, x2: int) -> Epsilon:
        """Return the exact distance times ε."""
        return self._times_epsilon(self._distances.entry(x, x2))

    def exact_matrix(self) -> ExactMatrix:
        """Return E with exact entries: the distances times ε."""
        if isinstance(self._exact_epsilon, float):
            return super().exact_matrix()
        return self._distances.scale(self._exact_epsilon)

    def closure(self) -> "Metric":
        """Return the metric of shortest-path distances."""
        return Metric._from_exact(self._distances.closure(), self._exact_epsilon, self.domain)

    def to_record(self) -> Json:
        """Return the context as JSON-compatible data."""
        epsilon = decimal_text(self._exact_epsilon)
        return self._record(epsilon=epsilon, distances=self._distances.to_decimals())

    @classmethod
    def from_record(cls, record: Fields) -> "Metric":
        """Return the metric that a record describes."""
        fields, domain = cls._read_fields(record, "epsilon", "distances")
        return cls(fields["distances"], fields["epsilon"], domain=domain)

    def _epsilon(self, x: Symbols, x2: Symbols) -> Floats:
        return self._floats[x, x2]

    def _times_epsilon(self, distance: Epsilon) -> Epsilon:
        return self._exact_epsilon * distance if distance != 0 else Fraction(0)

    def __repr__(self) -> str:
        epsilon = decimal_text(self._exact_epsilon)
        return f"Metric({self.size} × {self.size} distances, epsilon={epsilon})"


def _parse_coordinates(points: ArrayLike) -> Floats:
    try:
        coordinates = to_doubles(points, "points")
    except InvalidContext:
        raise
    except (TypeError, ValueError):
        raise InvalidContext("points must be rows of numbers, all of the same length.") from None
    if coordinates.ndim != 2 or coordinates.size == 0 or not np.isfinite(coordinates).all():
        raise InvalidContext(
            "points must be a non-empty matrix of finite coordinates, with one row per symbol; its "
            f"shape is {coordinates.shape}."
        )
    return coordinates


def _euclidean_distances(coordinates: Floats) -> Floats:
    """Return the matrix of distances between points, rounded to nine decimals."""
    differences = coordinates[:, None, :] - coordinates[None, :, :]
    return np.sqrt((differences**2).sum(axis=2)).round(_DISTANCE_DECIMALS)
