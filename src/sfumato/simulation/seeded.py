"""Words from a seed, for simulation alone: whoever knows the seed can undo every report."""

import hashlib

from sfumato.errors import InvalidContext
from sfumato.foundation.arrays import Words
from sfumato.randomness import WORDS_PER_POSITION, words_from

__all__ = ["SeededWords"]


class SeededWords:
    """The words of people ``position, position + 1, …`` of run ``run`` under ``seed``. NOT PRIVATE.

    A person's words depend on the seed, the run and the person's row number in the whole input, so results do not
    depend on chunks, workers or file formats.

    >>> whole = SeededWords(1).take(5)
    >>> bool((SeededWords(1, position=3).take(2) == whole[3:]).all())
    True
    """

    def __init__(self, seed: int, *, run: int = 0, position: int = 0) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
            raise InvalidContext("seed must be a whole number from 0 to 2^63 − 1.")
        self._key = hashlib.sha256(f"sfumato/simulation/{seed}/{run}".encode()).digest()
        self._position = position

    def take(self, count: int, words: int = WORDS_PER_POSITION) -> Words:
        """The first ``words`` words of ``count`` further people, shape ``(count, words)``."""
        drawn = words_from(self._key, self._position, count)[:, :words]
        self._position += count
        return drawn

    def __repr__(self) -> str:
        return f"SeededWords(at position {self._position}, NOT PRIVATE: for simulation only)"
