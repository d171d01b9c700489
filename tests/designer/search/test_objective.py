"""The objective of a design: crowds as integers, weights, and invalid arguments."""

from math import inf, nan

import numpy as np
import pytest

import sfumato as sf
from sfumato.designer.search.objective import Objective
from sfumato.errors import InvalidArgument


def test_defaults_are_even():
    objective = Objective.of(4, None, None)
    assert objective.counts == (1, 1, 1, 1)
    assert objective.is_even
    assert objective.crowd.tolist() == [0.25] * 4
    assert objective.weights.tolist() == [1.0] * 4


@pytest.mark.parametrize(
    "prior",
    [
        [1, 1, 2],
        [0.25, 0.25, 0.5],
        [3e6, 3e6, 6e6],
        [1e-300, 1e-300, 2e-300],
        [1e300, 1e300, 2e300],
    ],
)
def test_prior_may_be_shares_or_counts(prior):
    objective = Objective.of(3, prior, None)
    assert objective.counts == (1, 1, 2)
    assert not objective.is_even
    assert objective.crowd.tolist() == [0.25, 0.25, 0.5]


@pytest.mark.parametrize("largest", [1e308, 1.7e308])
def test_huge_counts_are_read_as_shares(largest):
    assert Objective.of(3, [largest, largest, 0], None).counts == (500_000, 500_000, 1)


def test_tiny_shares_are_rounded_up_to_a_millionth():
    objective = Objective.of(4, [0.5, 0.5, 1e-12, 0], None)
    assert objective.counts == (500_000, 500_000, 1, 1)
    assert objective.crowd.sum() == pytest.approx(1, rel=1e-15)
    assert (objective.crowd > 0).all()


def test_shares_are_rounded_by_less_than_a_millionth():
    p = np.random.default_rng(1).dirichlet(np.full(30, 0.3))
    assert np.abs(Objective.of(30, p, None).crowd - p).max() < 1.5e-6 * 30


def test_is_even_needs_equal_counts_and_weights():
    assert Objective.of(3, None, [2, 2, 2]).is_even
    assert not Objective.of(3, None, [2, 2, 1]).is_even
    assert not Objective.of(3, [1, 1, 2], None).is_even


def test_restrict_keeps_the_proportions():
    part = Objective.of(4, [0.1, 0.2, 0.3, 0.4], [1, 2, 3, 4]).restrict(np.array([1, 3]))
    assert part.counts == (1, 2)
    assert part.weights.tolist() == [2, 4]


def test_value_is_the_weighted_risk_plus_offset():
    mechanism = sf.mechanism_for(sf.Uniform(3, 1))
    objective = Objective.of(3, [5, 3, 2], [1, 2, 4])
    p = np.array([0.5, 0.3, 0.2])
    assert objective.offset == pytest.approx(0.25 + 2 * 0.09 + 4 * 0.04)
    assert objective.least_value == pytest.approx(0.5 + 0.6 + 0.8)
    assert objective.value_of(mechanism) - objective.offset == pytest.approx(
        float(np.array([1, 2, 4]) @ mechanism.scores.variances(p, 1))
    )


def test_answers_in_clear_have_the_least_value():
    objective = Objective.of(3, [5, 3, 2], [1, 2, 4])
    assert objective.value_of(sf.mechanism_for(sf.Uniform(3, inf))) == pytest.approx(
        objective.least_value, rel=1e-12
    )


@pytest.mark.parametrize("name", ["prior", "weights"])
@pytest.mark.parametrize(
    "numbers",
    [
        [1, 2],
        [1, 2, 3, 4],
        [[1, 2, 3]],
        3,
        "abc",
        [1, 2, None],
        [1, 2, "x"],
        [1, nan, 1],
        [1, inf, 1],
        [1, -1, 1],
        {},
        [0, 0, 0],
    ],
    ids=str,
)
def test_invalid_numbers_raise(name, numbers):
    with pytest.raises(InvalidArgument, match=f"^{name} must be"):
        Objective.of(3, **{"prior": None, "weights": None, name: numbers})


def test_zero_weights_raise():
    with pytest.raises(InvalidArgument, match="Merge symbols that do not matter"):
        Objective.of(3, None, [1, 0, 1])
