"""Estimates to be looked at and handed on: text, HTML and Arrow, with the two readings kept apart.

The *decoded picture* is a distribution and the better guess; the *unbiased reading*, with its interval, is right on
average and may be negative. Every form says which column is which.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from sfumato.domains import Label
from sfumato.foundation.arrays import Arrow, Floats
from sfumato.foundation.printable import printable

__all__ = ["SHOWN", "Readings", "arrow_table", "html_table", "text_table"]

SHOWN = 20
"""How many symbols a text or a notebook shows."""


@dataclass(frozen=True, eq=False)
class Readings:
    """The columns of a table of symbols, all of them or some, and what must be said about them."""

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
        """The level as people write it."""
        return f"{100 * self.level:.4g} %"


def text_table(readings: Readings, symbols: int) -> str:
    """For a terminal: the readings of the first symbols, of so many in all."""
    names = [printable(str(label)) for label in readings.labels]
    width = max(map(len, [*names, "label"]))
    said = (
        f"{readings.reports} reports; frequency: {readings.decoder}; low and high: {readings.percent} interval of the "
        "unbiased estimate"
    )
    lines = [f"{'label':<{width}}  frequency  unbiased     low    high   ({said})"]
    for x, name in enumerate(names):
        figures = f"{readings.frequency[x]:9.4f} {readings.unbiased[x]:9.4f} {readings.low[x]:7.4f}"
        lines.append(f"{name:<{width}}  {figures} {readings.high[x]:7.4f}")
    if symbols > len(readings.labels):
        lines.append(f"… {symbols - len(readings.labels)} more")
    return "\n".join(lines)


def html_table(readings: Readings, symbols: int) -> str:
    """For a notebook: the readings of the most frequent symbols, of so many in all."""
    shown = len(readings.labels)
    more = f"; the {shown} most frequent of {symbols:,}" if symbols > shown else ""
    line = f"<p><b>Estimate</b> from {readings.reports:,} reports{more}</p>"
    rows = "".join(_html_row(readings, x) for x in range(shown))
    return f"{line}<table>{_html_head(readings)}<tbody>{rows}</tbody></table>"


def _html_head(readings: Readings) -> str:
    """Two rows: which reading a column belongs to, and its name."""
    above = (
        ('<th rowspan="2" scope="col">label</th>', ""),
        ('<th scope="colgroup">', f"decoded picture ({escape(readings.decoder)})</th>"),
        ('<th colspan="3" scope="colgroup">', f"unbiased, with {readings.percent} interval</th>"),
    )
    names = "".join(
        f'<th scope="col">{name}</th>' for name in ("frequency", "unbiased", "low", "high")
    )
    return f"<thead><tr>{''.join(tag + text for tag, text in above)}</tr><tr>{names}</tr></thead>"


def _html_row(readings: Readings, x: int) -> str:
    values = (readings.frequency[x], readings.unbiased[x], readings.low[x], readings.high[x])
    cells = "".join(f"<td>{value:.4f}</td>" for value in values)
    label = escape(str(readings.labels[x]))
    return f'<tr><th scope="row" style="text-align:left">{label}</th>{cells}</tr>'


def arrow_table(readings: Readings) -> Arrow:
    """A ``pyarrow.Table``: label, frequency, unbiased, standard_error, low, high; what they mean in its metadata."""
    import pyarrow as pa

    labels = list(readings.labels)
    if len({type(label) for label in labels}) > 1:
        labels = [str(label) for label in labels]
    names = ("label", "frequency", "unbiased", "standard_error", "low", "high")
    numbers = (
        readings.frequency,
        readings.unbiased,
        readings.standard_error,
        readings.low,
        readings.high,
    )
    said = {
        "reports": str(readings.reports),
        "decoder": readings.decoder,
        "level": repr(readings.level),
        "fingerprint": readings.fingerprint,
        "readings": "frequency is decoded; unbiased, standard_error, low and high are the unbiased estimate's",
    }
    return pa.table(
        [pa.array(labels), *map(pa.array, numbers)], names=names
    ).replace_schema_metadata(said)
