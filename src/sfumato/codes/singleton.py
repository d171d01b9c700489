"""Codes in which a point favours itself alone: ``S_x = {x}``."""

import numpy as np

from sfumato.codes.code import Code
from sfumato.foundation.arrays import Booleans, Floats, Words

__all__ = ["OwnPointCode"]


class OwnPointCode(Code):
    """A code with ``S_x = {x}``: sums over sets are the entries themselves."""

    def contains(self, point: Words | np.uint64, output: Words | np.uint64) -> Booleans:
        """``output = point``."""
        return point == output

    def gather(self, weights: Floats) -> Floats:
        """The weights themselves."""
        return weights

    def spread(self, weights: Floats) -> Floats:
        """The weights themselves."""
        return weights
