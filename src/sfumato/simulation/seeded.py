"""Random words, symbols and permutations from a seed. NOT PRIVATE: the seed reveals all answers."""

import hashlib

import numpy as np

from sfumato.errors import InvalidArgument
from sfumato.foundation.arrays import Floats, Symbols, Words
from sfumato.randomness import WORDS_PER_POSITION, words_from

__all__ = ["SeededWords", "draw_order", "draw_people", "experiment_words"]


class SeededWords:
    """Random words for people ``position, position + 1, …`` in one run. NOT PRIVATE.

    A person's words depend only on the seed, the run and the person's position, which is the row
    number in the complete input. So results do not depend on chunks, workers or file formats.

    >>> words = SeededWords(1).take(5)
    >>> bool((SeededWords(1, position=3).take(2) == words[3:]).all())
    True
    """

    def __init__(self, seed: int, *, run: int = 0, position: int = 0) -> None:
        is_integer = isinstance(seed, int) and not isinstance(seed, bool)
        if not is_integer or not 0 <= seed < 2**63:
            raise InvalidArgument("seed must be an integer from 0 to 2^63 − 1.")
        self._key = hashlib.sha256(f"sfumato/simulation/{seed}/{run}".encode()).digest()
        self._position = position

    def take(self, count: int, words: int = WORDS_PER_POSITION) -> Words:
        """Return the first ``words`` words for the next ``count`` people, one row per person."""
        rows = words_from(self._key, self._position, count)[:, :words]
        self._position += count
        return rows

    def __repr__(self) -> str:
        return f"SeededWords(at position {self._position}, NOT PRIVATE: for simulation only)"


def experiment_words(name: str, run: int, seed: int) -> SeededWords:
    """Return a stream of words that depends only on the name, run and seed. NOT PRIVATE."""
    run_bytes = hashlib.sha256(f"sfumato/paper/{name}/{run}".encode()).digest()[:8]
    return SeededWords(seed, run=int.from_bytes(run_bytes, "big"))


def draw_people(p: Floats, people: int, name: str, run: int, seed: int) -> Symbols:
    """Draw a symbol from p for each person, independently for each name, run and seed.

    >>> draw_people(np.array([0.0, 1.0]), 3, "example", run=0, seed=0).tolist()
    [1, 1, 1]
    """
    key = hashlib.sha256(f"sfumato/paper/{name}/{seed}/{run}".encode()).digest()
    words = words_from(key, 0, (people + 1) // 2).ravel()[:people]
    uniform = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
    cumulative = np.cumsum(p)
    symbols = np.searchsorted(cumulative / cumulative[-1], uniform, side="right")
    return np.minimum(symbols, p.size - 1)


def draw_order(k: int, name: str, seed: int) -> Symbols:
    """Return the symbols in a random order that depends only on the name and the seed.

    >>> sorted(draw_order(4, "example", seed=0).tolist())
    [0, 1, 2, 3]
    """
    key = hashlib.sha256(f"sfumato/paper/order/{name}/{seed}".encode()).digest()
    words = words_from(key, 0, k)[:, 0]
    return np.argsort(words, kind="stable").astype(np.int64)
