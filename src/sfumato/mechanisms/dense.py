"""Mechanisms small enough to keep their channel and its scores written out."""

from abc import abstractmethod
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.foundation.arrays import Floats
from sfumato.mechanisms.left_inverse import LeftInverse
from sfumato.mechanisms.mechanism import Mechanism, checked_vector
from sfumato.mechanisms.reach import Reach

__all__ = ["TabledMechanism"]


class TabledMechanism(Mechanism):
    """Answers everything from two tables: Q in integers, and its scores A."""

    _crowd: tuple[int, ...] | None = None
    """The crowd for which scores are of least variance; ``None``: all symbols equally likely."""

    @abstractmethod
    def _integers(self, x: int) -> list[int]:
        """The row of x, in draws out of ``denominator``."""

    def integer_row(self, x: int) -> list[int]:
        """The row of x as it is written out."""
        return list(self._integers(x))

    def levels(self, x: int) -> tuple[list[int], NDArray[np.intp]]:
        """The row in compact form."""
        number: dict[int, int] = {}
        which = np.array([number.setdefault(count, len(number)) for count in self._integers(x)])
        return list(number), which

    def exact_scores(self, y: int) -> list[Fraction]:
        """One column of the scores."""
        return self._left_inverse.column(y)

    @cached_property
    def _left_inverse(self) -> LeftInverse:
        """What undoes the integers, with least variance for the crowd, or if all symbols are equally likely."""
        rows = [self._integers(x) for x in range(self.inputs)]
        return LeftInverse(rows, self.denominator, self._crowd or [1] * self.inputs)

    @cached_property
    def _channel(self) -> Floats:
        return self.matrix()

    @cached_property
    def _table(self) -> Floats:
        columns = [[float(score) for score in self.exact_scores(y)] for y in range(self.outputs)]
        return np.array(columns).T

    def forward(self, p: ArrayLike) -> Floats:
        """``pᵀQ``."""
        return checked_vector(p, self.inputs, "p") @ self._channel

    def adjoint(self, v: ArrayLike) -> Floats:
        """``Qv``."""
        return self._channel @ checked_vector(v, self.outputs, "v")

    def mean_scores(self, frequencies: ArrayLike) -> Floats:
        """``Af``."""
        return self._table @ checked_vector(frequencies, self.outputs, "frequencies")

    def total_scores(self, weights: ArrayLike) -> Floats:
        """``wᵀA``."""
        return checked_vector(weights, self.inputs, "weights") @ self._table

    def second_moments(self, frequencies: ArrayLike) -> Floats:
        """``Σ_y f(y) A[x, y]²``."""
        return self._table**2 @ checked_vector(frequencies, self.outputs, "frequencies")

    def squared_scores(self) -> Floats:
        """``Σ_x A[x, y]²``."""
        return (self._table**2).sum(axis=0)

    @property
    def leverage(self) -> float:
        """The largest entry of A."""
        return float(np.abs(self._table).max())

    @cached_property
    def reach(self) -> Reach:
        """The extremes of A."""
        return Reach.of_table(self._table)
