"""The dashboard's section on days and senders, where operators find a flood and leave it out."""

from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.foundation.formatting import format_count, format_share
from sfumato.pages.markup import EMPTY, Html, fill, join, render

__all__ = ["DayRow", "days_view", "left_out_sentence"]

_SUSPICIOUS_P_VALUE = 0.001
_ANONYMOUS = "anonymous"

_ROW = (
    '<tr><th scope="row">$day, $sender</th><td class="number" data-name="reports">$reports</td>'
    '<td class="number$fit_class" data-name="fit">$fit</td>'
    '<td class="number" data-name="largest shift">$shift</td>'
    '<td class="buttons text">$day_button $sender_button</td></tr>'
)
_BUTTON = (
    '<button type="button" class="plain" data-method="$method" data-omission="$path">$text</button>'
)
_NOTICE = '<p class="caution">$sentence</p>'
_SUSPICION = (
    '<p class="caution"><strong>Some reports look forged:</strong> $groups. '
    "See “Days and senders” below.</p>"
)
_MAX_GROUPS_SHOWN = 3


@dataclass(frozen=True)
class DayRow:
    """The reports of a sender on a day. ``p_value`` is ``None`` if there are too few for a test."""

    day: str
    sender: str
    reports: int
    is_left_out: bool
    p_value: float | None
    largest_shift: float


def days_view(
    rows: Sequence[DayRow], omitted_days: Sequence[str], omitted_senders: Sequence[str]
) -> dict[str, dict[str, Html]]:
    """Return a row for each day and sender, and notices of what is left out or looks forged."""
    rendered = []
    for row in rows:
        day_button = _button(f"days/{row.day}", row.day, row.day in omitted_days)
        sender_button = EMPTY
        if row.sender:
            is_omitted = row.sender in omitted_senders
            sender_button = _button(f"senders/{row.sender}", row.sender, is_omitted)
        rendered.append(_render_row(row, day_button, sender_button))
    notices = [_suspicion(rows)]
    if omitted_days or omitted_senders:
        sentence = left_out_sentence(omitted_days, omitted_senders)
        notices.append(fill(_NOTICE, sentence=sentence))
    section = render("dashboard/days.html", rows=join(rendered))
    return {"parts": {"notices": join(notices), "days": section}}


def _suspicion(rows: Sequence[DayRow]) -> Html:
    """Return a notice that names the days and senders in the results that look forged.

    The threshold is for all rows together, so that many honest days cause no false alarm.
    """
    threshold = _SUSPICIOUS_P_VALUE / max(len(rows), 1)
    names = []
    for row in rows:
        is_forged = row.p_value is not None and row.p_value < threshold
        if is_forged and not row.is_left_out:
            names.append(_name(row))
    if not names:
        return EMPTY
    groups = "; ".join(names[:_MAX_GROUPS_SHOWN])
    if len(names) > _MAX_GROUPS_SHOWN:
        groups += f"; and {len(names) - _MAX_GROUPS_SHOWN} more"
    return fill(_SUSPICION, groups=groups)


def _name(row: DayRow) -> str:
    return f"{row.day}, {row.sender or _ANONYMOUS}"


def left_out_sentence(days: Sequence[str], senders: Sequence[str]) -> str:
    """Say what results leave out.

    >>> left_out_sentence(["2026-11-15"], ["north"])
    'The results on this page leave out: 2026-11-15, sender north.'
    """
    names = [*days, *(f"sender {name}" for name in senders)]
    return f"The results on this page leave out: {', '.join(names)}."


def _button(path: str, name: str, is_omitted: bool) -> Html:
    if is_omitted:
        return fill(_BUTTON, method="DELETE", path=path, text=f"include {name} again")
    return fill(_BUTTON, method="PUT", path=path, text=f"leave out {name}")


def _render_row(row: DayRow, day_button: Html, sender_button: Html) -> Html:
    is_suspicious = row.p_value is not None and row.p_value < _SUSPICIOUS_P_VALUE
    return fill(
        _ROW,
        day=row.day,
        sender=row.sender or _ANONYMOUS,
        reports=format_count(row.reports),
        fit_class=" ill" if is_suspicious else "",
        fit=_format_fit(row.p_value),
        shift="left out" if row.is_left_out else format_share(row.largest_shift, 1),
        day_button=day_button,
        sender_button=sender_button,
    )


def _format_fit(p_value: float | None) -> str:
    if p_value is None:
        return "too few"
    return "< 0.001" if p_value < _SUSPICIOUS_P_VALUE else f"{p_value:.3f}"
