"""Every pair of symbols on every output, in integers.

Few symbols are compared pair by pair. A context of groups has one ε inside each group and one from each group to all
others, so on one output all its pairs keep the promise exactly if the largest integer on one side is at most e^ε times
the smallest on the other: many symbols are compared by these extremes, which is linear and just as exact.
"""

from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.contexts import Context, GroupedContext
from sfumato.foundation.arrays import Booleans, Floats, Symbols
from sfumato.mechanisms import Mechanism
from sfumato.promises.tightest import Tightest, no_channel, violation
from sfumato.randomness import Epsilon, exp_bounds, within_odds

__all__ = ["tightest_of_all"]

_Integers = NDArray[np.object_]
_ROUNDING = 1e-14
_FEW_SYMBOLS = 512  # up to here pairs are compared one by one


def tightest_of_all(mechanism: Mechanism, context: Context) -> Tightest | None:
    """Compare all rows; raises ``PrivacyViolation``, or returns the tightest place (``None``: nothing promised)."""
    numbers, table = _numbered(mechanism)
    groups = context.groups
    search = _Search(numbers, mechanism.denominator)
    if groups is None or mechanism.inputs <= _FEW_SYMBOLS:
        _compare_pairs(search, table, context)
    else:
        _compare_extremes(search, table, groups)
    return search.tightest


class _Search:
    """The tightest place so far, over channels whose distinct integers are ``numbers``."""

    def __init__(self, numbers: _Integers, denominator: int) -> None:
        self.numbers = numbers
        self.tightest: Tightest | None = None
        self._denominator = denominator
        self._least = np.inf

    def look(
        self,
        pairs: NDArray[np.int64],
        epsilon: Fraction,
        place: Callable[[int], tuple[int, int, int]],
    ) -> None:
        """Look at pairs of numbers ``high · len(numbers) + low``, each distinct pair once; raise if one is too far.

        ``place`` finds the symbols and the output where a pair occurs.
        """
        n = len(self.numbers)
        distinct = _distinct(pairs, n**2)
        high = self.numbers[distinct // n]
        low = self.numbers[distinct % n]
        slack = _slack(high, low, epsilon, self._denominator)
        i = int(slack.argmin())
        if slack[i] > self._least + _ROUNDING * float(epsilon):
            return
        x, x2, output = place(int(distinct[i]))
        found = Tightest(x, x2, output, high[i], low[i], epsilon)
        if slack[i] < 0:
            raise violation(found)
        # Slacks of different ε are compared as they are told, with the realised ε rounded up.
        told = float(epsilon) - found.realised
        if self.tightest is None or told < self._least:
            self._least = told
            self.tightest = found


def _compare_pairs(search: _Search, table: NDArray[np.int64], context: Context) -> None:
    """Compare each symbol with all those to which it owes the same ε at once."""
    for x in range(len(table)):
        for epsilon, others in _owed(context, x).items():
            pairs = table[x] * len(search.numbers) + table[others]
            search.look(pairs, epsilon, _place_in_rows(pairs, x, others))


def _place_in_rows(
    pairs: NDArray[np.int64], x: int, others: list[int]
) -> Callable[[int], tuple[int, int, int]]:
    def place(pair: int) -> tuple[int, int, int]:
        row, output = np.argwhere(pairs == pair)[0].tolist()
        return x, others[row], output

    return place


# --- extremes of groups -----------------------------------------------------------------------------------------------


def _compare_extremes(search: _Search, table: NDArray[np.int64], groups: GroupedContext) -> None:
    """Compare the largest integer of each group, output by output, with the smallest inside it and outside it."""
    ascending = _ascending(search.numbers)
    rank_of = np.empty(ascending.size, dtype=np.int64)
    rank_of[ascending] = np.arange(ascending.size)
    ranks = rank_of[table]
    search.numbers = search.numbers[ascending]
    order = np.argsort(groups.group_of, kind="stable")
    starts = np.searchsorted(groups.group_of[order], np.arange(len(groups.inside)))
    largest = np.maximum.reduceat(ranks[order], starts)
    smallest = np.minimum.reduceat(ranks[order], starts)
    for epsilon, members in _groups_by_promise(groups.inside, groups.sizes > 1).items():
        pairs = largest[members] * len(search.numbers) + smallest[members]
        search.look(
            pairs, epsilon, _place_in_groups(pairs, members, ranks, groups.group_of, np.equal)
        )
    if len(groups.inside) < 2:
        return
    elsewhere = _smallest_elsewhere(smallest)
    for epsilon, members in _groups_by_promise(groups.outward, groups.sizes > 0).items():
        pairs = largest[members] * len(search.numbers) + elsewhere[members]
        search.look(
            pairs, epsilon, _place_in_groups(pairs, members, ranks, groups.group_of, np.not_equal)
        )


def _smallest_elsewhere(smallest: NDArray[np.int64]) -> NDArray[np.int64]:
    """The smallest number outside each group, by output: the least of all, or the second for the group that has it."""
    outputs = np.arange(smallest.shape[1])
    holder = smallest.argmin(axis=0)
    least = smallest[holder, outputs]
    others = smallest.copy()
    others[holder, outputs] = np.iinfo(np.int64).max
    elsewhere = np.broadcast_to(least, smallest.shape).copy()
    elsewhere[holder, outputs] = others.min(axis=0)
    return elsewhere


def _groups_by_promise(
    promises: tuple[Epsilon, ...], exists: Booleans
) -> dict[Fraction, list[int]]:
    """The groups that have a pair, by their finite promise."""
    by_promise: dict[Fraction, list[int]] = defaultdict(list)
    for g, epsilon in enumerate(promises):
        if exists[g] and isinstance(epsilon, Fraction):
            by_promise[epsilon].append(g)
    return by_promise


def _place_in_groups(
    pairs: NDArray[np.int64],
    members: list[int],
    ranks: NDArray[np.int64],
    group_of: Symbols,
    relation: Callable[[Symbols, int], Booleans],
) -> Callable[[int], tuple[int, int, int]]:
    """Find a symbol of a group and one whose group is equal, or not equal, to it."""
    n = int(ranks.max()) + 1

    def place(pair: int) -> tuple[int, int, int]:
        row, output = np.argwhere(pairs == pair)[0].tolist()
        high, low = divmod(pair, n)
        column = ranks[:, output]
        x = int(np.flatnonzero((group_of == members[row]) & (column == high))[0])
        others = np.flatnonzero(relation(group_of, members[row]) & (column == low))
        return x, int(others[others != x][0]), output

    return place


# --- integers ---------------------------------------------------------------------------------------------------------


def _slack(high: _Integers, low: _Integers, epsilon: Fraction, denominator: int) -> Floats:
    """``ε − log(high/low)``, at most ε; below 0 exactly where the promise is broken.

    With ``b ≤ e^ε`` rational, ``b·low ≥ high`` shows in integers that it is kept, and by how much of ``b·low``. Where
    that does not show, b is sharpened until it or its counterpart above e^ε decides.
    """
    enough = min(
        epsilon, Fraction(denominator.bit_length())
    )  # no two numbers of words but 0 have odds of 2^ε
    b = exp_bounds(enough)[0]
    most = low * b.numerator
    spare = most - high * b.denominator
    with np.errstate(divide="ignore"):  # a report that x never sends leaves everything spare
        slack = -np.log1p(-(spare / np.where(most == 0, 1, most)).astype(np.float64)) + float(
            epsilon - enough
        )
    for i in np.flatnonzero(spare < 0).tolist():
        slack[i] = 0.0 if within_odds(high[i], low[i], epsilon) else -np.inf
    return np.where((low == 0) & (high == 0), float(epsilon), np.minimum(slack, float(epsilon)))


def _numbered(mechanism: Mechanism) -> tuple[_Integers, NDArray[np.int64]]:
    """Return the distinct integers of the channel, and the table of their numbers."""
    entries: list[int] = []
    for x in range(mechanism.inputs):
        row = mechanism.integer_row(x)
        if min(row) < 0 or sum(row) != mechanism.denominator:
            raise no_channel(x)
        entries.extend(row)
    distinct = list(dict.fromkeys(entries))
    number_of = dict(zip(distinct, range(len(distinct)), strict=True))
    numbers = np.fromiter(map(number_of.__getitem__, entries), np.int64, len(entries))
    table = numbers.reshape(mechanism.inputs, mechanism.outputs)
    return np.array(distinct, dtype=object), table


def _ascending(numbers: _Integers) -> NDArray[np.intp]:
    """Return the order of the integers, ten times as fast where they fit into 64 bits."""
    if max(numbers) < 2**64:
        return np.argsort(numbers.astype(np.uint64))
    return np.argsort(numbers)


def _distinct(pairs: NDArray[np.int64], possible: int) -> NDArray[np.int64]:
    """The different entries of ``pairs``: by counting where they are few, by sorting otherwise."""
    if possible <= pairs.size:
        return np.flatnonzero(np.bincount(pairs.ravel(), minlength=possible))
    return np.unique(pairs)


def _owed(context: Context, x: int) -> dict[Fraction, list[int]]:
    """The other symbols, by the finite ε that x owes them."""
    owed: dict[Fraction, list[int]] = defaultdict(list)
    for x2 in range(context.size):
        epsilon = context.exact_epsilon(x, x2)
        if x2 != x and isinstance(epsilon, Fraction):
            owed[epsilon].append(x2)
    return owed
