"""`sfumato check`: run the lone checker, which shares no code with the package."""

import runpy
from importlib.resources import as_file, files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated

import typer

from sfumato.errors import MissingExtra

__all__ = ["check"]


def check(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="A resolved survey, a certificate or a saved mechanism (JSON)."
        ),
    ],
) -> None:
    """Check a promise with the lone checker, tools/check_certificate.py, which uses nothing of this package.

    It prints what was promised and compared. Exit code 0: kept. 1: broken. 2: not checked.

    Examples:
      sfumato check survey.json

      sfumato verify survey.toml -o certificate.json && sfumato check certificate.json

    """
    with as_file(_checker()) as path:
        main = runpy.run_path(str(path), run_name="check_certificate")["main"]
    raise typer.Exit(main([file]))


def _checker() -> Traversable:
    """The checker's file: inside an installed package, or in the repository."""
    installed = files("sfumato.cli").joinpath("check_certificate.py")
    if installed.is_file():
        return installed
    in_repository = Path(__file__).parents[3] / "tools" / "check_certificate.py"
    if in_repository.is_file():
        return in_repository
    raise MissingExtra(
        "check_certificate.py did not come with this installation. Install Sfumato again."
    )
