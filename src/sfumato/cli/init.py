"""`sfumato init`: write a survey file, from a template or from a column of answers."""

import sys
from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.console import notify, say
from sfumato.cli.options import check_output_paths, split_labels
from sfumato.errors import InvalidArgument, InvalidSetting, InvalidTable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sfumato.contexts import Context

_MIN_PEOPLE_PER_LABEL = 10  # an answer given by fewer people may identify someone

TEMPLATES = {
    "yes-no": """name = "my-survey"                 # unique per question
edition = 2
title = "Have you ever …?"

[domain]
kind = "labels"
labels = ["no", "yes"]

[context]
kind = "high-low"                  # only "yes" needs protection
epsilon = 1.0
sensitive = ["yes"]
""",
    "labels": """name = "my-survey"                 # unique per question
edition = 2
title = "Where did you have lunch?"

[domain]
kind = "labels"
labels = ["park", "café", "clinic", "bar", "office"]
other = "somewhere else"           # replaces unknown values; without it, they are rejected

[context]
kind = "high-low"                  # uniform | high-low | tiers | blocks | metric | matrix
epsilon = 1.0
sensitive = ["clinic", "bar"]
""",
    "grid": """name = "my-survey"                 # unique per question
edition = 2
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
        str, typer.Argument(metavar="SURVEY", help="Survey file to write.")
    ] = "survey.toml",
    template: Annotated[str | None, typer.Option(help=f"One of {', '.join(TEMPLATES)}.")] = None,
    answers: Annotated[
        str | None, typer.Option("--from", help="Data file whose answers become the labels.")
    ] = None,
    column: Annotated[str | None, typer.Option(help="Column with the answers.")] = None,
    sensitive: Annotated[
        str | None, typer.Option(help="Sensitive labels, separated by commas.")
    ] = None,
    blocks: Annotated[
        str | None, typer.Option(help="Column with the block of each answer.")
    ] = None,
    epsilon: Annotated[
        str, typer.Option(help="The ε of the promise: smaller values protect answers better.")
    ] = "1.0",
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Write a survey file, from a template or from a column of answers.

    With --from, also prints the expected error for each kind of promise.

    Examples:
      sfumato init --template yes-no survey.toml

      sfumato init --from answers.csv --column place --sensitive clinic,bar survey.toml

      sfumato init --from answers.csv --column street --blocks city survey.toml

    """
    from pathlib import Path

    from sfumato.foundation.files import write_atomically

    check_output_paths(output)
    path = Path(output)
    if path.suffix == ".json":
        raise InvalidSetting(
            f"{path.name} would be read as a resolved survey. Choose a different extension."
        )
    if path.exists() and not force:
        raise InvalidSetting(f"{output} already exists. Choose a different name, or pass --force.")
    if template is not None and answers is None:
        if (column, sensitive, blocks) != (None, None, None):
            raise InvalidArgument(
                "--column, --sensitive and --blocks require --from. To adapt a template, edit the "
                "file that it creates."
            )
        text = _fill_template(template, epsilon, path)
    elif template is None and answers is not None:
        text = _survey_from_answers(answers, column, sensitive, blocks, epsilon, path)
    else:
        raise InvalidArgument(
            f"pass either --template (one of {', '.join(TEMPLATES)}) or --from with a data file."
        )
    _require_readable(text, path)
    write_atomically(output, text.encode("utf-8"))
    say(f"Wrote {output}. Next: sfumato verify {output}")


def _fill_template(template: str, epsilon: str, output: "Path") -> str:
    if template not in TEMPLATES:
        raise InvalidArgument(f"template must be one of {', '.join(TEMPLATES)}; got {template!r}.")
    text = TEMPLATES[template].replace("epsilon = 1.0", f"epsilon = {_format_number(epsilon)}")
    return text.replace('"my-survey"', _format_string(unique_name(output)))


def _require_readable(text: str, output: "Path") -> None:
    """Reject text that Sfumato could not read back as a survey file."""
    from sfumato.survey import Survey
    from sfumato.survey.toml.file import parse_survey_toml

    description = parse_survey_toml(text.encode("utf-8"), output.parent)
    Survey.from_description(description, description.mechanism)


def _format_number(number: str) -> str:
    """Format a number for TOML, as a string if it is not a valid TOML number."""
    import re

    is_toml_number = re.fullmatch(r"[0-9]|[1-9][0-9]+|([0-9]|[1-9][0-9]+)\.[0-9]+", number)
    return number if is_toml_number else _format_string(number)


def _format_string(text: str) -> str:
    """Format text as a TOML string, which is a JSON string in which DEL is escaped too."""
    import json

    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _survey_from_answers(
    answers: str,
    column: str | None,
    sensitive: str | None,
    blocks: str | None,
    epsilon: str,
    output: "Path",
) -> str:
    from sfumato.contexts import Blocks, HighLow, Uniform

    if column is None:
        raise InvalidArgument("--from requires --column, the column with the answers.")
    if sensitive is not None and blocks is not None:
        raise InvalidArgument("choose either --sensitive or --blocks, not both.")
    counts, block_of = _read_answers(answers, column, blocks)
    labels = sorted(counts)
    if len(labels) < 2:
        raise InvalidTable(
            f"column {column!r} must contain at least two distinct answers; got {len(labels)}."
        )
    if sensitive is None and blocks is None and sys.stdin.isatty():
        sensitive = typer.prompt(
            "Sensitive labels (separated by commas; empty if all are equally sensitive)", default=""
        )
    sensitive_labels = []
    for label in split_labels(sensitive or ""):
        if label.strip():
            sensitive_labels.append(label if label in counts else label.strip())
    contexts: dict[str, Context] = {"uniform": Uniform(labels, epsilon)}
    if sensitive_labels:
        contexts["high-low"] = HighLow(labels, sensitive_labels, epsilon)
    if block_of:
        contexts["blocks"] = Blocks([block_of[label] for label in labels], epsilon, domain=labels)
    _print_predicted_errors(contexts, [counts[label] for label in labels])
    kind = list(contexts)[-1]
    notify(f"The file uses the last context in the table, {kind}. To change it, edit the file.")
    rare_count = sum(count < _MIN_PEOPLE_PER_LABEL for count in counts.values())
    if rare_count:
        notify(
            f"A survey file is public. {rare_count} of its {len(labels)} labels were given by "
            f"fewer than {_MIN_PEOPLE_PER_LABEL} people in this data. Remove labels that could "
            "identify someone, and add an `other` label to the domain."
        )
    return _survey_toml(unique_name(output), kind, labels, sensitive_labels, block_of, epsilon)


def unique_name(path: "Path") -> str:
    """Return the file's name without its extension, plus a random suffix.

    Two surveys with the same name and promise would accept each other's reports.
    """
    import secrets

    return f"{path.stem[:80]}-{secrets.token_hex(3)}"


def _read_answers(
    path: str, column: str, block_column: str | None
) -> tuple[Counter[str], dict[str, str]]:
    """Return how often each answer occurs, and the block of each answer.

    If ``block_column`` is ``None``, no blocks are returned.
    """
    from sfumato.tables import label_texts, open_table

    if path == "-":
        raise InvalidArgument("--from requires a file, not standard input.")
    counts: Counter[str] = Counter()
    block_of: dict[str, str] = {}
    columns = [column, block_column] if block_column else [column]
    with open_table(path) as table:
        for batch in table.batches(dict.fromkeys(columns)):
            values = label_texts(batch.column(column), column)
            counts.update(value for value in values if value is not None)
            if block_column:
                blocks = label_texts(batch.column(block_column), block_column)
                _add_blocks(values, blocks, block_of, f"column {column!r}")
    return counts, block_of


def _add_blocks(
    values: "Sequence[str | None]",
    blocks: "Sequence[str | None]",
    block_of: dict[str, str],
    location: str,
) -> None:
    """Add the block of each value to ``block_of``; reject a value with no block or with two."""
    for value, block in zip(values, blocks, strict=True):
        if value is None:
            continue
        if block is None:
            raise InvalidTable(f"an answer in {location} has no block. Each answer must have one.")
        if block_of.setdefault(value, block) != block:
            raise InvalidTable(
                f"an answer in {location} is in two blocks. Each answer must be in one block."
            )


def _print_predicted_errors(contexts: "dict[str, Context]", counts: list[int]) -> None:
    """Print the expected error of the unbiased estimate for each context.

    Decoders do better, especially if the error is large.
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
        "expected error (total variation, unbiased)",
        "bits",
        "people needed for an error of 0.05",
    )
    for kind, context in contexts.items():
        mechanism = mechanism_for(context)
        # Estimates are nearly normal, so their mean absolute error is √(2/π) standard deviations.
        standard_deviations = np.sqrt(mechanism.scores.variances(p, 1))
        one_person_error = math.sqrt(2 / math.pi) * float(standard_deviations.sum()) / 2
        error = min(one_person_error / math.sqrt(people), 1.0)
        people_needed = math.ceil((one_person_error / 0.05) ** 2)
        table.add_row(kind, f"{error:.3f}", str(mechanism.bits), f"{people_needed:,}")
    Console(stderr=True, highlight=False).print(table)


def _survey_toml(
    name: str,
    kind: str,
    labels: list[str],
    sensitive: list[str],
    block_of: dict[str, str],
    epsilon: str,
) -> str:
    def format_array(values: list[str]) -> str:
        return "[" + ", ".join(map(_format_string, values)) + "]"

    lines = [
        f"name = {_format_string(name)}  # unique per question",
        "edition = 2",
        'title = ""',
        "",
        "[domain]",
        'kind = "labels"',
        f"labels = {format_array(labels)}",
    ]
    lines += ["", "[context]", f'kind = "{kind}"', f"epsilon = {_format_number(epsilon)}"]
    if kind == "high-low":
        lines.append(f"sensitive = {format_array(sensitive)}")
    if kind == "blocks":
        lines.append(f"block_of = {format_array([block_of[label] for label in labels])}")
    return "\n".join(lines) + "\n"
