"""Options that several commands share, checks for their values, and functions to read CSV files."""

import csv
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.errors import InvalidArgument, InvalidContext, InvalidSetting, InvalidTable
from sfumato.foundation.decoder_table import DECODER_TABLE

if TYPE_CHECKING:
    from sfumato.domains import Domain
    from sfumato.foundation.arrays import Floats

_MIN_PARALLEL_BYTES = 2**27  # for less data, starting processes takes longer than reading

_SHARE_COLUMNS = ("share", "frequency", "count")

SurveyFile = Annotated[
    str, typer.Argument(metavar="SURVEY", help="Survey file: TOML, or resolved (JSON).")
]
Runs = Annotated[int, typer.Option(min=1, help="How many times to randomize the data.")]
Seed = Annotated[int, typer.Option(min=0, help="The same seed gives the same results.")]
Workers = Annotated[
    int,
    typer.Option(
        min=0,
        help="Number of reader processes. 0: one per core for 128 MiB or more of data, else one.",
    ),
]
Decoder = Annotated[
    str,
    typer.Option(
        metavar="|".join(DECODER_TABLE),
        autocompletion=lambda: list(DECODER_TABLE),
        help=(
            "How to decode the distribution. "
            + "; ".join(f"{name}: {entry.help}" for name, entry in DECODER_TABLE.items())
            + "."
        ),
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def check_output_paths(*paths: str | None, inputs: Sequence[str] = ()) -> None:
    """Reject outputs that cannot be written, or that are also inputs, before any work is done.

    Otherwise, a command could fail after it has written some of its outputs. Paths that are
    ``None`` are ignored.
    """
    outputs = [path for path in paths if path is not None]
    output_identities = [_file_identity(path) for path in outputs]
    input_identities = {_file_identity(path) for path in inputs}
    has_duplicates = len(set(output_identities)) < len(output_identities)
    if has_duplicates or input_identities.intersection(output_identities):
        raise InvalidSetting(
            "an output must not be the same file as an input or another output. Choose a "
            "different name."
        )
    for path in outputs:
        if path in ("", "-"):
            raise InvalidSetting(
                "this output must be a file; only tables can be written to standard output."
            )
        if Path(path).is_dir():
            raise InvalidSetting(f"the output {path} is a folder. Choose a file in it.")
        folder = Path(path).parent
        if not folder.is_dir():
            raise InvalidSetting(
                f"cannot write {path}: there is no folder {folder}. Create it first."
            )
        if not os.access(folder, os.W_OK):
            raise InvalidSetting(f"cannot write {path}: the folder {folder} is not writable.")


def write_outputs(*outputs: tuple[str | None, Callable[[], bytes]]) -> None:
    """Write a file for each path that is not ``None``; compute all contents before writing any."""
    from sfumato.foundation.files import write_atomically

    contents = [(path, compute()) for path, compute in outputs if path is not None]
    for path, content in contents:
        write_atomically(path, content)


def require_distinct_files(files: Sequence[str]) -> None:
    """Reject a file that is listed twice, because its rows would be counted twice."""
    seen = set()
    for path in files:
        identity = _file_identity(path)
        if identity in seen:
            raise InvalidArgument(
                f"{path} is listed twice, and would be counted twice. List each file once."
            )
        seen.add(identity)


def _file_identity(path: str) -> object:
    """Return an identifier for the file at ``path``; all links to a file have the same one."""
    if path == "-":
        return path
    try:
        status = Path(path).stat()
    except OSError:
        return Path(path).resolve()
    return status.st_dev, status.st_ino


def choose_worker_count(workers: int, files: Sequence[str]) -> int:
    """Return how many workers to start.

    ``workers`` is the value of the --workers option. 0 means one worker per core if the files are
    large, otherwise one worker.
    """
    from sfumato.foundation.parallel import available_cores

    if workers:
        return workers
    size = sum(Path(path).stat().st_size for path in files if Path(path).is_file())
    return available_cores() if size >= _MIN_PARALLEL_BYTES else 1


# --- labels, and CSV files with a number for each label: priors, weights and covariates -----------


def split_labels(text: str) -> list[str]:
    """Split text at commas. As in CSV, a label in quotes may contain commas."""
    return next(csv.reader([text], skipinitialspace=True), [])


def parse_label(text: str, domain: "Domain") -> str | int:
    """Return the label that ``text`` stands for.

    This is the text itself if the domain contains it or if it is not an integer; otherwise, it is
    the integer.
    """
    if not text.removeprefix("-").isdecimal():
        return text
    try:
        domain.label_symbols([text], "labels")
    except InvalidContext:
        return int(text)
    return text


def read_shares(path: str, name: str, domain: "Domain") -> "Floats":
    """Read the share, frequency or count of each label, in domain order, or 0 if it is missing.

    ``name`` identifies the file in error messages.
    """
    import numpy as np

    shares = np.zeros(domain.size)
    for symbol, share in _read_numbers(path, name, domain, _SHARE_COLUMNS).items():
        shares[symbol] = share
    return shares


def read_values(
    path: str, name: str, domain: "Domain", columns: Sequence[str] | None = None
) -> "Floats":
    """Read one finite number for every label, in domain order.

    The file must have exactly one of ``columns``. If ``columns`` is ``None``, it must have exactly
    one column besides ``label``. ``name`` identifies the file in error messages.
    """
    import numpy as np

    numbers = _read_numbers(path, name, domain, columns)
    if not all(map(math.isfinite, numbers.values())):
        raise InvalidTable(f"the {name} in {path} must be finite numbers.")
    missing_count = domain.size - len(numbers)
    if missing_count:
        first_missing = next(symbol for symbol in range(domain.size) if symbol not in numbers)
        raise InvalidTable(
            f"{path} must have a number for each of the {domain.size} labels; {missing_count} are "
            f"missing, starting with {domain.labels[first_missing]!r}."
        )
    return np.array([numbers[symbol] for symbol in range(domain.size)])


def _read_numbers(
    path: str, name: str, domain: "Domain", columns: Sequence[str] | None
) -> dict[int, float]:
    """Return the numbers in the file, keyed by the symbols of their labels."""
    from sfumato.survey.toml.companion_files import read_columns

    table = read_columns(Path(path), name)
    number_columns = [
        column for column in columns or table if column in table and column != "label"
    ]
    if "label" not in table or len(number_columns) != 1:
        expected_column = (
            f"exactly one of the columns {', '.join(columns)}"
            if columns
            else "exactly one other column"
        )
        raise InvalidTable(f"{path} must have a label column and {expected_column}.")
    labels = [parse_label(text, domain) for text in table["label"]]
    symbols = domain.label_symbols(labels, path).tolist()
    if len(set(symbols)) < len(symbols):
        raise InvalidTable(f"{path} lists a label twice. List each label once.")
    column = number_columns[0]
    try:
        return dict(zip(symbols, map(float, table[column]), strict=True))
    except ValueError:
        raise InvalidTable(f"column {column!r} of {path} must contain numbers only.") from None
