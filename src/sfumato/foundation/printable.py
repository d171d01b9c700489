"""Escape untrusted text for a terminal: nothing may move the cursor, hide or reverse a line."""

import unicodedata

__all__ = ["printable", "printable_lines"]

# Unicode categories: controls, formats (bidirectional ones too), surrogates and unassigned
# characters; line and paragraph separators.
_UNSAFE = ("C", "Zl", "Zp")


def printable(text: str) -> str:
    r"""Return ``text`` on one line, with every control or format character escaped.

    >>> print(printable("Lunch\nCertified: \x1b[8mε = 0.1"))
    Lunch\nCertified: \x1b[8mε = 0.1
    """
    return "".join(map(_escape, text))


def printable_lines(text: str) -> str:
    """Return ``text`` with every control or format character escaped, except line ends."""
    return "\n".join(printable(line) for line in text.split("\n"))


def _escape(character: str) -> str:
    if unicodedata.category(character).startswith(_UNSAFE):
        return character.encode("unicode_escape").decode("ascii")
    return character
