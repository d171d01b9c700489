"""Repeated surveys: exact (ε, δ) curves, pair by pair.

One report moves the log-odds of x against x2 by its loss ``log Q(y|x)/Q(y|x2)``; T independent
reports add up T losses. With P and P2 the probabilities of a sum of losses under x and under x2, T
reports together are (ε, δ)-private for

    δ(ε) = Σ_s max(0, P(s) − e^ε P2(s)).

The losses of a mechanism's two rows take two or three values, so there are few sums. They are
counted in integers: P rounded up, P2 rounded down, far below anything that a float can show.
"""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from operator import add

from sfumato.contexts import Context
from sfumato.errors import InvalidArgument
from sfumato.mechanisms import Mechanism
from sfumato.promises.observer import context_and_rows
from sfumato.randomness import Epsilon, exact_number, exp_bounds

_KEPT_BITS = 512  # beyond what the largest sum of losses needs
_MAX_SUMS = 100_000
_ONE = 1 << 64  # the unit in which odds are rounded up
_MAX_EPSILON = 1000  # rounded up to inf: e^−1000 is below any δ

_Sum = tuple[int, ...] | None
"""A sum of losses: how often each basic loss occurs; ``None`` for an infinite one."""

_Loss = tuple[_Sum, int, int]
"""A loss with its counts under x and under x2."""

_Counts = tuple[int, int]
"""Counts under x and under x2."""


@dataclass(frozen=True, eq=False, repr=False)
class PrivacyLoss:
    """What ``reports`` reports of one person reveal about x against x2.

    ``naive`` is the ε that adding up promises. ``delta`` and ``epsilon`` give the exact curve.
    """

    reports: int
    naive: float
    _counts: list[_Counts]
    _denominator: int

    def delta(self, epsilon: float) -> float:
        """Return the least δ for which the reports are (ε, δ)-private, rounded up."""
        exact = exact_number(epsilon, "epsilon")
        if isinstance(exact, float):
            excess = sum(p for p, p2 in self._counts if p2 == 0)
            total = Fraction(excess, self._denominator)
        else:
            e, _ = exp_bounds(exact)  # from below
            excess = 0
            for p, p2 in self._counts:
                excess += max(0, p * e.denominator - e.numerator * p2)
            total = Fraction(excess, self._denominator * e.denominator)
        return min(math.nextafter(float(total), 1.0), 1.0) if total else 0.0

    def epsilon(self, delta: float) -> float:
        """Return the least ε for which the reports are (ε, δ)-private, to 1e-9, rounded up."""
        if not 0 <= delta < 1:
            raise InvalidArgument(f"delta must lie in [0, 1); got {delta}. Pass e.g. 1e-6.")
        if self.delta(math.inf) > delta:
            return math.inf
        if self.delta(0.0) <= delta:
            return 0.0
        low = 0.0
        high = 1.0
        while self.delta(high) > delta:
            low = high
            high *= 2
        while high - low > 1e-9:
            middle = (low + high) / 2
            if self.delta(middle) > delta:
                low = middle
            else:
                high = middle
        return high

    def __repr__(self) -> str:
        sums = len(self._counts)
        contents = f"{self.reports} reports, {sums} sums of losses, naive ε = {self.naive:g}"
        return f"PrivacyLoss({contents})"


def privacy_loss(
    context_or_mechanism: Context | Mechanism, x: int, x2: int, *, reports: int = 1
) -> PrivacyLoss:
    """Return the loss of ``reports`` independent reports about the same value, for x against x2.

    For a mechanism, it comes from its own two rows. For a context, it comes from the rows that
    dominate every mechanism that keeps it: the binary optimum (Theorem 2), with both odds rounded
    up.

    >>> from sfumato.contexts import Uniform
    >>> loss = privacy_loss(Uniform(2, 0.5), 0, 1, reports=100)
    >>> loss.naive, round(loss.epsilon(1e-6), 1)
    (50.0, 33.3)
    """
    context, row, row2 = context_and_rows(context_or_mechanism, x, x2)
    if isinstance(reports, bool) or not isinstance(reports, int) or reports < 1:
        raise InvalidArgument(f"reports must be a positive integer; got {reports!r}.")
    epsilon = context.exact_epsilon(x, x2)
    if not row:
        row, row2 = _dominating_rows(epsilon, context.exact_epsilon(x2, x))
    counts, denominator = _convolve(_basic_losses(row, row2), sum(row), reports)
    return PrivacyLoss(reports, reports * float(epsilon), counts, denominator)


def _dominating_rows(a: Epsilon, b: Epsilon) -> tuple[list[int], list[int]]:
    """Return the binary optimum in integers, for A ≥ e^a and B ≥ e^b.

    [[A(B − 1), A − 1], [B − 1, B(A − 1)]] over AB − 1
    """
    one = _ONE
    A = _odds_above(a)
    B = _odds_above(b)
    # Infinite odds: divide the rows by them, and take the limit.
    if A is None:
        if B is None:
            return [1, 0], [0, 1]
        return [B - one, one], [0, B]
    if B is None:
        return [A, 0], [one, A - one]
    if a == 0 or b == 0:
        return [1], [1]
    row = [A * (B - one), (A - one) * one]
    row2 = [(B - one) * one, B * (A - one)]
    return row, row2


def _odds_above(epsilon: Epsilon) -> int | None:
    """Return an integer number of 2^−64ths that is at least e^ε; ``None`` for infinite odds."""
    if isinstance(epsilon, float) or epsilon > _MAX_EPSILON:
        return None
    above = exp_bounds(epsilon)[1] * _ONE
    return -(-above.numerator // above.denominator)


def _basic_losses(row: Iterable[int], row2: Iterable[int]) -> list[_Loss]:
    """Return the distinct losses of one report with their counts under x and x2.

    Each loss is written as a power of basic ones. Odds and their inverses are powers +1 and −1 of
    the same basic loss, so that their sums meet.
    """
    counts: dict[Fraction | None, _Counts] = defaultdict(lambda: (0, 0))
    for p, p2 in zip(row, row2, strict=True):
        if p:  # a report that x never sends does not count
            odds = Fraction(p, p2) if p2 else None
            total, total2 = counts[odds]
            counts[odds] = (total + p, total2 + p2)
    finite = {max(odds, 1 / odds) for odds in counts if odds is not None}
    basic = sorted(finite - {Fraction(1)})
    zero = (0,) * len(basic)
    powers: dict[Fraction | None, _Sum] = {None: None, Fraction(1): zero}
    for i, odds in enumerate(basic):
        before = zero[:i]
        after = zero[i + 1 :]
        powers[odds] = (*before, 1, *after)
        powers[1 / odds] = (*before, -1, *after)
    return [(powers[odds], *count) for odds, count in counts.items()]


def _convolve(losses: list[_Loss], denominator: int, reports: int) -> tuple[list[_Counts], int]:
    """Return the counts of sums of ``reports`` losses under x (rounded up) and x2 (down)."""
    length = 0
    largest_bits = 0
    for loss, q, q2 in losses:
        if loss is not None:
            length = len(loss)
        if q2:
            largest_bits = max(largest_bits, (q // q2).bit_length() + 1)
    kept_bits = _KEPT_BITS + reports * largest_bits
    sums: dict[_Sum, _Counts] = {(0,) * length: (1, 1)}
    total = 1
    for _ in range(reports):
        sums = _add_loss(sums, losses)
        total *= denominator
        shift = max(total.bit_length() - kept_bits, 0)
        total >>= shift
        for key, (p, p2) in sums.items():
            sums[key] = (-(-p >> shift), p2 >> shift)
        if len(sums) > _MAX_SUMS:
            raise InvalidArgument(
                f"{reports} reports have over {_MAX_SUMS:,} sums of losses. Pass fewer reports."
            )
    return list(sums.values()), total


def _add_loss(sums: dict[_Sum, _Counts], losses: list[_Loss]) -> dict[_Sum, _Counts]:
    added: dict[_Sum, _Counts] = defaultdict(lambda: (0, 0))
    for term, (p, p2) in sums.items():
        for loss, q, q2 in losses:
            key = _add(term, loss)
            count, count2 = added[key]
            added[key] = (count + p * q, count2 + p2 * q2)
    return added


def _add(term: _Sum, loss: _Sum) -> _Sum:
    if term is None or loss is None:
        return None
    return tuple(map(add, term, loss))
