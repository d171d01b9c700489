"""The operational reading: which errors somebody makes who guesses from a report (Theorem 1 of the paper).

Somebody knows that the answer was x or x2 and guesses which from the report. With the false alarm rate
``P_FA = P(says x | x2)`` and the miss rate ``P_MD = P(says x2 | x)``, a mechanism is E-LDP exactly when every test
obeys, for every ordered pair,

    P_FA + exp(E[x2, x]) · P_MD ≥ 1     and     exp(E[x, x2]) · P_FA + P_MD ≥ 1.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from sfumato.contexts import Context
from sfumato.errors import InvalidSymbols, MissingExtra
from sfumato.mechanisms import Mechanism
from sfumato.randomness import Epsilon, within_odds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["BrokenTest", "ErrorRegion", "error_region", "two_symbols"]

Point = tuple[float, float]


@dataclass(frozen=True)
class BrokenTest:
    """A test that does better than the context allows: it says x on ``says_x`` and x2 on all other reports."""

    says_x: frozenset[int]
    false_alarm: Fraction
    miss: Fraction
    inequality: str


@dataclass(frozen=True)
class ErrorRegion:
    """The errors that tests of x against x2 can have, as points ``(P_FA, P_MD)``.

    ``promised`` are the vertices of the region that the context allows to sensible tests, from "never says x" at
    (0, 1) over its corner to "always says x" at (1, 0); ``realised`` those of a mechanism, whose edge are the
    likelihood-ratio tests (Neyman, Pearson 1933), exactly; empty for a context alone. ``broken`` is a test that
    breaks one of the two inequalities, if the mechanism allows one.
    """

    x: int
    x2: int
    epsilon: Epsilon
    epsilon_back: Epsilon
    promised: tuple[Point, ...]
    realised: tuple[tuple[Fraction, Fraction], ...]
    broken: BrokenTest | None

    @property
    def corner(self) -> Point | None:
        """The best sensible test's errors; ``None`` if only blind guessing is allowed."""
        return self.promised[1] if len(self.promised) == 3 else None

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the region; needs the ``charts`` extra."""
        ax = _axes() if ax is None else ax
        allowed = [*self.promised, (0.0, 1.0)]
        ax.fill(
            [md for _, md in allowed],
            [fa for fa, _ in allowed],
            color="#b9c7d8",
            label="allowed by the context",
        )
        if self.realised:
            edge = [(float(fa), float(md)) for fa, md in self.realised]
            ax.fill(
                [md for _, md in edge],
                [fa for fa, _ in edge],
                color="#35618f",
                label="reached by the mechanism",
            )
        ax.plot(
            [0, 1], [1, 0], color="#555555", linewidth=0.8, linestyle="--", label="blind guessing"
        )
        if self.corner is not None:
            fa, md = self.corner
            ax.plot([md], [fa], "o", color="#b3402a", markersize=5)
            ax.annotate(
                f"({md:.3g}, {fa:.3g})",
                (md, fa),
                textcoords="offset points",
                xytext=(6, -12),
                fontsize=9,
            )
        ax.set(
            xlabel="miss rate $P_{MD}$",
            ylabel="false alarm rate $P_{FA}$",
            xlim=(0, 1),
            ylim=(0, 1),
            aspect="equal",
        )
        ax.legend(loc="upper right", frameon=False, fontsize=9)
        return ax


def error_region(context_or_mechanism: Context | Mechanism, x: int, x2: int) -> ErrorRegion:
    """The errors of telling symbol x from symbol x2 by a report.

    >>> from sfumato.contexts import PrivacyMatrix
    >>> region = error_region(PrivacyMatrix([[0, "0.6931"], ["1.3863", 0]]), 0, 1)
    >>> tuple(round(rate, 3) for rate in region.corner)
    (0.429, 0.143)
    """
    if isinstance(context_or_mechanism, Mechanism):
        context = two_symbols(context_or_mechanism.context, x, x2)
        row, row2 = context_or_mechanism.integer_row(x), context_or_mechanism.integer_row(x2)
    else:
        context, row, row2 = two_symbols(context_or_mechanism, x, x2), [], []
    a, b = context.exact_epsilon(x, x2), context.exact_epsilon(x2, x)
    return ErrorRegion(
        x=x,
        x2=x2,
        epsilon=a,
        epsilon_back=b,
        promised=_promised(float(a), float(b)),
        realised=_realised(row, row2),
        broken=_broken(row, row2, a, b),
    )


def two_symbols(context: Context, x: int, x2: int) -> Context:
    """The context, once x and x2 are known to be two different symbols of it."""
    whole = all(
        isinstance(symbol, int | np.integer) and not isinstance(symbol, bool) for symbol in (x, x2)
    )
    if not whole or x == x2 or not (0 <= x < context.size and 0 <= x2 < context.size):
        raise InvalidSymbols(f"x and x2 must be two different symbols in 0..{context.size - 1}.")
    return context


def _promised(a: float, b: float) -> tuple[Point, ...]:
    """The corner ``P_FA = e^−a (1 − e^−b)/D``, ``P_MD = e^−b (1 − e^−a)/D``, ``D = 1 − e^−(a+b)``."""
    if a == 0 or b == 0:  # equal rows: only blind guessing
        return (0.0, 1.0), (1.0, 0.0)
    D = -math.expm1(-(a + b))
    corner = -math.exp(-a) * math.expm1(-b) / D, -math.exp(-b) * math.expm1(-a) / D
    return (0.0, 1.0), corner, (1.0, 0.0)


def _realised(row: Sequence[int], row2: Sequence[int]) -> tuple[tuple[Fraction, Fraction], ...]:
    """The edge of the region: reports are given to x in order of how much they speak for it."""
    if not row:
        return ()
    total = sum(row)
    said = sorted(range(len(row)), key=lambda y: _ratio(row[y], row2[y]), reverse=True)
    false_alarm, miss, points = 0, total, [(Fraction(0), Fraction(1))]
    for position, y in enumerate(said):
        false_alarm, miss = false_alarm + row2[y], miss - row[y]
        following = said[position + 1] if position + 1 < len(said) else None
        if following is None or _ratio(row[following], row2[following]) != _ratio(row[y], row2[y]):
            points.append((Fraction(false_alarm, total), Fraction(miss, total)))
    return tuple(dict.fromkeys(points))


def _broken(row: Sequence[int], row2: Sequence[int], a: Epsilon, b: Epsilon) -> BrokenTest | None:
    """All reports that speak too much for x make one test; all that speak too much for x2 make another."""
    for_x = frozenset(y for y in range(len(row)) if not within_odds(row[y], row2[y], a))
    for_x2 = frozenset(y for y in range(len(row)) if not within_odds(row2[y], row[y], b))
    if not for_x and not for_x2:
        return None
    says_x = for_x or frozenset(range(len(row))) - for_x2
    total = sum(row)
    false_alarm = Fraction(sum(row2[y] for y in says_x), total)
    miss = 1 - Fraction(sum(row[y] for y in says_x), total)
    inequality = "exp(E[x, x2]) P_FA + P_MD >= 1" if for_x else "P_FA + exp(E[x2, x]) P_MD >= 1"
    return BrokenTest(says_x, false_alarm, miss, inequality)


def _ratio(q: int, q2: int) -> Fraction | float:
    if q == q2 == 0:
        return -1.0  # never sent: it belongs to no test, and comes last
    return Fraction(q, q2) if q2 else math.inf


def _axes() -> "Axes":
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("plots need matplotlib: pip install 'sfumato[charts]'") from None
    return Figure(figsize=(4.5, 4.5), layout="constrained").subplots()
