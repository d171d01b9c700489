"""Contexts: matrices by hand, naive versions, a million symbols, closures, sums, invalid input."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from sfumato.contexts import (
    MAX_MATRIX_SIZE,
    Blocks,
    Context,
    ContextSum,
    HighLow,
    Metric,
    PrivacyMatrix,
    Tiers,
    Uniform,
    union,
)
from sfumato.domains import Domain, IntegerDomain
from sfumato.errors import ContextMismatch, InvalidContext, InvalidSymbols

INF = math.inf
MILLION = 1_000_000
COMPOSED = "caf\u00e9"
DECOMPOSED = "cafe\u0301"
PLACES = ["park", COMPOSED, "clinic", "bar"]

BY_HAND = {
    "uniform": (Uniform(3, 0.1), [[0, 0.1, 0.1], [0.1, 0, 0.1], [0.1, 0.1, 0]]),
    "uniform, one symbol": (Uniform(["only"], 1), [[0]]),
    "uniform, infinite": (Uniform(2, INF), [[0, INF], [INF, 0]]),
    "high-low": (
        HighLow(PLACES, ["clinic", DECOMPOSED], 1.5),
        [[0, INF, INF, INF], [1.5, 0, 1.5, 1.5], [1.5, 1.5, 0, 1.5], [INF, INF, INF, 0]],
    ),
    "high-low, nobody sensitive": (HighLow(2, [], 1), [[0, INF], [INF, 0]]),
    "high-low, everybody sensitive": (HighLow(2, [1, 0], 1), [[0, 1], [1, 0]]),
    "high-low, infinite": (HighLow(2, [0], INF), [[0, INF], [INF, 0]]),
    "blocks": (
        Blocks([7, 3, 7, 5], "0.3"),
        [[0, INF, 0.3, INF], [INF, 0, INF, INF], [0.3, INF, 0, INF], [INF, INF, INF, 0]],
    ),
    "one block": (Blocks(["a", "a"], 2), [[0, 2], [2, 0]]),
    "blocks from a mapping": (
        Blocks({"Rue A": "Paris", "Via C": "Rome", "Rue B": "Paris"}, 1),
        [[0, INF, 1], [INF, 0, INF], [1, INF, 0]],
    ),
    "blocks, each its own epsilon": (
        Blocks(["b", "a", "b", "a"], {"a": 0.5, "b": 2}),
        [[0, INF, 2, INF], [INF, 0, INF, 0.5], [2, INF, 0, INF], [INF, 0.5, INF, 0]],
    ),
    "blocks, a promise across": (
        Blocks([0, 0, 1], 1, across=1.5),
        [[0, 1, 1.5], [1, 0, 1.5], [1.5, 1.5, 0]],
    ),
    "blocks, a short way round": (
        Blocks([0, 0, 1, 1], [9, "inf"], across=0.25),
        [[0, 9, 0.25, 0.25], [9, 0, 0.25, 0.25], [0.25, 0.25, 0, INF], [0.25, 0.25, INF, 0]],
    ),
    "tiers": (
        Tiers(["high", "low", "free", "high"], {"free": INF, "low": 3, "high": 0.3}),
        [[0, 0.3, 0.3, 0.3], [3, 0, 3, 3], [INF, INF, 0, INF], [0.3, 0.3, 0.3, 0]],
    ),
    "tiers from a mapping": (Tiers({"a": 1, "b": 2}, [2, 1]), [[0, 2], [1, 0]]),
    "one tier, one symbol": (Tiers(["a"], [1]), [[0]]),
    "union": (
        union(
            [HighLow(2, [1], 2), PrivacyMatrix([[0, 3, 1], [5, 0, 1], [1, INF, 0]])],
            block_of=[0, 1, 1, 0, 1],
        ),
        [
            [0, INF, INF, INF, INF],
            [INF, 0, 3, INF, 1],
            [INF, 5, 0, INF, 1],
            [2, INF, INF, 0, INF],
            [INF, 1, INF, INF, 0],
        ],
    ),
    "union of a union": (
        union([union([Tiers([0, 1], [1, 2]), Uniform(1, 1)]), Uniform(1, 1) + Uniform(1, 1)]),
        [[0, 1, INF, INF], [2, 0, INF, INF], [INF, INF, 0, INF], [INF, INF, INF, 0]],
    ),
    "metric": (
        Metric([[0, 1, 4], [1, 0, 2], [4, 2, 0]], 0.5),
        [[0, 0.5, 2], [0.5, 0, 1], [2, 1, 0]],
    ),
    "metric with zero and infinity": (
        Metric([[0, 0, INF], [0, 0, 3], [INF, 3, 0]], 2),
        [[0, 0, INF], [0, 0, 6], [INF, 6, 0]],
    ),
    "metric, infinite epsilon": (
        Metric([[0, 0, 1], [0, 0, 3], [1, 3, 0]], INF),
        [[0, 0, INF], [0, 0, INF], [INF, INF, 0]],
    ),
    "matrix": (
        PrivacyMatrix([[0, 0.5, "inf"], [3, 0, 0], [1, "40", 0]]),
        [[0, 0.5, INF], [3, 0, 0], [1, 40, 0]],
    ),
    "sum": (
        Uniform(3, 0.25) + HighLow(3, [0], 1) + Metric([[0, 1, 2], [1, 0, 1], [2, 1, 0]]),
        [[0, 2.25, 3.25], [INF, 0, INF], [INF, INF, 0]],
    ),
}
CONTEXTS = {name: context for name, (context, _) in BY_HAND.items()}
each_context = pytest.mark.parametrize("context", CONTEXTS.values(), ids=CONTEXTS.keys())


def _pairs(context: Context) -> list[tuple[int, int]]:
    return [(x, x2) for x in range(context.size) for x2 in range(context.size)]


def _naive_closure(context: Context) -> dict[tuple[int, int], Fraction | float]:
    """Return the closure in fractions: relax every pair by every detour until nothing changes."""
    E = {pair: context.exact_epsilon(*pair) for pair in _pairs(context)}
    while True:
        before = dict(E)
        for x, x2 in E:
            E[x, x2] = min(E[x, z] + E[z, x2] for z in range(context.size))
            if E[x2, x] == 0:
                E[x, x2] = Fraction(0)
        if before == E:
            return E


# --- entries --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("context", "matrix"), BY_HAND.values(), ids=BY_HAND.keys())
def test_matrices_by_hand(context, matrix):
    assert context.matrix().tolist() == matrix
    assert context.size == len(matrix)


@each_context
def test_epsilon_is_the_nearest_float_to_the_exact_entry_for_every_pair(context):
    for x, x2 in _pairs(context):
        assert float(context.epsilon(x, x2)) == float(context.exact_epsilon(x, x2)), (x, x2)


@each_context
def test_epsilon_is_vectorised_and_broadcasts(context):
    symbols = np.arange(context.size)
    expected = [[float(context.epsilon(x, x2)) for x2 in symbols] for x in symbols]
    assert context.epsilon(symbols[:, None], symbols[None, :]).tolist() == expected
    assert context.epsilon(symbols, 0).tolist() == [row[0] for row in expected]
    assert context.epsilon([0], symbols).tolist() == expected[0]


@each_context
def test_diagonal_is_zero(context):
    symbols = np.arange(context.size)
    assert context.epsilon(symbols, symbols).tolist() == [0.0] * context.size
    assert all(context.exact_epsilon(x, x) == 0 for x in range(context.size))


@each_context
def test_exact_entries_are_fractions_or_infinity(context):
    for x, x2 in _pairs(context):
        exact = context.exact_epsilon(x, x2)
        assert isinstance(exact, Fraction) or exact == INF


@each_context
def test_exact_matrix_has_the_exact_entries(context):
    matrix = context.exact_matrix()
    assert all(matrix.entry(x, x2) == context.exact_epsilon(x, x2) for x, x2 in _pairs(context))


@each_context
def test_smallest_epsilon_is_the_least_entry_off_the_diagonal(context):
    least = min((context.exact_epsilon(x, x2) for x, x2 in _pairs(context) if x != x2), default=INF)
    assert context.smallest_epsilon == float(least)


@pytest.mark.parametrize("numerator", range(1, 30))
def test_smallest_epsilon_is_never_rounded_up(numerator):
    exact = Fraction(numerator, 7)
    for context in (
        Uniform(3, exact),
        HighLow(3, [1], exact),
        Blocks([0, 0, 1], exact),
        Metric([[0, exact], [exact, 0]]),
        PrivacyMatrix([[0, exact], ["inf", 0]]),
        Blocks([0, 0, 1], 40, across=exact),
        Tiers([0, 1], [exact, 40]),
        union([HighLow(2, [0], exact), Uniform(2, 40)]),
        Uniform(3, exact / 3) + HighLow(3, [1], exact * 2 / 3),
    ):
        result = context.smallest_epsilon
        assert Fraction(repr(result)) <= exact
        assert Fraction(repr(math.nextafter(result, INF))) > exact


def test_asymmetric_entries_stay_asymmetric():
    context = PrivacyMatrix([[0, 1, INF], [2, 0, 0.5], [0.25, INF, 0]])
    assert context.epsilon([0, 1, 0, 2, 1, 2], [1, 0, 2, 0, 2, 1]).tolist() == [
        1,
        2,
        INF,
        0.25,
        0.5,
        INF,
    ]
    assert HighLow(["a", "b"], ["a"], 1).epsilon([0, 1], [1, 0]).tolist() == [1, INF]


@pytest.mark.parametrize("value", [0.1, "0.1", Decimal("0.1"), Fraction(1, 10), np.float64(0.1)])
def test_epsilon_is_the_decimal_that_was_typed(value):
    for context in (
        Uniform(2, value),
        HighLow(2, [0], value),
        Blocks([0, 0], value),
        Blocks([0, 0], [value]),
        Blocks([0, 1], 1, across=value),
        Tiers([0, 1], [value, 1]),
        Metric([[0, 1], [1, 0]], value),
    ):
        assert context.exact_epsilon(0, 1) == Fraction(1, 10)


def test_metric_of_tenths_is_exact():
    context = Metric([[0, 3], [3, 0]], 0.1)
    assert context.exact_epsilon(0, 1) == Fraction(3, 10)
    assert float(context.epsilon(0, 1)) == 0.3


def test_sum_of_tenths_is_exact():
    context = Uniform(2, 0.1) + Uniform(2, 0.2)
    assert context.exact_epsilon(0, 1) == Fraction(3, 10)
    assert float(context.epsilon(0, 1)) == pytest.approx(0.3, rel=1e-15)
    assert context.smallest_epsilon == 0.3


@pytest.mark.parametrize("symbols", [[-1], [3], [0.5], ["3"], [True], [None]], ids=repr)
def test_epsilon_accepts_symbols_and_labels_only(symbols):
    for context in (
        Uniform(3, 1),
        HighLow(3, [0], 1),
        Blocks([0, 0, 1], 1),
        Metric(np.zeros((3, 3))),
    ):
        with pytest.raises(InvalidSymbols):
            context.epsilon(symbols, 0)
        with pytest.raises(InvalidSymbols):
            context.epsilon(0, symbols)


# --- structure ------------------------------------------------------------------------------------


def test_high_low_knows_its_sensitive_symbols_in_domain_order():
    context = HighLow(PLACES, ["bar", DECOMPOSED], 1)
    assert context.sensitive.tolist() == [1, 3]
    assert context.is_sensitive.tolist() == [False, True, False, True]
    assert context.exact_inside == 1


def test_blocks_are_numbered_by_first_label():
    context = Blocks([9, 4, 9, 9, 4, 2], 1)
    assert context.block_of.tolist() == [0, 1, 0, 0, 1, 2]
    assert context.block_names == (9, 4, 2)
    assert context.sizes.tolist() == [3, 2, 1]
    assert context.rank.tolist() == [0, 0, 1, 2, 1, 0]


def test_blocks_follow_the_domain_order():
    mapping = {"c": "Rome", "a": "Paris", "b": "Paris"}
    context = Blocks(mapping, 1, domain=["a", "b", "c"])
    assert context.block_names == ("Paris", "Rome")
    assert context.block_of.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    "block_of",
    [
        [0, 0, 1],
        (0, 0, 1),
        iter([0, 0, 1]),
        np.array([0, 0, 1]),
        np.array([5, 5, 2], dtype=np.uint8),
        list("aab"),
    ],
    ids=["list", "tuple", "iterator", "array", "narrow array", "names"],
)
def test_blocks_may_come_from_any_sequence(block_of):
    assert Blocks(block_of, 1) == Blocks([0, 0, 1], 1)


def test_mapping_keys_are_normalised():
    mapping = {DECOMPOSED: 0, "park": 0, "bar": 1}
    assert Blocks(mapping, 1).domain == Domain([COMPOSED, "park", "bar"])
    assert Blocks(mapping, 1, domain=["bar", "park", COMPOSED]).block_of.tolist() == [0, 1, 1]


def test_block_names_equal_in_nfc_are_one_block():
    """Otherwise reports would distinguish two symbols that should hide each other."""
    assert Blocks([COMPOSED, DECOMPOSED], 1).matrix().tolist() == [[0, 1], [1, 0]]


def test_context_arrays_are_immutable():
    blocks = Blocks([0, 0, 1], 1)
    high_low = HighLow(3, [0], 1)
    combined = union([high_low, Uniform(1, 1)])
    arrays = [
        blocks.block_of,
        blocks.sizes,
        blocks.rank,
        high_low.is_sensitive,
        Tiers([0, 1], [1, 2]).tier_of,
    ]
    for array in (*arrays, combined.block_of, combined.sizes, combined.rank):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@each_context
def test_matrix_method_returns_a_copy(context):
    context.matrix()[:] = 17
    assert not (context.matrix() == 17).any()


def test_matrix_arrays_are_copied():
    E = np.array([[0.0, 1.0], [1.0, 0.0]])
    contexts = [PrivacyMatrix(E), Metric(E)]
    E[0, 1] = 30
    assert all(float(context.epsilon(0, 1)) == 1 for context in contexts)


def test_context_has_its_domain():
    for context in (
        Uniform(PLACES, 1),
        HighLow(PLACES, [], 1),
        Blocks([0, 0, 1, 1], 1, domain=PLACES),
        Blocks(dict.fromkeys(PLACES, 0), 1),
        Tiers(dict.fromkeys(PLACES, "t"), [1]),
        union([HighLow(PLACES[:2], [], 1), Uniform(PLACES[2:], 1)]),
        union([HighLow(2, [], 1), Uniform(2, 1)], domain=PLACES),
        Metric(np.zeros((4, 4)), domain=PLACES),
        PrivacyMatrix(np.zeros((4, 4)), domain=PLACES),
        Uniform(PLACES, 1) + Uniform(PLACES, 1),
    ):
        assert context.domain == Domain(PLACES)
    assert PrivacyMatrix(np.zeros((4, 4))).domain == Blocks([0] * 4, 1).domain == IntegerDomain(4)


# --- a million symbols ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def large():
    return {
        "uniform": Uniform(MILLION, 1.5),
        "high-low": HighLow(MILLION, range(0, MILLION, 10), 1.5),
        "blocks": Blocks(np.arange(MILLION) // 1000, 1.5),
    }


@pytest.fixture(scope="module")
def pairs():
    """A hundred thousand pairs, with the first, the last and the diagonal among them."""
    rng = np.random.default_rng(0)
    x, x2 = rng.integers(0, MILLION, (2, 100_000))
    x[:4] = [0, 0, MILLION - 1, 12_340]
    x2[:4] = [0, MILLION - 1, 0, 12_341]
    x2[4:1000] = x[4:1000] // 1000 * 1000
    return x, x2


def test_epsilon_of_a_million_symbols_in_one_call(large, pairs):
    x, x2 = pairs
    expected = {
        "uniform": np.full(x.size, 1.5),
        "high-low": np.where(x % 10 == 0, 1.5, INF),
        "blocks": np.where(x // 1000 == x2 // 1000, 1.5, INF),
    }
    for name, context in large.items():
        assert np.array_equal(context.epsilon(x, x2), np.where(x == x2, 0, expected[name])), name


@pytest.mark.parametrize("name", ["uniform", "high-low", "blocks"])
def test_contexts_of_a_million_symbols_have_no_matrix(large, name):
    context = large[name]
    for write in (context.matrix, context.exact_matrix):
        with pytest.raises(InvalidContext, match=r"epsilon\(x, x2\)"):
            write()
    assert context.closure() is context
    assert context.smallest_epsilon == 1.5
    assert context.exact_epsilon(0, 1) == Fraction(3, 2)


def test_sum_over_a_million_symbols_is_lazy(large, pairs):
    x, x2 = pairs
    total = large["uniform"] + large["high-low"] + large["blocks"] + large["uniform"]
    expected = sum(context.epsilon(x, x2) for context in total.terms)
    assert np.array_equal(total.epsilon(x, x2), expected)
    assert total.exact_epsilon(0, 1) == 6
    assert total.smallest_epsilon == 6.0
    assert total.closure() is total
    with pytest.raises(InvalidContext, match=r"epsilon\(x, x2\)"):
        total.matrix()
    with pytest.raises(InvalidContext, match=r"epsilon\(x, x2\)"):
        total.exact_matrix()


def test_contexts_of_a_million_symbols_compare_and_hash(large):
    copy = Blocks(np.arange(MILLION) // 1000, 1.5)
    assert large["blocks"] == copy
    assert hash(large["blocks"]) == hash(copy)
    assert large["blocks"] != Blocks(np.arange(MILLION) // 500, 1.5)


def test_matrix_size_limit(monkeypatch):
    assert MAX_MATRIX_SIZE == 4096
    with pytest.raises(InvalidContext, match="4096"):
        Uniform(MAX_MATRIX_SIZE + 1, 1).matrix()
    monkeypatch.setattr("sfumato.contexts.context.MAX_MATRIX_SIZE", 64)
    assert Uniform(64, 1).matrix().shape == (64, 64)
    with pytest.raises(InvalidContext, match="64"):
        Uniform(65, 1).matrix()


@pytest.mark.parametrize("make", [PrivacyMatrix, Metric])
def test_matrices_above_4096_symbols_are_rejected(make):
    with pytest.raises(InvalidContext, match="structured context"):
        make(np.zeros((MAX_MATRIX_SIZE + 1, MAX_MATRIX_SIZE + 1), dtype=np.uint8))


# --- closure --------------------------------------------------------------------------------------


@each_context
def test_closure_matches_brute_force(context):
    closed = context.closure()
    naive = _naive_closure(context)
    assert all(closed.exact_epsilon(x, x2) == naive[x, x2] for x, x2 in _pairs(context))


@each_context
def test_closure_is_closed(context):
    once = context.closure()
    assert once.closure() == once
    assert once.domain == context.domain


@each_context
def test_closure_is_no_stricter_than_the_context(context):
    assert (context.closure().matrix() <= context.matrix()).all()


@pytest.mark.parametrize("back", [5, "inf"])
def test_one_way_zero_becomes_mutual(back):
    closed = PrivacyMatrix([[0, 0, 2], [back, 0, 7], ["inf", "inf", 0]]).closure()
    assert closed.matrix().tolist() == [[0, 0, 2], [0, 0, 2], [INF, INF, 0]]


def test_chain_of_promises_reaches_its_end():
    """Neighbours at ε promise 4ε over four steps, though nothing was promised directly."""
    chain = np.full((5, 5), INF)
    for x in range(5):
        chain[x, max(x - 1, 0) : x + 2] = 1
    np.fill_diagonal(chain, 0)
    distance = np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
    assert PrivacyMatrix(chain).closure().matrix().tolist() == distance.tolist()
    assert Metric(chain, 0.5).closure().matrix().tolist() == (distance / 2).tolist()


def test_closure_is_taken_over_the_whole_sum():
    """Shortest paths of the terms do not add up to shortest paths of the sum."""
    a = PrivacyMatrix([[0, 4, 1], [4, 0, 1], [1, 1, 0]])
    b = PrivacyMatrix([[0, 1, 9], [1, 0, 9], [9, 9, 0]])
    closed = (a + b).closure()
    assert closed.matrix().tolist() == [[0, 5, 10], [5, 0, 10], [10, 10, 0]]


# --- sums -----------------------------------------------------------------------------------------


def test_nested_sums_are_flattened_in_order():
    a = Uniform(3, 1)
    b = HighLow(3, [0], 1)
    c = Blocks([0, 0, 1], 1)
    assert ((a + b) + c).terms == (a + (b + c)).terms == (a, b, c)
    assert (a + b) + c == a + (b + c)


def test_sum_is_commutative():
    a = PrivacyMatrix([[0, 1], [2, 0]])
    b = PrivacyMatrix([[0, 0.1], [INF, 0]])
    assert (a + b).matrix().tolist() == (b + a).matrix().tolist() == [[0, 1.1], [INF, 0]]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (Uniform(3, 1), Uniform(4, 1)),
        (Uniform(["a", "b"], 1), Uniform(["b", "a"], 1)),
        (Uniform(2, 1), Uniform(IntegerDomain(2, start=1), 1)),
        (Uniform(Domain(["a", "b"]), 1), Uniform(Domain(["a", "b"], other="b"), 1)),
    ],
    ids=["size", "order", "start", "other"],
)
def test_contexts_over_different_domains_cannot_be_added(a, b):
    with pytest.raises(ContextMismatch, match="different labels"):
        a + b
    with pytest.raises(ContextMismatch, match="different labels"):
        (a + a) + (b + b)
    with pytest.raises(ContextMismatch, match="different labels"):
        ContextSum((a, b))


@pytest.mark.parametrize("other", [0, 1.0, None, "context"], ids=repr)
def test_only_contexts_can_be_added(other):
    with pytest.raises(TypeError):
        Uniform(3, 1) + other


def test_smallest_epsilon_of_a_sum_is_not_the_sum_of_the_smallest():
    a = PrivacyMatrix([[0, 1], [5, 0]])
    b = PrivacyMatrix([[0, 5], [1, 0]])
    assert (a + b).smallest_epsilon == 6.0


def test_smallest_epsilon_of_a_sum_without_promises_is_infinite():
    assert (HighLow(2, [0], 1) + HighLow(2, [1], 1)).smallest_epsilon == INF


def test_smallest_epsilon_of_equal_terms_is_exact():
    third = Uniform(3, Fraction(1, 3))
    assert (third + third + third).smallest_epsilon == 1.0


# --- equality -------------------------------------------------------------------------------------


def test_equal_contexts_have_equal_hashes():
    pairs = [
        (Uniform(PLACES, 0.1), Uniform(tuple(PLACES), "0.10")),
        (HighLow(3, [0, 2], 1), HighLow(IntegerDomain(3), (2, 0), Fraction(1))),
        (Blocks([5, 5, 1], 1), Blocks(["x", "x", "y"], 1)),
        (Blocks([5, 5, 1], 1), Blocks(["x", "x", "y"], ["1.0", 1], across="inf")),
        (Blocks(["b", "a"], {"a": 2, "b": 1}), Blocks([0, 1], (1, 2))),
        (Tiers(["b", "a"], {"a": 2, "b": 1}), Tiers([3, 7], np.array([1.0, 2.0]))),
        (
            union([HighLow(["a", "b"], ["b"], 1)], domain=2),
            union({"x": HighLow(2, [1], 1)}),
        ),
        (Metric([[0, 0.1], [0.1, 0]]), Metric([["0", "0.1"], ["0.10", "0"]], 1)),
        (PrivacyMatrix([[0, 0.5], [INF, 0]]), PrivacyMatrix([[0, Fraction(1, 2)], ["inf", 0]])),
        (Uniform(2, 1) + HighLow(2, [0], 1), Uniform(2, 1) + HighLow(2, [0], 1)),
    ]
    for context, copy in pairs:
        assert context == copy
        assert hash(context) == hash(copy)


def test_different_contexts_are_unequal():
    contexts = [
        Uniform(2, 1),
        Uniform(2, 2),
        Uniform(2, INF),
        Uniform(3, 1),
        Uniform(["a", "b"], 1),
        HighLow(2, [0, 1], 1),
        HighLow(2, [0], 1),
        HighLow(2, [1], 1),
        Blocks([0, 0], 1),
        Blocks([0, 1], 1),
        Blocks([0, 1], [1, 2]),
        Blocks([0, 1], [2, 1]),
        Blocks([0, 1], 1, across=2),
        Blocks([0, 1], [1, 2], across=2),
        Tiers([0, 1], [1, 2]),
        Tiers([0, 1], [2, 1]),
        Tiers([0, 0], [1]),
        union([Tiers([0], [1]), Uniform(1, 1)]),
        union([Uniform(1, 1), Tiers([0], [1])]),
        Metric([[0, 1], [1, 0]]),
        Metric([[0, 1], [1, 0]], 2),
        PrivacyMatrix([[0, 1], [1, 0]]),
        PrivacyMatrix([[0, 1], [2, 0]]),
        PrivacyMatrix([[0, 2], [1, 0]]),
        Uniform(2, 1) + Uniform(2, 1),
        Uniform(2, 1) + Uniform(2, 1) + Uniform(2, 1),
    ]
    for i, a in enumerate(contexts):
        for j, b in enumerate(contexts):
            assert (a == b) == (i == j), (a, b)
    assert len(set(contexts)) == len(contexts)


@each_context
def test_repr_names_the_kind_and_stays_short(context):
    assert repr(context).startswith(
        type(context).__name__ if not isinstance(context, ContextSum) else "Uniform"
    )
    assert len(repr(context)) < 300


# --- invalid input --------------------------------------------------------------------------------


BAD_EPSILONS = [0, 0.0, -1, math.nan, 41, 40.5, "abc", None, True, [1], "", 1e-30, -INF]


@pytest.mark.parametrize(
    "make",
    [
        lambda epsilon: Uniform(3, epsilon),
        lambda epsilon: HighLow(3, [0], epsilon),
        lambda epsilon: Blocks([0, 0, 1], epsilon),
        lambda epsilon: Metric([[0, 1], [1, 0]], epsilon),
        lambda epsilon: Blocks([0, 0, 1], [1, epsilon]),
        lambda epsilon: Blocks(["a", "a", "b"], {"a": 1, "b": epsilon}),
        lambda epsilon: Blocks([0, 0, 1], 1, across=epsilon),
        lambda epsilon: Tiers([0, 0, 1], [epsilon, 1]),
        lambda epsilon: Tiers(["a", "a", "b"], {"a": 1, "b": epsilon}),
    ],
    ids=[
        "uniform",
        "high-low",
        "blocks",
        "metric",
        "of blocks",
        "by block",
        "across",
        "of tiers",
        "by tier",
    ],
)
def test_invalid_epsilons_are_rejected_by_every_context(make):
    for epsilon in BAD_EPSILONS:
        with pytest.raises(
            (InvalidContext, ContextMismatch),
            match=r"(epsilon|across|epsilons)( of (block|tier) \S+)? must",
        ):
            make(epsilon)


@pytest.mark.parametrize("epsilon", [1e-18, 40, INF])
def test_extreme_epsilons_are_accepted(epsilon):
    assert Uniform(3, epsilon).smallest_epsilon == epsilon


@pytest.mark.parametrize(
    ("sensitive", "words"),
    [
        (["clinic", "clinic"], "lists a label twice"),
        ([COMPOSED, DECOMPOSED], "lists a label twice"),
        (["zoo"], "'zoo', which is not a label"),
        ("clinic", "list of labels"),
        (b"clinic", "list of labels"),
        ([""], "empty"),
        ([None], "text or an integer"),
        ([1.0], "text or an integer"),
        ([True], "text or an integer"),
        (None, "sensitive must"),
        (3, "sensitive must"),
    ],
    ids=repr,
)
def test_invalid_sensitive_labels_are_rejected(sensitive, words):
    with pytest.raises(InvalidContext, match=words):
        HighLow(PLACES, sensitive, 1)


@pytest.mark.parametrize("sensitive", [[3], [-1], ["0"], [0.0], [True], [0, 0]], ids=repr)
def test_invalid_sensitive_integers_are_rejected(sensitive):
    with pytest.raises(InvalidContext, match="sensitive"):
        HighLow(3, sensitive, 1)


@pytest.mark.parametrize("domain", [0, -1, [], "abc", None, 2.0, True, ["a", "a"]], ids=repr)
def test_invalid_domains_are_rejected(domain):
    with pytest.raises(InvalidContext):
        Uniform(domain, 1)
    with pytest.raises(InvalidContext):
        HighLow(domain, [], 1)


@pytest.mark.parametrize(
    ("block_of", "domain", "words"),
    [
        ([0, 0, 1], 4, "3 entries; the domain has 4"),
        ([0, 0, 1], ["a", "b"], "3 entries; the domain has 2"),
        ({"a": 0}, ["a", "b"], "contains 1 of them"),
        ({}, ["a", "b"], "contains 0 of them"),
        ({COMPOSED: 0, DECOMPOSED: 1}, [COMPOSED, "b"], "contains 1 of them in 2 entries"),
    ],
)
def test_blocks_must_fit_their_domain(block_of, domain, words):
    with pytest.raises(ContextMismatch, match=words):
        Blocks(block_of, 1, domain=domain)


@pytest.mark.parametrize(
    ("block_of", "domain", "label"),
    [
        ({"a": 0, "b": 1, "c": 1}, ["a", "b"], "'c'"),
        ({"a": 0, "c": 1}, ["a", "b"], "'c'"),
        ({0: 0, 1: 0}, ["0", "1"], "0"),
        ({0: 0, 2: 0}, 2, "2"),
    ],
)
def test_unknown_label_in_a_mapping_is_named(block_of, domain, label):
    with pytest.raises(InvalidContext, match=f"block_of contains {label}"):
        Blocks(block_of, 1, domain=domain)


@pytest.mark.parametrize(
    "block_of",
    [
        [0.0, 1.0],
        np.array([0.5, 1.5]),
        [math.nan, 0],
        [None, 0],
        [True, False],
        np.array([True, False]),
        [[0, 1], [0, 1]],
        {"a": 1.5},
        {"a": None},
        "ab",
        b"ab",
        5,
        None,
        [],
        {},
        {1.5: 0},
        {None: 0},
    ],
    ids=repr,
)
def test_invalid_block_names_are_rejected(block_of):
    with pytest.raises(InvalidContext):
        Blocks(block_of, 1)


BAD_MATRICES = {
    "not square": ([[0, 1, 2], [1, 0, 2]], "square matrix; got shape"),
    "a row": ([0, 1], "square matrix; got shape"),
    "a number": (3.0, "square matrix; got shape"),
    "empty": ([], "square matrix; got shape"),
    "ragged": ([[0, 1], [1]], "rows differ in length"),
    "NaN": ([[0, math.nan], [1, 0]], r"entry \[0, 1\] is nan"),
    "negative": ([[0, 1], [-0.5, 0]], r"entry \[1, 0\] is -0.5"),
    "a diagonal": ([[0, 1], [1, 0.2]], r"entry \[1, 1\] is 0.2. Set it to 0"),
    "words": ([["0", "much"], ["little", "0"]], "decimal number"),
    "text": ("matrix", "square matrix"),
    "None": (None, "square matrix"),
    "None inside": ([[0, None], [1, 0]], "must be a number"),
    "booleans": ([[False, True], [True, False]], "must contain only numbers"),
    "complex": ([[0, 1j], [1, 0]], "must be a number; got complex"),
}


@pytest.mark.parametrize(("entries", "words"), BAD_MATRICES.values(), ids=BAD_MATRICES.keys())
@pytest.mark.parametrize("make", [PrivacyMatrix, Metric], ids=["matrix", "metric"])
def test_invalid_matrices_are_rejected(make, entries, words):
    with pytest.raises(InvalidContext, match=words):
        make(entries)


@pytest.mark.parametrize("entry", [40.5, 41, "40.000001", 1e6, Fraction(81, 2)])
def test_matrix_entry_above_forty_is_named(entry):
    with pytest.raises(InvalidContext, match=r"entry \[1, 0\] is .* Use inf or a smaller"):
        PrivacyMatrix([[0, 40], [entry, 0]])


def test_entry_barely_above_forty_is_rejected():
    with pytest.raises(InvalidContext, match="at most 40"):
        PrivacyMatrix([[0, "40.0000000000000001"], [1, 0]])


@pytest.mark.parametrize("make", [PrivacyMatrix, Metric], ids=["matrix", "metric"])
def test_matrix_must_fit_its_domain(make):
    with pytest.raises(ContextMismatch, match="2 rows; the domain has 3 labels"):
        make([[0, 1], [1, 0]], domain=["a", "b", "c"])


def test_distances_must_be_symmetric():
    with pytest.raises(InvalidContext, match=r"\[0, 2\] and \[2, 0\] differ\. Use PrivacyMatrix"):
        Metric([[0, 1, 2], [1, 0, 1], [3, 1, 0]])
    with pytest.raises(InvalidContext, match="symmetric"):
        Metric([[0, INF], [1, 0]])
