"""What every context answers: how hard x must be to tell from x2."""

import copy
from abc import ABC, abstractmethod
from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike

from sfumato.contexts.exact import ExactMatrix
from sfumato.contexts.groups import Groups
from sfumato.domains import Domain
from sfumato.domains.symbols import checked_symbols
from sfumato.errors import ContextMismatch, InvalidContext, InvalidSymbols
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.foundation.canonical import Json, fingerprint
from sfumato.randomness.odds import Epsilon, float_below

if TYPE_CHECKING:
    from sfumato.contexts.sums import ContextSum

__all__ = ["LARGEST_MATRIX", "Context"]

LARGEST_MATRIX = 4096
"""A privacy matrix is written out up to this many symbols (128 MiB)."""

_LARGEST_SHOWN = 12  # symbols of a matrix that notebooks show


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

    @property
    def groups(self) -> Groups | None:
        """The context as groups of symbols with one promise inside and one outward; ``None`` if it has no such form."""
        return None

    def epsilon(self, x: ArrayLike, x2: ArrayLike) -> Floats:
        """``E[x, x2]`` for arrays of symbols that broadcast, in floats; ``exact_epsilon`` has the exact ones."""
        first, second = checked_symbols(x, self.size), checked_symbols(x2, self.size)
        try:
            first, second = np.broadcast_arrays(first, second)
        except ValueError:
            raise InvalidSymbols(
                f"x and x2 must broadcast; found shapes {first.shape} and {second.shape}."
            ) from None
        return np.where(first == second, 0.0, self._epsilon(first, second))

    def matrix(self) -> Floats:
        """E written out, ``k × k``; refused above 4096 symbols, where ``epsilon(x, x2)`` still answers."""
        self._refuse_large("written out")
        symbols = np.arange(self.size)
        return self.epsilon(symbols[:, None], symbols[None, :])

    def exact_matrix(self) -> ExactMatrix:
        """E written out exactly, in integers over one denominator; refused above 4096 symbols."""
        self._refuse_large("written out")
        rows = range(self.size)
        return ExactMatrix.parsed(
            [[self.exact_epsilon(x, x2) for x2 in rows] for x in rows], "the context"
        )

    def relabelled(self, domain: Domain) -> Self:
        """The same matrix over a domain of as many other labels."""
        if domain.size != self.size:
            raise ContextMismatch(
                f"this context has {self.size} symbols; the domain has {domain.size} labels."
            )
        made = copy.copy(self)
        made._domain = domain
        return made

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

    # --- what a device must know before it answers ------------------------------------------------

    @property
    def largest_finite(self) -> Fraction:
        """The largest finite entry off the diagonal; 0 if there is none."""
        groups = self.groups
        return self.exact_matrix().largest_finite() if groups is None else groups.largest_finite

    @property
    def leaves_open(self) -> bool:
        """Whether some pair has no promise: a report may then tell its two symbols apart for certain."""
        groups = self.groups
        return self.exact_matrix().leaves_open() if groups is None else groups.leaves_open

    def unprotected(self) -> Symbols:
        """The symbols with no promise against any other: a report may give each of them away.

        >>> from sfumato.contexts import HighLow
        >>> HighLow(["park", "clinic", "bar"], ["clinic"], 1).unprotected()
        array([0, 2])
        """
        groups = self.groups
        return self.exact_matrix().unprotected() if groups is None else groups.unprotected()

    @property
    def partly_open(self) -> bool:
        """Whether some symbol has a promise against one symbol and none against another: its group may show."""
        groups = self.groups
        return self.exact_matrix().partly_open() if groups is None else groups.partly_open

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
        return (
            type(self) is type(other)
            and isinstance(other, Context)
            and self.record() == other.record()
        )

    def __hash__(self) -> int:
        return hash(fingerprint(self.record()))

    def _repr_html_(self) -> str:
        """What notebooks show: kind, size and least ε, and the matrix itself where it is small."""
        least = (
            "nothing is promised"
            if np.isinf(self.smallest_epsilon)
            else f"smallest ε = {self.smallest_epsilon:.4g}"
        )
        line = f"<p><b>{escape(type(self).__name__)}</b>: {self.size:,} symbols, {least}</p>"
        return line + (_matrix_html(self) if self.size <= _LARGEST_SHOWN else "")

    def _refuse_large(self, done: str) -> None:
        if self.size > LARGEST_MATRIX:
            raise InvalidContext(
                f"a privacy matrix is {done} up to {LARGEST_MATRIX} symbols; this domain has {self.size}. "
                "Ask for the pairs you need with epsilon(x, x2)."
            )


def _matrix_html(context: Context) -> str:
    """E as a table: row against column, the stronger the colour the stronger the promise, ∞ for none."""
    labels = [escape(str(label)) for label in context.domain.labels]
    head = "".join(f'<th scope="col">{label}</th>' for label in labels)
    rows = "".join(
        f'<tr><th scope="row">{label}</th>{"".join(_entry_html(entry, x == x2) for x2, entry in enumerate(row))}</tr>'
        for x, (label, row) in enumerate(zip(labels, context.matrix().tolist(), strict=True))
    )
    return f"<table><thead><tr><th></th>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _entry_html(epsilon: float, same: bool) -> str:
    if same or np.isinf(epsilon):
        return f'<td style="text-align:center">{"–" if same else "∞"}</td>'
    strength = max(0.6 - 0.12 * epsilon, 0.12)
    return f'<td style="text-align:center;background:rgba(181,82,59,{strength:.2f})">{epsilon:.4g}</td>'
