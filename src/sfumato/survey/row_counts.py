"""What became of the rows of a table: counted, skipped or refused, and why.

These counts are computed from unprotected answers, so they must stay with the holder of the table.
"""

from dataclasses import dataclass

from sfumato.domains import Domain
from sfumato.errors import InvalidTable, UnknownValue
from sfumato.foundation.formatting import printable
from sfumato.survey.answer_columns import REFUSE, SKIP, AnswerColumns

__all__ = ["OtherWarning", "RowCounts", "RowRules"]

_WARNING_SHARE = 1 / 5
_REFUSAL_SHARE = 1 / 2


class OtherWarning(UserWarning):
    """Many answers are not in the domain, and count as its ``other`` label."""


@dataclass(frozen=True)
class RowCounts:
    """The number of rows, of rows without an answer, and of answers that are not in the domain.

    ``first_missing`` and ``first_unknown`` are the indices of the first such rows, if there are
    any. ``unknown_kinds`` describes what the unknown answers look like, such as "decimal numbers".
    ``row_noun`` says how the table numbers its rows: a sheet counts the header, too. Counts of
    consecutive parts of a table add up.

    >>> RowCounts(3) + RowCounts(2, missing=1, first_missing=1)
    RowCounts(rows=5, missing=1, unknown=0, first_missing=4, first_unknown=None, ...)
    """

    rows: int = 0
    missing: int = 0
    unknown: int = 0
    first_missing: int | None = None
    first_unknown: int | None = None
    unknown_kinds: frozenset[str] = frozenset()
    row_noun: str = "data row"

    def __add__(self, following: "RowCounts") -> "RowCounts":
        return RowCounts(
            self.rows + following.rows,
            self.missing + following.missing,
            self.unknown + following.unknown,
            _first_of(self.first_missing, self.rows, following.first_missing),
            _first_of(self.first_unknown, self.rows, following.first_unknown),
            self.unknown_kinds | following.unknown_kinds,
            following.row_noun,
        )


def _first_of(first: int | None, offset: int, following: int | None) -> int | None:
    if first is not None or following is None:
        return first
    return offset + following


class RowRules:
    """What happens to rows without an answer, and to answers that are not in the domain."""

    def __init__(self, domain: Domain, columns: AnswerColumns) -> None:
        self._domain = domain
        self.is_skipping = columns.missing == SKIP
        self.missing_symbol = columns.missing_symbol(domain)
        self.other_symbol = None if domain.other is None else domain.other_symbol
        # With no rule for missing answers, they become `other` without anyone having decided that.
        self._is_missing_other = columns.missing is None and self.other_symbol is not None

    def count_skipped(self, counts: RowCounts) -> int:
        """Return the number of rows that are left out."""
        return counts.missing if self.is_skipping else 0

    def to_dict(self, counts: RowCounts) -> dict[str, int]:
        """Return the counts as JSON data: ``rows`` is the sum of ``counted`` and ``skipped``."""
        skipped_count = self.count_skipped(counts)
        return {
            "rows": counts.rows,
            "counted": counts.rows - skipped_count,
            "skipped": skipped_count,
            "missing": counts.missing,
            "other": counts.unknown,
        }

    def describe(self, counts: RowCounts) -> str:
        """Describe what became of all rows, in one sentence."""
        skipped_count = self.count_skipped(counts)
        counted_count = counts.rows - skipped_count
        details: list[str] = []
        if counts.missing and self.missing_symbol is not None:
            label = self._quote_label(self.missing_symbol)
            details.append(f"{counts.missing:,} without an answer as {label}")
        if counts.unknown and self.other_symbol is not None:
            label = self._quote_label(self.other_symbol)
            details.append(f"{counts.unknown:,} not among the labels as {label}")
        text = f"{counts.rows:,} rows: {counted_count:,} counted"
        if details:
            text += f" ({', '.join(details)})"
        if skipped_count:
            text += f", {skipped_count:,} skipped because they have no answer"
        return f"{text}."

    def warning(self, counts: RowCounts) -> str:
        """Return a warning if many answers count as ``other``, otherwise an empty text."""
        if self.other_symbol is None or counts.unknown <= _WARNING_SHARE * counts.rows:
            return ""
        return (
            f"{counts.unknown:,} of {counts.rows:,} answers are not among the labels and count as "
            f"{self._quote_label(self.other_symbol)}.{self._describe_kinds(counts)}"
        )

    def check(self, counts: RowCounts, name: str = "") -> None:
        """Raise an error if some rows are refused. It contains counts, never answers.

        ``name`` is the name of the table. Without it, the answers came from Python, and the error
        gives positions instead of row numbers.
        """
        problems: list[str] = []
        first_rows: list[int] = []
        refused_count = 0
        if counts.missing and self.missing_symbol is None and not self.is_skipping:
            refused_count += counts.missing
            first_rows.append(counts.first_missing or 0)
            problems.append(
                f"{counts.missing:,} of {counts.rows:,} rows have no answer"
                f"{_locate(counts.first_missing, counts, name)}. Choose what to do with them: the "
                f"option `missing` takes {SKIP}, which leaves them out, or a label of the domain, "
                "which counts them as that answer."
            )
        if counts.unknown and self.other_symbol is None:
            refused_count += counts.unknown
            first_rows.append(counts.first_unknown or 0)
            problems.append(
                f"{counts.unknown:,} of {counts.rows:,} answers are not in the domain"
                f"{_locate(counts.first_unknown, counts, name)}.{self._describe_kinds(counts)} Correct "
                "them, add their labels, or give the domain an `other` label."
            )
        if problems:
            prefix = f"{name}: " if name else ""
            message = prefix + " ".join(problems)
            raise UnknownValue(message, first=min(first_rows), count=refused_count)

    def check_other_share(self, counts: RowCounts, name: str = "") -> None:
        """Raise an error if more than half of the rows would count as ``other``.

        Rows without an answer are among them, unless a rule says what to do with these.
        """
        missing_count = counts.missing if self._is_missing_other else 0
        other_count = counts.unknown + missing_count
        if self.other_symbol is None or other_count <= _REFUSAL_SHARE * counts.rows:
            return
        problems: list[str] = []
        advice: list[str] = []
        if counts.unknown:
            problems.append(f"{counts.unknown:,} of {counts.rows:,} answers are not in the domain")
            advice.append("Correct the column, or add labels to the domain.")
        if missing_count:
            problems.append(f"{missing_count:,} of {counts.rows:,} rows have no answer")
            advice.append(f"Choose with the option `missing`: {SKIP}, or a label of the domain.")
        first_rows = [counts.first_unknown, counts.first_missing if missing_count else None]
        raise UnknownValue(
            f"{f'{name}: ' if name else ''}{', and '.join(problems)}; they would all count as "
            f"{self._quote_label(self.other_symbol)}.{self._describe_kinds(counts)} "
            f"{' '.join(advice)}",
            first=min((row for row in first_rows if row is not None), default=0),
            count=other_count,
        )

    def require_no_skipping(self, reason: str) -> None:
        """Reject ``missing = skip`` where a missing report would show who has no answer."""
        if self.is_skipping:
            raise InvalidTable(
                f"missing = {SKIP!r} cannot be used here: {reason}. Use {REFUSE!r}, or a label."
            )

    def _describe_kinds(self, counts: RowCounts) -> str:
        """Say what the unknown answers look like, if they all look unlike the labels."""
        if len(counts.unknown_kinds) != 1:
            return ""
        (kind,) = counts.unknown_kinds
        label_kind = _describe_labels(self._domain)
        if kind == label_kind:
            return ""
        return f" They look like {kind}; the labels are {label_kind}."

    def _quote_label(self, symbol: int) -> str:
        return f"'{printable(str(self._domain.labels[symbol]))}'"


def _locate(index: int | None, counts: RowCounts, name: str) -> str:
    """Say where the first row of a kind is, if that is known."""
    if index is None:
        return ""
    if not name:
        return f" (the first at position {index})"
    return f" (the first in {counts.row_noun} {index + 1:,})"


def _describe_labels(domain: Domain) -> str:
    """Describe the labels of a domain, apart from ``other``."""
    labels = domain.labels[:100]
    types = {type(label) for label in labels if label != domain.other}
    if types == {int}:
        return "whole numbers"
    if types == {str}:
        return "text"
    return "text and whole numbers"
