"""Parts of a context between which nothing is promised: a report may show the part, and each is designed by itself."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from sfumato.contexts import Blocks, Context, ContextUnion, PrivacyMatrix, Uniform
from sfumato.domains import IntegerDomain

__all__ = ["Piece", "split"]


@dataclass(frozen=True)
class Piece:
    """Some symbols, and the context between them over the integers from 0."""

    symbols: NDArray[np.int64]
    context: Context


def split(context: Context) -> list[Piece]:
    """The pieces of a context, in the order of their first symbols; a context in one piece is its only piece.

    Symbols that owe nothing and are owed nothing share one piece, which is sent in clear.

    >>> pieces = split(PrivacyMatrix([[0, 1, "inf"], [1, 0, "inf"], ["inf", "inf", 0]]))
    >>> [piece.symbols.tolist() for piece in pieces]
    [[0, 1], [2]]
    """
    if context.groups is not None and not isinstance(context, Blocks):
        return [Piece(np.arange(context.size), context)]
    return sorted(_pieces(context), key=lambda piece: int(piece.symbols[0]))


def _pieces(context: Context) -> Iterator[Piece]:
    if isinstance(context, Blocks):
        yield from _blocks(context)
    elif isinstance(context, ContextUnion):
        for j, part in enumerate(context.parts):
            symbols = np.flatnonzero(context.block_of == j)
            yield from (Piece(symbols[piece.symbols], piece.context) for piece in split(part))
    else:
        yield from _components(context)


def _blocks(context: Blocks) -> Iterator[Piece]:
    if context.exact_across < inf or context.sizes.size == 1:
        yield Piece(np.arange(context.size), context)
        return
    order = np.argsort(context.block_of, kind="stable")
    for symbols, epsilon in zip(
        np.split(order, np.cumsum(context.sizes)[:-1]), context.exact_epsilons, strict=True
    ):
        yield Piece(symbols, Uniform(symbols.size, epsilon))


def _components(context: Context) -> Iterator[Piece]:
    from scipy.sparse.csgraph import connected_components

    count, component = connected_components(
        np.isfinite(context.matrix()), directed=True, connection="weak"
    )
    if count == 1:
        yield Piece(np.arange(context.size), context)
        return
    sizes = np.bincount(component)
    alone = np.flatnonzero(sizes[component] == 1)
    if alone.size:
        yield Piece(alone, Uniform(alone.size, inf))
    exact = context.exact_matrix()
    for j in np.flatnonzero(sizes > 1).tolist():
        symbols = np.flatnonzero(component == j)
        yield Piece(
            symbols, PrivacyMatrix.of_exact(exact.part(symbols), IntegerDomain(symbols.size))
        )
