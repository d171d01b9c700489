"""Components: the parts of a context without promises between them, for any kind of context."""

from math import inf

import numpy as np
import pytest

import sfumato as sf
from sfumato.contexts import ContextUnion
from sfumato.designer.component import split_into_components
from support.matrices import asymmetric, chain, without

APART = np.not_equal.outer([0, 1, 0, 2, 1, 0], [0, 1, 0, 2, 1, 0])
CONTEXTS = {
    "in one piece": sf.PrivacyMatrix(asymmetric(4, 1)),
    "one-way": sf.PrivacyMatrix(chain(5, 2)),
    "three pieces": sf.PrivacyMatrix(without(asymmetric(6, 3), APART)),
    "all alone": sf.PrivacyMatrix(without(asymmetric(4, 4), True)),
    "one": sf.PrivacyMatrix([[0]]),
    "blocks": sf.Blocks([0, 1, 0, 2, 1, 0], [1, 2, 3]),
    "blocks that are hidden": sf.Blocks([0, 1, 0, 1], 1, across=3),
    "one block": sf.Blocks([0, 0, 0], 1),
    "union": ContextUnion([sf.Uniform(3, 1), sf.PrivacyMatrix(asymmetric(2, 5))], [0, 1, 0, 0, 1]),
    "union inside a union": ContextUnion(
        [sf.HighLow(3, [0], 1), sf.PrivacyMatrix(without(asymmetric(6, 6), APART))],
        [0, 1, 1, 1, 0, 1, 1, 1, 0],
    ),
    "uniform": sf.Uniform(5, 1),
    "in clear": sf.Uniform(5, inf),
    "high-low": sf.HighLow(5, [1, 2], 1),
    "tiers": sf.Tiers([0, 1, 1, 2], [1, 2, inf]),
    "metric": sf.Metric([[0, 1, 2], [1, 0, 1], [2, 1, 0]]),
    "sum": sf.PrivacyMatrix(asymmetric(4, 8)) + sf.Uniform(4, 1),
}


def _first_connected(finite):
    """Return the first symbol that each is joined to by promises of either direction."""
    first = np.arange(len(finite))
    while True:
        nearest = np.array([first[finite[x] | finite[:, x]].min() for x in range(len(finite))])
        if (nearest == first).all():
            return first
        first = nearest


@pytest.mark.parametrize("context", CONTEXTS.values(), ids=CONTEXTS)
def test_components_are_the_context_with_no_promise_between_them(context):
    E = context.matrix()
    pieces = split_into_components(context)
    piece_of = np.full(context.size, -1)
    for j, piece in enumerate(pieces):
        assert (piece_of[piece.symbols] == -1).all()
        piece_of[piece.symbols] = j
        assert (np.diff(piece.symbols) > 0).all()
        np.testing.assert_array_equal(
            piece.context.matrix(), E[np.ix_(piece.symbols, piece.symbols)]
        )
    assert (piece_of >= 0).all()
    assert np.isinf(E[np.not_equal.outer(piece_of, piece_of)]).all()
    assert [piece.symbols[0] for piece in pieces] == sorted(piece.symbols[0] for piece in pieces)


@pytest.mark.parametrize(
    "name", ["in one piece", "one-way", "three pieces", "all alone", "one", "blocks", "union"]
)
def test_components_are_minimal_except_for_unrandomized_symbols(name):
    context = CONTEXTS[name]
    first = _first_connected(np.isfinite(context.matrix()))
    for piece in split_into_components(context):
        together = set(first[piece.symbols].tolist())
        assert len(together) == 1 or len(together) == piece.symbols.size


def test_split_keeps_exact_promises():
    from fractions import Fraction

    context = sf.PrivacyMatrix([[0, "inf", "0.1"], ["inf", 0, "inf"], ["0.3", "inf", 0]])
    first, alone = split_into_components(context)
    assert first.context.exact_epsilon(0, 1) == Fraction(1, 10)
    assert first.context.exact_epsilon(1, 0) == Fraction(3, 10)
    assert alone.symbols.tolist() == [1]
    assert alone.context == sf.Uniform(1, inf)


def test_isolated_symbols_share_a_component():
    pieces = split_into_components(
        sf.PrivacyMatrix(without(asymmetric(5, 1), ~np.isin(np.arange(25).reshape(5, 5), [1, 5])))
    )
    assert [piece.symbols.tolist() for piece in pieces] == [[0, 1], [2, 3, 4]]
    assert pieces[1].context.exact_minimum == inf
