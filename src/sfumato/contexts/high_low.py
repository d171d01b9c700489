"""High-low: some symbols are sensitive, the others need no protection of their own."""

from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from sfumato.contexts.context import Context
from sfumato.contexts.exact import ExactMatrix
from sfumato.contexts.groups import Groups
from sfumato.domains import Label, as_domain
from sfumato.errors import InvalidContext
from sfumato.foundation.arrays import Booleans, Floats, Symbols
from sfumato.foundation.canonical import Json, decimal_text, packed_u32
from sfumato.randomness.odds import Epsilon, positive_epsilon

__all__ = ["HighLow"]


class HighLow(Context):
    """``E[x, x2] = ε`` for sensitive x and every x2, ``inf`` for the other x (Definition 3 of the paper).

    No report may speak for a sensitive symbol by more than odds of e^ε against anything else. A report
    may well prove that the answer was a particular symbol that is *not* sensitive.

    >>> HighLow(["park", "clinic"], sensitive=["clinic"], epsilon=1).matrix()
    array([[ 0., inf],
           [ 1.,  0.]])
    """

    def __init__(self, domain: object, sensitive: Iterable[Label], epsilon: object) -> None:
        super().__init__(as_domain(domain))
        self._exact = positive_epsilon(epsilon)
        if isinstance(sensitive, str | bytes) or not isinstance(sensitive, Iterable):
            raise InvalidContext(
                "sensitive must be a list of labels. Write [...] around a single one."
            )
        listed = self.domain.label_symbols(sensitive, "sensitive")
        self._is_sensitive: Booleans = np.zeros(self.size, dtype=np.bool_)
        self._is_sensitive[listed] = True
        self._is_sensitive.flags.writeable = False
        if int(self._is_sensitive.sum()) != listed.size:
            raise InvalidContext(
                "sensitive must name each label once; one occurs twice. Remove it."
            )

    @property
    def is_sensitive(self) -> Booleans:
        """For each symbol, whether it is sensitive."""
        return self._is_sensitive

    @property
    def sensitive(self) -> Symbols:
        """The sensitive symbols (A in the paper), in domain order."""
        return np.flatnonzero(self._is_sensitive)

    @property
    def exact_inside(self) -> Epsilon:
        """The ε of sensitive symbols, exactly."""
        return self._exact

    @property
    def groups(self) -> Groups:
        """The sensitive symbols, and the others."""
        return Groups.of_rows(self._is_sensitive.astype(np.int64), (np.inf, self._exact))

    @property
    def exact_smallest(self) -> Epsilon:
        """ε; ``inf`` if no symbol is sensitive or there is no pair."""
        return self._exact if self.size > 1 and self._is_sensitive.any() else np.inf

    def exact_epsilon(self, x: int, x2: int) -> Epsilon:
        """ε for sensitive x, ``inf`` for the others, 0 on the diagonal."""
        if x == x2:
            return Fraction(0)
        return self._exact if self._is_sensitive[x] else np.inf

    def exact_matrix(self) -> ExactMatrix:
        """E written out exactly; refused above 4096 symbols."""
        self._refuse_large("written out")
        return self.groups.exact_matrix()

    def closure(self) -> "HighLow":
        """Itself: every way out of a sensitive symbol costs ε at once, every other way is infinite."""
        return self

    def record(self) -> Json:
        """The context as plain data."""
        return {
            "kind": "high-low",
            "domain": self.domain.record(),
            "epsilon": decimal_text(self._exact),
            "sensitive": packed_u32(self.sensitive),
        }

    def _epsilon(self, x: Symbols, x2: Symbols) -> Floats:
        return np.where(self._is_sensitive[x], float(self._exact), np.inf)

    def __repr__(self) -> str:
        return f"HighLow({self.domain!r}, {int(self._is_sensitive.sum())} sensitive, epsilon={decimal_text(self._exact)})"
