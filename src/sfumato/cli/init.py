"""`sfumato init`: a survey file, from a template or from the answers themselves."""

import sys
from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.console import say, warn
from sfumato.cli.options import check_outputs

if TYPE_CHECKING:
    from pathlib import Path

    from sfumato.contexts import Context

__all__ = ["init", "unique_name"]

_FEW = 10

TEMPLATES = {
    "yes-no": """name  = "my-survey"                # unique per question
title = "Have you ever …?"

[domain]
kind = "labels"
labels = ["no", "yes"]

[context]
kind = "high-low"                  # only "yes" needs protection
epsilon = 1.0
sensitive = ["yes"]
""",
    "labels": """name  = "my-survey"                # unique per question
title = "Where did you have lunch?"

[domain]
kind = "labels"
labels = ["park", "café", "clinic", "bar", "office"]
other = "somewhere else"           # where unknown values go; without it they are an error

[context]
kind = "high-low"                  # uniform | high-low | tiers | blocks | metric | matrix
epsilon = 1.0
sensitive = ["clinic", "bar"]
""",
    "grid": """name  = "my-survey"                # unique per question
title = "Where do people check in?"

[domain]
kind = "grid"
south = 25.0
north = 50.0
west = -130.0
east = -60.0
step = 0.2

[context]
kind = "blocks"                    # hide the cell, not the tile
epsilon = 1.0
rows = 25
columns = 70
""",
}


def init(
    output: Annotated[
        str, typer.Argument(metavar="SURVEY", help="The survey file to write.")
    ] = "survey.toml",
    template: Annotated[str | None, typer.Option(help=f"One of {', '.join(TEMPLATES)}.")] = None,
    answers: Annotated[
        str | None, typer.Option("--from", help="A data file to take the labels from.")
    ] = None,
    column: Annotated[str | None, typer.Option(help="Its column of answers.")] = None,
    sensitive: Annotated[
        str | None, typer.Option(help="Sensitive labels, separated by commas.")
    ] = None,
    blocks: Annotated[
        str | None, typer.Option(help="Its column that names each answer's block.")
    ] = None,
    epsilon: Annotated[str, typer.Option(help="How hard answers must be to tell apart.")] = "1.0",
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Write a survey file: from a template, or from a column of answers, with the error that each choice would have.

    Examples:
      sfumato init --template yes-no survey.toml

      sfumato init --from answers.csv --column place --sensitive clinic,bar survey.toml

      sfumato init --from answers.csv --column street --blocks city survey.toml

    """
    from pathlib import Path

    from sfumato.errors import InvalidSurvey
    from sfumato.foundation.files import write_atomically

    check_outputs(output)
    if Path(output).suffix == ".json":
        raise InvalidSurvey(
            f"{Path(output).name} would be read as a resolved survey; give the file another ending."
        )
    if Path(output).exists() and not force:
        raise InvalidSurvey(f"{output} exists already. Choose another name, or pass --force.")
    if (template is None) == (answers is None):
        raise InvalidSurvey(
            f"pass either --template (one of {', '.join(TEMPLATES)}) or --from with a data file."
        )
    if template is not None:
        if template not in TEMPLATES:
            raise InvalidSurvey(
                f"template must be one of {', '.join(TEMPLATES)}; found {template!r}."
            )
        if (column, sensitive, blocks) != (None, None, None):
            raise InvalidSurvey(
                "--column, --sensitive and --blocks go with --from; a template is edited by hand."
            )
        text = TEMPLATES[template].replace("epsilon = 1.0", f"epsilon = {_number(epsilon)}")
        text = text.replace('"my-survey"', _quoted(unique_name(Path(output))))
    else:
        text = _from_answers(str(answers), column, sensitive, blocks, epsilon, Path(output))
    _check(text, Path(output))
    write_atomically(output, text.encode("utf-8"))
    say(f"{output} written. Next: sfumato verify {output}")


def _check(text: str, output: "Path") -> None:
    """Refuse to write a survey that could not be read again."""
    from sfumato.survey import Survey
    from sfumato.survey.toml.file import read_toml

    described = read_toml(text.encode("utf-8"), output.parent)
    Survey(described.name, described.context, described.mechanism, **described.about)


def _number(epsilon: str) -> str:
    """A number as TOML writes it, or as text where TOML has no way to."""
    import re

    return (
        epsilon
        if re.fullmatch(r"[0-9]|[1-9][0-9]+|([0-9]|[1-9][0-9]+)\.[0-9]+", epsilon)
        else _quoted(epsilon)
    )


def _quoted(text: str) -> str:
    """Text as TOML writes it: as JSON does, except that TOML wants DEL escaped too."""
    import json

    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _from_answers(
    answers: str,
    column: str | None,
    sensitive: str | None,
    blocks: str | None,
    epsilon: str,
    output: "Path",
) -> str:
    from sfumato.contexts import Blocks, HighLow, Uniform
    from sfumato.errors import InvalidSurvey

    if column is None:
        raise InvalidSurvey("--from needs --column, the column of answers.")
    if sensitive is not None and blocks is not None:
        raise InvalidSurvey(
            "choose --sensitive or --blocks: a survey file promises one of them, not both."
        )
    counts, block_of = _counted(answers, column, blocks)
    labels = sorted(counts)
    if len(labels) < 2:
        raise InvalidSurvey(
            f"column {column!r} holds {len(labels)} different answers; a question needs at least two."
        )
    if sensitive is None and blocks is None and sys.stdin.isatty():
        sensitive = typer.prompt(
            "Which labels are sensitive (separated by commas; empty for all alike)", default=""
        )
    choices: dict[str, Context] = {"uniform": Uniform(labels, epsilon)}
    named = _listed(sensitive or "", counts)
    if named:
        choices["high-low"] = HighLow(labels, named, epsilon)
    if block_of:
        choices["blocks"] = Blocks([block_of[label] for label in labels], epsilon, domain=labels)
    _compare(choices, [counts[label] for label in labels])
    kind = list(choices)[-1]
    warn(f"Written is the last of them, {kind}; edit the file to change it.")
    rare = sum(count < _FEW for count in counts.values())
    if rare:
        warn(
            f"A survey file is public. {rare} of its {len(labels)} labels are held by fewer than {_FEW} people here: "
            "take out those that would name somebody, and give the domain an `other` label for them."
        )
    return _toml(unique_name(output), kind, labels, named, block_of, epsilon)


def unique_name(output: "Path") -> str:
    """The file's name and a random ending: two questions must not share a name, or they share reports."""
    import secrets

    return f"{output.stem[:80]}-{secrets.token_hex(3)}"


def _listed(text: str, known: Counter[str]) -> list[str]:
    """Labels separated by commas; those that hold commas in quotation marks, as in CSV."""
    import csv

    parts = next(csv.reader([text], skipinitialspace=True), [])
    return [part if part in known else part.strip() for part in parts if part.strip()]


def _counted(answers: str, column: str, blocks: str | None) -> tuple[Counter[str], dict[str, str]]:
    """How often each answer occurs, and its block; an answer in two blocks is refused."""
    from sfumato.errors import InvalidSurvey
    from sfumato.tables import label_texts, open_table

    if answers == "-":
        raise InvalidSurvey("--from needs a file, not a pipe.")
    wanted = dict.fromkeys([column, blocks] if blocks else [column])
    counts: Counter[str] = Counter()
    block_of: dict[str, str] = {}
    with open_table(answers) as table:
        for batch in table.batches(wanted):
            texts = [label_texts(batch.column(name), name) for name in wanted]
            counts.update(value for value in texts[0] if value is not None)
            if blocks:
                for value, block in zip(texts[0], texts[-1], strict=True):
                    if value is not None and block is None:
                        raise InvalidSurvey(
                            f"an answer of column {column!r} has no block in {blocks!r}; each needs one."
                        )
                    if value is not None and block_of.setdefault(value, str(block)) != block:
                        raise InvalidSurvey(
                            f"an answer of column {column!r} lies in two blocks of {blocks!r}; each needs one."
                        )
    return counts, block_of


def _compare(choices: "dict[str, Context]", counts: list[int]) -> None:
    """The error that each context would give on these data, side by side.

    It is that of the unbiased estimate: decoders do better, and the more so the larger it is.
    """
    import math

    import numpy as np
    from rich.console import Console
    from rich.table import Table

    from sfumato.designer import mechanism_for

    people = sum(counts)
    p = np.array(counts) / people
    table = Table(
        "context",
        "error to expect (total variation, unbiased)",
        "bits",
        "people for an error of 0.05",
    )
    for name, context in choices.items():
        mechanism = mechanism_for(context)
        # Each estimate is about normal: its mean absolute error is √(2/π) of its standard deviation.
        per_person = (
            math.sqrt(2 / math.pi) * float(np.sqrt(mechanism.scores.variances(p, 1)).sum()) / 2
        )
        needed = f"{math.ceil((per_person / 0.05) ** 2):,}"
        table.add_row(
            name, f"{min(per_person / math.sqrt(people), 1.0):.3f}", str(mechanism.bits), needed
        )
    Console(stderr=True, highlight=False).print(table)


def _toml(
    name: str,
    kind: str,
    labels: list[str],
    sensitive: list[str],
    block_of: dict[str, str],
    epsilon: str,
) -> str:
    def listed(values: list[str]) -> str:
        return "[" + ", ".join(map(_quoted, values)) + "]"

    lines = [
        f"name = {_quoted(name)}  # unique per question",
        'title = ""',
        "",
        "[domain]",
        'kind = "labels"',
        f"labels = {listed(labels)}",
    ]
    lines += ["", "[context]", f'kind = "{kind}"', f"epsilon = {_number(epsilon)}"]
    if kind == "high-low":
        lines.append(f"sensitive = {listed(sensitive)}")
    if kind == "blocks":
        lines.append(f"block_of = {listed([block_of[label] for label in labels])}")
    return "\n".join(lines) + "\n"
