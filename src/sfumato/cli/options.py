"""Options that several commands share, spelt and explained once."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from sfumato.errors import InvalidTable

__all__ = [
    "DECODERS",
    "AnswersFile",
    "AnswersFiles",
    "Column",
    "Decoder",
    "Json",
    "Latitude",
    "Longitude",
    "SurveyFile",
    "Workers",
    "check_outputs",
    "demand_distinct",
    "worker_count",
]

_WORTH_WORKERS = 2**27  # bytes: they take most of a second to start

DECODERS = ("auto", "projection", "likelihood", "empirical-bayes", "spatial-bayes", "unbiased")
"""Their names, written out so that --help loads no NumPy."""

SurveyFile = Annotated[
    str, typer.Argument(metavar="SURVEY", help="The survey: a TOML file, or a resolved one (JSON).")
]
AnswersFile = Annotated[
    str, typer.Argument(metavar="ANSWERS", help="CSV (gzip too) or Parquet; - for a pipe.")
]
AnswersFiles = Annotated[
    list[str], typer.Argument(metavar="ANSWERS…", help="CSV (gzip too) or Parquet; - for a pipe.")
]
Workers = Annotated[
    int,
    typer.Option(
        min=0,
        help="How many processes read row groups and files at a time; 0: one per core from 128 MB on, else one.",
    ),
]
Column = Annotated[str | None, typer.Option(help="The column that holds the answers.")]
Latitude = Annotated[
    str | None, typer.Option(help="The column of latitudes, for grids and H3 cells.")
]
Longitude = Annotated[str | None, typer.Option(help="The column of longitudes.")]
Decoder = Annotated[
    str,
    typer.Option(
        metavar="|".join(DECODERS),
        help=(
            "How the picture is decoded. auto: by empirical Bayes, as far as the reports themselves speak for it; "
            "projection: the nearest distribution to the unbiased estimate; likelihood: the most likely distribution; "
            "empirical-bayes: shrunk as far as the crowd says; spatial-bayes: the same, with a cell's neighbours; "
            "unbiased: as it is, right on average and perhaps negative."
        ),
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for machines.")]


def check_outputs(*paths: str | None, inputs: Sequence[str] = ()) -> None:
    """Refuse outputs that cannot be written before anything else is done, so that there are all of them or none."""
    named = [_identity(path) for path in paths if path not in (None, "-")]
    if len(set(named)) < len(named) or set(named) & {
        _identity(path) for path in inputs if path != "-"
    }:
        raise InvalidTable(
            "an output must not be an input, or another output. Choose another name."
        )
    for path in paths:
        if path is None:
            continue
        folder = Path(path).parent
        if path in ("", "-"):
            raise InvalidTable("this output must be a file; only tables go to a pipe.")
        if Path(path).is_dir():
            raise InvalidTable(f"the output {path} is a folder. Name a file in it.")
        if not folder.is_dir():
            raise InvalidTable(
                f"the output {path} cannot be written: there is no folder {folder}. Make it first."
            )
        if not os.access(folder, os.W_OK):
            raise InvalidTable(
                f"the output {path} cannot be written: the folder {folder} is read-only."
            )


def demand_distinct(files: Sequence[str]) -> None:
    """Refuse a file that is named twice: its rows would be counted twice."""
    if len(set(map(_identity, files))) < len(files):
        raise InvalidTable("a file is named twice, and would be counted twice. Name each once.")


def _identity(path: str) -> object:
    """What a path stands for, whatever it is called: links of both kinds lead to the same file."""
    if path == "-":
        return path
    try:
        found = Path(path).stat()
    except OSError:
        return Path(path).resolve()
    return found.st_dev, found.st_ino


def worker_count(workers: int, files: Sequence[str]) -> int:
    """How many workers an option asks for; by itself one per core, where there is enough to read to pay for them."""
    from sfumato.foundation.parallel import available_cores

    if workers:
        return workers
    size = sum(path.stat().st_size for path in map(Path, files) if path.is_file())
    return available_cores() if size >= _WORTH_WORKERS else 1
