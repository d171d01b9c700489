"""The decoded and the unbiased estimate in one chart.

Labels in an order get a curve: the decoded estimate as a line, and the unbiased estimate as dots in
the band of its intervals. Many labels are put in groups of neighbours. The interval of a group is
that of its total, with all covariances, divided by its size. All other labels get bars with rings.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sfumato.charts import Axis, BarChart, Curve, CurveChart, label_axis, linear_axis
from sfumato.contexts import Context
from sfumato.domains import Domain, Label
from sfumato.domains.layout import Line
from sfumato.estimation.estimate_chart import answer_name, draw_bars
from sfumato.estimation.top_answers import MAX_BARS, decimal_places
from sfumato.estimation.uncertainty.intervals import Bounds
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.foundation.formatting import format_percent, format_share, plural

if TYPE_CHECKING:
    from sfumato.estimation.estimate import Estimate

__all__ = ["draw_decoded"]

_MAX_DOTS = 120
_MIN_DOTS = 20
_MAX_SCORES = 2_000_000  # of all totals; each total of a group needs a score for every report


def draw_decoded(
    estimate: "Estimate", context: Context, bounds: Bounds, level: float, count: int = MAX_BARS
) -> BarChart | CurveChart:
    """Return a curve if many labels are on a line; otherwise, at most ``count`` bars with rings."""
    domain = context.domain
    if isinstance(domain.layout, Line) and domain.cells.size > MAX_BARS:
        return _draw_curve(estimate, domain, bounds, level)
    return draw_bars(estimate, context, bounds, level, count, marks_decoded=True)


@dataclass(frozen=True, eq=False)
class _GroupShares:
    """The mean share of the labels in each group. Groups of one label are single labels."""

    decoded: Floats
    unbiased: Floats
    standard_errors: Floats
    low: Floats
    high: Floats

    @classmethod
    def of_labels(cls, estimate: "Estimate", cells: Symbols, bounds: Bounds) -> "_GroupShares":
        low, high = bounds
        return cls(
            estimate.frequencies[cells],
            np.clip(estimate.unbiased[cells], low[cells], high[cells]),
            estimate.standard_errors[cells],
            low[cells],
            high[cells],
        )

    @classmethod
    def of_groups(cls, estimate: "Estimate", groups: list[Symbols], level: float) -> "_GroupShares":
        columns = []
        for group in groups:
            weights = np.zeros(len(estimate))
            weights[group] = 1.0
            total = estimate.weighted_total(weights, level)
            decoded = float(estimate.frequencies[group].sum())
            clipped = min(max(total.estimate, total.low), total.high)
            row = (decoded, clipped, total.standard_error, total.low, total.high)
            columns.append(np.array(row) / group.size)
        return cls(*np.array(columns).T)


def _draw_curve(estimate: "Estimate", domain: Domain, bounds: Bounds, level: float) -> CurveChart:
    cells = domain.cells
    group_size = _choose_group_size(cells.size)
    starts = range(0, cells.size, group_size)
    groups = [cells[start : start + group_size] for start in starts]
    if group_size == 1:
        shares = _GroupShares.of_labels(estimate, cells, bounds)
    else:
        shares = _GroupShares.of_groups(estimate, groups, level)
    decimals = decimal_places(shares.standard_errors)

    def write(share: float) -> str:
        return format_share(share, decimals)

    x_axis, positions = _place_labels([domain.labels[symbol] for symbol in cells.tolist()])
    x = [float(positions[start : start + group_size].mean()) for start in starts]
    top = max(float(shares.high.max()), float(shares.decoded.max()))
    y_title = "share of each answer" if group_size == 1 else f"mean share of {group_size} answers"
    percent = format_percent(level)
    unbiased = Curve(
        f"unbiased, with {percent} interval",
        _points(x, shares.unbiased),
        band=(_points(x, shares.low), _points(x, shares.high)),
        is_scatter=True,
        notes=tuple(_write_notes(domain, groups, shares, write, percent)),
    )
    decoded = Curve("decoded", _points(x, shares.decoded), "ink", is_chosen=True)
    title = (
        f"Decoded and unbiased shares of {plural(cells.size, 'answer')}, with {percent} intervals"
    )
    return CurveChart(
        title, (unbiased, decoded), x_axis, linear_axis(0, top or 1.0, write, y_title)
    )


def _write_notes(
    domain: Domain,
    groups: list[Symbols],
    shares: _GroupShares,
    write: Callable[[float], str],
    percent: str,
) -> Iterator[str]:
    """Yield the numbers of each dot, which the reader sees on pointing at it."""
    for index, group in enumerate(groups):
        name = answer_name(domain, int(group[0]))
        if group.size > 1:
            name = f"{name} … {answer_name(domain, int(group[-1]))}, mean"
        unbiased = write(float(shares.unbiased[index]))
        interval = f"{write(float(shares.low[index]))} to {write(float(shares.high[index]))}"
        decoded = write(float(shares.decoded[index]))
        yield f"{name}: {unbiased}, {percent} interval {interval}; decoded {decoded}"


def _choose_group_size(cell_count: int) -> int:
    """Return a round number of labels per dot, so that there are at most 120 dots.

    In large domains, where each total takes long, there are fewer.

    >>> [_choose_group_size(count) for count in (100, 121, 1000, 100_000)]
    [1, 2, 10, 5000]
    """
    dot_count = min(max(_MAX_SCORES // cell_count, _MIN_DOTS), _MAX_DOTS)
    smallest = math.ceil(cell_count / dot_count)
    unit = 10 ** (len(str(smallest)) - 1)
    return next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= smallest)


def _place_labels(labels: list[Label]) -> tuple[Axis, Floats]:
    """Return an axis for labels in order, and their positions on it.

    Integers in equal steps lie at themselves, so that the axis has round numbers. Other labels lie
    in equal steps, as decoders see them.
    """
    numbers = np.arange(len(labels), dtype=np.float64)
    if all(isinstance(label, int) for label in labels):
        integers = np.array(labels, dtype=np.float64)
        if np.unique(np.diff(integers)).size == 1:
            axis = linear_axis(integers[0], integers[-1], lambda number: f"{number:.0f}", "answer")
            return axis, integers
    return label_axis(labels, "answer"), numbers


def _points(x: list[float], y: Floats) -> tuple[tuple[float, float], ...]:
    return tuple(zip(x, y.tolist(), strict=True))
