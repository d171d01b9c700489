"""Blocks: hide the street, not the city."""

import copy
from collections.abc import Hashable
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from sfumato.contexts.assignment import Assignment, is_collection
from sfumato.contexts.context import Context
from sfumato.contexts.exact import ExactMatrix
from sfumato.contexts.groups import Groups
from sfumato.errors import ContextMismatch
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.foundation.canonical import Json, decimal_text, packed_u32
from sfumato.randomness.odds import Epsilon, positive_epsilon

if TYPE_CHECKING:
    from sfumato.contexts.union import ContextUnion

__all__ = ["Blocks", "ranks_within"]


class Blocks(Context):
    """``E[x, x2] = ε_j`` inside block j, ``across`` between blocks.

    ``block_of`` gives each symbol its block: a sequence in domain order (integers or names), or a
    mapping from label to block. Blocks are numbered in the order of their first label. ``epsilon`` is one
    number for all blocks, or one for each: a mapping from block to ε, or a sequence in the order of
    blocks. By default a report may show the block (Definition 4 of the paper); a finite ``across`` hides
    it too, usually less than what lies inside.

    >>> Blocks({"Rue A": "Paris", "Rue B": "Paris", "Via C": "Rome"}, epsilon=1).matrix()
    array([[ 0.,  1., inf],
           [ 1.,  0., inf],
           [inf, inf,  0.]])
    >>> Blocks([0, 0, 1, 1], {0: 1, 1: 0.5}, across=2).matrix()
    array([[0. , 1. , 2. , 2. ],
           [1. , 0. , 2. , 2. ],
           [2. , 2. , 0. , 0.5],
           [2. , 2. , 0.5, 0. ]])
    """

    def __init__(
        self, block_of: object, epsilon: object, *, across: object = inf, domain: object = None
    ) -> None:
        blocks = Assignment.read(block_of, domain, "block")
        super().__init__(blocks.domain)
        self._block_of, self._block_names = blocks.class_of, blocks.names
        m = len(self._block_names)
        epsilons = (
            blocks.epsilons(epsilon, "epsilon")
            if is_collection(epsilon)
            else (positive_epsilon(epsilon),) * m
        )
        self._groups = Groups(self._block_of, epsilons, (positive_epsilon(across, "across"),) * m)
        self._rank = ranks_within(self._block_of)
        for array in (self._rank, self.sizes):
            array.flags.writeable = False

    @staticmethod
    def of(
        contexts: object, *, block_of: object = None, domain: object = None
    ) -> "Blocks | ContextUnion":
        """Any context inside each block, nothing across: a sequence of contexts, or a mapping from block to context.

        Without ``block_of``, the symbols of the contexts follow one another, and so do their labels. With it (and,
        if need be, ``domain``), the symbols of block j, in domain order, are the symbols 0, 1, … of context j. If
        every context is uniform, so are all blocks.

        >>> from sfumato.contexts import HighLow, Uniform
        >>> Blocks.of([Uniform(["bus", "tram"], 1), HighLow(["park", "clinic"], ["clinic"], 2)]).matrix()
        array([[ 0.,  1., inf, inf],
               [ 1.,  0., inf, inf],
               [inf, inf,  0., inf],
               [inf, inf,  2.,  0.]])
        >>> Blocks.of([Uniform(2, 1), Uniform(3, 0.5)])
        Blocks(2 blocks of IntegerDomain(5, start=0), epsilon=0.5 to 1)
        """
        from sfumato.contexts.union import union_of

        return union_of(contexts, block_of, domain)

    @property
    def block_of(self) -> Symbols:
        """The block of each symbol, numbered in the order of first labels."""
        return self._block_of

    @property
    def block_names(self) -> tuple[Hashable, ...]:
        """The names of the blocks as they were given."""
        return self._block_names

    @property
    def sizes(self) -> Symbols:
        """The number of symbols in each block (k_j)."""
        return self._groups.sizes

    @property
    def rank(self) -> Symbols:
        """The place of each symbol inside its block, in domain order, from 0."""
        return self._rank

    @property
    def groups(self) -> Groups:
        """The blocks."""
        return self._groups

    @property
    def exact_epsilons(self) -> tuple[Epsilon, ...]:
        """The ε inside each block, exactly."""
        return self._groups.inside

    @property
    def exact_across(self) -> Epsilon:
        """The ε between blocks, exactly; ``inf`` where a report may show the block."""
        return self._groups.outward[0]

    @property
    def exact_inside(self) -> Epsilon:
        """The ε inside blocks, where it is the same for all and nothing is promised across, as in the paper."""
        if self._shared_epsilon is None or self.exact_across != inf:
            raise ContextMismatch(
                "these blocks have an ε of their own each, or a promise across, so no single ε describes them. "
                "Ask for exact_epsilons and exact_across."
            )
        return self._shared_epsilon

    @property
    def exact_smallest(self) -> Epsilon:
        """The least ε of a block of two symbols or more, or across; ``inf`` if there is no such pair."""
        return self._groups.exact_smallest

    def exact_epsilon(self, x: int, x2: int) -> Epsilon:
        """The ε of their block, or the one across; 0 on the diagonal."""
        return self._groups.exact_epsilon(x, x2)

    def exact_matrix(self) -> ExactMatrix:
        """E written out exactly; refused above 4096 symbols."""
        self._refuse_large("written out")
        return self._groups.exact_matrix()

    def closure(self) -> "Blocks":
        """Itself, but that inside a block the way through another one may be shorter: ``min(ε_j, 2·across)``.

        A path that stays in block j costs at least ε_j. One that leaves it crosses twice, so costs at least
        2·across, and as much through any one symbol elsewhere. Between blocks every path crosses once or more.
        """
        detour = 2 * self.exact_across
        shortened = tuple(
            min(epsilon, detour) if size > 1 and self.sizes.size > 1 else epsilon
            for epsilon, size in zip(self.exact_epsilons, self.sizes.tolist(), strict=True)
        )
        if shortened == self.exact_epsilons:
            return self
        made = copy.copy(self)
        made._groups = Groups(self._block_of, shortened, self._groups.outward)
        return made

    def record(self) -> Json:
        """The context as plain data: ``epsilons`` where blocks differ, ``across`` where it is finite."""
        shared, across = self._shared_epsilon, self.exact_across
        inside: dict[str, Json] = {
            "epsilons": [decimal_text(epsilon) for epsilon in self.exact_epsilons]
        }
        if shared is not None:
            inside = {"epsilon": decimal_text(shared)}
        return {
            "kind": "blocks",
            "domain": self.domain.record(),
            **inside,
            **({} if across == inf else {"across": decimal_text(across)}),
            "block_of": packed_u32(self._block_of),
        }

    @property
    def _shared_epsilon(self) -> Epsilon | None:
        first = self.exact_epsilons[0]
        agree = all(epsilon is first or epsilon == first for epsilon in self.exact_epsilons)
        return first if agree else None

    def _epsilon(self, x: Symbols, x2: Symbols) -> Floats:
        return self._groups.epsilon(x, x2)

    def __repr__(self) -> str:
        low, high = min(self.exact_epsilons), max(self.exact_epsilons)
        inside = decimal_text(low) + (f" to {decimal_text(high)}" if low != high else "")
        across = "" if self.exact_across == inf else f", across={decimal_text(self.exact_across)}"
        return f"Blocks({self.sizes.size} blocks of {self.domain!r}, epsilon={inside}{across})"


def ranks_within(block_of: Symbols) -> Symbols:
    """The place of each symbol inside its block, from 0.

    >>> ranks_within(np.array([0, 1, 0, 2, 1]))
    array([0, 0, 1, 0, 1])
    """
    sizes = np.bincount(block_of)
    order = np.argsort(block_of, kind="stable")
    rank = np.empty(block_of.size, dtype=np.int64)
    rank[order] = np.arange(block_of.size) - (np.cumsum(sizes) - sizes)[block_of[order]]
    return rank
