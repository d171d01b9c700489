"""Repeated surveys: the exact (ε, δ) curve for a pair of symbols.

One report moves the log-odds of x against x2 by its loss ``log Q(y|x)/Q(y|x2)``; the losses of T
independent reports add up. Let P(s) and P2(s) be the probabilities that their sum is s under x and
under x2. Then the T reports together are (ε, δ)-private for

    δ(ε) = Σ_s max(0, P(s) − e^ε P2(s)).

For two rows of most mechanisms, a loss has only two or three possible values, so there are few
sums. P and P2 are computed in integer arithmetic, over a common denominator; P is rounded up and P2
is rounded down. The rounding errors are far smaller than float errors.
"""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from operator import add

from sfumato.contexts import Context
from sfumato.domains import SymbolOrLabel
from sfumato.errors import InvalidArgument
from sfumato.foundation.correct_call import shows_call
from sfumato.foundation.formatting import format_number, plural
from sfumato.foundation.notebook import facts_html
from sfumato.mechanisms import Mechanism, MechanismHolder
from sfumato.promises.observer import SymbolPair
from sfumato.randomness import Epsilon, exact_number, exp_bounds

_KEPT_BITS = 512  # bits to keep in a count, besides those for the largest sum of losses
_MAX_SUMS = 100_000
_ONE = 1 << 64  # represents odds of 1; odds are rounded up to multiples of 2^−64
_SHOWN_DELTAS = (1e-9, 1e-6, 1e-3)  # in notebooks
_MAX_EPSILON = 1000  # treat anything larger as inf: e^−1000 is below any positive float

_Sum = tuple[int, ...] | None
"""A sum of losses, as the coefficient of each basic loss; ``None`` if the sum is infinite."""

_Loss = tuple[_Sum, int, int]
"""A loss with its counts under x and under x2."""

_Counts = tuple[int, int]
"""The counts of a sum of losses under x and under x2."""


@dataclass(frozen=True, eq=False, repr=False)
class PrivacyLoss:
    """What ``report_count`` reports from one person reveal about whether the value is x or x2.

    ``naive_epsilon`` is the ε from basic composition. ``delta`` and ``epsilon`` give the exact
    curve, rounded up.
    """

    report_count: int
    naive_epsilon: float
    _counts: list[_Counts]
    _denominator: int

    def delta(self, epsilon: float) -> float:
        """Return the smallest δ for which the reports are (ε, δ)-private, rounded up."""
        exact_epsilon = exact_number(epsilon, "epsilon")
        if isinstance(exact_epsilon, float):
            excess = sum(p for p, p2 in self._counts if p2 == 0)
            delta_bound = Fraction(excess, self._denominator)
        else:
            odds, _ = exp_bounds(exact_epsilon)  # a lower bound on e^ε
            excess = 0
            for p, p2 in self._counts:
                excess += max(0, p * odds.denominator - odds.numerator * p2)
            delta_bound = Fraction(excess, self._denominator * odds.denominator)
        return min(math.nextafter(float(delta_bound), 1.0), 1.0) if delta_bound else 0.0

    def epsilon(self, delta: float) -> float:
        """Return the smallest ε for which the reports are (ε, δ)-private.

        The result is rounded up by at most 1e-9.
        """
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
        return (
            f"PrivacyLoss({plural(self.report_count, 'report')}, "
            f"{plural(len(self._counts), 'sum')} of losses, "
            f"naive ε = {self.naive_epsilon:g})"
        )

    def _repr_html_(self) -> str:
        """Return a few points of the curve as HTML, for notebooks."""
        facts = {
            "reports": f"{self.report_count:,}",
            "ε by basic composition": format_number(self.naive_epsilon),
        }
        for delta in _SHOWN_DELTAS:
            facts[f"ε at δ = {delta:g}"] = format_number(self.epsilon(delta))
        return facts_html("PrivacyLoss", facts)


@shows_call('sf.privacy_loss(context, "yes", "no", report_count=3)')
def privacy_loss(
    context_or_mechanism: Context | Mechanism | MechanismHolder,
    x: SymbolOrLabel,
    x2: SymbolOrLabel,
    *,
    report_count: int = 1,
) -> PrivacyLoss:
    """Return the privacy loss of independent reports of the same value, for x against x2.

    Integers are symbols, and text is a label. For a survey, the loss is that of its mechanism.
    For a mechanism, the loss is computed from its rows for x and x2. For a context, it is the worst
    case over all mechanisms that satisfy the context. The worst case is the binary optimum (Theorem
    2 of Acharya et al., 2020), with both odds rounded up.

    >>> from sfumato.contexts import Uniform
    >>> loss = privacy_loss(Uniform(2, 0.5), 0, 1, report_count=100)
    >>> loss.naive_epsilon, round(loss.epsilon(1e-6), 1)
    (50.0, 33.3)
    """
    pair = SymbolPair.parse(context_or_mechanism, x, x2, "privacy_loss")
    context = pair.context
    row = pair.row
    row2 = pair.row2
    if isinstance(report_count, bool) or not isinstance(report_count, int) or report_count < 1:
        raise InvalidArgument(f"report_count must be a positive integer; got {report_count!r}.")
    epsilon = context.exact_epsilon(pair.x, pair.x2)
    if not row:
        row, row2 = _dominating_rows(epsilon, context.exact_epsilon(pair.x2, pair.x))
    counts, denominator = _convolve(_distinct_losses(row, row2), sum(row), report_count)
    return PrivacyLoss(report_count, report_count * float(epsilon), counts, denominator)


def _dominating_rows(a: Epsilon, b: Epsilon) -> tuple[list[int], list[int]]:
    """Return the rows of the binary optimum as integers, for odds A ≥ e^a and B ≥ e^b.

    For finite odds, they are [[A(B − 1), A − 1], [B − 1, B(A − 1)]], with denominator AB − 1.
    """
    one = _ONE  # odds of 1
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
    """Return ``⌈2^64 e^ε⌉`` or slightly more; ``None`` for infinite odds."""
    if isinstance(epsilon, float) or epsilon > _MAX_EPSILON:
        return None
    scaled_odds = exp_bounds(epsilon)[1] * _ONE
    return -(-scaled_odds.numerator // scaled_odds.denominator)


def _distinct_losses(row: Iterable[int], row2: Iterable[int]) -> list[_Loss]:
    """Return the distinct losses of one report, with their counts under x and x2.

    A basic loss is the logarithm of odds above 1. Each loss is a vector with a coefficient for each
    basic loss. Odds and their inverse have the coefficients +1 and −1 for the same basic loss, so
    their losses cancel.
    """
    counts: dict[Fraction | None, _Counts] = defaultdict(lambda: (0, 0))
    for p, p2 in zip(row, row2, strict=True):
        if p:  # a report that x never produces does not contribute
            odds = Fraction(p, p2) if p2 else None
            total, total2 = counts[odds]
            counts[odds] = (total + p, total2 + p2)
    finite_odds = {max(odds, 1 / odds) for odds in counts if odds is not None}
    basic_odds = sorted(finite_odds - {Fraction(1)})
    zeros = (0,) * len(basic_odds)
    coefficients: dict[Fraction | None, _Sum] = {None: None, Fraction(1): zeros}
    for i, odds in enumerate(basic_odds):
        zeros_before = zeros[:i]
        zeros_after = zeros[i + 1 :]
        coefficients[odds] = (*zeros_before, 1, *zeros_after)
        coefficients[1 / odds] = (*zeros_before, -1, *zeros_after)
    return [(coefficients[odds], *count) for odds, count in counts.items()]


def _convolve(
    losses: list[_Loss], denominator: int, report_count: int
) -> tuple[list[_Counts], int]:
    """Return the counts of each sum of ``report_count`` losses, and their denominator.

    Counts under x are rounded up, and counts under x2 are rounded down.
    """
    basic_loss_count = 0
    max_odds_bits = 0
    for loss, q, q2 in losses:
        if loss is not None:
            basic_loss_count = len(loss)
        if q2:
            max_odds_bits = max(max_odds_bits, (q // q2).bit_length() + 1)
    kept_bits = _KEPT_BITS + report_count * max_odds_bits
    sums: dict[_Sum, _Counts] = {(0,) * basic_loss_count: (1, 1)}
    total = 1
    for _ in range(report_count):
        sums = _add_report(sums, losses)
        total *= denominator
        shift = max(total.bit_length() - kept_bits, 0)
        total >>= shift
        for key, (p, p2) in sums.items():
            sums[key] = (-(-p >> shift), p2 >> shift)
        if len(sums) > _MAX_SUMS:
            raise InvalidArgument(
                f"{report_count} reports would have more than {_MAX_SUMS:,} sums of losses. Pass "
                "a smaller report_count."
            )
    return list(sums.values()), total


def _add_report(sums: dict[_Sum, _Counts], losses: list[_Loss]) -> dict[_Sum, _Counts]:
    new_sums: dict[_Sum, _Counts] = defaultdict(lambda: (0, 0))
    for loss_sum, (p, p2) in sums.items():
        for loss, q, q2 in losses:
            key = _add_coefficients(loss_sum, loss)
            count, count2 = new_sums[key]
            new_sums[key] = (count + p * q, count2 + p2 * q2)
    return new_sums


def _add_coefficients(loss_sum: _Sum, loss: _Sum) -> _Sum:
    if loss_sum is None or loss is None:
        return None
    return tuple(map(add, loss_sum, loss))
