"""A device's budget: how much all its answers together may give away, as one number.

Answers under E1 and E2 together keep E1 + E2 (Proposition 2 of the paper), if both are about the same value. A device
cannot know that. Two surveys over the same labels may ask about lunch and about dinner, and an author could put every
question he has into one list of labels, each survey protecting another part of it. So each survey counts with its
largest entry, and all surveys add up, whatever their labels are.

An infinite entry is not a cost. It promises nothing for its pair, and a device answers such a survey only if its caller
allows answers in the clear: see ``Client``.
"""

from fractions import Fraction

from sfumato.contexts import Context
from sfumato.errors import InvalidContext
from sfumato.randomness import exact_number

__all__ = ["DEFAULT_BUDGET", "cost_of", "exact_budget"]

DEFAULT_BUDGET = Fraction(4)
"""The odds between any two answers then move by a factor of at most e^4 ≈ 55, so a 50 : 50 guess becomes at most
98 : 2. That is room for four surveys at ε = 1; beyond it there is little left to deny."""


def cost_of(context: Context, times: int) -> Fraction:
    """What a survey costs that a person may answer with ``times`` distinct values: that many times its largest entry.

    >>> from sfumato.contexts import HighLow
    >>> cost_of(HighLow(["park", "clinic"], ["clinic"], "0.5"), 3)
    Fraction(3, 2)
    """
    return times * context.largest_finite


def exact_budget(budget: object) -> Fraction | None:
    """The budget that a caller passed, exactly; ``None`` for no budget.

    >>> exact_budget("2.5")
    Fraction(5, 2)
    """
    if budget is None:
        return None
    try:
        exact = exact_number(budget, "budget")
    except InvalidContext:
        exact = Fraction(0)
    if not isinstance(exact, Fraction) or exact <= 0:
        raise InvalidContext(
            "budget must be a positive number such as 4. Pass budget=None to have no budget."
        )
    return exact
