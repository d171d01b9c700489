"""The interface of every context: how hard it must be to tell x from x2."""

import copy
from abc import ABC, abstractmethod
from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from sfumato.contexts.exact import ExactMatrix
from sfumato.domains import Domain, domain_from_record, require_symbols
from sfumato.errors import ContextMismatch, InvalidContext, InvalidSymbols
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.foundation.canonical import Fields, Json, fingerprint, require_fields
from sfumato.randomness import Epsilon, float_below

if TYPE_CHECKING:
    from sfumato.contexts.composite import ContextSum, ContextUnion
    from sfumato.contexts.grouped import Blocks, GroupedContext, HighLow

__all__ = ["MAX_MATRIX_SIZE", "Context"]

MAX_MATRIX_SIZE = 4096
"""The largest privacy matrix that is written out, in symbols (128 MiB)."""

_MAX_SHOWN = 12  # the largest matrix that notebooks show, in symbols


class Context(ABC):
    """A privacy matrix E in structured form, with its domain.

    A mechanism Q keeps the context (is E-LDP) when for all symbols x, x2 and all outputs y

        Q(y|x) ≤ exp(E[x, x2]) · Q(y|x2)

    ``E`` may be asymmetric and may contain ``inf`` (nothing is promised for that pair). Its
    diagonal is 0. Reference: Acharya et al. (2020), Definition 2.
    """

    kind: ClassVar[str]
    """The name of this kind of context in records and survey files."""

    gist: str = "pair by pair"
    """A few words that say what this kind of context promises."""

    max_recorded_size: ClassVar[int] = 2**24
    """The largest number of symbols in a resolved survey with a context of this kind."""

    is_metric: ClassVar[bool] = False
    """Whether every entry is ε times a distance."""

    uniform_epsilon: Epsilon | None = None
    """The exact ε of a uniform context; ``None`` for every other context."""

    terms: tuple["Context", ...] = ()
    """The contexts that a sum adds up; empty for every other context."""

    parts: tuple["Context", ...] = ()
    """The contexts inside the blocks of a union; empty for every other context."""

    def __init__(self, domain: Domain) -> None:
        self._domain = domain

    @property
    def domain(self) -> Domain:
        """The labels of the symbols."""
        return self._domain

    @property
    def size(self) -> int:
        """The number of symbols, k."""
        return self._domain.size

    @property
    def groups(self) -> "GroupedContext | None":
        """The context as groups with one promise inside and one outward, if it has that form."""
        return None

    @property
    def as_blocks(self) -> "Blocks | None":
        """The context itself if it is made of blocks."""
        return None

    @property
    def as_high_low(self) -> "HighLow | None":
        """The context itself if it is a high-low context."""
        return None

    @property
    def as_union(self) -> "ContextUnion | None":
        """The context itself if it is a union of parts with no promise across."""
        return None

    def epsilon(self, x: ArrayLike, x2: ArrayLike) -> Floats:
        """Return ``E[x, x2]`` as floats, for arrays of symbols that broadcast.

        ``exact_epsilon`` returns exact entries.
        """
        first = require_symbols(x, self.size)
        second = require_symbols(x2, self.size)
        try:
            first, second = np.broadcast_arrays(first, second)
        except ValueError:
            raise InvalidSymbols(
                f"x and x2 must broadcast; got shapes {first.shape} and {second.shape}."
            ) from None
        return np.where(first == second, 0.0, self._epsilon(first, second))

    def matrix(self) -> Floats:
        """Return E as a ``k × k`` array.

        Raise ``InvalidContext`` above 4096 symbols, where ``epsilon(x, x2)`` still works.
        """
        self._require_writable()
        symbols = np.arange(self.size)
        return self.epsilon(symbols[:, None], symbols[None, :])

    def exact_matrix(self) -> ExactMatrix:
        """Return E with exact entries; raise ``InvalidContext`` above 4096 symbols."""
        self._require_writable()
        rows = []
        for x in range(self.size):
            rows.append([self.exact_epsilon(x, x2) for x2 in range(self.size)])
        return ExactMatrix.parse(rows, "the context")

    def with_domain(self, domain: Domain) -> Self:
        """Return the same matrix over another domain of the same size."""
        if domain.size != self.size:
            raise ContextMismatch(
                f"this context has {self.size} symbols; the domain has {domain.size} labels."
            )
        context = copy.copy(self)
        context._domain = domain
        return context

    @property
    def smallest_epsilon(self) -> float:
        """The smallest entry off the diagonal, rounded down.

        A mechanism for this ε keeps the promise to every pair.
        """
        return float_below(self.exact_smallest)

    @property
    @abstractmethod
    def exact_smallest(self) -> Epsilon:
        """The exact smallest entry off the diagonal; ``inf`` if nothing is promised."""

    @abstractmethod
    def exact_epsilon(self, x: int, x2: int) -> Epsilon:
        """Return the exact ``E[x, x2]``: a ``Fraction``, or ``inf``."""

    # --- what a device checks before it answers --------------------------------------------------

    @property
    def largest_finite(self) -> Fraction:
        """The largest finite entry off the diagonal; 0 if no entry there is finite."""
        return self.exact_matrix().largest_finite()

    @property
    def leaves_open(self) -> bool:
        """Whether some pair has no promise: a report may then tell its two symbols apart."""
        return self.partly_open or self.unprotected().size > 0

    def unprotected(self) -> Symbols:
        """Return the symbols with no promise against any other: a report may reveal them.

        >>> from sfumato.contexts import HighLow
        >>> HighLow(["park", "clinic", "bar"], ["clinic"], 1).unprotected()
        array([0, 2])
        """
        return self.exact_matrix().unprotected()

    @property
    def partly_open(self) -> bool:
        """Whether some symbol has a promise against one symbol and none against another.

        A report may then show the group of such a symbol.
        """
        return self.exact_matrix().partly_open()

    @abstractmethod
    def closure(self) -> "Context":
        """Return the equivalent context with the smallest entries: shortest paths over E.

        ``Q(y|x) ≤ e^{E[x,z]} Q(y|z) ≤ e^{E[x,z]+E[z,x2]} Q(y|x2)``, so a path through z that is
        shorter than the direct entry is already promised. A zero in one direction makes two rows
        equal, and so implies a zero in the other.
        """

    # --- records ---------------------------------------------------------------------------------

    @abstractmethod
    def to_record(self) -> Json:
        """Return the context as plain data, for fingerprints and files."""

    @classmethod
    def from_record(cls, record: Fields) -> "Context":
        """Read the record of a context of this kind; ``context_from_record`` reads any kind."""
        raise NotImplementedError

    def _record(self, **fields: Json) -> Json:
        """Return a record with the kind, the domain and ``fields``."""
        return {"kind": self.kind, "domain": self.domain.to_record(), **fields}

    @classmethod
    def _read_fields(cls, record: Fields, *own: str) -> tuple[Fields, Domain]:
        """Check that a record has the fields ``own``; return its fields and its domain."""
        fields = require_fields(record, "context", ("kind", "domain", *own))
        return fields, domain_from_record(fields["domain"])

    @abstractmethod
    def _epsilon(self, x: Symbols, x2: Symbols) -> Floats:
        """Return ``E[x, x2]`` for pairs that differ; entries on the diagonal are ignored."""

    def __add__(self, other: "Context") -> "ContextSum":
        """Return what a person who answers both surveys is promised: entries add up."""
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
        """Return what notebooks show: the kind, the size, the smallest ε, and a small matrix."""
        promise = f"smallest ε = {self.smallest_epsilon:.4g}"
        if np.isinf(self.smallest_epsilon):
            promise = "nothing is promised"
        name = escape(type(self).__name__)
        html = f"<p><b>{name}</b>: {self.size:,} symbols, {promise}</p>"
        if self.size <= _MAX_SHOWN:
            html += _matrix_html(self)
        return html

    def _require_writable(self) -> None:
        """Raise ``InvalidContext`` if the matrix is too large to write out."""
        if self.size > MAX_MATRIX_SIZE:
            raise InvalidContext(
                f"only a matrix of at most {MAX_MATRIX_SIZE} symbols can be written out; this "
                f"domain has {self.size}. Use epsilon(x, x2) for the pairs that you need."
            )


def _matrix_html(context: Context) -> str:
    """Return E as a table, row against column: a darker cell is a stronger promise."""
    labels = [escape(str(label)) for label in context.domain.labels]
    head = "".join(f'<th scope="col">{label}</th>' for label in labels)
    body = ""
    for x, row in enumerate(context.matrix().tolist()):
        cells = [_entry_html(entry, x == x2) for x2, entry in enumerate(row)]
        body += f'<tr><th scope="row">{labels[x]}</th>{"".join(cells)}</tr>'
    return f"<table><thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table>"


def _entry_html(epsilon: float, on_diagonal: bool) -> str:
    if on_diagonal:
        return '<td style="text-align:center">–</td>'
    if np.isinf(epsilon):
        return '<td style="text-align:center">∞</td>'
    opacity = max(0.6 - 0.12 * epsilon, 0.12)
    style = f"text-align:center;background:rgba(181,82,59,{opacity:.2f})"
    return f'<td style="{style}">{epsilon:.4g}</td>'
