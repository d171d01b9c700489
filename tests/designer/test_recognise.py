"""Structured matrices get a closed form that keeps the original promises."""

import math
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.contexts import (
    Blocks,
    ContextUnion,
    HighLow,
    Metric,
    PrivacyMatrix,
    Tiers,
    Uniform,
    union,
)
from sfumato.designer import mechanism_for
from sfumato.designer.recognise import recognise
from sfumato.errors import InvalidContext, NoClosedForm, NothingToLearn, PrivacyViolation

INF = math.inf
LABELS = ["park", "café", "clinic"]

RECOGNISED = {
    "uniform": (
        PrivacyMatrix([[0, 0.7, 0.7], [0.7, 0, 0.7], [0.7, 0.7, 0]], domain=LABELS),
        Uniform(LABELS, 0.7),
    ),
    "equal distances": (Metric([[0, 3, 3], [3, 0, 3], [3, 3, 0]], 0.1), Uniform(3, 0.3)),
    "all infinite": (PrivacyMatrix([[0, INF, INF], [INF, 0, INF], [INF, INF, 0]]), Uniform(3, INF)),
    "infinite distances": (
        Metric([[0, INF, INF], [INF, 0, INF], [INF, INF, 0]], 2),
        Uniform(3, INF),
    ),
    "one symbol": (PrivacyMatrix([[0]]), Uniform(1, INF)),
    "blocks": (
        PrivacyMatrix([[0, INF, 2, INF], [INF, 0, INF, INF], [2, INF, 0, INF], [INF, INF, INF, 0]]),
        Blocks([0, 1, 0, 2], 2),
    ),
    "distances of blocks": (
        Metric([[0, 1, INF], [1, 0, INF], [INF, INF, 0]], "1.5"),
        Blocks([0, 0, 1], 1.5),
    ),
    "high-low": (
        PrivacyMatrix([[0, INF, INF], [1, 0, 1], [INF, INF, 0]], domain=LABELS),
        HighLow(LABELS, ["café"], 1),
    ),
    "high-low, two sensitive": (
        PrivacyMatrix([[0, 1, 1, 1], [INF, 0, INF, INF], [1, 1, 0, 1], [INF, INF, INF, 0]]),
        HighLow(4, [0, 2], 1),
    ),
    "a sum of uniforms": (Uniform(3, 0.1) + Uniform(3, 0.2), Uniform(3, 0.3)),
    "a sum of uniform and blocks": (Uniform(3, 0.5) + Blocks([0, 0, 1], 1), Blocks([0, 0, 1], 1.5)),
    "a sum of uniform and high-low": (
        Uniform(3, Fraction(1, 3)) + HighLow(3, [1], 1),
        HighLow(3, [1], Fraction(4, 3)),
    ),
    "blocks of two epsilons": (
        PrivacyMatrix(
            [[0, INF, 1, INF], [INF, 0, INF, 2], [1, INF, 0, INF], [INF, 2, INF, 0]],
            domain=list("abcd"),
        ),
        Blocks([0, 1, 0, 1], [1, 2], domain=list("abcd")),
    ),
    "blocks of two epsilons and a single symbol": (
        PrivacyMatrix(
            [
                [0, 1, INF, INF, INF],
                [1, 0, INF, INF, INF],
                [INF, INF, 0, INF, INF],
                [INF, INF, INF, 0, 2],
                [INF, INF, INF, 2, 0],
            ]
        ),
        Blocks([0, 0, 1, 2, 2], [1, INF, 2]),
    ),
    "a sum of blocks": (Blocks([0, 0, 1, 1], [1, 2]) + Uniform(4, 1), Blocks([0, 0, 1, 1], [2, 3])),
}
NEWLY_RECOGNISED = {
    "two levels": (
        PrivacyMatrix([[0, 1, 2], [1, 0, 2], [2, 2, 0]]),
        Blocks([0, 0, 1], 1, across=2),
    ),
    "two levels, the single symbol first": (
        PrivacyMatrix([[0, 2, 2], [2, 0, 1], [2, 1, 0]]),
        Blocks([0, 1, 1], 1, across=2),
    ),
    "two levels, three numbers": (
        PrivacyMatrix(
            [[0, 1, 2, 2, 2], [1, 0, 2, 2, 2], [2, 2, 0, 3, 2], [2, 2, 3, 0, 2], [2, 2, 2, 2, 0]]
        ),
        Blocks([0, 0, 1, 1, 2], [1, 3, 2], across=2),
    ),
    "a detour": (PrivacyMatrix([[0, 5, 1], [5, 0, 1], [1, 1, 0]]), Blocks([0, 0, 1], 2, across=1)),
    "a star of detours": (
        Metric([[0, 1, 1], [1, 0, 9], [1, 9, 0]]),
        Blocks([0, 1, 1], 2, across=1),
    ),
    "tiers": (PrivacyMatrix([[0, 1, 1], [2, 0, 2], [INF, INF, 0]]), Tiers([0, 1, 2], [1, 2, INF])),
    "tiers, none free": (
        PrivacyMatrix([[0, 3, 3], [1, 0, 1], [3, 3, 0]], domain=LABELS),
        Tiers(["a", "b", "a"], {"a": 3, "b": 1}, domain=LABELS),
    ),
    "a sum of high-low and tiers": (
        Uniform(3, 1) + Tiers([0, 1, 2], [1, 2, INF]),
        Tiers([0, 1, 2], [2, 3, INF]),
    ),
    "sensitive against some": (
        PrivacyMatrix([[0, 1, INF], [INF, 0, INF], [INF, INF, 0]]),
        union([HighLow(2, [0], 1), Uniform(1, INF)]),
    ),
    "high-low inside blocks": (
        HighLow(5, [0, 1], 1) + Blocks([0, 1, 0, 1, 2], 1),
        union([HighLow(2, [0], 2), HighLow(2, [0], 2), Uniform(1, INF)], block_of=[0, 1, 0, 1, 2]),
    ),
    "single symbols share a part": (
        PrivacyMatrix([[0, INF, INF, INF], [INF, 0, INF, 1], [INF, INF, 0, INF], [INF, 2, INF, 0]]),
        union([Uniform(2, INF), Tiers([0, 1], [1, 2])], block_of=[0, 1, 0, 1]),
    ),
    "a union of two levels and tiers": (
        PrivacyMatrix(
            [
                [0, INF, 1, 2, INF],
                [INF, 0, INF, INF, 1],
                [1, INF, 0, 2, INF],
                [2, INF, 2, 0, INF],
                [INF, 3, INF, INF, 0],
            ]
        ),
        union([Blocks([0, 0, 1], 1, across=2), Tiers([0, 1], [1, 3])], block_of=[0, 1, 0, 0, 1]),
    ),
}
RECOGNISED |= {
    "two disjoint high-lows": (HighLow(3, [0], 1) + HighLow(3, [1], 1), Uniform(3, INF)),
}
OTHERS = {
    "two levels across": [[0, 1, 2, 2], [1, 0, 2, 3], [2, 2, 0, 1], [2, 3, 1, 0]],
    "blocks that owe unequally": [[0, 1, 3], [1, 0, 3], [2, 2, 0]],
    "one part of a union": [
        [0, 1, INF, INF, INF],
        [1, 0, INF, INF, INF],
        [INF, INF, 0, 1, 2],
        [INF, INF, 3, 0, 4],
        [INF, INF, 1, 1, 0],
    ],
    "a chain": [[0, 1, INF, INF], [1, 0, 1, INF], [INF, 1, 0, 1], [INF, INF, 1, 0]],
    "a ring, one way": [[0, 1, INF], [INF, 0, 1], [1, INF, 0]],
    "blocks with a way out": [[0, 1, INF], [1, 0, 3], [INF, INF, 0]],
    "asymmetric": [[0, 1, 1], [1, 0, 1], [1, 1.25, 0]],
    "nearly uniform": [[0, 1, 1], [1, 0, 1], [1, "1.000000000000001", 0]],
}
ZEROS = {
    "everywhere": np.zeros((3, 3)),
    "one pair": [[0, 0, 1], [0, 0, 1], [1, 1, 0]],
    "one way": [[0, 0, 1], [1, 0, 1], [1, 1, 0]],
    "one way, infinite back": [[0, 0, INF], [INF, 0, INF], [INF, INF, 0]],
    "two symbols": [[0, 0], [1, 0]],
    "two symbols, infinite back": [[0, INF], [0, 0]],
}
each_recognised = pytest.mark.parametrize(
    ("context", "structured"), RECOGNISED.values(), ids=RECOGNISED.keys()
)


each_form = pytest.mark.parametrize(
    ("context", "structured"),
    [*RECOGNISED.values(), *NEWLY_RECOGNISED.values()],
    ids=[*RECOGNISED, *NEWLY_RECOGNISED],
)


@each_form
def test_recognise_keeps_epsilon_and_domain(context, structured):
    assert recognise(context) == structured


@each_form
def test_recognise_promises_exactly_the_closure(context, structured):
    closed = context.closure()
    for x in range(context.size):
        for x2 in range(context.size):
            assert structured.exact_epsilon(x, x2) == closed.exact_epsilon(x, x2)


@each_form
@pytest.mark.parametrize("code", ["best", "hadamard", "randomized"])
def test_recognised_mechanism_keeps_the_original_matrix(context, structured, code):
    mechanism = mechanism_for(context, code=code)
    assert mechanism.context.domain == context.domain
    sf.certify(mechanism, context)


@pytest.mark.parametrize(
    "name", ["uniform", "equal distances", "blocks", "high-low", "a sum of uniforms"]
)
def test_recognised_mechanism_breaks_a_stricter_matrix(name):
    context = RECOGNISED[name][0]
    with pytest.raises(PrivacyViolation):
        sf.certify(
            mechanism_for(context), PrivacyMatrix(context.matrix() * 0.99, domain=context.domain)
        )


@pytest.mark.parametrize(
    "context",
    [
        Uniform(3, 1),
        HighLow(3, [0], 1),
        HighLow(3, [0, 1, 2], 1),
        Blocks([0, 0, 1], 1),
        Blocks([0, 0, 0], 1),
        Blocks([0, 0, 1], [1, 2]),
        Blocks([0, 0, 1], 1, across=2),
        Blocks([0, 0, 1], [3, 1], across=2),
        Tiers([0, 1, 2], [1, 2, INF]),
        Tiers([0, 1], [1, 2]),
        union([HighLow(3, [0], 1), Uniform(2, 1)]),
        ContextUnion([Uniform(3, 1), Uniform(2, 1)], [0, 0, 0, 1, 1]),
    ],
    ids=repr,
)
def test_simple_contexts_are_recognised_as_themselves(context):
    assert recognise(context) is context


@pytest.mark.parametrize(
    ("context", "simple"),
    [
        (Tiers([0, 1, 0], [1, 1]), Uniform(3, 1)),
        (Tiers([0, 1, 0], [INF, INF]), Uniform(3, INF)),
        (Tiers([0, 1, 2], [INF, 1, 1], domain=LABELS), HighLow(LABELS, ["café", "clinic"], 1)),
        (Tiers([0, 1], [2, INF]), HighLow(2, [0], 2)),
        (Blocks([0, 0, 1], 2, across=2, domain=LABELS), Uniform(LABELS, 2)),
        (Blocks([0, 0, 1], [2, 1], across=2), Uniform(3, 2)),
        (Blocks([0, 1, 2], 7, across=2), Uniform(3, 2)),
        (Blocks([0, 0, 0], 1, across=2), Uniform(3, 1)),
        (Blocks([0], 1, across=2), Uniform(1, INF)),
        (Blocks([0, 0, 1, 1], [9, 1], across=2), Blocks([0, 0, 1, 1], [4, 1], across=2)),
        (Blocks([0, 0, 1], 4, across=2), Blocks([0, 0, 1], 4, across=2)),
        (union([Tiers([0, 1], [1, 1]), Uniform(1, 2)]), Blocks([0, 0, 1], [1, 2])),
        (
            union([PrivacyMatrix([[0, 1], [2, 0]]), HighLow(1, [], 1)]),
            union([Tiers([0, 1], [1, 2]), HighLow(1, [], 1)]),
        ),
    ],
    ids=repr,
)
def test_recognise_simplifies_structured_contexts(context, simple):
    assert recognise(context) == simple


def test_detours_above_the_largest_epsilon():
    blocks = Blocks([0, 0, 1], INF, across=30)
    assert recognise(blocks) == blocks
    with pytest.raises(InvalidContext, match="at most 40"):
        recognise(PrivacyMatrix([[0, INF, 30], [INF, 0, 30], [30, 30, 0]]))


def test_part_without_closed_form_is_named():
    chain = PrivacyMatrix([[0, 1, 2], [1, 0, 1], [2, 1, 0.0]]) + PrivacyMatrix(
        [[0, 1, 1], [2, 0, 1], [1, 1, 0]]
    )
    with pytest.raises(NoClosedForm, match=r"inside block 1: no closed-form mechanism.*sf.design"):
        recognise(union([Uniform(2, 1), chain]))
    with pytest.raises(
        NothingToLearn, match="inside block 0: this context forbids telling symbols 0 and 1 apart"
    ):
        recognise(union([PrivacyMatrix([[0, 0], [1, 0]]), Uniform(2, 1)]))


@pytest.mark.parametrize(
    "context", [Uniform(5, 1), HighLow(5, [0, 4], 2), HighLow(5, [], 1), Blocks([0, 1, 0, 1], 3)]
)
def test_written_out_contexts_are_recognised(context):
    matrix_context = PrivacyMatrix(context.matrix())
    result = recognise(matrix_context)
    assert result.matrix().tolist() == context.matrix().tolist()
    assert mechanism_for(matrix_context).outputs == mechanism_for(result).outputs
    sf.certify(mechanism_for(matrix_context), context)


@pytest.mark.parametrize("seed", range(10))
def test_recognise_does_not_depend_on_symbol_order(seed):
    order = np.random.default_rng(seed).permutation(7)
    for context in (
        Blocks([0, 0, 0, 1, 1, 2, 3], 1),
        Blocks([0, 0, 0, 1, 1, 2, 3], [1, 2, 3, 4]),
        HighLow(7, [0, 1, 2], 1),
    ):
        shuffled = PrivacyMatrix(context.matrix()[np.ix_(order, order)])
        result = recognise(shuffled)
        assert type(result) is type(context)
        assert np.array_equal(result.matrix(), shuffled.matrix())
        sf.certify(mechanism_for(shuffled), shuffled)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(
    "context",
    [
        Blocks([0, 0, 0, 1, 1, 2, 3], [1, 2, 3, 3], across=1.5),
        Blocks([0, 1, 1, 1, 1, 1, 1], 1, across=2),
        Tiers([0, 0, 1, 2, 2, 1, 3], [1, 2, INF, 3]),
        union([HighLow(3, [0], 1), Tiers([0, 1, 1], [1, 2]), Uniform(1, 1)]),
    ],
    ids=repr,
)
def test_recognise_does_not_depend_on_symbol_order_in_any_form(context, seed):
    order = np.random.default_rng(seed).permutation(7)
    shuffled = PrivacyMatrix(context.matrix()[np.ix_(order, order)])
    result = recognise(shuffled)
    assert type(result) is type(context)
    assert result.matrix().tolist() == shuffled.matrix().tolist()


# --- contexts without a closed form ---------------------------------------------------------------


@pytest.mark.parametrize("matrix", OTHERS.values(), ids=OTHERS.keys())
def test_unstructured_matrices_raise_and_mention_design(matrix):
    context = PrivacyMatrix(matrix)
    for ask in (recognise, mechanism_for):
        with pytest.raises(NoClosedForm, match=r"sf\.design"):
            ask(context)


@pytest.mark.parametrize("matrix", OTHERS.values(), ids=OTHERS.keys())
def test_uniform_context_of_least_epsilon_keeps_any_matrix(matrix):
    """The price of doing without a designed mechanism is accuracy, never privacy."""
    context = PrivacyMatrix(matrix)
    sf.certify(mechanism_for(Uniform(context.domain, context.smallest_epsilon)), context)


@pytest.mark.parametrize("seed", range(30))
def test_random_matrices_raise(seed):
    """Entries from 1 to 2 in thousandths are never all equal, and are already closed."""
    E = np.random.default_rng(seed).integers(1000, 2000, (4, 4)) / 1000
    np.fill_diagonal(E, 0)
    with pytest.raises(NoClosedForm):
        recognise(PrivacyMatrix(E))


# --- zeros ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("matrix", ZEROS.values(), ids=ZEROS.keys())
def test_zero_entries_raise(matrix):
    context = PrivacyMatrix(matrix)
    with pytest.raises(NothingToLearn):
        recognise(context)
    with pytest.raises(NothingToLearn):
        mechanism_for(context)


def test_zero_distances_raise():
    for epsilon in (1, INF):
        with pytest.raises(NothingToLearn, match="symbols 0 and 1 apart"):
            recognise(Metric([[0, 0, 1], [0, 0, 1], [1, 1, 0]], epsilon))


# --- two symbols ----------------------------------------------------------------------------------


@pytest.mark.parametrize("a", [0.01, 0.5, 1, 3, 40, INF])
@pytest.mark.parametrize("b", [0.01, 0.5, 1, 3, 40, INF])
def test_two_symbols_always_have_a_mechanism(a, b):
    context = PrivacyMatrix([[0, a], [b, 0]], domain=["no", "yes"])
    mechanism = mechanism_for(context)
    sf.certify(mechanism, context)
    assert mechanism.outputs == 2
