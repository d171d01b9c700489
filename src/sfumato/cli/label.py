"""`sfumato label`: write the privacy label of a survey, for its participants."""

from typing import Annotated

import typer

from sfumato.cli.console import printable, say
from sfumato.cli.options import SurveyFile, require_outputs

__all__ = ["label"]


def label(
    survey: SurveyFile,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            help="File for the label: a single HTML page that works offline.",
        ),
    ],
) -> None:
    """Write a privacy label: in plain words, what is asked, revealed and left unprotected.

    Verifies the promise first. Exits 1, without a label, if the mechanism breaks it.

    Example:
      sfumato label survey.toml -o label.html

    """
    from sfumato.foundation.files import write_atomically
    from sfumato.pages import label_page
    from sfumato.survey import Survey

    require_outputs(output, inputs=[survey])
    loaded = Survey.load(survey)
    write_atomically(output, label_page(loaded).encode("utf-8"))
    title = printable(loaded.title)
    say(f"{output} written: the privacy label of {title} ({loaded.fingerprint[:12]}…).")
