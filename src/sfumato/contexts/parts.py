"""Look inside the blocks of a context: the parts of a union, its groups, its promises."""

from collections.abc import Sequence

import numpy as np

from sfumato.contexts.context import MAX_MATRIX_SIZE, Context
from sfumato.contexts.matrix import PrivacyMatrix
from sfumato.domains import IntegerDomain
from sfumato.foundation.arrays import Symbols

__all__ = ["finest_groups", "parts_inside"]


def parts_inside(context: Context, block_of: Symbols) -> Sequence[Context] | None:
    """Return the context inside each of these blocks, if nothing is promised across them.

    Return ``None`` otherwise, and for a matrix too large to be written out.
    """
    blocks = context.as_union
    if blocks is not None and (blocks.block_of == block_of).all():
        return blocks.parts
    if context.size > MAX_MATRIX_SIZE:
        return None
    exact = context.exact_matrix()
    across = block_of[:, None] != block_of[None, :]
    if not (exact.numerators[across] == exact.infinite).all():
        return None
    parts = []
    for j in range(int(block_of.max()) + 1):
        symbols = np.flatnonzero(block_of == j)
        parts.append(PrivacyMatrix.of_exact(exact.part(symbols), IntegerDomain(symbols.size)))
    return parts


def finest_groups(context: Context) -> Symbols:
    """Return the group of each symbol; parts of a union keep their groups apart.

    All symbols are in one group where the context has none.
    """
    if context.groups is not None:
        return context.groups.group_of
    group_of = np.zeros(context.size, dtype=np.int64)
    blocks = context.as_union
    if blocks is not None:
        first = 0
        for part, symbols in zip(blocks.parts, blocks.members(), strict=True):
            inner = finest_groups(part)
            group_of[symbols] = inner + first
            first += int(inner.max()) + 1
    return group_of
