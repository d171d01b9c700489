"""Laws of contexts, for matrices that nobody thought of."""

import math
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.contexts import Blocks, Context, HighLow, Metric, PrivacyMatrix, Uniform
from twins import naive_closure

INF = math.inf
LAWS = settings(max_examples=150, deadline=None, derandomize=True, database=None)

epsilons = st.one_of(
    st.integers(1, 40).map(Fraction),
    st.integers(1, 4000).map(lambda n: Fraction(n, 100)),
    st.builds(Fraction, st.integers(1, 30), st.integers(1, 30)),
    st.sampled_from([Fraction(1, 10**18), Fraction(40), Fraction("0.1"), Fraction(1, 3)]),
)
entries = st.one_of(epsilons, st.just(INF), st.just(Fraction(0)))
small = st.integers(1, 6)


@st.composite
def matrices(draw, sizes=small):
    k = draw(sizes)
    return [[Fraction(0) if x == x2 else draw(entries) for x2 in range(k)] for x in range(k)]


@st.composite
def contexts(draw, k):
    """Any context over k symbols."""
    epsilon = draw(epsilons)
    kind = draw(st.sampled_from(["uniform", "high-low", "blocks", "metric", "matrix"]))
    if kind == "uniform":
        return Uniform(k, epsilon)
    if kind == "high-low":
        return HighLow(k, sorted(draw(st.sets(st.integers(0, k - 1)))), epsilon)
    if kind == "blocks":
        return Blocks(draw(st.lists(st.integers(0, 3), min_size=k, max_size=k)), epsilon)
    E = draw(matrices(sizes=st.just(k)))
    if kind == "matrix":
        return PrivacyMatrix(E)
    return Metric([[E[min(x, x2)][max(x, x2)] for x2 in range(k)] for x in range(k)], epsilon)


def _exact(context: Context) -> list[list[Fraction | float]]:
    return [[context.exact_epsilon(x, x2) for x2 in range(context.size)] for x in range(context.size)]


any_context = small.flatmap(contexts)
two_contexts = st.integers(1, 5).flatmap(lambda k: st.tuples(contexts(k), contexts(k)))


@LAWS
@given(matrices())
def test_a_matrix_of_fractions_is_held_as_it_is(E):
    assert _exact(PrivacyMatrix(E)) == E


@LAWS
@given(matrices())
def test_a_matrix_is_read_the_same_from_its_own_record(E):
    """Entries that are decimals come back from their text; the record names every entry."""
    context = PrivacyMatrix(E)
    record = context.record()["matrix"]
    assert [[INF if text == "inf" else Fraction(text) for text in row] for row in record] == E


@LAWS
@given(any_context)
def test_the_closure_is_what_a_brute_force_search_finds(context):
    assert _exact(context.closure()) == naive_closure(_exact(context))


@LAWS
@given(any_context)
def test_closing_twice_changes_nothing(context):
    once = context.closure()
    assert _exact(once.closure()) == _exact(once)


@LAWS
@given(any_context)
def test_the_smallest_epsilon_never_exceeds_an_entry_and_is_the_largest_such_float(context):
    E = _exact(context)
    least = min((E[x][x2] for x in range(len(E)) for x2 in range(len(E)) if x != x2), default=INF)
    found = context.smallest_epsilon
    if least == INF:
        assert found == INF
    else:
        assert Fraction(repr(found)) <= least < Fraction(repr(math.nextafter(found, INF)))


@LAWS
@given(any_context)
def test_epsilon_answers_with_the_nearest_float_for_every_pair(context):
    symbols = np.arange(context.size)
    found = context.epsilon(symbols[:, None], symbols[None, :]).tolist()
    assert found == [[float(entry) for entry in row] for row in _exact(context)]


@LAWS
@given(any_context)
def test_the_exact_matrix_says_what_the_entries_say(context):
    matrix = context.exact_matrix()
    assert [[matrix.entry(x, x2) for x2 in range(matrix.size)] for x in range(matrix.size)] == _exact(context)


@LAWS
@given(two_contexts)
def test_a_sum_adds_entries_and_its_order_does_not_matter(pair):
    a, b = pair
    total = [[x + y for x, y in zip(*rows, strict=True)] for rows in zip(_exact(a), _exact(b), strict=True)]
    assert _exact(a + b) == _exact(b + a) == total


@LAWS
@given(two_contexts)
def test_the_closure_of_a_sum_is_that_of_its_written_out_matrix(pair):
    total = pair[0] + pair[1]
    assert _exact(total.closure()) == naive_closure(_exact(total))


@LAWS
@given(two_contexts)
def test_equal_contexts_hash_alike_and_promise_alike(pair):
    a, b = pair
    if a == b:
        assert hash(a) == hash(b)
        assert _exact(a) == _exact(b)
    if type(a) is type(b) and type(a) in (PrivacyMatrix, HighLow, Blocks) and _exact(a) != _exact(b):
        assert a != b


@LAWS
@given(st.data())
def test_renaming_symbols_renames_the_closure(data):
    E = data.draw(matrices())
    order = data.draw(st.permutations(range(len(E))))
    shuffled = PrivacyMatrix([[E[x][x2] for x2 in order] for x in order])
    closed = _exact(PrivacyMatrix(E).closure())
    assert _exact(shuffled.closure()) == [[closed[x][x2] for x2 in order] for x in order]
