"""Recognition: a written-out matrix that *is* uniform, high-low or block-structured."""

import numpy as np

from sfumato.contexts import Blocks, Context, HighLow, Uniform
from sfumato.contexts.exact import ExactMatrix
from sfumato.errors import NoClosedForm, NothingToLearn

__all__ = ["recognise"]


def recognise(context: Context) -> Uniform | HighLow | Blocks:
    """The structured context that promises the same as ``context``, over the same domain.

    The matrix is closed first, so a matrix is recognised by what it promises, not by how it is written.

    >>> from sfumato.contexts import PrivacyMatrix
    >>> recognise(PrivacyMatrix([[0, 1, "inf"], [1, 0, "inf"], ["inf", "inf", 0]]))
    Blocks(2 blocks of IntegerDomain(3, start=0), epsilon=1)
    """
    if isinstance(context, Uniform | HighLow | Blocks):
        return context
    exact = context.exact_matrix().closed()
    _refuse_twins(exact)
    found = _blocks(exact, context) or _high_low(exact, context)
    if found is None:
        raise NoClosedForm(
            "no mechanism on the shelf fits this privacy matrix: it is neither uniform, nor high-low, nor made of "
            "blocks. Uniform(domain, context.smallest_epsilon) keeps it, at a price in accuracy."
        )
    return found


def _refuse_twins(exact: ExactMatrix) -> None:
    twins = np.argwhere((exact.numerators == 0) & ~np.eye(exact.size, dtype=np.bool_))
    if twins.size:
        x, x2 = twins[0]
        raise NothingToLearn(
            f"this context forbids telling symbols {x} and {x2} apart at all. Give them one label, or an ε above 0."
        )


def _blocks(exact: ExactMatrix, context: Context) -> Uniform | Blocks | None:
    finite = exact.numerators != exact.infinite
    block_of = finite.argmax(axis=1)  # the first symbol at a finite distance names the block
    together = block_of[:, None] == block_of[None, :]
    inside = exact.numerators[together & ~np.eye(exact.size, dtype=np.bool_)]
    if not (finite == together).all() or np.unique(inside).size > 1:
        return None
    if inside.size == 0:
        return Uniform(context.domain, "inf")
    x, x2 = np.argwhere(together & (exact.numerators > 0))[0].tolist()
    epsilon = exact.entry(x, x2)
    if together.all():
        return Uniform(context.domain, epsilon)
    return Blocks(block_of, epsilon, domain=context.domain)


def _high_low(exact: ExactMatrix, context: Context) -> HighLow | None:
    off = ~np.eye(exact.size, dtype=np.bool_)
    finite = (exact.numerators != exact.infinite) & off
    sensitive = finite.any(axis=1)
    if not (finite == (sensitive[:, None] & off)).all() or np.unique(exact.numerators[finite]).size != 1:
        return None
    x, x2 = np.argwhere(finite)[0].tolist()
    labels = [context.domain.labels[symbol] for symbol in np.flatnonzero(sensitive).tolist()]
    return HighLow(context.domain, labels, exact.entry(x, x2))
