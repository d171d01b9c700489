"""Mechanisms small enough to keep their channel and its scores written out."""

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from sfumato.foundation.arrays import Floats
from sfumato.mechanisms.left_inverse import LeftInverse
from sfumato.mechanisms.mechanism import CompactRow, Mechanism
from sfumato.mechanisms.reach import Reach
from sfumato.mechanisms.scores import Scores, float_vector

__all__ = ["DenseMechanism", "DenseScores", "LeastVarianceScores"]


class DenseMechanism(Mechanism):
    """A mechanism that answers everything from its rows of integers."""

    @abstractmethod
    def integer_row(self, x: int) -> list[int]:
        """Return, for each report, on how many of the ``denominator`` draws symbol x sends it."""

    def compact_row(self, x: int) -> CompactRow:
        """Return the row of x: its distinct integers, and which of them each report has."""
        row = self.integer_row(x)
        levels = list(dict.fromkeys(row))
        if len(levels) == len(row):
            return levels, np.arange(len(row))
        number_of = dict(zip(levels, range(len(levels)), strict=True))
        return levels, np.array([number_of[count] for count in row])

    @cached_property
    def _channel(self) -> Floats:
        return self.matrix()

    def forward(self, p: ArrayLike) -> Floats:
        """Return ``pᵀQ``."""
        return float_vector(p, self.inputs, "p") @ self._channel

    def adjoint(self, v: ArrayLike) -> Floats:
        """Return ``Qv``."""
        return self._channel @ float_vector(v, self.outputs, "v")


class DenseScores(Scores):
    """Scores written out."""

    @cached_property
    def _A(self) -> Floats:
        """The scores, a row per symbol; by default from ``exact``."""
        columns = [self.exact(y) for y in range(self.mechanism.outputs)]
        return np.array(columns, dtype=np.float64).T

    def moments(self, frequencies: ArrayLike, power: int) -> Floats:
        """Return ``Σ_y f(y) A[x, y]^power``."""
        f = float_vector(frequencies, self.mechanism.outputs, "frequencies")
        return self._A**power @ f

    def totals(self, weights: ArrayLike) -> Floats:
        """Return ``wᵀA``."""
        return float_vector(weights, self.mechanism.inputs, "weights") @ self._A

    def squares(self) -> Floats:
        """Return ``Σ_x A[x, y]²``."""
        return (self._A**2).sum(axis=0)

    def _reach(self) -> Reach:
        heaviest = float(np.abs(self._A).sum(axis=0).max())
        return Reach(self._A.max(axis=1), self._A.min(axis=1), heaviest)


class LeastVarianceScores(DenseScores):
    """The unbiased scores of least variance, for people distributed like a crowd.

    ``crowd`` holds an integer for each symbol; without one, all symbols are equally likely.
    """

    def __init__(self, mechanism: Mechanism, crowd: Sequence[int] | None = None) -> None:
        super().__init__(mechanism)
        self._crowd = crowd or [1] * mechanism.inputs

    @cached_property
    def _inverse(self) -> LeftInverse:
        rows = [self.mechanism.integer_row(x) for x in range(self.mechanism.inputs)]
        return LeftInverse(rows, self.mechanism.denominator, self._crowd)

    def exact(self, y: int) -> list[Fraction]:
        """Return one column of the scores."""
        return self._inverse.column(y)

    @cached_property
    def _A(self) -> Floats:
        return self._inverse.floats()
