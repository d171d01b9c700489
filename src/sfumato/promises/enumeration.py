"""Every pair of symbols on every output, in integers."""

from collections import defaultdict
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats
from sfumato.contexts import Context
from sfumato.mechanisms import Mechanism
from sfumato.promises.tightest import Tightest, no_channel, sums_to, violation
from sfumato.randomness.odds import exp_bounds, within_odds

__all__ = ["tightest_of_all"]

_Integers = NDArray[np.object_]
_ROUNDING = 1e-14


def tightest_of_all(mechanism: Mechanism, context: Context) -> Tightest | None:
    """Compare all rows; raises ``PrivacyViolation``, or returns the tightest place (``None``: nothing promised).

    A symbol is compared with all those to which it owes the same ε at once, each pair of integers only once.
    """
    numbers, table = _numbered(mechanism)
    least, tightest = np.inf, None
    for x in range(mechanism.inputs):
        for epsilon, others in _owed(context, x).items():
            pairs = table[x] * len(numbers) + table[others]
            distinct = _distinct(pairs, len(numbers) ** 2)
            high, low = numbers[distinct // len(numbers)], numbers[distinct % len(numbers)]
            slack = _slack(high, low, epsilon, mechanism.denominator)
            i = int(slack.argmin())
            if slack[i] > least + _ROUNDING * float(epsilon):
                continue
            row, output = np.argwhere(pairs == distinct[i])[0].tolist()
            place = Tightest(x, others[row], output, high[i], low[i], epsilon)
            if slack[i] < 0:
                raise violation(place)
            # Slacks of different ε are compared as they are told, with the realised ε rounded up.
            told = float(epsilon) - place.realised
            if tightest is None or told < least:
                least, tightest = told, place
    return tightest


def _slack(high: _Integers, low: _Integers, epsilon: Fraction, denominator: int) -> Floats:
    """``ε − log(high/low)``, at most ε; below 0 exactly where the promise is broken.

    With ``b ≤ e^ε`` rational, ``b·low ≥ high`` shows in integers that it is kept, and by how much of ``b·low``. Where
    that does not show, b is sharpened until it or its counterpart above e^ε decides.
    """
    enough = min(epsilon, Fraction(denominator.bit_length()))  # no two numbers of words but 0 have odds of 2^ε
    b = exp_bounds(enough)[0]
    most = low * b.numerator
    spare = most - high * b.denominator
    with np.errstate(divide="ignore"):  # a report that x never sends leaves everything spare
        slack = -np.log1p(-(spare / np.where(most == 0, 1, most)).astype(np.float64)) + float(epsilon - enough)
    for i in np.flatnonzero(spare < 0).tolist():
        slack[i] = 0.0 if within_odds(high[i], low[i], epsilon) else -np.inf
    return np.where((low == 0) & (high == 0), float(epsilon), np.minimum(slack, float(epsilon)))


def _numbered(mechanism: Mechanism) -> tuple[_Integers, NDArray[np.int64]]:
    """The distinct integers of the channel, and the table of their numbers."""
    number: dict[int, int] = {}
    table = np.empty((mechanism.inputs, mechanism.outputs), dtype=np.int64)
    for x in range(mechanism.inputs):
        levels, which = mechanism.levels(x)
        if not sums_to(levels, which, mechanism.denominator):
            raise no_channel(x)
        table[x] = np.array([number.setdefault(level, len(number)) for level in levels])[which]
    return np.array(list(number), dtype=object), table


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
