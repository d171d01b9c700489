"""Run an experiment from the command line: ``python -m experiments --help``."""

from typing import Annotated

import typer

from sfumato.cli.options import Json
from sfumato.cli.paper import Checkins, ExperimentCommand, Grid, Output, Quick, Runs, Seed

EXPERIMENTS = ("high-low", "partitions", "domains", "bounds")
OUTPUT = "experiment-figures"

Name = Annotated[str, typer.Argument(metavar="NAME", help=f"One of {', '.join(EXPERIMENTS)}.")]

app = typer.Typer(rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    name: Name,
    output: Output = OUTPUT,
    grid: Grid = None,
    checkins: Checkins = None,
    runs: Runs = None,
    seed: Seed = 0,
    quick: Quick = False,
    as_json: Json = False,
) -> None:
    """Run an experiment that goes beyond the paper. Seeded, so NOT PRIVATE.

    Prints a table, and writes a figure (PNG, PDF) and its data (CSV, JSON). Only partitions reads a
    map: pass --grid or --checkins as for `sfumato paper gowalla`.

    Example: python -m experiments high-low --quick
    """
    if name not in EXPERIMENTS:
        raise typer.BadParameter(f"NAME must be one of {', '.join(EXPERIMENTS)}; got {name}.")
    command = ExperimentCommand(
        output,
        runs,
        seed,
        quick,
        as_json,
        package="experiments",
        program="python -m experiments",
    )
    if name == "partitions":
        command.run(name, grid=grid, checkins=checkins)
        return
    if grid is not None or checkins is not None:
        raise typer.BadParameter("--grid and --checkins apply only to partitions.")
    command.run(name)


if __name__ == "__main__":
    app()
