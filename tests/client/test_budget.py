"""Sums of promises against a cap: the fast way by classes against every pair written out."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.client.budget import Cost, largest_entry, within
from sfumato.contexts import ContextUnion

SIZE = 6


def naive_within(costs, cap):
    """Every pair, in fractions."""
    return all(
        sum(cost.times * cost.context.exact_epsilon(x, x2) for cost in costs) <= cap.exact_epsilon(x, x2)
        for x, x2 in itertools.permutations(range(cap.size), 2)
    )


def _random_context(generator):
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
        return sf.Blocks(blocks.tolist(), [epsilon(), epsilon()], across=maybe())
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


def test_classes_say_what_every_pair_says():
    generator = np.random.default_rng(20261115)
    verdicts = []
    for _ in range(1500):
        costs = [
            Cost(int(generator.integers(1, 4)), _random_context(generator)) for _ in range(generator.integers(1, 4))
        ]
        cap = _random_context(generator)
        if generator.random() < 0.5:
            cap = sf.ContextSum.of(*[cost.context for cost in costs for _ in range(cost.times)])
        if generator.random() < 0.3:
            cap = sf.ContextSum.of(cap, _random_context(generator))
        verdicts.append(within(costs, cap))
        assert verdicts[-1] == naive_within(costs, cap), (costs, cap)
    assert 0.2 < np.mean(verdicts) < 0.8


def test_the_largest_entry_is_that_of_a_pair():
    generator = np.random.default_rng(7)
    for _ in range(300):
        context = _random_context(generator)
        pairs = itertools.permutations(range(SIZE), 2)
        assert largest_entry(context) == max(context.exact_epsilon(x, x2) for x, x2 in pairs)
    # What is said inside a block of one, or outside of all, concerns no pair.
    assert largest_entry(sf.Blocks([0, 1, 1], [9, 1], across=2)) == 2
    assert largest_entry(sf.Uniform(3, 1)) == 1
    assert largest_entry(sf.Uniform(1, 1)) == 0


def test_a_tenth_of_a_millionth_too_much_is_too_much():
    cap = sf.Uniform(3, 1)
    assert within([Cost(3, sf.Uniform(3, "1/3"))], cap)
    assert not within([Cost(3, sf.Uniform(3, "0.33333333333333334"))], cap)


def test_a_cost_over_another_domain_counts_with_its_largest_entry():
    cap = sf.Uniform(["a", "b"], 2)
    metric = sf.Metric([[0, 1, 2], [1, 0, 1], [2, 1, 0]], "0.5", domain=["p", "q", "r"])
    assert within([Cost(1, sf.Uniform(["a", "b"], 1)), Cost(1, metric)], cap)
    assert not within([Cost(1, sf.Uniform(["a", "b"], 1)), Cost(2, metric)], cap)
    assert not within([Cost(1, sf.HighLow(["p", "q"], ["p"], 1))], cap)


def test_large_domains_are_compared_by_their_classes():
    grid = sf.GridDomain(25, 50, -130, -60, 0.2)
    tiles = sf.Blocks(np.arange(grid.size) // 1750, 1, domain=grid)
    stripes = sf.Blocks(np.arange(grid.size) % 350, "0.5", domain=grid)
    assert within([Cost(2, tiles)], sf.Blocks(tiles.block_of, 2, domain=grid))
    assert not within([Cost(2, tiles)], sf.Blocks(tiles.block_of, "1.99", domain=grid))
    assert not within([Cost(1, tiles)], sf.Uniform(grid, 1))
    # Inside a tile and a stripe both are paid for; inside a tile alone, nothing bounds the stripes.
    assert within([Cost(1, tiles), Cost(1, stripes)], sf.ContextSum.of(tiles, stripes))
    assert not within([Cost(1, tiles), Cost(1, stripes)], sf.Blocks(tiles.block_of, 30, domain=grid))


@pytest.mark.parametrize("size", [1, 2])
def test_the_smallest_domains(size):
    assert within([Cost(5, sf.Uniform(size, 8))], sf.Uniform(size, 1)) == (size == 1)
