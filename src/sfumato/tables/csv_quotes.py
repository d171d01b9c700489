"""Whether the quotation marks of a CSV file can be trusted, checked block by block.

A quotation mark at the start of a cell hides delimiters and line breaks up to the next one. If it
was not meant as a quotation mark, it hides other people's rows, and the file may still look right:
its rows have the right number of cells. Well-formed CSV doubles every quotation mark inside quoted
text, so the mark that closes it is followed by a delimiter or a line break. Anything else after it
shows that one of the two marks belongs to the text.
"""

import re

import numpy as np
from numpy.typing import NDArray

__all__ = ["QUOTED_REST", "QuoteScanner"]

# The rest of a quoted part, with its closing mark. A doubled mark does not close it.
QUOTED_REST = re.compile(rb'(?:[^"]++|"")*+"')

_QUOTE = ord('"')


class QuoteScanner:
    r"""Follows the quotation marks of a CSV file. Add all of its blocks, then ``finish``.

    ``has_stray_quote``: quoted text was closed in the middle of a cell. ``has_open_quote``: quoted
    text was never closed.

    >>> scanner = QuoteScanner(",")
    >>> scanner.add(b'1,"tall,park\n2,"short,bar\n')
    >>> scanner.finish()
    >>> scanner.has_stray_quote
    True
    """

    def __init__(self, delimiter: str) -> None:
        edges = delimiter.encode("ascii") + b"\r\n"
        self._edges = edges
        self._opening = re.compile(b"[" + re.escape(edges) + b']"')
        self._is_neighbour = np.zeros(256, dtype=bool)
        self._is_neighbour[list(edges + b'"')] = True
        self._last_byte = b"\n"
        self._last_quotes = b""
        self.has_stray_quote = False
        self.has_open_quote = False

    def add(self, block: bytes) -> None:
        """Read the next bytes after the header."""
        if not self._last_quotes and b'"' not in block:
            self._last_byte = block[-1:] or self._last_byte
            return
        # What the quotation marks at the end mean depends on the next block.
        text = self._last_byte + self._last_quotes + block
        inner_text = text.rstrip(b'"')
        self._last_quotes = text[len(inner_text) :]
        self._last_byte = inner_text[-1:]
        if not self.has_stray_quote and not self._add_regular(inner_text):
            self._add_irregular(inner_text)

    def finish(self) -> None:
        """Read the end of the file."""
        self.add(b"\n")

    def _add_regular(self, text: bytes) -> bool:
        """Follow text in which every quotation mark quotes. Return whether the text is like that.

        Then, opening and closing marks alternate. Each pair of marks inside quoted text counts as a
        closing and an opening one. The first byte of the text belongs to the previous block.
        """
        data = np.frombuffer(text, dtype=np.uint8)
        positions = np.flatnonzero(data == _QUOTE)
        first_opening = int(self.has_open_quote)
        opening = positions[first_opening::2]
        closing = positions[1 - first_opening :: 2]
        if not (
            self._are_neighbours(data[opening - 1]) and self._are_neighbours(data[closing + 1])
        ):
            return False
        self.has_open_quote ^= positions.size % 2 == 1
        return True

    def _are_neighbours(self, data: NDArray[np.uint8]) -> bool:
        """Whether all bytes may be next to a quotation mark, outside the quoted text."""
        return bool(self._is_neighbour[data].all())

    def _add_irregular(self, text: bytes) -> None:
        """Follow any text, mark by mark. A mark inside an unquoted cell is text, as in 5" pipe."""
        position = 1
        while True:
            if not self.has_open_quote:
                match = self._opening.search(text, position - 1)
            else:
                match = QUOTED_REST.match(text, position)
            if match is None:
                return
            position = match.end()
            self.has_open_quote = not self.has_open_quote
            if not self.has_open_quote and text[position] not in self._edges:
                self.has_stray_quote = True
                return
