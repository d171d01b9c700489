"""Components of a context, between which nothing is promised, so that each is designed by itself.

A report may show the component.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

import numpy as np

from sfumato.contexts import Context, PrivacyMatrix, Uniform
from sfumato.domains import IntegerDomain
from sfumato.foundation.arrays import Symbols

__all__ = ["ComponentContext", "split"]


@dataclass(frozen=True)
class ComponentContext:
    """Some symbols, and the context between them over the integers from 0."""

    symbols: Symbols
    context: Context


def split(context: Context) -> list[ComponentContext]:
    """Return the components of a context, in the order of their first symbols.

    Symbols that owe nothing and are owed nothing share one component, which is sent in clear.

    >>> components = split(PrivacyMatrix([[0, 1, "inf"], [1, 0, "inf"], ["inf", "inf", 0]]))
    >>> [component.symbols.tolist() for component in components]
    [[0, 1], [2]]
    """
    return sorted(_components(context), key=lambda component: int(component.symbols[0]))


def _components(context: Context) -> Iterator[ComponentContext]:
    groups = context.groups
    blocks = context.as_union
    if blocks is not None:
        for symbols, part in zip(blocks.members(), blocks.parts, strict=True):
            for component in split(part):
                yield ComponentContext(symbols[component.symbols], component.context)
    elif groups is None:
        yield from _split_connected(context)
    elif groups.shows_groups and len(groups.inside) > 1:
        for symbols, epsilon in zip(groups.members(), groups.inside, strict=True):
            yield ComponentContext(symbols, Uniform(symbols.size, epsilon))
    else:
        yield ComponentContext(np.arange(context.size), context)


def _split_connected(context: Context) -> Iterator[ComponentContext]:
    from scipy.sparse.csgraph import connected_components

    promised = np.isfinite(context.matrix())
    count, component_of = connected_components(promised, directed=True, connection="weak")
    if count == 1:
        yield ComponentContext(np.arange(context.size), context)
        return
    sizes = np.bincount(component_of)
    alone = np.flatnonzero(sizes[component_of] == 1)
    if alone.size:
        yield ComponentContext(alone, Uniform(alone.size, inf))
    exact = context.exact_matrix()
    for j in np.flatnonzero(sizes > 1).tolist():
        symbols = np.flatnonzero(component_of == j)
        domain = IntegerDomain(symbols.size)
        yield ComponentContext(symbols, PrivacyMatrix.of_exact(exact.part(symbols), domain))
