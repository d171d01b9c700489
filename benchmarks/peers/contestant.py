"""The interface that every library is measured through."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Symbols = NDArray[np.int64]


class NotOffered(Exception):
    """The library does not offer this step."""


class PeerEstimates(NamedTuple):
    """The unbiased estimate (``raw``) and the library's default (``own``)."""

    raw: Floats
    own: Floats | None


class Contestant(ABC):
    """A mechanism of a library. People and reports have the library's own form, as sequences."""

    def people(self, symbols: Symbols) -> Sequence[Any]:
        """Convert symbols to the library's form. This is not timed."""
        return symbols.tolist()

    @abstractmethod
    def privatize(self, people: Sequence[Any]) -> Sequence[Any]:
        """Return a report for each person."""

    def count(self, reports: Sequence[Any]) -> Any:
        """Return what ``decode`` accepts."""
        raise NotOffered

    def decode(self, counts: Any) -> object:
        """Return the estimate of every symbol."""
        raise NotOffered

    @abstractmethod
    def gather(self, reports: Sequence[Any]) -> None:
        """Add these reports to those of ``estimates``."""

    @abstractmethod
    def estimates(self) -> PeerEstimates:
        """Return the estimates from all reports that were added."""
