"""An estimate as a table, in text, HTML or Arrow.

The *decoded* estimate is a distribution, and usually more accurate than the unbiased estimate. The
*unbiased* estimate is correct on average, but may be negative; the intervals are based on it. Every
table shows the two estimates in separate columns.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from sfumato.domains import Label
from sfumato.estimation.model_summary import decoder_with_models
from sfumato.foundation.arrays import Arrow, Floats
from sfumato.foundation.formatting import printable
from sfumato.foundation.notebook import facts_html

__all__ = ["MAX_SYMBOLS_SHOWN", "EstimateRow", "EstimateTable", "arrow_labels"]

MAX_SYMBOLS_SHOWN = 20
"""The maximum number of symbols to show in text and in notebooks."""

_SHOWN_COLUMNS = ("frequency", "unbiased", "low", "high")


@dataclass(frozen=True, repr=False)
class EstimateRow:
    """The estimates for one label.

    ``frequency``: the decoded estimate.
    ``unbiased``, ``standard_error``: the unbiased estimate and its standard error.
    ``low``, ``high``: the 95% interval, which is based on the unbiased estimate.
    """

    label: Label
    frequency: float
    unbiased: float
    standard_error: float
    low: float
    high: float

    def __repr__(self) -> str:
        return (
            f"EstimateRow({self.label!r}, frequency={self.frequency:.4f}, "
            f"unbiased={self.unbiased:.4f}, 95% interval {self.low:.4f} to {self.high:.4f})"
        )

    def _repr_html_(self) -> str:
        """Return the row as HTML, for notebooks."""
        facts = {
            "decoded estimate": f"{self.frequency:.4f}",
            "unbiased estimate": f"{self.unbiased:.4f} ± {self.standard_error:.4f}",
            "95% interval": f"{self.low:.4f} to {self.high:.4f}",
        }
        return facts_html(str(self.label), facts)


def arrow_labels(labels: Sequence[Label]) -> list[Label] | list[str]:
    """Return labels for an Arrow column, which has one type: mixed labels become text."""
    if len({type(label) for label in labels}) > 1:
        return [str(label) for label in labels]
    return list(labels)


@dataclass(frozen=True, eq=False)
class EstimateTable:
    """Estimates for some or all of the symbols in a domain.

    ``columns``: frequency, unbiased, standard_error, low and high.
    ``level``: the confidence level of the intervals from low to high.
    ``domain_size``: the number of symbols in the domain.
    ``model_summary``: the models that carried the decoded estimate.
    """

    labels: Sequence[Label]
    columns: Mapping[str, Floats]
    level: float
    domain_size: int
    reports: int
    decoder: str
    model_summary: str
    fingerprint: str

    @property
    def _decoder_text(self) -> str:
        return decoder_with_models(self.decoder, self.model_summary)

    @property
    def _level_percent(self) -> str:
        return f"{100 * self.level:.4g}%"

    def to_text(self) -> str:
        """Return the table as text for a terminal."""
        labels = [printable(str(label)) for label in self.labels]
        width = max(map(len, [*labels, "label"]))
        legend = (
            f"{self.reports} reports; frequency: {printable(self._decoder_text)}; "
            f"low and high: {self._level_percent} interval of the unbiased estimate"
        )
        lines = [f"{'label':<{width}}  frequency  unbiased     low    high   ({legend})"]
        for row, label in enumerate(labels):
            frequency, unbiased, low, high = (self.columns[name][row] for name in _SHOWN_COLUMNS)
            lines.append(
                f"{label:<{width}}  {frequency:9.4f} {unbiased:9.4f} {low:7.4f} {high:7.4f}"
            )
        if self.domain_size > len(labels):
            lines.append(f"… {self.domain_size - len(labels)} more")
        return "\n".join(lines)

    def to_html(self) -> str:
        """Return the table as HTML for a notebook. Its rows must be the most frequent symbols."""
        row_count = len(self.labels)
        subset_note = f"; the {row_count} most frequent of {self.domain_size:,}"
        if self.domain_size <= row_count:
            subset_note = ""
        title = f"<p><b>Estimate</b> from {self.reports:,} reports{subset_note}</p>"
        group_headers = (
            '<th rowspan="2" scope="col">label</th>'
            f'<th scope="colgroup">decoded estimate ({escape(self._decoder_text)})</th>'
            f'<th colspan="3" scope="colgroup">unbiased, with {self._level_percent} interval</th>'
        )
        headers = "".join(f'<th scope="col">{name}</th>' for name in _SHOWN_COLUMNS)
        head = f"<thead><tr>{group_headers}</tr><tr>{headers}</tr></thead>"
        body = ""
        for row, label in enumerate(self.labels):
            body += f'<tr><th scope="row" style="text-align:left">{escape(str(label))}</th>'
            body += "".join(f"<td>{self.columns[name][row]:.4f}</td>" for name in _SHOWN_COLUMNS)
            body += "</tr>"
        return f"{title}<table>{head}<tbody>{body}</tbody></table>"

    def to_arrow(self) -> Arrow:
        """Return a ``pyarrow.Table`` whose metadata describes its columns."""
        import pyarrow as pa

        table = pa.table({"label": arrow_labels(self.labels), **self.columns})
        return table.replace_schema_metadata(
            {
                "reports": str(self.reports),
                "decoder": self.decoder,
                "level": repr(self.level),
                "fingerprint": self.fingerprint,
                "readings": "frequency is the decoded estimate; unbiased, standard_error, low and "
                "high describe the unbiased estimate",
            }
        )
