"""The search: bounds hold for every channel, rounds are repeatable, skipped rays are detected."""

from functools import cache
from itertools import islice

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import sfumato as sf
from sfumato.designer.exponential import exponential_response
from sfumato.designer.search import search
from sfumato.designer.search.search import search_rounds
from sfumato.planning import lower_bound_risk_at_uniform
from support.matrices import (
    asymmetric,
    chain,
    cross_section,
    equal,
    free_rows,
    halves,
    line,
    mixed,
    one_way,
    planar,
    star,
    value_of,
)
from support.slow import slow_except

MATRICES = {
    "asymmetric": asymmetric(5, 1),
    "another": asymmetric(5, 2),
    "planar": planar(5, 3, 2.0),
    "line": line(5, 0.7),
    "mixed": mixed(5, 4),
    "small": asymmetric(5, 5) * 0.01,
    "a free row": free_rows(5, 6, 1),
    "one-way": one_way(5, 7),
    "star": star(5, 8),
}


def _rounds(section, weights, count, seed=0, known=None):
    known = np.empty((0, section.size)) if known is None else known
    with threadpool_limits(1):
        return list(islice(search_rounds(section, weights, seed, known), count))


def _crowd_and_weights(k, seed):
    random = np.random.default_rng(seed)
    return random.dirichlet(np.full(k, 2.0)), random.uniform(0.3, 3, k)


# --- the bound ------------------------------------------------------------------------------------


def _rounds_of(E):
    crowd, weights = _crowd_and_weights(len(E), 0)
    rounds = _rounds(cross_section(E, crowd), weights, 12)
    assert all(solution.certified for solution in rounds)
    return rounds


def _best_value(rounds):
    """Return the least value of all rounds."""
    return min(a.mixture.value for a in rounds if np.abs(a.mixture.theta @ a.rays - 1).max() < 1e-8)


def _highest_bound(rounds):
    return max(solution.bound for solution in rounds)


@cache
def _honest_rounds(name):
    """Return the rounds without a planted fault."""
    return _rounds_of(MATRICES[name])


@pytest.mark.parametrize("name", MATRICES)
def test_bounds_stay_below_mixtures_and_meet_them(name):
    rounds = _honest_rounds(name)
    assert 1 - 1e-5 <= _highest_bound(rounds) / _best_value(rounds) <= 1 + 1e-9


@pytest.fixture(scope="module")
def best_values():
    return [_best_value(_honest_rounds(name)) for name in MATRICES]


def _wrong_bounds(best_values):
    """Count the matrices with a bound above the value of a channel."""
    return sum(
        _highest_bound(_rounds_of(E)) > best * (1 + 1e-6)
        for E, best in zip(MATRICES.values(), best_values, strict=True)
    )


def test_skipped_rays_are_noticed(best_values, monkeypatch):
    """A planted fault: only half of the rays are priced."""
    whole = search.wider_rays
    monkeypatch.setattr(search, "wider_rays", lambda E, limit: whole(E, limit)[::2])
    assert _wrong_bounds(best_values) >= 4


def test_uncertified_delta_is_noticed(best_values, monkeypatch):
    """A planted fault: δ is the largest φ of the pool, and called certified."""

    def pool_only(self, price, rays, mixture, gap):
        columns, _ = honest(self, price, rays, mixture, gap)
        return columns, float(price(rays).max())

    honest = search._ExactPricing.find_rays
    monkeypatch.setattr(search._ExactPricing, "find_rays", pool_only)
    assert _wrong_bounds(best_values) >= 4


def test_narrower_cone_is_noticed(best_values, monkeypatch):
    """A planted fault: rays of a matrix that is a thousandth too small."""
    whole = search.wider_rays
    monkeypatch.setattr(search, "wider_rays", lambda E, limit: whole(E * 0.999, limit))
    assert _wrong_bounds(best_values) >= 4


@pytest.mark.parametrize("E", MATRICES.values(), ids=MATRICES)
def test_random_channels_stay_above_a_certified_bound(E):
    """Random channels mix members of the cone with what they leave of the column of ones."""
    crowd, weights = _crowd_and_weights(len(E), 3)
    section = cross_section(E, crowd)
    bound = max(solution.bound for solution in _rounds(section, weights, 8))
    random = np.random.default_rng(4)
    values = []
    for _ in range(50):
        members = section.cone.lower(
            np.exp(random.uniform(-3, 0, (2 * section.size, section.size)))
        )
        columns = halves(section.cone, np.vstack([members, section.cone.shrink_factors]))
        theta = np.repeat(random.dirichlet(np.full(len(columns) // 2, 0.5)), 2)
        channel = columns * theta[:, None]
        np.testing.assert_allclose(channel.sum(axis=0), 1, rtol=1e-12)
        values.append(value_of(channel, crowd, weights))
    assert min(values) >= bound


@pytest.mark.parametrize("seed", range(6))
def test_exponential_mechanism_stays_above_the_bound(seed):
    E = asymmetric(5, 20 + seed) * np.random.default_rng(seed).uniform(0.2, 4)
    crowd, weights = _crowd_and_weights(5, seed)
    bound = max(solution.bound for solution in _rounds(cross_section(E, crowd), weights, 8))
    known = float(weights @ crowd**2)
    rival = (
        float(weights @ exponential_response(sf.PrivacyMatrix(E)).scores.variances(crowd, 1))
        + known
    )
    assert bound < rival


# --- against closed forms -------------------------------------------------------------------------

CLOSED = {
    "uniform 4": sf.Uniform(4, 1),
    "uniform 7": sf.Uniform(7, 2),
    "uniform 9": sf.Uniform(9, "0.5"),
    "high-low 3 of 8": sf.HighLow(8, [0, 1, 2], 1),
    "high-low 5 of 10": sf.HighLow(10, range(5), 1),
    "blocks 4 4": sf.Blocks([0] * 4 + [1] * 4, 1),
    "blocks 3 5 2": sf.Blocks([0] * 3 + [1] * 5 + [2] * 2, 1),
}


@pytest.mark.parametrize(
    "name", slow_except(CLOSED.keys() - {"uniform 9", "high-low 5 of 10"}, CLOSED)
)
def test_search_meets_known_optima(name):
    context = CLOSED[name]
    k = context.size
    rounds = _rounds(cross_section(context.matrix()), np.ones(k), 16)
    floor = lower_bound_risk_at_uniform(context)
    value = min(a.mixture.value for a in rounds) - 1 / k
    bound = max(a.bound for a in rounds) - 1 / k
    assert value == pytest.approx(floor, rel=1e-4)
    assert bound == pytest.approx(floor, rel=1e-4)
    assert bound <= value


def test_search_starts_from_known_columns():
    """With the best channel among them, the first round finishes."""
    context = sf.Uniform(6, 1)
    section = cross_section(context.matrix())
    columns = sf.mechanism_for(context).matrix().T
    without = _rounds(section, np.ones(6), 1)[0]
    first = _rounds(section, np.ones(6), 1, known=columns)[0]
    best = lower_bound_risk_at_uniform(context) + 1 / 6
    assert first.mixture.value == pytest.approx(best, rel=1.1e-2)
    assert without.mixture.value > 1.05 * best


# --- rounds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [6, 14], ids=["enumerated", "searched"])
def test_rounds_depend_on_the_seed_alone(k):
    section = cross_section(planar(k, 1, 1.5))
    runs = [_rounds(section, np.ones(k), 4, seed=seed) for seed in (7, 7, 8)]
    for one, two in zip(runs[0], runs[1], strict=True):
        assert one.rays.tobytes() == two.rays.tobytes()
        assert one.mixture.theta.tobytes() == two.mixture.theta.tobytes()
        assert one.bound == two.bound
    assert runs[0][-1].rays.tobytes() != runs[2][-1].rays.tobytes()


@pytest.mark.parametrize("E", [*MATRICES.values(), planar(14, 1, 2.0), one_way(14, 2), star(10, 3)])
def test_every_round_mixes_members_to_a_channel(E):
    """A search may stop after any round."""
    section = cross_section(E)
    for solution in _rounds(section, np.ones(section.size), 5):
        assert np.isfinite(solution.rays).all()
        assert np.abs(solution.mixture.theta @ solution.rays - 1).max() < 1e-8
        np.testing.assert_allclose(section.cone.lower(solution.rays), solution.rays, rtol=1e-12)
        assert np.isfinite(solution.bound)


@pytest.mark.parametrize(
    ("E", "certified"), [(chain(12, 1), True), (chain(16, 1), True), (chain(17, 1), False)]
)
def test_small_or_sparse_matrices_get_certified_bounds(E, certified):
    """In a chain, each symbol has a promise against the next only: few promises, few rays."""
    assert _rounds(cross_section(E), np.ones(len(E)), 1)[0].certified is certified


def test_thirteen_dense_symbols_are_not_enumerated():
    assert not search._is_enumerable(asymmetric(13, 1))
    assert search._is_enumerable(asymmetric(12, 1))


def test_too_many_rays_fall_back_to_estimates(monkeypatch):
    monkeypatch.setattr(search, "_MAX_RAYS", 50)
    assert not _rounds(cross_section(asymmetric(6, 1)), np.ones(6), 1)[0].certified
    assert _rounds(cross_section(asymmetric(4, 1)), np.ones(4), 1)[0].certified


def test_estimated_bound_is_close_to_the_certified_one(monkeypatch):
    section = cross_section(planar(7, 2, 2.0))
    exact = _rounds(section, np.ones(7), 12)[-1]
    monkeypatch.setattr(search, "_MAX_ENUMERATED_SIZE", 1)
    last_round = _rounds(section, np.ones(7), 30)[-1]
    assert (exact.certified, last_round.certified) == (True, False)
    assert last_round.mixture.value == pytest.approx(exact.mixture.value, rel=3e-3)
    assert last_round.bound == pytest.approx(exact.bound, rel=3e-3)


def test_ties_do_not_stop_convergence():
    for E in (equal(8, 1.0), line(8, 1.0), np.kron(1 - np.eye(4), np.ones((2, 2))) + equal(8, 0.5)):
        rounds = _rounds(cross_section(np.where(np.eye(8), 0, E)), np.ones(8), 14)
        assert min(a.mixture.value for a in rounds) <= max(a.bound for a in rounds) * (1 + 1e-4)
