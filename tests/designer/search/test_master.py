"""The objective of a design: crowds as integers, weights, and invalid arguments.

The best mixture of given rays, against a general solver and its own multipliers.
"""

from math import inf, nan

import numpy as np
import pytest
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

import sfumato as sf
from sfumato.designer.search.master import Objective, best_mixture
from sfumato.errors import InvalidArgument
from support.matrices import asymmetric, cross_section, free_rows, halves, one_way, planar

# --- the objective --------------------------------------------------------------------------------


def test_defaults_are_even():
    objective = Objective.parse(4, None, None)
    assert objective.counts == (1, 1, 1, 1)
    assert objective.is_uniform
    assert objective.prior.tolist() == [0.25] * 4
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
    objective = Objective.parse(3, prior, None)
    assert objective.counts == (1, 1, 2)
    assert not objective.is_uniform
    assert objective.prior.tolist() == [0.25, 0.25, 0.5]


@pytest.mark.parametrize("largest", [1e308, 1.7e308])
def test_huge_counts_are_read_as_shares(largest):
    assert Objective.parse(3, [largest, largest, 0], None).counts == (500_000, 500_000, 1)


def test_tiny_shares_are_rounded_up_to_a_millionth():
    objective = Objective.parse(4, [0.5, 0.5, 1e-12, 0], None)
    assert objective.counts == (500_000, 500_000, 1, 1)
    assert objective.prior.sum() == pytest.approx(1, rel=1e-15)
    assert (objective.prior > 0).all()


def test_shares_are_rounded_by_less_than_a_millionth():
    p = np.random.default_rng(1).dirichlet(np.full(30, 0.3))
    assert np.abs(Objective.parse(30, p, None).prior - p).max() < 1.5e-6 * 30


def test_is_even_needs_equal_counts_and_weights():
    assert Objective.parse(3, None, [2, 2, 2]).is_uniform
    assert not Objective.parse(3, None, [2, 2, 1]).is_uniform
    assert not Objective.parse(3, [1, 1, 2], None).is_uniform


def test_restrict_keeps_the_proportions():
    part = Objective.parse(4, [0.1, 0.2, 0.3, 0.4], [1, 2, 3, 4]).restrict(np.array([1, 3]))
    assert part.counts == (1, 2)
    assert part.weights.tolist() == [2, 4]


def test_value_is_the_weighted_risk_plus_offset():
    mechanism = sf.mechanism_for(sf.Uniform(3, 1))
    objective = Objective.parse(3, [5, 3, 2], [1, 2, 4])
    p = np.array([0.5, 0.3, 0.2])
    assert objective.offset == pytest.approx(0.25 + 2 * 0.09 + 4 * 0.04)
    assert objective.min_value == pytest.approx(0.5 + 0.6 + 0.8)
    assert objective.value_of(mechanism) - objective.offset == pytest.approx(
        float(np.array([1, 2, 4]) @ mechanism.scores.variances(p, 1))
    )


def test_unrandomized_answers_have_the_least_value():
    objective = Objective.parse(3, [5, 3, 2], [1, 2, 4])
    assert objective.value_of(sf.mechanism_for(sf.Uniform(3, inf))) == pytest.approx(
        objective.min_value, rel=1e-12
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
        Objective.parse(3, **{"prior": None, "weights": None, name: numbers})


def test_zero_weights_raise():
    with pytest.raises(InvalidArgument, match="Merge symbols that do not matter"):
        Objective.parse(3, None, [1, 0, 1])


# --- the best mixture -----------------------------------------------------------------------------


def _pool(E, seed, count=4):
    """Return normalised members of the cone that can make a channel, a crowd and weights."""
    random = np.random.default_rng(seed)
    k = len(E)
    crowd = random.dirichlet(np.full(k, 3.0))
    weights = random.uniform(0.5, 2, k)
    section = cross_section(E, crowd)
    cone = section.cone
    members = np.vstack([cone.shrink_factors, cone.lower(random.uniform(0.2, 1, (count, k)))])
    return section.normalise(halves(cone, members)), crowd, weights


POOLS = {
    "asymmetric": _pool(asymmetric(3, 1), 1),
    "planar": _pool(planar(4, 2, 2.0), 2),
    "one-way": _pool(one_way(4, 3), 3),
    "a free row": _pool(free_rows(4, 4, 1), 4),
}


def _value(theta, rays, weights):
    return float(weights @ np.linalg.inv(rays.T @ (theta[:, None] * rays)).diagonal())


@pytest.mark.parametrize(("rays", "crowd", "weights"), POOLS.values(), ids=POOLS)
def test_general_solver_finds_no_better_mixture(rays, crowd, weights):
    with threadpool_limits(1):
        result = best_mixture(rays, weights, np.full(len(rays), 1 / len(rays)), 1e-8)
        general = minimize(
            _value,
            np.full(len(rays), 1 / len(rays)),
            args=(rays, weights),
            method="SLSQP",
            bounds=[(0, None)] * len(rays),
            constraints={
                "type": "eq",
                "fun": lambda theta: theta @ rays - 1,
                "jac": lambda _: rays.T,
            },
            options={"maxiter": 500, "ftol": 1e-12},
        )
    assert general.success, general.message
    assert np.abs(general.x @ rays - 1).max() < 1e-8
    assert result.value == pytest.approx(general.fun, rel=1e-6)
    assert result.value == pytest.approx(_value(result.theta, rays, weights), rel=1e-9)


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-7])
@pytest.mark.parametrize(("rays", "crowd", "weights"), POOLS.values(), ids=POOLS)
def test_multipliers_prove_the_tolerance(rays, crowd, weights, tolerance):
    """By duality no mixture of the pool is below ``value²/(ν·1 + max φ)``."""
    with threadpool_limits(1):
        result = best_mixture(rays, weights, np.full(len(rays), 1 / len(rays)), tolerance)
        best = best_mixture(rays, weights, np.full(len(rays), 1 / len(rays)), 1e-10).value
    assert (result.theta > 0).all()
    assert np.abs(result.theta @ rays - 1).max() < 1e-8
    assert best * (1 - 1e-9) <= result.value <= best * (1 + 1.1 * tolerance)
    phi = ((rays @ result.inverse * np.sqrt(weights)) ** 2).sum(axis=1) - rays @ result.multipliers
    bound = result.value**2 / (result.multipliers.sum() + phi.max())
    assert best * (1 - 2.5 * tolerance) <= bound <= best * (1 + 1e-9)


@pytest.mark.parametrize(("rays", "crowd", "weights"), POOLS.values(), ids=POOLS)
def test_positive_weights_have_no_slack(rays, crowd, weights):
    with threadpool_limits(1):
        result = best_mixture(rays, weights, np.full(len(rays), 1 / len(rays)), 1e-9)
    slack = rays @ result.multipliers - ((rays @ result.inverse * np.sqrt(weights)) ** 2).sum(
        axis=1
    )
    used = result.theta > 1e-3
    assert used.sum() >= rays.shape[1]
    assert np.abs(slack[used]).max() < 1e-4 * result.value
    assert slack.min() > -1e-4 * result.value
    assert (result.theta * np.abs(slack)).sum() < 1e-6 * result.value


def test_mixture_does_not_depend_on_the_start():
    rays, _, weights = POOLS["planar"]
    random = np.random.default_rng(0)
    with threadpool_limits(1):
        values = [
            best_mixture(
                rays, weights, random.dirichlet(np.full(len(rays), 0.3)) + 1e-6, 1e-8, first
            ).value
            for first in (1.0, 1e-3)
            for _ in range(5)
        ]
    assert max(values) == pytest.approx(min(values), rel=3e-8)


def test_scaling_weights_only_scales_the_value():
    rays, _, weights = POOLS["asymmetric"]
    start = np.full(len(rays), 1 / len(rays))
    with threadpool_limits(1):
        once, often = (
            best_mixture(rays, weights * factor, start, 1e-8) for factor in (1.0, 2.0**20)
        )
    np.testing.assert_allclose(often.theta, once.theta, rtol=1e-6, atol=1e-12)
    assert often.value == pytest.approx(once.value * 2.0**20, rel=1e-9)


def test_two_symbols_give_warners_response():
    """Two symbols at ε: each extreme ray has half of the weight."""
    e = np.e
    rays = np.array([[e, 1], [1, e], [(1 + e) / 2, (1 + e) / 2]]) * 2 / (1 + e)
    with threadpool_limits(1):
        result = best_mixture(rays, np.ones(2), np.full(3, 1 / 3), 1e-10)
    assert result.theta == pytest.approx([0.5, 0.5, 0], abs=1e-8)
    assert result.value - 0.5 == pytest.approx(0.5 * ((e + 1) / (e - 1)) ** 2, rel=1e-8)
