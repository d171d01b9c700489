"""Recognition: a written-out matrix that *is* uniform, high-low, tiered, made of blocks, or a union of such."""

from fractions import Fraction
from math import inf

import numpy as np

from sfumato.contexts import (
    Blocks,
    Context,
    ContextUnion,
    ExactMatrix,
    HighLow,
    PrivacyMatrix,
    Tiers,
    Uniform,
    union,
)
from sfumato.domains import Domain, IntegerDomain
from sfumato.errors import NoClosedForm, NothingToLearn
from sfumato.foundation.arrays import Booleans, Symbols
from sfumato.randomness import LARGEST_EPSILON, Epsilon

__all__ = ["Structured", "recognise", "recognise_as_written", "refuse_twins"]

Structured = Context
"""A context that a closed form may be known for."""

_ALONE = -1  # stands for the ε inside a block of one symbol, which has no pair


def recognise(context: Context) -> Structured:
    """The structured context that promises the same as ``context``, over the same domain.

    The matrix is closed first, so a matrix is recognised by what it promises, not by how it is written. Where
    several forms fit, the first of these is taken: uniform, blocks that a report may show, high-low, tiers,
    blocks that it may not show, and last a union, whose parts are recognised one by one.

    >>> from sfumato.contexts import PrivacyMatrix
    >>> recognise(PrivacyMatrix([[0, 1, "inf"], [1, 0, "inf"], ["inf", "inf", 0]]))
    Blocks(2 blocks of IntegerDomain(3, start=0), epsilon=1)
    >>> recognise(PrivacyMatrix([[0, 2, 2], ["0.5", 0, "0.5"], ["inf", "inf", 0]]))
    Tiers(3 tiers of IntegerDomain(3, start=0), epsilons=[2, 0.5, inf])
    """
    if isinstance(context, Uniform | HighLow):
        return context
    if isinstance(context, Tiers):
        return _simplest_tiers(context)
    if isinstance(context, Blocks):
        return _simplest_blocks(context)
    if isinstance(context, ContextUnion):
        return _simplest_union(context)
    exact = context.exact_matrix().closure()
    refuse_twins(exact)
    return _structured(exact, context.domain)


def recognise_as_written(context: PrivacyMatrix) -> Structured:
    """The structured context with the very entries of ``context``, which is not closed: quick for large matrices.

    >>> recognise_as_written(PrivacyMatrix([[0, 1, 1], [1, 0, 1], [1, 1, 0]]))
    Uniform(IntegerDomain(3, start=0), epsilon=1)
    """
    exact = context.exact_matrix()
    refuse_twins(exact)
    return _structured(exact, context.domain)


# --- what is structured already --------------------------------------------------------------------------------------


def _simplest_tiers(context: Tiers) -> Uniform | HighLow | Tiers:
    """Tiers of one ε are uniform; of one ε and inf, high-low."""
    owed = context.groups.inside
    if len(owed) == 1:
        return Uniform(context.domain, owed[0])
    if len(owed) == 2 and inf in owed:
        return _high_low(
            context.domain, context.groups.group_of == owed.index(min(owed)), min(owed)
        )
    return context


def _simplest_blocks(context: Blocks) -> Uniform | Blocks:
    """Blocks that a report may show stay as they are; others are closed, and may then be uniform.

    A block whose symbols owe each other what they owe everybody is no block: its symbols stand by themselves.
    """
    if context.exact_across == inf:
        return context
    closed, sizes = context.closure(), context.sizes.tolist()
    promised = {
        epsilon for epsilon, size in zip(closed.exact_epsilons, sizes, strict=True) if size > 1
    }
    promised |= {context.exact_across} if len(sizes) > 1 else set()
    if len(promised) <= 1:
        return Uniform(context.domain, min(promised, default=inf))
    alone = [
        epsilon == context.exact_across and size > 1
        for epsilon, size in zip(closed.exact_epsilons, sizes, strict=True)
    ]
    if closed is context and not any(alone):
        return context
    block_of = np.where(
        np.array(alone)[context.block_of], len(sizes) + np.arange(context.size), context.block_of
    )
    split, order = _renumber_by_first(block_of)
    # A detour may be longer than any ε that a context may promise; then what was typed stays.
    kept = [
        c if c <= LARGEST_EPSILON else e
        for c, e in zip(closed.exact_epsilons, context.exact_epsilons, strict=True)
    ]
    epsilons = [kept[b] if b < len(sizes) else context.exact_across for b in order.tolist()]
    return Blocks(split, epsilons, across=context.exact_across, domain=context.domain)


def _simplest_union(context: ContextUnion) -> Context:
    parts = [_recognised_part(part, j) for j, part in enumerate(context.parts)]
    if all(found is part for found, part in zip(parts, context.parts, strict=True)):
        return context
    return union(parts, block_of=context.block_of, domain=context.domain)


def _recognised_part(part: Context, block: int) -> Structured:
    try:
        return recognise(part)
    except (NoClosedForm, NothingToLearn) as problem:
        raise type(problem)(f"inside block {block}: {problem}") from None


# --- what is written out ---------------------------------------------------------------------------------------------


def _structured(exact: ExactMatrix, domain: Domain) -> Structured:
    """The structured form of a closed matrix without zeros."""
    return (
        _blocks(exact, domain, exact.infinite)
        or _tiers(exact, domain)
        or _hidden_blocks(exact, domain)
        or _union(exact, domain)
    )


def _blocks(exact: ExactMatrix, domain: Domain, across: int) -> Uniform | Blocks | None:
    """Blocks with the numerator ``across`` between any two of them, and one ε inside each."""
    N, off = exact.numerators, ~np.eye(exact.size, dtype=np.bool_)
    together: Booleans = np.not_equal(N, across)
    first = together.argmax(axis=1)  # the first symbol of a block names it
    inside = np.where(together & off, N, _ALONE).max(axis=1)
    if not (
        (together == np.equal.outer(first, first)).all()
        and (inside[:, None] == N)[together & off].all()
        and (inside == inside[first]).all()
    ):
        return None
    between = inf if across == exact.infinite else Fraction(across, exact.denominator)
    # A symbol alone in its block owes the others the same as any, and nobody anything inside.
    epsilons = [
        between if n == _ALONE else Fraction(n, exact.denominator)
        for n in inside[np.unique(first)].tolist()
    ]
    promised = sorted({Fraction(n, exact.denominator) for n in inside.tolist() if n != _ALONE})
    if not promised or together.all():
        return Uniform(domain, promised[0] if promised else between)
    return Blocks(
        first, epsilons if len(promised) > 1 else promised[0], across=between, domain=domain
    )


def _tiers(exact: ExactMatrix, domain: Domain) -> HighLow | Tiers | None:
    """Rows of one number each: tiers, or high-low if only one of the numbers is finite."""
    owed = exact.off_diagonal().min(axis=1)
    if not ((owed[:, None] == exact.numerators) | np.eye(exact.size, dtype=np.bool_)).all():
        return None
    tier_of, numerators = _renumber_by_first(owed)
    epsilons = [
        inf if n == exact.infinite else Fraction(n, exact.denominator) for n in numerators.tolist()
    ]
    found = _simplest_tiers(Tiers(tier_of, epsilons, domain=domain))
    return None if isinstance(found, Uniform) else found


def _hidden_blocks(exact: ExactMatrix, domain: Domain) -> Blocks | None:
    """Blocks with a finite ε across.

    The first symbol sees its own block at one distance and all others at another, so its row names ``across``. It
    cannot name two: if the blocks at one distance are read from a matrix, the pairs at the other make none.
    """
    distances = np.unique(exact.numerators[0, 1:]).tolist()
    if len(distances) > 2:
        return None
    for across in distances:
        found = None if across == exact.infinite else _blocks(exact, domain, across)
        if isinstance(found, Blocks):
            return found
    return None


def _union(exact: ExactMatrix, domain: Domain) -> Context:
    """The parts between which nothing is promised, each recognised by itself; single symbols share one, in clear."""
    from scipy.sparse.csgraph import connected_components

    _, component = connected_components(
        exact.numerators != exact.infinite, directed=True, connection="weak"
    )
    alone = np.bincount(component)[component] == 1
    block_of, _ = _renumber_by_first(np.where(alone, -1, component).astype(np.int64))
    blocks = [np.flatnonzero(block_of == j) for j in range(int(block_of.max()) + 1)]
    if len(blocks) == 1:
        raise NoClosedForm(
            "no mechanism on the shelf fits this privacy matrix: it is neither uniform, nor high-low, nor tiered, nor "
            "made of blocks, nor a union of such. Call sf.design(context), or run `sfumato design`: it computes one."
        )
    parts = [_structured(exact.part(symbols), IntegerDomain(symbols.size)) for symbols in blocks]
    return union(parts, block_of=block_of, domain=domain)


def _high_low(domain: Domain, is_sensitive: Booleans, epsilon: Epsilon) -> HighLow:
    return HighLow(
        domain, [domain.labels[x] for x in np.flatnonzero(is_sensitive).tolist()], epsilon
    )


def refuse_twins(exact: ExactMatrix) -> None:
    """Refuse a closed matrix with a zero off its diagonal."""
    twins = np.argwhere((exact.numerators == 0) & ~np.eye(exact.size, dtype=np.bool_))
    if twins.size:
        x, x2 = twins[0]
        raise NothingToLearn(
            f"this context forbids telling symbols {x} and {x2} apart at all. Give them one label, or an ε above 0."
        )


def _renumber_by_first(numbers: Symbols) -> tuple[Symbols, Symbols]:
    """Renumber integers 0, 1, … in the order in which they first occur; return the old ones too."""
    values, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
    order = np.argsort(first)
    new_number = np.empty_like(order)
    new_number[order] = np.arange(order.size)
    return new_number[inverse.reshape(-1)], values[order]
