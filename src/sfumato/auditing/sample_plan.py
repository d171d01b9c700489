"""How the samples of an audit are allotted: to order reports, to choose events and suspects, and to test.

What is chosen on one part is tested on another, so choosing costs nothing. Half of the samples are for the test, and
most of those go to the symbols of the few pairs that looked worst: a pair that breaks its promise is then seen with far
fewer samples than if all pairs were tested alike.
"""

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass

import numpy as np

from sfumato.errors import InvalidContext
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.randomness import WordSource

__all__ = ["Allotment", "even_blocks", "poisson_blocks"]


@dataclass(frozen=True)
class Allotment:
    """Shares of the samples, and of the level α.

    ``ordering`` and ``choosing`` are the shares of the first two parts; the rest is the test. Of the test the share
    ``everywhere`` is spread over all symbols, and the rest over those of the ``suspects``, the pairs that looked worst.
    Half of α is shared by all pairs alike, and half by the suspects. ``benchmarks/audit.py`` shows what other numbers
    would be worth.

    >>> Allotment(suspects=1).first_sizes(1000, 2)
    (50, 200)
    """

    ordering: float = 0.1
    choosing: float = 0.4
    everywhere: float = 0.3
    suspects: int = 3

    def __post_init__(self) -> None:
        *shares, suspects = astuple(self)
        if not all(isinstance(share, float) and 0 < share < 1 for share in shares):
            raise InvalidContext(
                f"ordering, choosing and everywhere must lie between 0 and 1; found {shares}."
            )
        if self.ordering + self.choosing >= 1:
            raise InvalidContext(
                f"ordering and choosing must leave something for the test; found {self.ordering} and {self.choosing}, "
                "which do not add up to less than 1."
            )
        if isinstance(suspects, bool) or not isinstance(suspects, int) or suspects < 1:
            raise InvalidContext(
                f"suspects must be a whole number of at least 1; found {suspects!r}."
            )

    def first_sizes(self, samples: int, symbols: int) -> tuple[int, int]:
        """How many samples of each symbol the first two parts take; at least one."""
        first, second = (
            max(int(samples * share / symbols), 1) for share in (self.ordering, self.choosing)
        )
        return first, second

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


def even_blocks(size: int, symbols: int, block: int) -> Symbols:
    """``size`` samples of each symbol, in blocks of about ``block``: a row for each block, a column for each symbol."""
    blocks = -(-size * symbols // block)
    sizes = np.diff(np.arange(blocks + 1) * size // blocks)
    return np.tile(sizes[:, None], (1, symbols))


def poisson_blocks(means: Floats, block: int, source: WordSource) -> Symbols:
    """Independent Poisson numbers that have these means in all, in blocks of about ``block``: a row for each block.

    They are drawn apart from all samples, by inversion of one word each. That is what makes counts of different symbols
    and events independent; the module ``bounds`` has the use of it.
    """
    from scipy.stats import poisson

    blocks = -(-int(means.sum()) // block)
    words = source.take(blocks * means.size, 1).reshape(blocks, means.size)
    uniform = np.clip((words.astype(np.float64) + 0.5) / 2.0**64, 1e-18, 1 - 1e-16)
    return np.asarray(poisson.ppf(uniform, means / blocks)).astype(np.int64)
