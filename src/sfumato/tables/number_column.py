"""A column of numbers, from cells that are text."""

from collections.abc import Callable, Sequence

from sfumato.errors import InvalidTable
from sfumato.foundation.arrays import Arrow
from sfumato.tables.cell_values import first_mismatch, parse_texts, type_noun

__all__ = ["parse_numbers"]


def parse_numbers(
    name: str,
    column: str,
    type_: Arrow,
    texts: Sequence[str | None],
    place_of: Callable[[int], str],
) -> Arrow:
    """Return texts as an Arrow array of a numeric type, or raise an error with the first place.

    ``name`` is the table's name. ``place_of`` says where the text with a given index is, such as
    "row 17".
    """
    numbers = parse_texts(texts, type_)
    if numbers is None:
        place = place_of(first_mismatch(texts, type_))
        raise InvalidTable(f"{name}, {place}: column {column!r} must contain {type_noun(type_)}.")
    return numbers
