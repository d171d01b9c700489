"""Randomize answers and count the reports, batch by batch."""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from sfumato.foundation.arrays import Symbols
from sfumato.mechanisms import Mechanism
from sfumato.survey import AnswerBatch, RowCounts

__all__ = ["tally_answers"]


def tally_answers(
    mechanism: Mechanism, batches: Iterable[AnswerBatch]
) -> tuple[NDArray[np.int64], RowCounts]:
    """Return how often each report was drawn, and what became of the rows."""
    row_counts = RowCounts()

    def count_rows() -> Iterator[Symbols]:
        nonlocal row_counts
        for batch in batches:
            row_counts += batch.counts
            yield batch.symbols

    tally = mechanism.privatize_and_tally(count_rows())
    return tally.counts, row_counts
