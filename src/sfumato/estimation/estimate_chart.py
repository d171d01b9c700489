"""An estimate as a bar chart with intervals. Requires matplotlib."""

import re
from typing import TYPE_CHECKING

import numpy as np

from sfumato.contexts import MAX_MATRIX_SIZE, Context
from sfumato.domains import Label
from sfumato.errors import MissingExtra
from sfumato.estimation.uncertainty.intervals import Bounds
from sfumato.foundation.arrays import Booleans, Symbols
from sfumato.foundation.formatting import format_percent, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sfumato.estimation.estimate import Estimate

__all__ = ["MAX_BARS", "draw_estimate"]

MAX_BARS = 30
"""The maximum number of labels in a chart."""

_MAX_LABEL_LENGTH = 32
_WIDTH = 7.0  # inches
_BAR_HEIGHT = 0.26  # inches
_BAR_COLOUR = "#7ba0bc"
_ACCENT_COLOUR = "#c98a78"  # sensitive labels
_INTERVAL_COLOUR = "#2b2b2b"
_FAINT = "#77736c"
_PALE = "#e4e1dc"
_NUMBER_FIRST = re.compile(r"[^\w]*\d")  # "18", "-5", "< 18", "18 to 29"


def draw_estimate(
    estimate: "Estimate", context: Context, bounds: Bounds, level: float, ax: "Axes | None"
) -> "Axes":
    """Draw the most frequent labels on ``ax``, or on new axes, and return the axes."""
    symbols = _choose_symbols(estimate)
    ax = _new_axes(symbols.size) if ax is None else ax
    rows = np.arange(symbols.size)
    shown_sensitive = _sensitive_mask(context)[symbols]
    names_by_mask = {"decoded estimate": ~shown_sensitive, "sensitive": shown_sensitive}
    colours = (_BAR_COLOUR, _ACCENT_COLOUR)
    for (name, mask), colour in zip(names_by_mask.items(), colours, strict=True):
        if mask.any():
            shares = 100 * estimate.frequencies[symbols][mask]
            ax.barh(rows[mask], shares, height=0.65, color=colour, label=name)
    low = 100 * bounds[0][symbols]
    high = 100 * bounds[1][symbols]
    # An unbiased estimate may lie outside its interval, which respects the limits 0 and 1.
    points = np.clip(100 * estimate.unbiased[symbols], low, high)
    ax.errorbar(
        points,
        rows,
        xerr=np.vstack([points - low, high - points]),
        fmt="D",
        markersize=3,
        linewidth=1.2,
        capsize=2.5,
        color=_INTERVAL_COLOUR,
        label=f"unbiased estimate, {format_percent(level)} interval",
    )
    ax.set_yticks(rows, [_tick_label(estimate.labels[x]) for x in symbols.tolist()])
    _style(ax, estimate, symbols.size)
    return ax


def _choose_symbols(estimate: "Estimate") -> Symbols:
    """Return the most frequent symbols: in domain order if the labels are numbers."""
    most_frequent = np.lexsort((-estimate.unbiased, -estimate.frequencies))[:MAX_BARS]
    labels = [estimate.labels[x] for x in most_frequent.tolist()]
    is_ordered = all(_NUMBER_FIRST.match(str(label)) for label in labels)
    return np.sort(most_frequent) if is_ordered else most_frequent


def _sensitive_mask(context: Context) -> Booleans:
    """Return which symbols are protected, if others are not; otherwise, all are alike."""
    mask = np.zeros(context.size, dtype=np.bool_)
    if context.groups is None and context.size > MAX_MATRIX_SIZE:
        return mask
    unprotected = context.unprotected_symbols()
    if 0 < unprotected.size < context.size:
        mask[:] = True
        mask[unprotected] = False
    return mask


def _tick_label(label: Label) -> str:
    """Shorten a label, and escape ``$``, which matplotlib would read as mathematics."""
    text = printable(str(label))
    if len(text) > _MAX_LABEL_LENGTH:
        text = f"{text[: _MAX_LABEL_LENGTH - 1]}…"
    return text.replace("$", r"\$")


def _style(ax: "Axes", estimate: "Estimate", row_count: int) -> None:
    title = f"{estimate.reports:,} reports"
    if row_count < len(estimate.labels):
        title += f"; the {row_count} most frequent of {len(estimate.labels):,} labels"
    ax.set_title(title, loc="left", fontsize=10, color=_FAINT)
    ax.set_ylim(row_count - 0.4, -0.6)
    ax.set_xlim(left=0)
    ax.set_xlabel("share of people (%)")
    ax.grid(axis="x", color=_PALE, linewidth=0.7)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(_PALE)
    # Below the axis and its label: inside, the legend would cover a bar or an interval.
    ax.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, 0),
        borderaxespad=4,
        ncols=3,
        frameon=False,
        fontsize=9,
    )


def _new_axes(row_count: int) -> "Axes":
    """Return axes of a new figure of pyplot, which notebooks show by themselves."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingExtra("plots require matplotlib: pip install 'sfumato[charts]'") from None
    size = (_WIDTH, 1.5 + _BAR_HEIGHT * row_count)
    _, ax = plt.subplots(figsize=size, layout="constrained")
    return ax
