"""Pieces of tables: what one worker reads at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sfumato.errors import InvalidTable
from sfumato.tables.read import opened_table

__all__ = ["Piece", "flows", "numbered", "pieces_of"]

_PIECE_ROWS = 2**22  # enough to be worth the way to another process, few enough to share out


@dataclass(frozen=True)
class Piece:
    """A file, or some row groups of a Parquet file.

    ``first_row`` is the piece's first row in its file, ``rows`` how many there are: ``None`` for a CSV file, which
    nobody has read yet.
    """

    path: str
    row_groups: range | None = None
    first_row: int = 0
    rows: int | None = None


def flows(path: str) -> bool:
    """Whether a path names no file that anybody may open at any time: standard input, a pipe, a descriptor."""
    return path == "-" or path.startswith(("/dev/", "/proc/")) or not Path(path).is_file()


def pieces_of(path: str) -> list[Piece]:
    """A Parquet file by its row groups, some four million rows together; any other file, and a pipe, whole."""
    if flows(path):  # it can be opened once; and what is missing is refused when it is read
        return [Piece(path)]
    with opened_table(path) as table:
        groups = table.row_groups
    if groups is None:
        return [Piece(path)]
    pieces, first, first_row, rows = [], 0, 0, 0
    for number, size in enumerate(groups):
        rows += size
        if rows and (rows >= _PIECE_ROWS or number == len(groups) - 1):
            pieces.append(Piece(path, range(first, number + 1), first_row, rows))
            first, first_row, rows = number + 1, first_row + rows, 0
    return pieces or [Piece(path)]


def numbered(pieces: Sequence[Piece], column: str) -> list[int]:
    """The number of each piece's first row in the whole input; files that do not say how long they are, are counted."""
    firsts, total = [], 0
    for piece in pieces:
        firsts.append(total)
        if piece is not pieces[-1]:
            total += _rows(piece, column) if piece.rows is None else piece.rows
    return firsts


def _rows(piece: Piece, column: str) -> int:
    if flows(piece.path):
        raise InvalidTable(
            "of several inputs a pipe must be the last, for rows after it could not be numbered."
        )
    with opened_table(piece.path) as table:
        return sum(batch.num_rows for batch in table.batches({column: None}))
