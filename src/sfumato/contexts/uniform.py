"""Classical local differential privacy: every pair of symbols is equally sensitive."""

from fractions import Fraction

import numpy as np

from sfumato.contexts.context import Context
from sfumato.contexts.exact import ExactMatrix
from sfumato.contexts.groups import Groups
from sfumato.domains import as_domain
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.foundation.canonical import Json, decimal_text
from sfumato.randomness.odds import Epsilon, positive_epsilon

__all__ = ["Uniform"]


class Uniform(Context):
    """``E[x, x2] = ε`` for every pair: ε-LDP (Definition 1 of the paper).

    >>> Uniform(["yes", "no"], 1.0).matrix()
    array([[0., 1.],
           [1., 0.]])
    """

    def __init__(self, domain: object, epsilon: object) -> None:
        super().__init__(as_domain(domain))
        self._exact = positive_epsilon(epsilon)

    @property
    def exact_inside(self) -> Epsilon:
        """The ε of every pair, exactly."""
        return self._exact

    @property
    def groups(self) -> Groups:
        """One group of all symbols."""
        return Groups(np.zeros(self.size, dtype=np.int64), (self._exact,), (np.inf,))

    @property
    def exact_smallest(self) -> Epsilon:
        """ε; ``inf`` if there is one symbol and so no pair."""
        return self._exact if self.size > 1 else np.inf

    @property
    def largest_finite(self) -> Fraction:
        """ε; 0 where it is infinite, or there is no pair."""
        return self._exact if isinstance(self._exact, Fraction) and self.size > 1 else Fraction(0)

    @property
    def leaves_open(self) -> bool:
        """Whether ε is infinite and there is a pair."""
        return self._exact == np.inf and self.size > 1

    def unprotected(self) -> Symbols:
        """All symbols where ε is infinite, none elsewhere."""
        return np.arange(self.size if self.leaves_open else 0)

    def exact_epsilon(self, x: int, x2: int) -> Epsilon:
        """ε, or 0 on the diagonal."""
        return self._exact if x != x2 else Fraction(0)

    def exact_matrix(self) -> ExactMatrix:
        """E written out exactly; refused above 4096 symbols."""
        self._refuse_large("written out")
        return self.groups.exact_matrix()

    def closure(self) -> "Uniform":
        """Itself: two steps cost 2ε."""
        return self

    def record(self) -> Json:
        """The context as plain data."""
        return {
            "kind": "uniform",
            "domain": self.domain.record(),
            "epsilon": decimal_text(self._exact),
        }

    def _epsilon(self, x: Symbols, x2: Symbols) -> Floats:
        return np.full(x.shape, float(self._exact))

    def __repr__(self) -> str:
        return f"Uniform({self.domain!r}, epsilon={decimal_text(self._exact)})"
