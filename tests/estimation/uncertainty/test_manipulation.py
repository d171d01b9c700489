"""No set of forged reports moves an estimate beyond its bound, and some reach it."""

from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.errors import InvalidArgument
from sfumato.estimation.uncertainty import manipulation as module
from sfumato.estimation.uncertainty.manipulation import ManipulationBounds
from sfumato.foundation.formatting import format_upper_bound
from sfumato.foundation.simplex import project_groups_weighted
from sfumato.survey import results_as_json
from support.mechanism_examples import ALL_REPRESENTATIVES, REPRESENTATIVES

SMALL = [
    mechanism
    for mechanism in ALL_REPRESENTATIVES
    if 1 < mechanism.inputs <= 5 and mechanism.outputs <= 9
]
SEVERAL = [mechanism for mechanism in ALL_REPRESENTATIVES if mechanism.inputs > 1]


def _tally(mechanism, counts):
    return sf.Tally(np.asarray(counts, dtype=np.int64), mechanism.fingerprint)


def _draw_counts(mechanism, reports, seed):
    random = np.random.default_rng(seed)
    q = np.maximum(mechanism.forward(random.dirichlet(np.full(mechanism.inputs, 0.5))), 0)
    return random.multinomial(reports, q / q.sum())


def manipulation_of(mechanism, tally, decoder, fakes):
    return ManipulationBounds.from_tally(mechanism, tally, decoder).for_fake_count(fakes)


def decoded_bound(mechanism, tally, decoder, fakes):
    return manipulation_of(mechanism, tally, decoder, fakes).decoded


def _total_variation(first, second):
    return np.abs(first - second).sum() / 2


# --- the unbiased estimate ------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", SMALL, ids=repr)
@pytest.mark.parametrize("m", [1, 2, 3])
def test_forgery_bounds_hold_and_are_attained(mechanism, m):
    """All multisets of m reports, replacing all multisets of m people, among 7 others."""
    honest = _draw_counts(mechanism, 7, m)
    n = 7 + m
    k = mechanism.inputs
    A = mechanism.scores.matrix()
    bound = manipulation_of(
        mechanism, _tally(mechanism, honest + _count(mechanism, [0] * m)), sf.decoders.Unbiased(), m
    )
    forged = np.array(
        [
            A[:, list(sent)].sum(axis=1)
            for sent in combinations_with_replacement(range(A.shape[1]), m)
        ]
    )
    held = np.array(
        [np.bincount(who, minlength=k) for who in combinations_with_replacement(range(k), m)]
    )
    moved = (forged[:, None, :] - held[None, :, :]) / n
    scale = 1e-9 * np.abs(A).max()
    assert (moved.max(axis=(0, 1)) <= bound.up + scale).all()
    assert (-moved.min(axis=(0, 1)) <= bound.down + scale).all()
    np.testing.assert_allclose(moved.max(axis=(0, 1)), bound.up, atol=scale)
    np.testing.assert_allclose(-moved.min(axis=(0, 1)), bound.down, atol=scale)
    worst = np.abs(moved).sum(axis=-1).max() / 2
    assert worst * (1 - 1e-9) <= bound.total_variation <= worst * 1.01


def _count(mechanism, reports):
    return np.bincount(reports, minlength=mechanism.outputs)


def test_bounds_are_proportional_to_fakes():
    mechanism = sf.HighLowResponse(sf.HighLow(6, [1, 4], 1))
    tally = _tally(mechanism, _draw_counts(mechanism, 1000, 0))
    one, ten = (manipulation_of(mechanism, tally, sf.decoders.Unbiased(), m) for m in (1, 10))
    np.testing.assert_allclose(10 * one.up, ten.up)
    np.testing.assert_allclose(10 * one.down, ten.down)
    assert 10 * one.largest_shift == pytest.approx(ten.largest_shift)
    assert 10 * one.total_variation == pytest.approx(ten.total_variation)
    assert ten.largest_shift == max(ten.up.max(), ten.down.max())


# --- decoded frequencies --------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", SEVERAL, ids=repr)
@pytest.mark.parametrize("decoder", [sf.decoders.Projection(), sf.decoders.Unbiased()])
def test_decoded_bound_holds_for_exchanged_reports(mechanism, decoder):
    """Replace reports by the best and the worst report for each symbol, and by random ones."""
    n = 200
    A = mechanism.scores.matrix()
    for m in (1, 10, 60):
        honest = _draw_counts(mechanism, n - m, m)
        sets = [np.full(m, y) for y in {*A.argmax(axis=1).tolist(), *A.argmin(axis=1).tolist()}][
            :12
        ]
        sets += [np.random.default_rng(seed).integers(0, mechanism.outputs, m) for seed in range(4)]
        tallies = [_tally(mechanism, honest + _count(mechanism, reports)) for reports in sets]
        pictures = [decoder.decode(mechanism, tally).frequencies for tally in tallies]
        bounds = [decoded_bound(mechanism, tally, decoder, m) for tally in tallies]
        for picture, bound in zip(pictures, bounds, strict=True):
            assert max(_total_variation(picture, other) for other in pictures) <= bound + 1e-9


def test_projection_bound_is_not_loose():
    """Two fakes replace two reports, with nothing clipped: as far as the two furthest columns."""
    mechanism = sf.PlainResponse(sf.Uniform(7, 1.0), sf.CyclicDesign(7, ((0, 1, 3),)))
    even = np.full(7, 10_000)
    decoder = sf.decoders.Projection()
    tallies = [_tally(mechanism, even + _count(mechanism, [y] * 2)) for y in range(7)]
    pictures = [decoder.decode(mechanism, tally).frequencies for tally in tallies]
    furthest = max(_total_variation(one, other) for one in pictures for other in pictures)
    assert furthest > 0.4 * decoded_bound(mechanism, tallies[0], decoder, 2)


@given(st.integers(0, 10**6))
@settings(max_examples=300, deadline=None)
def test_projection_never_moves_points_apart(seed):
    """The lemma behind the bound: fixed weights, group by group, in total variation."""
    random = np.random.default_rng(seed)
    k = int(random.integers(2, 9))
    groups = int(random.integers(1, 4))
    group_of = random.integers(0, groups, k)
    d = random.exponential(size=k) + 1e-3
    points = []
    for _ in range(2):
        v = random.normal(size=k)
        sums = np.bincount(group_of, v, minlength=groups)
        v += (np.abs(sums) - sums)[group_of] / np.maximum(
            np.bincount(group_of, minlength=groups), 1
        )[group_of]
        points.append(
            (v, project_groups_weighted(v, group_of, np.bincount(group_of, v, minlength=groups), d))
        )
    (v, p), (v2, p2) = points
    assert _total_variation(p, p2) <= _total_variation(v, v2) + 1e-9


def test_lemma_fails_for_projection_onto_a_fixed_total():
    """Counterexample: the lemma needs points with equal sums."""
    everybody = np.zeros(3, dtype=np.int64)
    total = np.ones(1)
    d = np.ones(3)
    v = np.array([0.4, 0.3, 0.3])
    v2 = np.array([1.4, 0.3, 0.3])
    p, p2 = (project_groups_weighted(each, everybody, total, d) for each in (v, v2))
    assert _total_variation(p, p2) > 1.1 * _total_variation(v, v2)


@pytest.mark.parametrize(
    "mechanism",
    [sf.HighLowResponse(sf.HighLow(6, [1, 4, 5], 1)), *REPRESENTATIVES[sf.GroupResponse]],
)
def test_variable_weights_cost_the_negative_mass(mechanism):
    tally = _tally(mechanism, _draw_counts(mechanism, 300, 5))
    negative = np.maximum(-mechanism.scores.unbiased(tally), 0).sum()
    result = decoded_bound(mechanism, tally, sf.decoders.Projection(), 3)
    assert result == pytest.approx(
        min(1, 3 / 300 * mechanism.scores.reach.max_absolute_sum + negative), abs=1e-6
    )


def test_even_blocks_have_fixed_weights():
    alike = sf.BlockResponse(sf.Blocks([0] * 7 + [1] * 7, 1), sf.CyclicDesign(7, ((0, 1, 3),)))
    assert module._weights_are_fixed(alike, _tally(alike, _draw_counts(alike, 300, 1)))
    mixed = sf.GroupResponse(sf.Tiers([0, 0, 0, 1, 1, 2, 2], [1, 2, "inf"]))
    assert not module._weights_are_fixed(mixed, _tally(mixed, _draw_counts(mixed, 300, 1)))


# --- fake people ----------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", SEVERAL, ids=repr)
@pytest.mark.parametrize("decoder", [sf.decoders.Projection(), sf.decoders.Unbiased()])
def test_decoded_bound_holds_for_added_reports(mechanism, decoder):
    n = 200
    A = mechanism.scores.matrix()
    for m in (1, 10, 120, 199):
        alone = _tally(mechanism, _draw_counts(mechanism, n - m, m))
        for y in [*A.argmax(axis=1).tolist()[:3], *A.argmin(axis=1).tolist()[:3]]:
            with_fakes = _tally(mechanism, alone.counts + _count(mechanism, [y] * m))
            first, second = (
                decoder.decode(mechanism, tally).frequencies for tally in (alone, with_fakes)
            )
            assert (
                _total_variation(first, second)
                <= decoded_bound(mechanism, with_fakes, decoder, m) + 1e-9
            )


@pytest.mark.parametrize("mechanism", SEVERAL, ids=repr)
def test_mean_shift_by_added_reports_is_bounded(mechanism):
    """The others' estimate is unbiased, so the mean shift is ``m/n (A[x, y] − p_x)``."""
    A = mechanism.scores.matrix()
    m = 3
    n = 40
    bound = manipulation_of(
        mechanism, _tally(mechanism, _draw_counts(mechanism, n, 0)), sf.decoders.Unbiased(), m
    )
    crowds = [
        *np.eye(mechanism.inputs)[:5],
        *np.random.default_rng(3).dirichlet(np.ones(mechanism.inputs), 5),
    ]
    slack = 1e-9 * np.abs(A).max()
    for p in crowds:
        q = np.maximum(mechanism.forward(p), 0)
        shift = m / n * (A - (A @ q)[:, None])
        assert (shift <= bound.up[:, None] + slack).all()
        assert (-shift <= bound.down[:, None] + slack).all()
        assert np.abs(shift).sum(axis=0).max() / 2 <= bound.total_variation + slack


def test_single_shifts_may_exceed_the_mean_bound():
    """Counterexample: the bound holds on average only."""
    mechanism = sf.PlainResponse(sf.Uniform(3, 1.0))
    A = mechanism.scores.matrix()
    alone = int(A[0].argmin())
    target = int(A[0].argmax())
    bound = manipulation_of(
        mechanism, _tally(mechanism, _count(mechanism, [alone, target])), sf.decoders.Unbiased(), 1
    )
    assert (A[0, target] - A[0, alone]) / 2 > 1.05 * bound.up[0]


@pytest.mark.parametrize("decoder", ["auto", "likelihood", "empirical-bayes"])
def test_other_decoders_have_no_bound(decoder):
    mechanism = sf.PlainResponse(sf.Uniform(5, 1.0))
    result = sf.estimate(
        mechanism, _tally(mechanism, _draw_counts(mechanism, 300, 1)), decoder=decoder
    ).manipulation(3)
    assert result.decoded is None
    assert f"No bound is known for the decoder {decoder!r}" in result.summary()
    assert result.to_dict()["decoded"] is None


# --- texts ----------------------------------------------------------------------------------------


def test_estimate_bounds_manipulation():
    mechanism = sf.PlainResponse(sf.Uniform(["a", "b", "c"], 1.0))
    estimate = sf.estimate(mechanism, _tally(mechanism, [400, 200, 200, 200]), decoder="projection")
    result = estimate.manipulation(10)
    assert list(result.labels) == ["a", "b", "c"]
    assert (result.fake_count, result.reports, result.decoder) == (10, 1000, "projection")
    np.testing.assert_allclose(result.up, 0.01 * mechanism.scores.reach.up)
    assert repr(result) == result.summary()
    assert result.to_dict() == {
        "fakes": 10,
        "share": result.largest_shift,
        "total_variation": result.total_variation,
        "decoded": result.decoded,
    }


def test_every_bound_names_its_reference():
    mechanism = sf.PlainResponse(sf.Uniform(["a", "b", "c"], 1.0))
    estimate = sf.estimate(mechanism, _tally(mechanism, [400, 200, 200, 200]), decoder="projection")
    ten, one = (estimate.manipulation(m).summary() for m in (10, 1))
    assert (
        "Compared with honest reporting, on average, 10 fake people among 1,000 could have "
        "moved " in ten
    )
    assert (
        "Compared with any other 10 reports in place of the fake ones, the decoded estimate "
        "(projection) could have moved by at most" in ten
    )
    assert (
        "Compared with honest reporting, on average, 1 fake person among 1,000 could have "
        "moved " in one
    )
    assert (
        "Compared with any other report in place of the fake one, the decoded estimate "
        "(projection) could have moved by at most" in one
    )


@pytest.mark.parametrize("fakes", [-1, 1001, 1.5, True, "10", None])
def test_invalid_fakes_are_rejected(fakes):
    mechanism = sf.PlainResponse(sf.Uniform(["a", "b", "c"], 1.0))
    estimate = sf.estimate(mechanism, _tally(mechanism, [400, 200, 200, 200]))
    with pytest.raises(InvalidArgument, match="from 0 to the number of reports, 1000"):
        estimate.manipulation(fakes)


def test_zero_fakes_move_nothing():
    mechanism = sf.PlainResponse(sf.Uniform(["a", "b", "c"], 1.0))
    result = sf.estimate(
        mechanism, _tally(mechanism, [400, 200, 200, 200]), decoder="projection"
    ).manipulation(0)
    assert (result.largest_shift, result.total_variation, result.decoded) == (0, 0, 0)


def test_plan_mentions_fake_reports():
    plan = sf.plan(sf.Uniform(20, 1.0), people=1000)
    reach = plan.row.mechanism.scores.reach
    document = plan.to_dict()["forged"]
    assert document == {
        "of_reports": 0.01,
        "share": pytest.approx(reach.max_shift / 100),
        "total_variation": pytest.approx(reach.total_variation / 100),
    }
    shift = format_upper_bound(document["share"])
    assert f"can move the unbiased estimate of a share by up to {shift}." in plan.summary()
    assert "are fake" not in sf.plan(sf.Uniform(1, 1.0), people=1000).summary()


def test_results_list_the_effect_of_1_10_and_100_fakes():
    survey = sf.Survey("lunch", sf.Uniform(["a", "b", "c"], 1.0))
    for reports, fakes in ((5, [1]), (60, [1, 10]), (3000, [1, 10, 100])):
        estimate = survey.estimate(
            survey.tally(survey.privatize(["a", "b", "b"] * (reports // 3) + ["c"] * (reports % 3)))
        )
        document = results_as_json(survey, estimate)["manipulation"]
        assert [each["fakes"] for each in document] == fakes
        assert document[-1] == estimate.manipulation(fakes[-1]).to_dict()
