"""Divide the samples of an audit into three parts.

The first part is used to order reports, the second to choose events and suspects, and the third for
the test. Events are chosen from one part and tested on another, so the choice does not bias the
test. By default, half of the samples are for the test. Most of these are for the symbols in the
*suspects*, the few pairs that seem most likely to break their promise. If a suspect does break its
promise, far fewer samples are needed to detect this than if all pairs were tested equally.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.auditing.black_box import Counts
from sfumato.errors import InvalidArgument
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.randomness import WordSource


@dataclass(frozen=True)
class SamplePlan:
    """How the samples and the significance level α of an audit are divided.

    ``ordering_share`` and ``choosing_share`` are the shares of the first two parts; the remaining
    samples are for the test. ``uniform_share`` is the share of the test samples that is spread
    evenly over all symbols; the others are for the symbols in the ``suspect_count`` suspect pairs.
    Half of α is divided equally among all pairs, and the other half among the suspects. For a
    comparison of alternative plans, see ``benchmarks/audit.py``.

    >>> SamplePlan(suspect_count=1).ordering_and_choosing_sizes(1000, 2)
    (50, 200)
    """

    ordering_share: float = 0.1
    choosing_share: float = 0.4
    uniform_share: float = 0.3
    suspect_count: int = 3

    def __post_init__(self) -> None:
        for name in ("ordering_share", "choosing_share", "uniform_share"):
            share = getattr(self, name)
            if not isinstance(share, float) or not 0 < share < 1:
                raise InvalidArgument(f"{name} must be a float between 0 and 1; got {share!r}.")
        if self.ordering_share + self.choosing_share >= 1:
            raise InvalidArgument(
                "ordering_share and choosing_share must add up to less than 1, to leave samples "
                f"for the test; got {self.ordering_share} and {self.choosing_share}."
            )
        count = self.suspect_count
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise InvalidArgument(f"suspect_count must be a positive integer; got {count!r}.")

    def ordering_and_choosing_sizes(self, sample_count: int, symbol_count: int) -> tuple[int, int]:
        """Return the number of samples per symbol in the first two parts; each is at least 1."""
        ordering_size = max(int(sample_count * self.ordering_share / symbol_count), 1)
        choosing_size = max(int(sample_count * self.choosing_share / symbol_count), 1)
        return ordering_size, choosing_size

    def mean_test_sizes(
        self, sample_count: int, symbol_count: int, suspect_rows: Iterable[int]
    ) -> Floats:
        """Return λ_x, the expected number of samples for each symbol in the test."""
        test_size = sample_count * (1 - self.ordering_share - self.choosing_share)
        distinct_rows = sorted(set(suspect_rows))
        means = np.full(symbol_count, test_size * self.uniform_share / symbol_count)
        means[distinct_rows] += test_size * (1 - self.uniform_share) / len(distinct_rows)
        return means

    def min_suspect_mean(self, sample_count: int, symbol_count: int) -> float:
        """Return the smallest possible λ_x for a symbol in a suspect pair.

        The minimum is reached if no two suspects share a symbol.
        """
        suspect_rows = range(min(2 * self.suspect_count, symbol_count))
        return float(self.mean_test_sizes(sample_count, symbol_count, suspect_rows)[0])

    def levels(self, alpha: float, pair_count: int, suspects: Sequence[int] | Symbols) -> Floats:
        """Return the significance level of each pair's bound.

        ``suspects`` are the indices of the suspect pairs. The levels add up to α, so all bounds
        hold simultaneously with probability at least 1 − α.
        """
        levels = np.full(pair_count, alpha / 2 / pair_count)
        levels[suspects] += alpha / 2 / len(suspects)
        return levels


def even_blocks(samples_per_symbol: int, symbol_count: int, block_size: int) -> Counts:
    """Divide the samples evenly into blocks of about ``block_size`` samples each.

    Returns the sizes, with a row for each block and a column for each symbol.
    """
    block_count = math.ceil(samples_per_symbol * symbol_count / block_size)
    sizes = np.diff(np.arange(block_count + 1) * samples_per_symbol // block_count)
    return np.tile(sizes[:, None], (1, symbol_count))


def poisson_blocks(means: Floats, block_size: int, source: WordSource) -> Counts:
    """Draw Poisson sample sizes with the given means, in blocks of about ``block_size`` samples.

    Returns the sizes, with a row for each block and a column for each symbol. Each size is drawn
    independently of all samples, from one random word, by inverting the distribution function. So
    the counts for different symbols and events are independent, as the module ``bounds`` requires.
    """
    from scipy.stats import poisson

    block_count = math.ceil(int(means.sum()) / block_size)
    words = source.take(block_count * means.size, 1).reshape(block_count, means.size)
    quantiles = (words.astype(np.float64) + 0.5) / 2.0**64
    quantiles = np.clip(quantiles, 1e-18, 1 - 1e-16)
    return np.asarray(poisson.ppf(quantiles, means / block_count)).astype(np.int64)
