"""The crowd in a file: how many people have each label, read as it is. NOT PRIVATE."""

import unicodedata
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.domains import Domain
from sfumato.errors import InvalidTable
from sfumato.foundation.arrays import Arrow, Symbols

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
    from sfumato.tables.read import opened_table

    found: Counter[str] = Counter()
    rows = 0
    with opened_table(path) as table:
        for batch in table.batches({column: None}):
            found.update(_counted(batch.column(0), column))
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


def _counted(column: Arrow, name: str) -> Counter[str]:
    """How often each value occurs: text in the form domains hold, or whole numbers; empty text is missing."""
    import pyarrow as pa

    from sfumato.tables.answers import is_text

    if not (is_text(column.type) or pa.types.is_integer(column.type)):
        raise InvalidTable(
            f"column {name!r} must hold text or whole numbers; its type is {column.type}. Convert it."
        )
    found: Counter[str] = Counter()
    for entry in _entries(column.cast(pa.string()), name):
        if entry["values"]:
            found[unicodedata.normalize("NFC", entry["values"])] += entry["counts"]
    return found


def _entries(column: Arrow, name: str) -> list[dict[str, Any]]:
    """Each value and how often it occurs. The codec's error would hold a value, so ours is raised when it is gone."""
    with suppress(UnicodeDecodeError):
        return list(column.value_counts().to_pylist())
    raise InvalidTable(f"column {name!r} must hold text in UTF-8.")
