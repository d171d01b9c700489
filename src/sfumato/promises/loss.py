"""Repeated surveys: the exact (ε, δ) curve for a pair of symbols.

One report moves the log-odds of x against x2 by its loss ``log Q(y|x)/Q(y|x2)``; the losses of T
independent reports add up. Let P and P2 be the probabilities of a sum of losses under x and under
x2. Then T reports together are (ε, δ)-private for

    δ(ε) = Σ_s max(0, P(s) − e^ε P2(s)).

The losses for two rows of a mechanism take only two or three values, so there are few sums. They
are counted in integers, with P rounded up and P2 rounded down. The rounding is far smaller than
floating-point precision.
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

_KEPT_BITS = 512  # in addition to those needed for the largest sum of losses
_MAX_SUMS = 100_000
_ONE = 1 << 64  # odds are rounded up to multiples of 1/_ONE
_MAX_EPSILON = 1000  # anything larger counts as inf: e^−1000 is below any δ

_Sum = tuple[int, ...] | None
"""A sum of losses: the coefficient of each basic loss, or ``None`` if it is infinite."""

_Loss = tuple[_Sum, int, int]
"""A loss with its counts under x and under x2."""

_Counts = tuple[int, int]
"""Counts under x and under x2."""


@dataclass(frozen=True, eq=False, repr=False)
class PrivacyLoss:
    """What ``reports`` reports from one person reveal about x against x2.

    ``naive`` is the ε from basic composition. ``delta`` and ``epsilon`` give the exact curve.
    """

    reports: int
    naive: float
    _counts: list[_Counts]
    _denominator: int

    def delta(self, epsilon: float) -> float:
        """Return the smallest δ for which the reports are (ε, δ)-private, rounded up."""
        exact = exact_number(epsilon, "epsilon")
        if isinstance(exact, float):
            excess = sum(p for p, p2 in self._counts if p2 == 0)
            total = Fraction(excess, self._denominator)
        else:
            e, _ = exp_bounds(exact)  # the lower bound
            excess = 0
            for p, p2 in self._counts:
                excess += max(0, p * e.denominator - e.numerator * p2)
            total = Fraction(excess, self._denominator * e.denominator)
        return min(math.nextafter(float(total), 1.0), 1.0) if total else 0.0

    def epsilon(self, delta: float) -> float:
        """Return the smallest ε for which the reports are (ε, δ)-private, rounded up to 1e-9."""
        if not 0 <= delta < 1:
            raise InvalidArgument(f"delta must be in [0, 1); got {delta}. Pass e.g. 1e-6.")
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
        sum_count = len(self._counts)
        details = f"{self.reports} reports, {sum_count} sums of losses, naive ε = {self.naive:g}"
        return f"PrivacyLoss({details})"


def privacy_loss(
    context_or_mechanism: Context | Mechanism, x: int, x2: int, *, reports: int = 1
) -> PrivacyLoss:
    """Return the loss of ``reports`` independent reports on the same value, for x against x2.

    For a mechanism, the loss comes from its rows for x and x2. For a context, it is the worst case
    over all mechanisms that satisfy it. That is the binary optimum (Theorem 2), with both odds
    rounded up.

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
    # For infinite odds, divide the rows by the odds and take the limit.
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
    """Return ``⌈2^64 e^ε⌉`` or a little more, or ``None`` for infinite odds."""
    if isinstance(epsilon, float) or epsilon > _MAX_EPSILON:
        return None
    above = exp_bounds(epsilon)[1] * _ONE
    return -(-above.numerator // above.denominator)


def _basic_losses(row: Iterable[int], row2: Iterable[int]) -> list[_Loss]:
    """Return the distinct losses of one report with their counts under x and x2.

    Each loss is a vector of coefficients of basic losses. Odds and their inverse have coefficients
    +1 and −1 of the same basic loss, so they cancel.
    """
    counts: dict[Fraction | None, _Counts] = defaultdict(lambda: (0, 0))
    for p, p2 in zip(row, row2, strict=True):
        if p:  # a report that x never sends does not contribute
            odds = Fraction(p, p2) if p2 else None
            total, total2 = counts[odds]
            counts[odds] = (total + p, total2 + p2)
    finite = {max(odds, 1 / odds) for odds in counts if odds is not None}
    basic = sorted(finite - {Fraction(1)})
    zero = (0,) * len(basic)
    coefficients: dict[Fraction | None, _Sum] = {None: None, Fraction(1): zero}
    for i, odds in enumerate(basic):
        before = zero[:i]
        after = zero[i + 1 :]
        coefficients[odds] = (*before, 1, *after)
        coefficients[1 / odds] = (*before, -1, *after)
    return [(coefficients[odds], *count) for odds, count in counts.items()]


def _convolve(losses: list[_Loss], denominator: int, reports: int) -> tuple[list[_Counts], int]:
    """Count the sums of ``reports`` losses under x (rounded up) and under x2 (rounded down).

    Returns the counts and their denominator.
    """
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
                f"{reports} reports have more than {_MAX_SUMS:,} sums of losses. Pass fewer "
                "reports."
            )
    return list(sums.values()), total


def _add_loss(sums: dict[_Sum, _Counts], losses: list[_Loss]) -> dict[_Sum, _Counts]:
    new_sums: dict[_Sum, _Counts] = defaultdict(lambda: (0, 0))
    for term, (p, p2) in sums.items():
        for loss, q, q2 in losses:
            key = _add(term, loss)
            count, count2 = new_sums[key]
            new_sums[key] = (count + p * q, count2 + p2 * q2)
    return new_sums


def _add(term: _Sum, loss: _Sum) -> _Sum:
    if term is None or loss is None:
        return None
    return tuple(map(add, term, loss))
