"""Whether a symbol's reports changed while an audit went on.

A test is about the time it takes. A randomiser that is private while events are chosen, and not while they are tested,
is not seen to break its promise where no event was chosen for it; one that changes back, still less. So each symbol's
reports in the test are compared with those before it, by a chi-square test of homogeneity. It is no test of a promise:
reports may change for a good reason, such as a public cohort. But the reader should know.
"""

import numpy as np
from numpy.typing import NDArray

from sfumato.foundation.arrays import Floats, Symbols

__all__ = ["changed_rows"]

_LEVEL = 1e-6  # of all symbols together: that nothing is said for no reason
_EXPECTED = 5.0  # the law of the statistic is known well where so many are expected on either side


def changed_rows(before: Symbols, after: Symbols) -> list[int]:
    """The rows, one for each symbol, in which two tables of counts do not have the same shares.

    >>> changed_rows(np.array([[500, 500], [300, 700]]), np.array([[510, 490], [700, 300]]))
    [1]
    """
    from scipy.special import chdtrc

    found = []
    for row, counts in enumerate(np.stack([before, after], axis=1).astype(np.float64)):
        cells = _pooled(counts)
        expected = cells.sum(axis=1, keepdims=True) * cells.sum(axis=0) / cells.sum()
        statistic = ((cells - expected) ** 2 / expected).sum()
        if cells.shape[1] > 1 and chdtrc(cells.shape[1] - 1, statistic) < _LEVEL / len(before):
            found.append(row)
    return found


def _pooled(counts: Floats) -> Floats:
    """Cells of a 2 × m table that are too small to be compared by themselves become one, if that is large enough."""
    fewest = counts.sum(axis=0) * counts.sum(axis=1).min() / counts.sum()
    large: NDArray[np.bool_] = fewest >= _EXPECTED
    if fewest[~large].sum() < _EXPECTED:
        return counts[:, large]
    return np.column_stack([counts[:, large], counts[:, ~large].sum(axis=1)])
