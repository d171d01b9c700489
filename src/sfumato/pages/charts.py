"""The charts of the report page and the dashboard."""

import math
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

from sfumato.charts import Column, ColumnChart, HeatMap, Square
from sfumato.contexts import Context
from sfumato.domains import Label
from sfumato.errors import InvalidContext
from sfumato.foundation.formatting import format_epsilon, format_odds_factor, plural
from sfumato.pages.promise import shorten_label

MAX_HEATMAP_SYMBOLS = 30
"""The largest number of symbols for which a privacy matrix is drawn."""

_WEAKEST_EPSILON = 4.0  # promises at least this weak have the palest colour
_MAX_HOURLY_COLUMNS = 24 * 8  # with more hours, each column is a day
_HOUR = 3600.0  # seconds
_DAY = 24 * _HOUR


# --- the privacy matrix ---------------------------------------------------------------------------


def privacy_heatmap(context: Context) -> HeatMap:
    """Return the privacy matrix as a heat map.

    The stronger the colour of a square, the harder its two answers are to tell apart. ∞ means that
    nothing is promised for the pair itself.
    """
    k = context.size
    if k > MAX_HEATMAP_SYMBOLS:
        raise InvalidContext(
            f"a privacy matrix can be drawn for up to {MAX_HEATMAP_SYMBOLS} symbols; "
            f"this context has {k}."
        )
    E = context.matrix()
    labels = context.domain.labels
    rows = []
    for x in range(k):
        squares = [_square(labels[x], labels[x2], float(E[x, x2])) for x2 in range(k)]
        rows.append(tuple(squares))
    return HeatMap(
        title="Heat map of the promise for every pair of answers",
        labels=tuple(shorten_label(label) for label in labels),
        squares=tuple(rows),
        heading="ε of a row against a column",
    )


def _square(first: Label, second: Label, epsilon: float) -> Square:
    first_label = shorten_label(first, 60)
    if first == second:
        return Square(None, "–", f"{first_label}: the same answer")
    pair = f"odds of {first_label} against {shorten_label(second, 60)}"
    if math.isinf(epsilon):
        return Square(None, "∞", f"{pair}: nothing is promised for the pair itself")
    strength = 1 - min(epsilon / _WEAKEST_EPSILON, 1)
    number = format_epsilon(epsilon).removeprefix("≈ ")
    limit = f"from 1:1 to at most {format_odds_factor(epsilon)}:1"
    return Square(strength, number, f"{pair}: {limit} (ε = {format_epsilon(epsilon)})")


# --- reports over time ----------------------------------------------------------------------------


def reports_over_time(reports_by_hour: Sequence[tuple[str, int]]) -> ColumnChart:
    """Return the number of reports per hour, or per day if there are many hours.

    Each entry is a UTC hour, such as ``2026-11-15T17``, and its number of reports.
    """
    is_daily = len(reports_by_hour) > _MAX_HOURLY_COLUMNS
    counts = Counter[str]()
    for hour, report_count in reports_by_hour:
        counts[hour[:10] if is_daily else hour] += report_count
    columns = []
    for moment, count in counts.items():
        start = datetime.fromisoformat(f"{moment[:10]}T{moment[11:13] or '00'}:00").replace(
            tzinfo=UTC
        )
        name = moment if is_daily else f"{moment.replace('T', ' ')}:00 UTC"
        columns.append(Column(start.timestamp(), count, f"{name}: {plural(count, 'report')}"))
    duration = _DAY if is_daily else _HOUR
    title = "Reports per day" if is_daily else "Reports per hour"
    return ColumnChart(title, tuple(columns), duration, lambda count: f"{count:,.0f}")
