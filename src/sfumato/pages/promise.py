"""What is promised to whom, in words: sentences for the reader, facts for the table above the picture."""

import math
from collections.abc import Iterable, Sequence

import numpy as np

from sfumato.contexts import Blocks, Context, HighLow, Metric, Uniform
from sfumato.contexts.context import LARGEST_MATRIX
from sfumato.domains import Label
from sfumato.pages.numbers import count_text, epsilon_text, factor_text

__all__ = ["promise_facts", "promise_sentences"]

_LISTED = 12


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
    if isinstance(context, Blocks):
        return _blocks(context)
    return _pair_by_pair(context)


def promise_facts(context: Context) -> list[tuple[str, str]]:
    """Names and values for the small table: how many pairs are promised what."""
    pairs = context.size * (context.size - 1)
    facts = [("Kind of promise", _kind(context)), ("Possible answers", count_text(context.size))]
    promised, largest = _promised_pairs(context), _largest_epsilon(context)
    if promised is not None and pairs:
        share = f"{math.floor(1000 * promised / pairs) / 10:g}\u00a0%"
        share = "less than 0.1\u00a0%" if 0 < promised < pairs / 1000 else share
        facts.append(("Ordered pairs with a promise", f"{count_text(promised)} of {count_text(pairs)} ({share})"))
        facts.append(("Ordered pairs without", count_text(pairs - promised)))
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
        f"{count_text(sensitive.size)} of {count_text(context.size)} answers "
        f"{'is' if sensitive.size == 1 else 'are'} sensitive: {named}.",
        f"One report can move the odds of a sensitive answer against any other answer "
        f"{_moved(context.smallest_epsilon)}.",
    ]
    if sensitive.size < context.size:
        sentences.append(
            "For the other answers nothing is promised: a report may prove that somebody gave one of them."
        )
    return sentences


def _blocks(context: Blocks) -> list[str]:
    sizes = context.sizes
    spread = f"{count_text(int(sizes.min()))} to {count_text(int(sizes.max()))}"
    each = f"of {count_text(int(sizes[0]))}" if sizes.min() == sizes.max() else f"of {spread}"
    sentences = [
        f"The {count_text(context.size)} answers lie in {count_text(sizes.size)} block{'s' * (sizes.size > 1)} {each}.",
        f"Inside a block, one report can move the odds of any answer against any other "
        f"{_moved(context.smallest_epsilon)}.",
    ]
    if sizes.size > 1:
        sentences.append("Between blocks nothing is promised: a report may show which block the answer lies in.")
    alone = int((sizes == 1).sum())
    if alone:
        start = "One block holds" if alone == 1 else f"{count_text(alone)} blocks hold"
        sentences.append(f"{start} a single answer: for {'it' if alone == 1 else 'those'} nothing is promised at all.")
    return sentences


def _pair_by_pair(context: Context) -> list[str]:
    """Metric contexts, written-out matrices and sums: the extremes, with the pair that has them."""
    opening = "Each pair of answers has its own promise."
    if isinstance(context, Metric):
        opening = "The closer two answers are, the harder they are to tell apart."
    if context.size > LARGEST_MATRIX:
        return [opening, f"At the strongest, one report can move odds {_moved(context.smallest_epsilon)}."]
    E = context.matrix()
    np.fill_diagonal(E, np.nan)
    finite = np.isfinite(E)
    sentences = [opening, f"The strongest promise: {_pair(context, np.where(finite, E, np.inf).argmin())}."]
    if np.nanmin(E[finite]) != np.nanmax(E[finite]):
        sentences.append(f"The weakest promise: {_pair(context, np.where(finite, E, -np.inf).argmax())}.")
    without = int(np.isinf(E).sum())
    if without:
        total = context.size * (context.size - 1)
        sentences.append(
            f"For {count_text(without)} of {count_text(total)} ordered pairs nothing is promised directly."
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
    return f"from 1:1 to at most {factor_text(epsilon)}:1 (ε {_equals(epsilon)})"


def _epsilon_and_odds(epsilon: float) -> str:
    return f"ε {_equals(epsilon)}: odds from 1:1 to at most {factor_text(epsilon)}:1"


def _equals(epsilon: float) -> str:
    text = epsilon_text(epsilon)
    return text if text.startswith("≈") else f"= {text}"


def _listed(labels: Iterable[Label], total: int) -> str:
    shown: Sequence[str] = [f"“{label}”" for label in labels]
    more = total - len(shown)
    return ", ".join(shown) + (f" and {count_text(more)} more" if more else "")


def _kind(context: Context) -> str:
    if isinstance(context, Uniform):
        return "uniform: every pair alike"
    if isinstance(context, HighLow):
        return "high-low: some answers are sensitive"
    if isinstance(context, Blocks):
        return "blocks: hidden inside a block"
    return "metric: by distance" if isinstance(context, Metric) else "matrix: pair by pair"


def _promised_pairs(context: Context) -> int | None:
    """The number of ordered pairs with a finite ε; ``None`` where counting would be too long."""
    if math.isinf(context.smallest_epsilon):
        return 0
    if isinstance(context, Uniform):
        return context.size * (context.size - 1)
    if isinstance(context, HighLow):
        return int(context.sensitive.size) * (context.size - 1)
    if isinstance(context, Blocks):
        return int((context.sizes * (context.sizes - 1)).sum())
    if context.size > LARGEST_MATRIX:
        return None
    return int(np.isfinite(context.matrix()).sum()) - context.size


def _largest_epsilon(context: Context) -> float | None:
    if isinstance(context, Uniform | HighLow | Blocks):
        return context.smallest_epsilon
    if context.size > LARGEST_MATRIX:
        return None
    E = context.matrix()
    return float(E[np.isfinite(E) & ~np.eye(context.size, dtype=np.bool_)].max(initial=0.0))
