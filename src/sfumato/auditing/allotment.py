"""How the samples of an audit are allotted: to order reports, to choose events and suspects, and to test.

What is chosen on one part is tested on another, so choosing costs nothing. Half of the samples are for the test, and
most of those go to the symbols of the few pairs that looked worst: a pair that breaks its promise is then seen with far
fewer samples than if all pairs were tested alike.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.arrays import Floats, Symbols
from sfumato.randomness.words import WordSource

__all__ = ["Allotment", "poisson_sizes"]


@dataclass(frozen=True)
class Allotment:
    """Shares of the samples, and of the level α.

    ``ordering`` and ``choosing`` are the shares of the first two parts; the rest is the test. Of the test the share
    ``everywhere`` is spread over all symbols, and the rest over those of the ``suspects``, the pairs that looked worst.
    Half of α is shared by all pairs alike, and half by the suspects. ``benchmarks/audit.py`` shows what other numbers
    would be worth.
    """

    ordering: float = 0.1
    choosing: float = 0.4
    everywhere: float = 0.3
    suspects: int = 3

    def first_sizes(self, samples: int, symbols: int) -> tuple[int, int]:
        """How many samples of each symbol the first two parts take."""
        return int(samples * self.ordering / symbols), int(samples * self.choosing / symbols)

    def test_means(self, samples: int, symbols: int, suspected: Iterable[int]) -> Floats:
        """λ_x: how many samples of each symbol the test takes on average."""
        test = samples * (1 - self.ordering - self.choosing)
        focus = sorted(set(suspected))
        means = np.full(symbols, test * self.everywhere / symbols)
        means[focus] += test * (1 - self.everywhere) / len(focus)
        return means

    def least_focus(self, samples: int, symbols: int) -> float:
        """λ_x of a symbol of a suspect, if no two suspects share a symbol."""
        return float(self.test_means(samples, symbols, range(min(2 * self.suspects, symbols)))[0])

    def levels(self, alpha: float, pairs: int, suspects: Sequence[int] | Symbols) -> Floats:
        """The level of each pair's bound. They add up to α, so all bounds hold at once with probability 1 − α."""
        levels = np.full(pairs, alpha / 2 / pairs)
        levels[suspects] += alpha / 2 / len(suspects)
        return levels


def poisson_sizes(means: Floats, source: WordSource) -> Symbols:
    """Independent Poisson numbers with these means, by inversion of one word each.

    They are drawn apart from all samples. That is what makes counts of different symbols and events independent; the
    module ``bounds`` has the use of it.
    """
    from scipy.stats import poisson

    words = source.take(means.size)[:, 0]
    uniform = np.clip((words.astype(np.float64) + 0.5) / 2.0**64, 1e-18, 1 - 1e-16)
    return np.asarray(poisson.ppf(uniform, means)).astype(np.int64)
