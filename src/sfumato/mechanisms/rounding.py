"""Rounding a written-out channel to integers over a word, so that it keeps its context exactly.

Columns of an E-LDP channel lie in the cone ``{r ≥ 0 : r_x ≤ e^{E[x,x2]} r_x2}``, which is closed under sums.
Each column is shrunk a little, rounded down and pulled back into the cone in integers; what the rows then
lack is itself a column, and is added to the flattest one if it lies in the cone. If not, shrink more.
"""

from collections.abc import Sequence
from fractions import Fraction

from sfumato.contexts import Context
from sfumato.errors import NothingToLearn
from sfumato.randomness.odds import exp_bounds

__all__ = ["rounded_table"]

_SMALLEST_SHRINK = Fraction(1, 2**40)
_LARGEST_SHRINK = Fraction(1, 2)

_Odds = list[tuple[int, int, Fraction]]


def rounded_table(rows: Sequence[Sequence[Fraction]], context: Context, word_bits: int) -> list[list[int]]:
    """Integer rows that add up to ``2^word_bits``, keep ``context`` exactly and are close to ``rows``."""
    total, odds = 1 << word_bits, _finite_odds(context)
    shrink = _SMALLEST_SHRINK
    while shrink <= _LARGEST_SHRINK:
        columns = [
            _in_cone([int(total * (1 - shrink) * q) for q in column], odds) for column in zip(*rows, strict=True)
        ]
        rest = [total - sum(column[x] for column in columns) for x in range(len(rows))]
        if min(rest) >= 0 and _in_cone(rest, odds) == rest:
            flattest = max(range(len(columns)), key=lambda y: Fraction(min(columns[y]), max(max(columns[y]), 1)))
            columns[flattest] = [c + r for c, r in zip(columns[flattest], rest, strict=True)]
            return [list(row) for row in zip(*columns, strict=True)]
        shrink *= 4
    raise NothingToLearn(f"a word of {word_bits} bits is too short to hold this table and keep its context.")


def _finite_odds(context: Context) -> _Odds:
    """For every pair with a finite promise, a lower bound on e^E."""
    pairs = (
        (x, x2, context.exact_epsilon(x, x2)) for x in range(context.size) for x2 in range(context.size) if x != x2
    )
    # Odds that no word can show need no exact bound, and would take long to compute.
    return [
        (x, x2, exp_bounds(min(epsilon, Fraction(100)))[0]) for x, x2, epsilon in pairs if isinstance(epsilon, Fraction)
    ]


def _in_cone(column: list[int], odds: _Odds) -> list[int]:
    """The largest column below ``column`` that keeps every promise."""
    column, changed = list(column), True
    while changed:
        changed = False
        for x, x2, most in odds:
            limit = most.numerator * column[x2] // most.denominator
            if column[x] > limit:
                column[x], changed = limit, True
    return column
