"""Recognise matrices that are uniform, high-low, tiered, block-structured, or unions of those."""

import numpy as np

from sfumato.contexts import (
    Blocks,
    Context,
    ContextUnion,
    ExactMatrix,
    Tiers,
    Uniform,
    symbols_by_group,
    union,
)
from sfumato.domains import Domain, IntegerDomain
from sfumato.errors import NoClosedForm, NothingToLearn
from sfumato.foundation.arrays import Booleans, Symbols

__all__ = [
    "recognise",
    "recognise_as_written",
    "require_distinct_symbols",
    "symbols_by_component",
]

_NO_PAIR = -1  # in place of the numerator inside a block with only one symbol


def recognise(context: Context) -> Context:
    """Return the structured context that promises the same as ``context``, over the same domain.

    Only the closure of the matrix matters, so equivalent matrices are recognised as the same
    form. If several forms fit, the first one in this order is chosen: uniform, blocks that a report
    may reveal, high-low, tiers, blocks that a report may not reveal, and a union, whose parts are
    recognised one by one. Raise ``NoClosedForm`` for any other matrix, and ``NothingToLearn`` if
    the closure has a zero off the diagonal.

    >>> from sfumato.contexts import PrivacyMatrix
    >>> recognise(PrivacyMatrix([[0, 1, "inf"], [1, 0, "inf"], ["inf", "inf", 0]]))
    Blocks(2 blocks of IntegerDomain(3, start=0), epsilon=1)
    >>> recognise(PrivacyMatrix([[0, 2, 2], ["0.5", 0, "0.5"], ["inf", "inf", 0]]))
    Tiers(3 tiers of IntegerDomain(3, start=0), epsilons=[2, 0.5, inf])
    """
    if context.groups is not None:
        return context.groups.simplify()
    if context.as_union is not None:
        return _recognise_union(context.as_union)
    exact = context.exact_matrix().closure()
    require_distinct_symbols(exact)
    return _recognise_matrix(exact, context.domain)


def recognise_as_written(context: Context) -> Context:
    """Return the structured context with exactly the same entries as ``context``.

    The closure is not computed, because that would be slow for a large matrix.

    >>> from sfumato.contexts import PrivacyMatrix
    >>> recognise_as_written(PrivacyMatrix([[0, 1, 1], [1, 0, 1], [1, 1, 0]]))
    Uniform(IntegerDomain(3, start=0), epsilon=1)
    """
    exact = context.exact_matrix()
    require_distinct_symbols(exact)
    return _recognise_matrix(exact, context.domain)


def require_distinct_symbols(exact: ExactMatrix) -> None:
    """Raise ``NothingToLearn`` if a matrix has a zero off the diagonal."""
    zeros = np.argwhere((exact.numerators == 0) & _off_diagonal(exact))
    if zeros.size:
        x, x2 = zeros[0]
        raise NothingToLearn(
            f"this context forbids telling symbols {x} and {x2} apart at all. Merge them into one "
            "label, or use a positive ε."
        )


def _recognise_union(context: ContextUnion) -> Context:
    parts = []
    for block, part in enumerate(context.parts):
        try:
            parts.append(recognise(part))
        except (NoClosedForm, NothingToLearn) as error:
            raise type(error)(f"inside block {block}: {error}") from None
    if all(new is old for new, old in zip(parts, context.parts, strict=True)):
        return context
    return union(parts, block_of=context.block_of, domain=context.domain)


# --- matrices -------------------------------------------------------------------------------------


def _recognise_matrix(exact: ExactMatrix, domain: Domain) -> Context:
    """Return the structured form of a matrix with no zeros off the diagonal.

    Raise ``NoClosedForm`` if the matrix has no such form.
    """
    return (
        _as_blocks(exact, domain, exact.infinity)
        or _as_tiers(exact, domain)
        or _as_hidden_blocks(exact, domain)
        or _as_union(exact, domain)
    )


def _as_blocks(
    exact: ExactMatrix, domain: Domain, numerator_across: int
) -> Uniform | Blocks | None:
    """Return blocks with one ε inside each, and ``numerator_across`` between them.

    If there is only one block, or only one symbol in each, return a uniform context. Return
    ``None`` if the matrix does not have this form.
    """
    N = exact.numerators
    same_block: Booleans = np.not_equal(N, numerator_across)
    is_pair = same_block & _off_diagonal(exact)
    first_symbol = same_block.argmax(axis=1)  # identifies the block
    inside_numerators = np.where(is_pair, N, _NO_PAIR).max(axis=1)
    is_partition = (same_block == np.equal.outer(first_symbol, first_symbol)).all()
    has_one_epsilon_per_row = (inside_numerators[:, None] == N)[is_pair].all()
    has_one_epsilon_per_block = (inside_numerators == inside_numerators[first_symbol]).all()
    if not (is_partition and has_one_epsilon_per_row and has_one_epsilon_per_block):
        return None
    epsilon_across = exact.to_epsilon(numerator_across)
    # For a symbol that is alone in its block, the only ε is the one between blocks.
    epsilons = []
    distinct_epsilons = set()
    for numerator in inside_numerators[np.unique(first_symbol)].tolist():
        if numerator == _NO_PAIR:
            epsilons.append(epsilon_across)
        else:
            epsilons.append(exact.to_epsilon(numerator))
            distinct_epsilons.add(exact.to_epsilon(numerator))
    if not distinct_epsilons or same_block.all():
        return Uniform(domain, min(distinct_epsilons, default=epsilon_across))
    epsilon = epsilons if len(distinct_epsilons) > 1 else min(distinct_epsilons)
    return Blocks(first_symbol, epsilon, across=epsilon_across, domain=domain)


def _as_tiers(exact: ExactMatrix, domain: Domain) -> Context | None:
    """Return tiers, or a high-low context if only one ε is finite.

    Return ``None`` if a row has several ε, or if the matrix is uniform.
    """
    row_numerators = exact.numerators_off_diagonal().min(axis=1)
    if not (row_numerators[:, None] == exact.numerators)[_off_diagonal(exact)].all():
        return None
    tier_of, numerators = _renumber_by_first(row_numerators)
    epsilons = [exact.to_epsilon(n) for n in numerators.tolist()]
    simplified = Tiers(tier_of, epsilons, domain=domain).simplify()
    return None if simplified.uniform_epsilon is not None else simplified


def _as_hidden_blocks(exact: ExactMatrix, domain: Domain) -> Context | None:
    """Return blocks with a finite ε between them, or ``None``.

    In such a matrix, the first row has at most two distinct off-diagonal entries: one for its own
    block and one for all others. Try each as the entry between blocks; at most one gives blocks.
    """
    candidates = np.unique(exact.numerators[0, 1:]).tolist()
    if len(candidates) > 2:
        return None
    for numerator_across in candidates:
        if numerator_across != exact.infinity:
            blocks = _as_blocks(exact, domain, numerator_across)
            if blocks is not None and blocks.uniform_epsilon is None:
                return blocks
    return None


def _as_union(exact: ExactMatrix, domain: Domain) -> Context:
    """Return a union of parts with no promise between them, or raise ``NoClosedForm``."""
    blocks = symbols_by_component(exact)
    if len(blocks) == 1:
        raise NoClosedForm(
            "no closed-form mechanism fits this privacy matrix: it is not uniform, high-low, "
            "tiered, block-structured or a union of those. Call sf.design(context), or run "
            "`sfumato design`, to compute a mechanism."
        )
    block_of = np.empty(exact.size, dtype=np.int64)
    parts = []
    for j, symbols in enumerate(blocks):
        block_of[symbols] = j
        parts.append(_recognise_matrix(exact.submatrix(symbols), IntegerDomain(symbols.size)))
    return union(parts, block_of=block_of, domain=domain)


def symbols_by_component(exact: ExactMatrix) -> list[Symbols]:
    """Return the sets of symbols connected by promises, in the order of their first symbols.

    Symbols without a promise in either direction share one set, and can be sent unchanged.
    """
    from scipy.sparse.csgraph import connected_components

    is_promised = exact.numerators != exact.infinity
    _, component_of = connected_components(is_promised, directed=True, connection="weak")
    is_alone = np.bincount(component_of)[component_of] == 1
    set_of, _ = _renumber_by_first(np.where(is_alone, -1, component_of).astype(np.int64))
    return symbols_by_group(set_of)


def _off_diagonal(exact: ExactMatrix) -> Booleans:
    return ~np.eye(exact.size, dtype=np.bool_)


def _renumber_by_first(values: Symbols) -> tuple[Symbols, Symbols]:
    """Number values by first occurrence; return each entry's number, and the values in order."""
    distinct_values, first_indices, inverse = np.unique(
        values, return_index=True, return_inverse=True
    )
    order = np.argsort(first_indices)
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return rank[inverse.reshape(-1)], distinct_values[order]
