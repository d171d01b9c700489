"""CSV files with a column of labels and a column of numbers: priors, weights and covariates."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sfumato.domains import Domain
from sfumato.errors import InvalidContext, InvalidTable
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.survey.toml.companion_files import read_columns

__all__ = ["parse_label", "read_shares", "read_values"]

_SHARES = ("share", "frequency", "count")


def parse_label(text: str, domain: Domain) -> str | int:
    """Return ``text`` as a label: as it is, unless the domain has the number instead."""
    if not text.removeprefix("-").isdecimal():
        return text
    try:
        domain.label_symbols([text], "labels")
    except InvalidContext:
        return int(text)
    return text


def read_shares(path: str, name: str, domain: Domain) -> Floats:
    """Read a distribution, in domain order; labels that are not in the file have share 0.

    ``name`` is what messages call the file.
    """
    symbols, numbers = _read_numbers(path, name, domain, _SHARES)
    shares = np.zeros(domain.size)
    shares[symbols] = numbers
    return shares


def read_values(
    path: str, name: str, domain: Domain, columns: Sequence[str] | None = None
) -> Floats:
    """Read one finite number for every label, in domain order.

    The numbers are in one of ``columns``, or else in the only column besides ``label``.
    """
    symbols, numbers = _read_numbers(path, name, domain, columns)
    if not np.isfinite(numbers).all():
        raise InvalidTable(f"the {name} in {path} must be finite numbers only.")
    if symbols.size < domain.size:
        missing = np.setdiff1d(np.arange(domain.size), symbols)
        raise InvalidTable(
            f"{path} must have a number for each of the {domain.size} labels; {missing.size} are "
            f"missing, the first is {domain.labels[int(missing[0])]!r}."
        )
    return numbers[np.argsort(symbols)]


def _read_numbers(
    path: str, name: str, domain: Domain, columns: Sequence[str] | None
) -> tuple[Symbols, Floats]:
    """Read the symbols that a file names, each once, and the number of each."""
    table = read_columns(Path(path), name)
    present = [column for column in columns or table if column in table and column != "label"]
    if "label" not in table or len(present) != 1:
        choice = (
            "one other column" if columns is None else f"one of the columns {', '.join(columns)}"
        )
        raise InvalidTable(f"{path} must have a column label and {choice}.")
    labels = [parse_label(text, domain) for text in table["label"]]
    symbols = domain.label_symbols(labels, path)
    if np.unique(symbols).size != symbols.size:
        raise InvalidTable(f"{path} lists a label twice. List each label once.")
    column = present[0]
    try:
        return symbols, np.array([float(text) for text in table[column]])
    except ValueError:
        raise InvalidTable(f"column {column!r} of {path} must contain numbers only.") from None
