"""Unions: blocks that a report may show, with any context inside each."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from fractions import Fraction
from math import inf

import numpy as np

from sfumato.contexts.assignment import Assignment
from sfumato.contexts.blocks import Blocks, ranks_within
from sfumato.contexts.context import Context
from sfumato.contexts.exact import ExactMatrix
from sfumato.contexts.uniform import Uniform
from sfumato.domains import Domain, IntegerDomain, Label, as_domain
from sfumato.errors import ContextMismatch, InvalidContext
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.foundation.canonical import Json, packed_u32
from sfumato.randomness.odds import Epsilon

__all__ = ["ContextUnion", "union_of"]


class ContextUnion(Context):
    """``E[x, x2] = E_j[i, i2]`` for the symbols number i and i2 of block j, ``inf`` across blocks.

    A report may show the block; inside block j, anything that keeps part j will do. ``Blocks.of`` makes unions.
    The parts speak of the symbols 0 … k_j − 1 of their block, in domain order; labels belong to the union.

    >>> from sfumato.contexts import HighLow
    >>> ContextUnion([Uniform(2, 1), HighLow(2, [1], 2)], [0, 1, 1, 0]).matrix()
    array([[ 0., inf, inf,  1.],
           [inf,  0., inf, inf],
           [inf,  2.,  0., inf],
           [ 1., inf, inf,  0.]])
    """

    def __init__(self, parts: Iterable[object], block_of: object, *, domain: object = None) -> None:
        blocks = Assignment.read(block_of, domain, "block")
        super().__init__(blocks.domain)
        self._block_of = blocks.class_of
        self._sizes, self._rank = np.bincount(self._block_of), ranks_within(self._block_of)
        listed = blocks.one_each(parts, "contexts", "a context")
        self._parts = tuple(
            _fitting(part, size, name)
            for part, size, name in zip(listed, self._sizes, blocks.names, strict=True)
        )
        for array in (self._sizes, self._rank):
            array.flags.writeable = False

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
        """The place of each symbol inside its block, in domain order, from 0: its symbol in the part."""
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
        """The symbols without a promise inside their block."""
        if len(self._parts) == 1:
            return self._parts[0].unprotected()
        alone = self._sizes[self._block_of] == 1
        for part, symbols in zip(self._parts, self._symbols_by_block(), strict=True):
            alone[symbols[part.unprotected()]] = True
        return np.flatnonzero(alone)

    @property
    def partly_open(self) -> bool:
        """Whether some symbol has a promise inside its block, and there are other blocks."""
        if len(self._parts) == 1:
            return self._parts[0].partly_open
        return any(part.largest_finite > 0 for part in self._parts)

    def exact_epsilon(self, x: int, x2: int) -> Epsilon:
        """What the part says inside a block, ``inf`` across."""
        j = int(self._block_of[x])
        return (
            self._parts[j].exact_epsilon(int(self._rank[x]), int(self._rank[x2]))
            if j == self._block_of[x2]
            else inf
        )

    def exact_matrix(self) -> ExactMatrix:
        """E written out exactly; refused above 4096 symbols."""
        self._refuse_large("written out")
        return ExactMatrix.side_by_side(
            [part.exact_matrix() for part in self._parts], self._symbols_by_block()
        )

    def closure(self) -> "ContextUnion":
        """The union of the closures: no finite way leaves a block."""
        closed = [part.closure() for part in self._parts]
        return (
            self
            if all(a is b for a, b in zip(closed, self._parts, strict=True))
            else self.with_parts(closed)
        )

    def with_parts(self, parts: Sequence[Context]) -> "ContextUnion":
        """The same blocks with other contexts inside them."""
        return ContextUnion(parts, self._block_of, domain=self.domain)

    def record(self) -> Json:
        """The context as plain data."""
        return {
            "kind": "union",
            "domain": self.domain.record(),
            "parts": [part.record() for part in self._parts],
            "block_of": packed_u32(self._block_of),
        }

    def _symbols_by_block(self) -> list[Symbols]:
        order = np.argsort(self._block_of, kind="stable")
        return np.split(order, np.cumsum(self._sizes)[:-1])

    def _epsilon(self, x: Symbols, x2: Symbols) -> Floats:
        found = np.full(x.shape, inf)
        j = np.where(self._block_of[x] == self._block_of[x2], self._block_of[x], -1)
        for block in np.unique(j[j >= 0]).tolist():
            here = j == block
            found[here] = self._parts[block]._epsilon(self._rank[x[here]], self._rank[x2[here]])
        return found

    def __repr__(self) -> str:
        kinds = Counter(type(part).__name__ for part in self._parts)
        inside = ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items()))
        return f"ContextUnion({len(self._parts)} blocks of {self.domain!r}: {inside})"


def union_of(
    contexts: object, block_of: object = None, domain: object = None
) -> Blocks | ContextUnion:
    """The union of contexts, as ``Blocks`` if all of them are uniform: see ``Blocks.of``."""
    names, parts = _named(contexts)
    if block_of is None:
        block_of = [name for name, part in zip(names, parts, strict=True) for _ in range(part.size)]
        domain = _joined(parts) if domain is None else domain
    blocks = Assignment.read(block_of, domain, "block")
    given = dict(zip(names, parts, strict=True)) if isinstance(contexts, Mapping) else parts
    union = ContextUnion(
        blocks.one_each(given, "contexts", "a context"), blocks.class_of, domain=blocks.domain
    )
    uniform = [part for part in union.parts if isinstance(part, Uniform)]
    if len(uniform) < len(union.parts):
        return union
    named = [blocks.names[j] for j in blocks.class_of.tolist()]
    epsilons = {name: part.exact_inside for name, part in zip(blocks.names, uniform, strict=True)}
    return Blocks(named, epsilons, domain=blocks.domain)


def _named(contexts: object) -> tuple[list[object], list[Context]]:
    if not isinstance(contexts, Iterable) or isinstance(contexts, str | bytes | Set):
        raise InvalidContext(
            "contexts must be a sequence of contexts, or a mapping from block to context."
        )
    parts = list(contexts.values()) if isinstance(contexts, Mapping) else list(contexts)
    if not parts:
        raise InvalidContext("contexts must hold at least one context; found none.")
    strange = [type(part).__name__ for part in parts if not isinstance(part, Context)]
    if strange:
        raise InvalidContext(f"contexts must hold contexts only; found {strange[0]}.")
    return list(contexts) if isinstance(contexts, Mapping) else list(range(len(parts))), parts


def _joined(parts: list[Context]) -> Domain:
    """The labels of all parts, one after another."""
    domains = [part.domain for part in parts]
    if all(isinstance(domain, IntegerDomain) and domain.labels[0] == 0 for domain in domains):
        return IntegerDomain(sum(domain.size for domain in domains))
    labels: list[Label] = [label for domain in domains for label in domain.labels]
    others = [domain.other for domain in domains if domain.other is not None]
    if len(others) > 1:
        raise InvalidContext(
            "two contexts have a label for `other`, and a union has one. Pass domain=."
        )
    seen: set[Label] = set()
    twice = next((label for label in labels if label in seen or seen.add(label)), None)  # type: ignore[func-returns-value]
    if twice is not None:
        raise InvalidContext(
            f"the label {twice!r} is in two contexts. Rename one, or pass domain= with distinct labels in this order."
        )
    return Domain(labels, other=others[0] if others else None)


def _fitting(part: object, size: int, name: object) -> Context:
    """A part over the symbols of its block: the labels it was made with are those of the union now."""
    if not isinstance(part, Context):
        raise InvalidContext(f"contexts must hold contexts only; found {type(part).__name__}.")
    if part.size != size:
        raise ContextMismatch(f"block {name!r} has {size} symbols; its context has {part.size}.")
    return part.relabelled(as_domain(int(size)))
