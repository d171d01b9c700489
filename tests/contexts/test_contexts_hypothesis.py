"""Laws of contexts, for random matrices."""

import math
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.contexts import (
    Blocks,
    Context,
    ContextUnion,
    HighLow,
    Metric,
    PrivacyMatrix,
    Tiers,
    Uniform,
    context_from_record,
    union,
)
from sfumato.designer.recognise import recognise
from sfumato.domains import Domain
from sfumato.errors import InvalidContext, NoClosedForm, NothingToLearn
from support.matrices import naive_closure

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


def _classes(draw, k):
    """Return a class for each of k symbols, and one ε or infinity for each class."""
    names = draw(st.lists(st.sampled_from("abcd"), min_size=k, max_size=k))
    return names, {name: draw(st.one_of(epsilons, st.just(INF))) for name in sorted(set(names))}


@st.composite
def grouped_contexts(draw, k):
    """Return a context of groups over k symbols."""
    kind = draw(
        st.sampled_from(["uniform", "high-low", "blocks", "own blocks", "hidden blocks", "tiers"])
    )
    if kind == "uniform":
        return Uniform(k, draw(epsilons))
    if kind == "high-low":
        return HighLow(k, sorted(draw(st.sets(st.integers(0, k - 1)))), draw(epsilons))
    names, by_name = _classes(draw, k)
    if kind == "blocks":
        return Blocks(names, draw(epsilons))
    if kind == "tiers":
        return Tiers(names, by_name)
    return Blocks(names, by_name, across=INF if kind == "own blocks" else draw(epsilons))


@st.composite
def contexts(draw, k, nested=True):
    """Return any context over k symbols."""
    kind = draw(
        st.sampled_from(
            ["structured", "structured", "metric", "matrix", *["union"] * (nested and k > 1)]
        )
    )
    if kind == "structured":
        return draw(grouped_contexts(k))
    if kind == "union":
        block_of = draw(st.lists(st.integers(0, 2), min_size=k, max_size=k))
        return union(
            {j: draw(contexts(block_of.count(j), False)) for j in set(block_of)}, block_of=block_of
        )
    E = draw(matrices(sizes=st.just(k)))
    if kind == "matrix":
        return PrivacyMatrix(E)
    return Metric(
        [[E[min(x, x2)][max(x, x2)] for x2 in range(k)] for x in range(k)], draw(epsilons)
    )


def _exact(context: Context) -> list[list[Fraction | float]]:
    return [
        [context.exact_epsilon(x, x2) for x2 in range(context.size)] for x in range(context.size)
    ]


any_context = small.flatmap(contexts)
structured_context = small.flatmap(grouped_contexts)
two_contexts = st.integers(1, 5).flatmap(lambda k: st.tuples(contexts(k), contexts(k)))


@LAWS
@given(matrices())
def test_matrix_of_fractions_stays_exact(E):
    assert _exact(PrivacyMatrix(E)) == E


@LAWS
@given(matrices())
def test_matrix_round_trips_through_its_record(E):
    """Decimal entries are read back from their text; the record contains every entry."""
    context = PrivacyMatrix(E)
    record = context.to_record()["matrix"]
    assert [[INF if text == "inf" else Fraction(text) for text in row] for row in record] == E


@LAWS
@given(any_context)
def test_closure_matches_brute_force(context):
    assert _exact(context.closure()) == naive_closure(_exact(context))


@LAWS
@given(any_context)
def test_closing_twice_changes_nothing(context):
    once = context.closure()
    assert _exact(once.closure()) == _exact(once)


@LAWS
@given(any_context)
def test_smallest_epsilon_is_the_largest_float_below_every_entry(context):
    E = _exact(context)
    least = min((E[x][x2] for x in range(len(E)) for x2 in range(len(E)) if x != x2), default=INF)
    result = context.smallest_epsilon
    if least == INF:
        assert result == INF
    else:
        assert Fraction(repr(result)) <= least < Fraction(repr(math.nextafter(result, INF)))


@LAWS
@given(any_context)
def test_epsilon_returns_the_nearest_float_for_every_pair(context):
    symbols = np.arange(context.size)
    result = context.epsilon(symbols[:, None], symbols[None, :]).tolist()
    assert result == [[float(entry) for entry in row] for row in _exact(context)]


@LAWS
@given(any_context)
def test_exact_matrix_matches_the_entries(context):
    matrix = context.exact_matrix()
    assert [
        [matrix.entry(x, x2) for x2 in range(matrix.size)] for x in range(matrix.size)
    ] == _exact(context)


@LAWS
@given(two_contexts)
def test_sum_adds_entries_in_any_order(pair):
    a, b = pair
    total = [
        [x + y for x, y in zip(*rows, strict=True)]
        for rows in zip(_exact(a), _exact(b), strict=True)
    ]
    assert _exact(a + b) == _exact(b + a) == total


@LAWS
@given(two_contexts)
def test_closure_of_a_sum_matches_its_matrix(pair):
    total = pair[0] + pair[1]
    assert _exact(total.closure()) == naive_closure(_exact(total))


@LAWS
@given(two_contexts)
def test_equal_contexts_have_equal_hashes_and_promises(pair):
    a, b = pair
    if a == b:
        assert hash(a) == hash(b)
        assert _exact(a) == _exact(b)
    if (
        type(a) is type(b)
        and type(a) in (PrivacyMatrix, HighLow, Blocks, Tiers, ContextUnion)
        and _exact(a) != _exact(b)
    ):
        assert a != b


@LAWS
@given(st.data())
def test_renaming_symbols_renames_the_closure(data):
    E = data.draw(matrices())
    order = data.draw(st.permutations(range(len(E))))
    shuffled = PrivacyMatrix([[E[x][x2] for x2 in order] for x in order])
    closed = _exact(PrivacyMatrix(E).closure())
    assert _exact(shuffled.closure()) == [[closed[x][x2] for x2 in order] for x in order]


# --- groups, records, recognition -----------------------------------------------------------------


@LAWS
@given(structured_context)
def test_groups_match_every_entry(context):
    groups = context.groups
    k = context.size
    expected = [
        [
            Fraction(0)
            if x == x2
            else (groups.inside if groups.group_of[x] == groups.group_of[x2] else groups.outward)[
                groups.group_of[x]
            ]
            for x2 in range(k)
        ]
        for x in range(k)
    ]
    assert expected == _exact(context)
    firsts = [groups.group_of.tolist().index(g) for g in range(len(groups.inside))]
    assert firsts == sorted(firsts)
    assert len(groups.inside) == len(groups.outward) == groups.group_of.max() + 1


@LAWS
@given(any_context)
def test_record_round_trips(context):
    restored = context_from_record(context.to_record())
    assert type(restored) is type(context)
    assert restored.to_record() == context.to_record()
    assert _exact(restored) == _exact(context)


@LAWS
@given(any_context)
def test_relabelling_changes_nothing_else(context):
    labels = Domain([f"label {x}" for x in range(context.size)])
    renamed = context.with_domain(labels)
    assert renamed.domain == labels
    assert _exact(renamed) == _exact(context)
    assert renamed.with_domain(context.domain) == context


def _recognise(context):
    """Return the recognised context.

    Return None if there is nothing to learn, or if an entry exceeds the limits of contexts.
    """
    try:
        return recognise(context)
    except NothingToLearn:
        assert any(
            0 in row[:x] + row[x + 1 :] for x, row in enumerate(naive_closure(_exact(context)))
        )
    except InvalidContext:
        entries = {entry for row in naive_closure(_exact(context)) for entry in row} - {0, INF}
        assert max(entries) > 40 or min(entries) < Fraction(1, 10**18)
    return None


def _exceeds_limit(context):
    """Return whether a detour costs more than 40, the largest ε that blocks can promise."""
    return any(40 < entry < INF for row in naive_closure(_exact(context)) for entry in row)


def _check_closed(form, context):
    """Check that a form is the closure of a context; blocks may keep inf in place of a detour."""
    expected = naive_closure(_exact(context))
    if _exceeds_limit(context):
        form = form.closure()
    assert _exact(form) == expected


@LAWS
@given(structured_context)
def test_structured_context_is_recognised_from_its_matrix(context):
    result = _recognise(PrivacyMatrix(_exact(context)))
    direct = _recognise(context)
    for form in (result, direct):
        if form is not None:
            _check_closed(form, context)
            assert _exceeds_limit(context) or form.closure() is form
            assert _exceeds_limit(context) or recognise(form) is form


@LAWS
@given(any_context)
def test_recognised_context_promises_the_closure(context):
    try:
        result = _recognise(context)
    except NoClosedForm:
        return
    if result is not None:
        _check_closed(result, context)
        assert result.domain == context.domain


@LAWS
@given(structured_context)
def test_simplest_form_is_recognised(context):
    """The order is uniform, visible blocks, high-low, tiers, hidden blocks."""
    result = _recognise(PrivacyMatrix(_exact(context)))
    if result is None:
        return
    E = naive_closure(_exact(context))
    off_diagonal = [entry for x, row in enumerate(E) for x2, entry in enumerate(row) if x != x2]
    rows = [set(row[:x] + row[x + 1 :]) for x, row in enumerate(E)]
    finite = {entry for entry in off_diagonal if entry != INF}
    if len(set(off_diagonal)) <= 1:
        assert isinstance(result, Uniform)
    elif all(len(row) == 1 for row in rows):
        assert isinstance(result, HighLow if len(finite) == 1 else Tiers)
    else:
        assert isinstance(result, Blocks)
        assert (result.exact_across == INF) == (INF in off_diagonal)
