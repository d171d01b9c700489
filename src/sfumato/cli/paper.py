"""`sfumato paper`: reproduce the figures and the table of Acharya et al. (2020).

Sfumato's best scheme is added for comparison.
"""

import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.console import notify, say, show_stage, show_status
from sfumato.cli.help import HelpCommand, HelpGroup
from sfumato.cli.options import Json

if TYPE_CHECKING:
    from sfumato.paper.experiment import ExperimentResult, PageSection

EXPERIMENTS = ("error-region", "synthetic", "gowalla")
"""The names of the experiments. Each is a function in a module of ``sfumato.paper``."""

DEFAULT_FOLDER = "paper-figures"
PAGE_NAME = "paper.html"
_QUICK_DURATION = "2 to 10 minutes"
_FULL_DURATION = "much longer than the minutes of --quick"
_PIPE_WIDTH = 200  # the width of a table, in characters, if the output is not a terminal

ProgressDisplay = AbstractContextManager[Callable[[str], None]]
"""Shows how far an experiment is; yields a function to call with a line of text."""

Output = Annotated[
    str,
    typer.Option("--output", "-o", metavar="FOLDER", help="Output folder; created if missing."),
]
Runs = Annotated[
    int | None, typer.Option(min=1, help="Number of runs. Default: as many as in the paper.")
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
    cls=HelpGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def paper() -> None:
    """Reproduce the paper's figures, with Sfumato's best scheme added. Seeded, so NOT PRIVATE.

    Every command writes a figure (PNG, PDF) and its data (CSV, JSON), and prints a table.

    Examples:
      sfumato paper all --quick

      sfumato paper synthetic --runs 10 --seed 1 -o figures

    """


@app.command(
    "error-region",
    cls=HelpCommand,
    short_help="Figure 1: the error rates of an observer.",
)
def error_region(
    output: Output = DEFAULT_FOLDER,
    epsilon: Annotated[
        float | None, typer.Option(help="ε of x against x2, instead of the paper's two cases.")
    ] = None,
    epsilon_back: Annotated[
        float | None, typer.Option(help="ε of x2 against x. Default: the same as --epsilon.")
    ] = None,
    runs: Runs = None,
    seed: Seed = 0,
    quick: Quick = False,
    as_json: Json = False,
) -> None:
    """Figure 1: the error rates of an observer who guesses an answer from its report.

    Shows what the promise allows and what mechanisms achieve, computed exactly and measured
    on simulated reports.

    Example: sfumato paper error-region --epsilon 1 --epsilon-back 2
    """
    command = ExperimentCommand(output, runs, seed, quick, as_json)
    command.run("error-region", epsilon=epsilon, epsilon_back=epsilon_back)


@app.command(
    "synthetic",
    cls=HelpCommand,
    short_help="Errors on synthetic data, by number of people and blocks.",
)
def synthetic(
    output: Output = DEFAULT_FOLDER,
    runs: Runs = None,
    seed: Seed = 0,
    quick: Quick = False,
    as_json: Json = False,
) -> None:
    """Measure the error on synthetic data, by number of people and number of blocks.

    Example: sfumato paper synthetic --quick
    """
    command = ExperimentCommand(output, runs, seed, quick, as_json)
    command.run("synthetic")


@app.command(
    "gowalla",
    cls=HelpCommand,
    short_help="The map of check-ins, with classical privacy and with blocks.",
)
def gowalla(
    output: Output = DEFAULT_FOLDER,
    grid: Grid = None,
    checkins: Checkins = None,
    runs: Runs = None,
    seed: Seed = 0,
    quick: Quick = False,
    as_json: Json = False,
) -> None:
    """Estimate the map of check-ins, with classical privacy and with blocks.

    Without a file, people are simulated in proportion to the population of places.

    Examples:
      sfumato paper gowalla --quick

      sfumato paper gowalla --checkins loc-gowalla_totalCheckins.txt.gz

    """
    command = ExperimentCommand(output, runs, seed, quick, as_json)
    command.run("gowalla", grid=grid, checkins=checkins)


@app.command(
    "all",
    cls=HelpCommand,
    short_help="Run all experiments and show the results on one page.",
)
def run_all(
    output: Output = DEFAULT_FOLDER,
    grid: Grid = None,
    checkins: Checkins = None,
    runs: Runs = None,
    seed: Seed = 0,
    quick: Quick = False,
    as_json: Json = False,
) -> None:
    """Run every experiment and show all results on one page, paper.html.

    If an experiment needs a package that is not installed, the experiment is skipped and the
    command to install the package is printed.

    Examples:
      sfumato paper all --quick

      sfumato paper all -o figures --checkins loc-gowalla_totalCheckins.txt.gz

    """
    command = ExperimentCommand(output, runs, seed, quick, as_json)
    duration = _QUICK_DURATION if quick else _FULL_DURATION
    notify(f"Running {len(EXPERIMENTS)} experiments, which takes {duration}.")
    sections = []
    for number, name in enumerate(EXPERIMENTS, start=1):
        arguments = {"grid": grid, "checkins": checkins} if name == "gowalla" else {}
        progress = show_stage(name, number, len(EXPERIMENTS))
        sections.append(command.run_section(name, progress, **arguments))
    _write_page(command, sections)


@dataclass(frozen=True)
class ExperimentCommand:
    """A command that runs experiments, with the options that they share.

    ``package`` is the Python package with the experiments. ``program`` is the command line up to
    the name of the experiment. The constructor raises an error if matplotlib is missing, or if
    nothing can be written to the output folder.
    """

    output: str
    runs: int | None
    seed: int
    quick: bool
    as_json: bool
    package: str = "sfumato.paper"
    program: str = "sfumato paper"

    def __post_init__(self) -> None:
        from sfumato.errors import MissingExtra
        from sfumato.foundation.installation import install_hint

        if find_spec("matplotlib") is None:
            raise MissingExtra(f"figures require matplotlib: {install_hint('paper')}")
        _require_writable_folder(self.folder)

    @property
    def folder(self) -> Path:
        """The output folder."""
        return Path(self.output)

    def run(self, name: str, **arguments: object) -> None:
        """Run one experiment, write its files and print its table, or its data as JSON."""
        result = self._run_experiment(name, arguments, show_status(name))
        paths = self._save(result)
        if self.as_json:
            say(json.dumps(result.data, allow_nan=False))
            return
        _print_result(result)
        say("Written: " + ", ".join(map(str, paths)))

    def run_section(
        self, name: str, progress: ProgressDisplay, **arguments: str | None
    ) -> "PageSection":
        """Run one experiment, and return its section of the page.

        Write the experiment's files immediately, because a later experiment may fail.
        """
        from sfumato.errors import MissingExtra
        from sfumato.paper.experiment import PageSection, SkippedExperiment

        command_line = self._command_line(name, arguments)
        try:
            result = self._run_experiment(name, arguments, progress)
            self._save(result)
        except MissingExtra as problem:
            return PageSection(SkippedExperiment(name, str(problem)), command_line)
        if not self.as_json:
            _print_result(result)
        return PageSection(result, command_line)

    def _run_experiment(
        self, name: str, arguments: Mapping[str, object], progress: ProgressDisplay
    ) -> "ExperimentResult":
        from sfumato.paper.experiment import RunOptions

        module_name = name.replace("-", "_")
        experiment: Callable[..., ExperimentResult]
        experiment = getattr(import_module(f"{self.package}.{module_name}"), module_name)
        with progress as show:
            options = RunOptions(self.runs, self.seed, self.quick, on_progress=show)
            return experiment(options, **arguments)

    def _save(self, result: "ExperimentResult") -> list[Path]:
        self.folder.mkdir(parents=True, exist_ok=True)
        return result.save(self.folder)

    def _command_line(self, name: str, arguments: dict[str, str | None]) -> str:
        """Return the command that repeats this experiment, with file names but no folders."""
        words = [self.program, name]
        for option, path in arguments.items():
            if path is not None:
                words.append(f"--{option} {shlex.quote(Path(path).name)}")
        if self.runs is not None:
            words.append(f"--runs {self.runs}")
        words.append(f"--seed {self.seed}")
        if self.quick:
            words.append("--quick")
        return " ".join(words)


def _require_writable_folder(folder: Path) -> None:
    from sfumato.errors import InvalidSetting

    absolute_path = folder.absolute()
    candidates = (absolute_path, *absolute_path.parents)
    existing_path = next(path for path in candidates if path.exists())
    if not existing_path.is_dir():
        raise InvalidSetting(
            f"the output {folder} must be a folder, but {existing_path.name} is a file."
        )
    if not os.access(existing_path, os.W_OK | os.X_OK):
        raise InvalidSetting(
            f"cannot write to {folder}: the folder {existing_path} is not writable."
        )


def _write_page(command: ExperimentCommand, sections: "list[PageSection]") -> None:
    """Write the page, and print what was written and what was skipped."""
    from sfumato.errors import MissingExtra
    from sfumato.foundation.files import write_atomically
    from sfumato.paper.experiment import SkippedExperiment, paper_page

    data: dict[str, object] = {}
    missing_results: list[SkippedExperiment] = []
    for section in sections:
        result = section.result
        if isinstance(result, SkippedExperiment):
            missing_results.append(result)
            data[result.name] = {"not_run": result.reason}
        else:
            data[result.name] = result.data
    if len(missing_results) == len(sections):
        reasons = "; ".join(result.reason for result in missing_results)
        raise MissingExtra(f"no experiment could be run. {reasons}")
    page_path = command.folder / PAGE_NAME
    write_atomically(page_path, paper_page(sections).encode("utf-8"))
    for result in missing_results:
        notify(f"sfumato: {result.name} was not run: {result.reason}")
    if command.as_json:
        say(json.dumps(data, allow_nan=False))
    else:
        say(f"Written: figures and tables in {command.folder}, and all on one page: {page_path}")


def _print_result(result: "ExperimentResult") -> None:
    from rich.console import Console
    from rich.table import Table

    from sfumato.foundation.formatting import format_cell

    table = Table()
    for title, is_numeric in zip(result.columns, result.numeric_columns(), strict=True):
        table.add_column(title, justify="right" if is_numeric else "left")
    for row in result.rows:
        table.add_row(*map(format_cell, row))
    width = None if sys.stdout.isatty() else _PIPE_WIDTH
    say(result.title)
    Console(highlight=False, markup=False, width=width).print(table)
    say(result.summary)
    for note in result.notes:
        say(f"- {note}")
    say("")
