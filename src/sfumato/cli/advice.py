"""Warnings about a valid survey: what it does not tell people, and promises without effect."""

from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.cli.console import notify
from sfumato.foundation.formatting import printable

if TYPE_CHECKING:
    from sfumato.survey import Survey

MIN_PEOPLE_PER_LABEL = 10
"""An answer given by fewer people may identify someone."""

# What happens if a field is missing.
_CONSEQUENCES = {
    "title": "people will read the survey's name instead of a question",
    "contact": "people will read 'Who asks: not stated'",
    "minimum_reports": "results are shown from the first report, when they are mostly noise",
}


def warn_about_missing_fields(survey: "Survey", path: str) -> None:
    """Print a warning for each field that the survey file at ``path`` should set."""
    remedy = f"in {printable(Path(path).name)}"
    if Path(path).suffix.lower() == ".json":
        remedy = "in the survey, and resolve it again"
    for field, consequence in _CONSEQUENCES.items():
        if not survey.description.about[field]:
            notify(f"Warning: {consequence}. Set {field} {remedy}.")


def warn_about_empty_promise(survey: "Survey") -> None:
    """Print a warning if the promise protects no pair of answers."""
    context = survey.context
    if context.size == 1:
        notify(
            "Warning: the promise protects nothing, because there is only one possible answer. Add "
            "other labels to the domain."
        )
    elif context.exact_minimum == inf:
        notify(
            "Warning: the promise protects nothing, because no two answers have a finite ε. Every "
            "answer is sent as it is. Change the context, for example by making blocks larger."
        )
