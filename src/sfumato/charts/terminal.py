"""Pictures of characters, for terminals."""

import itertools
from collections.abc import Sequence

__all__ = ["DotCanvas", "shade"]

_FIRST_BRAILLE = 0x2800
# The bits of the eight dots of a Braille character, by row and column.
_DOT_BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_SHADES = " ░▒▓█"


def shade(share: float) -> str:
    """Return a character that is the darker, the larger ``share`` is, from 0 to 1."""
    index = round(min(max(share, 0.0), 1.0) * (len(_SHADES) - 1))
    return _SHADES[index]


class DotCanvas:
    """A canvas of Braille characters, with two by four dots in each."""

    def __init__(self, width: int, height: int) -> None:
        self._width = max(width, 1)
        self._height = max(height, 1)
        self._bits = [[0] * self._width for _ in range(self._height)]

    def add_line(self, points: Sequence[tuple[float, float]]) -> None:
        """Draw a line through points whose coordinates are from 0 to 1."""
        for start, end in itertools.pairwise(points):
            self._add_segment(start, end)

    def add_dots(self, points: Sequence[tuple[float, float]]) -> None:
        """Draw a dot at each point."""
        for point in points:
            self._add_segment(point, point)

    def _add_segment(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        columns = 2 * self._width - 1
        rows = 4 * self._height - 1
        longest = max(abs(end[0] - start[0]) * columns, abs(end[1] - start[1]) * rows)
        steps = max(round(longest), 1)
        for step in range(steps + 1):
            share = step / steps
            x = start[0] + share * (end[0] - start[0])
            y = start[1] + share * (end[1] - start[1])
            self._set_dot(round(x * columns), round((1 - y) * rows))

    def _set_dot(self, column: int, row: int) -> None:
        self._bits[row // 4][column // 2] |= _DOT_BITS[row % 4][column % 2]

    def lines(self) -> list[str]:
        """Return the canvas as lines of text."""
        return ["".join(chr(_FIRST_BRAILLE + bits) for bits in row) for row in self._bits]
