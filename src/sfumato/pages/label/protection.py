"""Shades: the classes of answers that a context tells apart, with the ε that is promised to each.

A row of a label is a shade: if the answer is one of these, a report moves its odds against those by at most e^ε. What
follows from other promises counts as promised (``Context.closure``).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar

import numpy as np

from sfumato.contexts import (
    Blocks,
    Context,
    ContextUnion,
    ExactMatrix,
    HighLow,
    Metric,
    Tiers,
    Uniform,
)
from sfumato.foundation.arrays import Symbols
from sfumato.foundation.formatting import format_count
from sfumato.pages.label.text import MAX_NAMED, AnswerNames
from sfumato.randomness.odds import Epsilon

__all__ = ["Shade", "opening_text", "shades_of"]

_MOST_SHADES = 6
_MOST_BLOCKS = 6
Level = TypeVar("Level")

_LARGEST_CLOSED = 256  # shortest paths take the cube of it; above, what is promised directly is a bound all the same


@dataclass(frozen=True)
class Shade:
    """Some answers, what they are compared with, and the ε between; all words are HTML.

    Where ε is infinite, ``shown`` says what a report may show.
    """

    answers: str
    against: str
    epsilon: Epsilon
    shown: str = ""


def shades_of(context: Context) -> list[Shade]:
    """The shades of a context: promises first, the strongest on top, then what is not promised.

    >>> [(shade.against, shade.epsilon) for shade in shades_of(Uniform(["no", "yes"], 2))]
    [('any other answer', Fraction(2, 1))]
    """
    return _shades(context, AnswerNames(context.domain))


def opening_text(context: Context) -> str:
    """How the answers differ, in a sentence of HTML."""
    if context.size == 1:
        return "There is only one possible answer, and so nothing to find out about it."
    if math.isinf(context.smallest_epsilon):
        return "Nothing is promised in this survey."
    names = AnswerNames(context.domain)
    if isinstance(context, HighLow) and context.sensitive.size < context.size:
        counts = f"{format_count(context.sensitive.size)} of {format_count(context.size)} answers"
        return f"{counts} {'is' if context.sensitive.size == 1 else 'are'} sensitive. Nothing is promised for the others."
    if isinstance(context, Tiers) and len(context.groups.inside) > 1:
        return f"There are {format_count(len(context.groups.inside))} degrees of protection."
    if isinstance(context, Blocks | ContextUnion):
        return _blocks_text(context.block_of, context.sizes, names)
    if isinstance(context, Metric):
        return "The closer two answers are, the harder they are to tell apart."
    if context.groups is None:
        return "Each pair of answers has a promise of its own."
    return "All answers are protected alike."


def _shades(context: Context, names: AnswerNames) -> list[Shade]:
    if context.size == 1:
        return []
    if math.isinf(context.smallest_epsilon):
        own = "" if names.symbols is None else f", if it is one of these: {names.any_answer}"
        return [
            Shade(
                names.any_answer,
                names.any_other,
                math.inf,
                f"Your answer itself{own}. A report may show it openly.",
            )
        ]
    if isinstance(context, Uniform):
        return [Shade(names.any_answer, names.any_other, context.exact_inside)]
    if isinstance(context, HighLow | Tiers):
        return _by_answer(context, names)
    if isinstance(context, Blocks):
        return _by_block(context.closure(), names)
    if isinstance(context, ContextUnion):
        return _by_part(context, names)
    return _by_pair(context, names)


# --- high-low and tiers: what an answer owes to all others ------------------------------------------------------------


def _by_answer(context: HighLow | Tiers, names: AnswerNames) -> list[Shade]:
    groups = context.groups
    order = sorted(range(len(groups.inside)), key=lambda g: groups.inside[g])
    members = {g: np.flatnonzero(groups.group_of == g) for g in order}
    if len(order) == 1:
        return [Shade(names.any_answer, names.any_other, groups.inside[0])]
    finite = [g for g in order if groups.inside[g] != math.inf]
    made = _ends(
        finite, lambda g: Shade(names.listing(members[g]), names.any_other, groups.inside[g])
    )
    if len(finite) < len(order):
        free = names.listing(members[order[-1]])
        and_so = (
            "; and so, that it is none of the sensitive ones"
            if isinstance(context, HighLow)
            else ""
        )
        made.append(
            Shade(
                free,
                names.any_other,
                math.inf,
                f"That your answer is one of these: {free}{and_so}.",
            )
        )
    return made


# --- blocks -----------------------------------------------------------------------------------------------------------


def _by_block(context: Blocks, names: AnswerNames) -> list[Shade]:
    """Inside blocks by their ε, and between blocks."""
    paired = np.flatnonzero(context.sizes > 1)
    levels = sorted({context.exact_epsilons[j] for j in paired.tolist()})

    def inside(epsilon: Epsilon) -> Shade:
        if len(levels) == 1 and names.symbols is None:
            return Shade("any answer", "any other answer of its block", epsilon)
        blocks = [j for j in paired.tolist() if context.exact_epsilons[j] == epsilon]
        listed = names.listing(np.flatnonzero(np.isin(context.block_of, blocks)))
        shown = (
            f"Your answer itself, if it is one of these: {listed}." if epsilon == math.inf else ""
        )
        return Shade(listed, "any other answer of its block", epsilon, shown)

    finite = [epsilon for epsilon in levels if epsilon != math.inf]
    across = context.exact_across if context.sizes.size > 1 else None
    made = _ends(finite, inside)
    if across is not None and across != math.inf:
        made.append(Shade(names.any_answer, "an answer of another block", across))
    made += [inside(math.inf)] if math.inf in levels else []
    return made + ([_between(context.sizes, names)] if across == math.inf else [])


def _by_part(context: ContextUnion, names: AnswerNames) -> list[Shade]:
    """What is promised inside each block, in words of its own; nothing is promised between them."""
    order = np.argsort(context.block_of, kind="stable")
    members = np.split(order, np.cumsum(context.sizes)[:-1])
    found = [
        shade
        for part, symbols in zip(context.parts, members, strict=True)
        for shade in _shades(part, names.subset(symbols))
    ]
    finite = sorted(
        (shade for shade in found if shade.epsilon != math.inf), key=lambda shade: shade.epsilon
    )
    free = [shade for shade in found if shade.epsilon == math.inf]
    made = _ends(_alike(finite), lambda shade: shade)
    made += free[:2]
    if len(free) > 2:
        more = format_count(len(free) - 2)
        made.append(
            Shade(
                f"{more} more classes",
                "others",
                math.inf,
                f"The same for {more} more classes of answers.",
            )
        )
    return made + ([_between(context.sizes, names)] if context.sizes.size > 1 else [])


def _alike(shades: Sequence[Shade]) -> list[Shade]:
    """The same shades, in order of ε; where they are too many, one for each ε, which says how many more there are."""
    if len(shades) <= _MOST_SHADES:
        return list(shades)
    made = []
    for epsilon, several in groupby(shades, key=lambda shade: shade.epsilon):
        first, *more = several
        also = f"; and {format_count(len(more))} more classes with the same promise" if more else ""
        made.append(Shade(first.answers, first.against + also, epsilon))
    return made


def _between(sizes: Symbols, names: AnswerNames) -> Shade:
    alone = int((sizes == 1).sum())
    also = ""
    if alone:
        which = (
            "the one answer that is"
            if alone == 1
            else f"the {format_count(alone)} answers that are"
        )
        also = f" For {which} alone in a block, that is the answer itself."
    shown = f"Which block your answer lies in. A report may show it openly.{also}"
    return Shade(names.any_answer, "an answer of another block", math.inf, shown)


def _blocks_text(block_of: Symbols, sizes: Symbols, names: AnswerNames) -> str:
    """How many blocks there are, and what lies in them as far as it can be said."""
    least, most = format_count(int(sizes.min())), format_count(int(sizes.max()))
    blocks = f"{format_count(sizes.size)} block{'s' * (sizes.size > 1)}"
    told = f"The {format_count(block_of.size)} answers lie in {blocks} of {most if least == most else f'{least} to {most}'}"
    if sizes.size <= _MOST_BLOCKS and block_of.size <= 2 * MAX_NAMED:
        return f"{told}: {'; '.join(names.listing(np.flatnonzero(block_of == j)) for j in range(sizes.size))}."
    first, *more = np.flatnonzero(block_of == int(sizes.argmax()))[:2].tolist()
    return told + (
        f"; for example, {names.name(first)} and {names.name(more[0])} share one." if more else "."
    )


# --- matrices and metrics: pair by pair -------------------------------------------------------------------------------


def _by_pair(context: Context, names: AnswerNames) -> list[Shade]:
    """The pairs of each ε, with the first of them by name."""
    closed = context.closure() if context.size <= _LARGEST_CLOSED else context
    exact = closed.exact_matrix()
    numerators = exact.numerators[~np.eye(exact.size, dtype=np.bool_)]
    values, first, counts = np.unique(numerators, return_index=True, return_counts=True)
    both = bool((exact.numerators == exact.numerators.T).all())

    def level(i: int) -> Shade:
        x, rest = divmod(int(first[i]), exact.size - 1)
        return _pair(exact, x, rest + (rest >= x), int(counts[i]), both, names)

    finite = [i for i in range(values.size) if values[i] != exact.infinite]
    made = _ends(finite, level)
    return made + ([level(values.size - 1)] if len(finite) < values.size else [])


def _pair(exact: ExactMatrix, x: int, x2: int, count: int, both: bool, names: AnswerNames) -> Shade:
    """The shade of ``count`` ordered pairs, of which (x, x2) is one; ``both`` says that each has its reverse."""
    pairs, epsilon, one, other = (
        count // 2 if both else count,
        exact.entry(x, x2),
        names.name(x),
        names.name(x2),
    )
    like = f"{format_count(pairs - 1)} more pair{'s' * (pairs > 2)}"
    shown = ""
    if epsilon == math.inf:
        proved = f"{one} or {other}" if both else f"{one} and not {other}"
        shown = (
            f"Whether your answer is {proved}: a report may prove it."
            + f" The same for {like}." * (pairs > 1)
        )
    if pairs > 1:
        return Shade(one, f"{other}; and {like} like this one", epsilon, shown)
    return (
        Shade(f"{one} or {other}", "the other", epsilon, shown)
        if both
        else Shade(one, other, epsilon, shown)
    )


def _ends(levels: Sequence[Level], shade: Callable[[Level], Shade]) -> list[Shade]:
    """A shade for each level if they are few; else the strongest, the weakest, and a bound on those between."""
    if len(levels) <= _MOST_SHADES:
        return [shade(level) for level in levels]
    strongest, next_weakest, weakest = (shade(levels[i]) for i in (0, -2, -1))
    against = strongest.against if strongest.against == weakest.against else "others"
    between = f"{format_count(len(levels) - 2)} more levels, in between"
    return [strongest, Shade(between, against, next_weakest.epsilon), weakest]
