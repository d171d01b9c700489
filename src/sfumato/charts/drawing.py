"""An SVG picture, put together from a few kinds of marks. All text is escaped."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from html import escape

from sfumato.charts.palette import PAGE, Palette
from sfumato.foundation.formatting import shorten

__all__ = ["FONT_SIZE", "SMALL", "Drawing", "fit_text", "text_width"]

FONT_SIZE = 13.0
"""The usual size of text, in pixels."""

SMALL = 12.0
"""The size of numbers and remarks, in pixels."""

_FONTS = "system-ui,-apple-system,'Segoe UI',Roboto,'Liberation Sans','DejaVu Sans',sans-serif"
# Widths of characters in a wide font (DejaVu Sans), as a share of the font size.
_NARROW_CHARACTERS = frozenset("iljtfr.,:;'|!()[]/- ")
_NARROW_WIDTH = 0.38
_USUAL_WIDTH = 0.62
_WIDE_CHARACTERS = frozenset("mwMW%@…")
_WIDE_WIDTH = 0.95
_CAPITAL_WIDTH = 0.7
_BOLD_FACTOR = 1.1
_MAX_TEXT_LENGTH = 120  # no chart has room for more characters
_ILLEGAL_CHARACTERS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")  # in XML
# Replaced by an id that no other chart on the page has. Escaped text cannot contain it.
_GRADIENT_PREFIX = "<fade>"


def text_width(text: str, size: float = FONT_SIZE, *, bold: bool = False) -> float:
    """Estimate the width of a text in pixels. The reader's font is unknown, so be generous."""
    return (_BOLD_FACTOR if bold else 1) * size * sum(map(_character_width, text))


def _character_width(character: str) -> float:
    if character in _NARROW_CHARACTERS:
        return _NARROW_WIDTH
    if character in _WIDE_CHARACTERS or unicodedata.east_asian_width(character) in "WF":
        return _WIDE_WIDTH
    return _CAPITAL_WIDTH if character.isupper() else _USUAL_WIDTH


def fit_text(text: str, width: float, size: float = FONT_SIZE) -> str:
    """Cut out the middle of a text that is wider than ``width`` pixels."""
    text = shorten(text, _MAX_TEXT_LENGTH)
    length = len(text)
    while length > 1 and text_width(shorten(text, length), size) > width:
        length -= 1
    return shorten(text, length)


class Drawing:
    """A picture of a given width. Coordinates are pixels from its upper left corner."""

    def __init__(self, width: float, palette: Palette = PAGE) -> None:
        self.width = width
        self.palette = palette
        self._parts: list[str] = []
        self._fading_colours: set[str] = set()

    # --- marks -----------------------------------------------------------------------------------

    def rectangle(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        fill: str,
        radius: float = 0,
        *,
        opacity: float = 1,
    ) -> None:
        """Add a rectangle."""
        rounding = f' rx="{_number(radius)}"' if radius else ""
        self._parts.append(
            f'<rect x="{_number(x)}" y="{_number(y)}" width="{_number(max(width, 0))}" '
            f'height="{_number(height)}"{rounding} {self._fill(fill, opacity)}/>'
        )

    def fading_rectangle(self, x: float, y: float, width: float, height: float, fill: str) -> None:
        """Add a rectangle whose colour fades away to the right."""
        if width <= 0:
            return
        self._fading_colours.add(fill)
        self._parts.append(
            f'<rect x="{_number(x)}" y="{_number(y)}" width="{_number(width)}" '
            f'height="{_number(height)}" fill="url(#{_GRADIENT_PREFIX}{fill})"/>'
        )

    def line(
        self,
        x1: float,
        y1: float,
        x2: float,
        y2: float,
        stroke: str,
        width: float = 1,
        *,
        dashes: str = "",
    ) -> None:
        """Add a straight line."""
        self._parts.append(
            f'<line x1="{_number(x1)}" y1="{_number(y1)}" x2="{_number(x2)}" y2="{_number(y2)}" '
            f"{self._stroke(stroke, width, dashes)}/>"
        )

    def polyline(
        self,
        points: Sequence[tuple[float, float]],
        stroke: str,
        width: float = 1.8,
        *,
        dashes: str = "",
    ) -> None:
        """Add a line through points."""
        self._parts.append(
            f'<polyline points="{_points(points)}" fill="none" stroke-linejoin="round" '
            f"{self._stroke(stroke, width, dashes)}/>"
        )

    def polygon(self, points: Sequence[tuple[float, float]], fill: str, opacity: float = 1) -> None:
        """Add an area."""
        self._parts.append(f'<polygon points="{_points(points)}" {self._fill(fill, opacity)}/>')

    def path(self, commands: str, *, fill: str = "", stroke: str = "", width: float = 1) -> None:
        """Add a path, with commands as in SVG."""
        fill_text = self._fill(fill) if fill else 'fill="none"'
        stroke_text = f" {self._stroke(stroke, width, '')}" if stroke else ""
        self._parts.append(f'<path d="{escape(commands)}" {fill_text}{stroke_text}/>')

    def circle(
        self, x: float, y: float, radius: float, *, fill: str = "", stroke: str = ""
    ) -> None:
        """Add a circle, filled or as a ring."""
        fill_text = self._fill(fill) if fill else 'fill="none"'
        stroke_text = f" {self._stroke(stroke, 1.6, '')}" if stroke else ""
        self._parts.append(
            f'<circle cx="{_number(x)}" cy="{_number(y)}" r="{_number(radius)}" '
            f"{fill_text}{stroke_text}/>"
        )

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        fill: str = "ink",
        anchor: str = "start",
        size: float = FONT_SIZE,
        bold: bool = False,
        halo: str = "",
    ) -> None:
        """Add a line of text on the baseline ``y``. ``anchor``: start, middle or end.

        ``halo`` is the colour of an edge around the letters, for text on a picture.
        """
        anchor_text = f' text-anchor="{anchor}"' if anchor != "start" else ""
        size_text = f' font-size="{_number(size)}"' if size != FONT_SIZE else ""
        weight_text = ' font-weight="600"' if bold else ""
        if halo:
            weight_text += f' paint-order="stroke" {self._stroke(halo, 3, "")}'
        self._parts.append(
            f'<text x="{_number(x)}" y="{_number(y)}"{anchor_text}{size_text}{weight_text} '
            f"{self._fill(fill)}>{_xml_text(text)}</text>"
        )

    def start_group(self, note: str = "", *, dx: float = 0, dy: float = 0) -> None:
        """Start a group of marks. ``note`` appears when the reader points at one of them."""
        move = f' transform="translate({_number(dx)} {_number(dy)})"' if dx or dy else ""
        title = f"<title>{_xml_text(note)}</title>" if note else ""
        self._parts.append(f"<g{move}>{title}")

    def end_group(self) -> None:
        """End the group that was started last."""
        self._parts.append("</g>")

    @contextmanager
    def with_width(self, width: float) -> Iterator[None]:
        """Draw as if the picture had another width, for a chart that is a part of it."""
        full_width = self.width
        self.width = width
        try:
            yield
        finally:
            self.width = full_width

    # --- the picture -----------------------------------------------------------------------------

    def to_svg(self, height: float, title: str, css_class: str = "") -> str:
        """Return the picture as an ``<svg>`` element, with a description for screen readers."""
        marks = "".join(self._parts)
        # Derived from the content, so that equal charts are equal texts.
        unique_id = sha256(f"{self.width} {marks}".encode()).hexdigest()[:12]
        marks = marks.replace(_GRADIENT_PREFIX, f"fade-{unique_id}-")
        definitions = ""
        for colour in sorted(self._fading_colours):
            definitions += self._gradient(colour, f"fade-{unique_id}-{colour}")
        defs = f"<defs>{definitions}</defs>" if definitions else ""
        classes = f' class="{css_class}"' if css_class else ""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg"{classes} role="img" '
            f'aria-label="{escape(_ILLEGAL_CHARACTERS.sub("�", title))}" '
            f'viewBox="0 0 {_number(self.width)} {_number(height)}" '
            f'width="{_number(self.width)}" height="{_number(height)}" '
            f'font-family="{_FONTS}" font-size="{FONT_SIZE:g}">{defs}{marks}</svg>'
        )

    def _gradient(self, colour: str, name: str) -> str:
        stop_colour = self.palette[colour]
        return (
            f'<linearGradient id="{name}"><stop offset="0" stop-color="{stop_colour}"/>'
            f'<stop offset="1" stop-color="{stop_colour}" stop-opacity=".06"/></linearGradient>'
        )

    def _fill(self, colour: str, opacity: float = 1) -> str:
        see_through = f' fill-opacity="{opacity:g}"' if opacity < 1 else ""
        return f'fill="{self.palette[colour]}"{see_through}'

    def _stroke(self, colour: str, width: float, dashes: str) -> str:
        dash_text = f' stroke-dasharray="{dashes}"' if dashes else ""
        return f'stroke="{self.palette[colour]}" stroke-width="{_number(width)}"{dash_text}'


def _xml_text(text: str) -> str:
    return escape(_ILLEGAL_CHARACTERS.sub("�", text), quote=False)


def _points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{_number(x)},{_number(y)}" for x, y in points)


def _number(number: float) -> str:
    """Format a coordinate with at most one decimal place."""
    text = f"{number:.1f}"
    return text.removesuffix(".0")
