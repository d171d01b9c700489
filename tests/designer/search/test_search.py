"""The search: its bounds hold for every channel, its rounds are the same each time, and a dropped ray would show."""

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


# --- the bound -------------------------------------------------------------------------------------------------------


def _rounds_of(E):
    crowd, weights = _crowd_and_weights(len(E), 0)
    rounds = _rounds(cross_section(E, crowd), weights, 12)
    assert all(answer.certified for answer in rounds)
    return rounds


def _best_value(E):
    """Of mixtures that are channels."""
    return min(
        a.mixture.value for a in _rounds_of(E) if np.abs(a.mixture.theta @ a.rays - 1).max() < 1e-8
    )


def _highest_bound(E):
    return max(answer.bound for answer in _rounds_of(E))


@pytest.mark.parametrize("E", MATRICES.values(), ids=MATRICES)
def test_bounds_of_all_rounds_are_below_all_mixtures_and_meet_them_in_the_end(E):
    assert 1 - 1e-5 <= _highest_bound(E) / _best_value(E) <= 1 + 1e-9


@pytest.fixture(scope="module")
def best_values():
    return [_best_value(E) for E in MATRICES.values()]


def _wrong_bounds(best_values):
    """How many matrices have a bound above the value of a channel."""
    return sum(
        _highest_bound(E) > best * (1 + 1e-6)
        for E, best in zip(MATRICES.values(), best_values, strict=True)
    )


def test_a_list_of_rays_with_gaps_would_be_seen(best_values, monkeypatch):
    """A twin that must fail: only half of the rays are priced."""
    whole = search.wider_rays
    monkeypatch.setattr(search, "wider_rays", lambda E, limit: whole(E, limit)[::2])
    assert _wrong_bounds(best_values) >= 4


def test_a_largest_value_that_was_only_searched_for_would_be_seen(best_values, monkeypatch):
    """Another: δ is the largest φ of the pool, and called certified."""

    def pool_only(self, price, rays, mixture, gap):
        columns, _ = honest(self, price, rays, mixture, gap)
        return columns, float(price(rays).max())

    honest = search._ExactPricing.best
    monkeypatch.setattr(search._ExactPricing, "best", pool_only)
    assert _wrong_bounds(best_values) >= 4


def test_a_narrower_cone_would_be_seen(best_values, monkeypatch):
    """A third: rays of a matrix that is a thousandth too small."""
    whole = search.wider_rays
    monkeypatch.setattr(search, "wider_rays", lambda E, limit: whole(E * 0.999, limit))
    assert _wrong_bounds(best_values) >= 4


@pytest.mark.parametrize("E", MATRICES.values(), ids=MATRICES)
def test_no_channel_is_below_a_certified_bound(E):
    """Random ones, mixed of members of the cone and what they leave of the column of ones."""
    crowd, weights = _crowd_and_weights(len(E), 3)
    section = cross_section(E, crowd)
    bound = max(answer.bound for answer in _rounds(section, weights, 8))
    random = np.random.default_rng(4)
    values = []
    for _ in range(50):
        members = section.cone.lower(
            np.exp(random.uniform(-3, 0, (2 * section.size, section.size)))
        )
        columns = halves(section.cone, np.vstack([members, section.cone.shrink]))
        theta = np.repeat(random.dirichlet(np.full(len(columns) // 2, 0.5)), 2)
        channel = columns * theta[:, None]
        np.testing.assert_allclose(channel.sum(axis=0), 1, rtol=1e-12)
        values.append(value_of(channel, crowd, weights))
    assert min(values) >= bound


@pytest.mark.parametrize("seed", range(6))
def test_the_exponential_mechanism_is_above_the_bound(seed):
    E = asymmetric(5, 20 + seed) * np.random.default_rng(seed).uniform(0.2, 4)
    crowd, weights = _crowd_and_weights(5, seed)
    bound = max(answer.bound for answer in _rounds(cross_section(E, crowd), weights, 8))
    known = float(weights @ crowd**2)
    rival = float(weights @ exponential_response(sf.PrivacyMatrix(E)).variances(crowd, 1)) + known
    assert bound < rival


# --- against closed forms --------------------------------------------------------------------------------------------

CLOSED = {
    "uniform 4": sf.Uniform(4, 1),
    "uniform 7": sf.Uniform(7, 2),
    "uniform 9": sf.Uniform(9, "0.5"),
    "high-low 3 of 8": sf.HighLow(8, [0, 1, 2], 1),
    "high-low 5 of 10": sf.HighLow(10, range(5), 1),
    "blocks 4 4": sf.Blocks([0] * 4 + [1] * 4, 1),
    "blocks 3 5 2": sf.Blocks([0] * 3 + [1] * 5 + [2] * 2, 1),
}


@pytest.mark.parametrize("context", CLOSED.values(), ids=CLOSED)
def test_the_general_search_meets_what_is_known(context):
    k = context.size
    rounds = _rounds(cross_section(context.matrix()), np.ones(k), 16)
    floor = lower_bound_risk_at_uniform(context)
    value, bound = (
        min(a.mixture.value for a in rounds) - 1 / k,
        max(a.bound for a in rounds) - 1 / k,
    )
    assert value == pytest.approx(floor, rel=1e-4)
    assert bound == pytest.approx(floor, rel=1e-4)
    assert bound <= value


def test_known_columns_are_a_start():
    """With the best channel among them, the first round is at the end already."""
    context = sf.Uniform(6, 1)
    section = cross_section(context.matrix())
    columns = sf.mechanism_for(context).matrix().T
    without, first = (
        _rounds(section, np.ones(6), 1)[0],
        _rounds(section, np.ones(6), 1, known=columns)[0],
    )
    best = lower_bound_risk_at_uniform(context) + 1 / 6
    assert first.mixture.value == pytest.approx(best, rel=1.1e-2)
    assert without.mixture.value > 1.05 * best


# --- rounds ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [6, 14], ids=["enumerated", "searched"])
def test_the_same_seed_gives_the_same_rounds(k):
    section = cross_section(planar(k, 1, 1.5))
    runs = [_rounds(section, np.ones(k), 4, seed=seed) for seed in (7, 7, 8)]
    for one, two in zip(runs[0], runs[1], strict=True):
        assert one.rays.tobytes() == two.rays.tobytes()
        assert one.mixture.theta.tobytes() == two.mixture.theta.tobytes()
        assert one.bound == two.bound
    assert runs[0][-1].rays.tobytes() != runs[2][-1].rays.tobytes()


@pytest.mark.parametrize("E", [*MATRICES.values(), planar(14, 1, 2.0), one_way(14, 2), star(14, 3)])
def test_every_round_is_a_channel(E):
    """Of members of the cone, that add up to 1: so that a search may stop after any round."""
    section = cross_section(E)
    for answer in _rounds(section, np.ones(section.size), 5):
        assert np.isfinite(answer.rays).all()
        assert np.abs(answer.mixture.theta @ answer.rays - 1).max() < 1e-8
        np.testing.assert_allclose(section.cone.lower(answer.rays), answer.rays, rtol=1e-12)
        assert np.isfinite(answer.bound)


@pytest.mark.parametrize(
    ("E", "certified"), [(star(12, 1), True), (star(13, 1), True), (star(17, 1), False)]
)
def test_bounds_are_certified_up_to_twelve_symbols_and_some_more_with_few_promises(E, certified):
    """Few rays, so that it is quick: symbols that owe to the first alone."""
    assert _rounds(cross_section(E), np.ones(len(E)), 1)[0].certified is certified


def test_thirteen_symbols_with_many_promises_are_not_enumerated():
    assert not search._is_enumerable(asymmetric(13, 1))
    assert search._is_enumerable(asymmetric(12, 1))


def test_a_matrix_with_too_many_rays_is_searched(monkeypatch):
    monkeypatch.setattr(search, "_MAX_RAYS", 50)
    assert not _rounds(cross_section(asymmetric(6, 1)), np.ones(6), 1)[0].certified
    assert _rounds(cross_section(asymmetric(4, 1)), np.ones(4), 1)[0].certified


def test_an_estimated_bound_comes_close_to_a_certified_one(monkeypatch):
    section = cross_section(planar(7, 2, 2.0))
    exact = _rounds(section, np.ones(7), 12)[-1]
    monkeypatch.setattr(search, "_MAX_ENUMERATED", 1)
    searched = _rounds(section, np.ones(7), 30)[-1]
    assert (exact.certified, searched.certified) == (True, False)
    assert searched.mixture.value == pytest.approx(exact.mixture.value, rel=3e-3)
    assert searched.bound == pytest.approx(exact.bound, rel=3e-3)


def test_matrices_full_of_ties_are_no_trouble():
    for E in (equal(8, 1.0), line(8, 1.0), np.kron(1 - np.eye(4), np.ones((2, 2))) + equal(8, 0.5)):
        rounds = _rounds(cross_section(np.where(np.eye(8), 0, E)), np.ones(8), 14)
        assert min(a.mixture.value for a in rounds) <= max(a.bound for a in rounds) * (1 + 1e-4)
