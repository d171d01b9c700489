"""What every context answers: how hard x must be to tell from x2."""

import copy
from abc import ABC, abstractmethod
from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from sfumato.contexts.exact import ExactMatrix
from sfumato.domains import Domain, domain_of_record
from sfumato.domains.symbols import require_symbols
from sfumato.errors import ContextMismatch, InvalidContext, InvalidSymbols
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.foundation.canonical import Json, fingerprint
from sfumato.foundation.records import Fields, require_fields
from sfumato.randomness import Epsilon, float_below

if TYPE_CHECKING:
    from sfumato.contexts.grouped import GroupedContext
    from sfumato.contexts.sums import ContextSum
    from sfumato.contexts.unions import ContextUnion

__all__ = ["MAX_MATRIX_SIZE", "Context"]

MAX_MATRIX_SIZE = 4096
"""The most symbols of a privacy matrix that is written out (128 MiB)."""

_MAX_SHOWN = 12  # symbols of a matrix that notebooks show


class Context(ABC):
    """A privacy matrix E in structured form, with its domain.

    A mechanism Q keeps the context (is E-LDP) when for all symbols x, x2 and all outputs y

        Q(y|x) ≤ exp(E[x, x2]) · Q(y|x2)

    ``E`` may be asymmetric and may contain ``inf`` (nothing is promised for that pair). Its
    diagonal is 0. Reference: Acharya et al. (2020), Definition 2.
    """

    kind: ClassVar[str]
    """The kind of context that a record and a survey file name."""

    gist: str = "pair by pair"
    """What this kind of context promises, in a few words."""

    max_recorded_size: ClassVar[int] = 2**24
    """The most symbols that a resolved survey may have with a context of this kind."""

    is_metric: ClassVar[bool] = False
    """Whether every entry is ε times a distance."""

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

    @property
    def groups(self) -> "GroupedContext | None":
        """The context as groups with one promise inside and one outward, if it has that form."""
        return None

    @property
    def uniform_epsilon(self) -> Epsilon | None:
        """The ε of a uniform context, exactly; ``None`` for every other context."""
        return None

    @property
    def sensitive(self) -> Symbols | None:
        """The sensitive symbols of a high-low context; ``None`` for every other context."""
        return None

    @property
    def terms(self) -> "tuple[Context, ...]":
        """The contexts that add up to this one: only a sum has several."""
        return (self,)

    @property
    def parts(self) -> "tuple[Context, ...]":
        """The contexts inside the blocks of a union; empty for every other context."""
        return ()

    @property
    def as_union(self) -> "ContextUnion | None":
        """The context as a union of parts with no promise across, if it has that form."""
        return None

    def epsilon(self, x: ArrayLike, x2: ArrayLike) -> Floats:
        """Return ``E[x, x2]`` in floats, for arrays of symbols that broadcast.

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
        """Return E written out, ``k × k``.

        Raise ``InvalidContext`` above 4096 symbols, where ``epsilon(x, x2)`` still works.
        """
        self._require_writable()
        symbols = np.arange(self.size)
        return self.epsilon(symbols[:, None], symbols[None, :])

    def exact_matrix(self) -> ExactMatrix:
        """Return E written out exactly; raise ``InvalidContext`` above 4096 symbols."""
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
        """The least entry off the diagonal, rounded down: a mechanism for it keeps every pair."""
        return float_below(self.exact_smallest)

    @property
    @abstractmethod
    def exact_smallest(self) -> Epsilon:
        """The least entry off the diagonal, exactly; ``inf`` where nothing is promised."""

    @abstractmethod
    def exact_epsilon(self, x: int, x2: int) -> Epsilon:
        """Return ``E[x, x2]`` exactly: a ``Fraction``, or ``inf``."""

    # --- what a device must know before it answers ------------------------------------------------

    @property
    def largest_finite(self) -> Fraction:
        """The largest finite entry off the diagonal; 0 if no entry there is finite."""
        return self.exact_matrix().largest_finite()

    @property
    def leaves_open(self) -> bool:
        """Whether some pair has no promise: a report may then tell its two symbols apart."""
        return self.exact_matrix().leaves_open()

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
        """Return the context with the least entries that promises the same: shortest paths over E.

        ``Q(y|x) ≤ e^{E[x,z]} Q(y|z) ≤ e^{E[x,z]+E[z,x2]} Q(y|x2)``, so a detour that is shorter
        than the direct way is already promised. A zero one way makes two rows equal, hence a zero
        back.
        """

    # --- records ---------------------------------------------------------------------------------

    @abstractmethod
    def record(self) -> Json:
        """Return the context as plain data, for fingerprints and files."""

    @classmethod
    def of_record(cls, record: Fields) -> "Context":
        """Read the record of a context of this kind; ``context_of_record`` reads any kind."""
        raise NotImplementedError

    def _record(self, **fields: Json) -> Json:
        """Return a record with the kind, the domain and these fields."""
        return {"kind": self.kind, "domain": self.domain.record(), **fields}

    @classmethod
    def _read_fields(cls, record: Fields, *own: str) -> tuple[Fields, Domain]:
        """Return the fields of a record that has the fields ``own``, and its domain."""
        fields = require_fields(record, "context", ("kind", "domain", *own))
        return fields, domain_of_record(fields["domain"])

    @abstractmethod
    def _epsilon(self, x: Symbols, x2: Symbols) -> Floats:
        """Return ``E[x, x2]`` for pairs that differ; entries on the diagonal are ignored."""

    def __add__(self, other: "Context") -> "ContextSum":
        """Return the context that answering both surveys keeps: entries add up, lazily."""
        from sfumato.contexts.sums import ContextSum

        if not isinstance(other, Context):
            return NotImplemented
        return ContextSum.of(self, other)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Context):
            return NotImplemented
        return type(self) is type(other) and self.record() == other.record()

    def __hash__(self) -> int:
        return hash(fingerprint(self.record()))

    def _repr_html_(self) -> str:
        """Return what notebooks show: kind, size, least ε, and a small matrix itself."""
        least = f"smallest ε = {self.smallest_epsilon:.4g}"
        if np.isinf(self.smallest_epsilon):
            least = "nothing is promised"
        name = escape(type(self).__name__)
        html = f"<p><b>{name}</b>: {self.size:,} symbols, {least}</p>"
        if self.size <= _MAX_SHOWN:
            html += _matrix_html(self)
        return html

    def _require_writable(self) -> None:
        """Raise ``InvalidContext`` if the matrix is too large to be written out."""
        if self.size > MAX_MATRIX_SIZE:
            raise InvalidContext(
                f"a privacy matrix is written out up to {MAX_MATRIX_SIZE} symbols; this domain has "
                f"{self.size}. Use epsilon(x, x2) for the pairs that you need."
            )


def _matrix_html(context: Context) -> str:
    """Return E as a table, row against column: the darker, the stronger the promise."""
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
