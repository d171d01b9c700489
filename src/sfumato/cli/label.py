"""`sfumato label`: the privacy label of a survey, for the people who are asked."""

from typing import Annotated

import typer

from sfumato.cli.console import printable, say
from sfumato.cli.options import SurveyFile, check_outputs

__all__ = ["label"]


def label(
    survey: SurveyFile,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            help="Write the label: one HTML file that works offline and fits a page.",
        ),
    ],
) -> None:
    """Write a survey's privacy label: in plain words, what is asked, what a report gives away, what is not protected.

    The promise is checked first. Exit code 1 if the mechanism does not keep it; then there is no label.

    Example:
      sfumato label survey.toml -o label.html

    """
    from sfumato.foundation.files import write_atomically
    from sfumato.pages import label_page
    from sfumato.survey import Survey

    check_outputs(output, inputs=[survey])
    asked = Survey.load(survey)
    write_atomically(output, label_page(asked).encode("utf-8"))
    say(
        f"{output} written: the privacy label of {printable(asked.title)} ({asked.fingerprint[:12]}…)."
    )
