"""What every context answers: how hard x must be to tell from x2."""

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from sfumato.arrays import Floats, Symbols
from sfumato.canonical import Json, fingerprint
from sfumato.contexts.exact import ExactMatrix
from sfumato.domains import Domain
from sfumato.domains.symbols import checked_symbols
from sfumato.errors import InvalidContext, InvalidSymbols
from sfumato.randomness.odds import Epsilon, float_below

if TYPE_CHECKING:
    from sfumato.contexts.sums import ContextSum

__all__ = ["LARGEST_MATRIX", "Context"]

LARGEST_MATRIX = 4096
"""A privacy matrix is written out up to this many symbols (128 MiB)."""


class Context(ABC):
    """A privacy matrix E in structured form, with its domain.

    A mechanism Q keeps the context (is E-LDP) when for all symbols x, x2 and all outputs y

        Q(y|x) ≤ exp(E[x, x2]) · Q(y|x2)

    ``E`` may be asymmetric and may hold ``inf`` (nothing is promised for that pair); its diagonal is 0.
    Reference: Acharya et al. (2020), Definition 2.
    """

    def __init__(self, domain: Domain) -> None:
        self._domain = domain

    @property
    def domain(self) -> Domain:
        """The labels that the symbols stand for."""
        return self._domain

    @property
    def size(self) -> int:
        """The number of symbols, k."""
        return self._domain.size

    def epsilon(self, x: ArrayLike, x2: ArrayLike) -> Floats:
        """``E[x, x2]`` for arrays of symbols that broadcast, in floats; ``exact_epsilon`` has the exact ones."""
        first, second = checked_symbols(x, self.size), checked_symbols(x2, self.size)
        try:
            first, second = np.broadcast_arrays(first, second)
        except ValueError:
            raise InvalidSymbols(f"x and x2 must broadcast; found shapes {first.shape} and {second.shape}.") from None
        return np.where(first == second, 0.0, self._epsilon(first, second))

    def matrix(self) -> Floats:
        """E written out, ``k × k``; refused above 4096 symbols, where ``epsilon(x, x2)`` still answers."""
        self._refuse_large("written out")
        symbols = np.arange(self.size)
        return self.epsilon(symbols[:, None], symbols[None, :])

    def exact_matrix(self) -> ExactMatrix:
        """E written out exactly, in integers over one denominator; refused above 4096 symbols."""
        E = self.matrix()
        finite = np.isfinite(E)
        # A structured context has one ε; written-out contexts answer with the entries they hold.
        x, x2 = np.unravel_index(int(np.argmax(np.where(finite, E, -1.0))), E.shape)
        largest = Fraction(self.exact_epsilon(int(x), int(x2)))
        numerators = np.where(E[finite] > 0, largest.numerator, 0)
        return ExactMatrix.holding(numerators.tolist(), largest.denominator, finite)

    @property
    def smallest_epsilon(self) -> float:
        """The least entry off the diagonal, rounded down: a mechanism for it keeps every pair."""
        return float_below(self.exact_smallest)

    @property
    @abstractmethod
    def exact_smallest(self) -> Epsilon:
        """The least entry off the diagonal, exactly; ``inf`` where nothing is promised."""

    @abstractmethod
    def exact_epsilon(self, x: int, x2: int) -> Epsilon:
        """``E[x, x2]`` exactly: a ``Fraction``, or ``inf``."""

    @abstractmethod
    def closure(self) -> "Context":
        """The context with the least entries that promises the same: shortest paths over E.

        ``Q(y|x) ≤ e^{E[x,z]} Q(y|z) ≤ e^{E[x,z]+E[z,x2]} Q(y|x2)``, so a detour that is shorter than
        the direct way is already promised. A zero one way makes two rows equal, hence a zero back.
        """

    @abstractmethod
    def record(self) -> Json:
        """The context as plain data, for fingerprints and files."""

    @abstractmethod
    def _epsilon(self, x: Symbols, x2: Symbols) -> Floats:
        """``E[x, x2]`` for pairs that differ; what it answers on the diagonal is ignored."""

    def __add__(self, other: "Context") -> "ContextSum":
        """The context that answering both surveys keeps: entries add up, lazily."""
        from sfumato.contexts.sums import ContextSum

        return ContextSum.of(self, other) if isinstance(other, Context) else NotImplemented

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, Context) and self.record() == other.record()

    def __hash__(self) -> int:
        return hash(fingerprint(self.record()))

    def _refuse_large(self, done: str) -> None:
        if self.size > LARGEST_MATRIX:
            raise InvalidContext(
                f"a privacy matrix is {done} up to {LARGEST_MATRIX} symbols; this domain has {self.size}. "
                "Ask for the pairs you need with epsilon(x, x2)."
            )
