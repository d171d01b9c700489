"""Any privacy matrix, written out."""

import numpy as np

from sfumato.contexts.context import LARGEST_MATRIX, Context
from sfumato.contexts.exact import ExactMatrix
from sfumato.domains import Domain, as_domain
from sfumato.errors import ContextMismatch, InvalidContext
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.foundation.canonical import Json, decimal_text
from sfumato.randomness.odds import LARGEST_EPSILON, Epsilon

__all__ = ["PrivacyMatrix", "matrix_domain"]


class PrivacyMatrix(Context):
    """Any matrix E of non-negative entries, ``inf`` allowed, asymmetric or not, zero on its diagonal.

    ``E[x, x2]`` bounds ``log Q(y|x) − log Q(y|x2)``. Finite entries are at most 40.

    >>> PrivacyMatrix([[0, 0.5], ["inf", 0]], domain=["no", "yes"]).smallest_epsilon
    0.5
    """

    def __init__(self, E: object, *, domain: object = None) -> None:
        exact = ExactMatrix.parsed(E, "the privacy matrix")
        super().__init__(matrix_domain(domain, exact.size))
        large = (exact.numerators > LARGEST_EPSILON * exact.denominator) & (
            exact.numerators != exact.infinite
        )
        if large.any():
            x, x2 = np.argwhere(large)[0].tolist()
            raise InvalidContext(
                f"the privacy matrix must hold entries up to {LARGEST_EPSILON}, or inf; entry [{x}, {x2}] is "
                f"{float(exact.entry(x, x2))!r}. Use inf or a smaller ε."
            )
        self._hold(exact)

    @classmethod
    def of_exact(cls, exact: ExactMatrix, domain: Domain) -> "PrivacyMatrix":
        """A matrix that was computed from checked ones (a closure, a sum): entries may pass 40."""
        made = cls.__new__(cls)
        Context.__init__(made, domain)
        made._hold(exact)
        return made

    def _hold(self, exact: ExactMatrix) -> None:
        self._exact = exact
        self._floats = exact.floats()
        self._floats.flags.writeable = False

    @property
    def exact_smallest(self) -> Epsilon:
        """The least entry off the diagonal."""
        return self._exact.smallest()

    def exact_epsilon(self, x: int, x2: int) -> Epsilon:
        """One entry, exactly."""
        return self._exact.entry(x, x2)

    def exact_matrix(self) -> ExactMatrix:
        """The matrix as it is held."""
        return self._exact

    def closure(self) -> "PrivacyMatrix":
        """Shortest paths over E, computed in integers."""
        return PrivacyMatrix.of_exact(self._exact.closed(), self.domain)

    def record(self) -> Json:
        """The context as plain data: each entry an exact decimal, or ``inf``."""
        rows = range(self.size)
        entries = [[decimal_text(self.exact_epsilon(x, x2)) for x2 in rows] for x in rows]
        return {"kind": "matrix", "domain": self.domain.record(), "matrix": entries}

    def _epsilon(self, x: Symbols, x2: Symbols) -> Floats:
        return self._floats[x, x2]

    def __repr__(self) -> str:
        return (
            f"PrivacyMatrix({self.size} × {self.size}, smallest_epsilon={self.smallest_epsilon:g})"
        )


def matrix_domain(domain: object, size: int) -> Domain:
    """The domain of a written-out matrix of ``size`` rows: the given one, or the integers from 0."""
    if size > LARGEST_MATRIX:
        raise InvalidContext(
            f"a privacy matrix is written out up to {LARGEST_MATRIX} symbols; found {size}. "
            "Use a structured context (Uniform, HighLow, Blocks)."
        )
    found = as_domain(size if domain is None else domain)
    if found.size != size:
        raise ContextMismatch(f"the matrix has {size} rows; the domain has {found.size} labels.")
    return found
