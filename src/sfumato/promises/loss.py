"""Repeated surveys: exact (ε, δ) curves, pair by pair.

One report moves the log-odds of x against x2 by its loss ``log Q(y|x)/Q(y|x2)``; T independent reports add T losses.
With P and P2 the probabilities of a sum of losses under x and under x2, T reports together are (ε, δ)-private for

    δ(ε) = Σ_s max(0, P(s) − e^ε P2(s)).

Losses of a mechanism's two rows take two or three values, so there are few sums, and they are counted in integers:
P rounded up, P2 rounded down, far below anything that a float can show.
"""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from sfumato.contexts import Context
from sfumato.errors import InvalidContext
from sfumato.mechanisms import Mechanism
from sfumato.promises.error_region import two_symbols
from sfumato.randomness import Epsilon, exact_number, exp_bounds

__all__ = ["PrivacyLoss", "privacy_loss"]

_KEPT_BITS = 512  # beyond what the largest sum of losses needs
_MOST_SUMS = 100_000
_GRID = 1 << 64
_AS_GOOD_AS_INFINITE = 1000  # rounded up to inf: e^−1000 is below anything that a δ can be

_Sum = tuple[int, ...] | None
"""A sum of losses: how often each basic loss enters; ``None`` for an infinite one."""


@dataclass(frozen=True, eq=False, repr=False)
class PrivacyLoss:
    """What T reports of one person reveal about x against x2."""

    reports: int
    naive: float
    _counts: list[tuple[int, int]]
    _denominator: int

    def delta(self, epsilon: float) -> float:
        """The least δ for which the reports are (ε, δ)-private for this pair, rounded up."""
        exact = exact_number(epsilon, "epsilon")
        if isinstance(exact, float):
            over = Fraction(sum(p for p, p2 in self._counts if p2 == 0), self._denominator)
        else:
            below, _ = exp_bounds(exact)
            excess = (p * below.denominator - below.numerator * p2 for p, p2 in self._counts)
            over = Fraction(sum(e for e in excess if e > 0), self._denominator * below.denominator)
        return min(math.nextafter(float(over), 1.0), 1.0) if over else 0.0

    def epsilon(self, delta: float) -> float:
        """The least ε (to 1e-9, rounded up) for which the reports are (ε, δ)-private for this pair."""
        if not 0 <= delta < 1:
            raise InvalidContext(f"delta must lie in [0, 1); found {delta}. Pass e.g. 1e-6.")
        if self.delta(math.inf) > delta:
            return math.inf
        low, high = 0.0, 1.0
        while self.delta(high) > delta:
            low, high = high, 2 * high
        while high - low > 1e-9:
            middle = (low + high) / 2
            low, high = (middle, high) if self.delta(middle) > delta else (low, middle)
        return high if self.delta(0.0) > delta else 0.0

    def __repr__(self) -> str:
        return f"PrivacyLoss({self.reports} reports, {len(self._counts)} sums of losses, naive ε = {self.naive:g})"


def privacy_loss(
    context_or_mechanism: Context | Mechanism, x: int, x2: int, *, reports: int = 1
) -> PrivacyLoss:
    """The loss of ``reports`` independent reports about the same value, for x against x2.

    For a mechanism, from its own two rows. For a context, from the pair of rows that dominates every mechanism that
    keeps it: the binary optimum (Theorem 2), with both odds rounded up.

    >>> from sfumato.contexts import Uniform
    >>> loss = privacy_loss(Uniform(2, 0.5), 0, 1, reports=100)
    >>> loss.naive, round(loss.epsilon(1e-6), 1)
    (50.0, 33.3)
    """
    context = (
        context_or_mechanism.context
        if isinstance(context_or_mechanism, Mechanism)
        else context_or_mechanism
    )
    two_symbols(context, x, x2)
    if isinstance(reports, bool) or not isinstance(reports, int) or reports < 1:
        raise InvalidContext(f"reports must be a whole number of at least 1; found {reports!r}.")
    if isinstance(context_or_mechanism, Mechanism):
        rows = context_or_mechanism.integer_row(x), context_or_mechanism.integer_row(x2)
    else:
        rows = _dominating_rows(context.exact_epsilon(x, x2), context.exact_epsilon(x2, x))
    counts, denominator = _added_up(_basic_losses(*rows), sum(rows[0]), reports)
    return PrivacyLoss(reports, reports * float(context.exact_epsilon(x, x2)), counts, denominator)


def _dominating_rows(a: Epsilon, b: Epsilon) -> tuple[list[int], list[int]]:
    """The binary optimum in integers, ``[[A(B−1), A−1], [B−1, B(A−1)]]`` over ``AB − 1``, with A ≥ e^a and B ≥ e^b."""
    a, b = (math.inf if epsilon > _AS_GOOD_AS_INFINITE else epsilon for epsilon in (a, b))
    if isinstance(a, float) and isinstance(b, float):
        return [1, 0], [0, 1]
    if isinstance(a, float):  # divide by A and let it grow
        B, one = _odds_above(Fraction(b)), _GRID
        return [B - one, one], [0, B]
    if isinstance(b, float):
        A, one = _odds_above(a), _GRID
        return [A, 0], [one, A - one]
    if a == 0 or b == 0:
        return [1], [1]
    A, B, one = _odds_above(a), _odds_above(b), _GRID
    return [A * (B - one), (A - one) * one], [(B - one) * one, B * (A - one)]


def _odds_above(epsilon: Fraction) -> int:
    """An integer number of 2^−64ths that is at least e^ε."""
    above = exp_bounds(epsilon)[1] * _GRID
    return -(-above.numerator // above.denominator)


def _basic_losses(row: Iterable[int], row2: Iterable[int]) -> list[tuple[_Sum, int, int]]:
    """The distinct losses of one report with their counts, each loss as a power of the basic ones.

    Odds and their inverses are powers +1 and −1 of the same basic loss, so that sums of them meet.
    """
    counts: dict[Fraction | None, list[int]] = defaultdict(lambda: [0, 0])
    for p, p2 in zip(row, row2, strict=True):
        if p:  # what x never sends cannot count for x
            held = counts[Fraction(p, p2) if p2 else None]
            held[0], held[1] = held[0] + p, held[1] + p2
    basic = sorted({max(odds, 1 / odds) for odds in counts if odds is not None and odds != 1})
    powers: dict[Fraction | None, _Sum] = {None: None}
    for i, odds in enumerate(basic):
        powers[odds] = tuple(int(j == i) for j in range(len(basic)))
        powers[1 / odds] = tuple(-int(j == i) for j in range(len(basic)))
    powers[Fraction(1)] = (0,) * len(basic)
    return [(powers[odds], p, p2) for odds, (p, p2) in counts.items()]


def _added_up(
    losses: list[tuple[_Sum, int, int]], denominator: int, reports: int
) -> tuple[list[tuple[int, int]], int]:
    """The counts of sums of ``reports`` losses under x (rounded up) and under x2 (rounded down)."""
    start: _Sum = (0,) * max((len(loss) for loss, _, _ in losses if loss is not None), default=0)
    sums: dict[_Sum, tuple[int, int]] = {start: (1, 1)}
    total = 1
    kept = _KEPT_BITS + reports * max(
        ((q // q2).bit_length() + 1 for _, q, q2 in losses if q2), default=0
    )
    for _ in range(reports):
        added: dict[_Sum, list[int]] = defaultdict(lambda: [0, 0])
        for held, (p, p2) in sums.items():
            for loss, q, q2 in losses:
                key = (
                    None
                    if held is None or loss is None
                    else tuple(i + j for i, j in zip(held, loss, strict=True))
                )
                into = added[key]
                into[0], into[1] = into[0] + p * q, into[1] + p2 * q2
        total *= denominator
        shift = max(total.bit_length() - kept, 0)
        total >>= shift
        sums = {key: (-(-p >> shift), p2 >> shift) for key, (p, p2) in added.items()}
        if len(sums) > _MOST_SUMS:
            raise InvalidContext(
                f"{reports} reports have more than {_MOST_SUMS} sums of losses; ask for fewer reports."
            )
    return list(sums.values()), total
