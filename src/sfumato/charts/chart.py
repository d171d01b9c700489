"""A chart: a description of a picture, which can be drawn on a page, in a file or in a terminal.

Each kind of chart is a frozen dataclass of plain numbers and texts. It knows nothing about
estimates, and the code that makes a chart knows nothing about drawing.
"""

import os
from pathlib import Path

from sfumato.charts.drawing import Drawing
from sfumato.charts.palette import FIXED, PAGE, Palette
from sfumato.errors import InvalidSetting, MissingExtra
from sfumato.foundation.files import write_atomically
from sfumato.foundation.installation import install_hint

__all__ = ["NARROW_WIDTH", "WIDE_WIDTH", "Chart"]

WIDE_WIDTH = 820
"""The width of a chart on a desktop, in pixels."""

NARROW_WIDTH = 340
"""The width of a chart on a phone, in pixels."""

_PNG_ZOOM = 2  # pixels of a PNG file for each pixel of the picture


class Chart:
    """The base class of all charts. ``title`` says what is drawn, for readers who cannot see it."""

    title: str

    def draw(self, drawing: Drawing) -> float:
        """Draw the chart over the whole width of a drawing, and return its height."""
        raise NotImplementedError

    def to_text(self, width: int = 80) -> str:
        """Return the chart as lines of text for a terminal of this width."""
        raise NotImplementedError

    def to_svg(
        self, width: float = WIDE_WIDTH, *, palette: Palette = PAGE, css_class: str = ""
    ) -> str:
        """Return the chart as an ``<svg>`` element, laid out for a width in pixels."""
        drawing = Drawing(width, palette)
        height = self.draw(drawing)
        return drawing.to_svg(height, self.title, css_class)

    def to_html(self) -> str:
        """Return the chart for a page: laid out twice, for desktops and for phones.

        The style sheet of the pages shows the one that fits.
        """
        return f'<div class="chart">{self._both_layouts()}</div>'

    def _both_layouts(self) -> str:
        wide = self.to_svg(WIDE_WIDTH, css_class="wide")
        narrow = self.to_svg(NARROW_WIDTH, css_class="narrow")
        return wide + narrow

    def save(self, path: str | os.PathLike[str], *, width: float = WIDE_WIDTH) -> None:
        """Write the chart to a file whose name ends in .svg or .png, atomically.

        PNG files require the ``charts`` extra.
        """
        suffix = Path(path).suffix.lower()
        if suffix == ".svg":
            write_atomically(path, self.to_svg(width, palette=FIXED).encode("utf-8"))
        elif suffix == ".png":
            write_atomically(path, self.to_png(width))
        else:
            raise InvalidSetting(
                f"a chart is saved as .svg or .png; got {Path(path).name}. Change its extension."
            )

    def to_png(self, width: float = WIDE_WIDTH) -> bytes:
        """Return the chart as the contents of a PNG file. Requires the ``charts`` extra."""
        return svg_to_png(self.to_svg(width, palette=FIXED))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.title!r})"

    def to_notebook(self) -> str:
        """Return the chart for a notebook, on light paper: the reader's colours are unknown."""
        style = "background:#fff;padding:12px;border-radius:6px;width:fit-content"
        return f'<div style="{style}">{self.to_svg(palette=FIXED)}</div>'

    def _repr_html_(self) -> str:
        return self.to_notebook()


def svg_to_png(svg: str) -> bytes:
    """Return a picture as the contents of a PNG file, on white paper."""
    try:
        import resvg_py
    except ImportError:
        raise MissingExtra(f"PNG files require resvg-py: {install_hint('charts')}") from None
    return bytes(resvg_py.svg_to_bytes(svg_string=svg, background="#ffffff", zoom=_PNG_ZOOM))
