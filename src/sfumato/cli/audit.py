"""`sfumato audit`: whether samples of a client speak against the survey's promise."""

import json
import re
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.console import printable, say
from sfumato.cli.options import Json, SurveyFile

if TYPE_CHECKING:
    from sfumato.auditing import Audit
    from sfumato.auditing.black_box import Randomizer
    from sfumato.survey import Survey

__all__ = ["audit"]


def audit(
    survey: SurveyFile,
    client: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CLIENT]",
            help="The command that starts a client, after --. Without it the survey's own mechanism is audited.",
        ),
    ] = None,
    samples: Annotated[
        int, typer.Option(min=1, help="How many reports are drawn, in all.")
    ] = 1_000_000,
    symbols: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Audit these symbols alone, e.g. 0,3,7-12; needed where there are over 64.",
        ),
    ] = None,
    confidence: Annotated[
        float, typer.Option(help="The chance that a client that is right is not blamed.")
    ] = 0.999,
    patience: Annotated[
        float, typer.Option(min=0.1, help="Seconds to wait for a client's report.")
    ] = 60.0,
    as_json: Json = False,
) -> None:
    """Look for a breach of the survey's promise in samples of a client. Exit code 1 if one is found.

    A client in another language reads a symbol (0, 1, …) per line and writes a report per line, with fresh randomness.
    An audit can show that a promise is broken, never that it is kept: that is what sfumato verify is for.

    Examples:
      sfumato audit survey.toml

      sfumato audit survey.toml --samples 200000 -- node clients/javascript/audit.js survey.json

    """
    from sfumato.survey import Survey

    asked = Survey.load(survey)
    chosen = None if symbols is None else _numbers(symbols)
    found = _audited(asked, client, samples, chosen, confidence, patience)
    say(json.dumps(_in_json(asked, found)) if as_json else _in_text(asked, found))
    if found.violates:
        raise typer.Exit(1)


def _audited(
    survey: "Survey",
    client: list[str] | None,
    samples: int,
    symbols: list[int] | None,
    confidence: float,
    patience: float,
) -> "Audit":
    from sfumato.auditing import audit as audited
    from sfumato.auditing import command_randomizer
    from sfumato.cli.progress import bar_shown

    box: AbstractContextManager[Survey | Randomizer]
    box = command_randomizer(client, patience) if client else nullcontext(survey)
    with box as randomize, bar_shown("Asking for reports", samples) as show:
        return audited(
            randomize,
            survey.context,
            samples=samples,
            symbols=symbols,
            confidence=confidence,
            on_progress=show,
        )


def _numbers(text: str) -> list[int]:
    """Numbers and ranges of them, as in 0,3,7-12."""
    found: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,9})(?:-(\d{1,9}))?\s*", part)
        if match is None or int(match[2] or match[1]) - int(match[1]) > 10_000:
            raise typer.BadParameter("--symbols takes numbers and ranges, such as 0,3,7-12.")
        found += range(int(match[1]), int(match[2] or match[1]) + 1)
    return found


def _in_json(survey: "Survey", found: "Audit") -> dict[str, object]:
    return {"survey": survey.fingerprint, **found.in_json()}


def _in_text(survey: "Survey", found: "Audit") -> str:
    return f"{printable(survey.title)} ({survey.fingerprint[:12]}…)\n\n{found}"
