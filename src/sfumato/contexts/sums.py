"""Sums of contexts: what answering several surveys promises."""

from functools import reduce
from operator import add

import numpy as np

from sfumato.contexts.context import MAX_MATRIX_SIZE, Context
from sfumato.contexts.exact import ExactMatrix
from sfumato.contexts.matrix import PrivacyMatrix
from sfumato.domains import Domain
from sfumato.errors import ContextMismatch
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.foundation.canonical import Json
from sfumato.randomness import Epsilon

__all__ = ["ContextSum"]


class ContextSum(Context):
    """``E = E1 + E2 + …`` over one domain, written out only where you ask for it.

    An E1-LDP answer followed by an E2-LDP answer is (E1 + E2)-LDP (Proposition 2 of the paper).

    >>> from sfumato.contexts import HighLow, Uniform
    >>> (Uniform(3, 0.5) + HighLow(3, [0], 1)).matrix()
    array([[0. , 1.5, 1.5],
           [inf, 0. , inf],
           [inf, inf, 0. ]])
    """

    kind = "sum"

    def __init__(self, terms: tuple[Context, ...]) -> None:
        super().__init__(terms[0].domain)
        if any(term.domain != self.domain for term in terms):
            raise ContextMismatch("contexts with different labels cannot be added.")
        self._terms = terms

    @classmethod
    def of(cls, *contexts: Context) -> "ContextSum":
        """Return the sum of contexts over one domain; the terms of sums become terms of it."""
        terms: list[Context] = []
        for context in contexts:
            terms.extend(context.terms)
        return cls(tuple(terms))

    @property
    def terms(self) -> tuple[Context, ...]:
        """The contexts that add up to this one."""
        return self._terms

    @property
    def exact_smallest(self) -> Epsilon:
        """The least entry of the sum off the diagonal.

        Above 4096 symbols, unless all terms are equal, this is the sum of the terms' least entries.
        It is never more than the least entry of the sum, so a mechanism for it keeps every pair.
        """
        if self.size > MAX_MATRIX_SIZE or all(term == self._terms[0] for term in self._terms):
            return reduce(add, (term.exact_smallest for term in self._terms))
        return self.exact_matrix().smallest()

    def exact_matrix(self) -> ExactMatrix:
        """Return the sum written out exactly; raise ``InvalidContext`` above 4096 symbols."""
        self._require_writable()
        return reduce(add, (term.exact_matrix() for term in self._terms))

    def exact_epsilon(self, x: int, x2: int) -> Epsilon:
        """Return the sum of the terms' entries, exactly."""
        return reduce(add, (term.exact_epsilon(x, x2) for term in self._terms))

    def closure(self) -> Context:
        """Return shortest paths: the sum itself if every term is closed.

        Triangle inequalities add up.
        """
        if all(term.closure() == term for term in self._terms):
            return self
        return PrivacyMatrix.of_exact(self.exact_matrix().closure(), self.domain)

    def with_domain(self, domain: Domain) -> "ContextSum":
        """Return the sum of the same terms over another domain of the same size."""
        return ContextSum(tuple(term.with_domain(domain) for term in self._terms))

    def record(self) -> Json:
        """Return the context as plain data."""
        return {"kind": self.kind, "terms": [term.record() for term in self._terms]}

    def _epsilon(self, x: Symbols, x2: Symbols) -> Floats:
        total = np.zeros(x.shape)
        for term in self._terms:
            total = total + term._epsilon(x, x2)
        return total

    def __repr__(self) -> str:
        return " + ".join(map(repr, self._terms))
