"""Labels for a column of answers, as the options of `sfumato init` ask for them."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from sfumato.cli.answers import require_few_numbers
from sfumato.cli.console import show_row_count
from sfumato.cli.options import split_labels
from sfumato.errors import InvalidArgument, InvalidTable, UnknownValue
from sfumato.foundation.formatting import plural

if TYPE_CHECKING:
    from sfumato.domains import Label
    from sfumato.survey import AnswerColumns, DatePart
    from sfumato.tables import ColumnSummary
    from sfumato.tables.proposed_domain import ProposedDomain


class ColumnRequest(NamedTuple):
    """What the options say about the table and its labels."""

    path: str
    columns: "AnswerColumns"
    labels: str | None
    bins: str | None
    missing: str | None
    other: str | None
    force_labels: bool


def answer_columns(
    column: str | None, date: str | None, date_format: str | None
) -> "AnswerColumns":
    """Return how to read the column."""
    from sfumato.survey import AnswerColumns

    date_part: DatePart | None = date  # type: ignore[assignment]
    return AnswerColumns(column, date=date_part, date_format=date_format)


def read_labels(request: ColumnRequest) -> tuple["ProposedDomain", "ColumnSummary"]:
    """Read the column, and return labels for it, and its summary."""
    summary = _read_column(request)
    if not request.force_labels:
        _require_few_numbers(request, summary)
    proposal = _propose_labels(request, summary)
    _require_rows(request, proposal)
    _require_two_labels(proposal, summary)
    return proposal, summary


def _read_column(request: ColumnRequest) -> "ColumnSummary":
    from sfumato.tables import summarize_column

    if request.path == "-":
        raise InvalidArgument("--from requires a file, not standard input.")
    if request.labels is not None and (request.bins or request.columns.date):
        raise InvalidArgument("choose one of --labels, --bins and --date.")
    with show_row_count("reading") as on_rows:
        return summarize_column(request.path, request.columns, on_progress=on_rows)


def _propose_labels(request: ColumnRequest, summary: "ColumnSummary") -> "ProposedDomain":
    from sfumato.tables.proposed_domain import propose_domain

    column_labels = list(summary.label_counts()) if summary.counts else []

    def find_label(text: str | None) -> "Label | None":
        return None if text is None else as_known_label(text, column_labels)

    cuts, bin_count = _parse_bins(request.bins)
    columns = replace(request.columns, bins=cuts)
    if request.missing is not None:
        columns = replace(columns, missing=find_label(request.missing))
    labels = [as_known_label(text, column_labels) for text in split_labels(request.labels or "")]
    return propose_domain(
        summary, columns, labels=labels, bin_count=bin_count, other=find_label(request.other)
    )


def _require_rows(request: ColumnRequest, proposal: "ProposedDomain") -> None:
    """Reject a table that privatize would refuse.

    The table is read again, because the summary of a column does not know where its cells are.
    """
    from sfumato.survey import RowRules
    from sfumato.tables import RowCounter, answer_batches

    rules = RowRules(proposal.domain, proposal.columns, "init")
    with suppress(UnknownValue):
        rules.check(proposal.row_counts)
        rules.check_other_share(proposal.row_counts)
        return
    counter = RowCounter(proposal.domain, proposal.columns, "init")
    for batch in answer_batches(request.path, proposal.columns, proposal.domain):
        counter.add(request.path, batch.counts)
    counter.check()


def _require_two_labels(proposal: "ProposedDomain", summary: "ColumnSummary") -> None:
    if proposal.domain.size < 2:
        raise InvalidTable(
            f"column {summary.name!r} must contain at least two distinct answers; got "
            f"{plural(proposal.domain.size, 'label')}."
        )


def _parse_bins(bins: str | None) -> tuple[tuple[float, ...], int | None]:
    """Return the cut points and the number of bins; only one of them is given."""
    if bins is None:
        return (), None
    try:
        if "," not in bins:
            return (), int(bins)
        return tuple(float(number) for number in bins.split(",")), None
    except ValueError:
        raise InvalidArgument(
            "--bins must be cut points such as 18,30,45,60, or a number of bins such as 10."
        ) from None


def as_known_label(text: str, labels: "Sequence[Label]") -> "Label":
    """Return the label that ``text`` stands for: itself, or an integer that is a label."""
    if text not in labels and text.removeprefix("-").isdecimal() and int(text) in labels:
        return int(text)
    return text


def _require_few_numbers(request: ColumnRequest, summary: "ColumnSummary") -> None:
    """Reject a column of numbers that was probably not meant as a list of labels."""
    if request.labels or request.bins or request.columns.date:
        return
    require_few_numbers(
        summary,
        "Pass --bins, such as --bins 10 or --bins 18,30,45,60. To use every number as a label all "
        "the same, pass --force-labels.",
    )
