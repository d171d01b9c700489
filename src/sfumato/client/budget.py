"""Budgets: whether promises, added up pair by pair, stay within a cap. Decided exactly, for domains of any size.

Answers under E1 and E2 together keep E1 + E2 (Proposition 2 of the paper). The pairs of a large domain are too many to
look at, but symbols fall into classes, the same in every context that is compared, so that ``E[x, x2]`` depends on the
classes of x and x2 alone (and on whether x = x2). One pair for each two classes is enough.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Symbols
from sfumato.contexts import Context, ContextSum, ContextUnion
from sfumato.contexts.groups import numbered_by_first
from sfumato.randomness.odds import Epsilon

__all__ = ["Cost", "largest_entry", "within"]

_PAIRS_AT_ONCE = 2**20

Levels = tuple[NDArray[np.int64], list[Epsilon]]
"""Exact entries of many pairs: which of the values each pair has, and the values."""


@dataclass(frozen=True)
class Cost:
    """``times · E``: what a survey costs that may be answered with so many distinct values."""

    times: int
    context: Context


def within(costs: Sequence[Cost], cap: Context) -> bool:
    """Whether ``Σ times · E[x, x2] ≤ cap[x, x2]`` for every two symbols.

    A cost over another domain says something about the same people, but not pair by pair: its largest entry counts
    for every pair.

    >>> from sfumato.contexts import HighLow, Uniform
    >>> costs = [Cost(2, Uniform(3, "0.5")), Cost(1, Uniform(3, 1))]
    >>> within(costs, Uniform(3, 2)), within(costs, HighLow(3, [0], "1.99"))
    (True, False)
    """
    abroad: Epsilon = Fraction(0)
    spent = []
    for cost in costs:
        if cost.context.domain == cap.domain:
            spent.append(cost)
        else:
            abroad += cost.times * largest_entry(cost.context)
    allowed = [Cost(1, term) for term in (cap.terms if isinstance(cap, ContextSum) else (cap,))]
    readers = [(cost.times, _reader(cost.context)) for cost in spent], [(1, _reader(cost.context)) for cost in allowed]
    for x, x2 in _typical_pairs([cost.context for cost in (*spent, *allowed)]):
        (which, sums), (which2, limits) = (_sums(side, x, x2) for side in readers)
        for joint in _renumbered(which * len(limits) + which2, len(sums) * len(limits))[0].tolist():
            if sums[joint // len(limits)] + abroad > limits[joint % len(limits)]:
                return False
    return True


def largest_entry(context: Context) -> Epsilon:
    """The largest entry of a context off its diagonal; 0 if there is no pair."""
    read = _reader(context)
    largest: Epsilon = Fraction(0)
    for x, x2 in _typical_pairs([context]):
        which, values = read(x, x2)
        largest = max(largest, *(values[i] for i in np.unique(which).tolist()))
    return largest


def _sums(terms: Sequence[tuple[int, Callable[[Symbols, Symbols], Levels]]], x: Symbols, x2: Symbols) -> Levels:
    """``Σ times · E[x, x2]``."""
    which: NDArray[np.int64] = np.zeros(x.shape, dtype=np.int64)
    sums: list[Epsilon] = [Fraction(0)]
    for times, read in terms:
        here, values = read(x, x2)
        joint, which = _renumbered(which * len(values) + here, len(sums) * len(values))
        sums = [sums[j // len(values)] + times * values[j % len(values)] for j in joint.tolist()]
    return which, sums


def _renumbered(numbers: NDArray[np.int64], bound: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which numbers below ``bound`` occur, and the place of each among them; without sorting if there are few."""
    if bound > 4 * numbers.size:
        return np.unique(numbers, return_inverse=True)
    occurs = np.zeros(bound, dtype=np.bool_)
    occurs[numbers] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[numbers]


# --- classes of symbols that a context does not tell apart ------------------------------------------------------------


def _typical_pairs(contexts: Sequence[Context]) -> Iterator[tuple[Symbols, Symbols]]:
    """One pair x ≠ x2 for every two classes that the contexts have in common; in pieces."""
    size = contexts[0].size
    common: Symbols = np.zeros(size, dtype=np.int64)
    for context in contexts:
        own = _classes(context)
        common, _ = numbered_by_first(common * (int(own.max()) + 1) + own)
    order = np.argsort(common, kind="stable")
    starts = np.searchsorted(common[order], np.arange(int(common.max()) + 1))
    first, crowded = order[starts], np.bincount(common) > 1
    if crowded.any():
        yield first[crowded], order[starts[crowded] + 1]
    rows = max(1, _PAIRS_AT_ONCE // first.size)
    for start in range(0, first.size, rows):
        x, x2 = (side.reshape(-1) for side in np.broadcast_arrays(first[start : start + rows, None], first))
        if (x != x2).any():
            yield x[x != x2], x2[x != x2]


def _classes(context: Context) -> Symbols:
    if context.groups is not None:
        return context.groups.group_of
    if not isinstance(context, ContextUnion):
        return np.arange(context.size)
    inside: Symbols = np.zeros(context.size, dtype=np.int64)
    for j, part in enumerate(context.parts):
        here = context.block_of == j
        inside[here] = _classes(part)[context.rank[here]]
    return context.block_of * (int(inside.max()) + 1) + inside


# --- exact entries of many pairs --------------------------------------------------------------------------------------


def _reader(context: Context) -> Callable[[Symbols, Symbols], Levels]:
    """A function that reads the entries of pairs x ≠ x2."""
    groups = context.groups
    if groups is not None:
        number, values = _distinct((*groups.inside, *groups.outward))
        m = len(groups.inside)

        def of_groups(x: Symbols, x2: Symbols) -> Levels:
            g = groups.group_of[x]
            return number[np.where(g == groups.group_of[x2], g, m + g)], values

        return of_groups
    if isinstance(context, ContextUnion):
        return _union_reader(context)
    exact = context.exact_matrix()

    def of_matrix(x: Symbols, x2: Symbols) -> Levels:
        _, first, which = np.unique(exact.numerators[x, x2], return_index=True, return_inverse=True)
        return which.reshape(-1), [exact.entry(int(x[i]), int(x2[i])) for i in first.tolist()]

    return of_matrix


def _union_reader(context: ContextUnion) -> Callable[[Symbols, Symbols], Levels]:
    readers = [_reader(part) for part in context.parts]

    def of_union(x: Symbols, x2: Symbols) -> Levels:
        which: NDArray[np.int64] = np.zeros(x.shape, dtype=np.int64)
        values: list[Epsilon] = [inf]
        block = np.where(context.block_of[x] == context.block_of[x2], context.block_of[x], -1)
        for j in np.unique(block[block >= 0]).tolist():
            here = block == j
            inside, more = readers[j](context.rank[x[here]], context.rank[x2[here]])
            which[here] = inside + len(values)
            values = [*values, *more]
        number, distinct = _distinct(values)
        return number[which], distinct

    return of_union


def _distinct(values: Sequence[Epsilon]) -> tuple[NDArray[np.int64], list[Epsilon]]:
    """The number of each value among the distinct ones, and those: most contexts have very few."""
    numbers = {value: number for number, value in enumerate(dict.fromkeys(values))}
    return np.array([numbers[value] for value in values], dtype=np.int64), list(numbers)
