"""Propose the labels of a domain for a column of a table: its answers, bins, or parts of dates."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from itertools import pairwise

from sfumato.domains import Domain, Label
from sfumato.errors import InvalidArgument, InvalidTable
from sfumato.survey import REFUSE, SKIP, AnswerColumns, DatePart, RowCounts, RowRules
from sfumato.survey.cell_date import date_part
from sfumato.survey.cell_lookup import UNKNOWN, CellLookup
from sfumato.survey.cell_number import cell_number
from sfumato.tables.column_summary import ColumnSummary

__all__ = ["NO_ANSWER", "ProposedDomain", "bin_labels", "propose_domain", "round_cuts"]

NO_ANSWER = "no answer"
"""The label for rows without an answer, unless another is chosen."""

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_HOURS = tuple(range(24))
_MAX_DATES = 10_000
_MANTISSAS = ("1", "1.5", "2", "2.5", "3", "4", "5", "6", "8")


@dataclass(frozen=True, repr=False)
class ProposedDomain:
    """Labels for a column, how to read the column, and how many rows have each label.

    ``row_counts`` says how many rows have no answer, or none that is among the labels. The repr has
    neither labels nor counts: they come from people's answers.
    """

    domain: Domain
    columns: AnswerColumns
    counts: tuple[int, ...]
    row_counts: RowCounts

    @property
    def other_count(self) -> int:
        """The number of answers that are not among the labels."""
        return self.row_counts.unknown


def propose_domain(
    summary: ColumnSummary,
    columns: AnswerColumns,
    *,
    labels: Sequence[Label] = (),
    bin_count: int | None = None,
    other: Label | None = None,
) -> ProposedDomain:
    """Propose a domain for a column.

    ``labels`` are used in the order given. Otherwise, the labels are intervals if ``columns`` has
    bins or ``bin_count`` is given, parts of dates if ``columns`` has ``date``, and the distinct
    answers otherwise. If there are rows without an answer, a label is added for them, unless
    ``columns`` says what to do with them. ``other`` is the label for all other answers.
    """
    columns.check_formats()
    if not summary.counts:
        raise InvalidTable(f"column {summary.name!r} contains no answers.")
    if bin_count is not None:
        columns = replace(columns, bins=_cuts_for(summary, bin_count))
    all_labels = list(labels) or list(_natural_labels(summary, columns))
    if columns.missing is None and summary.missing:
        columns = replace(columns, missing=NO_ANSWER)
    if columns.missing not in (None, REFUSE, SKIP) and columns.missing not in all_labels:
        all_labels.append(columns.missing)
    domain = Domain(all_labels, other=other)
    columns.check(domain)
    return _count_labels(summary, domain, columns)


def _natural_labels(summary: ColumnSummary, columns: AnswerColumns) -> Iterator[Label]:
    if columns.bins:
        _require_numbers(summary)
        yield from bin_labels(columns.bins, whole=_are_whole(_numbers_in(summary)))
    elif columns.date == "weekday":
        yield from _WEEKDAYS
    elif columns.date == "hour":
        yield from _HOURS
    elif columns.date is not None:
        yield from _date_labels(summary, columns)
    else:
        yield from summary.label_counts()


def _count_labels(summary: ColumnSummary, domain: Domain, columns: AnswerColumns) -> ProposedDomain:
    """Return the proposal, with the number of rows for each label."""
    lookup = CellLookup(domain, columns)
    counts: Counter[int] = Counter()
    for cell, count in summary.counts.items():
        counts[lookup.find(cell)] += count
    rules = RowRules(domain, columns)
    unknown_count = counts[UNKNOWN]
    if rules.other_symbol is not None:
        counts[rules.other_symbol] += unknown_count
    if rules.missing_symbol is not None:
        counts[rules.missing_symbol] += summary.missing
    row_counts = RowCounts(
        summary.rows, summary.missing, unknown_count, decimal_styles=lookup.decimal_styles
    )
    label_counts = tuple(counts[symbol] for symbol in range(domain.size))
    return ProposedDomain(domain, columns, label_counts, row_counts)


# --- dates ----------------------------------------------------------------------------------------


def _date_labels(summary: ColumnSummary, columns: AnswerColumns) -> list[str]:
    """Return all days or months from the first to the last.

    Days without an answer are included: a survey is public, and a gap would show that nobody gave
    that answer.
    """
    part: DatePart = "day" if columns.date == "day" else "month"
    texts: set[str] = set()
    for cell in summary.counts:
        text = date_part(cell, part, columns.date_format)
        if isinstance(text, str):
            texts.add(text)
    if not texts:
        raise InvalidTable(
            f"column {summary.name!r} does not contain dates such as 2026-11-18. If its dates have "
            "another format, pass it as --date-format, such as %d.%m.%Y."
        )
    first = min(texts)
    last = max(texts)
    all_texts = _days(first, last) if part == "day" else _months(first, last)
    if len(all_texts) > _MAX_DATES:
        raise InvalidTable(
            f"column {summary.name!r} spans {len(all_texts):,} {part}s; at most "
            f"{_MAX_DATES:,} can be labels. Correct the dates, or choose --date "
            f"{'month or weekday' if part == 'day' else 'weekday'}."
        )
    return all_texts


def _days(first: str, last: str) -> list[str]:
    first_day = date.fromisoformat(first).toordinal()
    last_day = date.fromisoformat(last).toordinal()
    return [date.fromordinal(day).isoformat() for day in range(first_day, last_day + 1)]


def _months(first: str, last: str) -> list[str]:
    texts: list[str] = []
    year, month = map(int, first.split("-"))
    while not texts or texts[-1] < last:
        texts.append(f"{year:04}-{month:02}")
        year += month // 12
        month = month % 12 + 1
    return texts


# --- bins -----------------------------------------------------------------------------------------


def bin_labels(cuts: Sequence[float], *, whole: bool) -> list[str]:
    """Return a label for each interval between cut points.

    >>> bin_labels([18, 30, 60], whole=True)
    ['under 18', '18 to 29', '30 to 59', '60 and over']
    >>> bin_labels([2.5, 5], whole=False)
    ['under 2.5', '2.5 to under 5', '5 and over']
    """
    is_whole = whole and all(float(cut).is_integer() for cut in cuts)
    labels = [f"under {_plain(cuts[0])}"]
    for low, high in pairwise(cuts):
        if not is_whole:
            labels.append(f"{_plain(low)} to under {_plain(high)}")
        elif high - low == 1:
            labels.append(_plain(low))
        else:
            labels.append(f"{_plain(low)} to {_plain(high - 1)}")
    labels.append(f"{_plain(cuts[-1])} and over")
    return labels


def _plain(number: float) -> str:
    return str(int(number)) if float(number).is_integer() else repr(float(number))


def _require_numbers(summary: ColumnSummary) -> None:
    """Reject a column without any number. Other cells are refused later, with their rows."""
    if not summary.is_numeric and not _numbers_in(summary):
        kinds = " and ".join(sorted(summary.kinds))
        raise InvalidTable(
            f"bins need numbers, but column {summary.name!r} contains none: it looks like {kinds}."
        )


def _cuts_for(summary: ColumnSummary, bin_count: int) -> tuple[float, ...]:
    _require_numbers(summary)
    if not 2 <= bin_count <= 1000:
        raise InvalidArgument(f"the number of bins must be from 2 to 1000; got {bin_count}.")
    numbers = _numbers_in(summary)
    low = min(numbers, default=0)
    high = max(numbers, default=0)
    if low == high:
        raise InvalidTable(
            f"column {summary.name!r} must contain at least two different finite numbers."
        )
    return round_cuts(low, high, bin_count, whole=_are_whole(numbers))


def _numbers_in(summary: ColumnSummary) -> list[float]:
    """Return the distinct finite numbers in a column."""
    numbers = map(cell_number, summary.counts)
    return [number for number in numbers if number is not None]


def _are_whole(numbers: Sequence[float]) -> bool:
    return all(number.is_integer() for number in numbers)


def round_cuts(low: float, high: float, bin_count: int, *, whole: bool) -> tuple[float, ...]:
    """Return cut points that divide a range into ``bin_count`` equal bins with round edges.

    Edges are round because a survey is public: the smallest and the largest answer are not. There
    are fewer bins if the last ones would be above ``high``, and so empty.

    >>> round_cuts(18, 91, 5, whole=True)
    (20.0, 40.0, 60.0, 80.0)
    >>> round_cuts(1, 3, 10, whole=True)
    (2.0, 3.0)
    """
    exact_low = Decimal(repr(low))
    exact_high = Decimal(repr(high))
    cuts = _equal_cuts(exact_low, exact_high, bin_count, whole=whole)
    useful_cuts = [cut for cut in cuts if cut <= exact_high]
    return tuple(map(float, useful_cuts or cuts[:1]))


def _equal_cuts(low: Decimal, high: Decimal, bin_count: int, *, whole: bool) -> list[Decimal]:
    """Return the cut points of ``bin_count`` equal bins that cover a range."""
    for step in _round_steps((high - low) / bin_count):
        if whole and step != int(step):
            continue
        start = low // step * step
        if start > low:  # Decimal rounds towards zero
            start -= step
        if start + bin_count * step >= high:
            return [start + i * step for i in range(1, bin_count)]
    raise AssertionError("steps grow without limit")


def _round_steps(least: Decimal) -> Iterator[Decimal]:
    """Yield round numbers from ``least`` on, in ascending order."""
    exponent = least.adjusted()
    while True:
        for mantissa in _MANTISSAS:
            step = Decimal(mantissa).scaleb(exponent)
            if step >= least:
                yield step
        exponent += 1
