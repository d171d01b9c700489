"""The crowd in a file: how many people have each label, read as it is. NOT PRIVATE."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sfumato.domains import Domain
from sfumato.errors import InvalidTable
from sfumato.foundation.arrays import Symbols

if TYPE_CHECKING:
    from sfumato.tables import AnswerColumns

__all__ = ["Crowd", "column_crowd", "survey_crowd"]


@dataclass(frozen=True, eq=False, repr=False)
class Crowd:
    """How many people have each symbol of a domain, and how many rows were left out because they hold no answer."""

    domain: Domain
    counts: Symbols
    left_out: int = 0


def survey_crowd(
    path: str,
    columns: "AnswerColumns",
    domain: Domain,
    *,
    on_progress: Callable[[int], None] = lambda rows: None,
) -> Crowd:
    """The answers to a survey, counted; values outside its domain are refused by their row."""
    from sfumato.tables import answer_batches

    counts = np.zeros(domain.size, dtype=np.int64)
    for symbols in answer_batches(path, columns, domain, on_progress=on_progress):
        counts += np.bincount(symbols, minlength=domain.size)
    return Crowd(domain, counts)


def column_crowd(
    path: str, column: str, *, on_progress: Callable[[int], None] = lambda rows: None
) -> Crowd:
    """The distinct values of a column, sorted, as a domain; rows without a value are left out and counted."""
    from sfumato.tables import label_texts, open_table

    found: Counter[str] = Counter()
    rows = 0
    with open_table(path) as table:
        for batch in table.batches({column: None}):
            found.update(label for label in label_texts(batch.column(0), column) if label)
            rows += batch.num_rows
            on_progress(rows)
    if len(found) < 2:
        raise InvalidTable(
            f"column {column!r} must hold at least two different answers to compare; found {len(found)}. "
            "Name another column."
        )
    labels = sorted(found)
    counts = np.array([found[label] for label in labels], dtype=np.int64)
    return Crowd(Domain(labels), counts, rows - int(counts.sum()))
