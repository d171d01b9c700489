"""Compare every pair of symbols on every output in integer arithmetic; find the tightest case.

Small domains, and all contexts without groups, are compared pair by pair. A grouped context has one
ε inside each group and one from each group to all others. So on a given output, a group's promises
are kept if and only if the largest integer in the group is at most e^ε times the smallest integer
inside it, and at most e^ε times the smallest integer outside it, each with its own ε. For large
grouped domains, only these extremes are compared. That takes linear time and is just as exact.
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
from sfumato.foundation.formatting import format_label
from sfumato.foundation.notebook import FieldsView
from sfumato.mechanisms import CompactRow, Mechanism
from sfumato.randomness import Epsilon, epsilon_of_odds, exp_bounds, within_odds

_Integers = NDArray[np.object_]
_Indices = NDArray[np.int64]
_Location = tuple[int, int, int]
"""Two symbols x and x2, and an output."""

_SLACK_TOLERANCE = 1e-14  # the float error of a slack, relative to ε
_MAX_PAIRWISE_SYMBOLS = 512  # in larger grouped domains, only the extremes are compared


@dataclass(frozen=True)
class TightestCase(FieldsView):
    """The report, among those compared, that comes closest to breaking a promise, or breaks it.

    The report ``output`` favours ``x`` over ``x2`` with odds ``high : low``, two integers over the
    same denominator. ``promised`` is the ε that the context promises for x against x2.
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
        """The promised ε minus the realised ε, as a float."""
        return float(self.promised) - self.realised

    def to_record(self) -> Json:
        """Return the case as JSON-compatible data."""
        return {
            "x": self.x,
            "x2": self.x2,
            "output": self.output,
            "high": str(self.high),
            "low": str(self.low),
            "promised": decimal_text(self.promised),
        }


class UnlabelledViolation(PrivacyViolation):
    """A violation whose message names symbols, because no labels were at hand.

    ``template`` has the placeholders {x} and {x2}, for the names of the symbols, and {output}.
    """

    def __init__(self, template: str, *, x: int, x2: int, output: int) -> None:
        message = template.format(x=f"symbol {x}", x2=f"symbol {x2}", output=output)
        super().__init__(message, x=x, x2=x2, output=output)
        self.template = template

    def with_labels(self, labels: Sequence[str | int]) -> PrivacyViolation:
        """Return the violation with a message that names labels."""
        message = self.template.format(
            x=format_label(labels[self.x]),
            x2=format_label(labels[self.x2]),
            output=self.output,
        )
        return PrivacyViolation(message, x=self.x, x2=self.x2, output=self.output)


def require_row(mechanism: Mechanism, x: int) -> CompactRow:
    """Return the compact row of x; raise ``PrivacyViolation`` if it is not a distribution."""
    levels, level_indices = mechanism.compact_row(x)
    counts = np.bincount(level_indices, minlength=len(levels)).tolist()
    total = sum(map(mul, levels, counts))
    if min(levels) < 0 or total != mechanism.denominator:
        raise UnlabelledViolation(
            "the row of {x} is not a probability distribution over the outputs. "
            "The mechanism must not be used.",
            x=x,
            x2=x,
            output=0,
        )
    return levels, level_indices


def broken_promise_error(case: TightestCase) -> UnlabelledViolation:
    """Return the error for a case that breaks its promise."""
    return UnlabelledViolation(
        "report {output} distinguishes {x} from {x2} by "
        f"ε = {case.realised!r}; the context promises {float(case.promised)!r}. "
        "The mechanism must not be used for this context.",
        x=case.x,
        x2=case.x2,
        output=case.output,
    )


def enumerate_cases(mechanism: Mechanism, context: Context) -> TightestCase | None:
    """Compare all rows, and return the tightest case, or ``None`` if nothing is promised.

    Raises ``PrivacyViolation`` if a promise is broken.
    """
    integers, index_table = _index_entries(mechanism)
    search = _Search(integers, mechanism.denominator)
    groups = context.groups
    if groups is None or mechanism.inputs <= _MAX_PAIRWISE_SYMBOLS:
        _compare_pairs(search, index_table, context)
    else:
        _compare_extremes(search, index_table, groups)
    return search.tightest


class _Search:
    """A search for the tightest case in a channel.

    ``integers`` are the distinct entries of the channel. ``tightest`` is the tightest case found so
    far.
    """

    def __init__(self, integers: _Integers, denominator: int) -> None:
        self.integers = integers
        self.tightest: TightestCase | None = None
        self._denominator = denominator
        self._smallest_slack = np.inf

    def compare(
        self, pairs: _Indices, epsilon: Fraction, locate: Callable[[int], _Location]
    ) -> None:
        """Compare pairs of integers, and update the tightest case.

        Raises ``PrivacyViolation`` if a promise is broken.

        A pair of indices (i, j) into ``integers`` is encoded as ``i · len(integers) + j``.
        ``locate`` returns the symbols and the output where an encoded pair occurs.
        """
        n = len(self.integers)
        distinct_pairs = _distinct_pairs(pairs, n**2)
        high = self.integers[distinct_pairs // n]
        low = self.integers[distinct_pairs % n]
        slack = _slack(high, low, epsilon, self._denominator)
        i = int(slack.argmin())
        if slack[i] > self._smallest_slack + _SLACK_TOLERANCE * float(epsilon):
            return
        x, x2, output = locate(int(distinct_pairs[i]))
        case = TightestCase(x, x2, output, high[i], low[i], epsilon)
        if slack[i] < 0:
            raise broken_promise_error(case)
        # Compare slacks as they are displayed, with the realised ε rounded up.
        if self.tightest is None or case.slack < self._smallest_slack:
            self._smallest_slack = case.slack
            self.tightest = case


def _compare_pairs(search: _Search, index_table: _Indices, context: Context) -> None:
    """Compare each symbol with all others, one promised ε at a time."""
    for x in range(len(index_table)):
        for epsilon, others in _symbols_by_promise(context, x).items():
            pairs = index_table[x] * len(search.integers) + index_table[others]
            search.compare(pairs, epsilon, _row_locator(pairs, x, others))


def _row_locator(pairs: _Indices, x: int, others: list[int]) -> Callable[[int], _Location]:
    def locate(pair: int) -> _Location:
        row, output = np.argwhere(pairs == pair)[0].tolist()
        return x, others[row], output

    return locate


def _symbols_by_promise(context: Context, x: int) -> dict[Fraction, list[int]]:
    """Group the symbols x2 ≠ x by ``E[x, x2]``, omitting those for which it is infinite."""
    by_promise: dict[Fraction, list[int]] = defaultdict(list)
    for x2 in range(context.size):
        epsilon = context.exact_epsilon(x, x2)
        if x2 != x and isinstance(epsilon, Fraction):
            by_promise[epsilon].append(x2)
    return by_promise


# --- group extremes -------------------------------------------------------------------------------


def _compare_extremes(search: _Search, index_table: _Indices, groups: GroupedContext) -> None:
    """Compare each group's largest integer with the smallest ones inside and outside the group."""
    ascending_order = _sort_order(search.integers)
    rank_of = np.empty(ascending_order.size, dtype=np.int64)
    rank_of[ascending_order] = np.arange(ascending_order.size)
    ranks = rank_of[index_table]
    search.integers = search.integers[ascending_order]
    group_of = groups.group_of
    group_order = np.argsort(group_of, kind="stable")
    group_indices = np.arange(len(groups.inside))
    starts = np.searchsorted(group_of[group_order], group_indices)
    largest_ranks = np.maximum.reduceat(ranks[group_order], starts)
    smallest_ranks = np.minimum.reduceat(ranks[group_order], starts)
    n = len(search.integers)
    for epsilon, selected_groups in _groups_by_promise(groups.inside, groups.sizes > 1).items():
        pairs = largest_ranks[selected_groups] * n + smallest_ranks[selected_groups]
        locate = _group_locator(pairs, selected_groups, ranks, group_of, np.equal)
        search.compare(pairs, epsilon, locate)
    if len(groups.inside) < 2:
        return
    outside_ranks = _smallest_ranks_outside(smallest_ranks)
    for epsilon, selected_groups in _groups_by_promise(groups.outward, groups.sizes > 0).items():
        pairs = largest_ranks[selected_groups] * n + outside_ranks[selected_groups]
        locate = _group_locator(pairs, selected_groups, ranks, group_of, np.not_equal)
        search.compare(pairs, epsilon, locate)


def _smallest_ranks_outside(smallest_ranks: _Indices) -> _Indices:
    """Return, for each group and output, the smallest rank outside the group.

    ``smallest_ranks`` contains, for each group and output, the smallest rank in the group. The
    result is the overall minimum or, for the group that contains this minimum, the minimum over all
    other groups.
    """
    outputs = np.arange(smallest_ranks.shape[1])
    argmin = smallest_ranks.argmin(axis=0)
    minimum = smallest_ranks[argmin, outputs]
    other_ranks = smallest_ranks.copy()
    other_ranks[argmin, outputs] = np.iinfo(np.int64).max
    outside_ranks = np.broadcast_to(minimum, smallest_ranks.shape).copy()
    outside_ranks[argmin, outputs] = other_ranks.min(axis=0)
    return outside_ranks


def _groups_by_promise(
    promises: Sequence[Epsilon], has_pair: Booleans
) -> dict[Fraction, list[int]]:
    """Return the groups that make each finite promise, omitting groups without a pair."""
    by_promise: dict[Fraction, list[int]] = defaultdict(list)
    for g, epsilon in enumerate(promises):
        if has_pair[g] and isinstance(epsilon, Fraction):
            by_promise[epsilon].append(g)
    return by_promise


def _group_locator(
    pairs: _Indices,
    selected_groups: list[int],
    ranks: _Indices,
    group_of: Symbols,
    relation: Callable[[Symbols, int], Booleans],
) -> Callable[[int], _Location]:
    """Return a function that finds the symbols and the output where an encoded pair occurs.

    ``relation`` is ``np.equal`` for pairs inside a group, and ``np.not_equal`` for pairs across
    groups.
    """
    n = int(ranks.max()) + 1

    def locate(pair: int) -> _Location:
        row, output = np.argwhere(pairs == pair)[0].tolist()
        high, low = divmod(pair, n)
        column = ranks[:, output]
        is_in_group = group_of == selected_groups[row]
        x = int(np.flatnonzero(is_in_group & (column == high))[0])
        is_partner = relation(group_of, selected_groups[row]) & (column == low)
        is_partner[x] = False
        return x, int(np.flatnonzero(is_partner)[0]), output

    return locate


# --- integers -------------------------------------------------------------------------------------


def _slack(high: _Integers, low: _Integers, epsilon: Fraction, denominator: int) -> Floats:
    """Return ``ε − log(high/low)``, capped at ε; negative if and only if the promise is broken.

    For a rational ``b ≤ e^ε``, ``b·low ≥ high`` proves that the promise is kept. It is checked in
    integer arithmetic, and the difference between the two sides gives the slack. If the inequality
    does not hold, bounds on e^ε are refined until one of them shows whether the promise is kept.
    """
    # If the denominator has n bits, the odds of two positive word counts are below e^n.
    capped_epsilon = min(epsilon, Fraction(denominator.bit_length()))
    b = exp_bounds(capped_epsilon)[0]
    scaled_low = low * b.numerator
    margin = scaled_low - high * b.denominator
    divisor = np.where(scaled_low == 0, 1, scaled_low)
    relative_margin = (margin / divisor).astype(np.float64)
    with np.errstate(divide="ignore"):  # the relative margin is 1 if high is 0
        slack = -np.log1p(-relative_margin) + float(epsilon - capped_epsilon)
    for i in np.flatnonzero(margin < 0).tolist():
        is_kept = within_odds(high[i], low[i], epsilon)
        slack[i] = 0.0 if is_kept else -np.inf
    is_never_sent = (low == 0) & (high == 0)
    slack[is_never_sent] = np.inf
    return np.minimum(slack, float(epsilon))


def _index_entries(mechanism: Mechanism) -> tuple[_Integers, _Indices]:
    """Return the channel's distinct integers, and the channel as a table of indices into them."""
    index_of: dict[int, int] = {}
    index_table = np.empty((mechanism.inputs, mechanism.outputs), dtype=np.int64)
    for x in range(mechanism.inputs):
        levels, level_indices = require_row(mechanism, x)
        # If several cases are equally tight, the order of the levels decides which one is found.
        indices = [index_of.setdefault(level, len(index_of)) for level in levels]
        index_table[x] = np.array(indices)[level_indices]
    return np.array(list(index_of), dtype=object), index_table


def _sort_order(integers: _Integers) -> NDArray[np.intp]:
    """Return the indices that sort the integers."""
    if max(integers) < 2**64:  # sorting 64-bit integers is ten times faster
        return np.argsort(integers.astype(np.uint64))
    return np.argsort(integers)


def _distinct_pairs(pairs: _Indices, pair_limit: int) -> _Indices:
    """Return the distinct encoded pairs, all of which are below ``pair_limit``."""
    if pair_limit <= pairs.size:  # counting is faster than sorting
        return np.flatnonzero(np.bincount(pairs.ravel(), minlength=pair_limit))
    return np.unique(pairs)
