"""`sfumato paper`: the figures and the table of the paper, measured anew, beside the best that is known here."""

import json
import os
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.console import say, warn
from sfumato.cli.options import Json

if TYPE_CHECKING:
    from rich.table import Table

    from sfumato.paper.experiment import Asked, Outcome
    from sfumato.paper.page import NotRun

__all__ = ["app"]

PAGE = "paper.html"
_WIDE = 200  # columns for tables that nobody sees on a terminal

Folder = Annotated[
    str, typer.Option("--output", "-o", metavar="FOLDER", help="Where files go; made if missing.")
]
Runs = Annotated[
    int | None, typer.Option(min=1, help="How often to repeat; as often as is due unless given.")
]
Seed = Annotated[int, typer.Option(min=0, help="The same seed gives the same figures.")]
Quick = Annotated[bool, typer.Option("--quick", help="Fewer and smaller runs, for a first look.")]
Grid = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="People per cell of the map: a table with columns row, column, count."
    ),
]
Checkins = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="The paper's own data: SNAP's loc-gowalla_totalCheckins.txt.gz."
    ),
]

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def paper() -> None:
    """Measure the paper's figures anew, each beside the best that is known here. Seeded, so NOT PRIVATE.

    Every command writes a picture (PNG, PDF) and its figures (CSV, JSON) into a folder, and prints a table.

    Examples:
      sfumato paper all --quick

      sfumato paper synthetic --runs 10 --seed 1 -o figures

    """


@app.command("error-region")
def error_region(
    output: Folder = "paper",
    epsilon: Annotated[
        float | None, typer.Option(help="What x owes to x2, instead of the paper's two cases.")
    ] = None,
    epsilon_back: Annotated[
        float | None, typer.Option(help="What x2 owes to x; the same unless given.")
    ] = None,
    runs: Runs = None,
    seed: Seed = 0,
    quick: Quick = False,
    as_json: Json = False,
) -> None:
    """Figure 1: the errors that an observer must make.

    What the promise allows, and what mechanisms leave of it; exactly, and counted on reports.

    Example: sfumato paper error-region --epsilon 1 --epsilon-back 2
    """
    wish = _Wish(output, runs, seed, quick, as_json)
    _one(wish, "error-region", lambda asked: _error_region(asked, epsilon, epsilon_back))


@app.command("synthetic")
def synthetic(
    output: Folder = "paper",
    runs: Runs = None,
    seed: Seed = 0,
    quick: Quick = False,
    as_json: Json = False,
) -> None:
    """The error on synthetic data, by people and blocks.

    Example: sfumato paper synthetic --quick
    """
    _one(_Wish(output, runs, seed, quick, as_json), "synthetic", _synthetic)


@app.command("gowalla")
def gowalla(
    output: Folder = "paper",
    grid: Grid = None,
    checkins: Checkins = None,
    runs: Runs = None,
    seed: Seed = 0,
    quick: Quick = False,
    as_json: Json = False,
) -> None:
    """The map of check-ins, classical and by blocks.

    Without a file, the people are made up: as many as live in each place.

    Examples:
      sfumato paper gowalla --quick

      sfumato paper gowalla --checkins loc-gowalla_totalCheckins.txt.gz

    """
    _one(
        _Wish(output, runs, seed, quick, as_json),
        "gowalla",
        lambda asked: _gowalla(asked, grid, checkins),
    )


@app.command("high-low")
def high_low(
    output: Folder = "paper",
    runs: Runs = None,
    seed: Seed = 0,
    quick: Quick = False,
    as_json: Json = False,
) -> None:
    """Few sensitive symbols among many, by four schemes.

    Example: sfumato paper high-low --quick
    """
    _one(_Wish(output, runs, seed, quick, as_json), "high-low", _high_low)


@app.command("partitions")
def partitions(
    output: Folder = "paper",
    grid: Grid = None,
    checkins: Checkins = None,
    runs: Runs = None,
    seed: Seed = 0,
    quick: Quick = False,
    as_json: Json = False,
) -> None:
    """The map of check-ins, cut into blocks in other ways.

    Example: sfumato paper partitions --quick
    """
    _one(
        _Wish(output, runs, seed, quick, as_json),
        "partitions",
        lambda asked: _partitions(asked, grid, checkins),
    )


@app.command("domains")
def domains(
    output: Folder = "paper",
    runs: Runs = None,
    seed: Seed = 0,
    quick: Quick = False,
    as_json: Json = False,
) -> None:
    """Other real data: flights, first names, towns, words.

    Example: sfumato paper domains --quick
    """
    _one(_Wish(output, runs, seed, quick, as_json), "domains", _domains)


@app.command("bounds")
def bounds(
    output: Folder = "paper",
    runs: Runs = None,
    seed: Seed = 0,
    quick: Quick = False,
    as_json: Json = False,
) -> None:
    """What is measured, beside what the paper proves.

    Example: sfumato paper bounds --quick
    """
    _one(_Wish(output, runs, seed, quick, as_json), "bounds", _bounds)


@app.command("all")
def every(
    output: Folder = "paper",
    grid: Grid = None,
    checkins: Checkins = None,
    runs: Runs = None,
    seed: Seed = 0,
    quick: Quick = False,
    as_json: Json = False,
) -> None:
    """Every experiment, and one page with them: paper.html.

    What lacks a package is named, with the command that installs it, and left out.

    Examples:
      sfumato paper all --quick

      sfumato paper all -o figures --checkins loc-gowalla_totalCheckins.txt.gz

    """
    _all(_Wish(output, runs, seed, quick, as_json), grid, checkins)


# --- the experiments, loaded when they are run ------------------------------------------------------------------------


def _error_region(
    asked: "Asked", epsilon: float | None = None, epsilon_back: float | None = None
) -> "Outcome":
    from sfumato.paper.error_region import error_region as experiment

    return experiment(asked, epsilon=epsilon, epsilon_back=epsilon_back)


def _synthetic(asked: "Asked") -> "Outcome":
    from sfumato.paper.synthetic import synthetic as experiment

    return experiment(asked)


def _gowalla(asked: "Asked", grid: str | None, checkins: str | None) -> "Outcome":
    from sfumato.paper.gowalla import gowalla as experiment

    return experiment(asked, grid=grid, checkins=checkins)


def _high_low(asked: "Asked") -> "Outcome":
    from sfumato.paper.high_low import high_low as experiment

    return experiment(asked)


def _partitions(asked: "Asked", grid: str | None, checkins: str | None) -> "Outcome":
    from sfumato.paper.partitions import partitions as experiment

    return experiment(asked, grid=grid, checkins=checkins)


def _domains(asked: "Asked") -> "Outcome":
    from sfumato.paper.domains import domains as experiment

    return experiment(asked)


def _bounds(asked: "Asked") -> "Outcome":
    from sfumato.paper.bounds import bounds as experiment

    return experiment(asked)


# --- how they are run, and what is said of them -----------------------------------------------------------------------

_Experiment = Callable[["Asked"], "Outcome"]


@dataclass(frozen=True)
class _Wish:
    """The options that all commands share; a folder that cannot be written to is refused at once."""

    output: str
    runs: int | None
    seed: int
    quick: bool
    as_json: bool

    def __post_init__(self) -> None:
        from importlib.util import find_spec

        from sfumato.errors import InvalidTable, MissingExtra

        if find_spec("matplotlib") is None:
            raise MissingExtra("pictures need matplotlib: pip install 'sfumato[charts]'")
        folder = self.folder.absolute()
        standing = next(path for path in (folder, *folder.parents) if path.exists())
        if not standing.is_dir():
            raise InvalidTable(
                f"the output {self.output} must be a folder, but {standing.name} is a file."
            )
        if not os.access(standing, os.W_OK | os.X_OK):
            raise InvalidTable(
                f"the output {self.output} cannot be written: the folder {standing} is read-only."
            )

    @property
    def folder(self) -> Path:
        return Path(self.output)

    def asked(self, tell: Callable[[str], None]) -> "Asked":
        from sfumato.paper.experiment import Asked

        return Asked(runs=self.runs, seed=self.seed, quick=self.quick, tell=tell)

    def outcome(self, name: str, experiment: _Experiment) -> "Outcome":
        from sfumato.cli.progress import line_shown

        with line_shown(name) as tell:
            return experiment(self.asked(tell))

    def save(self, outcome: "Outcome") -> list[Path]:
        self.folder.mkdir(parents=True, exist_ok=True)
        return outcome.save(self.folder)

    def command(self, name: str, **own: str | None) -> str:
        """The call that has this experiment again."""
        chosen = {
            **own,
            "runs": None if self.runs is None else str(self.runs),
            "seed": str(self.seed),
        }
        options = [
            f"--{option} {shlex.quote(value)}"
            for option, value in chosen.items()
            if value is not None
        ]
        return " ".join(["sfumato paper", name, *options, *(["--quick"] if self.quick else [])])


def _one(wish: _Wish, name: str, experiment: _Experiment) -> None:
    outcome = wish.outcome(name, experiment)
    written = wish.save(outcome)
    if wish.as_json:
        say(json.dumps(outcome.data, allow_nan=False))
        return
    _print(outcome)
    say("Written: " + ", ".join(map(str, written)))


def _all(wish: _Wish, grid: str | None, checkins: str | None) -> None:
    """Files are written as experiments end, so that an end that comes early leaves those that are done."""
    from sfumato.errors import MissingExtra
    from sfumato.foundation.files import write_atomically
    from sfumato.paper.page import NotRun, Part, paper_page

    on_map = {"grid": _named(grid), "checkins": _named(checkins)}
    experiments: dict[str, tuple[_Experiment, dict[str, str | None]]] = {
        "error-region": (_error_region, {}),
        "synthetic": (_synthetic, {}),
        "gowalla": (lambda asked: _gowalla(asked, grid, checkins), on_map),
        "high-low": (_high_low, {}),
        "partitions": (lambda asked: _partitions(asked, grid, checkins), on_map),
        "domains": (_domains, {}),
        "bounds": (_bounds, {}),
    }
    parts, written = [], []
    for name, (experiment, own) in experiments.items():
        found: Outcome | NotRun
        try:
            found = wish.outcome(name, experiment)
            written += wish.save(found)
        except MissingExtra as problem:
            found = NotRun(name, str(problem))
        parts.append(Part(found, wish.command(name, **own)))
        if not wish.as_json:
            _print(found)
    absent = [part.found for part in parts if isinstance(part.found, NotRun)]
    if len(absent) == len(parts):
        raise MissingExtra("nothing could be run. " + "; ".join(each.reason for each in absent))
    write_atomically(wish.folder / PAGE, paper_page(parts).encode("utf-8"))
    for each in absent:
        warn(f"sfumato: {each.name} was not run: {each.reason}")
    if wish.as_json:
        say(json.dumps({part.found.name: _in_json(part.found) for part in parts}, allow_nan=False))
        return
    say(
        f"Written: {len(written)} pictures and tables in {wish.folder}, and all on one page: {wish.folder / PAGE}"
    )


def _named(path: str | None) -> str | None:
    """A file on the page is named without its folders, which are nobody else's business."""
    return None if path is None else Path(path).name


def _in_json(found: "Outcome | NotRun") -> object:
    from sfumato.paper.page import NotRun

    return {"not_run": found.reason} if isinstance(found, NotRun) else found.data


def _print(found: "Outcome | NotRun") -> None:
    from rich.console import Console

    from sfumato.paper.page import NotRun

    if isinstance(found, NotRun):
        return
    console = Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else _WIDE)
    say(found.title)
    console.print(_table(found))
    say(found.summary)
    for note in found.notes:
        say(f"- {note}")
    say("")


def _table(outcome: "Outcome") -> "Table":
    from rich.table import Table

    from sfumato.paper.page import cell_text

    table = Table()
    for at, title in enumerate(outcome.columns):
        numeric = all(isinstance(row[at], int | float | None) for row in outcome.rows)
        table.add_column(title, justify="right" if numeric else "left")
    for row in outcome.rows:
        table.add_row(*map(cell_text, row))
    return table
