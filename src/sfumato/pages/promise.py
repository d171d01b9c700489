"""A context's promise in words: sentences for the reader, and facts for a table."""

import math
from collections.abc import Sequence

import numpy as np

from sfumato.contexts import (
    ComparisonScope,
    Context,
    ContextUnion,
    GroupedContext,
    PromiseRow,
    describe,
)
from sfumato.domains import Label
from sfumato.foundation.arrays import Symbols
from sfumato.foundation.formatting import format_count, format_epsilon, format_odds_factor
from sfumato.foundation.formatting import plural as plural  # other pages import it from here
from sfumato.randomness import Epsilon, float_above

MAX_LABEL_LENGTH = 36
"""The maximum length of a label in a list or next to a bar, in characters."""

_MAX_LISTED_ANSWERS = 12
_MAX_LEVELS = 6  # if there are more, only the strongest and weakest get a sentence
_ANY_ODDS = "the odds of any answer against any other"
_BLOCK_DISCLOSURE = (
    "Between blocks nothing is promised: a report may reveal which block the answer is in."
)


def promise_sentences(context: Context) -> list[str]:
    """Return plain sentences that describe the promise, one idea each.

    >>> from sfumato.contexts import Uniform
    >>> odds = promise_sentences(Uniform(["no", "yes"], 1.0))[1]
    >>> odds.removeprefix("One report can move the odds of any answer against any other ")
    'from 1:1 to at most 2.72:1 (ε = 1).'
    """
    if math.isinf(context.smallest_epsilon):
        return ["Nothing is promised: a report may reveal the answer."]
    rows = describe(context)
    if context.as_union is not None:
        return _union_sentences(context, rows)
    scopes = {row.against for row in rows}
    if ComparisonScope.OTHER_BLOCKS in scopes:
        return _block_sentences(context, rows)
    if ComparisonScope.ANY_OTHER in scopes:
        return _answer_sentences(context, rows)
    return _pair_sentences(context, rows)


def promise_facts(context: Context) -> list[tuple[str, str]]:
    """Return the names and values for a table: what is promised, and for how many pairs."""
    facts = [
        ("Kind of promise", f"{context.kind}: {context.gist}"),
        ("Possible answers", format_count(context.size)),
    ]
    rows = describe(context)
    finite_rows = _select_finite(rows)
    pair_count = _count_pairs(rows)
    if pair_count:
        promised_count = _count_pairs(finite_rows)
        count_text = f"{format_count(promised_count)} of {format_count(pair_count)}"
        share_text = _percentage(promised_count, pair_count)
        facts.append(("Ordered pairs with a promise", f"{count_text} ({share_text})"))
        facts.append(("Ordered pairs without a promise", format_count(pair_count - promised_count)))
    smallest_epsilon = context.smallest_epsilon
    if math.isinf(smallest_epsilon):
        return [*facts, ("Strongest promise", "none: nothing is promised")]
    strongest = _epsilon_and_odds(smallest_epsilon)
    if not finite_rows:
        return [*facts, ("Strongest promise", strongest)]
    if finite_rows[-1].epsilon == context.exact_minimum:
        return [*facts, ("Every promise", strongest)]
    weakest = _epsilon_and_odds(round_up(finite_rows[-1].epsilon))
    return [*facts, ("Strongest promise", strongest), ("Weakest promise", weakest)]


def blocks_text(context: Context) -> str:
    """State the number and the sizes of the blocks, without a final full stop."""
    sizes = blocks_of(context).sizes
    min_size = format_count(int(sizes.min()))
    max_size = format_count(int(sizes.max()))
    size_text = max_size if min_size == max_size else f"{min_size} to {max_size}"
    count_text = plural(sizes.size, "block")
    return f"The {format_count(context.size)} answers are in {count_text} of {size_text}"


def blocks_of(context: Context) -> GroupedContext | ContextUnion:
    """Return the grouped context or union that lists the blocks of a context with blocks."""
    blocks = context.groups or context.as_union
    assert blocks is not None  # noqa: S101 - for the type checker
    return blocks


def describe_pairs(context: Context) -> str:
    """State how the promises for pairs of answers differ."""
    if context.is_metric:
        return "The closer two answers are, the harder they are to tell apart."
    return "Each pair of answers has its own promise."


# --- an answer against all others -----------------------------------------------------------------


def _answer_sentences(context: Context, rows: Sequence[PromiseRow]) -> list[str]:
    finite_rows = _select_finite(rows)
    if len(rows) == 1:
        return [
            "All answers are protected equally, each against every other.",
            f"One report {_describe_move(_ANY_ODDS, rows[0].epsilon)}.",
        ]
    if len(finite_rows) == 1:
        return _sensitive_sentences(context, finite_rows[0])
    shown_rows = finite_rows
    if len(finite_rows) > _MAX_LEVELS:
        shown_rows = [finite_rows[0], finite_rows[-1]]
    sentences = []
    for row in shown_rows:
        move = _describe_move("the odds of such an answer against any other", row.epsilon)
        sentences.append(f"For {_count_and_list(context, row)}, one report {move}.")
    if shown_rows is not finite_rows:
        omitted_count = format_count(len(finite_rows) - 2)
        sentences.insert(
            1,
            f"There are {omitted_count} more levels of protection between the strongest and the "
            "weakest.",
        )
    if len(finite_rows) < len(rows):
        sentences.append(
            f"For {_count_and_list(context, rows[-1])}, nothing is promised: a report may prove "
            "that a person gave such an answer."
        )
    return sentences


def _sensitive_sentences(context: Context, row: PromiseRow) -> list[str]:
    symbols = _symbols_of(context, row)
    verb = "is" if symbols.size == 1 else "are"
    count_text = f"{format_count(symbols.size)} of {format_count(context.size)} answers"
    move = _describe_move("the odds of a sensitive answer against any other answer", row.epsilon)
    return [
        f"{count_text} {verb} sensitive: {_quote_labels(context, symbols)}.",
        f"One report {move}.",
        "For the other answers nothing is promised: a report may prove that a person gave one of "
        "them.",
    ]


# --- blocks ---------------------------------------------------------------------------------------


def _block_sentences(context: Context, rows: Sequence[PromiseRow]) -> list[str]:
    sentences = [f"{blocks_text(context)}."]
    inside_rows = [row for row in rows if row.against is ComparisonScope.SAME_BLOCK]
    finite_rows = _select_finite(inside_rows)
    if len(finite_rows) == 1:
        move = _describe_move(_ANY_ODDS, finite_rows[0].epsilon)
        sentences.append(f"Inside a block, one report {move}.")
    elif finite_rows:
        strongest = _describe_move(_ANY_ODDS, finite_rows[0].epsilon)
        weakest = _describe_move("them", finite_rows[-1].epsilon)
        sentences.append(
            f"Inside a block, one report {strongest} where the promise is strongest, and "
            f"{weakest} where it is weakest."
        )
    if len(finite_rows) < len(inside_rows):
        block_count_text = plural(_count_blocks(context, inside_rows[-1]), "block")
        sentences.append(f"Inside {block_count_text} nothing is promised.")
    between_row = next(row for row in rows if row.against is ComparisonScope.OTHER_BLOCKS)
    if not between_row.is_unbounded:
        move = _describe_move(_ANY_ODDS, between_row.epsilon)
        sentences.append(f"Between blocks, one report {move}.")
        return sentences
    sentences.append(_BLOCK_DISCLOSURE)
    singleton_count = between_row.singleton_block_count
    if singleton_count == 1:
        sentences.append("One block has a single answer, for which nothing is promised at all.")
    elif singleton_count:
        sentences.append(
            f"{format_count(singleton_count)} blocks have a single answer each, for which nothing "
            "is promised at all."
        )
    return sentences


def _union_sentences(context: Context, rows: Sequence[PromiseRow]) -> list[str]:
    finite_rows = _select_finite(rows)
    exact_minimum = context.exact_minimum
    sentences = [
        f"{blocks_text(context)}, and each block has its own promise.",
        f"Where the promise is strongest, one report {_describe_move('the odds', exact_minimum)}.",
    ]
    if finite_rows and finite_rows[-1].epsilon != exact_minimum:
        weakest = _describe_move("the odds", finite_rows[-1].epsilon)
        sentences.append(f"Where the promise is weakest, one report {weakest}.")
    if rows and rows[-1].block is None:
        sentences.append(_BLOCK_DISCLOSURE)
    unprotected_count = context.unprotected_symbols().size
    if unprotected_count:
        count_text = f"{format_count(unprotected_count)} of {format_count(context.size)} answers"
        sentences.append(
            f"For {count_text} nothing is promised: a report may prove that a person gave one of "
            "them."
        )
    return sentences


def _count_blocks(context: Context, row: PromiseRow) -> int:
    assert context.groups is not None  # noqa: S101 - for the type checker
    return np.unique(context.groups.group_of[_symbols_of(context, row)]).size


# --- pairs ----------------------------------------------------------------------------------------


def _pair_sentences(context: Context, rows: Sequence[PromiseRow]) -> list[str]:
    """State the strongest and the weakest promise, each with a pair as an example.

    Without rows, state only the strongest promise.
    """
    opening = describe_pairs(context)
    if not rows:
        strongest = _describe_move("the odds", context.exact_minimum)
        return [opening, f"Where the promise is strongest, one report {strongest}."]
    finite_rows = _select_finite(rows)
    sentences = [opening, f"The strongest promise: {_pair_text(context, finite_rows[0])}."]
    if len(finite_rows) > 1:
        sentences.append(f"The weakest promise: {_pair_text(context, finite_rows[-1])}.")
    if len(finite_rows) < len(rows):
        count_text = f"{format_count(rows[-1].pair_count)} of {format_count(_count_pairs(rows))}"
        sentences.append(f"For {count_text} ordered pairs nothing is promised directly.")
    return sentences


def _pair_text(context: Context, row: PromiseRow) -> str:
    x, x2 = _symbols_of(context, row).tolist()
    labels = context.domain.labels
    move = _describe_move(f"the odds of “{labels[x]}” against “{labels[x2]}”", row.epsilon)
    return f"one report {move}"


# --- numbers and labels ---------------------------------------------------------------------------


def _select_finite(rows: Sequence[PromiseRow]) -> list[PromiseRow]:
    """Return the rows that promise something."""
    return [row for row in rows if not row.is_unbounded]


def _count_pairs(rows: Sequence[PromiseRow]) -> int:
    return sum(row.pair_count for row in rows)


def _describe_move(odds: str, epsilon: Epsilon) -> str:
    """State how far a report can move ``odds``, as a verb phrase."""
    if epsilon == 0:
        return f"cannot move {odds} at all (ε = 0)"
    rounded = round_up(epsilon)
    limit = f"{format_odds_factor(rounded)}:1 ({epsilon_text(rounded)})"
    return f"can move {odds} from 1:1 to at most {limit}"


def _epsilon_and_odds(epsilon: float) -> str:
    return f"{epsilon_text(epsilon)}: odds from 1:1 to at most {format_odds_factor(epsilon)}:1"


def epsilon_text(epsilon: float) -> str:
    """Format an ε with its symbol, such as "ε = 1" or "ε ≈ 1.099"."""
    text = format_epsilon(epsilon)
    return f"ε {text}" if text.startswith("≈") else f"ε = {text}"


def round_up(epsilon: Epsilon) -> float:
    """Return the ε as a float, rounded up so that it never overstates the promise."""
    return math.inf if isinstance(epsilon, float) else float_above(epsilon)


def _percentage(part: int, total: int) -> str:
    """Format a percentage, rounded down."""
    if 0 < part < total / 1000:
        return "less than 0.1%"
    return f"{math.floor(1000 * part / total) / 10:g}%"


def _symbols_of(context: Context, row: PromiseRow) -> Symbols:
    return np.arange(context.size) if row.symbols is None else row.symbols


def _count_and_list(context: Context, row: PromiseRow) -> str:
    """State how many answers a row covers, and list them."""
    symbols = _symbols_of(context, row)
    count_text = f"{format_count(symbols.size)} of {format_count(context.size)} answers"
    return f"{count_text} ({_quote_labels(context, symbols)})"


def _quote_labels(context: Context, symbols: Symbols) -> str:
    labels = context.domain.labels
    text = ", ".join(f"“{labels[x]}”" for x in symbols[:_MAX_LISTED_ANSWERS].tolist())
    unlisted_count = symbols.size - _MAX_LISTED_ANSWERS
    return f"{text} and {format_count(unlisted_count)} more" if unlisted_count > 0 else text


# --- counts and labels in running text ------------------------------------------------------------


def shorten_label(label: Label, max_length: int = MAX_LABEL_LENGTH) -> str:
    """Return a label on one line. If it is longer than ``max_length``, replace its middle with "…".

    The end is kept, because labels with the same beginning often differ at the end.

    >>> shorten_label("University Hospital, north entrance", 20)
    'University Ho…trance'
    """
    text = " ".join(str(label).split())
    if len(text) <= max_length:
        return text
    tail_length = max_length // 3
    head_length = max_length - tail_length - 1
    return f"{text[:head_length].rstrip()}…{text[-tail_length:].lstrip()}"
