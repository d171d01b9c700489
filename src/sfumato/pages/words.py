"""Counts and labels in running text."""

from sfumato.domains import Label
from sfumato.foundation.formatting import format_count

__all__ = ["MAX_LABEL_LENGTH", "plural", "shorten_label"]

MAX_LABEL_LENGTH = 36
"""Characters of a label in a list or next to a bar."""


def plural(number: int, noun: str) -> str:
    """Return a count and its noun, with an ``s`` unless there is exactly one.

    >>> plural(1, "report"), plural(2000, "report")
    ('1 report', '2,000 reports')
    """
    ending = "" if number == 1 else "s"
    return f"{format_count(number)} {noun}{ending}"


def shorten_label(label: Label, length: int = MAX_LABEL_LENGTH) -> str:
    """Return a label on one line, cut in the middle if it is longer than ``length``.

    The end stays, because labels that begin alike often end differently.

    >>> shorten_label("University Hospital, north entrance", 20)
    'University Ho…trance'
    """
    text = " ".join(str(label).split())
    if len(text) <= length:
        return text
    tail = length // 3
    head = length - tail - 1
    return f"{text[:head].rstrip()}…{text[-tail:].lstrip()}"
