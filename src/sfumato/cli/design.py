"""`sfumato design`: a mechanism for any privacy matrix, computed for this very matrix."""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.console import say
from sfumato.cli.options import Json, check_outputs

if TYPE_CHECKING:
    from sfumato.designer import Design
    from sfumato.domains import Domain
    from sfumato.foundation.arrays import Floats
    from sfumato.pages import Alternative
    from sfumato.promises import Certificate
    from sfumato.survey import Survey
    from sfumato.survey.description import Description

__all__ = ["design"]


def design(
    promise: Annotated[
        str,
        typer.Argument(
            metavar="MATRIX.csv|SURVEY",
            help="A privacy matrix below a line of labels, or a survey (TOML or JSON).",
        ),
    ],
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", help="Write the resolved survey (.json), for all other commands."
        ),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Its name, unique per question.")] = None,
    prior: Annotated[
        str | None,
        typer.Option(
            help="Whom to be good for: a CSV file with columns label and share, frequency or count."
        ),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(help="Whose error matters more: a CSV file with columns label and weight."),
    ] = None,
    time_limit: Annotated[
        float, typer.Option(min=0, help="Seconds after which the best so far is taken.")
    ] = 60,
    seed: Annotated[int, typer.Option(min=0, help="The same seed searches in the same way.")] = 0,
    html: Annotated[
        str | None, typer.Option(help="Write a page: one HTML file that works offline.")
    ] = None,
    plot: Annotated[
        str | None, typer.Option(help="Write a picture (PNG): promise and channel.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compute a mechanism for a privacy matrix, and say how far it can be from the best there is.

    Ctrl-C ends the search; what was found until then is kept. The matrix stands in a CSV file below a line of labels.
    Its entry in row x and column x2 is an ε: the less, the less a report may speak for x against x2; inf: no promise.

    Examples:
      sfumato design matrix.csv -o survey.json

      sfumato design survey.toml -o survey.json --time-limit 600 --html design.html --plot design.png

      sfumato design matrix.csv --prior last-year.csv --json

    """
    from sfumato.cli.labelled import labelled_shares
    from sfumato.cli.progress import round_counter
    from sfumato.designer import design as designed
    from sfumato.survey import Survey

    read = [path for path in (promise, prior, weights) if path is not None]
    _check_call(output, [html, plot], read)
    asked = _described(promise, name)
    domain = asked.context.domain
    _check_pictures(domain.size, html, plot)
    crowd = None if prior is None else labelled_shares(prior, "table", domain)
    mattering = None if weights is None else _weights(weights, domain)
    start = time.monotonic()
    with round_counter("designing") as round_done:
        found = designed(
            asked.context,
            prior=crowd,
            weights=mattering,
            time_limit=time_limit,
            seed=seed,
            on_progress=round_done,
        )
    told = _Told(Survey.of(asked, found.mechanism), found, time.monotonic() - start)
    _write(told, output, html, plot)
    say(json.dumps(told.in_json()) if as_json else told.in_text(output))


class _Told:
    """A finished design with all that is said of it; made only once the integers are certified."""

    def __init__(self, survey: "Survey", found: "Design", seconds: float) -> None:
        from sfumato.pages import alternatives_to

        self.survey, self.design, self.seconds = survey, found, seconds
        self.certificate: Certificate = survey.certify()
        self.alternatives: list[Alternative] = alternatives_to(found)

    def in_json(self) -> dict[str, object]:
        from sfumato.pages import name_closed_form

        return {
            "survey": self.survey.fingerprint,
            "name": self.survey.name,
            "symbols": self.survey.context.size,
            "recognised": name_closed_form(self.design) or None,
            **self.design.in_json(),
            "seconds": round(self.seconds, 3),
            "compared": [alternative.in_json() for alternative in self.alternatives],
            "certificate": self.certificate.record(),
        }

    def in_text(self, output: str | None) -> str:
        from sfumato.pages import bound_sentence, design_facts

        compared = [
            (alternative.what, f"{alternative.times:,.3g} times the risk")
            for alternative in self.alternatives
        ]
        lines = [*design_facts(self.design, self.seconds), *compared]
        width = max(len(what) for what, _ in lines)
        table = [f"{what:<{width}}  {fact}" for what, fact in lines]
        closing = [] if output is None else [f"{output} written. Next: sfumato plan {output}"]
        return "\n".join(
            [
                *table,
                "",
                bound_sentence(self.design),
                f"The promise is kept. {self.certificate}",
                *closing,
            ]
        )


def _check_call(output: str | None, pictures: list[str | None], read: list[str]) -> None:
    """Whatever can be refused without a search is refused before it."""
    from sfumato.errors import InvalidTable

    check_outputs(output, *pictures, inputs=read)
    if output is not None and Path(output).suffix != ".json":
        raise InvalidTable(
            f"{output} must end in .json: it is a resolved survey, and is read as one by its ending."
        )


def _check_pictures(symbols: int, html: str | None, plot: str | None) -> None:
    if html is not None or plot is not None:
        from sfumato.pages import require_drawable

        require_drawable(symbols)


def _described(promise: str, name: str | None) -> "Description":
    """What is promised, with all that a survey must have but the mechanism."""
    from dataclasses import replace

    path = Path(promise)
    if path.name.endswith((".csv", ".csv.gz")):
        return _of_matrix(path, name)
    found = _of_survey(path)
    return found if name is None else replace(found, name=name)


def _of_matrix(path: Path, name: str | None) -> "Description":
    from sfumato.cli.init import unique_name
    from sfumato.contexts import PrivacyMatrix
    from sfumato.domains import Domain
    from sfumato.survey.description import Description
    from sfumato.survey.toml.matrix import labelled_matrix

    labels, rows = labelled_matrix(path, "matrix")
    stem = Path(path.name.removesuffix(".gz"))
    return Description(name or unique_name(stem), PrivacyMatrix(rows, domain=Domain(labels)), {})


def _of_survey(path: Path) -> "Description":
    from sfumato.errors import InvalidSurvey
    from sfumato.survey import Survey
    from sfumato.survey.survey import survey_bytes
    from sfumato.survey.toml.file import read_toml
    from sfumato.survey.toml.schema import MechanismFields

    if path.suffix == ".json":
        return Survey.load(path).description
    described = read_toml(survey_bytes(path), path.parent)
    if described.wishes != MechanismFields():
        raise InvalidSurvey(
            f"{path.name} has a section [mechanism], which chooses among closed forms. Take it out to have a mechanism "
            "computed, or use the survey as it is."
        )
    return described


def _weights(path: str, domain: "Domain") -> "Floats":
    """The weights of a CSV file, in domain order; every label has one."""
    import numpy as np

    from sfumato.cli.labelled import labelled_column
    from sfumato.errors import InvalidTable

    symbols, numbers = labelled_column(path, "table", ("weight",), domain)
    if symbols.size < domain.size:
        absent = int(np.setdiff1d(np.arange(domain.size), symbols)[0])
        raise InvalidTable(
            f"{path} must have a weight for each of the {domain.size} labels; there is none for "
            f"{domain.labels[absent]!r}."
        )
    return numbers[np.argsort(symbols)]


def _write(told: _Told, output: str | None, html: str | None, plot: str | None) -> None:
    """All files are made before any is written."""
    from sfumato.foundation.files import write_atomically

    page, picture = "", b""
    if html is not None:
        from sfumato.pages import design_page

        page = design_page(
            told.design, told.alternatives, seconds=told.seconds, title=told.survey.title
        )
    if plot is not None:
        from sfumato.pages import design_png

        picture = design_png(told.design)
    if output is not None:
        told.survey.save(output)
    if html is not None:
        write_atomically(html, page.encode("utf-8"))
    if plot is not None:
        write_atomically(plot, picture)
