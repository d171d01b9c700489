"""A device's budget: how much all its answers together may give away, as one number.

Answers under E1 and E2 together keep E1 + E2 (Proposition 2 of the paper). So what a device has spent on one domain is
the largest sum of promises over any pair of its symbols. What it said on another domain concerns the same person but
other pairs, so domains add up in full. Permuted or additional labels make another domain: they open no new account.

An infinite entry is not a cost. It promises nothing for its pair, and a device answers such a survey only if its caller
allows values in clear: see ``Client``.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Symbols
from sfumato.canonical import fingerprint
from sfumato.contexts import Context
from sfumato.contexts.groups import Entries, numbered_by_first
from sfumato.errors import InvalidContext
from sfumato.randomness.odds import exact_number

__all__ = ["DEFAULT_BUDGET", "MOST_CLASSES", "Cost", "exact_budget", "spent_on"]

DEFAULT_BUDGET = Fraction(4)
"""The odds between any two answers then move by a factor of at most e^4 ≈ 55, so a 50 : 50 guess becomes at most
98 : 2. That is room for four surveys at ε = 1; beyond it there is little left to deny."""

MOST_CLASSES = 1024
"""Up to this many classes of symbols every pair of classes is added up; above, each survey counts in full."""


@dataclass(frozen=True)
class Cost:
    """``times · E``: what a survey costs that a person may answer with ``times`` distinct values."""

    times: int
    context: Context

    @property
    def most(self) -> Fraction:
        """The most that it costs for any pair."""
        return self.times * self.context.largest_finite


def exact_budget(budget: object) -> Fraction | None:
    """The budget that a caller passed, exactly; ``None`` for no budget.

    >>> exact_budget("2.5")
    Fraction(5, 2)
    """
    if budget is None:
        return None
    exact = exact_number(budget, "budget")
    if not isinstance(exact, Fraction) or exact == 0:
        raise InvalidContext("budget must be a positive number such as 4. Pass budget=None to have no budget.")
    return exact


def spent_on(costs: Iterable[Cost]) -> Fraction:
    """What these surveys give away together: the largest sum over pairs in each domain, added up over domains.

    >>> from sfumato.contexts import HighLow, Uniform
    >>> spent_on([Cost(2, Uniform(3, "0.5")), Cost(1, HighLow(3, [0], 1)), Cost(1, Uniform(4, "0.25"))])
    Fraction(9, 4)
    """
    by_domain: dict[str, list[Cost]] = {}
    for cost in costs:
        domain = fingerprint(cost.context.domain.record())
        by_domain.setdefault(domain, []).append(cost)
    return sum((_spent_on_domain(here) for here in by_domain.values()), start=Fraction(0))


def _spent_on_domain(costs: Sequence[Cost]) -> Fraction:
    """The largest sum over the pairs of one domain."""
    alike = Fraction(0)  # what is the same for all pairs
    varied: list[Cost] = []
    for cost in costs:
        if cost.context.symbol_classes() is None:
            alike += cost.most
        else:
            varied.append(cost)
    in_full = sum((cost.most for cost in varied), start=Fraction(0))
    if len(varied) < 2:
        return alike + in_full
    classes = _common_classes([cost.context for cost in varied])
    if int(classes.max()) >= MOST_CLASSES:
        return alike + in_full
    return alike + _largest_sum(varied, *_pairs_of_classes(classes))


def _common_classes(contexts: Sequence[Context]) -> Symbols:
    """The coarsest classes of symbols that refine those of every context."""
    common: Symbols = np.zeros(contexts[0].size, dtype=np.int64)
    for context in contexts:
        own = context.symbol_classes()
        if own is not None:
            common, _ = numbered_by_first(common * (int(own.max()) + 1) + own)
    return common


def _pairs_of_classes(classes: Symbols) -> tuple[Symbols, Symbols]:
    """A pair of symbols for every ordered pair of classes, and one inside each class that has two symbols."""
    count = int(classes.max()) + 1
    order = np.argsort(classes, kind="stable")
    starts = np.searchsorted(classes[order], np.arange(count))
    first = order[starts]
    crowded = np.bincount(classes) > 1
    second = order[starts[crowded] + 1]
    x, x2 = (side.reshape(-1) for side in np.meshgrid(first, first, indexing="ij"))
    differ = x != x2
    return np.concatenate([first[crowded], x[differ]]), np.concatenate([second, x2[differ]])


def _largest_sum(costs: Sequence[Cost], x: Symbols, x2: Symbols) -> Fraction:
    """The largest ``Σ times · E[x, x2]`` over the pairs, infinite entries left out."""
    which: NDArray[np.int64] = np.zeros(x.shape, dtype=np.int64)
    sums = [Fraction(0)]
    for cost in costs:
        which, sums = _add(which, sums, cost.times, cost.context.exact_entries(x, x2))
    return max(sums, default=Fraction(0))  # a domain of one symbol has no pairs


def _add(
    which: NDArray[np.int64], sums: list[Fraction], times: int, entries: Entries
) -> tuple[NDArray[np.int64], list[Fraction]]:
    """The sums with one more term, each sum that occurs listed once."""
    which_entry, values = entries
    joint, places = np.unique(which * len(values) + which_entry, return_inverse=True)
    longer = []
    for number in joint.tolist():
        before, entry = divmod(number, len(values))
        value = values[entry]
        longer.append(sums[before] if value == inf else sums[before] + times * Fraction(value))
    return places.reshape(-1), longer
