"""Summarize a column of a table: its distinct cells, and how often each occurs."""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.domains import Label
from sfumato.errors import InvalidTable
from sfumato.foundation.arrays import Arrow
from sfumato.foundation.formatting import plural
from sfumato.foundation.missing_values import is_missing_cell
from sfumato.survey import AnswerColumns
from sfumato.survey.answers import as_wall_clock, cells_in
from sfumato.survey.cell_lookup import cell_text, describe_cell, is_boolean_cell, spellings
from sfumato.survey.cell_number import cell_number
from sfumato.tables.answers import open_answers, require_cells

__all__ = ["ColumnSummary", "read_blocks", "similar_labels", "summarize_column"]

_MAX_DISTINCT = 2_000_000
_NUMBER_KINDS = frozenset({"whole numbers", "decimal numbers", "numbers with leading zeros"})
_BELOW = re.compile(r"\s*(<|≤|under|below|less than)\s*(?=[0-9])", re.IGNORECASE)
_MISSING_TEXTS = frozenset(
    {"na", "n/a", "#n/a", "nan", "null", "none", "missing", "unknown", ".", "-", "--", "?"}
)


@dataclass(frozen=True, repr=False)
class ColumnSummary:
    """The distinct answers in a column, and how often each occurs. Its repr has no answers.

    ``missing``: the number of rows without an answer. ``counts``: the number of rows with each
    answer, keyed by cells as they are in the table. ``note`` says which part of the file was read,
    if there are others. ``order``: the labels in the order that the file gives them, if it has one.
    """

    name: str
    missing: int
    counts: dict[Any, int]
    note: str = ""
    order: tuple[Label, ...] = ()

    def __repr__(self) -> str:
        return f"ColumnSummary({self.name!r}, {plural(self.rows, 'row')})"

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.missing + sum(self.counts.values())

    @cached_property
    def kinds(self) -> frozenset[str]:
        """What the answers look like, such as "decimal numbers"."""
        return frozenset(map(describe_cell, self.counts))

    @property
    def is_numeric(self) -> bool:
        """Whether all answers are numbers."""
        return bool(self.kinds) and self.kinds <= _NUMBER_KINDS

    @cached_property
    def is_whole(self) -> bool:
        """Whether all answers are whole numbers below 2^53, perhaps like 65.0, but not like 065."""
        return self.is_numeric and all(map(_has_whole_spelling, self.counts))

    @cached_property
    def is_boolean(self) -> bool:
        """Whether all answers are true or false, perhaps written as text."""
        return bool(self.counts) and all(map(is_boolean_cell, self.counts))

    def label_counts(self) -> dict[Label, int]:
        """Return how often each label occurs, in the file's own order of labels if it has one.

        Otherwise, numbers are in order, and text is in natural order.
        """
        counts: Counter[Label] = Counter()
        for cell, count in self.counts.items():
            counts[self.label_of(cell)] += count
        order = _number_key if self.is_numeric else _natural_key
        first_labels = {label: counts[label] for label in self.order if label in counts}
        rest = [label for label in counts if label not in first_labels]
        return first_labels | {label: counts[label] for label in sorted(rest, key=order)}

    def label_of(self, cell: object) -> Label:
        """Return the label for a cell: an integer if all cells are whole numbers, else text.

        The labels do not depend on the format of the table: JSON writes true, and pandas True.
        """
        if self.is_whole:
            return next(label for label in spellings(cell) if isinstance(label, int))
        if self.is_boolean:
            return cell_text(cell).capitalize()
        return unicodedata.normalize("NFC", cell_text(cell))

    def missing_texts(self) -> list[str]:
        """Return the answers that look like codes for a missing answer, such as "NA"."""
        texts = [str(cell) for cell in self.counts if isinstance(cell, str)]
        return sorted(text for text in texts if text.strip().casefold() in _MISSING_TEXTS)


def _has_whole_spelling(cell: object) -> bool:
    return any(isinstance(label, int) for label in spellings(cell))


def _number_key(label: Label) -> Decimal:
    return Decimal(label)


def _natural_key(label: Label) -> list[tuple[int, float, str]]:
    """Return a key by which "10 to 19" sorts after "5 to 9", and "<5" before "5"."""
    parts: list[tuple[int, float, str]] = []
    text = str(label)
    below = _BELOW.match(text)
    if below is not None:
        text = text[below.end() :]
    for part in re.split(r"([0-9]+)", text):
        if part.isascii() and part.isdigit():
            is_bound = below is not None and len(parts) == 1
            parts.append((0, float(part), "" if is_bound else part))
        else:
            parts.append((1, 0.0, part))
    return parts


def similar_labels(labels: Iterable[Label]) -> list[list[Label]]:
    """Return groups of labels that differ only by case or spaces, or are the same number.

    A number with leading zeros is a code, and different from the number.

    >>> similar_labels(["Y", "N", " y", "no", "2.5", "2.50"])
    [['Y', ' y'], ['2.5', '2.50']]
    """
    groups: defaultdict[str | Decimal, list[Label]] = defaultdict(list)
    for label in labels:
        is_number = cell_number(label) is not None
        is_code = describe_cell(label) == "numbers with leading zeros"
        if is_number and not is_code:
            groups[Decimal(label)].append(label)
        else:
            groups[" ".join(str(label).casefold().split())].append(label)
    return [group for group in groups.values() if len(group) > 1]


def summarize_column(
    path: str,
    columns: AnswerColumns,
    *,
    on_progress: Callable[[int], None] = lambda rows: None,
) -> ColumnSummary:
    """Read a column of answers. Errors do not contain answers."""
    name = str(columns.value)
    missing_codes = frozenset(columns.missing_codes)
    counts: Counter[Any] = Counter()
    missing_count = 0
    row_count = 0
    order: list[str] = []
    with open_answers(path, columns) as table:
        for batch in table.batches({name: None}):
            row_count += batch.num_rows
            order = order or _category_order(batch.column(0))
            for cell, count in _count_cells(batch.column(0), name):
                if is_missing_cell(cell) or not missing_codes.isdisjoint(spellings(cell)):
                    missing_count += count
                else:
                    counts[cell] += count
            if len(counts) > _MAX_DISTINCT:
                raise InvalidTable(
                    f"column {name!r} has more than {_MAX_DISTINCT:,} distinct answers. Round "
                    "them, or start from a sample of the rows."
                )
            on_progress(row_count)
        labels = [unicodedata.normalize("NFC", text) for text in order or table.label_order(name)]
    # Two codes or categories may have the same text.
    return ColumnSummary(
        name, missing_count, dict(counts), table.note, tuple(dict.fromkeys(labels))
    )


def _category_order(column: Arrow) -> list[str]:
    """Return the texts of a column of ordered categories, in order."""
    if not pa.types.is_dictionary(column.type) or not column.type.ordered:
        return []
    categories = column.dictionary.to_pylist()
    return categories if all(isinstance(text, str) for text in categories) else []


def _count_cells(column: Arrow, name: str) -> list[tuple[Any, int]]:
    """Return the distinct cells of a column, and how often each occurs."""
    require_cells(column.type, name)
    with suppress(pa.ArrowException, UnicodeDecodeError, ValueError):  # they may quote an answer
        value_counts = pc.value_counts(as_wall_clock(column))
        cells = _plain_cells(value_counts.field(0))
        return list(zip(cells, value_counts.field(1).to_pylist(), strict=True))
    raise InvalidTable(f"column {name!r} must contain UTF-8 text, numbers or dates.")


def _plain_cells(column: Arrow) -> list[Any]:
    is_dictionary = pa.types.is_dictionary(column.type)
    return cells_in(column.dictionary_decode() if is_dictionary else column)


def read_blocks(
    path: str, columns: AnswerColumns, block_column: str, summary: ColumnSummary
) -> dict[Label, str]:
    """Return the block of each label, which another column contains."""
    name = str(columns.value)
    block_of: dict[Label, str] = {}
    with open_answers(path, columns) as table:
        for batch in table.batches(dict.fromkeys([name, block_column])):
            for cell, block in _distinct_pairs(batch, name, block_column):
                if cell not in summary.counts:
                    continue  # no answer
                if is_missing_cell(block):
                    raise InvalidTable(
                        f"an answer in column {name!r} has no block. Each answer must have one."
                    )
                block_text = unicodedata.normalize("NFC", cell_text(block))
                if block_of.setdefault(summary.label_of(cell), block_text) != block_text:
                    raise InvalidTable(
                        f"an answer in column {name!r} is in two blocks. Each answer must be in "
                        "one block."
                    )
    return block_of


def _distinct_pairs(batch: Arrow, name: str, block_column: str) -> list[tuple[Any, Any]]:
    """Return the distinct pairs of an answer and its block."""
    plain_columns = []
    for column in (name, block_column):
        require_cells(batch.column(column).type, column)
        plain_columns.append(as_wall_clock(batch.column(column)))
    with suppress(pa.ArrowException, UnicodeDecodeError, ValueError):  # they may quote an answer
        rows = pa.table(plain_columns, ["cell", "block"])
        pairs = rows.group_by(["cell", "block"]).aggregate([]).combine_chunks()
        cells, blocks = (_plain_cells(column.combine_chunks()) for column in pairs.columns)
        return list(zip(cells, blocks, strict=True))
    raise InvalidTable(f"column {name!r} must contain UTF-8 text, numbers or dates.")
