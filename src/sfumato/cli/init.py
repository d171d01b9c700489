"""`sfumato init`: write a survey file, from a template or from a column of answers."""

import re
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from sfumato.cli.advice import MIN_PEOPLE_PER_LABEL
from sfumato.cli.answers import (
    AnswerOptions,
    Delimiter,
    MissingCodes,
    Sheet,
    describe_columns_of,
    require_few_numbers,
)
from sfumato.cli.console import notify, say, show_row_count
from sfumato.cli.options import check_output_paths, split_labels
from sfumato.cli.survey_text import TEMPLATES, About, ContextText, fill_template, survey_text
from sfumato.errors import InvalidArgument, InvalidSetting, InvalidTable, UnknownValue
from sfumato.foundation.formatting import format_percent, plural, printable

if TYPE_CHECKING:
    from sfumato.contexts import Context
    from sfumato.domains import Label
    from sfumato.mechanisms import Mechanism
    from sfumato.survey import AnswerColumns, DatePart
    from sfumato.tables import ColumnSummary
    from sfumato.tables.proposed_domain import ProposedDomain

_MAX_PLAIN_NUMBERS = 20  # for more numbers, ranges are better
_MAX_LISTED_LABELS = 20
_MAX_PEOPLE_FACTOR = 1000  # a survey that needs this many times the rows is useless
_TARGET_ERROR = 0.05
_MAX_SHOWN_GROUPS = 3
_MIN_LABELS_FOR_SHARE = 4  # with fewer sensitive labels, their share does not affect the mechanism


def init(
    output: Annotated[
        str, typer.Argument(metavar="SURVEY", help="Survey file to write.")
    ] = "survey.toml",
    template: Annotated[
        str | None,
        typer.Option(
            autocompletion=lambda: list(TEMPLATES), help=f"One of {', '.join(TEMPLATES)}."
        ),
    ] = None,
    answers: Annotated[
        str | None, typer.Option("--from", help="Data file whose answers become the labels.")
    ] = None,
    column: Annotated[str | None, typer.Option(help="Column with the answers.")] = None,
    sensitive: Annotated[
        list[str] | None,
        typer.Option(
            help=(
                "Sensitive labels, separated by commas. Put a label with a comma in double quotes. "
                "You may use the option several times."
            )
        ),
    ] = None,
    sensitive_share: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help=(
                "About which share of people have a sensitive label, such as 0.1. The survey file "
                "is public: take common knowledge or a guess, not the share in your data."
            ),
        ),
    ] = None,
    blocks: Annotated[
        str | None, typer.Option(help="Column with the block of each answer.")
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(help="Labels in your order, separated by commas. Default: all answers."),
    ] = None,
    bins: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBERS",
            help="For numbers: cut points such as 18,30,45,60, or a number of bins such as 10.",
        ),
    ] = None,
    date: Annotated[
        str | None,
        typer.Option(
            metavar="day|weekday|hour|month",
            help="For dates: the part that is asked.",
            autocompletion=lambda: ["day", "weekday", "hour", "month"],
        ),
    ] = None,
    date_format: Annotated[
        str | None, typer.Option(help="Format of dates in text, such as %d.%m.%Y. Default: ISO.")
    ] = None,
    missing: Annotated[
        str | None,
        typer.Option(
            metavar="refuse|skip|LABEL",
            autocompletion=lambda: ["refuse", "skip"],
            help=(
                "What to do with rows without an answer: refuse the table, leave them out, or "
                "count them as a label. Default: a label 'no answer', if there are such rows."
            ),
        ),
    ] = None,
    missing_codes: MissingCodes = None,
    other: Annotated[
        str | None, typer.Option(help="Label for answers that are not among the labels.")
    ] = None,
    allow_other: Annotated[
        bool,
        typer.Option("--allow-other", help="Accept that most answers count as the --other label."),
    ] = False,
    delimiter: Delimiter = None,
    sheet: Sheet = None,
    epsilon: Annotated[
        str, typer.Option(help="The ε of the promise: smaller values protect answers better.")
    ] = "1.0",
    title: Annotated[str | None, typer.Option(help="The question, as people read it.")] = None,
    contact: Annotated[str | None, typer.Option(help="Contact for questions.")] = None,
    minimum_reports: Annotated[
        int | None, typer.Option(min=0, help="Smallest number of reports for a result.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    force_labels: Annotated[
        bool,
        typer.Option("--force-labels", help="Accept more labels than can give a useful result."),
    ] = False,
) -> None:
    """Write a survey file, from a template or from a column of answers.

    With --from, also prints the expected error for each kind of promise. The file remembers how to
    read the table, so privatize needs no further options.

    Examples:
      sfumato init --template yes-no survey.toml

      sfumato init --from answers.csv --column place --sensitive clinic,bar survey.toml

      sfumato init --from answers.csv --column street --blocks city survey.toml

      sfumato init --from people.xlsx --column age --bins 18,30,45,60 survey.toml

      sfumato init --from visits.csv --delimiter ';' --column day --date weekday survey.toml

    """
    path = Path(output)
    _check_output(path, force=force)
    if template is not None and answers is None:
        context_options = (sensitive, sensitive_share, blocks)
        column_options = (column, *context_options, labels, bins, date, date_format)
        cell_options = (missing, missing_codes, other, allow_other, delimiter, sheet)
        _reject_table_options(*column_options, *cell_options)
        about = About(unique_name(path), title or "", contact or "", minimum_reports or 0)
        text = fill_template(template, epsilon, about)
        next_step = f"Next: edit it, then run sfumato verify {output}"
    elif template is None and answers is not None:
        columns = _answer_columns(column, date, date_format)
        formats = AnswerOptions(missing_codes=missing_codes, delimiter=delimiter, sheet=sheet)
        columns = replace(formats.with_formats(columns), allow_other=allow_other)
        if column is None:
            raise InvalidArgument(
                f"--from requires --column, the column with the answers"
                f"{describe_columns_of(answers, columns)}"
            )
        request = _Request(answers, columns, labels, bins, missing, other, force_labels)
        proposal, summary = _propose(request)
        options = _ContextOptions(epsilon, sensitive, sensitive_share, blocks)
        promise = _choose_context(request, proposal, summary, options, path.name)
        _print_notes(request, proposal, summary)
        if not force_labels:
            _require_useful(promise, proposal, request)
        about = _ask_about(unique_name(path), title, contact, minimum_reports)
        text = survey_text(about, proposal.domain, proposal.columns, promise.text)
        next_step = f"Next: sfumato privatize {output} {answers} -o reports.parquet"
    else:
        raise InvalidArgument(
            f"pass either --template (one of {', '.join(TEMPLATES)}) or --from with a data file."
        )
    _write_survey(text, path)
    say(f"Wrote {output}. {next_step}")


def _reject_table_options(*options: object) -> None:
    if any(options):
        raise InvalidArgument(
            "--column, --sensitive, --blocks and the other options for a table require --from. "
            "To adapt a template, edit the file that it creates."
        )


def _check_output(path: Path, *, force: bool) -> None:
    from sfumato.survey.content import has_resolved_name, has_table_name

    check_output_paths(str(path))
    if has_resolved_name(path):
        raise InvalidSetting(
            f"{path.name} would be read as a resolved survey. Choose a different extension."
        )
    if has_table_name(path):
        raise InvalidSetting(
            f"{path.name} would be read as a table. Choose a name that ends in .toml."
        )
    if path.exists() and not force:
        raise InvalidSetting(f"{path} already exists. Choose a different name, or pass --force.")


def unique_name(path: Path) -> str:
    """Return the file's name without its extension, plus a random suffix.

    Two surveys with the same name and promise would accept each other's reports.
    """
    import secrets

    return f"{path.stem[:80]}-{secrets.token_hex(3)}"


def _write_survey(text: str, path: Path) -> None:
    """Write a survey file. Reject text that Sfumato could not read back as one."""
    from sfumato.foundation.files import write_atomically
    from sfumato.survey import Survey
    from sfumato.survey.content import require_toml
    from sfumato.survey.toml.file import parse_survey_toml

    content = text.encode("utf-8")
    require_toml(content, path)
    description = parse_survey_toml(content, path.parent)
    Survey.from_description(description, description.mechanism)
    write_atomically(path, content)


def _ask_about(
    name: str, title: str | None, contact: str | None, minimum_reports: int | None
) -> About:
    """Return what the survey shows to people. On a terminal, ask for what is not given."""
    if sys.stdin.isatty():
        if title is None:
            title = typer.prompt("The question, as people will read it", default="")
        if contact is None:
            contact = typer.prompt("Contact for questions", default="")
        if minimum_reports is None:
            minimum_reports = typer.prompt(
                "Smallest number of reports for a result", default=0, type=int
            )
    return About(name, title or "", contact or "", minimum_reports or 0)


# --- labels for a column of answers ---------------------------------------------------------------


class _Request(NamedTuple):
    """What the options say about the table and its labels."""

    path: str
    columns: "AnswerColumns"
    labels: str | None
    bins: str | None
    missing: str | None
    other: str | None
    force_labels: bool


def _answer_columns(
    column: str | None, date: str | None, date_format: str | None
) -> "AnswerColumns":
    from sfumato.survey import AnswerColumns

    date_part: DatePart | None = date  # type: ignore[assignment]
    return AnswerColumns(column, date=date_part, date_format=date_format)


def _propose(request: _Request) -> tuple["ProposedDomain", "ColumnSummary"]:
    """Read the column, and return labels for it, and its summary."""
    summary = _read_column(request)
    if not request.force_labels:
        _require_few_numbers(request, summary)
    proposal = _propose_labels(request, summary)
    _require_rows(request, proposal)
    _require_two_labels(proposal, summary)
    return proposal, summary


def _read_column(request: _Request) -> "ColumnSummary":
    from sfumato.tables import summarize_column

    if request.path == "-":
        raise InvalidArgument("--from requires a file, not standard input.")
    if request.labels is not None and (request.bins or request.columns.date):
        raise InvalidArgument("choose one of --labels, --bins and --date.")
    with show_row_count("reading") as on_rows:
        return summarize_column(request.path, request.columns, on_progress=on_rows)


def _propose_labels(request: _Request, summary: "ColumnSummary") -> "ProposedDomain":
    from sfumato.tables.proposed_domain import propose_domain

    column_labels = list(summary.label_counts()) if summary.counts else []

    def find_label(text: str | None) -> "Label | None":
        return None if text is None else _as_known_label(text, column_labels)

    cuts, bin_count = _parse_bins(request.bins)
    columns = replace(request.columns, bins=cuts)
    if request.missing is not None:
        columns = replace(columns, missing=find_label(request.missing))
    labels = [_as_known_label(text, column_labels) for text in split_labels(request.labels or "")]
    return propose_domain(
        summary, columns, labels=labels, bin_count=bin_count, other=find_label(request.other)
    )


def _require_rows(request: _Request, proposal: "ProposedDomain") -> None:
    """Reject a table that privatize would refuse, with the same words.

    The table is read again, because the summary of a column does not know where its cells are.
    """
    from sfumato.survey import RowRules
    from sfumato.tables import RowCounter, answer_batches

    rules = RowRules(proposal.domain, proposal.columns)
    with suppress(UnknownValue):
        rules.check(proposal.row_counts)
        rules.check_other_share(proposal.row_counts)
        return
    counter = RowCounter(proposal.domain, proposal.columns)
    for batch in answer_batches(request.path, proposal.columns, proposal.domain):
        counter.add(request.path, batch.counts)
    counter.check()


def _require_two_labels(proposal: "ProposedDomain", summary: "ColumnSummary") -> None:
    if proposal.domain.size < 2:
        raise InvalidTable(
            f"column {summary.name!r} must contain at least two distinct answers; got "
            f"{plural(proposal.domain.size, 'label')}."
        )


def _parse_bins(bins: str | None) -> tuple[tuple[float, ...], int | None]:
    """Return the cut points and the number of bins; only one of them is given."""
    if bins is None:
        return (), None
    try:
        if "," not in bins:
            return (), int(bins)
        return tuple(float(number) for number in bins.split(",")), None
    except ValueError:
        raise InvalidArgument(
            "--bins must be cut points such as 18,30,45,60, or a number of bins such as 10."
        ) from None


def _as_known_label(text: str, labels: "Sequence[Label]") -> "Label":
    """Return the label that ``text`` stands for: itself, or an integer that is a label."""
    if text not in labels and text.removeprefix("-").isdecimal() and int(text) in labels:
        return int(text)
    return text


def _require_few_numbers(request: _Request, summary: "ColumnSummary") -> None:
    """Reject a column of numbers that was probably not meant as a list of labels."""
    if request.labels or request.bins or request.columns.date:
        return
    require_few_numbers(
        summary,
        "Pass --bins, such as --bins 10 or --bins 18,30,45,60. To use every number as a label all "
        "the same, pass --force-labels.",
    )


# --- the promise ----------------------------------------------------------------------------------


class _ContextOptions(NamedTuple):
    """The options that describe the context and its mechanism, as typed."""

    epsilon: str
    sensitive: list[str] | None
    sensitive_share: str | None
    blocks: str | None


class _Promise(NamedTuple):
    """The context section of the file, and how many people a useful result needs."""

    text: ContextText
    people_needed: int


def _choose_context(
    request: _Request,
    proposal: "ProposedDomain",
    summary: "ColumnSummary",
    options: _ContextOptions,
    file_name: str,
) -> _Promise:
    """Compare the contexts that the options describe, and return the most specific one."""
    from sfumato.contexts import Blocks, HighLow, Uniform

    epsilon = options.epsilon
    blocks = options.blocks
    if options.sensitive and blocks is not None:
        raise InvalidArgument("choose either --sensitive or --blocks, not both.")
    domain = proposal.domain
    contexts: dict[str, Context] = {"uniform": Uniform(domain, epsilon)}
    fields: Mapping[str, Sequence[Label]] = {}
    answers = _ask_sensitive(options.sensitive, blocks, proposal)
    sensitive_labels = _sensitive_labels(answers, domain.labels)
    share = _parse_share(options.sensitive_share, sensitive_labels)
    if sensitive_labels:
        _require_known(sensitive_labels, proposal)
        contexts["high-low"] = HighLow(domain, sensitive_labels, epsilon)
        fields = {"sensitive": sensitive_labels}
    elif blocks is not None:
        block_of = _read_blocks(request, blocks, summary, domain.labels)
        contexts["blocks"] = Blocks(block_of, epsilon, domain=domain)
        fields = {"block_of": block_of}
    people_needed = _print_predicted_errors(contexts, share, proposal.counts)
    kind = list(contexts)[-1]
    if len(contexts) > 1:
        notify(
            f"{printable(file_name)} uses {kind}, the last row above. To change it, edit the file."
        )
    if sensitive_labels:
        _print_share(share, sensitive_labels)
        _print_unprotected(sensitive_labels, proposal)
    share_text = options.sensitive_share or ""
    return _Promise(ContextText(kind, epsilon, fields, share_text), people_needed)


def _parse_share(text: str | None, sensitive: "Sequence[Label]") -> float | None:
    """Return the share of people with a sensitive label, or ``None`` if it was not passed."""
    if text is None:
        return None
    if not sensitive:
        raise InvalidArgument("--sensitive-share requires --sensitive.")
    share = float(text) if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) else -1.0
    if not 0 <= share <= 1:
        raise InvalidArgument(
            f"--sensitive-share must be a decimal number from 0 to 1, such as 0.1; got {text!r}."
        )
    return share


def _print_share(share: float | None, sensitive: "Sequence[Label]") -> None:
    """Say that the mechanism does not depend on the table, and where its share comes from.

    The mechanism is public. If it depended on the share in the table, it would reveal it, without
    any protection.
    """
    if share is not None:
        notify(
            f"The mechanism is made for a crowd in which {format_percent(share)} of people have a "
            "sensitive label. The survey file shows this number; your data was not used for it."
        )
    elif len(sensitive) >= _MIN_LABELS_FOR_SHARE:
        notify(
            "The mechanism is made for an unknown share of people with a sensitive label; your "
            "data was not used for it. If you know the share roughly from elsewhere, pass "
            "--sensitive-share, such as --sensitive-share 0.1."
        )


def _ask_sensitive(
    sensitive: list[str] | None, blocks: str | None, proposal: "ProposedDomain"
) -> list[str]:
    if sensitive is None and blocks is None and sys.stdin.isatty():
        notify(_list_labels(proposal))
        return [
            typer.prompt(
                "Sensitive labels (separated by commas; empty if all are equally sensitive)",
                default="",
            )
        ]
    return sensitive or []


def _sensitive_labels(options: Iterable[str], labels: "Sequence[Label]") -> "list[Label]":
    sensitive: list[Label] = []
    for option in options:
        for text in split_labels(option):
            if text.strip():
                label = _as_known_label(text if text in labels else text.strip(), labels)
                sensitive.append(label)
    return sensitive


def _list_labels(proposal: "ProposedDomain") -> str:
    """List the labels, except those that could identify someone."""
    labels = _common_labels(proposal)
    texts = [repr(printable(str(label))) for label in labels[:_MAX_LISTED_LABELS]]
    hidden_count = proposal.domain.size - len(texts)
    if not texts:
        return f"There are {proposal.domain.size:,} labels; each was given by few people."
    more = f", and {hidden_count:,} more" if hidden_count else ""
    return f"The labels are {', '.join(texts)}{more}."


def _common_labels(proposal: "ProposedDomain") -> "list[Label]":
    """Return the labels that do not come from the answers of a few people."""
    labels = list(proposal.domain.labels)
    if proposal.columns.bins or proposal.columns.date is not None:
        return labels
    own_labels = (proposal.columns.missing, proposal.domain.other)
    common = []
    for label, count in zip(labels, proposal.counts, strict=True):
        if count >= MIN_PEOPLE_PER_LABEL or label in own_labels:
            common.append(label)
    return common


def _require_known(sensitive: "Sequence[Label]", proposal: "ProposedDomain") -> None:
    """Reject sensitive labels that are not among the labels, without showing anyone's answer."""
    for label in sensitive:
        if label not in proposal.domain.labels:
            raise InvalidArgument(
                f"--sensitive: {printable(str(label))!r} is not a label. {_list_labels(proposal)}"
            )


def _print_unprotected(sensitive: "Sequence[Label]", proposal: "ProposedDomain") -> None:
    """Say that the label for missing answers, which nobody typed, is not protected."""
    from sfumato.tables.proposed_domain import NO_ANSWER

    missing = proposal.columns.missing
    if missing != NO_ANSWER or missing in sensitive:
        return
    texts = [f'"{label}"' if "," in str(label) else str(label) for label in sensitive]
    labels = ",".join([*texts, missing])
    notify(
        f"{missing!r} is not protected: a report shows that a person gave no answer. To protect "
        f"it, pass --sensitive {shlex.quote(printable(labels))}"
    )


def _read_blocks(
    request: _Request, block_column: str, summary: "ColumnSummary", labels: "Sequence[Label]"
) -> "list[Label]":
    """Return the block of each label. A label without rows is alone in a block of its own name."""
    from sfumato.tables import read_blocks

    block_of = read_blocks(request.path, request.columns, block_column, summary)
    return [block_of.get(label, str(label)) for label in labels]


def _choose_mechanism(context: "Context", sensitive_share: float | None) -> "Mechanism":
    """Return the mechanism that the survey file leads to. The share is for high-low contexts."""
    from sfumato.designer import mechanism_for
    from sfumato.survey.description import WORST_CASE_MARGINS

    if sensitive_share is not None and context.as_high_low is not None:
        return mechanism_for(context, sensitive_share=sensitive_share)
    return mechanism_for(context, worst_case_margin=WORST_CASE_MARGINS[2])


def _print_predicted_errors(
    contexts: "dict[str, Context]", sensitive_share: float | None, counts: Sequence[int]
) -> int:
    """Print the expected error for each context, and return the people needed for the last.

    The errors are those of the unbiased estimate. Decoders do better, especially if it is large.
    """
    import math

    import numpy as np
    from rich.console import Console
    from rich.table import Table

    people = sum(counts)
    p = np.array(counts) / people
    table = Table(
        "promise",
        "share of people counted under the wrong label",
        "bits per report",
        f"people needed for {format_percent(_TARGET_ERROR)}",
    )
    people_needed = 0
    for kind, context in contexts.items():
        mechanism = _choose_mechanism(context, sensitive_share)
        # Estimates are nearly normal, so their mean absolute error is √(2/π) standard deviations.
        standard_deviations = np.sqrt(mechanism.scores.variances(p, 1))
        one_person_error = math.sqrt(2 / math.pi) * float(standard_deviations.sum()) / 2
        error = min(one_person_error / math.sqrt(people), 1.0)
        people_needed = math.ceil((one_person_error / _TARGET_ERROR) ** 2)
        table.add_row(kind, f"{100 * error:.1f}%", str(mechanism.bits), f"{people_needed:,}")
    Console(stderr=True, highlight=False).print(table)
    return people_needed


def _require_useful(promise: _Promise, proposal: "ProposedDomain", request: _Request) -> None:
    remedy = "--bins, --labels with --other"
    if request.columns.date is not None:
        remedy = "--date month or --date weekday"
    rows = sum(proposal.counts)
    if promise.people_needed > _MAX_PEOPLE_FACTOR * rows:
        raise InvalidTable(
            f"with {proposal.domain.size:,} labels, a useful result needs about "
            f"{promise.people_needed:,} people, more than {_MAX_PEOPLE_FACTOR:,} times the "
            f"{rows:,} in this table. Use fewer labels ({remedy}), or pass --force-labels."
        )


# --- notes ----------------------------------------------------------------------------------------


def _print_notes(request: _Request, proposal: "ProposedDomain", summary: "ColumnSummary") -> None:
    """Print what became of the rows, and point out labels that may be wrong."""
    from sfumato.survey import RowRules

    rules = RowRules(proposal.domain, proposal.columns)
    counts = proposal.row_counts
    if summary.note and request.columns.sheet is None:
        notify(summary.note)
    notify(rules.describe(counts))
    warning = rules.warning(counts)
    if warning:
        notify(f"Warning: {warning}")
    if request.missing is None:
        _print_missing_codes(summary)
    _print_similar_labels(proposal)
    _print_rare_labels(proposal)
    if not (request.labels or request.bins or request.columns.date):
        _print_better_labels(summary)


def _print_missing_codes(summary: "ColumnSummary") -> None:
    missing_texts = summary.missing_texts()
    if not missing_texts:
        return
    texts = ", ".join(map(repr, map(printable, missing_texts)))
    value = shlex.quote(",".join(map(printable, missing_texts)))
    notify(
        f"These labels look like codes for a missing answer: {texts}. If they are, pass "
        f"--missing-codes={value}"
    )


def _print_similar_labels(proposal: "ProposedDomain") -> None:
    from sfumato.tables import similar_labels

    groups = similar_labels(proposal.domain.labels)
    if not groups:
        return
    common_labels = set(_common_labels(proposal))
    examples = []
    for group in groups:
        if common_labels.issuperset(group):
            examples.append(", ".join(repr(printable(str(label))) for label in group))
    shown = "; ".join(examples[:_MAX_SHOWN_GROUPS])
    more = ", …" if shown and len(groups) > _MAX_SHOWN_GROUPS else ""
    notify(
        f"{plural(len(groups), 'group')} of labels differ only by case, spaces or the way a number "
        f"is written{': ' if shown else ''}{shown}{more}. Correct the table."
    )


def _print_better_labels(summary: "ColumnSummary") -> None:
    """Recommend ranges for many numbers, and parts of dates for dates."""
    if summary.is_numeric and len(summary.counts) > _MAX_PLAIN_NUMBERS:
        notify(
            f"The labels are {len(summary.counts):,} numbers. For ranges, which need fewer people, "
            "pass --bins, such as --bins 10."
        )
    elif summary.kinds == {"dates"}:
        notify("The labels are dates. For a part of them, pass --date, such as --date weekday.")


def _print_rare_labels(proposal: "ProposedDomain") -> None:
    if proposal.columns.bins or proposal.columns.date is not None:
        return  # these labels do not come from single answers
    own_labels = (proposal.columns.missing, proposal.domain.other)
    rare_count = 0
    for label, count in zip(proposal.domain.labels, proposal.counts, strict=True):
        if 0 < count < MIN_PEOPLE_PER_LABEL and label not in own_labels:
            rare_count += 1
    if rare_count:
        verb = "was" if rare_count == 1 else "were"
        notify(
            f"A survey file is public. {rare_count:,} of its {proposal.domain.size:,} labels "
            f"{verb} given by fewer than {MIN_PEOPLE_PER_LABEL} people in this data. Remove labels "
            "that could identify someone, and add an `other` label to the domain."
        )
