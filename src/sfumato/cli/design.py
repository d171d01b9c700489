"""`sfumato design`: compute a mechanism for a privacy matrix."""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.browser import OpenPage, open_page, require_page
from sfumato.cli.console import say, show_rounds
from sfumato.cli.options import Json, check_output_paths, read_shares, read_values, write_outputs
from sfumato.errors import InvalidSetting

if TYPE_CHECKING:
    from sfumato.designer import Design
    from sfumato.survey import Description, Survey


def design(
    promise: Annotated[
        str,
        typer.Argument(
            metavar="MATRIX.csv|SURVEY",
            help="Privacy matrix (CSV, labels in the first row) or survey (TOML or JSON).",
        ),
    ],
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help="Output file for the resolved survey (.json), which other commands read.",
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the survey, unique per question.")
    ] = None,
    prior: Annotated[
        str | None,
        typer.Option(
            help="Expected distribution: CSV with columns label and share, frequency or count."
        ),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(help="Importance of each label's error: CSV with columns label and weight."),
    ] = None,
    time_limit: Annotated[
        float, typer.Option(min=0, help="Time limit for the search, in seconds.")
    ] = 60,
    seed: Annotated[int, typer.Option(min=0, help="The same seed repeats the same search.")] = 0,
    html: Annotated[
        str | None, typer.Option(help="Output file for a self-contained HTML page.")
    ] = None,
    plot: Annotated[
        str | None, typer.Option(help="PNG file for a plot of the promise and the channel.")
    ] = None,
    opens_page: OpenPage = False,
    as_json: Json = False,
) -> None:
    """Compute a mechanism for a privacy matrix, with a bound on its distance from the optimum.

    The search stops at the time limit or on Ctrl-C, and keeps the best mechanism found so far.

    The matrix is a CSV file with the labels in its first row. The entry in row x and column x2 is
    an ε: the smaller it is, the less a report may favour x over x2. An entry of inf promises
    nothing.

    Examples:
      sfumato design matrix.csv -o survey.json

      sfumato design survey.toml -o survey.json --time-limit 600 --plot design.png

      sfumato design matrix.csv --prior last-year.csv --json

    """
    from sfumato import pages
    from sfumato.designer import design as search
    from sfumato.survey import Survey

    require_page(html, opens_page=opens_page)
    inputs = [path for path in (promise, prior, weights) if path is not None]
    check_output_paths(output, html, plot, inputs=inputs)
    if output is not None and Path(output).suffix != ".json":
        raise InvalidSetting(
            f"the output is a resolved survey, so its name must end in .json; got {output}."
        )
    description = _read_description(promise, name)
    domain = description.context.domain
    if html is not None or plot is not None:
        pages.require_drawable(domain.size, as_png=plot is not None)
    prior_shares = None if prior is None else read_shares(prior, "prior", domain)
    label_weights = (
        None if weights is None else read_values(weights, "weights", domain, ("weight",))
    )
    start = time.monotonic()
    with show_rounds("designing") as on_progress:
        design = search(
            description.context,
            prior=prior_shares,
            weights=label_weights,
            time_limit=time_limit,
            seed=seed,
            on_progress=on_progress,
        )
    seconds = time.monotonic() - start
    result = _DesignResult(Survey.from_description(description, design.mechanism), design, seconds)
    write_outputs(
        (output, lambda: result.survey.resolved() + b"\n"),
        (html, result.render_page),
        (plot, lambda: pages.design_png(design)),
    )
    say(json.dumps(result.to_dict()) if as_json else result.to_text(output))
    if html is not None and opens_page:
        open_page(html)


class _DesignResult:
    """A design, its certificate, and the alternatives that it is compared with.

    The constructor certifies the mechanism.
    """

    def __init__(self, survey: "Survey", design: "Design", seconds: float) -> None:
        from sfumato.pages import alternatives_to

        self.survey = survey
        self.design = design
        self.seconds = seconds
        self.certificate = survey.certify()
        self.alternatives = alternatives_to(design)

    def render_page(self) -> bytes:
        from sfumato.pages import design_page

        page = design_page(
            self.design, self.alternatives, seconds=self.seconds, title=self.survey.title
        )
        return page.encode("utf-8")

    def to_dict(self) -> dict[str, object]:
        from sfumato.pages import name_of_closed_form

        return {
            "survey": self.survey.fingerprint,
            "name": self.survey.name,
            "symbols": self.survey.context.size,
            "recognised": name_of_closed_form(self.design) or None,
            **self.design.to_dict(),
            "seconds": round(self.seconds, 3),
            "compared": [alternative.to_dict() for alternative in self.alternatives],
            "certificate": self.certificate.to_record(),
        }

    def to_text(self, output: str | None) -> str:
        from sfumato.pages import bound_sentence, design_facts

        facts = list(design_facts(self.design, self.seconds))
        for alternative in self.alternatives:
            facts.append((alternative.what, f"{alternative.times:,.3g} times the risk"))
        width = max(len(title) for title, _ in facts)
        lines = [f"{title:<{width}}  {fact}" for title, fact in facts]
        lines += ["", bound_sentence(self.design), f"The promise is kept. {self.certificate}"]
        if output is not None:
            lines.append(f"Wrote {output}. Next: sfumato plan {output}")
        return "\n".join(lines)


def _read_description(promise: str, name: str | None) -> "Description":
    """Read the description of a survey from a matrix file or a survey file."""
    from dataclasses import replace

    path = Path(promise)
    if path.name.endswith((".csv", ".csv.gz")):
        return _describe_matrix(path, name)
    description = _describe_survey(path)
    return description if name is None else replace(description, name=name)


def _describe_matrix(path: Path, name: str | None) -> "Description":
    from sfumato.cli.init import unique_name
    from sfumato.contexts import PrivacyMatrix
    from sfumato.domains import Domain
    from sfumato.survey import DEFAULT_QUESTION, Description, Question
    from sfumato.survey.toml.companion_files import read_matrix

    labels, rows = read_matrix(path, "matrix")
    csv_path = Path(path.name.removesuffix(".gz"))
    question = Question(DEFAULT_QUESTION, PrivacyMatrix(rows, domain=Domain(labels)))
    return Description(name or unique_name(csv_path), (question,), {}, edition=2)


def _describe_survey(path: Path) -> "Description":
    from sfumato.errors import InvalidSurvey
    from sfumato.survey import Survey
    from sfumato.survey.content import has_resolved_name
    from sfumato.survey.toml.file import read_survey_toml
    from sfumato.survey.toml.schema import MechanismFields

    if has_resolved_name(path):
        return Survey.load(path).description
    description = read_survey_toml(path)
    if description.mechanism_fields != MechanismFields():
        raise InvalidSurvey(
            f"{path.name} has a [mechanism] section, which chooses a closed-form "
            "mechanism. Remove the section to compute a mechanism instead."
        )
    return description
