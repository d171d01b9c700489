"""`sfumato verify`, `check` and `label`: check a promise and explain it to participants."""

import json
import runpy
from importlib.resources import as_file
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.advice import warn_about_empty_promise, warn_about_missing_fields
from sfumato.cli.browser import OpenPage, open_page
from sfumato.cli.console import say
from sfumato.cli.options import Json, SurveyFile, check_output_paths
from sfumato.errors import InvalidSetting
from sfumato.foundation.formatting import plural, printable

if TYPE_CHECKING:
    from sfumato.survey import Survey


def verify(
    survey: SurveyFile,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help="Output file for the promise and its certificate, which sfumato check reads.",
        ),
    ] = None,
    resolved: Annotated[
        str | None,
        typer.Option(help="Output file for the resolved survey (JSON), which clients read."),
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
    from sfumato.survey.content import has_resolved_name

    check_output_paths(output, resolved, inputs=[survey])
    if resolved is not None and not has_resolved_name(Path(resolved)):
        raise InvalidSetting(f"the name of a resolved survey must end in .json; got {resolved}.")
    loaded_survey = Survey.load(survey)
    certificate = loaded_survey.certify()
    warn_about_missing_fields(loaded_survey, survey)
    warn_about_empty_promise(loaded_survey)
    if output is not None:
        proof = {"promise": loaded_survey.promise, "certificate": certificate.to_record()}
        write_atomically(output, canonical_bytes(proof) + b"\n")
    if resolved is not None:
        loaded_survey.save(resolved)
    if as_json:
        result = {
            "survey": loaded_survey.fingerprint,
            "kept": True,
            "certificate": certificate.to_record(),
        }
        say(json.dumps(result))
        return
    say(f"{printable(loaded_survey.title)} ({loaded_survey.fingerprint[:12]}…)")
    say(str(certificate))
    bits = plural(loaded_survey.mechanism.bits, "bit")
    shift = format_upper_bound(loaded_survey.mechanism.scores.reach.max_shift)
    say(
        f"Reports have {bits}; replacing an average honest report with a forged one moves a "
        f"count by up to {shift} {'person' if shift == '1' else 'people'}."
    )
    say(
        f"Next: sfumato privatize {survey} ANSWERS{_options_for_columns(loaded_survey)} "
        f"-o reports.parquet, or sfumato serve {survey}"
    )


def _options_for_columns(survey: "Survey") -> str:
    """Return the options that name the columns of a table, if the survey file does not."""
    from sfumato.domains import GridDomain

    columns = survey.description.table
    if columns.value is not None or columns.latitude is not None:
        return ""
    is_grid = isinstance(survey.context.domain, GridDomain)
    return " --latitude LATITUDE --longitude LONGITUDE" if is_grid else " --column COLUMN"


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
    from sfumato.foundation.files import find_resource

    checker = find_resource("sfumato.cli", "check_certificate.py", "tools/check_certificate.py")
    with as_file(checker) as path:
        main = runpy.run_path(str(path), run_name="check_certificate")["main"]
    raise typer.Exit(main([file]))


def label(
    survey: SurveyFile,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            help="Output file for the label, a self-contained HTML page.",
        ),
    ],
    opens_page: OpenPage = False,
) -> None:
    """Write a privacy label: what is asked, revealed and left unprotected, in plain words.

    Verifies the promise first. If the promise is broken, exits 1 without writing a label.

    Example:
      sfumato label survey.toml -o label.html --open

    """
    from sfumato.foundation.files import write_atomically
    from sfumato.pages import label_page
    from sfumato.survey import Survey

    check_output_paths(output, inputs=[survey])
    loaded_survey = Survey.load(survey)
    write_atomically(output, label_page(loaded_survey).encode("utf-8"))
    warn_about_missing_fields(loaded_survey, survey)
    title = printable(loaded_survey.title)
    say(f"Wrote {output}, the privacy label for {title} ({loaded_survey.fingerprint[:12]}…).")
    if opens_page:
        open_page(output)
