"""Slow designs: more symbols, many matrices, and the quality of estimated gaps."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import sfumato as sf
from sfumato.designer.exponential import exponential_response
from sfumato.designer.search import search
from sfumato.planning import ye_barg_bound
from support.matrices import (
    asymmetric,
    chain,
    closed,
    cross_section,
    equal,
    free_rows,
    line,
    mixed,
    one_way,
    planar,
    star,
    without,
)

pytestmark = pytest.mark.slow


def _check_sound(result, context):
    sf.certify(result.mechanism, context)
    assert result.risk == pytest.approx(
        float(result.weights @ result.mechanism.scores.variances(result.prior, 1)), rel=1e-9
    )
    assert result.lower_bound <= result.risk
    assert np.isfinite(result.lower_bound)


@pytest.mark.parametrize("k", [11, 12])
def test_uniform_contexts_meet_ye_and_barg(k):
    """By search alone, without closed forms."""
    section = cross_section(equal(k, 1.0))
    value = np.inf
    bound = 0.0
    with threadpool_limits(1):
        for number, answer in enumerate(
            search.search_rounds(section, np.ones(k), 0, np.empty((0, k)))
        ):
            value = min(value, answer.mixture.value)
            bound = max(bound, answer.bound)
            if value - 1 / k <= (bound - 1 / k) * (1 + 1e-5) or number == 60:
                break
    assert value - 1 / k == pytest.approx(ye_barg_bound(k, 1.0), rel=1e-4)
    assert bound - 1 / k == pytest.approx(ye_barg_bound(k, 1.0), rel=1e-4)


@pytest.mark.parametrize(
    ("E", "risk"),
    [(planar(10, 1, 2.0), 99.5765), (asymmetric(10, 5), 34.7632)],
    ids=["planar", "asymmetric"],
)
def test_risks_match_an_independent_program(E, risk):
    result = sf.design(sf.PrivacyMatrix(E))
    assert result.certified
    assert result.risk == pytest.approx(risk, rel=1e-4)
    assert result.lower_bound == pytest.approx(risk, rel=1e-4)


def _any_matrix(seed):
    """Return a matrix of a random family, size and scale."""
    random = np.random.default_rng(seed)
    k = int(random.integers(3, 10))
    family = random.integers(9)
    E = [
        lambda: asymmetric(k, seed),
        lambda: planar(k, seed, 2.0),
        lambda: line(k, 1.0),
        lambda: mixed(k, seed, 0.1, 10.0),
        lambda: free_rows(k, seed, int(random.integers(1, k))),
        lambda: one_way(k, seed),
        lambda: chain(k, seed),
        lambda: star(k, seed),
        lambda: without(asymmetric(k, seed), random.random((k, k)) < 0.85),
    ][family]()
    return np.minimum(E, 30.0, where=np.isfinite(E), out=E) * np.exp(
        random.uniform(np.log(0.05), np.log(1.3))
    )


@pytest.mark.parametrize("seed", range(120))
def test_random_matrices_priors_and_weights(seed):
    context = sf.PrivacyMatrix(_any_matrix(seed))
    random = np.random.default_rng(1000 + seed)
    k = context.size
    prior = random.dirichlet(np.full(k, 0.7))
    weights = np.exp(random.uniform(-2, 2, k))
    result = sf.design(context, prior=prior, weights=weights, seed=seed)
    _check_sound(result, context)
    assert result.certified
    assert result.gap < 1e-4
    rival = exponential_response(context)
    assert result.lower_bound <= float(result.weights @ rival.scores.variances(result.prior, 1))


@pytest.mark.parametrize("seed", range(40))
def test_search_may_stop_after_the_first_round(seed):
    context = sf.PrivacyMatrix(_any_matrix(200 + seed))
    result = sf.design(context, time_limit=1e-9)
    _check_sound(result, context)
    assert result.round_count <= 3


@pytest.mark.parametrize("seed", range(6))
def test_estimated_bounds_are_close_to_certified_ones(seed, monkeypatch):
    """Matrices of nine symbols, searched as if they had too many rays."""
    E = planar(9, seed, 2.0) if seed % 2 else asymmetric(9, seed)
    context = sf.PrivacyMatrix(E)
    certified = sf.design(context)
    monkeypatch.setattr(search, "_MAX_ENUMERATED_SIZE", 1)
    estimated = sf.design(context)
    assert (certified.certified, estimated.certified) == (True, False)
    assert estimated.risk >= certified.lower_bound
    assert estimated.risk == pytest.approx(certified.risk, rel=3e-3)
    assert estimated.lower_bound == pytest.approx(certified.lower_bound, rel=3e-3)


@pytest.mark.parametrize("k", [16, 24, 32])
def test_designs_beyond_enumeration(k):
    context = sf.PrivacyMatrix(planar(k, 1, 2.0))
    result = sf.design(context, time_limit=60)
    _check_sound(result, context)
    assert not result.certified
    assert result.gap < 0.1
    assert result.risk * 8 < exponential_response(context).scores.risk(result.prior)


@pytest.mark.parametrize("k", [11, 12])
def test_all_rays_of_twelve_symbols(k):
    """A line has exactly ``2^(k−1)`` rays: every step goes up or down."""
    from sfumato.designer.search.rays import wider_rays

    E = closed(line(k, 1.0))
    rays = np.unique(np.exp(wider_rays(E, 10**6)).round(4), axis=0)
    assert len(rays) == 2 ** (k - 1)
    result = sf.design(sf.PrivacyMatrix(E), time_limit=120)
    assert result.certified
    assert result.gap < 1e-4


def test_largest_searched_matrix():
    context = sf.PrivacyMatrix(planar(128, 1, 2.0))
    result = sf.design(context, time_limit=20)
    _check_sound(result, context)
    assert result.stop_reason == "time limit"
    assert result.risk < exponential_response(context).scores.risk(result.prior)
