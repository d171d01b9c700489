"""What became of the rows of a table: counted, skipped or refused, and why.

These counts are computed from unprotected answers, so they must stay with the holder of the table.
"""

import re
from dataclasses import dataclass
from typing import Literal

from sfumato.domains import Domain, IntegerDomain
from sfumato.errors import InvalidTable, UnknownValue
from sfumato.foundation.formatting import plural, printable
from sfumato.survey.answer_columns import REFUSE, SKIP, AnswerColumns
from sfumato.survey.cell_number import AMBIGUOUS

__all__ = ["OtherWarning", "RowCounts", "RowRules"]

_WARNING_SHARE = 1 / 5
_REFUSAL_SHARE = 1 / 2
_SINGULAR = {
    "whole numbers": "a whole number",
    "decimal numbers": "a decimal number",
    "numbers with leading zeros": "a number with leading zeros",
    "dates": "a date",
    "times": "a time",
    "durations": "a duration",
}
_DATE_LABEL = re.compile(r"[0-9]{4}-[0-9]{2}(-[0-9]{2})?")
_NUMBER_KINDS = frozenset({"whole numbers", "decimal numbers"})
_KINDS_FOR_RULES = frozenset({"numbers", "dates", "times"}) | _NUMBER_KINDS  # for bins and date


class OtherWarning(UserWarning):
    """Many answers count as the domain's ``other`` label, or their numbers are ambiguous."""


@dataclass(frozen=True)
class RowCounts:
    """The number of rows, of rows without an answer, and of answers that are not in the domain.

    ``first_missing`` and ``first_unknown`` are the indices of the first such rows, if there are
    any. ``unknown_kinds`` describes what the unknown answers look like, such as "decimal numbers".
    ``decimal_styles`` says how numbers in bins use their point; see ``cell_number``.
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
    decimal_styles: frozenset[str] = frozenset()
    row_noun: str = "data row"

    def __add__(self, following: "RowCounts") -> "RowCounts":
        return RowCounts(
            self.rows + following.rows,
            self.missing + following.missing,
            self.unknown + following.unknown,
            _first_of(self.first_missing, self.rows, following.first_missing),
            _first_of(self.first_unknown, self.rows, following.first_unknown),
            self.unknown_kinds | following.unknown_kinds,
            self.decimal_styles | following.decimal_styles,
            following.row_noun,
        )


def _first_of(first: int | None, offset: int, following: int | None) -> int | None:
    if first is not None or following is None:
        return first
    return offset + following


Caller = Literal["command", "init", "python"]
"""Who reads the errors: they name options of a command that reads answers, or of `sfumato init`,
which has other ones, or arguments in Python."""


class RowRules:
    """What happens to rows without an answer, and to answers that are not in the domain.

    ``caller`` says who passes the file of a table. Answers without a file come from Python.
    """

    def __init__(self, domain: Domain, columns: AnswerColumns, caller: Caller = "command") -> None:
        self._domain = domain
        self._columns = columns
        self._caller = caller
        self._has_cell_rules = bool(columns.bins) or columns.date is not None
        self.is_skipping = columns.missing == SKIP
        self.missing_symbol = columns.missing_symbol(domain)
        self.other_symbol = None if domain.other is None else domain.other_symbol
        # With no rule for missing answers, they become `other` without anyone having decided that.
        self._is_missing_other = columns.missing is None and self.other_symbol is not None

    def count_skipped(self, counts: RowCounts) -> int:
        """Return the number of rows that are left out."""
        return counts.missing if self.is_skipping else 0

    def _count_kept(self, counts: RowCounts) -> int:
        """Return the number of rows that are not left out."""
        return counts.rows - self.count_skipped(counts)

    def to_dict(self, counts: RowCounts) -> dict[str, int]:
        """Return the counts as JSON data: ``rows`` is the sum of ``counted`` and ``skipped``."""
        skipped_count = self.count_skipped(counts)
        return {
            "rows": counts.rows,
            "counted": self._count_kept(counts),
            "skipped": skipped_count,
            "missing": counts.missing,
            "other": counts.unknown,
        }

    def describe(self, counts: RowCounts) -> str:
        """Describe what became of all rows, in one sentence."""
        skipped_count = self.count_skipped(counts)
        counted_count = self._count_kept(counts)
        details: list[str] = []
        if counts.missing and self.missing_symbol is not None:
            label = self._quote_label(self.missing_symbol)
            details.append(f"{counts.missing:,} without an answer as {label}")
        if counts.unknown and self.other_symbol is not None:
            label = self._quote_label(self.other_symbol)
            details.append(f"{counts.unknown:,} not among the labels as {label}")
        text = f"{plural(counts.rows, 'row')}: {counted_count:,} counted"
        if details:
            text += f" ({', '.join(details)})"
        if skipped_count:
            reason = _agree(skipped_count, "it has no answer", "they have no answer")
            text += f", {skipped_count:,} skipped because {reason}"
        return f"{text}."

    def warning(self, counts: RowCounts) -> str:
        """Return a warning if many rows count as ``other``, or if numbers are ambiguous.

        Otherwise, return an empty text.
        """
        sentences: list[str] = []
        other_count = self._count_other(counts)
        is_large = other_count > _WARNING_SHARE * self._count_kept(counts)
        is_large = is_large and not self._columns.allow_other
        if self.other_symbol is not None and is_large:
            problems = self._other_problems(counts)
            link = "; they" if len(problems) > 1 else " and"
            verb = _agree(other_count, "counts", "count")
            sentences.append(
                f"{', and '.join(problems)}{link} {verb} as "
                f"{self._quote_label(self.other_symbol)}.{self._describe_kinds(counts)}"
            )
        if counts.decimal_styles == {AMBIGUOUS}:
            sentences.append(
                "All numbers with a point have three digits after it, like 1.500, and are read as "
                "decimals. If 1.500 means 1500, remove the points from the table."
            )
        return " ".join(sentences)

    def check(self, counts: RowCounts, name: str = "") -> None:
        """Raise an error if some rows are refused. It contains counts, never answers.

        ``name`` is the name of the table. Without it, the answers came from Python, and the error
        gives positions instead of row numbers.
        """
        problems: list[str] = []
        first_rows: list[int] = []
        refusal_count = 0
        if counts.missing and self.missing_symbol is None and not self.is_skipping:
            refusal_count += counts.missing
            first_rows.append(counts.first_missing or 0)
            problems.append(
                f"{_missing_problem(counts)}{_locate(counts.first_missing, counts, name)}. "
                f"Pass {self._missing_option(SKIP, name)} to leave out such rows, or "
                f"{self._missing_option('LABEL', name)} to count them as that answer."
            )
        if counts.unknown and self.other_symbol is None:
            refusal_count += counts.unknown
            first_rows.append(counts.first_unknown or 0)
            problems.append(
                f"{self._unknown_problem(counts)}{_locate(counts.first_unknown, counts, name)}."
                f"{self._describe_kinds(counts, name)} {self._unknown_advice(counts)}"
            )
        if problems:
            message = _prefix(name) + " ".join(problems)
            raise UnknownValue(message, first=min(first_rows), count=refusal_count)

    def check_other_share(self, counts: RowCounts, name: str = "") -> None:
        """Raise an error if more than half of the rows would count as ``other``.

        Rows without an answer are among them, unless a rule says what to do with these. Rows that
        are left out do not count. The survey file can consent to it.
        """
        other_count = self._count_other(counts)
        kept_count = self._count_kept(counts)
        if self.other_symbol is None or other_count <= _REFUSAL_SHARE * kept_count:
            return
        if self._columns.allow_other:
            return
        advice: list[str] = []
        first_rows: list[int | None] = []
        if counts.unknown:
            advice.append("Check the column, or add labels.")
            first_rows.append(counts.first_unknown)
        if other_count > counts.unknown:
            advice.append(
                f"For the {plural(counts.missing, 'row')} without an answer, pass "
                f"{self._missing_option(SKIP, name)} or {self._missing_option('LABEL', name)}."
            )
            first_rows.append(counts.first_missing)
        other = self._quote_label(self.other_symbol)
        advice.append(f"If {other} is the right answer, {self._consent_advice()}.")
        known_rows = [row for row in first_rows if row is not None]  # a cluster does not know
        first_row = min(known_rows) if known_rows else None
        rows = plural(kept_count, "row")
        if kept_count < counts.rows:
            rows += " with an answer"
        raise UnknownValue(
            f"{_prefix(name)}{other_count:,} of {rows}, more than half, "
            f"would count as {other}{_locate(first_row, counts, name)}."
            f"{self._describe_kinds(counts, name)} {' '.join(advice)}",
            first=first_row or 0,
            count=other_count,
        )

    def require_answers(self, counts: RowCounts) -> None:
        """Raise an error if rows without an answer are left out, and no other rows remain.

        Check the total of all files: one of them may be empty.
        """
        if self.is_skipping and 0 < counts.rows == counts.missing:
            raise InvalidTable(f"none of the {plural(counts.rows, 'row')} has an answer.")

    def require_no_skipping(self, reason: str) -> None:
        """Reject ``missing = skip`` where a missing report would show who has no answer."""
        if self.is_skipping:
            raise InvalidTable(
                f"missing = {SKIP!r} cannot be used here: {reason}. Use {REFUSE!r}, or a label."
            )

    def _count_other(self, counts: RowCounts) -> int:
        """Return the number of rows that count as ``other`` although nobody asked for it."""
        return counts.unknown + (counts.missing if self._is_missing_other else 0)

    def _other_problems(self, counts: RowCounts) -> list[str]:
        """Say how many rows count as ``other``, and why."""
        problems: list[str] = []
        if counts.unknown:
            problems.append(self._unknown_problem(counts))
        if counts.missing and self._is_missing_other:
            problems.append(_missing_problem(counts))
        return problems

    def _describe_kinds(self, counts: RowCounts, name: str = "") -> str:
        """Say what the unknown answers look like, if they all look unlike the labels.

        ``name`` is the name of a table. It may be read with the rules in a survey file.
        """
        kinds = counts.unknown_kinds
        if kinds == _NUMBER_KINDS:
            kinds = frozenset({"numbers"})
        if len(kinds) != 1 or self._has_cell_rules:
            return ""
        (kind,) = kinds
        label_kind = _describe_labels(self._domain)
        if kind == label_kind:
            return ""
        look = _agree(
            counts.unknown, f"It looks like {_SINGULAR.get(kind, kind)}", f"They look like {kind}"
        )
        text = f" {look}; the labels are {label_kind}."
        is_command = name and self._caller == "command"
        if is_command and label_kind == "text" and kind in _KINDS_FOR_RULES:
            text += " If the survey's TOML file has bins or date, pass it as --table FILE.toml."
        return text

    def _unknown_problem(self, counts: RowCounts) -> str:
        """Say how many rows have an answer without a label, and what is wrong with it."""
        verb = _agree(counts.unknown, "has", "have")
        return (
            f"{counts.unknown:,} of {plural(counts.rows, 'row')} {verb} "
            f"{self._describe_unknown(counts)}"
        )

    def _describe_unknown(self, counts: RowCounts) -> str:
        if self._columns.bins:
            return "text instead of a number" if counts.unknown_kinds == {"text"} else "no number"
        if self._columns.date is None:
            return "an answer that is not in the domain"
        if self._columns.date == "weekday":
            return "no date"
        if self._columns.date == "hour":
            return "no time of day"
        dates = [str(label) for label in self._domain.labels if _DATE_LABEL.fullmatch(str(label))]
        article = "a date outside" if counts.unknown_kinds == {"dates"} else "no date from"
        return f"{article} {dates[0]} to {dates[-1]}" if dates else "no date among the labels"

    def _unknown_advice(self, counts: RowCounts) -> str:
        """Say what to do about answers without a label."""
        correct = _agree(counts.unknown, "Correct it", "Correct them")
        is_init = self._caller == "init"
        other = "give the domain an `other` label"
        if is_init:
            other = "pass --other LABEL"
        elif self._has_cell_rules:
            other += " (sfumato init --other)"
        if self._columns.bins:
            return (
                f"{correct}, list codes for a missing answer as missing_codes (--missing-codes), "
                f"or {other}."
            )
        if self._columns.date is not None and counts.unknown_kinds != {"dates"}:
            return f"{correct}, set date_format (sfumato init --date-format), or {other}."
        if isinstance(self._domain, IntegerDomain):  # a range has no `other` label
            return f"{correct}, or widen the domain's range (start and size)."
        labels = _agree(counts.unknown, "its label", "their labels")
        place = " to --labels" if is_init else ""
        return f"{correct}, add {labels}{place}, or {other}."

    def _consent_advice(self) -> str:
        """Say how to accept that most answers count as ``other``."""
        if self._caller == "init":
            return "pass --allow-other"
        return (
            "set allow_other = true in the section [table] of the survey file "
            "(sfumato init --allow-other)"
        )

    def _missing_option(self, value: str, name: str) -> str:
        """Return an option for rows without an answer: of the command, or in Python."""
        if name and self._caller != "python":
            return f"--missing {value}"
        return f"missing={value!r}" if value == SKIP else f"missing={value}"

    def _quote_label(self, symbol: int) -> str:
        return f"'{printable(str(self._domain.labels[symbol]))}'"


def _prefix(name: str) -> str:
    return f"{name}: " if name else ""


def _agree(count: int, singular: str, plural_form: str) -> str:
    """Return the form that agrees with a count."""
    return singular if count == 1 else plural_form


def _missing_problem(counts: RowCounts) -> str:
    verb = _agree(counts.missing, "has", "have")
    return f"{counts.missing:,} of {plural(counts.rows, 'row')} {verb} no answer"


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
