"""How an audit divides its samples: to order reports, to choose events and suspects, and to test.

What is chosen on one part is tested on another, so choosing does not weaken the test. Half of the
samples go to the test, and most of those to the symbols of the few pairs that looked worst. A pair
that breaks its promise is then seen with far fewer samples than if all pairs were tested alike.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.errors import InvalidArgument
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.randomness import WordSource


@dataclass(frozen=True)
class SamplePlan:
    """Shares of the samples, and of the level α.

    ``ordering`` and ``choosing`` are the shares of the first two parts; the rest is the test.
    ``everywhere`` is the share of the test that is spread over all symbols; the rest goes to the
    symbols of the ``suspects``, the pairs that looked worst. Half of α is shared equally by all
    pairs, and half by the suspects. ``benchmarks/audit.py`` measures other shares.

    >>> SamplePlan(suspects=1).first_sizes(1000, 2)
    (50, 200)
    """

    ordering: float = 0.1
    choosing: float = 0.4
    everywhere: float = 0.3
    suspects: int = 3

    def __post_init__(self) -> None:
        for name in ("ordering", "choosing", "everywhere"):
            share = getattr(self, name)
            if not isinstance(share, float) or not 0 < share < 1:
                raise InvalidArgument(f"{name} must be between 0 and 1; got {share!r}.")
        if self.ordering + self.choosing >= 1:
            raise InvalidArgument(
                "ordering and choosing must leave samples for the test: their sum must be below 1; "
                f"got {self.ordering} and {self.choosing}."
            )
        suspects = self.suspects
        if isinstance(suspects, bool) or not isinstance(suspects, int) or suspects < 1:
            raise InvalidArgument(f"suspects must be a positive integer; got {suspects!r}.")

    def first_sizes(self, samples: int, symbols: int) -> tuple[int, int]:
        """Return how many samples of each symbol the first two parts take, at least one."""
        ordering = max(int(samples * self.ordering / symbols), 1)
        choosing = max(int(samples * self.choosing / symbols), 1)
        return ordering, choosing

    def test_means(self, samples: int, symbols: int, suspect_rows: Iterable[int]) -> Floats:
        """Return λ_x: how many samples of each symbol the test takes on average."""
        test = samples * (1 - self.ordering - self.choosing)
        focus = sorted(set(suspect_rows))
        means = np.full(symbols, test * self.everywhere / symbols)
        means[focus] += test * (1 - self.everywhere) / len(focus)
        return means

    def least_focus(self, samples: int, symbols: int) -> float:
        """Return λ_x of a suspect's symbol, if no two suspects share a symbol."""
        suspect_rows = range(min(2 * self.suspects, symbols))
        return float(self.test_means(samples, symbols, suspect_rows)[0])

    def levels(self, alpha: float, pairs: int, suspects: Sequence[int] | Symbols) -> Floats:
        """Return the level of each pair's bound.

        They add up to α, so all bounds hold at once with probability 1 − α.
        """
        levels = np.full(pairs, alpha / 2 / pairs)
        levels[suspects] += alpha / 2 / len(suspects)
        return levels


def even_blocks(size: int, symbols: int, block: int) -> Symbols:
    """Split ``size`` samples of each symbol into blocks of about ``block`` samples.

    Returns a row for each block, with a column for each symbol.
    """
    blocks = math.ceil(size * symbols / block)
    sizes = np.diff(np.arange(blocks + 1) * size // blocks)
    return np.tile(sizes[:, None], (1, symbols))


def poisson_blocks(means: Floats, block: int, source: WordSource) -> Symbols:
    """Draw Poisson numbers of samples with these means, split into blocks of about ``block``.

    Returns a row for each block, with a column for each symbol. The numbers are drawn independently
    of all samples, by inversion of one word each: that makes the counts of different symbols and
    events independent, which the module ``bounds`` uses.
    """
    from scipy.stats import poisson

    blocks = math.ceil(int(means.sum()) / block)
    words = source.take(blocks * means.size, 1).reshape(blocks, means.size)
    uniform = (words.astype(np.float64) + 0.5) / 2.0**64
    uniform = np.clip(uniform, 1e-18, 1 - 1e-16)
    return np.asarray(poisson.ppf(uniform, means / blocks)).astype(np.int64)
