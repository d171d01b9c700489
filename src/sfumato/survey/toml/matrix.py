"""A matrix in a CSV file: privacy or distances, with its labels in the first line, and in the first column if wanted.

    ,       park, clinic, bar
    park,   0,    1,      inf
    clinic, 0.5,  0,      0.5
    bar,    0.5,  0.5,    0

Numbers stay text, so that 0.1 is one tenth. An empty cell on the diagonal is 0. Whatever is wrong is named by its line
and column, both counted from 1 as editors and spreadsheets do.
"""

import csv
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sfumato.contexts import MAX_MATRIX_SIZE
from sfumato.domains import Domain
from sfumato.errors import InvalidContext, InvalidSurvey
from sfumato.randomness import exact_number
from sfumato.survey.toml.companion_files import open_text

__all__ = ["matrix_over", "read_matrix"]

_SHOWN = 40  # characters of a cell that a message repeats


@dataclass(frozen=True)
class _Line:
    """The cells of one line, without the white space around them."""

    number: int
    cells: list[str]


def read_matrix(path: Path, name: str) -> tuple[list[str], list[list[str]]]:
    """The labels of the first line, and the matrix below it; ``name`` says in messages what the file is."""
    return _below_labels(_lines(path, name), f"{name}: {path.name}")


def matrix_over(domain: Domain, path: Path, name: str) -> list[list[str]]:
    """The matrix of a file over a known domain: bare, or below a line of just the domain's labels, in order."""
    lines = _lines(path, name)
    place = f"{name}: {path.name}"
    if not _has_labels(lines, domain.size):
        return _numbers(lines, place)
    labels, rows = _below_labels(lines, place)
    wanted = [str(label) for label in domain.labels]
    if len(labels) != len(wanted):
        raise InvalidSurvey(
            f"{place} must name the {len(wanted)} labels of the domain; it names {len(labels)}."
        )
    for actual, label in zip(labels, wanted, strict=True):
        if actual != label:
            raise InvalidSurvey(
                f"{place} must name the labels of the domain, in their order: {_quote_cell(label)} where it names "
                f"{_quote_cell(actual)}."
            )
    return rows


def _has_labels(lines: Sequence[_Line], size: int) -> bool:
    """The number of lines decides, since labels may be numbers, too; where neither fits, whatever is no number."""
    if len(lines) in (size, size + 1):
        return len(lines) == size + 1
    return not all(_is_number(cell, zero=False) for cell in lines[0].cells)


def _lines(path: Path, name: str) -> list[_Line]:
    place = f"{name}: {path.name}"
    with open_text(path, name) as text:
        reader = csv.reader(text, strict=True, skipinitialspace=True)
        try:
            lines = [
                _Line(reader.line_num, [_tidy(cell) for cell in cells]) for cells in reader if cells
            ]
        except csv.Error as problem:
            raise InvalidSurvey(f"{place} is not CSV: {problem}.") from None
    if not lines:
        raise InvalidSurvey(
            f"{place} is empty. It must hold a line of labels, and below it a square of numbers."
        )
    if len(lines[0].cells) == 1 and any(mark in lines[0].cells[0] for mark in ";\t"):
        raise InvalidSurvey(
            f"{place} has no commas. Use commas between cells, and points in decimals."
        )
    if len(lines) > MAX_MATRIX_SIZE + 1:
        raise InvalidSurvey(
            f"{place} has {len(lines):,} lines; a matrix is written out up to {MAX_MATRIX_SIZE} symbols."
        )
    return lines


def _tidy(cell: str) -> str:
    return unicodedata.normalize("NFC", cell.strip())


def _below_labels(lines: Sequence[_Line], place: str) -> tuple[list[str], list[list[str]]]:
    """Labels and numbers; there is a label before each line of numbers if there are as many columns as lines."""
    head, *body = lines
    named = len(lines) == len(head.cells)
    labels = head.cells[1:] if named else head.cells
    if len(labels) != len(body):
        raise InvalidSurvey(
            f"{place} must hold a square matrix below a line of labels; it has {len(labels)} labels and {len(body)} "
            "lines below them."
        )
    _check_labels(labels, f"{place}, line {head.number}")
    if named and all(_is_number(cell, zero=False) for cell in head.cells):
        # A symmetric matrix without labels looks like a smaller one with them.
        raise InvalidSurvey(
            f"{place}, line {head.number}, must hold labels; it holds numbers only. Name the symbols there; if the "
            "numbers are their names, leave the first cell empty."
        )
    if named:
        _check_names(body, labels, place)
        body = [_Line(line.number, line.cells[1:]) for line in body]
    return labels, _numbers(body, place, before=int(named))


def _check_labels(labels: Sequence[str], line: str) -> None:
    if "" in labels:
        raise InvalidSurvey(f"{line}: label {labels.index('') + 1} is empty. Name it.")
    if len(set(labels)) < len(labels):
        twice = next(label for x, label in enumerate(labels) if label in labels[:x])
        raise InvalidSurvey(
            f"{line}: labels must be distinct; {_quote_cell(twice)} occurs twice. Remove or rename one."
        )


def _check_names(body: Sequence[_Line], labels: Sequence[str], place: str) -> None:
    for line, label in zip(body, labels, strict=True):
        if line.cells[0] != label:
            raise InvalidSurvey(
                f"{place}, line {line.number}, begins with {_quote_cell(line.cells[0])} where the first line has "
                f"{_quote_cell(label)}. The first line holds the labels; a first column of labels repeats them in order."
            )


def _numbers(lines: Sequence[_Line], place: str, before: int = 0) -> list[list[str]]:
    """The cells of a square of numbers; ``before`` columns stand to its left."""
    size = len(lines)
    for line in lines:
        if len(line.cells) != size:
            raise InvalidSurvey(
                f"{place} must hold a square matrix; it has {size} lines of numbers, so that line {line.number} should "
                f"have {before + size} columns; found {before + len(line.cells)}."
            )
    rows = [
        ["0" if x == x2 and not cell else cell for x2, cell in enumerate(line.cells)]
        for x, line in enumerate(lines)
    ]
    for x, row in enumerate(rows):
        for x2, cell in enumerate(row):
            if not _is_number(cell, zero=x == x2):
                raise _wrong_number(
                    cell, f"{place}, line {lines[x].number}, column {before + x2 + 1}", zero=x == x2
                )
    return rows


def _is_number(cell: str, *, zero: bool) -> bool:
    try:
        return exact_number(cell, "a cell") == 0 or not zero
    except InvalidContext:
        return False


def _wrong_number(cell: str, place: str, *, zero: bool) -> InvalidSurvey:
    wanted = "0, since it lies on the diagonal" if zero else "a number of at least 0, or inf"
    hint = (
        " Use commas between cells, and points in decimals."
        if any(mark in cell for mark in ";,\t")
        else ""
    )
    return InvalidSurvey(f"{place}, must be {wanted}; found {_quote_cell(cell)}.{hint}")


def _quote_cell(cell: str) -> str:
    if not cell:
        return "nothing"
    return repr(cell if len(cell) <= _SHOWN else f"{cell[:_SHOWN]}…")
