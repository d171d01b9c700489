"""What a survey costs and leaves open: structured contexts against every pair."""

import itertools
from fractions import Fraction
from math import inf

import numpy as np
import pytest

import sfumato as sf
from sfumato.client.ledger import parse_budget, survey_cost
from sfumato.contexts import ContextUnion
from sfumato.errors import InvalidArgument

SIZE = 6


def random_context(generator):
    """One of every kind, with ε from a few multiples of 0.1, so that ties are common."""

    def epsilon():
        return str(Fraction(int(generator.integers(1, 6)), 10))

    def maybe():
        return "inf" if generator.random() < 0.3 else epsilon()

    kind = generator.integers(0, 7)
    if kind == 0:
        return sf.Uniform(SIZE, maybe())
    if kind == 1:
        return sf.HighLow(SIZE, generator.choice(SIZE, 3, replace=False).tolist(), epsilon())
    blocks = np.concatenate([[0, 1], generator.integers(0, 2, SIZE - 2)])
    if kind == 2:
        return sf.Blocks(blocks.tolist(), [maybe(), epsilon()], across=maybe())
    if kind == 3:
        return sf.Tiers(blocks.tolist(), [epsilon(), maybe()])
    if kind == 4:
        half = generator.integers(1, 4, (SIZE, SIZE))
        return sf.Metric(np.triu(half, 1) + np.triu(half, 1).T, epsilon())
    if kind == 5:
        matrix = [["0" if x == x2 else maybe() for x2 in range(SIZE)] for x in range(SIZE)]
        return sf.PrivacyMatrix(matrix)
    inside = [int(size) for size in np.bincount(blocks)]
    parts = [sf.Uniform(inside[0], epsilon()), sf.HighLow(inside[1], [0], epsilon())]
    return ContextUnion(parts, blocks.tolist())


def test_members_of_a_context_agree_with_its_entries():
    generator = np.random.default_rng(7)
    opened = 0
    mixed = 0
    for _ in range(400):
        context = random_context(generator)
        E = {pair: context.exact_epsilon(*pair) for pair in itertools.permutations(range(SIZE), 2)}
        assert context.largest_finite_epsilon == max((e for e in E.values() if e != inf), default=0)
        assert context.has_unprotected_pairs == (inf in E.values())
        rows = [x for x in range(SIZE) if all(E[x, x2] == inf for x2 in range(SIZE) if x2 != x)]
        assert context.unprotected_symbols().tolist() == rows, context
        opened += bool(rows)
        finite = [sum(E[x, x2] < inf for x2 in range(SIZE) if x2 != x) for x in range(SIZE)]
        assert context.has_partly_protected_symbols == any(
            0 < number < SIZE - 1 for number in finite
        ), context
        mixed += context.has_partly_protected_symbols
    assert opened > 50
    assert 50 < mixed < 350


@pytest.mark.parametrize(
    "context",
    [
        sf.Uniform(1, 1),
        sf.Uniform(1, "inf"),
        sf.HighLow(1, [], 1),
        sf.Blocks([0], 1),
        sf.PrivacyMatrix([[0]]),
    ],
)
def test_single_symbol_contexts_cost_nothing(context):
    assert context.largest_finite_epsilon == 0
    assert not context.has_unprotected_pairs
    assert context.unprotected_symbols().size == 0
    assert not context.has_partly_protected_symbols
    assert survey_cost(context, 5) == 0


def test_a_block_of_one_is_unprotected_only_if_nothing_is_promised_across():
    assert sf.Blocks([0, 1, 1], [9, 1]).unprotected_symbols().tolist() == [0]
    assert sf.Blocks([0, 1, 1], [9, 1], across=2).unprotected_symbols().size == 0
    assert sf.Blocks([0, 1, 1], [9, 1], across=2).largest_finite_epsilon == 2
    union = ContextUnion([sf.Uniform(1, 1), sf.HighLow(2, [0], 2)], [0, 1, 1])
    assert union.unprotected_symbols().tolist() == [0, 2]
    assert ContextUnion([sf.HighLow(2, [0], 2)], [0, 0]).unprotected_symbols().tolist() == [1]


def test_a_survey_costs_its_largest_entry_for_each_distinct_value():
    metric = sf.Metric([[0, 1, 2], [1, 0, 1], [2, 1, 0]], "1/3")
    assert survey_cost(metric, 3) == 2
    assert survey_cost(sf.Uniform(3, "inf"), 5) == 0
    assert survey_cost(sf.Uniform(2**31, "0.5"), 1) == Fraction(
        1, 2
    )  # no memory is needed for that


@pytest.mark.parametrize("text", ["0", "-1", "inf", "four", True, [4], float("nan"), 0])
def test_a_budget_is_a_positive_number(text):
    with pytest.raises(InvalidArgument, match="budget must be a positive number"):
        parse_budget(text)


def test_no_budget_is_written_out():
    assert parse_budget(None) is None
    assert parse_budget(0.1) == Fraction(1, 10)
