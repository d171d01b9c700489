"""Notes on the labels of a new survey: what became of the rows, and labels that may be wrong."""

import shlex
from typing import TYPE_CHECKING

from sfumato.cli.advice import MIN_PEOPLE_PER_LABEL
from sfumato.cli.column_labels import ColumnRequest
from sfumato.cli.console import notify
from sfumato.foundation.formatting import plural, printable

if TYPE_CHECKING:
    from sfumato.domains import Label
    from sfumato.tables import ColumnSummary
    from sfumato.tables.proposed_domain import ProposedDomain

_MAX_LISTED_LABELS = 20
_MAX_PLAIN_NUMBERS = 20  # for more numbers, ranges are better
_MAX_SHOWN_GROUPS = 3


def list_labels(proposal: "ProposedDomain") -> str:
    """List the labels, except those that could identify someone."""
    labels = common_labels(proposal)
    texts = [repr(printable(str(label))) for label in labels[:_MAX_LISTED_LABELS]]
    hidden_count = proposal.domain.size - len(texts)
    if not texts:
        return f"There are {proposal.domain.size:,} labels; each was given by few people."
    more = f", and {hidden_count:,} more" if hidden_count else ""
    return f"The labels are {', '.join(texts)}{more}."


def common_labels(proposal: "ProposedDomain") -> "list[Label]":
    """Return the labels that do not come from the answers of a few people."""
    labels = list(proposal.domain.labels)
    if proposal.columns.bins or proposal.columns.date is not None:
        return labels
    own_labels = (proposal.columns.missing, proposal.domain.other)
    common = []
    for label, count in zip(labels, proposal.counts, strict=True):
        if count >= MIN_PEOPLE_PER_LABEL or label in own_labels:
            common.append(label)
    return common


def print_notes(
    request: ColumnRequest, proposal: "ProposedDomain", summary: "ColumnSummary"
) -> None:
    """Print what became of the rows, and point out labels that may be wrong."""
    from sfumato.survey import RowRules

    rules = RowRules(proposal.domain, proposal.columns)
    counts = proposal.row_counts
    if summary.note and request.columns.sheet is None:
        notify(summary.note)
    notify(rules.describe(counts))
    warning = rules.warning(counts)
    if warning:
        notify(f"Warning: {warning}")
    if request.missing is None:
        _print_missing_codes(summary)
    _print_similar_labels(proposal)
    _print_rare_labels(proposal)
    if not (request.labels or request.bins or request.columns.date):
        _print_better_labels(summary)


def _print_missing_codes(summary: "ColumnSummary") -> None:
    missing_texts = summary.missing_texts()
    if not missing_texts:
        return
    texts = ", ".join(map(repr, map(printable, missing_texts)))
    value = shlex.quote(",".join(map(printable, missing_texts)))
    notify(
        f"These labels look like codes for a missing answer: {texts}. If they are, pass "
        f"--missing-codes={value}"
    )


def _print_similar_labels(proposal: "ProposedDomain") -> None:
    from sfumato.tables import similar_labels

    groups = similar_labels(proposal.domain.labels)
    if not groups:
        return
    labels_to_show = set(common_labels(proposal))
    examples = []
    for group in groups:
        if labels_to_show.issuperset(group):
            examples.append(", ".join(repr(printable(str(label))) for label in group))
    shown = "; ".join(examples[:_MAX_SHOWN_GROUPS])
    more = ", …" if shown and len(groups) > _MAX_SHOWN_GROUPS else ""
    notify(
        f"Labels in {plural(len(groups), 'group')} differ only by case, spaces or the way a number "
        f"is written{': ' if shown else ''}{shown}{more}. Correct the table."
    )


def _print_better_labels(summary: "ColumnSummary") -> None:
    """Recommend ranges for many numbers, and parts of dates for dates."""
    if summary.is_numeric and len(summary.counts) > _MAX_PLAIN_NUMBERS:
        notify(
            f"The labels are {len(summary.counts):,} numbers. For ranges, which need fewer people, "
            "pass --bins, such as --bins 10."
        )
    elif summary.kinds == {"dates"}:
        notify("The labels are dates. For a part of them, pass --date, such as --date weekday.")


def _print_rare_labels(proposal: "ProposedDomain") -> None:
    if proposal.columns.bins or proposal.columns.date is not None:
        return  # these labels do not come from single answers
    own_labels = (proposal.columns.missing, proposal.domain.other)
    rare_count = 0
    for label, count in zip(proposal.domain.labels, proposal.counts, strict=True):
        if 0 < count < MIN_PEOPLE_PER_LABEL and label not in own_labels:
            rare_count += 1
    if rare_count:
        verb = "was" if rare_count == 1 else "were"
        notify(
            f"A survey file is public. {rare_count:,} of its {proposal.domain.size:,} labels "
            f"{verb} given by fewer than {MIN_PEOPLE_PER_LABEL} people in this data. Remove labels "
            "that could identify someone, and add an `other` label to the domain."
        )
