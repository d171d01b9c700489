"""Shuffle an array with cryptographic randomness."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.randomness.words import SystemWords, WordSource

__all__ = ["shuffle"]

Item = TypeVar("Item", bound=np.generic)


def shuffle(items: NDArray[Item], source: WordSource | None = None) -> NDArray[Item]:
    """Return the items in random order.

    Each item gets a random word of 64 bits, and the items are sorted by their words. Every order is
    equally likely unless two words are equal, which for 2^24 items has probability below 2^-16.
    Equal words keep their items in order, which shows at most that such a pair exists.

    >>> shuffle(np.array([7, 7, 7]))
    array([7, 7, 7])
    """
    words = (source or SystemWords()).take(items.size, 1)[:, 0]
    return items[np.argsort(words, kind="stable")]
