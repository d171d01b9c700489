"""What an ε does to the belief of somebody undecided, as a label tells it: exact, and rounded up."""

import math

from sfumato.foundation.formatting import format_epsilon, format_odds_factor
from sfumato.randomness import Epsilon, exp_bounds, float_above

__all__ = ["CERTAIN", "believed", "everyday_text", "moved_text", "size_text"]

CERTAIN = 1000
"""A belief of 100.0 %, in the tenths of a per cent that ``believed`` counts."""

_OVER_ALL_TENTHS = 7  # e^7 is over 1,000, so that the belief is rounded up to 100.0 %


def believed(epsilon: Epsilon) -> int:
    """``e^ε/(1 + e^ε)`` in tenths of a per cent, rounded up: the most that a report can make of a belief of 50 %.

    By Proposition 3 of the paper, odds of 1:1 between x and x2 become at most ``e^{E[x, x2]}`` to 1. The bound on e^ε
    is a rational from above, so that the number is never too small.

    >>> from fractions import Fraction
    >>> believed(Fraction(1)), believed(Fraction(0)), believed(math.inf)
    (732, 500, 1000)
    """
    if epsilon == 0:
        return CERTAIN // 2
    if isinstance(epsilon, float) or epsilon >= _OVER_ALL_TENTHS:
        return CERTAIN
    _, e = exp_bounds(epsilon)
    return math.ceil(CERTAIN * e / (1 + e))


def moved_text(epsilon: Epsilon) -> str:
    r"""How far the odds of one answer against another can move.

    >>> from fractions import Fraction
    >>> moved_text(Fraction(1)).replace("\xa0", " ")
    'from 50 : 50 to at most 73.2 : 26.8'
    """
    start, most = _shares(CERTAIN // 2), believed(epsilon)
    if epsilon == 0:
        return f"not at all: they stay at {start}"
    if most < CERTAIN:
        return f"from {start} to at most {_shares(most)}"
    if epsilon != math.inf:
        return f"from {start} to beyond {_shares(CERTAIN - 1)}: as good as certainty"
    return f"from {start} to certainty: nothing is promised"


def everyday_text(epsilon: Epsilon) -> str:
    """The same as a share of wrong guesses, rounded down: how often it is wrong to say that it was this answer.

    >>> from fractions import Fraction
    >>> everyday_text(Fraction(1))
    'Whoever then says that it is this answer is wrong at least 26 times in 100.'
    """
    doubted = CERTAIN - believed(epsilon)
    if epsilon == 0:
        return "Nobody can tell the two apart."
    if doubted >= CERTAIN // 10:
        return f"Whoever then says that it is this answer is wrong at least {doubted // 10} times in 100."
    if doubted:
        times = "once" if doubted == 1 else f"{doubted} times"
        return f"Whoever then says that it is this answer is wrong at least {times} in 1,000."
    if epsilon != math.inf:
        return "Whoever then says that it is this answer need hardly ever be wrong."
    return "Whoever sees the report may know for certain that it is this answer and not the other."


def size_text(epsilon: Epsilon) -> str:
    """The ε itself and the factor on any odds, for reviewers.

    >>> from fractions import Fraction
    >>> size_text(Fraction(1)), size_text(math.inf)
    ('ε = 1, odds × 2.72', 'ε = ∞')
    """
    shown = math.inf if isinstance(epsilon, float) else float_above(epsilon)
    text = format_epsilon(shown)
    name = f"ε {text}" if text.startswith("≈") else f"ε = {text}"
    return name if believed(epsilon) == CERTAIN else f"{name}, odds × {format_odds_factor(shown)}"


def _shares(tenths: int) -> str:
    """Two shares of a hundred, kept on one line."""
    return f"{tenths / 10:g}\u00a0:\u00a0{(CERTAIN - tenths) / 10:g}"
