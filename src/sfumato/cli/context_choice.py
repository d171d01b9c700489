"""The context of a new survey, as the options of `sfumato init` describe it."""

import re
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import typer

from sfumato.cli.column_labels import ColumnRequest, as_known_label
from sfumato.cli.console import notify
from sfumato.cli.label_notes import list_labels
from sfumato.cli.options import split_labels
from sfumato.cli.predicted_error import print_predicted_errors
from sfumato.errors import InvalidArgument
from sfumato.foundation.formatting import format_percent, printable

if TYPE_CHECKING:
    from sfumato.contexts import Context
    from sfumato.domains import Label
    from sfumato.mechanisms import Mechanism
    from sfumato.tables import ColumnSummary
    from sfumato.tables.proposed_domain import ProposedDomain

_MIN_LABELS_FOR_SHARE = 4  # with fewer sensitive labels, their share does not affect the mechanism


class ContextOptions(NamedTuple):
    """The options that describe the context and its mechanism, as typed."""

    epsilon: str
    sensitive: list[str] | None
    sensitive_share: str | None
    blocks: str | None


class ContextChoice(NamedTuple):
    """The context of the survey, its mechanism, and how many people a useful result needs.

    ``mechanism_options`` are the fields of the section ``[mechanism]``.
    """

    context: "Context"
    mechanism: "Mechanism"
    mechanism_options: Mapping[str, object]
    people_needed: int


def choose_context(
    request: ColumnRequest,
    proposal: "ProposedDomain",
    summary: "ColumnSummary",
    options: ContextOptions,
    file_name: str,
) -> ContextChoice:
    """Compare the contexts that the options describe, and return the most specific one."""
    from sfumato.contexts import Blocks, HighLow, Uniform

    epsilon = options.epsilon
    blocks = options.blocks
    if options.sensitive and blocks is not None:
        raise InvalidArgument("choose either --sensitive or --blocks, not both.")
    domain = proposal.domain
    contexts: list[Context] = [Uniform(domain, epsilon)]
    answers = _ask_sensitive(options.sensitive, blocks, proposal)
    sensitive_labels = _sensitive_labels(answers, domain.labels)
    share = _parse_share(options.sensitive_share, sensitive_labels)
    if sensitive_labels:
        _require_known(sensitive_labels, proposal)
        contexts.append(HighLow(domain, sensitive_labels, epsilon))
    elif blocks is not None:
        block_of = _read_blocks(request, blocks, summary, domain.labels)
        contexts.append(Blocks(block_of, epsilon, domain=domain))
    mechanisms = {context.kind: _choose_mechanism(context, share) for context in contexts}
    people_needed = print_predicted_errors(mechanisms, proposal.counts)
    context = contexts[-1]
    if len(contexts) > 1:
        notify(
            f"{printable(file_name)} uses {context.kind}, the last row above. To change it, "
            "edit the file."
        )
    if sensitive_labels:
        _print_share(share, sensitive_labels)
        _print_unprotected(sensitive_labels, proposal)
    mechanism_options = {} if share is None else {"sensitive_share": share}
    return ContextChoice(context, mechanisms[context.kind], mechanism_options, people_needed)


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
        notify(list_labels(proposal))
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
                label = as_known_label(text if text in labels else text.strip(), labels)
                sensitive.append(label)
    return sensitive


def _require_known(sensitive: "Sequence[Label]", proposal: "ProposedDomain") -> None:
    """Reject sensitive labels that are not among the labels, without showing anyone's answer."""
    for label in sensitive:
        if label not in proposal.domain.labels:
            raise InvalidArgument(
                f"--sensitive: {printable(str(label))!r} is not a label. {list_labels(proposal)}"
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
    request: ColumnRequest, block_column: str, summary: "ColumnSummary", labels: "Sequence[Label]"
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
