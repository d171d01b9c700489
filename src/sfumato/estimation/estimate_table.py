"""An estimate as a table: text, HTML or Arrow, with its two estimates kept apart.

The *decoded* estimate is a distribution and the better guess. The *unbiased* estimate, with its
interval, is right on average and may be negative. Every table says which column is which.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from sfumato.domains import Label
from sfumato.foundation.arrays import Arrow, Floats
from sfumato.foundation.formatting import printable

__all__ = ["MAX_SHOWN", "EstimateTable"]

MAX_SHOWN = 20
"""How many symbols a text or a notebook shows."""

_SHOWN_COLUMNS = ("frequency", "unbiased", "low", "high")


@dataclass(frozen=True, eq=False)
class EstimateTable:
    """The estimates of some or all of ``size`` symbols.

    ``columns``: frequency, unbiased, standard_error, low and high.
    ``level``: that of the intervals from low to high.
    """

    labels: Sequence[Label]
    columns: Mapping[str, Floats]
    level: float
    size: int
    reports: int
    decoder: str
    fingerprint: str

    @property
    def _percent(self) -> str:
        return f"{100 * self.level:.4g} %"

    def to_text(self) -> str:
        """Format the table for a terminal."""
        names = [printable(str(label)) for label in self.labels]
        width = max(map(len, [*names, "label"]))
        legend = (
            f"{self.reports} reports; frequency: {self.decoder}; "
            f"low and high: {self._percent} interval of the unbiased estimate"
        )
        lines = [f"{'label':<{width}}  frequency  unbiased     low    high   ({legend})"]
        for x, name in enumerate(names):
            frequency, unbiased, low, high = (self.columns[column][x] for column in _SHOWN_COLUMNS)
            lines.append(
                f"{name:<{width}}  {frequency:9.4f} {unbiased:9.4f} {low:7.4f} {high:7.4f}"
            )
        if self.size > len(names):
            lines.append(f"… {self.size - len(names)} more")
        return "\n".join(lines)

    def to_html(self) -> str:
        """Format the table for a notebook. Its labels must be the most frequent ones."""
        shown = len(self.labels)
        more = f"; the {shown} most frequent of {self.size:,}" if self.size > shown else ""
        title = f"<p><b>Estimate</b> from {self.reports:,} reports{more}</p>"
        groups = (
            '<th rowspan="2" scope="col">label</th>'
            f'<th scope="colgroup">decoded picture ({escape(self.decoder)})</th>'
            f'<th colspan="3" scope="colgroup">unbiased, with {self._percent} interval</th>'
        )
        names = "".join(f'<th scope="col">{name}</th>' for name in _SHOWN_COLUMNS)
        head = f"<thead><tr>{groups}</tr><tr>{names}</tr></thead>"
        rows = ""
        for x, label in enumerate(self.labels):
            rows += f'<tr><th scope="row" style="text-align:left">{escape(str(label))}</th>'
            rows += "".join(f"<td>{self.columns[name][x]:.4f}</td>" for name in _SHOWN_COLUMNS)
            rows += "</tr>"
        return f"{title}<table>{head}<tbody>{rows}</tbody></table>"

    def to_arrow(self) -> Arrow:
        """Return a ``pyarrow.Table`` whose metadata explains its columns."""
        import pyarrow as pa

        labels = list(self.labels)
        if len({type(label) for label in labels}) > 1:
            labels = [str(label) for label in labels]
        table = pa.table({"label": labels, **self.columns})
        return table.replace_schema_metadata(
            {
                "reports": str(self.reports),
                "decoder": self.decoder,
                "level": repr(self.level),
                "fingerprint": self.fingerprint,
                "readings": "frequency is decoded; unbiased, standard_error, low and high are the "
                "unbiased estimate's",
            }
        )
