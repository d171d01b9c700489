"""Describe a promise as rows: which answers are protected, against which others, and how strongly.

The web pages turn these rows into prose.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum, auto
from math import inf

import numpy as np

from sfumato.contexts.composite import ContextUnion
from sfumato.contexts.context import MAX_MATRIX_SIZE, Context
from sfumato.contexts.grouped import GroupedContext
from sfumato.foundation.arrays import Symbols
from sfumato.randomness import Epsilon

__all__ = ["ComparisonScope", "PromiseRow", "describe"]

_MAX_CLOSURE_SIZE = 256  # shortest paths take cubic time, and direct promises hold anyway


class ComparisonScope(Enum):
    """The other answers that an answer is protected against."""

    ANY_OTHER = auto()
    SAME_BLOCK = auto()
    OTHER_BLOCKS = auto()
    PARTNER = auto()


@dataclass(frozen=True, eq=False)
class PromiseRow:
    """One ε, and the pairs of answers it applies to.

    ``symbols`` are the answers the promise covers; ``None`` means every answer. ``pair_count`` is
    the number of ordered pairs. A ``PARTNER`` row covers individual pairs: ``symbols`` contains the
    two symbols of the first pair, and ``is_mutual`` is true if the context promises the same in
    both directions for every pair. In an ``OTHER_BLOCKS`` row, ``singleton_block_count`` is the
    number of single-answer blocks. In a row that applies only inside one block of a union,
    ``block`` contains the symbols of that block.
    """

    symbols: Symbols | None
    against: ComparisonScope
    epsilon: Epsilon
    pair_count: int
    is_mutual: bool = False
    singleton_block_count: int = 0
    block: Symbols | None = None

    @property
    def is_unbounded(self) -> bool:
        """Whether nothing is promised."""
        return self.epsilon == inf


def describe(context: Context, *, use_closure: bool = False) -> list[PromiseRow]:
    """Return the rows that describe a promise: the strongest first, unprotected pairs last.

    For grouped contexts, implied promises are included. If ``use_closure`` is true, they are also
    included for other contexts of up to 256 symbols. The result is empty for a sum that has too
    many symbols for a full matrix.

    >>> from sfumato.contexts import HighLow
    >>> [(row.symbols, row.epsilon) for row in describe(HighLow(3, [1], 2))]
    [(array([1]), Fraction(2, 1)), (array([0, 2]), inf)]
    """
    if context.groups is not None:
        rows = _describe_groups(context.groups.closure())
    elif context.as_union is not None:
        rows = _describe_parts(context.as_union, use_closure)
    elif context.size > MAX_MATRIX_SIZE:
        return []
    else:
        rows = _describe_pairs(context, use_closure)
    # Among rows with the same ε, the row between blocks comes last.
    return sorted(rows, key=lambda row: (row.epsilon, row.against is ComparisonScope.OTHER_BLOCKS))


def _describe_groups(context: GroupedContext) -> Iterator[PromiseRow]:
    k = context.size
    if k == 1:
        return
    if len(context.inside) == 1 or len({*context.inside, *context.outward}) == 1:
        yield PromiseRow(None, ComparisonScope.ANY_OTHER, context.inside[0], k * (k - 1))
        return
    members = context.members()
    if context.inside == context.outward:
        for symbols, epsilon in zip(members, context.inside, strict=True):
            yield PromiseRow(symbols, ComparisonScope.ANY_OTHER, epsilon, symbols.size * (k - 1))
        return
    blocks_by_epsilon: dict[Epsilon, list[Symbols]] = {}
    for symbols, epsilon in zip(members, context.inside, strict=True):
        if symbols.size > 1:
            blocks_by_epsilon.setdefault(epsilon, []).append(symbols)
    for epsilon, blocks in blocks_by_epsilon.items():
        symbols = np.sort(np.concatenate(blocks))
        pair_count = sum(block.size * (block.size - 1) for block in blocks)
        yield PromiseRow(symbols, ComparisonScope.SAME_BLOCK, epsilon, pair_count)
    yield _between_blocks_row(context.outward[0], context.sizes)


def _describe_parts(context: ContextUnion, use_closure: bool) -> Iterator[PromiseRow]:
    for part, block in zip(context.parts, context.members(), strict=True):
        for row in describe(part, use_closure=use_closure):
            symbols = block if row.symbols is None else block[row.symbols]
            inner_block = block if row.block is None else block[row.block]
            yield replace(row, symbols=symbols, block=inner_block)
    if len(context.parts) > 1:
        yield _between_blocks_row(inf, context.sizes)


def _between_blocks_row(epsilon: Epsilon, sizes: Symbols) -> PromiseRow:
    """Return the row for pairs of symbols in different blocks."""
    k = int(sizes.sum())
    pair_count = k * k - int((sizes * sizes).sum())
    return PromiseRow(
        None,
        ComparisonScope.OTHER_BLOCKS,
        epsilon,
        pair_count,
        singleton_block_count=int((sizes == 1).sum()),
    )


def _describe_pairs(context: Context, use_closure: bool) -> Iterator[PromiseRow]:
    """Yield a row for each distinct off-diagonal entry of the matrix."""
    if use_closure and context.size <= _MAX_CLOSURE_SIZE:
        context = context.closure()
    entries = context.exact_matrix()
    k = entries.size
    numerators = entries.numerators[~np.eye(k, dtype=np.bool_)]
    is_symmetric = bool((entries.numerators == entries.numerators.T).all())
    _, first_indices, counts = np.unique(numerators, return_index=True, return_counts=True)
    for index, count in zip(first_indices.tolist(), counts.tolist(), strict=True):
        x, column = divmod(index, k - 1)
        x2 = column + (column >= x)  # skip the diagonal
        pair = np.array([x, x2])
        yield PromiseRow(pair, ComparisonScope.PARTNER, entries.entry(x, x2), count, is_symmetric)
