"""Every pair of symbols on every output, in integers, and the place where a promise is tightest.

Few symbols are compared pair by pair. A context of groups has one ε inside each group and one from
each group to all others. So on one output all its pairs keep the promise exactly if the largest
integer on one side is at most e^ε times the smallest on the other. Many symbols are compared by
these extremes, which is linear and just as exact.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import mul

import numpy as np
from numpy.typing import NDArray

from sfumato.contexts import Context, GroupedContext
from sfumato.errors import PrivacyViolation
from sfumato.foundation.arrays import Booleans, Floats, Symbols
from sfumato.foundation.canonical import Json, decimal_text
from sfumato.mechanisms import CompactRow, Mechanism
from sfumato.randomness import Epsilon, epsilon_of_odds, exp_bounds, within_odds

_Integers = NDArray[np.object_]
_Numbers = NDArray[np.int64]
_Place = tuple[int, int, int]
_ROUNDING = 1e-14
_MAX_PAIRWISE_SYMBOLS = 512  # up to here pairs are compared one by one


@dataclass(frozen=True)
class Tightest:
    """A place where a promise is closest to being broken.

    Report ``output`` favours ``x`` over ``x2`` with odds ``high : low``, as integers over one
    denominator.
    """

    x: int
    x2: int
    output: int
    high: int
    low: int
    promised: Fraction

    @property
    def realised(self) -> float:
        """``log(high/low)``, rounded up."""
        return epsilon_of_odds(self.high, self.low)

    @property
    def slack(self) -> float:
        """The promised ε, less the realised one."""
        return float(self.promised) - self.realised

    def to_record(self) -> Json:
        """Return the place as plain data."""
        return {
            "x": self.x,
            "x2": self.x2,
            "output": self.output,
            "high": str(self.high),
            "low": str(self.low),
            "promised": decimal_text(self.promised),
        }


def require_row(mechanism: Mechanism, x: int) -> CompactRow:
    """Return the compact row of x, or raise if it does not add up: nothing can be promised then."""
    levels, which = mechanism.compact_row(x)
    counts = np.bincount(which, minlength=len(levels)).tolist()
    total = sum(map(mul, levels, counts))
    if min(levels) < 0 or total != mechanism.denominator:
        raise PrivacyViolation(
            f"the row of symbol {x} does not add up to the number of draws. "
            "The mechanism must not be used.",
            x=x,
            x2=x,
            output=0,
        )
    return levels, which


def broken_promise(place: Tightest) -> PrivacyViolation:
    """Return the error that names the pair and the output."""
    return PrivacyViolation(
        f"report {place.output} tells symbol {place.x} from symbol {place.x2} by "
        f"ε = {place.realised!r}; the context promises {float(place.promised)!r}. "
        "The mechanism must not be used for this context.",
        x=place.x,
        x2=place.x2,
        output=place.output,
    )


def tightest_of_all(mechanism: Mechanism, context: Context) -> Tightest | None:
    """Compare all rows; return the tightest place, or ``None`` if nothing is promised.

    Raises ``PrivacyViolation`` if a promise is broken.
    """
    integers, table = _number_entries(mechanism)
    search = _Search(integers, mechanism.denominator)
    groups = context.groups
    if groups is None or mechanism.inputs <= _MAX_PAIRWISE_SYMBOLS:
        _compare_pairs(search, table, context)
    else:
        _compare_extremes(search, table, groups)
    return search.tightest


class _Search:
    """The tightest place so far, in a channel whose distinct entries are ``integers``."""

    def __init__(self, integers: _Integers, denominator: int) -> None:
        self.integers = integers
        self.tightest: Tightest | None = None
        self._denominator = denominator
        self._least_slack = np.inf

    def compare(self, pairs: _Numbers, epsilon: Fraction, find: Callable[[int], _Place]) -> None:
        """Compare pairs ``high · len(integers) + low`` of numbers; raise if a promise is broken.

        ``find`` returns the symbols and the output where a pair occurs.
        """
        n = len(self.integers)
        distinct = _distinct(pairs, n**2)
        high = self.integers[distinct // n]
        low = self.integers[distinct % n]
        slack = _slack(high, low, epsilon, self._denominator)
        i = int(slack.argmin())
        if slack[i] > self._least_slack + _ROUNDING * float(epsilon):
            return
        x, x2, output = find(int(distinct[i]))
        place = Tightest(x, x2, output, high[i], low[i], epsilon)
        if slack[i] < 0:
            raise broken_promise(place)
        # Compare slacks of different ε as they are shown, with the realised ε rounded up.
        if self.tightest is None or place.slack < self._least_slack:
            self._least_slack = place.slack
            self.tightest = place


def _compare_pairs(search: _Search, table: _Numbers, context: Context) -> None:
    """Compare each symbol with all those to which it owes the same ε at once."""
    for x in range(len(table)):
        for epsilon, others in _symbols_by_promise(context, x).items():
            pairs = table[x] * len(search.integers) + table[others]
            search.compare(pairs, epsilon, _find_in_rows(pairs, x, others))


def _find_in_rows(pairs: _Numbers, x: int, others: list[int]) -> Callable[[int], _Place]:
    def find(pair: int) -> _Place:
        row, output = np.argwhere(pairs == pair)[0].tolist()
        return x, others[row], output

    return find


def _symbols_by_promise(context: Context, x: int) -> dict[Fraction, list[int]]:
    """Return the other symbols, by the finite ε that x owes them."""
    symbols: dict[Fraction, list[int]] = defaultdict(list)
    for x2 in range(context.size):
        epsilon = context.exact_epsilon(x, x2)
        if x2 != x and isinstance(epsilon, Fraction):
            symbols[epsilon].append(x2)
    return symbols


# --- extremes of groups ---------------------------------------------------------------------------


def _compare_extremes(search: _Search, table: _Numbers, groups: GroupedContext) -> None:
    """Compare the largest integer of each group with the smallest inside and outside it."""
    ascending = _ascending(search.integers)
    rank_of = np.empty(ascending.size, dtype=np.int64)
    rank_of[ascending] = np.arange(ascending.size)
    ranks = rank_of[table]
    search.integers = search.integers[ascending]
    group_of = groups.group_of
    order = np.argsort(group_of, kind="stable")
    group_numbers = np.arange(len(groups.inside))
    starts = np.searchsorted(group_of[order], group_numbers)
    largest = np.maximum.reduceat(ranks[order], starts)
    smallest = np.minimum.reduceat(ranks[order], starts)
    n = len(search.integers)
    for epsilon, members in _groups_by_promise(groups.inside, groups.sizes > 1).items():
        pairs = largest[members] * n + smallest[members]
        find = _find_in_groups(pairs, members, ranks, group_of, np.equal)
        search.compare(pairs, epsilon, find)
    if len(groups.inside) < 2:
        return
    elsewhere = _smallest_elsewhere(smallest)
    for epsilon, members in _groups_by_promise(groups.outward, groups.sizes > 0).items():
        pairs = largest[members] * n + elsewhere[members]
        find = _find_in_groups(pairs, members, ranks, group_of, np.not_equal)
        search.compare(pairs, epsilon, find)


def _smallest_elsewhere(smallest: _Numbers) -> _Numbers:
    """Return the smallest number outside each group, by output.

    It is the smallest of all, or the second smallest for the group that has the smallest.
    """
    outputs = np.arange(smallest.shape[1])
    holder = smallest.argmin(axis=0)
    least = smallest[holder, outputs]
    others = smallest.copy()
    others[holder, outputs] = np.iinfo(np.int64).max
    elsewhere = np.broadcast_to(least, smallest.shape).copy()
    elsewhere[holder, outputs] = others.min(axis=0)
    return elsewhere


def _groups_by_promise(
    promises: Sequence[Epsilon], has_pair: Booleans
) -> dict[Fraction, list[int]]:
    """Return the groups that have a pair, by their finite promise."""
    by_promise: dict[Fraction, list[int]] = defaultdict(list)
    for g, epsilon in enumerate(promises):
        if has_pair[g] and isinstance(epsilon, Fraction):
            by_promise[epsilon].append(g)
    return by_promise


def _find_in_groups(
    pairs: _Numbers,
    members: list[int],
    ranks: _Numbers,
    group_of: Symbols,
    relation: Callable[[Symbols, int], Booleans],
) -> Callable[[int], _Place]:
    """Find a symbol of a group, and one whose group is equal (or not equal) to it."""
    n = int(ranks.max()) + 1

    def find(pair: int) -> _Place:
        row, output = np.argwhere(pairs == pair)[0].tolist()
        high, low = divmod(pair, n)
        column = ranks[:, output]
        in_group = group_of == members[row]
        x = int(np.flatnonzero(in_group & (column == high))[0])
        is_partner = relation(group_of, members[row]) & (column == low)
        is_partner[x] = False
        return x, int(np.flatnonzero(is_partner)[0]), output

    return find


# --- integers -------------------------------------------------------------------------------------


def _slack(high: _Integers, low: _Integers, epsilon: Fraction, denominator: int) -> Floats:
    """Return ``ε − log(high/low)``, at most ε; below 0 exactly where the promise is broken.

    With ``b ≤ e^ε`` rational, ``b·low ≥ high`` shows in integers that the promise is kept, and by
    how much of ``b·low``. Where that does not show, b is sharpened until it or its counterpart
    above e^ε decides.
    """
    # No two positive numbers of words have odds of e^bits.
    enough = min(epsilon, Fraction(denominator.bit_length()))
    b = exp_bounds(enough)[0]
    most = low * b.numerator
    spare = most - high * b.denominator
    divisor = np.where(most == 0, 1, most)
    share = (spare / divisor).astype(np.float64)
    with np.errstate(divide="ignore"):  # a report that x never sends leaves everything spare
        slack = -np.log1p(-share) + float(epsilon - enough)
    for i in np.flatnonzero(spare < 0).tolist():
        is_kept = within_odds(high[i], low[i], epsilon)
        slack[i] = 0.0 if is_kept else -np.inf
    never_sent = (low == 0) & (high == 0)
    slack[never_sent] = np.inf
    return np.minimum(slack, float(epsilon))


def _number_entries(mechanism: Mechanism) -> tuple[_Integers, _Numbers]:
    """Return the distinct integers of the channel, and the table of their numbers."""
    number_of: dict[int, int] = {}
    table = np.empty((mechanism.inputs, mechanism.outputs), dtype=np.int64)
    for x in range(mechanism.inputs):
        levels, which = require_row(mechanism, x)
        # The order of a row's levels decides which of several tightest places a certificate names.
        numbers = [number_of.setdefault(level, len(number_of)) for level in levels]
        table[x] = np.array(numbers)[which]
    return np.array(list(number_of), dtype=object), table


def _ascending(integers: _Integers) -> NDArray[np.intp]:
    """Return the order of the integers, ten times as fast where they fit into 64 bits."""
    if max(integers) < 2**64:
        return np.argsort(integers.astype(np.uint64))
    return np.argsort(integers)


def _distinct(pairs: _Numbers, possible: int) -> _Numbers:
    """Return the distinct entries: by counting if few are possible, by sorting otherwise."""
    if possible <= pairs.size:
        return np.flatnonzero(np.bincount(pairs.ravel(), minlength=possible))
    return np.unique(pairs)
