"""Whether the reports of a symbol changed during an audit.

A test only covers its own duration. A randomizer that is private while events are chosen, and not
while they are tested, breaks its promise unseen if no event was chosen for it; one that changes
back is even harder to catch. So each symbol's reports in the test are compared with those before
it, by a chi-square test of homogeneity. This does not test a promise: reports may change for a good
reason, such as a public cohort. But the reader should know.
"""

import numpy as np

from sfumato.foundation.arrays import Floats, Symbols

__all__ = ["rows_with_drift"]

_LEVEL = 1e-6  # of all symbols together: false alarms must be rare
_MIN_EXPECTED = 5.0  # below this expected count, the law of the statistic is not known well


def rows_with_drift(before: Symbols, after: Symbols) -> list[int]:
    """Return the rows, one for each symbol, in which two tables of counts have different shares.

    >>> rows_with_drift(np.array([[500, 500], [300, 700]]), np.array([[510, 490], [700, 300]]))
    [1]
    """
    from scipy.special import chdtrc

    rows = []
    for row, counts in enumerate(np.stack([before, after], axis=1).astype(np.float64)):
        cells = _pool_small_cells(counts)
        degrees = cells.shape[1] - 1
        if degrees < 1:
            continue
        expected = cells.sum(axis=1, keepdims=True) * cells.sum(axis=0) / cells.sum()
        statistic = ((cells - expected) ** 2 / expected).sum()
        if chdtrc(degrees, statistic) < _LEVEL / len(before):
            rows.append(row)
    return rows


def _pool_small_cells(counts: Floats) -> Floats:
    """Merge the cells of a 2 × m table that are too small to compare on their own.

    If even their sum is too small, drop them.
    """
    smaller_expected = counts.sum(axis=0) * counts.sum(axis=1).min() / counts.sum()
    large = smaller_expected >= _MIN_EXPECTED
    if smaller_expected[~large].sum() < _MIN_EXPECTED:
        return counts[:, large]
    return np.column_stack([counts[:, large], counts[:, ~large].sum(axis=1)])
