"""What is asked of a mechanism of any library."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Symbols = NDArray[np.int64]


class NotOffered(Exception):
    """The library has no such step."""


class Estimates(NamedTuple):
    """``raw`` is unbiased; ``own`` is what the library hands out when it is asked for nothing in particular."""

    raw: Floats
    own: Floats | None


class Contestant(ABC):
    """People and reports are in the form in which the library wants them, and can be sliced."""

    def people(self, symbols: Symbols) -> Sequence[Any]:
        """Not timed."""
        return symbols.tolist()

    @abstractmethod
    def privatize(self, people: Sequence[Any]) -> Sequence[Any]:
        """A report per person."""

    def count(self, reports: Sequence[Any]) -> Any:
        """What is decoded later."""
        raise NotOffered

    def decode(self, counted: Any) -> object:
        """The estimate of every symbol."""
        raise NotOffered

    @abstractmethod
    def gather(self, reports: Sequence[Any]) -> None:
        """Count these too, for ``estimates``."""

    @abstractmethod
    def estimates(self) -> Estimates:
        """From everything that was gathered."""
