"""Describe a promise in rows: who is protected, against whom, and how much. Pages word them."""

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

__all__ = ["Against", "PromiseRow", "describe"]

_MAX_CLOSED_SIZE = 256  # shortest paths take cubic time; direct promises are bounds too


class Against(Enum):
    """The answers against which an answer is protected."""

    ANY_OTHER = auto()
    SAME_BLOCK = auto()
    OTHER_BLOCKS = auto()
    PARTNER = auto()


@dataclass(frozen=True, eq=False)
class PromiseRow:
    """One ε, and the pairs of answers that have it.

    ``symbols`` are the answers that have the promise; ``None`` means every answer. ``pairs`` counts
    ordered pairs. For a row of pairs (``PARTNER``), ``symbols`` is the first pair, and
    ``is_mutual`` says that each pair has the promise in both directions. For a row between blocks,
    ``single_blocks`` counts the blocks of a single answer. For a row inside a block of a union,
    ``block`` holds the symbols of that block.
    """

    symbols: Symbols | None
    against: Against
    epsilon: Epsilon
    pairs: int
    is_mutual: bool = False
    single_blocks: int = 0
    block: Symbols | None = None

    @property
    def is_open(self) -> bool:
        """Whether nothing is promised."""
        return self.epsilon == inf


def describe(context: Context, *, close: bool = False) -> list[PromiseRow]:
    """Return the promise of a context, row by row: the strongest first, open pairs last.

    Grouped contexts include promises that follow from others. With ``close``, matrices of up to
    256 symbols do too. A sum too large to write out has no rows.

    >>> from sfumato.contexts import HighLow
    >>> [(row.symbols, row.epsilon) for row in describe(HighLow(3, [1], 2))]
    [(array([1]), Fraction(2, 1)), (array([0, 2]), inf)]
    """
    if context.groups is not None:
        rows = _describe_groups(context.groups.closure())
    elif context.as_union is not None:
        rows = _describe_parts(context.as_union, close)
    elif context.size > MAX_MATRIX_SIZE:
        return []
    else:
        rows = _describe_pairs(context, close)
    # Among rows of one ε, the row between blocks comes last.
    return sorted(rows, key=lambda row: (row.epsilon, row.against is Against.OTHER_BLOCKS))


def _describe_groups(context: GroupedContext) -> Iterator[PromiseRow]:
    k = context.size
    if k == 1:
        return
    if len(context.inside) == 1 or len({*context.inside, *context.outward}) == 1:
        yield PromiseRow(None, Against.ANY_OTHER, context.inside[0], k * (k - 1))
        return
    members = context.members()
    if context.inside == context.outward:
        for symbols, epsilon in zip(members, context.inside, strict=True):
            yield PromiseRow(symbols, Against.ANY_OTHER, epsilon, symbols.size * (k - 1))
        return
    blocks_of: dict[Epsilon, list[Symbols]] = {}
    for symbols, epsilon in zip(members, context.inside, strict=True):
        if symbols.size > 1:
            blocks_of.setdefault(epsilon, []).append(symbols)
    for epsilon, blocks in blocks_of.items():
        pairs = sum(symbols.size * (symbols.size - 1) for symbols in blocks)
        yield PromiseRow(np.sort(np.concatenate(blocks)), Against.SAME_BLOCK, epsilon, pairs)
    yield _row_between(context.outward[0], context.sizes)


def _describe_parts(context: ContextUnion, close: bool) -> Iterator[PromiseRow]:
    for part, block in zip(context.parts, context.members(), strict=True):
        for row in describe(part, close=close):
            symbols = block if row.symbols is None else block[row.symbols]
            inner = block if row.block is None else block[row.block]
            yield replace(row, symbols=symbols, block=inner)
    if len(context.parts) > 1:
        yield _row_between(inf, context.sizes)


def _row_between(epsilon: Epsilon, sizes: Symbols) -> PromiseRow:
    """Return the row of pairs in different blocks."""
    k = int(sizes.sum())
    pairs = k * k - int((sizes * sizes).sum())
    single = int((sizes == 1).sum())
    return PromiseRow(None, Against.OTHER_BLOCKS, epsilon, pairs, single_blocks=single)


def _describe_pairs(context: Context, close: bool) -> Iterator[PromiseRow]:
    """Yield a row for each distinct entry of the matrix."""
    if close and context.size <= _MAX_CLOSED_SIZE:
        context = context.closure()
    exact = context.exact_matrix()
    k = exact.size
    numerators = exact.numerators[~np.eye(k, dtype=np.bool_)]
    is_symmetric = bool((exact.numerators == exact.numerators.T).all())
    _, firsts, counts = np.unique(numerators, return_index=True, return_counts=True)
    for first, count in zip(firsts.tolist(), counts.tolist(), strict=True):
        x, rest = divmod(first, k - 1)
        x2 = rest + (rest >= x)  # the diagonal is left out
        pair = np.array([x, x2])
        yield PromiseRow(pair, Against.PARTNER, exact.entry(x, x2), count, is_symmetric)
