"""Untrusted text on a terminal: what would move the cursor, hide a line or reverse it is shown as an escape."""

import unicodedata

__all__ = ["printable", "printable_lines"]

_UNSAFE = (
    "C",
    "Zl",
    "Zp",
)  # controls, formats (bidirectional ones too), surrogates, unassigned; line and paragraph ends


def printable(text: str) -> str:
    r"""Return ``text`` on one line, with every control or format character escaped.

    >>> print(printable("Lunch\nCertified: \x1b[8mε = 0.1"))
    Lunch\nCertified: \x1b[8mε = 0.1
    """
    return "".join(
        _escaped(character) if _is_unsafe(character) else character for character in text
    )


def printable_lines(text: str) -> str:
    """Return ``text`` with every control or format character escaped, line ends kept."""
    return "\n".join(printable(line) for line in text.split("\n"))


def _is_unsafe(character: str) -> bool:
    return unicodedata.category(character).startswith(_UNSAFE)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
