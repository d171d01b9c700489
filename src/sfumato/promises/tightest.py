"""The place where a promise is closest to being broken, and the error for where it is."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import PrivacyViolation
from sfumato.foundation.canonical import Json, decimal_text
from sfumato.randomness import epsilon_of_odds

__all__ = ["Tightest", "no_channel", "sums_to", "violation"]


@dataclass(frozen=True)
class Tightest:
    """Report ``output`` speaks for ``x`` over ``x2`` with odds ``high : low``, as integers over one denominator."""

    x: int
    x2: int
    output: int
    high: int
    low: int
    promised: Fraction

    @property
    def realised(self) -> float:
        """``log(high/low)``, rounded up."""
        return epsilon_of_odds(self.high, self.low)

    def record(self) -> Json:
        """The place as plain data."""
        return {
            "x": self.x,
            "x2": self.x2,
            "output": self.output,
            "high": str(self.high),
            "low": str(self.low),
            "promised": decimal_text(self.promised),
        }


def sums_to(levels: list[int], which: NDArray[np.intp], total: int) -> bool:
    """Whether a row in compact form has no negative entry and adds up to ``total``."""
    counts = np.bincount(which, minlength=len(levels)).tolist()
    return (
        min(levels) >= 0
        and sum(level * count for level, count in zip(levels, counts, strict=True)) == total
    )


def no_channel(x: int) -> PrivacyViolation:
    """The error for a row that does not add up: nothing can be promised of it."""
    message = f"the row of symbol {x} does not add up to the number of draws. The mechanism must not be used."
    return PrivacyViolation(message, x=x, x2=x, output=0)


def violation(place: Tightest) -> PrivacyViolation:
    """The error that names the pair and the output."""
    return PrivacyViolation(
        f"report {place.output} tells symbol {place.x} from symbol {place.x2} by ε = {place.realised!r}; the context "
        f"promises {float(place.promised)!r}. The mechanism must not be used for this context.",
        x=place.x,
        x2=place.x2,
        output=place.output,
    )
