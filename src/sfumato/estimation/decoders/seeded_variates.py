"""Uniform and normal variates from a fixed key, so that results are reproducible. NOT PRIVATE."""

import hashlib
import math

import numpy as np

from sfumato.foundation.arrays import Floats, Words
from sfumato.randomness import words_from

__all__ = ["SeededVariates", "words_to_normal", "words_to_uniform"]


class SeededVariates:
    """A stream of variates that depends only on its name. Never randomize an answer with it.

    >>> SeededVariates("example").normals(2, 3).shape
    (2, 3)
    """

    def __init__(self, name: str) -> None:
        self._key = hashlib.sha256(f"sfumato/estimation/{name}".encode()).digest()
        self._position = 0

    def uniforms(self, *shape: int) -> Floats:
        """Return the next uniform numbers in (0, 1)."""
        count = math.prod(shape)
        words = words_from(self._key, self._position, (count + 1) // 2)
        self._position += words.shape[0]
        return words_to_uniform(words.ravel()[:count]).reshape(shape)

    def normals(self, *shape: int) -> Floats:
        """Return the next standard normal numbers."""
        count = math.prod(shape)
        words = words_from(self._key, self._position, count)
        self._position += count
        return words_to_normal(words).reshape(shape)


def words_to_uniform(words: Words) -> Floats:
    """Convert words to uniform numbers in (0, 1)."""
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53 + 2.0**-54


def words_to_normal(words: Words) -> Floats:
    """Convert pairs of words to standard normal variates (Box and Muller, 1958)."""
    radius = np.sqrt(-2 * np.log(words_to_uniform(words[:, 0])))
    return radius * np.cos(2 * np.pi * words_to_uniform(words[:, 1]))
