"""Numbers by label: tables with a column of labels and one of numbers, which lie beside a survey."""

from collections.abc import Mapping, Sequence

import numpy as np

from sfumato.arrays import Floats, Symbols
from sfumato.domains import Domain
from sfumato.errors import InvalidContext, InvalidTable

__all__ = ["label_of", "labelled_numbers"]


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
