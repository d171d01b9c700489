"""Lower and upper bounds of the risk: against exact risks, naive versions and cheating channels."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.codes import RandomizedCode
from sfumato.designer.bounds import (
    high_low_bound,
    lower_bound_risk,
    lower_bound_risk_at_uniform,
    ye_barg_bound,
)
from sfumato.errors import InvalidArgument, InvalidContext, NoClosedForm, NotEnoughReports
from sfumato.mechanisms import TableResponse
from sfumato.planning import people_upper_bound, sample_complexity, upper_bounds
from support.mechanism_examples import ALL_REPRESENTATIVES, REPRESENTATIVES
from support.mutants import OddsOnePerCentHigh

inf = math.inf
PAPERS = [
    mechanism
    for mechanism in ALL_REPRESENTATIVES
    if type(mechanism) in (sf.PlainResponse, sf.BlockResponse, sf.HighLowResponse)
    and isinstance(mechanism.context, sf.Uniform | sf.HighLow | sf.Blocks)
]
HADAMARD = [mechanism for mechanism in PAPERS if "hadamard" in str(mechanism.to_record())]
NEARLY_ONE = 1 + 1e-9


def distributions(k, rng, count=20):
    """Return the corners, the uniform distribution, and random ones from skewed to flat."""
    yield from np.eye(k)
    yield np.full(k, 1 / k)
    for concentration in np.geomspace(0.05, 20, count):
        yield rng.dirichlet(np.full(k, concentration))


def cramer_rao(Q, p):
    """Return the least risk at p of any unbiased estimate: the trace of J⁻¹ on sums of 0."""
    k = len(p)
    q = p @ Q
    J = (Q[:, q > 0] / q[q > 0]) @ Q[:, q > 0].T
    return np.trace(np.linalg.inv(tangent(k) @ J @ tangent(k).T))


def tangent(k):
    """Return an orthonormal basis of the vectors that add up to 0."""
    return np.linalg.svd(np.ones((1, k)))[2][1:]


def columns_within(E):
    """Return, for every set of symbols, the least column that keeps E and is 1 on the set."""
    for chosen in itertools.product((False, True), repeat=len(E)):
        if any(chosen):
            yield np.exp(-E[list(chosen)]).max(axis=0)


def best_channel(E, rounds=60):
    """Minimise tr J⁻¹ at uniform p over channels of such columns (Frank and Wolfe)."""
    from scipy.optimize import linprog

    k = len(E)
    V = np.array(list(columns_within(E))).T
    B = tangent(k) @ V * np.sqrt(k / V.sum(axis=0))
    weights = linprog(np.zeros(V.shape[1]), A_eq=V, b_eq=np.ones(k)).x
    J = np.eye(k - 1)  # equal weights first, then more for directions with little information
    for done in range(rounds):
        said = (np.linalg.solve(J, B) ** 2).sum(axis=0)
        best = linprog(-said / said.max(), A_eq=V, b_eq=np.ones(k)).x
        weights += 2 / (done + 2) * (best - weights)
        J = (B * weights) @ B.T + 1e-6 * np.eye(k - 1)
    return V * np.maximum(weights, 0)


# --- lower bounds ---------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3, 7, 50])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 30.0])
def test_ye_barg_bound_is_the_minimum_over_set_sizes(k, epsilon):
    e = math.exp(epsilon)
    terms = [
        (k - 1) ** 2 * (w * e + k - w) ** 2 / (k * (e - 1) ** 2 * w * (k - w)) for w in range(1, k)
    ]
    assert ye_barg_bound(k, epsilon) == pytest.approx(min(terms), rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
def test_hadamard_response_exceeds_the_bound_by_cosh_squared(epsilon):
    k = 10**6
    c = 1 / math.tanh(epsilon / 2)
    assert (c**2 * k - 1 / k) / ye_barg_bound(k, epsilon) == pytest.approx(
        math.cosh(epsilon / 2) ** 2, rel=1e-4
    )


def test_ye_barg_bound_at_the_extremes():
    assert ye_barg_bound(1, 1.0) == 0.0
    assert ye_barg_bound(4, inf) == 0.75
    assert ye_barg_bound(4, 800.0) == pytest.approx(0.75)
    assert ye_barg_bound(2, 0.0) == inf


@pytest.mark.parametrize("size", [0, -1, 2.5, True])
def test_ye_barg_bound_rejects_invalid_sizes(size):
    with pytest.raises(InvalidArgument, match="size"):
        ye_barg_bound(size, 1.0)


@pytest.mark.parametrize("epsilon", [-1.0, math.nan])
def test_ye_barg_bound_rejects_invalid_epsilon(epsilon):
    with pytest.raises(InvalidContext, match="epsilon"):
        ye_barg_bound(3, epsilon)


@pytest.mark.parametrize("mechanism", ALL_REPRESENTATIVES, ids=repr)
def test_no_mechanism_beats_the_lower_bound(mechanism):
    k = mechanism.inputs
    assert lower_bound_risk(mechanism.context) <= mechanism.scores.worst_risk() * NEARLY_ONE + 1e-12
    uniform = np.full(k, 1 / k)
    assert (
        lower_bound_risk_at_uniform(mechanism.context)
        <= mechanism.scores.risk(uniform) * NEARLY_ONE + 1e-12
    )


@pytest.mark.parametrize("k", [2, 3, 4])
def test_randomised_response_attains_the_bound_at_large_epsilon(k):
    mechanism = sf.PlainResponse(sf.Uniform(k, 1), RandomizedCode)
    assert mechanism.scores.worst_risk() == pytest.approx(ye_barg_bound(k, 1.0), rel=1e-9)
    assert lower_bound_risk(mechanism.context) == ye_barg_bound(k, 1.0)


def test_blocks_of_optimal_responses_attain_the_bound():
    mechanism = sf.BlockResponse(sf.Blocks([0, 0, 0, 1, 2, 2], 1), RandomizedCode)
    assert mechanism.scores.worst_risk() == pytest.approx(
        lower_bound_risk(mechanism.context), rel=1e-9
    )


def test_channels_that_break_their_promise_beat_the_bound():
    context = sf.Uniform(3, 1)
    cheat = sf.PlainResponse(context, OddsOnePerCentHigh)
    assert cheat.scores.worst_risk() < lower_bound_risk(context) * (1 - 1e-3)
    blocks = sf.Blocks([0, 0, 0, 1, 2, 2], 1)
    assert sf.BlockResponse(blocks, OddsOnePerCentHigh).scores.worst_risk() < lower_bound_risk(
        blocks
    ) * (1 - 1e-3)


CONTEXTS = [
    sf.Uniform(5, 1),
    sf.Blocks([0, 0, 0, 1, 1, 2], 1.5),
    sf.HighLow(6, [0, 2, 5], 0.7),
    sf.PrivacyMatrix([[0, 1, 2, inf], [1, 0, 0.5, inf], [2, 0.3, 0, inf], [1, 1, 1, 0]]),
    sf.Metric([[abs(x - x2) for x2 in range(5)] for x in range(5)], 0.8),
]


@pytest.mark.parametrize("context", CONTEXTS, ids=repr)
def test_best_channel_stays_above_the_bound(context):
    E = context.closure().matrix()
    uniform = np.full(context.size, 1 / context.size)
    floor = lower_bound_risk_at_uniform(context)
    assert floor <= cramer_rao(best_channel(E), uniform) * (1 + 1e-6)
    # Counterexample: with a promise eight times as weak, the same search succeeds.
    assert cramer_rao(best_channel(8 * E), uniform) < floor


def test_best_channels_attain_the_bound_where_it_is_sharp():
    for context in CONTEXTS[:2]:
        uniform = np.full(context.size, 1 / context.size)
        best = cramer_rao(best_channel(context.matrix()), uniform)
        assert best == pytest.approx(lower_bound_risk_at_uniform(context), rel=0.01)


def test_bound_of_blocks_is_the_maximum_over_shares():
    context = sf.Blocks([0] * 4 + [1] * 4 + [2], 1)
    sizes = [4, 4, 1]
    grid = [np.array([i, j, 40 - i - j]) / 40 for i in range(41) for j in range(41 - i)]
    risks = [
        sum(
            share * ye_barg_bound(size, 1.0) + share * (1 - share) / size
            for size, share in zip(sizes, shares, strict=True)
        )
        for shares in grid
    ]
    assert max(risks) <= lower_bound_risk(context) * NEARLY_ONE
    assert lower_bound_risk(context) == pytest.approx(max(risks), rel=1e-3)


def test_matrices_get_the_bound_of_the_structure_they_have():
    for context in (sf.Uniform(6, 1), sf.Blocks([0, 0, 0, 1, 1], 1), sf.HighLow(6, [0, 3, 5], 1)):
        matrix_context = sf.PrivacyMatrix(context.matrix())
        assert lower_bound_risk(matrix_context) == pytest.approx(
            lower_bound_risk(context), rel=1e-12
        )


@pytest.mark.parametrize(("k", "s", "epsilon"), [(6, 3, 0.7), (5, 2, 1), (6, 2, 4), (6, 4, 0.3)])
def test_best_high_low_channel_attains_its_bound(k, s, epsilon):
    context = sf.HighLow(k, range(s), epsilon)
    floor = lower_bound_risk_at_uniform(context)
    best = cramer_rao(best_channel(context.matrix(), rounds=150), np.full(k, 1 / k))
    assert floor <= best * (1 + 1e-9)
    assert floor == pytest.approx(best, rel=2e-3)


def test_high_low_bound_at_other_shares():
    for share in (0.1, 0.5, 0.9):
        mechanism = sf.HighLowResponse(sf.HighLow(5, [0], 1), RandomizedCode)
        p = np.array([share, *[(1 - share) / 4] * 4])
        assert high_low_bound(1, 4, 1.0, share) == pytest.approx(mechanism.scores.risk(p), rel=1e-9)
        cheat = sf.HighLowResponse(sf.HighLow(5, [0], 1), OddsOnePerCentHigh)
        assert cheat.scores.risk(p) < high_low_bound(1, 4, 1.0, share) * (1 - 1e-4)


@pytest.mark.parametrize("mechanism", REPRESENTATIVES[sf.BinaryResponse], ids=repr)
def test_binary_optimum_attains_the_bound(mechanism):
    if isinstance(mechanism.context, sf.HighLow):
        assert mechanism.scores.worst_risk() == pytest.approx(
            lower_bound_risk(mechanism.context), rel=1e-3
        )
    else:
        assert mechanism.scores.worst_risk() == pytest.approx(
            lower_bound_risk(mechanism.context), rel=1e-9
        )


def test_equal_rows_give_an_infinite_bound():
    assert lower_bound_risk(sf.PrivacyMatrix([[0, 0, 1], [0, 0, 1], [1, 1, 0]])) == inf


def test_tiers_are_merged_where_that_is_better():
    tiers = sf.Tiers([0, 0, 1, 1], ["0.9", 1])
    assert lower_bound_risk(tiers) == ye_barg_bound(4, 1.0)
    assert lower_bound_risk(tiers) == pytest.approx(
        lower_bound_risk(sf.PrivacyMatrix(tiers.matrix()))
    )


def test_bound_of_a_union_is_at_least_that_of_its_parts():
    union = sf.union([sf.Uniform(4, 1), sf.HighLow(3, [0, 1], 1)])
    assert lower_bound_risk(union) >= max(lower_bound_risk(part) for part in union.parts)
    assert lower_bound_risk(union) == pytest.approx(
        lower_bound_risk(sf.PrivacyMatrix(union.matrix()))
    )


# --- upper bounds ---------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", HADAMARD, ids=repr)
def test_exact_risks_stay_below_both_upper_bounds(mechanism):
    rng = np.random.default_rng(21)
    n = 1000
    bounds = upper_bounds(mechanism.context, n)
    for p in distributions(mechanism.inputs, rng):
        variances = mechanism.scores.variances(p, n)
        assert variances.sum() <= bounds.tight_l2_squared * NEARLY_ONE
        # E|p̂ − p| ≤ sqrt(Var): half their sum bounds the mean total variation.
        assert np.sqrt(np.maximum(variances, 0)).sum() / 2 <= bounds.tight_tv * NEARLY_ONE
    assert mechanism.scores.worst_risk() / n <= bounds.tight_l2_squared * NEARLY_ONE
    assert bounds.tight_l2_squared <= bounds.paper_l2_squared
    assert bounds.tight_tv <= bounds.paper_tv


def test_upper_bounds_match_the_paper():
    c = (math.e + 1) / (math.e - 1)
    n = 500
    blocks = upper_bounds(sf.Blocks([0, 0, 0, 1, 1], 1), n)
    assert blocks.paper_l2_squared == pytest.approx(12 * 3 / n * c**2)
    assert 2 * blocks.paper_tv == pytest.approx(2 * c * math.sqrt(3 * (9 + 4) / n))
    high_low = upper_bounds(sf.HighLow(10, [0, 1, 2], 1), n)
    assert high_low.paper_l2_squared == pytest.approx((3 * 3 * c**2 + c) / n)
    assert 2 * high_low.paper_tv == pytest.approx(
        math.sqrt(3 * 9 / n * c**2) + math.sqrt(c * 10 / n)
    )


def test_l2_bound_is_tight_for_the_papers_estimator():
    """Over the largest block the paper's own risk is c²k_j − 1/k_j: 1/k_j below the bound."""
    k = 7
    c = (math.e + 1) / (math.e - 1)
    assert upper_bounds(sf.Uniform(k, 1), 1).tight_l2_squared == pytest.approx(c**2 * k)


def test_half_the_noise_is_detected():
    mechanism = sf.PlainResponse(sf.Uniform(16, "0.5"))
    halved = upper_bounds(mechanism.context, 1).tight_l2_squared / 2
    assert mechanism.scores.worst_risk() > halved


@pytest.mark.parametrize(
    "context",
    [sf.Uniform(9, 1), sf.Blocks([0, 0, 1, 1, 1], 2), sf.HighLow(9, [0, 1], 0.5)],
    ids=repr,
)
def test_upper_bound_people_inverts_the_bound(context):
    people = people_upper_bound(context, 0.05)
    assert (
        upper_bounds(context, people).tight_tv <= 0.05 < upper_bounds(context, people - 1).tight_tv
    )


def test_blocks_may_differ_in_epsilon():
    mixed = sf.Blocks([0, 0, 1, 1, 1], [1, 2])
    c = [(math.exp(epsilon) + 1) / (math.exp(epsilon) - 1) for epsilon in (1, 2)]
    assert upper_bounds(mixed, 1).tight_l2_squared == pytest.approx(
        max(2 * c[0] ** 2, 3 * c[1] ** 2)
    )
    assert sample_complexity(mixed, 0.5) == pytest.approx((4 / 1 + 9 / 4) / 0.25)


def test_sample_complexities():
    assert sample_complexity(sf.Uniform(10, 2), 0.1) == pytest.approx(100 / (0.01 * 4))
    assert sample_complexity(sf.Blocks([0, 0, 0, 1], 2), 0.1) == pytest.approx(10 / (0.01 * 4))
    assert sample_complexity(sf.HighLow(10, [0, 1, 2], 2), 0.1) == pytest.approx(
        9 / (0.01 * 4) + 10 / (0.01 * 2)
    )


@pytest.mark.parametrize(
    "bound", [lambda c: upper_bounds(c, 10), lambda c: sample_complexity(c, 0.1)]
)
def test_contexts_without_a_bound_raise(bound):
    for context in (sf.Metric([[0, 1], [1, 0]], 1), sf.Blocks([0, 0, 1], 1, across=3)):
        with pytest.raises(NoClosedForm, match="worst_risk"):
            bound(context)


@pytest.mark.parametrize("error", [0, -0.1, 1.5, math.nan])
def test_errors_outside_total_variation_raise(error):
    for bound in (people_upper_bound, sample_complexity):
        with pytest.raises(InvalidArgument, match="error"):
            bound(sf.Uniform(3, 1), error)


def test_zero_people_raise():
    with pytest.raises(NotEnoughReports):
        upper_bounds(sf.Uniform(3, 1), 0)


# --- the worst risk of a mechanism ----------------------------------------------------------------


def nearest_distribution(v):
    """Project onto the simplex by bisection."""
    low = v.min() - 1
    high = v.max()
    for _ in range(60):
        theta = (low + high) / 2
        low, high = (theta, high) if np.maximum(v - theta, 0).sum() > 1 else (low, theta)
    return np.maximum(v - high, 0)


def climb_risk(mechanism, p):
    """Maximise `risk` by projected gradients; central differences are exact for a quadratic."""
    k = mechanism.inputs
    for _ in range(40):
        steps = 0.1 * np.eye(k)
        gradient = np.array(
            [
                (mechanism.scores.risk(p + step) - mechanism.scores.risk(p - step)) / 0.2
                for step in steps
            ]
        )
        p = nearest_distribution(p + gradient / 4)
    return mechanism.scores.risk(p)


@pytest.mark.parametrize(
    "mechanism", [mechanism for mechanism in ALL_REPRESENTATIVES if mechanism.inputs <= 8], ids=repr
)
def test_worst_risk_matches_projected_gradient_ascent(mechanism):
    rng = np.random.default_rng(22)
    worst = mechanism.scores.worst_risk()
    assert climb_risk(mechanism, rng.dirichlet(np.ones(mechanism.inputs))) == pytest.approx(
        worst, rel=1e-7, abs=1e-9
    )
    for p in distributions(mechanism.inputs, rng):
        assert mechanism.scores.risk(p) <= worst * NEARLY_ONE + 1e-12


def test_gradient_ascent_notices_a_different_risk():
    """Counterexample: the risk at uniform p is not the worst one."""
    mechanism = sf.HighLowResponse(sf.HighLow(6, [0, 1, 2], 1))
    assert (
        climb_risk(mechanism, np.full(6, 1 / 6)) > mechanism.scores.risk(np.full(6, 1 / 6)) * 1.01
    )


@pytest.mark.parametrize("context", [CONTEXTS[0], CONTEXTS[3]], ids=repr)
def test_worst_risk_of_tables_matches_gradient_ascent(context):
    Q = best_channel(context.closure().matrix() * 0.999)
    Q = 0.999 * Q[:, Q.sum(axis=0) > 1e-6]
    rows = [[*map(Fraction, row), 1 - sum(map(Fraction, row))] for row in np.round(Q, 9).tolist()]
    mechanism = TableResponse.from_fractions(context, rows)
    assert climb_risk(mechanism, np.eye(context.size)[0]) == pytest.approx(
        mechanism.scores.worst_risk(), rel=1e-6
    )
    assert lower_bound_risk(context) <= mechanism.scores.worst_risk()
