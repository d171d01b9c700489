"""Small multiples: charts of the same kind side by side, for groups or periods."""

from dataclasses import dataclass

from sfumato.charts.chart import Chart
from sfumato.charts.drawing import Drawing, fit_text

__all__ = ["Panel", "SmallMultiples"]

_MIN_PANEL_WIDTH = 250.0
_GAP = 28.0
_HEADING = 24.0


@dataclass(frozen=True)
class Panel:
    """A chart with a heading, and a line of text below it."""

    heading: str
    chart: Chart
    text: str = ""


@dataclass(frozen=True, repr=False)
class SmallMultiples(Chart):
    """Panels in rows of at most ``max_columns``.

    Give their charts the same axes, so that they can be compared.
    """

    title: str
    panels: tuple[Panel, ...]
    max_columns: int = 3

    def draw(self, drawing: Drawing) -> float:
        """Draw as many panels in a row as there is room for."""
        fitting = int((drawing.width + _GAP) // (_MIN_PANEL_WIDTH + _GAP))
        column_count = max(min(fitting, len(self.panels), self.max_columns), 1)
        width = (drawing.width - _GAP * (column_count - 1)) / column_count
        top = 0.0
        row_height = 0.0
        for index, panel in enumerate(self.panels):
            column = index % column_count
            if column == 0:
                top += row_height
                row_height = 0.0
            height = self._draw_panel(drawing, panel, column * (width + _GAP), top, width)
            row_height = max(row_height, height)
        return top + row_height

    def _draw_panel(
        self, drawing: Drawing, panel: Panel, left: float, top: float, width: float
    ) -> float:
        drawing.start_group(dx=left, dy=top)
        drawing.text(0, 14, fit_text(panel.heading, width), bold=True)
        drawing.start_group(dy=_HEADING)
        with drawing.with_width(width):
            height = panel.chart.draw(drawing)
        drawing.end_group()
        if panel.text:
            drawing.text(0, _HEADING + height + 12, panel.text, fill="faint")
            height += 18
        drawing.end_group()
        return _HEADING + height + _GAP / 2

    def to_text(self, width: int = 80) -> str:
        """Return the charts below each other."""
        parts = []
        for panel in self.panels:
            text = f"\n{panel.text}" if panel.text else ""
            parts.append(f"{panel.heading}\n{panel.chart.to_text(width)}{text}")
        return "\n\n".join(parts)
