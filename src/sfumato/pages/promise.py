"""What is promised to whom, in words: sentences for the reader, facts for the table above the picture."""

import math
from collections.abc import Iterable, Sequence

import numpy as np

from sfumato.contexts import (
    MAX_MATRIX_SIZE,
    Blocks,
    Context,
    ContextUnion,
    GroupedContext,
    HighLow,
    Metric,
    Tiers,
    Uniform,
)
from sfumato.domains import Label
from sfumato.foundation.arrays import Symbols
from sfumato.foundation.formatting import format_count, format_epsilon, format_odds_factor
from sfumato.randomness.odds import Epsilon, float_above

__all__ = ["promise_facts", "promise_sentences"]

_LISTED = 12
_TIERS = 6


def promise_sentences(context: Context) -> list[str]:
    """The promise in plain sentences, one idea each.

    >>> promise_sentences(Uniform(["no", "yes"], 1.0))[1]
    'One report can move the odds of any answer against any other from 1:1 to at most 2.72:1 (ε = 1).'
    """
    if math.isinf(context.smallest_epsilon):
        return ["Nothing is promised: a report may show the answer openly."]
    if isinstance(context, Uniform):
        return _uniform(context)
    if isinstance(context, HighLow):
        return _high_low(context)
    if isinstance(context, Tiers):
        return _tiers(context)
    if isinstance(context, Blocks):
        return _blocks(context.closure())
    if isinstance(context, ContextUnion):
        return _union(context)
    return _pair_by_pair(context)


def promise_facts(context: Context) -> list[tuple[str, str]]:
    """Names and values for the small table: how many pairs are promised what."""
    pairs = context.size * (context.size - 1)
    facts = [("Kind of promise", _kind(context)), ("Possible answers", format_count(context.size))]
    promised, largest = _promised_pairs(context), _largest_epsilon(context)
    if promised is not None and pairs:
        share = f"{math.floor(1000 * promised / pairs) / 10:g}\u00a0%"
        share = "less than 0.1\u00a0%" if 0 < promised < pairs / 1000 else share
        facts.append(
            (
                "Ordered pairs with a promise",
                f"{format_count(promised)} of {format_count(pairs)} ({share})",
            )
        )
        facts.append(("Ordered pairs without", format_count(pairs - promised)))
    smallest = context.smallest_epsilon
    if math.isinf(smallest):
        return [*facts, ("Strongest promise", "none: nothing is promised")]
    if largest is None or largest == smallest:
        name = "Every promise" if largest is not None else "Strongest promise"
        return [*facts, (name, _epsilon_and_odds(smallest))]
    return [
        *facts,
        ("Strongest promise", _epsilon_and_odds(smallest)),
        ("Weakest promise", _epsilon_and_odds(largest)),
    ]


def _uniform(context: Uniform) -> list[str]:
    return [
        "Every answer is protected alike, against every other.",
        f"One report can move the odds of any answer against any other {_moved(context.smallest_epsilon)}.",
    ]


def _high_low(context: HighLow) -> list[str]:
    sensitive, labels = context.sensitive, context.domain.labels
    named = _listed((labels[int(x)] for x in sensitive[:_LISTED]), sensitive.size)
    sentences = [
        f"{format_count(sensitive.size)} of {format_count(context.size)} answers "
        f"{'is' if sensitive.size == 1 else 'are'} sensitive: {named}.",
        f"One report can move the odds of a sensitive answer against any other answer "
        f"{_moved(context.smallest_epsilon)}.",
    ]
    if sensitive.size < context.size:
        sentences.append(
            "For the other answers nothing is promised: a report may prove that somebody gave one of them."
        )
    return sentences


def _tiers(context: Tiers) -> list[str]:
    """The strongest promise first; in the middle, of many tiers, only their number."""
    groups = context.groups
    order = sorted(range(len(groups.inside)), key=lambda g: groups.inside[g])
    promised = [g for g in order if groups.inside[g] != math.inf]
    shown = promised if len(promised) <= _TIERS else [promised[0], promised[-1]]
    sentences = [
        f"For {_named(context, np.flatnonzero(groups.group_of == g))}, one report can move the odds of such an answer "
        f"against any other {_moved(_up(groups.inside[g]))}."
        for g in shown
    ]
    if len(shown) < len(promised):
        between = format_count(len(promised) - 2)
        sentences.insert(
            1,
            f"There are {between} more levels of protection between the strongest and the weakest.",
        )
    if len(promised) < len(order):
        free = _named(context, np.flatnonzero(groups.group_of == order[-1]))
        sentences.append(
            f"For {free}, nothing is promised: a report may prove that somebody gave such an answer."
        )
    return sentences


def _blocks(context: Blocks) -> list[str]:
    sizes, across = context.sizes, context.exact_across
    sentences = [_in_blocks(context.size, sizes)]
    pairs = {
        epsilon
        for epsilon, size in zip(context.exact_epsilons, sizes.tolist(), strict=True)
        if size > 1
    }
    inside = sorted(epsilon for epsilon in pairs if epsilon != math.inf)
    moves = "one report can move the odds of any answer against any other"
    if len(inside) == 1:
        sentences.append(f"Inside a block, {moves} {_moved(_up(inside[0]))}.")
    elif inside:
        strongest, weakest = _moved(_up(inside[0])), _moved(_up(inside[-1]))
        sentences.append(
            f"Inside a block, {moves} {strongest} where the promise is strongest, {weakest} at the weakest."
        )
    if math.inf in pairs:
        open_blocks = sum(
            e == math.inf and s > 1
            for e, s in zip(context.exact_epsilons, sizes.tolist(), strict=True)
        )
        sentences.append(f"Inside {_blocks_counted(open_blocks)} nothing is promised.")
    if sizes.size == 1:
        return sentences
    if across != math.inf:
        return [*sentences, f"Between blocks, {moves} {_moved(_up(across))}."]
    return [*sentences, _SHOWN, *_single_answers(sizes)]


def _union(context: ContextUnion) -> list[str]:
    sentences = [
        _in_blocks(context.size, context.sizes)[:-1]
        + ", and inside each block the promise is its own.",
        f"At the strongest, one report can move odds {_moved(context.smallest_epsilon)}.",
    ]
    largest = _largest_epsilon(context)
    if largest is not None and largest != context.smallest_epsilon:
        sentences.append(
            f"At the weakest, where something is promised, it can move them {_moved(largest)}."
        )
    if len(context.parts) > 1:
        sentences.append(_SHOWN)
    unprotected = _unprotected(context)
    if unprotected:
        sentences.append(
            f"For {format_count(unprotected)} of {format_count(context.size)} answers nothing is promised: a report may "
            "prove that somebody gave one of them."
        )
    return sentences


_SHOWN = "Between blocks nothing is promised: a report may show which block the answer lies in."


def _in_blocks(answers: int, sizes: Symbols) -> str:
    spread = f"{format_count(int(sizes.min()))} to {format_count(int(sizes.max()))}"
    each = format_count(int(sizes[0])) if sizes.min() == sizes.max() else spread
    return f"The {format_count(answers)} answers lie in {_blocks_counted(sizes.size)} of {each}."


def _blocks_counted(blocks: int) -> str:
    return f"{format_count(blocks)} block{'s' * (blocks > 1)}"


def _single_answers(sizes: Symbols) -> list[str]:
    alone = int((sizes == 1).sum())
    if not alone:
        return []
    start = "One block holds" if alone == 1 else f"{format_count(alone)} blocks hold"
    return [
        f"{start} a single answer: for {'it' if alone == 1 else 'those'} nothing is promised at all."
    ]


def _unprotected(context: Context) -> int | None:
    """The number of answers that are owed nothing against any other; ``None`` where counting would be too long."""
    groups = _groups(context)
    if groups is not None:
        return sum(
            int(size) for size, owed in zip(groups.sizes, _owed(groups), strict=True) if not owed
        )
    if isinstance(context, ContextUnion):
        return _sum_if_known([_unprotected(part) for part in context.parts])
    if context.size > MAX_MATRIX_SIZE:
        return None
    return int((np.isfinite(context.matrix()).sum(axis=1) == 1).sum())


def _groups(context: Context) -> GroupedContext | None:
    """GroupedContext by what is promised: for blocks, the way through another block may be the shorter one."""
    return context.closure().groups if isinstance(context, Blocks) else context.groups


def _sum_if_known(numbers: Sequence[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None


def _owed(groups: GroupedContext) -> list[list[tuple[int, Epsilon]]]:
    """What each group owes: for how many ordered pairs, which finite ε."""
    k, several = groups.group_of.size, len(groups.inside) > 1
    owed = []
    for size, inside, outward in zip(
        groups.sizes.tolist(), groups.inside, groups.outward, strict=True
    ):
        pairs = [(size * (size - 1), inside)] + [(size * (k - size), outward)] * several
        owed.append(
            [(number, epsilon) for number, epsilon in pairs if number and epsilon != math.inf]
        )
    return owed


def _pair_by_pair(context: Context) -> list[str]:
    """Metric contexts, written-out matrices and sums: the extremes, with the pair that has them."""
    opening = "Each pair of answers has its own promise."
    if isinstance(context, Metric):
        opening = "The closer two answers are, the harder they are to tell apart."
    if context.size > MAX_MATRIX_SIZE:
        return [
            opening,
            f"At the strongest, one report can move odds {_moved(context.smallest_epsilon)}.",
        ]
    E = context.matrix()
    np.fill_diagonal(E, np.nan)
    finite = np.isfinite(E)
    sentences = [
        opening,
        f"The strongest promise: {_pair(context, np.where(finite, E, np.inf).argmin())}.",
    ]
    if np.nanmin(E[finite]) != np.nanmax(E[finite]):
        sentences.append(
            f"The weakest promise: {_pair(context, np.where(finite, E, -np.inf).argmax())}."
        )
    without = int(np.isinf(E).sum())
    if without:
        total = context.size * (context.size - 1)
        sentences.append(
            f"For {format_count(without)} of {format_count(total)} ordered pairs nothing is promised directly."
        )
    return sentences


def _pair(context: Context, place: np.intp) -> str:
    x, x2 = divmod(int(place), context.size)
    labels = context.domain.labels
    moved = _moved(float(context.epsilon(x, x2)))
    return f"one report can move the odds of “{labels[x]}” against “{labels[x2]}” {moved}"


def _moved(epsilon: float) -> str:
    if epsilon == 0:
        return "not at all (ε = 0)"
    return f"from 1:1 to at most {format_odds_factor(epsilon)}:1 (ε {_equals(epsilon)})"


def _epsilon_and_odds(epsilon: float) -> str:
    return f"ε {_equals(epsilon)}: odds from 1:1 to at most {format_odds_factor(epsilon)}:1"


def _equals(epsilon: float) -> str:
    text = format_epsilon(epsilon)
    return text if text.startswith("≈") else f"= {text}"


def _listed(labels: Iterable[Label], total: int) -> str:
    shown: Sequence[str] = [f"“{label}”" for label in labels]
    more = total - len(shown)
    return ", ".join(shown) + (f" and {format_count(more)} more" if more else "")


def _named(context: Context, symbols: Symbols) -> str:
    """How many answers, and which."""
    labels = context.domain.labels
    listed = _listed((labels[int(x)] for x in symbols[:_LISTED]), symbols.size)
    return f"{format_count(symbols.size)} of {format_count(context.size)} answers ({listed})"


def _up(epsilon: Epsilon) -> float:
    """An ε in a float that does not make the promise look stronger than it is."""
    return math.inf if isinstance(epsilon, float) else float_above(epsilon)


def _kind(context: Context) -> str:
    if isinstance(context, Uniform):
        return "uniform: every pair alike"
    if isinstance(context, HighLow):
        return "high-low: some answers are sensitive"
    if isinstance(context, Tiers):
        return "tiers: some answers are more sensitive than others"
    if isinstance(context, Blocks):
        hidden = context.exact_across != math.inf
        return (
            "blocks: one promise inside, one between them"
            if hidden
            else "blocks: hidden inside a block"
        )
    if isinstance(context, ContextUnion):
        return "union: a promise of its own inside each block"
    return "metric: by distance" if isinstance(context, Metric) else "matrix: pair by pair"


def _promised_pairs(context: Context) -> int | None:
    """The number of ordered pairs with a finite ε; ``None`` where counting would be too long."""
    if math.isinf(context.smallest_epsilon):
        return 0
    groups = _groups(context)
    if groups is not None:
        return sum(number for owed in _owed(groups) for number, _ in owed)
    if isinstance(context, ContextUnion):
        return _sum_if_known([_promised_pairs(part) for part in context.parts])
    if context.size > MAX_MATRIX_SIZE:
        return None
    return int(np.isfinite(context.matrix()).sum()) - context.size


def _largest_epsilon(context: Context) -> float | None:
    """The largest finite ε; ``None`` where looking for it would be too long."""
    groups = _groups(context)
    if groups is not None:
        finite = [epsilon for owed in _owed(groups) for _, epsilon in owed]
        largest = max(finite, default=context.exact_smallest)
        return context.smallest_epsilon if largest == context.exact_smallest else _up(largest)
    if isinstance(context, ContextUnion):
        found = [
            _largest_epsilon(part) for part in context.parts if math.isfinite(part.smallest_epsilon)
        ]
        return None if None in found else max(largest for largest in found if largest is not None)
    if context.size > MAX_MATRIX_SIZE:
        return None
    E = context.matrix()
    return float(E[np.isfinite(E) & ~np.eye(context.size, dtype=np.bool_)].max(initial=0.0))
