"""Files that lie beside a survey file: labels, places, matrices. CSV, gzip or not, byte-order mark or not."""

import csv
import gzip
import io
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from sfumato.errors import InvalidSurvey
from sfumato.foundation.printable import printable

__all__ = ["column_of", "opened", "read_columns"]

_LARGEST_FILE = 2**28


def column_of(table: Mapping[str, Sequence[str]], column: str, name: str) -> Sequence[str]:
    """One column of the labels file; ``name`` is the field that asks for it."""
    if column not in table:
        found = f"found {sorted(table)}" if table else "the domain is not read from a file"
        raise InvalidSurvey(f"{name}: there is no column {column!r} in domain.file; {found}.")
    return table[column]


def read_columns(path: Path, name: str) -> dict[str, list[str]]:
    """The columns of a CSV file with a header; ``name`` is the field that names the file."""
    with opened(path, name) as lines:
        reader = csv.DictReader(lines, strict=True)
        try:
            rows = list(reader)
        except csv.Error as problem:
            raise InvalidSurvey(f"{name}: {path.name} is not CSV: {problem}.") from None
        header = reader.fieldnames or []
    ragged = next((i for i, row in enumerate(rows) if None in row or None in row.values()), None)
    if not rows or len(set(header)) != len(header) or ragged is not None:
        where = f"; line {ragged + 2} has another number of columns" if ragged is not None else ""
        raise InvalidSurvey(
            f"{name}: {path.name} must have a header of distinct names and at least one row{where}."
        )
    return {column: [row[column] for row in rows] for column in header}


class opened:  # noqa: N801 - reads as a verb where it is used
    """A text file beside the survey, gzip or not, byte-order mark or not."""

    def __init__(self, path: Path, name: str) -> None:
        self._path, self._name = path, name

    def __enter__(self) -> Iterator[str]:
        try:
            raw = self._bytes()
        except OSError as problem:
            reason = problem.strerror or "it is damaged"
            raise InvalidSurvey(
                f"{self._name}: {printable(self._path.name)} cannot be read: {reason}."
            ) from None
        except (EOFError, ValueError, zlib.error):
            shown = printable(self._path.name)
            raise InvalidSurvey(f"{self._name}: {shown} cannot be read: it is damaged.") from None
        if len(raw) > _LARGEST_FILE:
            raise InvalidSurvey(
                f"{self._name}: {printable(self._path.name)} holds more than 256 MiB. Use a smaller file."
            )
        try:
            return io.StringIO(raw.decode("utf-8-sig"), newline="")
        except UnicodeDecodeError:
            raise InvalidSurvey(f"{self._name}: {self._path.name} must be text in UTF-8.") from None

    def _bytes(self) -> bytes:
        """What stands in the file, up to a little more than the limit: gzip may hold a thousand times its size."""
        with gzip.open(self._path) if self._path.suffix == ".gz" else self._path.open("rb") as file:
            return file.read(_LARGEST_FILE + 1)

    def __exit__(self, *_: object) -> None:
        return None
