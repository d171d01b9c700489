"""Levels of protection: the classes of answers of a context, with the ε promised to each.

A row of a label is a level: if your answer is one of these, a report moves its odds against those
by at most e^ε. What follows from other promises counts as promised (``Context.closure``).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from sfumato.contexts import Against, Context, PromiseRow, describe
from sfumato.foundation.arrays import Symbols
from sfumato.foundation.formatting import format_count
from sfumato.pages.label.text import MAX_NAMED, AnswerNames
from sfumato.pages.promise import blocks_text, opening_of_pairs, plural
from sfumato.randomness import Epsilon

__all__ = ["ProtectionLevel", "opening_text", "protection_levels"]

_MAX_LEVELS = 6
_MAX_BLOCKS = 6
_OTHER_BLOCK = "an answer of another block"
_MAX_OPEN = 2  # open classes inside the blocks of a union that are listed


@dataclass(frozen=True)
class ProtectionLevel:
    """Some answers, the answers to compare them with, and the ε between. All words are HTML.

    Where ε is infinite, ``shown`` says what a report may show.
    """

    answers: str
    against: str
    epsilon: Epsilon
    shown: str = ""


def opening_text(context: Context) -> str:
    """Say how the answers differ, in a sentence of HTML."""
    if context.size == 1:
        return "There is only one possible answer, and so nothing to find out about it."
    if math.isinf(context.smallest_epsilon):
        return "Nothing is promised in this survey."
    rows = describe(context, close=True)
    if any(row.against is Against.OTHER_BLOCKS for row in rows):
        return f"{blocks_text(context)}{_block_examples(context)}."
    if context.groups is None:
        return opening_of_pairs(context)
    if len(rows) == 1:
        return "All answers are protected alike."
    if len(rows) > 2 or not rows[-1].is_open:
        return f"There are {format_count(len(rows))} levels of protection."
    assert rows[0].symbols is not None  # noqa: S101 - for the type checker: one of two classes
    sensitive = rows[0].symbols.size
    verb = "is" if sensitive == 1 else "are"
    counts = f"{format_count(sensitive)} of {format_count(context.size)} answers"
    return f"{counts} {verb} sensitive. Nothing is promised for the others."


def protection_levels(context: Context) -> list[ProtectionLevel]:
    """Return the levels of a context: promises first, the strongest on top, then what is open.

    >>> from sfumato.contexts import Uniform
    >>> [(level.against, level.epsilon) for level in protection_levels(Uniform(["no", "yes"], 2))]
    [('any other answer', Fraction(2, 1))]
    """
    rows = describe(context, close=True)
    names = AnswerNames(context.domain)
    classes = _classes_per_block(rows)
    levels = [_level(row, names, classes[_block_key(row)]) for row in rows]
    promised = [level for level in levels if level.epsilon != math.inf]
    still_open = [level for level in levels if level.epsilon == math.inf]
    if context.as_union is not None:
        still_open = _shorten_open(still_open)
    return _shorten_promised(_merge_equal(promised)) + still_open


# --- one row --------------------------------------------------------------------------------------


def _block_key(row: PromiseRow) -> int:
    """Return a key for the block of a union that a row is about; −1 for the whole context."""
    return -1 if row.block is None else int(row.block[0])


def _classes_per_block(rows: Sequence[PromiseRow]) -> dict[int, int]:
    """Count the classes of answers that each block of a union tells apart."""
    classes: dict[int, int] = {}
    for row in rows:
        key = _block_key(row)
        classes[key] = classes.get(key, 0) + 1
    return classes


def _level(row: PromiseRow, names: AnswerNames, classes: int) -> ProtectionLevel:
    """Phrase a row; ``classes`` counts the rows of the same block."""
    if row.against is Against.PARTNER:
        return _pair_level(row, names)
    answers = "any answer" if row.symbols is None else str(names.listing(row.symbols))
    if row.against is Against.OTHER_BLOCKS:
        shown = _block_shown(row) if row.is_open else ""
        return ProtectionLevel(answers, _OTHER_BLOCK, row.epsilon, shown)
    against = "any other answer"
    if row.against is Against.SAME_BLOCK:
        against += " of its block"
    elif row.block is not None:
        against += " of the block"
    shown = _answer_shown(row, answers, classes) if row.is_open else ""
    return ProtectionLevel(answers, against, row.epsilon, shown)


def _answer_shown(row: PromiseRow, answers: str, classes: int) -> str:
    """Say what a report may show about answers without a promise."""
    if row.symbols is None:
        return "Your answer itself. A report may show it openly."
    if row.against is Against.SAME_BLOCK:
        return f"Your answer itself, if it is one of these: {answers}."
    if classes == 1:
        return f"Your answer itself, if it is one of these: {answers}. A report may show it openly."
    if classes == 2:
        return (
            f"That your answer is one of these: {answers}; and so, that it is not one of the "
            "sensitive ones."
        )
    return f"That your answer is one of these: {answers}."


def _block_shown(row: PromiseRow) -> str:
    shown = "Which block your answer lies in. A report may show it openly."
    single = row.single_blocks
    if single == 0:
        return shown
    which = "the one answer that is"
    if single > 1:
        which = f"the {format_count(single)} answers that are"
    return f"{shown} For {which} alone in a block, that is the answer itself."


def _pair_level(row: PromiseRow, names: AnswerNames) -> ProtectionLevel:
    """Phrase a row of pairs, with the first of them by name."""
    assert row.symbols is not None  # noqa: S101 - for the type checker: a pair has two
    x, x2 = row.symbols.tolist()
    one = names.name(x)
    other = names.name(x2)
    pairs = row.pairs // 2 if row.is_mutual else row.pairs
    like = plural(pairs - 1, "more pair")
    shown = ""
    if row.is_open:
        proved = f"{one} or {other}" if row.is_mutual else f"{one} and not {other}"
        shown = f"Whether your answer is {proved}: a report may prove it."
        if pairs > 1:
            shown += f" The same for {like}."
    if pairs > 1:
        return ProtectionLevel(one, f"{other}; and {like} like this one", row.epsilon, shown)
    if row.is_mutual:
        return ProtectionLevel(f"{one} or {other}", "the other", row.epsilon, shown)
    return ProtectionLevel(one, other, row.epsilon, shown)


# --- many rows ------------------------------------------------------------------------------------


def _merge_equal(levels: Sequence[ProtectionLevel]) -> list[ProtectionLevel]:
    """Merge levels of one ε where there are too many; each then says how many more there are."""
    if len(levels) <= _MAX_LEVELS:
        return list(levels)
    merged = []
    for epsilon, equal in groupby(levels, key=lambda level: level.epsilon):
        first, *more = equal
        against = first.against
        if more:
            against += f"; and {format_count(len(more))} more classes with the same promise"
        merged.append(ProtectionLevel(first.answers, against, epsilon))
    return merged


def _shorten_promised(levels: list[ProtectionLevel]) -> list[ProtectionLevel]:
    """Keep the strongest and the weakest of many levels, and a bound on those in between."""
    if len(levels) <= _MAX_LEVELS:
        return levels
    strongest = levels[0]
    weakest = levels[-1]
    against = strongest.against if strongest.against == weakest.against else "others"
    answers = f"{format_count(len(levels) - 2)} more levels, in between"
    return [strongest, ProtectionLevel(answers, against, levels[-2].epsilon), weakest]


def _shorten_open(levels: Sequence[ProtectionLevel]) -> list[ProtectionLevel]:
    """Keep the first open classes of a union, and the row between its blocks, which comes last."""
    inside = list(levels)
    between = []
    if inside and inside[-1].against == _OTHER_BLOCK:
        between = [inside.pop()]
    if len(inside) > _MAX_OPEN:
        more = format_count(len(inside) - _MAX_OPEN)
        same = f"The same for {more} more classes of answers."
        rest = ProtectionLevel(f"{more} more classes", "others", math.inf, same)
        inside = [*inside[:_MAX_OPEN], rest]
    return inside + between


def _block_examples(context: Context) -> str:
    """Say what lies in the blocks, as far as there is room."""
    names = AnswerNames(context.domain)
    blocks = _members(context)
    if len(blocks) <= _MAX_BLOCKS and context.size <= 2 * MAX_NAMED:
        return ": " + "; ".join(str(names.listing(symbols)) for symbols in blocks)
    largest = blocks[int(np.argmax([symbols.size for symbols in blocks]))]
    if largest.size == 1:
        return ""
    one = names.name(int(largest[0]))
    other = names.name(int(largest[1]))
    return f"; for example, {one} and {other} share one"


def _members(context: Context) -> list[Symbols]:
    blocks = context.groups or context.as_union
    assert blocks is not None  # noqa: S101 - for the type checker: it has blocks
    return blocks.members()
