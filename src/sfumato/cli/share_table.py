"""The table that `sfumato estimate` prints: the share of each answer, with its interval."""

import shutil
import sys
from typing import TYPE_CHECKING

from sfumato.foundation.formatting import printable, shorten

if TYPE_CHECKING:
    from sfumato.domains import Domain, Label
    from sfumato.estimation import Estimate
    from sfumato.survey import AnswerColumns

_MAX_LABELS = 20
_MAX_ORDERED_LABELS = 100  # for labels with an order, such as ages, which people want to see whole
_NUMBERS_WIDTH = 50  # the longest text after a label
_MIN_LABEL_WIDTH = 12


def format_shares(estimate: "Estimate", domain: "Domain", columns: "AnswerColumns") -> str:
    """Format the decoded and the unbiased estimates as a table.

    If there are many labels, show only the most frequent ones. ``columns`` says how a table of
    answers is read: intervals and parts of dates have an order.
    """
    from sfumato.pages import most_frequent
    from sfumato.survey import result_rows

    rows = result_rows(estimate)
    label_count = len(rows)
    has_rules = bool(columns.bins) or columns.date is not None
    has_order = has_rules or is_ordered(domain, columns.missing)
    limit = _MAX_ORDERED_LABELS if has_order else _MAX_LABELS
    if label_count > limit:
        rows = [rows[int(x)] for x in most_frequent(estimate, _MAX_LABELS)]
    labels = [_fit(printable(str(row[0]))) for row in rows]
    width = max(map(len, [*labels, "label"]))
    lines = [
        f"{'':<{width}}  {'share':>16}   unbiased estimate",
        f"{'label':<{width}}  {estimate.decoder:>16}   and its 95% interval",
    ]
    for label, (_, share, unbiased, _, low, high) in zip(labels, rows, strict=True):
        unbiased_text = f"{unbiased:7.4f} ({low:.4f} to {high:.4f})"
        lines.append(f"{label:<{width}}  {share:16.4f}   {unbiased_text}")
    if len(rows) < label_count:
        lines.append(
            f"… the {len(rows)} most frequent of {label_count:,} labels; -o FILE.csv writes all."
        )
    return "\n".join(lines)


def is_ordered(domain: "Domain", missing: "Label | None" = None) -> bool:
    """Whether the labels are numbers or intervals in ascending order, and not too many to show.

    The labels for unknown and for missing answers are ignored.
    """
    from sfumato.domains import GridDomain, H3Domain, IntegerDomain
    from sfumato.domains.label_order import are_in_numeric_order

    if isinstance(domain, IntegerDomain):
        return True
    if isinstance(domain, GridDomain | H3Domain) or domain.size > _MAX_ORDERED_LABELS:
        return False
    return are_in_numeric_order(domain.labels, ignore=(domain.other, missing))


def _fit(label: str) -> str:
    """Cut out the middle of a long label, so that its numbers stay on the terminal's line."""
    if not sys.stdout.isatty():
        return label
    columns = shutil.get_terminal_size().columns
    return shorten(label, max(columns - _NUMBERS_WIDTH, _MIN_LABEL_WIDTH))
