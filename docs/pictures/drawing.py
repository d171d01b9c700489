"""What the drawn pictures share: a sheet of SVG with text, boxes, lines and arrows.

Sheets are 600 wide with a white background, so they are readable on light and dark pages and on
phones. A picture is a function without arguments that returns the same sheet every time.
"""

from collections.abc import Callable
from html import escape
from pathlib import Path

WIDTH = 600
INK, SOFT, PALE, WHITE = "#2b2b2b", "#666666", "#e4e1dc", "#ffffff"
PROMISED, FREE = "#b5523b", "#3d6b8c"
FONT = "system-ui, 'Segoe UI', 'DejaVu Sans', Arial, sans-serif"


class Sheet:
    """A picture in the making: elements in the order in which they are laid down."""

    def __init__(self, height: int, title: str) -> None:
        self.height, self.title = height, title
        self.elements: list[str] = []

    def text(self, x, y, words, *, size=16, ink=INK, anchor="start", bold=False):
        weight = ' font-weight="600"' if bold else ""
        self.elements.append(
            f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" fill="{ink}" '
            f'text-anchor="{anchor}"{weight}>'
            f"{escape(words)}</text>"
        )

    def box(self, x, y, width, height, *, fill=WHITE, stroke="none", radius=6, dash=""):
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        self.elements.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" '
            f'rx="{radius:g}" fill="{fill}" '
            f'stroke="{stroke}" stroke-width="1.5"{dashes}/>'
        )

    def line(self, x, y, x2, y2, *, ink=SOFT, width=2, dash=""):
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        self.elements.append(
            f'<line x1="{x:g}" y1="{y:g}" x2="{x2:g}" y2="{y2:g}" stroke="{ink}" '
            f'stroke-width="{width:g}"{dashes}/>'
        )

    def arrow(self, x, y, x2, y2, *, ink=SOFT):
        """A line with a head at its second end, along one of the axes or askew."""
        length = ((x2 - x) ** 2 + (y2 - y) ** 2) ** 0.5
        u, v = (x2 - x) / length, (y2 - y) / length
        self.line(x, y, x2 - 6 * u, y2 - 6 * v, ink=ink)
        left = (x2 - 11 * u - 5 * v, y2 - 11 * v + 5 * u)
        right = (x2 - 11 * u + 5 * v, y2 - 11 * v - 5 * u)
        corners = " ".join(f"{a:.1f},{b:.1f}" for a, b in ((x2, y2), left, right))
        self.elements.append(f'<polygon points="{corners}" fill="{ink}"/>')

    def disc(self, x, y, radius, *, fill=INK, stroke="none"):
        self.elements.append(
            f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" fill="{fill}" stroke="{stroke}" '
            f'stroke-width="1.5"/>'
        )

    def svg(self) -> str:
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height}" '
            f'width="{WIDTH}" '
            f'height="{self.height}" font-family="{FONT}">'
        )
        ground = f'<rect width="{WIDTH}" height="{self.height}" fill="{WHITE}"/>'
        return "\n".join(
            [head, f"<title>{escape(self.title)}</title>", ground, *self.elements, "</svg>", ""]
        )


def write(picture: Callable[[], Sheet], script: str) -> None:
    """Lay the picture down beside its script, under the same name."""
    target = Path(script).with_suffix(".svg")
    target.write_text(picture().svg(), encoding="utf-8")
    print(f"{target.name}: {target.stat().st_size / 1024:.1f} kB")
