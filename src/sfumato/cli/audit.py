"""`sfumato audit`: test whether a client's reports break its survey's promise."""

import json
import re
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.console import say, show_bar
from sfumato.cli.options import Json, SurveyFile
from sfumato.foundation.formatting import printable

if TYPE_CHECKING:
    from sfumato.auditing.black_box import Randomizer

_MAX_RANGE_LENGTH = 10_000  # last minus first, so that a mistyped range cannot exhaust memory


def audit(
    survey: SurveyFile,
    client: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CLIENT",
            help="Command that starts a client; put -- first. Default: use the survey's mechanism.",
        ),
    ] = None,
    samples: Annotated[
        int, typer.Option(min=1, help="How many reports to draw in total.")
    ] = 1_000_000,
    symbols: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Symbols or labels to audit, e.g. 0,3,7-12 or park,clinic. Required if the survey "
            "has more than 64.",
        ),
    ] = None,
    confidence: Annotated[
        float, typer.Option(help="Probability that a correct client passes.")
    ] = 0.999,
    patience: Annotated[
        float, typer.Option(min=0.1, help="Seconds to wait for each report.")
    ] = 60.0,
    restarts: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="How often to start the client again and test its first report. Default: once "
            "per 10,000 samples, at most 100 times.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Look for privacy violations in a client's reports. Exits 1 if one is found.

    The client may be written in any language. It reads one symbol (0, 1, …) per line and writes one
    report per line, with fresh randomness. An audit can show that a promise is broken, but not that
    it is kept. To prove that a promise is kept, use sfumato verify.

    Examples:
      sfumato audit survey.toml

      sfumato audit survey.toml --samples 200000 -- node clients/javascript/audit.js survey.json

    """
    from sfumato.auditing import audit as run_audit
    from sfumato.auditing import command_randomizer
    from sfumato.survey import Survey

    loaded_survey = Survey.load(survey)
    selected_symbols = None if symbols is None else _parse_symbols(symbols)
    source: AbstractContextManager[Survey | Randomizer]
    source = command_randomizer(client, patience) if client else nullcontext(loaded_survey)
    with source as randomizer, show_bar("auditing", samples) as on_progress:
        result = run_audit(
            randomizer,
            loaded_survey.context,
            samples=samples,
            symbols=selected_symbols,
            confidence=confidence,
            restarts=restarts,
            on_progress=on_progress,
        )
    if as_json:
        say(json.dumps({"survey": loaded_survey.fingerprint, **result.to_dict()}))
    else:
        say(f"{printable(loaded_survey.title)} ({loaded_survey.fingerprint[:12]}…)\n\n{result}")
    if result.violates:
        raise typer.Exit(1)


def _parse_symbols(text: str) -> list[int | str]:
    """Return the symbols in a list of numbers, ranges and labels, such as 0,3,7-12,clinic."""
    symbols: list[int | str] = []
    for part in map(str.strip, text.split(",")):
        match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", part)
        if match is None:
            if not part:
                raise typer.BadParameter(
                    "--symbols must list numbers, ranges or labels, such as 0,3,7-12,clinic."
                )
            symbols.append(part)
            continue
        first = int(match[1])
        last = int(match[2] or match[1])
        if last - first > _MAX_RANGE_LENGTH:
            raise typer.BadParameter(
                f"a range of --symbols may span at most {_MAX_RANGE_LENGTH:,} numbers."
            )
        symbols += range(first, last + 1)
    return symbols
