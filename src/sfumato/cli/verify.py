"""`sfumato verify`: whether the mechanism keeps the survey's promise."""

import json
from typing import Annotated

import typer

from sfumato.cli.console import printable, say
from sfumato.cli.options import Json, SurveyFile, check_outputs

__all__ = ["verify"]


def verify(
    survey: SurveyFile,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="Write promise and certificate, for sfumato check."),
    ] = None,
    resolved: Annotated[
        str | None, typer.Option(help="Write the resolved survey (JSON), as clients read it.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Check in integers that the survey's mechanism keeps its context. Exit code 1 if it does not.

    Examples:
      sfumato verify survey.toml

      sfumato verify survey.toml -o certificate.json && sfumato check certificate.json

    """
    from sfumato.foundation.canonical import canonical_bytes
    from sfumato.foundation.files import write_atomically
    from sfumato.foundation.formatting import format_upper_bound
    from sfumato.survey import Survey

    check_outputs(output, resolved, inputs=[survey])
    asked = Survey.load(survey)
    certificate = asked.certify()
    if output is not None:
        proved = {"promise": asked.promise, "certificate": certificate.record()}
        write_atomically(output, canonical_bytes(proved) + b"\n")
    if resolved is not None:
        asked.save(resolved)
    if as_json:
        say(
            json.dumps(
                {"survey": asked.fingerprint, "kept": True, "certificate": certificate.record()}
            )
        )
        return
    say(f"{printable(asked.title)} ({asked.fingerprint[:12]}…)")
    say(str(certificate))
    bits, weight = asked.mechanism.bits, format_upper_bound(asked.mechanism.scores.reach.largest)
    say(
        f"Reports have {bits} bits; a forged one, in an average honest one's place, moves a count by up to {weight} "
        "people."
    )
