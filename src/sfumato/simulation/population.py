"""Count how many people in a file have each label. NOT PRIVATE: it reads answers as they are."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from sfumato.domains import Domain
from sfumato.errors import InvalidTable
from sfumato.foundation.arrays import Symbols
from sfumato.foundation.parallel import Progress
from sfumato.tables import AnswerColumns, answer_batches, label_texts, open_table

__all__ = ["Population", "column_population", "survey_population"]


@dataclass(frozen=True, eq=False, repr=False)
class Population:
    """How many people have each symbol of a domain, and how many rows hold no answer."""

    domain: Domain
    counts: Symbols
    left_out: int = 0


def survey_population(
    path: str,
    columns: AnswerColumns,
    domain: Domain,
    *,
    on_progress: Progress = lambda rows: None,
) -> Population:
    """Count the answers to a survey. An error names the row of a value outside the domain."""
    counts = np.zeros(domain.size, dtype=np.int64)
    for symbols in answer_batches(path, columns, domain, on_progress=on_progress):
        counts += np.bincount(symbols, minlength=domain.size)
    return Population(domain, counts)


def column_population(
    path: str, column: str, *, on_progress: Progress = lambda rows: None
) -> Population:
    """Take the distinct values of a column, sorted, as the domain. Rows without a value are left out."""
    people: Counter[str] = Counter()
    rows = 0
    with open_table(path) as table:
        for batch in table.batches({column: None}):
            people.update(label for label in label_texts(batch.column(0), column) if label)
            rows += batch.num_rows
            on_progress(rows)
    if len(people) < 2:
        raise InvalidTable(
            f"column {column!r} must contain at least two different answers; got {len(people)}. "
            "Name another column."
        )
    labels = sorted(people)
    counts = np.array([people[label] for label in labels], dtype=np.int64)
    return Population(Domain(labels), counts, rows - int(counts.sum()))
