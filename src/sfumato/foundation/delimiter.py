"""The character between the cells of a CSV file."""

from sfumato.errors import InvalidArgument

_TAB_NAMES = ("tab", "\\t")


def parse_delimiter(text: str | None, name: str = "--delimiter") -> str:
    r"""Return the delimiter: a comma by default, and a tab for ``tab`` or ``\t``.

    ``name`` is the option or field that contains ``text``, for the error message.

    >>> parse_delimiter("tab"), parse_delimiter(";"), parse_delimiter(None)
    ('\t', ';', ',')
    """
    if text is None:
        return ","
    if text in _TAB_NAMES:
        return "\t"
    if len(text) != 1 or not text.isascii() or text in '\0\n\r"':
        raise InvalidArgument(
            f"{name} must be a single ASCII character such as ';' or '|', or 'tab'; "
            f"got {text!r}. It cannot be a quotation mark or a line break."
        )
    return text
