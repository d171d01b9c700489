"""The aim of a design: crowds in whole numbers, weights, and what is refused."""

from math import inf, nan

import numpy as np
import pytest

import sfumato as sf
from sfumato.designer.search.objective import Aim
from sfumato.errors import InvalidContext


def test_by_default_all_count_the_same():
    aim = Aim.of(4, None, None)
    assert aim.counts == (1, 1, 1, 1)
    assert aim.even
    assert aim.crowd.tolist() == [0.25] * 4
    assert aim.weights.tolist() == [1.0] * 4


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
def test_a_prior_is_shares_or_counts(prior):
    aim = Aim.of(3, prior, None)
    assert aim.counts == (1, 1, 2)
    assert not aim.even
    assert aim.crowd.tolist() == [0.25, 0.25, 0.5]


@pytest.mark.parametrize("largest", [1e308, 1.7e308])
def test_counts_whose_sum_is_no_float_are_shares_all_the_same(largest):
    assert Aim.of(3, [largest, largest, 0], None).counts == (500_000, 500_000, 1)


def test_tiny_shares_count_as_a_millionth():
    aim = Aim.of(4, [0.5, 0.5, 1e-12, 0], None)
    assert aim.counts == (500_000, 500_000, 1, 1)
    assert aim.crowd.sum() == pytest.approx(1, rel=1e-15)
    assert (aim.crowd > 0).all()


def test_shares_are_off_by_less_than_a_millionth():
    p = np.random.default_rng(1).dirichlet(np.full(30, 0.3))
    assert np.abs(Aim.of(30, p, None).crowd - p).max() < 1.5e-6 * 30


def test_weights_of_one_number_are_even():
    assert Aim.of(3, None, [2, 2, 2]).even
    assert not Aim.of(3, None, [2, 2, 1]).even
    assert not Aim.of(3, [1, 1, 2], None).even


def test_a_part_keeps_the_proportions():
    part = Aim.of(4, [0.1, 0.2, 0.3, 0.4], [1, 2, 3, 4]).part(np.array([1, 3]))
    assert part.counts == (1, 2)
    assert part.weights.tolist() == [2, 4]


def test_value_is_the_weighted_risk_and_what_is_known():
    mechanism = sf.mechanism_for(sf.Uniform(3, 1))
    aim = Aim.of(3, [5, 3, 2], [1, 2, 4])
    p = np.array([0.5, 0.3, 0.2])
    assert aim.known == pytest.approx(0.25 + 2 * 0.09 + 4 * 0.04)
    assert aim.in_clear == pytest.approx(0.5 + 0.6 + 0.8)
    assert aim.value(mechanism) - aim.known == pytest.approx(
        float(np.array([1, 2, 4]) @ mechanism.variances(p, 1))
    )


def test_answers_in_clear_have_the_value_that_is_said():
    aim = Aim.of(3, [5, 3, 2], [1, 2, 4])
    assert aim.value(sf.mechanism_for(sf.Uniform(3, inf))) == pytest.approx(aim.in_clear, rel=1e-12)


@pytest.mark.parametrize("name", ["prior", "weights"])
@pytest.mark.parametrize(
    "given",
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
def test_what_is_no_number_per_symbol_is_refused(name, given):
    with pytest.raises(InvalidContext, match=f"^{name} must be") as caught:
        Aim.of(3, **{"prior": None, "weights": None, name: given})
    assert (
        "not all 0" in str(caught.value)
        or "above 0" in str(caught.value)
        or "3" in str(caught.value)
    )


def test_no_weight_may_be_nothing():
    with pytest.raises(InvalidContext, match="merge symbols that do not matter"):
        Aim.of(3, None, [1, 0, 1])
