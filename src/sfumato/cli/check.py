"""`sfumato check`: run the independent checker, which shares no code with the package."""

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
    """Check a promise with tools/check_certificate.py, which shares no code with this package.

    Prints what is promised and what was compared. Exits 0 if the promise is kept, 1 if it is
    broken, 2 if it could not be checked.

    Examples:
      sfumato check survey.json

      sfumato verify survey.toml -o certificate.json && sfumato check certificate.json

    """
    with as_file(_checker()) as path:
        main = runpy.run_path(str(path), run_name="check_certificate")["main"]
    raise typer.Exit(main([file]))


def _checker() -> Traversable:
    """Return the file of the checker: in the installed package, or in the repository."""
    installed = files("sfumato.cli").joinpath("check_certificate.py")
    if installed.is_file():
        return installed
    in_repository = Path(__file__).parents[3] / "tools" / "check_certificate.py"
    if in_repository.is_file():
        return in_repository
    raise MissingExtra("check_certificate.py is missing from this installation. Reinstall Sfumato.")
