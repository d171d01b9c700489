"""The base class of all contexts: how hard it must be to tell one symbol from another."""

import copy
from abc import ABC, abstractmethod
from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from sfumato.contexts.exact import ExactMatrix
from sfumato.domains import Domain, domain_from_record
from sfumato.errors import ContextMismatch, InvalidContext, InvalidSymbols
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.foundation.canonical import Fields, Json, fingerprint, require_fields
from sfumato.randomness import Epsilon, float_below

if TYPE_CHECKING:
    from sfumato.contexts.composite import ContextSum, ContextUnion
    from sfumato.contexts.grouped import Blocks, GroupedContext, HighLow

__all__ = ["MAX_MATRIX_SIZE", "Context"]

MAX_MATRIX_SIZE = 4096
"""The largest number of symbols for which a full privacy matrix is built (128 MiB)."""

_MAX_DISPLAYED_SYMBOLS = 12  # notebooks display the matrix only up to this size


class Context(ABC):
    """A privacy matrix E in structured form, with its domain.

    A mechanism Q satisfies the context (is E-LDP) if for all symbols x, x2 and all outputs y

        Q(y|x) ≤ exp(E[x, x2]) · Q(y|x2)

    ``E`` may be asymmetric and may contain ``inf`` (nothing is promised for a pair). Its
    diagonal is 0. Reference: Acharya et al. (2020), Definition 2.
    """

    kind: ClassVar[str]
    """The name of this kind of context in records and survey files."""

    gist: str = "a separate promise for each pair"
    """A short phrase that describes the promise."""

    max_recorded_size: ClassVar[int] = 2**24
    """The maximum number of symbols in a resolved survey that uses this kind of context."""

    is_metric: ClassVar[bool] = False
    """Whether every entry is ε times a distance."""

    uniform_epsilon: Epsilon | None = None
    """The exact ε of a uniform context; ``None`` for every other context."""

    terms: tuple["Context", ...] = ()
    """The terms of a sum of contexts; empty for every other context."""

    parts: tuple["Context", ...] = ()
    """The contexts inside the blocks of a union; empty for every other context."""

    def __init__(self, domain: Domain) -> None:
        self._domain = domain

    @property
    def domain(self) -> Domain:
        """The domain, which contains the label of each symbol."""
        return self._domain

    @property
    def size(self) -> int:
        """The number of symbols, k."""
        return self._domain.size

    @property
    def groups(self) -> "GroupedContext | None":
        """The context in grouped form (see ``GroupedContext``), or ``None`` if it has none."""
        return None

    @property
    def as_blocks(self) -> "Blocks | None":
        """The context itself if it consists of blocks, otherwise ``None``."""
        return None

    @property
    def as_high_low(self) -> "HighLow | None":
        """The context itself if it is a high-low context, otherwise ``None``."""
        return None

    @property
    def as_union(self) -> "ContextUnion | None":
        """The context itself if it is a ``ContextUnion``, otherwise ``None``."""
        return None

    def epsilon(self, x: ArrayLike, x2: ArrayLike) -> Floats:
        """Return ``E[x, x2]`` as floats, for arrays of symbols that broadcast together.

        Integers are symbols, and text is a label. For exact entries, call ``exact_epsilon``.

        >>> from sfumato.contexts import HighLow
        >>> HighLow(["park", "clinic"], ["clinic"], 1).epsilon("clinic", "park")
        array(1.)
        """
        symbols = self.domain.as_symbols(x)
        symbols2 = self.domain.as_symbols(x2)
        try:
            symbols, symbols2 = np.broadcast_arrays(symbols, symbols2)
        except ValueError:
            raise InvalidSymbols(
                f"x and x2 must broadcast together; got shapes {symbols.shape} and "
                f"{symbols2.shape}."
            ) from None
        return np.where(symbols == symbols2, 0.0, self._epsilon(symbols, symbols2))

    def matrix(self) -> Floats:
        """Return E as a ``k × k`` array.

        Raise ``InvalidContext`` above 4096 symbols; ``epsilon(x, x2)`` has no such limit.
        """
        self._require_matrix_size()
        symbols = np.arange(self.size)
        return self.epsilon(symbols[:, None], symbols[None, :])

    def exact_matrix(self) -> ExactMatrix:
        """Return E with exact entries; raise ``InvalidContext`` above 4096 symbols."""
        self._require_matrix_size()
        rows = []
        for x in range(self.size):
            rows.append([self.exact_epsilon(x, x2) for x2 in range(self.size)])
        return ExactMatrix.parse(rows, "the context")

    def with_domain(self, domain: Domain) -> Self:
        """Return the same context over a different domain of the same size."""
        if domain.size != self.size:
            raise ContextMismatch(
                f"this context has {self.size} symbols; the domain has {domain.size} labels."
            )
        context = copy.copy(self)
        context._domain = domain
        return context

    @property
    def smallest_epsilon(self) -> float:
        """The smallest off-diagonal entry, rounded down to a float.

        A mechanism that is ε-LDP for this ε satisfies the context.
        """
        return float_below(self.exact_minimum)

    @property
    @abstractmethod
    def exact_minimum(self) -> Epsilon:
        """The exact smallest off-diagonal entry; ``inf`` if nothing is promised."""

    @abstractmethod
    def exact_epsilon(self, x: int, x2: int) -> Epsilon:
        """Return the exact ``E[x, x2]``: a ``Fraction``, or ``inf``."""

    # --- what a device checks before it answers --------------------------------------------------

    @property
    def largest_finite_epsilon(self) -> Fraction:
        """The largest finite off-diagonal entry; 0 if no such entry is finite."""
        return self.exact_matrix().largest_finite_entry()

    @property
    def has_unprotected_pairs(self) -> bool:
        """Whether some pair of symbols has no promise, so that a report may tell them apart."""
        return self.has_partly_protected_symbols or self.unprotected_symbols().size > 0

    def unprotected_symbols(self) -> Symbols:
        """Return the symbols with no promise against any other symbol: reports may reveal them.

        >>> from sfumato.contexts import HighLow
        >>> HighLow(["park", "clinic", "bar"], ["clinic"], 1).unprotected_symbols()
        array([0, 2])
        """
        return self.exact_matrix().unprotected_symbols()

    @property
    def has_partly_protected_symbols(self) -> bool:
        """Whether some symbol has a promise against one symbol but not against another.

        A report may then distinguish that symbol from some symbols, but not from others.
        """
        return self.exact_matrix().has_partly_protected_symbols()

    @abstractmethod
    def closure(self) -> "Context":
        """Return the equivalent context with the smallest entries: shortest-path distances over E.

        ``Q(y|x) ≤ e^{E[x,z]} Q(y|z) ≤ e^{E[x,z]+E[z,x2]} Q(y|x2)``, so E already implies the
        promise ``E[x,z] + E[z,x2]``, even if the direct entry ``E[x,x2]`` is larger. A zero in one
        direction makes two rows of Q equal, so it implies a zero in the other direction.
        """

    # --- records ---------------------------------------------------------------------------------

    @abstractmethod
    def to_record(self) -> Json:
        """Return the context as JSON-compatible data, for fingerprints and files."""

    @classmethod
    def from_record(cls, record: Fields) -> "Context":
        """Return the context of this kind that a record describes.

        For a record of any kind, call ``context_from_record``.
        """
        raise NotImplementedError

    def _record(self, **fields: Json) -> Json:
        """Return a record with the kind, the domain and ``fields``."""
        return {"kind": self.kind, "domain": self.domain.to_record(), **fields}

    @classmethod
    def _read_fields(cls, record: Fields, *names: str) -> tuple[Fields, Domain]:
        """Return the fields and the domain of a record.

        Besides its kind and its domain, the record must have exactly the fields ``names``.
        """
        fields = require_fields(record, "context", ("kind", "domain", *names))
        return fields, domain_from_record(fields["domain"])

    @abstractmethod
    def _epsilon(self, x: Symbols, x2: Symbols) -> Floats:
        """Return ``E[x, x2]`` for x ≠ x2; the caller ignores the entries for x = x2."""

    def __add__(self, other: "Context") -> "ContextSum":
        """Return E1 + E2, the promise made to a person who answers under both contexts."""
        from sfumato.contexts.composite import ContextSum

        if not isinstance(other, Context):
            return NotImplemented
        own_terms = self.terms or (self,)
        other_terms = other.terms or (other,)
        return ContextSum(own_terms + other_terms)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Context):
            return NotImplemented
        return type(self) is type(other) and self.to_record() == other.to_record()

    def __hash__(self) -> int:
        return hash(fingerprint(self.to_record()))

    def _repr_html_(self) -> str:
        """Return the HTML for notebooks: kind, size, smallest ε, and the matrix if it is small."""
        promise = f"smallest ε = {self.smallest_epsilon:.4g}"
        if np.isinf(self.smallest_epsilon):
            promise = "nothing is promised"
        class_name = escape(type(self).__name__)
        html = f"<p><b>{class_name}</b>: {self.size:,} symbols, {promise}</p>"
        if self.size <= _MAX_DISPLAYED_SYMBOLS:
            html += _matrix_html(self)
        return html

    def _require_matrix_size(self) -> None:
        """Raise ``InvalidContext`` if the full matrix would be too large."""
        if self.size > MAX_MATRIX_SIZE:
            raise InvalidContext(
                f"a full matrix may have at most {MAX_MATRIX_SIZE} symbols; this domain has "
                f"{self.size}. Call epsilon(x, x2) for the pairs you need."
            )


def _matrix_html(context: Context) -> str:
    """Return E as an HTML table; a darker cell means a stronger promise."""
    labels = [escape(str(label)) for label in context.domain.labels]
    header = "".join(f'<th scope="col">{label}</th>' for label in labels)
    body = ""
    for x, row in enumerate(context.matrix().tolist()):
        cells = [_entry_html(entry, x == x2) for x2, entry in enumerate(row)]
        body += f'<tr><th scope="row">{labels[x]}</th>{"".join(cells)}</tr>'
    return f"<table><thead><tr><th></th>{header}</tr></thead><tbody>{body}</tbody></table>"


def _entry_html(epsilon: float, is_on_diagonal: bool) -> str:
    if is_on_diagonal:
        return '<td style="text-align:center">–</td>'
    if np.isinf(epsilon):
        return '<td style="text-align:center">∞</td>'
    opacity = max(0.6 - 0.12 * epsilon, 0.12)
    style = f"text-align:center;background:rgba(181,82,59,{opacity:.2f})"
    return f'<td style="{style}">{epsilon:.4g}</td>'
