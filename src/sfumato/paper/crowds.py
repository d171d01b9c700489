"""Crowds to draw people from, by formula and seed: uniform, geometric, Zipf, and shuffled ones; and their sizes."""

import hashlib
from collections.abc import Sequence

import numpy as np

from sfumato.errors import InvalidContext
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.randomness import words_from

__all__ = ["crowd_sizes", "geometric", "shuffled_order", "uniform", "zipf"]


def uniform(k: int) -> Floats:
    """``p_x = 1/k``."""
    return np.full(k, 1 / k)


def geometric(k: int, ratio: float) -> Floats:
    """``p_x ∝ ratio^x``.

    >>> geometric(3, 0.5).round(3)
    array([0.571, 0.286, 0.143])
    """
    p = ratio ** np.arange(k)
    return p / p.sum()


def zipf(k: int, exponent: float) -> Floats:
    """``p_x ∝ (x + 1)^{−exponent}``.

    >>> zipf(3, 1.0).round(3)
    array([0.545, 0.273, 0.182])
    """
    p = (np.arange(k) + 1.0) ** -exponent
    return p / p.sum()


def shuffled_order(k: int, name: str, seed: int) -> Symbols:
    """The symbols in an order that only the name and the seed decide.

    >>> sorted(shuffled_order(4, "example", seed=0).tolist())
    [0, 1, 2, 3]
    """
    key = hashlib.sha256(f"sfumato/paper/order/{name}/{seed}".encode()).digest()
    return np.argsort(words_from(key, 0, k)[:, 0], kind="stable").astype(np.int64)


def crowd_sizes(people: Sequence[int]) -> tuple[int, ...]:
    """The sizes of crowds in increasing order, each once.

    >>> crowd_sizes([4000, 1000])
    (1000, 4000)
    """
    sizes = tuple(sorted(set(people)))
    if not sizes or sizes[0] < 1:
        raise InvalidContext(
            "people must be one or more whole numbers of at least 1: the sizes of the crowds."
        )
    return sizes
