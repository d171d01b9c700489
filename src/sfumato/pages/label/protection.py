"""The levels of protection in a context: classes of answers, with the ε promised to each.

Each level is a row of the label: if your answer is in this class, a report changes its odds against
certain other answers by a factor of at most e^ε. Implied promises are included
(``Context.closure``).
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from sfumato.contexts import ComparisonScope, Context, PromiseRow, describe
from sfumato.domains import Domain
from sfumato.foundation.formatting import format_count
from sfumato.pages.label.text import MAX_LISTED_ANSWERS, list_answers, quote
from sfumato.pages.promise import blocks_of, blocks_text, describe_pairs, plural
from sfumato.randomness import Epsilon

_MAX_LEVELS = 6
_MAX_LISTED_BLOCKS = 6
_OTHER_BLOCK = "an answer in another block"
_MAX_UNPROTECTED_CLASSES = 2  # listed inside the blocks of a union


@dataclass(frozen=True)
class ProtectionLevel:
    """A class of answers, the answers to compare it with, and the ε between them.

    If ε is infinite, ``disclosure`` states what a report may reveal. All text is HTML.
    """

    answers: str
    against: str
    epsilon: Epsilon
    disclosure: str = ""


def opening_text(context: Context) -> str:
    """State how protection differs between answers, as HTML."""
    if context.size == 1:
        return "There is only one possible answer, so there is nothing to find out."
    if math.isinf(context.smallest_epsilon):
        return "Nothing is promised in this survey."
    rows = describe(context, use_closure=True)
    if any(row.against is ComparisonScope.OTHER_BLOCKS for row in rows):
        return f"{blocks_text(context)}{_block_examples(context)}."
    if context.groups is None:
        return describe_pairs(context)
    if len(rows) == 1:
        return "All answers are protected equally."
    if len(rows) > 2 or not rows[-1].is_unbounded:
        return f"There are {format_count(len(rows))} levels of protection."
    assert rows[0].symbols is not None  # noqa: S101 - for the type checker: one of two classes
    sensitive_count = rows[0].symbols.size
    verb = "is" if sensitive_count == 1 else "are"
    count_text = f"{format_count(sensitive_count)} of {format_count(context.size)} answers"
    return f"{count_text} {verb} sensitive. Nothing is promised for the others."


def protection_levels(context: Context) -> list[ProtectionLevel]:
    """Return the levels of a context, strongest promise first and unprotected classes last.

    If there are many levels, some of them are summarized.

    >>> from sfumato.contexts import Uniform
    >>> [(level.against, level.epsilon) for level in protection_levels(Uniform(["no", "yes"], 2))]
    [('any other answer', Fraction(2, 1))]
    """
    rows = describe(context, use_closure=True)
    class_counts = Counter(map(_block_key, rows))
    finite_levels = []
    unprotected_levels = []
    for row in rows:
        level = _create_level(row, context.domain, class_counts[_block_key(row)])
        if row.is_unbounded:
            unprotected_levels.append(level)
        else:
            finite_levels.append(level)
    if context.as_union is not None:
        unprotected_levels = _shorten_unprotected(unprotected_levels)
    return _shorten_finite(finite_levels) + unprotected_levels


# --- one row --------------------------------------------------------------------------------------


def _block_key(row: PromiseRow) -> int:
    """Return a key for a row's block in a union, or −1 if the row has no block."""
    return -1 if row.block is None else int(row.block[0])


def _create_level(row: PromiseRow, domain: Domain, class_count: int) -> ProtectionLevel:
    """Describe a row in words. ``class_count`` is the number of rows with the same block."""
    if row.against is ComparisonScope.PARTNER:
        return _pair_level(row, domain)
    answers = "any answer" if row.symbols is None else list_answers(domain, row.symbols)
    if row.against is ComparisonScope.OTHER_BLOCKS:
        disclosure = _block_disclosure(row) if row.is_unbounded else ""
        return ProtectionLevel(answers, _OTHER_BLOCK, row.epsilon, disclosure)
    against = "any other answer"
    if row.against is ComparisonScope.SAME_BLOCK:
        against += " in its block"
    elif row.block is not None:
        against += " in the block"
    disclosure = _answer_disclosure(row, answers, class_count) if row.is_unbounded else ""
    return ProtectionLevel(answers, against, row.epsilon, disclosure)


def _answer_disclosure(row: PromiseRow, answers: str, class_count: int) -> str:
    """State what a report may reveal about answers without a promise."""
    if row.symbols is None:
        return "Your answer itself. A report may reveal it."
    if row.against is ComparisonScope.SAME_BLOCK:
        return f"Your answer itself, if it is one of these: {answers}."
    if class_count == 1:
        return f"Your answer itself, if it is one of these: {answers}. A report may reveal it."
    if class_count == 2:
        return (
            f"That your answer is one of these: {answers}; and therefore not one of the sensitive "
            "ones."
        )
    return f"That your answer is one of these: {answers}."


def _block_disclosure(row: PromiseRow) -> str:
    disclosure = "Which block your answer is in. A report may reveal it."
    singleton_count = row.singleton_block_count
    if not singleton_count:
        return disclosure
    subject = "the one answer that is"
    if singleton_count > 1:
        subject = f"the {format_count(singleton_count)} answers that are"
    return f"{disclosure} For {subject} alone in a block, that is the answer itself."


def _pair_level(row: PromiseRow, domain: Domain) -> ProtectionLevel:
    """Describe a row of pairs in words, with the first pair as an example."""
    assert row.symbols is not None  # noqa: S101 - for the type checker: a pair has two symbols
    x, x2 = row.symbols.tolist()
    first = quote(domain.labels[x])
    second = quote(domain.labels[x2])
    pair_count = row.pair_count // 2 if row.is_mutual else row.pair_count
    more_pairs = plural(pair_count - 1, "more pair")
    disclosure = ""
    if row.is_unbounded:
        claim = f"{first} or {second}" if row.is_mutual else f"{first} and not {second}"
        disclosure = f"Whether your answer is {claim}: a report may prove it."
        if pair_count > 1:
            disclosure += f" The same applies to {more_pairs}."
    if pair_count > 1:
        against = f"{second}; and {more_pairs} like this one"
        return ProtectionLevel(first, against, row.epsilon, disclosure)
    if row.is_mutual:
        return ProtectionLevel(f"{first} or {second}", "the other", row.epsilon, disclosure)
    return ProtectionLevel(first, second, row.epsilon, disclosure)


# --- many rows ------------------------------------------------------------------------------------


def _merge_by_epsilon(levels: Sequence[ProtectionLevel]) -> list[ProtectionLevel]:
    """Merge consecutive levels with the same ε."""
    merged = []
    for epsilon, equal_levels in groupby(levels, key=lambda level: level.epsilon):
        first, *others = equal_levels
        against = first.against
        if others:
            against += f"; and {format_count(len(others))} more classes with the same promise"
        merged.append(ProtectionLevel(first.answers, against, epsilon))
    return merged


def _shorten_finite(levels: list[ProtectionLevel]) -> list[ProtectionLevel]:
    """Shorten a long list: merge levels with the same ε, then summarize those in between."""
    if len(levels) > _MAX_LEVELS:
        levels = _merge_by_epsilon(levels)
    if len(levels) <= _MAX_LEVELS:
        return levels
    strongest = levels[0]
    weakest = levels[-1]
    against = strongest.against if strongest.against == weakest.against else "others"
    answers = f"{format_count(len(levels) - 2)} more levels in between"
    return [strongest, ProtectionLevel(answers, against, levels[-2].epsilon), weakest]


def _shorten_unprotected(levels: Sequence[ProtectionLevel]) -> list[ProtectionLevel]:
    """Keep the first unprotected levels inside blocks, and the level between blocks, if any."""
    inside_levels = list(levels)
    between_levels = []
    if inside_levels and inside_levels[-1].against == _OTHER_BLOCK:
        between_levels = [inside_levels.pop()]
    if len(inside_levels) > _MAX_UNPROTECTED_CLASSES:
        omitted_count = format_count(len(inside_levels) - _MAX_UNPROTECTED_CLASSES)
        disclosure = f"The same applies to {omitted_count} more classes of answers."
        summary = ProtectionLevel(f"{omitted_count} more classes", "others", math.inf, disclosure)
        inside_levels = [*inside_levels[:_MAX_UNPROTECTED_CLASSES], summary]
    return inside_levels + between_levels


def _block_examples(context: Context) -> str:
    """List the answers in each block, or give an example if there are many, as HTML."""
    domain = context.domain
    blocks = blocks_of(context).members()
    if len(blocks) <= _MAX_LISTED_BLOCKS and context.size <= 2 * MAX_LISTED_ANSWERS:
        return ": " + "; ".join(list_answers(domain, symbols) for symbols in blocks)
    largest_block = max(blocks, key=len)
    if largest_block.size == 1:
        return ""
    first = quote(domain.labels[largest_block[0]])
    second = quote(domain.labels[largest_block[1]])
    return f"; for example, {first} and {second} share a block"
