"""Privacy matrices with an explicit entry for every pair of symbols."""

import numpy as np

from sfumato.contexts.context import MAX_MATRIX_SIZE, Context
from sfumato.contexts.exact import ExactMatrix
from sfumato.domains import Domain, DomainLike, IntegerDomain, as_domain
from sfumato.errors import ContextMismatch, InvalidContext
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.foundation.canonical import Fields, Json
from sfumato.foundation.correct_call import shows_call
from sfumato.foundation.inputs import MatrixLike
from sfumato.randomness import LARGEST_EPSILON, Epsilon

__all__ = ["PrivacyMatrix", "matrix_domain"]


class PrivacyMatrix(Context):
    """Any matrix E of non-negative entries or ``inf``, symmetric or not, with a zero diagonal.

    ``E[x, x2]`` bounds ``log Q(y|x) − log Q(y|x2)``. Finite entries are at most 40.

    >>> PrivacyMatrix([[0, 0.5], ["inf", 0]], domain=["no", "yes"]).smallest_epsilon
    0.5
    """

    kind = "matrix"

    @shows_call("sf.PrivacyMatrix(E, domain=labels)")
    def __init__(self, E: MatrixLike, *, domain: DomainLike | None = None) -> None:
        entries = ExactMatrix.parse(E, "the privacy matrix")
        super().__init__(matrix_domain(domain, entries.size))
        is_finite = entries.numerators != entries.infinity
        is_too_large = is_finite & (entries.numerators > LARGEST_EPSILON * entries.denominator)
        if is_too_large.any():
            x, x2 = np.argwhere(is_too_large)[0].tolist()
            raise InvalidContext(
                f"the entries of the privacy matrix must be at most {LARGEST_EPSILON}, or inf; "
                f"entry [{x}, {x2}] is {float(entries.entry(x, x2))!r}. Use inf or a smaller ε."
            )
        self._set_entries(entries)

    @classmethod
    def from_exact(cls, entries: ExactMatrix, domain: Domain | None = None) -> "PrivacyMatrix":
        """Return a privacy matrix with the given entries, such as those of a closure.

        Finite entries may exceed 40. The default labels are the integers from 0.
        """
        matrix = cls.__new__(cls)
        Context.__init__(matrix, domain or IntegerDomain(entries.size))
        matrix._set_entries(entries)
        return matrix

    def _set_entries(self, entries: ExactMatrix) -> None:
        self._entries = entries
        self._floats = entries.to_floats()
        self._floats.flags.writeable = False

    @property
    def exact_minimum(self) -> Epsilon:
        """The exact smallest off-diagonal entry; ``inf`` if nothing is promised."""
        return self._entries.minimum()

    def exact_epsilon(self, x: int, x2: int) -> Epsilon:
        """Return the exact ``E[x, x2]``."""
        return self._entries.entry(x, x2)

    def exact_matrix(self) -> ExactMatrix:
        """Return E with exact entries."""
        return self._entries

    def closure(self) -> "PrivacyMatrix":
        """Return the matrix of shortest-path distances over E, computed in integer arithmetic."""
        return PrivacyMatrix.from_exact(self._entries.closure(), self.domain)

    def to_record(self) -> Json:
        """Return the context as JSON-compatible data; entries are exact decimals or ``inf``."""
        return self._record(matrix=self._entries.to_decimals())

    @classmethod
    def from_record(cls, record: Fields) -> "PrivacyMatrix":
        """Return the privacy matrix that a record describes."""
        fields, domain = cls._read_fields(record, "matrix")
        return cls(fields["matrix"], domain=domain)

    def _epsilon(self, x: Symbols, x2: Symbols) -> Floats:
        return self._floats[x, x2]

    def __repr__(self) -> str:
        return (
            f"PrivacyMatrix({self.size} × {self.size}, smallest_epsilon={self.smallest_epsilon:g})"
        )


def matrix_domain(domain: DomainLike | None, size: int) -> Domain:
    """Return the domain for a matrix with ``size`` rows; by default, the integers from 0."""
    if size > MAX_MATRIX_SIZE:
        raise InvalidContext(
            f"a matrix may have at most {MAX_MATRIX_SIZE} rows; got {size}. "
            "Use a structured context, such as Uniform, HighLow or Blocks."
        )
    parsed_domain = as_domain(size if domain is None else domain)
    if parsed_domain.size != size:
        raise ContextMismatch(
            f"the matrix has {size} rows; the domain has {parsed_domain.size} labels."
        )
    return parsed_domain
