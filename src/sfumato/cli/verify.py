"""`sfumato verify`: check that a mechanism keeps the promise of its survey."""

import json
from typing import Annotated

import typer

from sfumato.cli.console import printable, say
from sfumato.cli.options import Json, SurveyFile, require_outputs

__all__ = ["verify"]


def verify(
    survey: SurveyFile,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", help="Write the promise and its certificate, for sfumato check."
        ),
    ] = None,
    resolved: Annotated[
        str | None, typer.Option(help="Write the resolved survey (JSON) for clients.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Verify in exact arithmetic that the survey's mechanism keeps its promise. Exits 1 if not.

    Examples:
      sfumato verify survey.toml

      sfumato verify survey.toml -o certificate.json && sfumato check certificate.json

    """
    from sfumato.foundation.canonical import canonical_bytes
    from sfumato.foundation.files import write_atomically
    from sfumato.foundation.formatting import format_upper_bound
    from sfumato.survey import Survey

    require_outputs(output, resolved, inputs=[survey])
    loaded = Survey.load(survey)
    certificate = loaded.certify()
    if output is not None:
        proof = {"promise": loaded.promise, "certificate": certificate.record()}
        write_atomically(output, canonical_bytes(proof) + b"\n")
    if resolved is not None:
        loaded.save(resolved)
    if as_json:
        result = {
            "survey": loaded.fingerprint,
            "kept": True,
            "certificate": certificate.record(),
        }
        say(json.dumps(result))
        return
    say(f"{printable(loaded.title)} ({loaded.fingerprint[:12]}…)")
    say(str(certificate))
    bits = loaded.mechanism.bits
    weight = format_upper_bound(loaded.mechanism.scores.reach.largest)
    say(
        f"Reports have {bits} bits; a forged one, in an average honest one's place, moves a count "
        f"by up to {weight} people."
    )
