"""Contexts that combine others: sums (for people who answer several surveys), and unions."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from fractions import Fraction
from functools import reduce
from math import inf
from operator import add
from typing import Any

import numpy as np

from sfumato.contexts.assignment import Assignment
from sfumato.contexts.context import MAX_MATRIX_SIZE, Context
from sfumato.contexts.exact import ExactMatrix
from sfumato.contexts.grouped import Blocks, ranks_within, symbols_by_group
from sfumato.contexts.matrix import PrivacyMatrix
from sfumato.domains import Domain, DomainLike, IntegerDomain, Label
from sfumato.errors import ContextMismatch, InvalidContext, InvalidSurvey
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.foundation.canonical import Fields, Json, pack_u32, unpack_u32
from sfumato.foundation.correct_call import shows_call
from sfumato.foundation.inputs import ClassesLike
from sfumato.randomness import Epsilon

__all__ = ["ContextSum", "ContextUnion", "finest_groups", "parts_by_block", "union"]


class ContextSum(Context):
    """``E = E1 + E2 + …`` over the same domain, computed only on demand.

    An E1-LDP answer followed by an E2-LDP answer is (E1 + E2)-LDP (Acharya et al. 2020,
    Proposition 2).

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
        self.terms = terms

    @property
    def exact_minimum(self) -> Epsilon:
        """The smallest off-diagonal entry of the sum.

        Above 4096 symbols, this is the sum of the terms' smallest entries. That sum never exceeds
        the true minimum, so it errs on the side of privacy, and it is exact if all terms are equal.
        """
        if self.size > MAX_MATRIX_SIZE or all(term == self.terms[0] for term in self.terms):
            return reduce(add, (term.exact_minimum for term in self.terms))
        return self.exact_matrix().minimum()

    def exact_matrix(self) -> ExactMatrix:
        """Return the sum of the terms' matrices; raise ``InvalidContext`` above 4096 symbols."""
        self._require_matrix_size()
        return reduce(add, (term.exact_matrix() for term in self.terms))

    def exact_epsilon(self, x: int, x2: int) -> Epsilon:
        """Return the exact sum of the terms' entries."""
        return reduce(add, (term.exact_epsilon(x, x2) for term in self.terms))

    def closure(self) -> Context:
        """Return the equivalent context with the smallest entries: shortest-path distances over E.

        If every term is closed, so is the sum: triangle inequalities are preserved under addition.
        """
        if all(term.closure() == term for term in self.terms):
            return self
        return PrivacyMatrix.from_exact(self.exact_matrix().closure(), self.domain)

    def with_domain(self, domain: Domain) -> "ContextSum":
        """Return the sum of the same terms over a different domain of the same size."""
        return ContextSum(tuple(term.with_domain(domain) for term in self.terms))

    def to_record(self) -> Json:
        """Return the context as JSON-compatible data."""
        return {"kind": self.kind, "terms": [term.to_record() for term in self.terms]}

    def _epsilon(self, x: Symbols, x2: Symbols) -> Floats:
        total = np.zeros(x.shape)
        for term in self.terms:
            total = total + term._epsilon(x, x2)
        return total

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.terms))


class ContextUnion(Context):
    """``E[x, x2] = E_j[i, i2]`` if x and x2 are symbols i and i2 of block j, otherwise ``inf``.

    A report may reveal the block. Inside block j, any mechanism that satisfies part j can be used.
    To create a union, call ``union``. In part j, the symbols of block j are numbered 0 … k_j − 1,
    in domain order. These numbers are also the labels of the part.

    >>> from sfumato.contexts import HighLow, Uniform
    >>> ContextUnion([Uniform(2, 1), HighLow(2, [1], 2)], [0, 1, 1, 0]).matrix()
    array([[ 0., inf, inf,  1.],
           [inf,  0., inf, inf],
           [inf,  2.,  0., inf],
           [ 1., inf, inf,  0.]])
    """

    kind = "union"
    gist = "a separate promise inside each block"
    block_of: Symbols
    """The index of each symbol's block; blocks are numbered in order of first appearance."""
    sizes: Symbols
    """The number of symbols in each block (k_j)."""
    rank: Symbols
    """The position of each symbol inside its block, which is also its number in the part."""
    block_names: tuple[Hashable, ...]
    """The names of the blocks, in order of first appearance."""

    def __init__(
        self, parts: Iterable[object], block_of: object, *, domain: DomainLike | None = None
    ) -> None:
        blocks = Assignment.parse(block_of, domain, "block")
        super().__init__(blocks.domain)
        self.block_of = blocks.class_of
        self.block_names = blocks.names
        self.sizes = np.bincount(self.block_of)
        self.rank = ranks_within(self.block_of)
        self.sizes.flags.writeable = False
        self.rank.flags.writeable = False
        contexts = blocks.order_values(parts, "contexts", "a context")
        fitted_parts = []
        for context, size, name in zip(contexts, self.sizes, blocks.names, strict=True):
            fitted_parts.append(_fit_part(context, int(size), name))
        self.parts = tuple(fitted_parts)

    @property
    def as_union(self) -> "ContextUnion":
        """The context itself."""
        return self

    @property
    def exact_minimum(self) -> Epsilon:
        """The smallest off-diagonal entry of any part."""
        return min(part.exact_minimum for part in self.parts)

    @property
    def largest_finite_epsilon(self) -> Fraction:
        """The largest finite off-diagonal entry of any part; 0 if no such entry is finite."""
        return max(part.largest_finite_epsilon for part in self.parts)

    def unprotected_symbols(self) -> Symbols:
        """Return the symbols with no promise against any other symbol, not even in their block."""
        if len(self.parts) == 1:
            return self.parts[0].unprotected_symbols()
        is_unprotected = self.sizes[self.block_of] == 1
        for part, symbols in zip(self.parts, self.members(), strict=True):
            is_unprotected[symbols[part.unprotected_symbols()]] = True
        return np.flatnonzero(is_unprotected)

    @property
    def has_partly_protected_symbols(self) -> bool:
        """Whether some symbol has a promise against one symbol but not against another."""
        if len(self.parts) == 1:
            return self.parts[0].has_partly_protected_symbols
        return self.largest_finite_epsilon > 0

    def members(self) -> list[Symbols]:
        """Return the symbols of each block, in domain order."""
        return symbols_by_group(self.block_of)

    def exact_epsilon(self, x: int, x2: int) -> Epsilon:
        """Return the part's entry if x and x2 are in the same block, and ``inf`` otherwise."""
        j = int(self.block_of[x])
        if j != self.block_of[x2]:
            return inf
        return self.parts[j].exact_epsilon(int(self.rank[x]), int(self.rank[x2]))

    def exact_matrix(self) -> ExactMatrix:
        """Return E with exact entries; raise ``InvalidContext`` above 4096 symbols."""
        self._require_matrix_size()
        matrices = [part.exact_matrix() for part in self.parts]
        return ExactMatrix.block_diagonal(matrices, self.members())

    def closure(self) -> "ContextUnion":
        """Return the union of the parts' closures: no finite path leaves a block."""
        closures = [part.closure() for part in self.parts]
        if all(closure is part for closure, part in zip(closures, self.parts, strict=True)):
            return self
        return self.with_parts(closures)

    def with_parts(self, parts: Sequence[Context]) -> "ContextUnion":
        """Return the same blocks with different contexts inside them."""
        return ContextUnion(parts, self.block_of, domain=self.domain)

    def to_record(self) -> Json:
        """Return the context as JSON-compatible data."""
        parts = [part.to_record() for part in self.parts]
        return self._record(parts=parts, block_of=pack_u32(self.block_of))

    @classmethod
    def from_record(cls, record: Fields) -> "ContextUnion":
        """Return the union that a record describes."""
        from sfumato.contexts import context_from_record

        fields, domain = cls._read_fields(record, "parts", "block_of")
        if not isinstance(fields["parts"], list):
            raise InvalidSurvey("context.parts must be a list of contexts.")
        parts = [context_from_record(part, "a part of the context") for part in fields["parts"]]
        block_of = unpack_u32(fields["block_of"], "block_of", domain.size)
        return cls(parts, block_of, domain=domain)

    def _epsilon(self, x: Symbols, x2: Symbols) -> Floats:
        entries = np.full(x.shape, inf)
        is_same_block = self.block_of[x] == self.block_of[x2]
        for j in np.unique(self.block_of[x[is_same_block]]).tolist():
            is_in_block = is_same_block & (self.block_of[x] == j)
            rank = self.rank[x[is_in_block]]
            rank2 = self.rank[x2[is_in_block]]
            entries[is_in_block] = self.parts[j]._epsilon(rank, rank2)
        return entries

    def __repr__(self) -> str:
        kinds = Counter(type(part).__name__ for part in self.parts)
        parts = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
        return f"ContextUnion({len(self.parts)} blocks of {self.domain!r}: {parts})"


@shows_call("sf.union([context, other_context])")
def union(
    contexts: Mapping[Any, Context] | Iterable[Context],
    *,
    block_of: ClassesLike | None = None,
    domain: DomainLike | None = None,
) -> Context:
    """Return the union of contexts. Each applies in one block; nothing is promised between blocks.

    ``contexts`` is a sequence of contexts, or a mapping from block to context. ``block_of`` gives
    the block of each symbol: the symbols of block j, in domain order, are the symbols 0, 1, … of
    context j. By default, the symbols of all contexts are concatenated, and so are their labels
    unless ``domain`` is given. If every context is uniform, the result is ``Blocks``; otherwise it
    is a ``ContextUnion``.

    >>> from sfumato.contexts import HighLow, Uniform
    >>> union([Uniform(["bus", "tram"], 1), HighLow(["park", "clinic"], ["clinic"], 2)]).matrix()
    array([[ 0.,  1., inf, inf],
           [ 1.,  0., inf, inf],
           [inf, inf,  0., inf],
           [inf, inf,  2.,  0.]])
    >>> union([Uniform(2, 1), Uniform(3, 0.5)])
    Blocks(2 blocks of IntegerDomain(5, start=0), epsilon=0.5 to 1)
    """
    context_by_name = _parse_contexts(contexts)
    if block_of is None:
        block_of = [name for name, context in context_by_name.items() for _ in range(context.size)]
        if domain is None:
            domain = _join_domains([context.domain for context in context_by_name.values()])
    parts = context_by_name if isinstance(contexts, Mapping) else context_by_name.values()
    result = ContextUnion(parts, block_of, domain=domain)
    epsilons = [part.uniform_epsilon for part in result.parts]
    if None in epsilons:
        return result
    names = [result.block_names[j] for j in result.block_of.tolist()]
    epsilon_of_block: dict[Any, Any] = dict(zip(result.block_names, epsilons, strict=True))
    return Blocks(names, epsilon_of_block, domain=result.domain)


def _parse_contexts(contexts: object) -> dict[Any, Context]:
    """Return the contexts by block name; for a sequence, the names are the integers from 0."""
    if not isinstance(contexts, Iterable) or isinstance(contexts, str | bytes | Set):
        raise InvalidContext(
            "contexts must be a sequence of contexts or a mapping from block to context."
        )
    context_by_name = dict(contexts) if isinstance(contexts, Mapping) else dict(enumerate(contexts))
    if not context_by_name:
        raise InvalidContext("contexts must contain at least one context; got none.")
    for context in context_by_name.values():
        _require_context(context)
    return context_by_name


def _join_domains(domains: Sequence[Domain]) -> Domain:
    """Return a domain with the labels of all domains, in order.

    Integer domains that start at 0 are joined into one, which also starts at 0.
    """
    if all(isinstance(domain, IntegerDomain) and domain.labels[0] == 0 for domain in domains):
        return IntegerDomain(sum(domain.size for domain in domains))
    other_labels = [domain.other for domain in domains if domain.other is not None]
    if len(other_labels) > 1:
        raise InvalidContext(
            "more than one context defines an `other` label. Pass domain= to choose one."
        )
    labels: dict[Label, None] = {}
    for domain in domains:
        for label in domain.labels:
            if label in labels:
                raise InvalidContext(
                    f"the label {label!r} is in two contexts. Rename one, or pass domain= with "
                    "distinct labels in the same order."
                )
            labels[label] = None
    return Domain(labels.keys(), other=other_labels[0] if other_labels else None)


def _fit_part(part: object, size: int, name: object) -> Context:
    """Check the size of a part; return it with the integers from 0 as labels."""
    context = _require_context(part)
    if context.size != size:
        raise ContextMismatch(f"block {name!r} has {size} symbols; its context has {context.size}.")
    return context.with_domain(IntegerDomain(size))


def _require_context(value: object) -> Context:
    if not isinstance(value, Context):
        raise InvalidContext(
            f"every entry of contexts must be a Context; got {type(value).__name__}."
        )
    return value


# --- inside the blocks of a context ---------------------------------------------------------------


def parts_by_block(context: Context, block_of: Symbols) -> Sequence[Context] | None:
    """Return the context inside each of the given blocks, if nothing is promised between blocks.

    Return ``None`` if there is such a promise, or if the full matrix is too large to check.
    """
    union_context = context.as_union
    if union_context is not None and (union_context.block_of == block_of).all():
        return union_context.parts
    if context.size > MAX_MATRIX_SIZE:
        return None
    entries = context.exact_matrix()
    is_between_blocks = block_of[:, None] != block_of[None, :]
    if not (entries.numerators[is_between_blocks] == entries.infinity).all():
        return None
    parts = []
    for symbols in symbols_by_group(block_of):
        parts.append(PrivacyMatrix.from_exact(entries.submatrix(symbols)))
    return parts


def finest_groups(context: Context) -> Symbols:
    """Return the index of each symbol's group; parts of a union never share a group.

    A context without groups counts as a single group.
    """
    if context.groups is not None:
        return context.groups.group_of
    group_of = np.zeros(context.size, dtype=np.int64)
    union_context = context.as_union
    if union_context is not None:
        group_count = 0
        for part, symbols in zip(union_context.parts, union_context.members(), strict=True):
            part_groups = finest_groups(part)
            group_of[symbols] = part_groups + group_count
            group_count += int(part_groups.max()) + 1
    return group_of
