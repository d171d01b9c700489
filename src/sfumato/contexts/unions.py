"""Unions: blocks that a report may show, with any context inside each."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from fractions import Fraction
from math import inf

import numpy as np

from sfumato.contexts.assignment import Assignment
from sfumato.contexts.context import Context
from sfumato.contexts.exact import ExactMatrix
from sfumato.contexts.grouped import Blocks, ranks_within
from sfumato.domains import Domain, IntegerDomain, Label
from sfumato.errors import ContextMismatch, InvalidContext, InvalidSurvey
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.foundation.canonical import Json, pack_u32
from sfumato.foundation.records import Fields, unpack_u32
from sfumato.randomness import Epsilon

__all__ = ["ContextUnion", "union"]


class ContextUnion(Context):
    """``E[x, x2] = E_j[i, i2]`` for the symbols i and i2 of block j, ``inf`` across blocks.

    A report may show the block; inside block j, any mechanism that keeps part j will do. Use
    ``union`` to make one. Part j is a context over the symbols 0 … k_j − 1 of its block, in domain
    order; the labels belong to the union.

    >>> from sfumato.contexts import HighLow, Uniform
    >>> ContextUnion([Uniform(2, 1), HighLow(2, [1], 2)], [0, 1, 1, 0]).matrix()
    array([[ 0., inf, inf,  1.],
           [inf,  0., inf, inf],
           [inf,  2.,  0., inf],
           [ 1., inf, inf,  0.]])
    """

    kind = "union"
    gist = "a promise of its own inside each block"

    def __init__(self, parts: Iterable[object], block_of: object, *, domain: object = None) -> None:
        blocks = Assignment.read(block_of, domain, "block")
        super().__init__(blocks.domain)
        self._block_of = blocks.class_of
        self._sizes = np.bincount(self._block_of)
        self._rank = ranks_within(self._block_of)
        self._sizes.flags.writeable = False
        self._rank.flags.writeable = False
        contexts = blocks.one_each(parts, "contexts", "a context")
        fitted = []
        for context, size, name in zip(contexts, self._sizes, blocks.names, strict=True):
            fitted.append(_fit_part(context, int(size), name))
        self._parts = tuple(fitted)

    @property
    def as_union(self) -> "ContextUnion":
        """The context itself."""
        return self

    @property
    def parts(self) -> tuple[Context, ...]:
        """The context inside each block, over the integers 0 … k_j − 1."""
        return self._parts

    @property
    def block_of(self) -> Symbols:
        """The block of each symbol, numbered in the order of first labels."""
        return self._block_of

    @property
    def sizes(self) -> Symbols:
        """The number of symbols in each block (k_j)."""
        return self._sizes

    @property
    def rank(self) -> Symbols:
        """The position of each symbol inside its block, in domain order: its symbol in the part."""
        return self._rank

    @property
    def exact_smallest(self) -> Epsilon:
        """The least entry of all parts."""
        return min(part.exact_smallest for part in self._parts)

    @property
    def largest_finite(self) -> Fraction:
        """The largest finite entry of all parts."""
        return max(part.largest_finite for part in self._parts)

    @property
    def leaves_open(self) -> bool:
        """Whether there are several blocks, or the only one leaves a pair open."""
        return len(self._parts) > 1 or self._parts[0].leaves_open

    def unprotected(self) -> Symbols:
        """Return the symbols without a promise inside their block."""
        if len(self._parts) == 1:
            return self._parts[0].unprotected()
        is_open = self._sizes[self._block_of] == 1
        for part, symbols in zip(self._parts, self.members(), strict=True):
            is_open[symbols[part.unprotected()]] = True
        return np.flatnonzero(is_open)

    @property
    def partly_open(self) -> bool:
        """Whether some symbol has a promise inside its block, and there are other blocks."""
        if len(self._parts) == 1:
            return self._parts[0].partly_open
        return any(part.largest_finite > 0 for part in self._parts)

    def members(self) -> list[Symbols]:
        """Return the symbols of each block, in domain order."""
        order = np.argsort(self._block_of, kind="stable")
        return np.split(order, np.cumsum(self._sizes)[:-1])

    def exact_epsilon(self, x: int, x2: int) -> Epsilon:
        """Return the entry of the part inside a block, ``inf`` across."""
        j = int(self._block_of[x])
        if j != self._block_of[x2]:
            return inf
        return self._parts[j].exact_epsilon(int(self._rank[x]), int(self._rank[x2]))

    def exact_matrix(self) -> ExactMatrix:
        """Return E written out exactly; raise ``InvalidContext`` above 4096 symbols."""
        self._require_writable()
        matrices = [part.exact_matrix() for part in self._parts]
        return ExactMatrix.side_by_side(matrices, self.members())

    def closure(self) -> "ContextUnion":
        """Return the union of the closures: no finite path leaves a block."""
        closures = [part.closure() for part in self._parts]
        if all(closure is part for closure, part in zip(closures, self._parts, strict=True)):
            return self
        return self.with_parts(closures)

    def with_parts(self, parts: Sequence[Context]) -> "ContextUnion":
        """Return the same blocks with other contexts inside them."""
        return ContextUnion(parts, self._block_of, domain=self.domain)

    def record(self) -> Json:
        """Return the context as plain data."""
        parts = [part.record() for part in self._parts]
        return self._record(parts=parts, block_of=pack_u32(self._block_of))

    @classmethod
    def of_record(cls, record: Fields) -> "ContextUnion":
        """Read the record of a union, part by part."""
        from sfumato.contexts.records import context_of_record

        fields, domain = cls._read_fields(record, "parts", "block_of")
        if not isinstance(fields["parts"], list):
            raise InvalidSurvey("context.parts must be a list of contexts.")
        parts = [context_of_record(part, "a part of the context") for part in fields["parts"]]
        block_of = unpack_u32(fields["block_of"], "block_of", domain.size)
        return cls(parts, block_of, domain=domain)

    def _epsilon(self, x: Symbols, x2: Symbols) -> Floats:
        entries = np.full(x.shape, inf)
        same_block = self._block_of[x] == self._block_of[x2]
        for j in np.unique(self._block_of[x[same_block]]).tolist():
            pairs = same_block & (self._block_of[x] == j)
            entries[pairs] = self._parts[j]._epsilon(self._rank[x[pairs]], self._rank[x2[pairs]])
        return entries

    def __repr__(self) -> str:
        kinds = Counter(type(part).__name__ for part in self._parts)
        inside = ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items()))
        return f"ContextUnion({len(self._parts)} blocks of {self.domain!r}: {inside})"


def union(contexts: object, *, block_of: object = None, domain: object = None) -> Context:
    """Return any context inside each block, with no promise across.

    ``contexts`` is a sequence of contexts, or a mapping from block to context. Without
    ``block_of``, the symbols of the contexts follow one another, and so do their labels. With it
    (and a ``domain``, if you like), the symbols of block j, in domain order, are the symbols 0, 1,
    … of context j. If every context is uniform, the union is ``Blocks``; else a ``ContextUnion``.

    >>> from sfumato.contexts import HighLow, Uniform
    >>> union([Uniform(["bus", "tram"], 1), HighLow(["park", "clinic"], ["clinic"], 2)]).matrix()
    array([[ 0.,  1., inf, inf],
           [ 1.,  0., inf, inf],
           [inf, inf,  0., inf],
           [inf, inf,  2.,  0.]])
    >>> union([Uniform(2, 1), Uniform(3, 0.5)])
    Blocks(2 blocks of IntegerDomain(5, start=0), epsilon=0.5 to 1)
    """
    by_name = _read_contexts(contexts)
    if block_of is None:
        block_of = [name for name, context in by_name.items() for _ in range(context.size)]
        if domain is None:
            domain = _join_domains([context.domain for context in by_name.values()])
    blocks = Assignment.read(block_of, domain, "block")
    if not isinstance(contexts, Mapping):
        contexts = list(by_name.values())
    in_order = blocks.one_each(contexts, "contexts", "a context")
    result = ContextUnion(in_order, blocks.class_of, domain=blocks.domain)
    inside = [part.uniform_epsilon for part in result.parts]
    if None in inside:
        return result
    names = [blocks.names[j] for j in blocks.class_of.tolist()]
    return Blocks(names, dict(zip(blocks.names, inside, strict=True)), domain=blocks.domain)


def _read_contexts(contexts: object) -> dict[object, Context]:
    """Return the contexts by the names of their blocks: integers from 0 for a sequence."""
    if not isinstance(contexts, Iterable) or isinstance(contexts, str | bytes | Set):
        raise InvalidContext(
            "contexts must be a sequence of contexts, or a mapping from block to context."
        )
    by_name = dict(contexts) if isinstance(contexts, Mapping) else dict(enumerate(contexts))
    if not by_name:
        raise InvalidContext("contexts must contain at least one context; got none.")
    for context in by_name.values():
        _require_context(context)
    return by_name


def _join_domains(domains: Sequence[Domain]) -> Domain:
    """Return the domain of all labels, one domain after another."""
    if all(isinstance(domain, IntegerDomain) and domain.labels[0] == 0 for domain in domains):
        return IntegerDomain(sum(domain.size for domain in domains))
    others = [domain.other for domain in domains if domain.other is not None]
    if len(others) > 1:
        raise InvalidContext(
            "more than one context defines an `other` label. Pass domain= to choose one."
        )
    labels: dict[Label, None] = {}
    for domain in domains:
        for label in domain.labels:
            if label in labels:
                raise InvalidContext(
                    f"the label {label!r} is in two contexts. Rename one, or pass domain= with "
                    "distinct labels in this order."
                )
            labels[label] = None
    return Domain(labels.keys(), other=others[0] if others else None)


def _fit_part(part: object, size: int, name: object) -> Context:
    """Return a part over the symbols of its block: its own labels no longer matter."""
    context = _require_context(part)
    if context.size != size:
        raise ContextMismatch(f"block {name!r} has {size} symbols; its context has {context.size}.")
    return context.with_domain(IntegerDomain(size))


def _require_context(value: object) -> Context:
    if not isinstance(value, Context):
        raise InvalidContext(f"contexts must contain only contexts; got {type(value).__name__}.")
    return value
