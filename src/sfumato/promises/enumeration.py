"""Every pair of symbols on every output, in integers."""

from collections import defaultdict
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.contexts import Context
from sfumato.mechanisms import Mechanism
from sfumato.promises.tightest import Tightest, no_channel, sums_to, violation
from sfumato.randomness.odds import epsilon_of_odds, within_odds

__all__ = ["tightest_of_all"]


def tightest_of_all(mechanism: Mechanism, context: Context) -> Tightest | None:
    """Compare all rows; raises ``PrivacyViolation``, or returns the tightest place (``None``: nothing promised).

    Rows hold few distinct integers, so each pair of integers is decided once per ε.
    """
    numbers, table = _numbered(mechanism)
    slack_of: dict[tuple[int, Fraction], float] = {}
    best: tuple[float, Tightest] | None = None
    for x in range(mechanism.inputs):
        for epsilon, others in _owed(context, x).items():
            pairs = table[x] * len(numbers) + table[others]
            for pair in _distinct(pairs, len(numbers) ** 2):
                known = slack_of.get((pair, epsilon))
                if known is not None and best is not None and known >= best[0]:
                    continue
                high, low = (numbers[i] for i in divmod(pair, len(numbers)))
                row, output = np.argwhere(pairs == pair)[0].tolist()
                place = Tightest(x, others[row], output, high, low, epsilon)
                if known is None:
                    if not within_odds(high, low, epsilon):
                        raise violation(place)
                    known = slack_of[pair, epsilon] = float(epsilon) - epsilon_of_odds(high, low)
                if best is None or known < best[0]:
                    best = known, place
    return None if best is None else best[1]


def _numbered(mechanism: Mechanism) -> tuple[list[int], NDArray[np.int64]]:
    """The distinct integers of the channel, and the table of their numbers."""
    number: dict[int, int] = {}
    table = np.empty((mechanism.inputs, mechanism.outputs), dtype=np.int64)
    for x in range(mechanism.inputs):
        levels, which = mechanism.levels(x)
        if not sums_to(levels, which, mechanism.denominator):
            raise no_channel(x)
        table[x] = np.array([number.setdefault(level, len(number)) for level in levels])[which]
    return list(number), table


def _distinct(pairs: NDArray[np.int64], possible: int) -> list[int]:
    """The different entries of ``pairs``: by counting where they are few, by sorting otherwise."""
    if possible <= pairs.size:
        return np.flatnonzero(np.bincount(pairs.ravel(), minlength=possible)).tolist()
    return np.unique(pairs).tolist()


def _owed(context: Context, x: int) -> dict[Fraction, list[int]]:
    """The other symbols, by the finite ε that x owes them."""
    owed: dict[Fraction, list[int]] = defaultdict(list)
    for x2 in range(context.size):
        epsilon = context.exact_epsilon(x, x2)
        if x2 != x and isinstance(epsilon, Fraction):
            owed[epsilon].append(x2)
    return owed
