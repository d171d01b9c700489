"""The lower bounds of Acharya et al. (2020), sections 5 and 6: signs, constants and inequalities.

Everything here is exact, in fractions, but for the binary entropy and the last tests, which
measure.
"""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.codes import HadamardCode, RandomizedCode
from sfumato.errors import InvalidArgument, NoClosedForm
from sfumato.foundation.simplex import total_variation
from sfumato.mechanisms import TableResponse
from sfumato.planning import people_lower_bound, people_upper_bound, sample_complexity
from sfumato.planning.people_bounds import hard_families
from sfumato.randomness import exp_bounds
from support.hard_families import chi_square, explicit_families, subset_lemma_gap
from support.mechanism_examples import ALL_REPRESENTATIVES
from support.mutants import OddsOnePerCentHigh, OneUnitTooMuch

inf = math.inf
MODELS = (sf.Uniform, sf.HighLow, sf.Blocks)
IN_MODELS = [
    m
    for m in ALL_REPRESENTATIVES
    if isinstance(m.context, MODELS) and m.inputs <= 64 and m.outputs <= 1024
]

HIGH_LOW = sf.HighLow(7, [1, 4], 1)
STAR, SENSITIVE, FREE = explicit_families(HIGH_LOW)
PAIRED = (
    *explicit_families(sf.Uniform(6, 1)),
    *explicit_families(sf.Blocks([0, 0, 0, 1, 1, 2], 1)),
    *explicit_families(sf.Blocks([0, 1, 0, 1, 1, 1, 2], [1, 2, 1])),
    SENSITIVE,
    FREE,
)
SMALL = (STAR, *PAIRED)
every_family = pytest.mark.parametrize("family", SMALL, ids=range(len(SMALL)))


def only_family(context):
    (family,) = explicit_families(context)
    return family


def distance(p, p2):
    """Total variation, exactly."""
    return sum(abs(a - b) for a, b in zip(p, p2, strict=True)) / 2


def entropy(share):
    """The binary entropy, in bits."""
    return -sum(part * math.log2(part) for part in (share, 1 - share) if part > 0)


# --- the families --------------------------------------------------------------------------------


@pytest.mark.parametrize("context", [HIGH_LOW, sf.Uniform(9, 1), sf.Blocks([0, 1, 1, 1, 2, 2], 1)])
def test_bounds_describe_the_explicit_families(context):
    for bounds, family in zip(hard_families(context), explicit_families(context), strict=True):
        assert bounds == family.bounds
        assert bounds.max_alpha == family.distance
        assert bounds.separations == Counter(family.separations)


@every_family
def test_members_are_distributions_with_a_zero_at_the_widest(family):
    members = family.members()
    assert all(sum(p) == 1 and min(p) >= 0 for p in members)
    moving = [*family.plus.tolist(), *family.minus.tolist()]
    assert min(p[x] for p in members for x in moving) == 0


@every_family
def test_centre_is_the_mean_of_the_members(family):
    members = family.members()
    means = [sum(column) / len(members) for column in zip(*members, strict=True)]
    assert means == list(family.centre)


def test_high_low_family_is_half_alpha_from_uniform():
    alpha = STAR.distance
    assert min(distance(p, STAR.centre) for p in STAR.members()) >= alpha / 2
    # With the printed plus sign it would not add up.
    z = STAR.signs(0)
    printed = [Fraction(1, 7)] * 7
    printed[1] += alpha * sum(z) / 5
    for x, sign in zip(STAR.plus.tolist(), z, strict=True):
        printed[x] += alpha * sign / 5
    assert sum(printed) != 1


@pytest.mark.parametrize("family", PAIRED, ids=range(len(PAIRED)))
def test_paired_families_are_alpha_from_their_centre(family):
    assert {distance(p, family.centre) for p in family.members()} == {family.distance}


def test_block_family_has_the_papers_steps():
    family = only_family(sf.Blocks([0, 0, 1, 1, 1, 1], 1)).at(Fraction(1, 10))
    assert set(family.steps) == {2 * Fraction(k, 20) * Fraction(1, 10) for k in (2, 4)}
    assert family.distance <= Fraction(4 + 16, 2 * 6 * 4)


@every_family
def test_few_members_are_near_one_another(family):
    """C_α of Lemma 13, as corrected: at most 2^{d h(1/3)} members within α/3, for families of
    equal steps.
    """
    if len(set(family.steps)) > 1:
        family = only_family(sf.Uniform(8, 1))
    members = family.members()
    near = sum(distance(members[0], p) <= family.distance / 3 for p in members)
    assert 1 <= near <= 2 ** (family.dimension * entropy(1 / 3))


def read_signs(family, estimate):
    """Signs from an estimate: which of a pair is larger; or, where all share one partner, who is
    above the centre.
    """
    plus = family.plus
    minus = family.minus
    shared = len(set(minus.tolist())) < family.dimension
    other = np.array([float(family.centre[x]) for x in plus]) if shared else estimate[minus]
    return np.where(estimate[plus] > other, 1, -1)


@every_family
def test_wrong_signs_cost_their_separation(family):
    rng = np.random.default_rng(31)
    w = np.array([float(entry) for entry in family.separations])
    smallest = inf
    for p in family.members():
        p = np.array([float(entry) for entry in p])
        z = read_signs(family, p)
        towards = np.array([float(entry) for entry in family.centre])
        for estimate in (
            rng.dirichlet(np.ones(p.size)),
            1.01 * towards - 0.01 * p,
            p + rng.normal(0, 0.05, p.size),
        ):
            wrong = read_signs(family, estimate) != z
            cost = np.abs(estimate - p).sum() / 2
            assert cost >= w[wrong].sum() - 1e-12
            if wrong.all():
                smallest = min(smallest, cost / w.sum())
    # The bound is sharp for pairs: an estimate just beyond the centre costs little more than all
    # separations.
    assert smallest < (2.5 if family is STAR else 1.02)


def test_contexts_without_families():
    with pytest.raises(NoClosedForm):
        hard_families(sf.Metric([[0, 1], [1, 0]], 1))
    assert hard_families(sf.Uniform(1, 1)) == hard_families(sf.Blocks([0, 1], 1)) == []


@pytest.mark.parametrize("error", [0, -0.1, 1.5, math.nan])
def test_lower_bound_rejects_impossible_errors(error):
    with pytest.raises(InvalidArgument, match="total variation"):
        people_lower_bound(sf.Uniform(3, 1), error)


# --- χ² ------------------------------------------------------------------------------------------


def naive_chi_square(mechanism, family):
    """Return the mean over all members of the χ² distance between reports, in fractions."""
    rows = [mechanism.exact_row(x) for x in range(mechanism.inputs)]

    def reports(p):
        return [
            sum(share * row[y] for share, row in zip(p, rows, strict=True))
            for y in range(mechanism.outputs)
        ]

    q0 = reports(family.centre)
    members = family.members()
    total = Fraction(0)
    for p in members:
        for q, q_0 in zip(reports(p), q0, strict=True):
            if q_0:
                total += (q - q_0) ** 2 / q_0
    return total / len(members)


def response(context, code):
    frame = {
        sf.Uniform: sf.PlainResponse,
        sf.Blocks: sf.BlockResponse,
        sf.HighLow: sf.HighLowResponse,
    }
    return frame[type(context)](context, code)


@pytest.mark.parametrize("code", [HadamardCode, RandomizedCode])
@pytest.mark.parametrize(
    "context", [sf.Uniform(5, 1), sf.Blocks([0, 0, 0, 1, 1, 2], 1), HIGH_LOW], ids=repr
)
def test_chi_square_is_the_mean_over_the_family(context, code):
    mechanism = response(context, code)
    for family in explicit_families(context):
        family = family.at(family.distance / 3)
        assert chi_square(mechanism, family) == naive_chi_square(mechanism, family)


@pytest.mark.parametrize("mechanism", IN_MODELS, ids=repr)
def test_chi_square_stays_within_its_limits(mechanism):
    for family in explicit_families(mechanism.context):
        assert 0 < chi_square(mechanism, family) <= family.limit <= family.paper_limit


@pytest.mark.parametrize("code", [HadamardCode, RandomizedCode])
def test_chi_square_at_64_symbols(code):
    for context in (
        sf.Uniform(64, 1),
        sf.Blocks([x % 9 for x in range(64)], 2),
        sf.HighLow(64, range(20), "0.5"),
    ):
        mechanism = response(context, code)
        for family in explicit_families(context):
            assert 0 < chi_square(mechanism, family) <= family.limit <= family.paper_limit


def random_table(rng, context, outputs=6):
    """A random table that keeps the context, in fractions, tight where the draw went too far."""
    k = context.size
    low = [[None] * k for _ in range(k)]
    for x, x2 in itertools.permutations(range(k), 2):
        epsilon = context.exact_epsilon(x, x2)
        low[x][x2] = (
            exp_bounds(epsilon)[0].limit_denominator(1000) * Fraction(999, 1000)
            if epsilon < inf
            else None
        )
    columns = []
    for _ in range(outputs):
        v = [
            Fraction(int(entry), 1000)
            for entry in rng.integers(1, 1000, k) ** int(rng.integers(1, 3))
        ]
        for _, x, x2 in itertools.product(range(3), range(k), range(k)):
            if x != x2 and low[x][x2] is not None:
                v[x] = min(v[x], low[x][x2] * v[x2])
        columns.append(v)
    largest = max(map(sum, zip(*columns, strict=True)))
    rows = [[entry / (2 * largest) for entry in row] for row in zip(*columns, strict=True)]
    return TableResponse.from_fractions(context, [[*row, 1 - sum(row)] for row in rows])


@pytest.mark.parametrize(
    "context", [sf.Uniform(4, 1), sf.Blocks([0, 0, 1, 1, 1], 2), sf.HighLow(5, [0, 1], 1)], ids=repr
)
def test_random_tables_stay_within_the_limits(context):
    rng = np.random.default_rng(32)
    for _ in range(10):
        mechanism = random_table(rng, context)
        for family in explicit_families(context):
            assert 0 < chi_square(mechanism, family) <= family.limit <= family.paper_limit
        for x, x2 in itertools.permutations(range(context.size), 2):
            assert subset_lemma_gap(mechanism, x, x2) == 0


def test_mangats_response_meets_the_limit_of_claim_1():
    """One sensitive symbol: the constant of Claim 1 cannot be improved, nor can that of the free
    family.
    """
    context = sf.HighLow(6, [2], 1)
    mechanism = sf.HighLowResponse(context, RandomizedCode)
    for family in explicit_families(context):
        assert 1 - Fraction(1, 10**12) <= chi_square(mechanism, family) / family.limit <= 1
    star = explicit_families(context)[0]
    assert star.limit < star.paper_limit * Fraction(9, 10)


def cube(context, odds):
    """A report is one of each pair, raised: what meets the limit of the block inequality while e ≤
    3.
    """
    pairs = context.size // 2
    signs = list(itertools.product((0, 1), repeat=pairs))
    e = Fraction(odds)
    share = Fraction(2, len(signs))
    high = share * e / (e + 1)
    low = share / (e + 1)
    return TableResponse.from_fractions(
        context, [[high if z[x // 2] == x % 2 else low for z in signs] for x in range(context.size)]
    )


def test_block_inequality_limit_is_attained():
    context = sf.Uniform(6, 1)
    family = only_family(context)
    nearly = cube(context, Fraction(2718281828, 10**9))
    assert 1 - Fraction(1, 10**8) <= chi_square(nearly, family) / family.limit <= 1
    c = (math.e + 1) / (math.e - 1)
    assert float(family.limit) == pytest.approx(8 * 6 * float(family.distance) ** 2 / (c**2 * 36))
    assert float(family.paper_limit) == pytest.approx(
        2 * 6 * float(family.distance) ** 2 * (math.e - 1) ** 2 / 36
    )


def test_channels_that_break_their_promise_exceed_the_limit():
    family = only_family(sf.Uniform(6, 1))
    assert chi_square(cube(sf.Uniform(6, 2), Fraction(275, 100)), family) > family.limit
    context = sf.HighLow(6, [2], 1)
    cheat = sf.HighLowResponse(context, OddsOnePerCentHigh)
    for family in explicit_families(context):
        assert chi_square(cheat, family) > family.limit
    # Even one unit in 2^64 is seen.
    exact = sf.PlainResponse(sf.Uniform(2, 1), OneUnitTooMuch)
    assert subset_lemma_gap(exact, 0, 1) > 0


@pytest.mark.parametrize("epsilon", ["0.1", 1, "1.0986", "1.1", 2, 5, 40])
@pytest.mark.parametrize("size", [2, 3, 4, 9, 10])
def test_gain_matches_enumeration_of_extreme_columns(size, epsilon):
    """A column of a block holds e's and ones, in whatever pairs: go through all of them."""
    family = only_family(sf.Uniform(size, epsilon))
    e = math.exp(float(epsilon))
    pairs = size // 2
    gains = [
        mixed
        * (e - 1) ** 2
        / (mixed * (e + 1) + 2 * both * e + 2 * (pairs - mixed - both) + size % 2 * last) ** 2
        for mixed in range(pairs + 1)
        for both in range(pairs + 1 - mixed)
        for last in (1, e)
    ]
    assert float(family.limit) == pytest.approx(
        size * float(family.steps[0]) ** 2 * max(gains) * size, rel=1e-9
    )


# --- the lemmas inside the proofs ----------------------------------------------------------------


@pytest.mark.parametrize(
    "mechanism", [m for m in ALL_REPRESENTATIVES if m.inputs <= 16 and m.outputs <= 64], ids=repr
)
def test_subset_lemma_on_every_row(mechanism):
    for x, x2 in itertools.permutations(range(mechanism.inputs), 2):
        assert subset_lemma_gap(mechanism, x, x2) == 0


@pytest.mark.parametrize("mechanism", [m for m in ALL_REPRESENTATIVES if m.outputs <= 8], ids=repr)
def test_subset_lemma_on_every_set(mechanism):
    rows = [mechanism.integer_row(x) for x in range(mechanism.inputs)]
    for x, x2 in itertools.permutations(range(mechanism.inputs), 2):
        epsilon = mechanism.context.exact_epsilon(x, x2)
        shrink = 1 / exp_bounds(epsilon)[1] if epsilon < inf else 0
        for M in itertools.product((0, 1), repeat=mechanism.outputs):
            first, second = (sum(itertools.compress(rows[i], M)) for i in (x, x2))
            assert second <= mechanism.denominator - shrink * (mechanism.denominator - first)


def test_subset_lemma_gap_matches_the_worst_set():
    cheat = sf.PlainResponse(sf.Uniform(3, 1), OddsOnePerCentHigh)
    first = cheat.exact_row(0)
    second = cheat.exact_row(1)
    shrink = 1 / exp_bounds(Fraction(1))[1]
    worst = max(
        sum(itertools.compress(second, M)) - 1 + shrink * (1 - sum(itertools.compress(first, M)))
        for M in itertools.product((0, 1), repeat=3)
    )
    assert subset_lemma_gap(cheat, 0, 1) == worst > 0


@pytest.mark.parametrize(
    "mechanism", [m for m in IN_MODELS if isinstance(m.context, sf.Blocks | sf.Uniform)], ids=repr
)
def test_block_inequality_on_every_report(mechanism):
    context = mechanism.context
    blocks = (
        context.block_of
        if isinstance(context, sf.Blocks)
        else np.zeros(context.size, dtype=np.int64)
    )
    columns = list(zip(*(mechanism.integer_row(x) for x in range(context.size)), strict=True))
    for j in range(blocks.max() + 1):
        block = np.flatnonzero(blocks == j).tolist()
        epsilon = context.groups.inside[j]
        if epsilon == inf:
            continue
        rise = exp_bounds(epsilon)[1] - 1
        for column in columns:
            inside = [column[x] for x in block]
            assert len(block) * (max(inside) - min(inside)) <= rise * sum(inside)


@pytest.mark.parametrize("code", [HadamardCode, RandomizedCode])
@pytest.mark.parametrize(
    "context", [sf.Uniform(6, 2), sf.Blocks([0, 0, 0, 0, 1, 1], 1), HIGH_LOW], ids=repr
)
def test_report_reveals_at_most_chi_square_bits(context, code):
    mechanism = response(context, code)
    for family in explicit_families(context):
        members = np.array([[float(entry) for entry in p] for p in family.members()])
        reports = members @ mechanism.matrix()
        q = reports.mean(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(reports > 0, reports * np.log2(reports / q), 0.0)
        bits = terms.sum(axis=1).mean()
        assert 0 < bits <= float(chi_square(mechanism, family))


# --- from χ² to people ---------------------------------------------------------------------------


def bits(family, error):
    return family.bounds.min_bits(error, float(family.ratio))


@pytest.mark.parametrize("ratio", [0.05, 0.25, 1 / 3, 0.49])
def test_bits_for_equal_separations(ratio):
    family = only_family(sf.Uniform(10, 1)).at(Fraction(1, 5))
    assert bits(family, 0.2 * ratio) == pytest.approx(5 * (1 - entropy(ratio)), rel=1e-6)


def test_bits_for_unequal_separations_match_a_grid_search():
    family = only_family(sf.Blocks([0, 0, 1, 1, 1, 1], 1)).at(Fraction(3, 10))
    w = [float(entry) for entry in family.separations]
    a = 0.1
    grid = np.linspace(0, 0.5, 501)[1:]
    least = inf
    for (
        first
    ) in grid:  # the two equal pairs of the second block go wrong equally often, by convexity
        rest = (a - w[0] * first) / (2 * w[1])
        if 0 < rest <= 0.5:
            least = min(least, (1 - entropy(first)) + 2 * (1 - entropy(rest)))
    assert w[1] == w[2] != w[0]
    assert bits(family, a) == pytest.approx(least, rel=1e-3)
    assert bits(family, a) <= least


def test_modest_goals_need_one_person():
    family = only_family(sf.Uniform(10, 1)).at(Fraction(1, 5))
    assert bits(family, 0.1) == pytest.approx(0, abs=1e-12)
    assert family.bounds.people_needed(0.1, float(family.ratio)) == 1
    assert people_lower_bound(sf.Uniform(10, 1), 0.9) == 1


CONTEXTS = [
    sf.Uniform(16, 1),
    sf.Blocks([x % 4 for x in range(20)], 1),
    sf.HighLow(24, range(6), 1),
]


def worst_measured(mechanism, family, n, rng):
    """The largest mean total variation of the unbiased estimate, over the centre and some members;
    from histograms.
    """
    numbers = rng.integers(0, 1 << family.dimension, 3).tolist()
    targets = [family.centre, *map(family.member, numbers)]
    means = []
    for p in targets:
        p = np.array([float(entry) for entry in p])
        histograms = rng.multinomial(n, mechanism.forward(p) / mechanism.forward(p).sum(), 100)
        errors = [total_variation(mechanism.scores.mean(f / n), p) for f in histograms]
        means.append(np.mean(errors))
    return max(means)


@pytest.mark.parametrize("context", CONTEXTS, ids=repr)
def test_measured_people_lie_between_the_bounds(context):
    rng = np.random.default_rng(33)
    mechanism = response(context, HadamardCode)
    error = 0.02
    n = 100_000
    spread = max(worst_measured(mechanism, family, n, rng) for family in explicit_families(context))
    measured = n * (spread / error) ** 2
    lower = people_lower_bound(context, error)
    assert 1 < lower < measured < people_upper_bound(context, error)
    # The chain is not idle: the upper bound is near, and the lower one not absurdly far.
    assert people_upper_bound(context, error) < 4 * measured
    assert measured < 600 * lower


def test_lower_and_upper_bound_grow_alike():
    """Θ of the two theorems: the ratio of the bounds stays between constants where the paper says
    it does.
    """
    ratios = []
    orders = []
    for epsilon, k in itertools.product(("0.1", "0.5", 1), (16, 128, 1024)):
        contexts = [sf.Uniform(k, epsilon), sf.Blocks([x % 8 for x in range(k)], epsilon)]
        contexts += [sf.HighLow(k, range(s), epsilon) for s in (2, k // 8, k // 2 - 1)]
        for context in contexts:
            lower = people_lower_bound(context, 0.001)
            upper = people_upper_bound(context, 0.001)
            ratios.append(upper / lower)
            orders.append(lower / sample_complexity(context, 0.001))
    assert min(ratios) > 100
    assert max(ratios) < 1500
    assert max(orders) / min(orders) < 4


def test_people_quadruple_when_the_error_halves():
    context = sf.Blocks([x % 10 for x in range(200)], 1)
    assert people_lower_bound(context, 0.005) == pytest.approx(
        4 * people_lower_bound(context, 0.01), rel=1e-3
    )


def test_high_low_family_beats_the_free_family():
    """Twice as many signs: for errors far below 1/k it asks for nearly twice as many people as the
    free family.
    """
    context = sf.HighLow(20, [0], 1)
    star, free = hard_families(context)
    error = 1e-4
    most = []
    for family in (star, free):
        ratios = [width * error / float(family.max_alpha) for width in (4, 5, 8, 9)]
        most.append(max(family.people_needed(error, ratio) for ratio in ratios))
    assert most[0] > 1.5 * most[1]
