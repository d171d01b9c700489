"""Tables of an estimate: text, HTML and Arrow, with its two readings kept apart.

The *decoded picture* is a distribution and the better guess. The *unbiased reading*, with its
interval, is right on average and may be negative. Every table says which column is which.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from sfumato.domains import Label
from sfumato.foundation.arrays import Arrow, Floats
from sfumato.foundation.formatting import printable

__all__ = ["MAX_SHOWN", "Readings", "arrow_table", "html_table", "text_table"]

MAX_SHOWN = 20
"""How many symbols a text or a notebook shows."""


@dataclass(frozen=True, eq=False)
class Readings:
    """The columns of a table of symbols, all of them or some, and what the reader must know."""

    labels: Sequence[Label]
    frequency: Floats
    unbiased: Floats
    standard_error: Floats
    low: Floats
    high: Floats
    level: float
    reports: int
    decoder: str
    fingerprint: str

    @property
    def percent(self) -> str:
        """The level in per cent."""
        return f"{100 * self.level:.4g} %"


def text_table(readings: Readings, symbols: int) -> str:
    """Format the readings of the first of ``symbols`` symbols for a terminal."""
    names = [printable(str(label)) for label in readings.labels]
    width = max(map(len, [*names, "label"]))
    legend = (
        f"{readings.reports} reports; frequency: {readings.decoder}; "
        f"low and high: {readings.percent} interval of the unbiased estimate"
    )
    lines = [f"{'label':<{width}}  frequency  unbiased     low    high   ({legend})"]
    for x, name in enumerate(names):
        estimates = f"{readings.frequency[x]:9.4f} {readings.unbiased[x]:9.4f}"
        interval = f"{readings.low[x]:7.4f} {readings.high[x]:7.4f}"
        lines.append(f"{name:<{width}}  {estimates} {interval}")
    if symbols > len(readings.labels):
        lines.append(f"… {symbols - len(readings.labels)} more")
    return "\n".join(lines)


def html_table(readings: Readings, symbols: int) -> str:
    """Format the readings of the most frequent of ``symbols`` symbols for a notebook."""
    shown = len(readings.labels)
    more = f"; the {shown} most frequent of {symbols:,}" if symbols > shown else ""
    title = f"<p><b>Estimate</b> from {readings.reports:,} reports{more}</p>"
    rows = "".join(_html_row(readings, x) for x in range(shown))
    return f"{title}<table>{_html_head(readings)}<tbody>{rows}</tbody></table>"


def _html_head(readings: Readings) -> str:
    """Return two rows: which reading a column belongs to, and its name."""
    decoder = escape(readings.decoder)
    groups = (
        '<th rowspan="2" scope="col">label</th>'
        f'<th scope="colgroup">decoded picture ({decoder})</th>'
        f'<th colspan="3" scope="colgroup">unbiased, with {readings.percent} interval</th>'
    )
    names = ""
    for name in ("frequency", "unbiased", "low", "high"):
        names += f'<th scope="col">{name}</th>'
    return f"<thead><tr>{groups}</tr><tr>{names}</tr></thead>"


def _html_row(readings: Readings, x: int) -> str:
    label = escape(str(readings.labels[x]))
    row = f'<tr><th scope="row" style="text-align:left">{label}</th>'
    for column in (readings.frequency, readings.unbiased, readings.low, readings.high):
        row += f"<td>{column[x]:.4f}</td>"
    return f"{row}</tr>"


def arrow_table(readings: Readings) -> Arrow:
    """Return a ``pyarrow.Table`` whose metadata explains its columns.

    They are label, frequency, unbiased, standard_error, low and high.
    """
    import pyarrow as pa

    labels = list(readings.labels)
    if len({type(label) for label in labels}) > 1:
        labels = [str(label) for label in labels]
    table = pa.table(
        {
            "label": pa.array(labels),
            "frequency": pa.array(readings.frequency),
            "unbiased": pa.array(readings.unbiased),
            "standard_error": pa.array(readings.standard_error),
            "low": pa.array(readings.low),
            "high": pa.array(readings.high),
        }
    )
    return table.replace_schema_metadata(
        {
            "reports": str(readings.reports),
            "decoder": readings.decoder,
            "level": repr(readings.level),
            "fingerprint": readings.fingerprint,
            "readings": "frequency is decoded; unbiased, standard_error, low and high are the "
            "unbiased estimate's",
        }
    )
