"""Numbers by label: tables with a column of labels and one of numbers, which lie beside a survey."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from sfumato.domains import Domain
from sfumato.errors import InvalidContext, InvalidTable
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.survey.toml.companion_files import read_columns

__all__ = ["label_of", "labelled_column", "labelled_numbers", "labelled_shares"]

_SHARES = ("share", "frequency", "count")


def label_of(cell: str, domain: Domain) -> str | int:
    """A cell as a label: the text, unless the domain has the number instead."""
    if not cell.removeprefix("-").isdecimal():
        return cell
    try:
        domain.label_symbols([cell], "labels")
    except InvalidContext:
        return int(cell)
    return cell


def labelled_numbers(
    table: Mapping[str, Sequence[str]], column: str, path: str, domain: Domain
) -> tuple[Symbols, Floats]:
    """The symbols that a table names, each once, and the number beside each."""
    symbols = domain.label_symbols([label_of(cell, domain) for cell in table["label"]], path)
    if np.unique(symbols).size != symbols.size:
        raise InvalidTable(f"{path} names a label twice. Each may stand there once.")
    try:
        return symbols, np.array(list(map(float, table[column])))
    except ValueError:
        raise InvalidTable(f"the column {column} of {path} must hold numbers only.") from None


def labelled_column(
    path: str, name: str, columns: Sequence[str], domain: Domain
) -> tuple[Symbols, Floats]:
    """The symbols that a CSV file names, and the number of each in the one of these columns that it has.

    ``name`` is what the file is called where it cannot be read.
    """
    table = read_columns(Path(path), name)
    found = [column for column in columns if column in table]
    if "label" not in table or len(found) != 1:
        raise InvalidTable(
            f"{path} must have a column label and one of the columns {', '.join(columns)}."
        )
    return labelled_numbers(table, found[0], path, domain)


def labelled_shares(path: str, name: str, domain: Domain) -> Floats:
    """The distribution of a CSV file, in domain order; labels that are not in it have no people."""
    shares = np.zeros(domain.size)
    symbols, numbers = labelled_column(path, name, _SHARES, domain)
    shares[symbols] = numbers
    return shares
