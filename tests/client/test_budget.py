"""What a device has spent: classes of symbols against every pair written out."""

import itertools
from fractions import Fraction
from math import inf

import numpy as np
import pytest

import sfumato as sf
from sfumato.client import budget
from sfumato.client.budget import MOST_CLASSES, Cost, exact_budget, spent_on
from sfumato.contexts import ContextUnion
from sfumato.errors import InvalidContext

SIZE = 6


def spent_pair_by_pair(costs):
    """The largest sum of finite entries over all pairs of one domain, in fractions."""
    pairs = itertools.permutations(range(costs[0].context.size), 2)
    return max(sum(_finite(cost, x, x2) for cost in costs) for x, x2 in pairs)


def _finite(cost, x, x2):
    epsilon = cost.context.exact_epsilon(x, x2)
    return 0 if epsilon == inf else cost.times * epsilon


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


def random_costs(generator):
    times = generator.integers(1, 4, generator.integers(1, 4)).tolist()
    return [Cost(number, random_context(generator)) for number in times]


def test_classes_say_what_every_pair_says():
    generator = np.random.default_rng(20261115)
    below_full = 0
    for _ in range(1500):
        costs = random_costs(generator)
        spent = spent_on(costs)
        assert spent == spent_pair_by_pair(costs), costs
        below_full += spent < sum(cost.most for cost in costs)
    assert below_full > 200  # adding up pair by pair matters


def test_the_comparison_notices_a_lost_pair(monkeypatch):
    """Without the pairs inside a class some sums come out too small."""

    def across_only(classes):
        first = np.unique(classes, return_index=True)[1]
        x, x2 = (side.reshape(-1) for side in np.meshgrid(first, first, indexing="ij"))
        return x[x != x2], x2[x != x2]

    monkeypatch.setattr(budget, "_pairs_of_classes", across_only)
    generator = np.random.default_rng(20261115)
    sampled = [random_costs(generator) for _ in range(300)]
    assert any(spent_on(costs) < spent_pair_by_pair(costs) for costs in sampled)


def test_members_of_a_context_agree_with_its_entries():
    generator = np.random.default_rng(7)
    opened = 0
    for _ in range(400):
        context = random_context(generator)
        E = {pair: context.exact_epsilon(*pair) for pair in itertools.permutations(range(SIZE), 2)}
        assert context.largest_finite == max((e for e in E.values() if e != inf), default=0)
        assert context.leaves_open == (inf in E.values())
        rows = [x for x in range(SIZE) if all(E[x, x2] == inf for x2 in range(SIZE) if x2 != x)]
        assert context.unprotected().tolist() == rows, context
        opened += bool(rows)
        x, x2 = (np.array(side) for side in zip(*E, strict=True))
        which, values = context.exact_entries(x, x2)
        assert [values[i] for i in which.tolist()] == list(E.values())
    assert opened > 50


@pytest.mark.parametrize(
    "context",
    [sf.Uniform(1, 1), sf.Uniform(1, "inf"), sf.HighLow(1, [], 1), sf.Blocks([0], 1), sf.PrivacyMatrix([[0]])],
)
def test_one_symbol_has_nothing_to_hide(context):
    assert context.largest_finite == 0
    assert not context.leaves_open
    assert context.unprotected().size == 0
    assert spent_on([Cost(5, context), Cost(2, context)]) == 0


def test_a_block_of_one_is_unprotected_only_if_nothing_is_promised_across():
    assert sf.Blocks([0, 1, 1], [9, 1]).unprotected().tolist() == [0]
    assert sf.Blocks([0, 1, 1], [9, 1], across=2).unprotected().size == 0
    assert sf.Blocks([0, 1, 1], [9, 1], across=2).largest_finite == 2
    union = ContextUnion([sf.Uniform(1, 1), sf.HighLow(2, [0], 2)], [0, 1, 1])
    assert union.unprotected().tolist() == [0, 2]
    assert ContextUnion([sf.HighLow(2, [0], 2)], [0, 0]).unprotected().tolist() == [1]


def test_sums_are_exact():
    assert spent_on([Cost(3, sf.Uniform(3, "1/3"))]) == 1
    assert spent_on([Cost(3, sf.Uniform(3, "0.33333333333333334"))]) > 1


def test_domains_add_up_in_full():
    metric = sf.Metric([[0, 1, 2], [1, 0, 1], [2, 1, 0]], "0.5", domain=["p", "q", "r"])
    here = sf.Uniform(["a", "b"], 1)
    assert spent_on([Cost(1, here), Cost(2, metric)]) == 3
    # Permuted and additional labels are other domains.
    for labels in (["b", "a"], ["a", "b", "c"], ["A", "b"]):
        assert spent_on([Cost(1, here), Cost(1, sf.Uniform(labels, 1))]) == 2


def test_surveys_about_different_pairs_of_one_domain_do_not_add_up():
    clinic = Cost(1, sf.HighLow(["park", "clinic", "bar"], ["clinic"], 1))
    bar = Cost(1, sf.HighLow(["park", "clinic", "bar"], ["bar"], 1))
    assert spent_on([clinic, bar]) == 1
    assert spent_on([clinic, clinic, bar]) == 2


def test_many_classes_count_in_full():
    size = 2 * MOST_CLASSES + 2
    pairs = np.arange(size) // 2
    shifted = (np.arange(size) + 1) // 2 % (size // 2)
    few = [Cost(1, sf.Blocks(part[:100].tolist(), 1)) for part in (pairs, shifted)]
    many = [Cost(1, sf.Blocks(part.tolist(), 1)) for part in (pairs, shifted)]
    assert spent_on(few) == 1
    assert spent_on(many) == 2


def test_the_largest_domains_need_no_memory():
    astronomic = [Cost(1, sf.Uniform(2**31, 1)), Cost(2, sf.Uniform(2**31, "0.5"))]
    assert spent_on(astronomic) == 2


@pytest.mark.parametrize("text", ["0", "-1", "inf", "four", True, [4], float("nan"), 0])
def test_a_budget_is_a_positive_number(text):
    with pytest.raises(InvalidContext, match="budget"):
        exact_budget(text)


def test_no_budget_is_written_out():
    assert exact_budget(None) is None
    assert exact_budget(0.1) == Fraction(1, 10)
