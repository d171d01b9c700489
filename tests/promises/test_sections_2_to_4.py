"""Sections 2 to 4 of Acharya et al. (2020): a test for each definition, theorem and proposition."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import (
    ContextMismatch,
    InvalidArgument,
    InvalidContext,
    NothingToLearn,
    PrivacyViolation,
)
from sfumato.foundation.simplex import total_variation
from sfumato.mechanisms import TableResponse
from sfumato.promises.optimality import (
    binary_optimum,
    factor,
    minimax_risk,
    mutual_information,
)
from sfumato.randomness import exp_bounds, within_odds
from support.mechanism_examples import REPRESENTATIVES
from support.mutants import OddsOnePerCentHigh

inf = math.inf
N = 1 << 64
SMALL = [
    mechanism
    for instances in REPRESENTATIVES.values()
    for mechanism in instances
    if mechanism.outputs <= 10
]


def subsets(outputs):
    return itertools.chain.from_iterable(
        itertools.combinations(range(outputs), size) for size in range(outputs + 1)
    )


def keeps(mechanism, E):
    """Return whether every pair of symbols keeps its promise on every *set* of outputs."""
    rows = [mechanism.integer_row(x) for x in range(mechanism.inputs)]
    return all(
        within_odds(sum(rows[x][y] for y in S), sum(rows[x2][y] for y in S), E(x, x2))
        for x, x2 in itertools.permutations(range(mechanism.inputs), 2)
        for S in subsets(mechanism.outputs)
    )


def random_context(rng, k):
    """Return a matrix with entries of .2 to 2, a fifth of them infinite."""
    E = [
        [0 if x == x2 else str(round(rng.uniform(0.2, 2), 3)) for x2 in range(k)] for x in range(k)
    ]
    for x, x2 in itertools.permutations(range(k), 2):
        if rng.random() < 0.2:
            E[x][x2] = "inf"
    return sf.PrivacyMatrix(E)


def random_channel(rng, context, outputs):
    """Return a random table that keeps the context, and is tight where the draw exceeded it."""
    columns = []
    for _ in range(outputs):
        column = [Fraction(int(w), 1000) for w in rng.integers(1, 1000, context.size)]
        changed = True
        while changed:
            changed = False
            for x, x2 in itertools.permutations(range(context.size), 2):
                epsilon = context.exact_epsilon(x, x2)
                if isinstance(epsilon, Fraction) and column[x] > (
                    most := exp_bounds(epsilon)[0] * column[x2]
                ):
                    column[x] = most.limit_denominator(10**6) * Fraction(10**6 - 1, 10**6)
                    changed = True
        columns.append(column)
    # The last column completes the rows. It has nine tenths of the mass, so rows differ little.
    largest = max(sum(row) for row in zip(*columns, strict=True))
    rows = [[entry / (10 * largest) for entry in row] for row in zip(*columns, strict=True)]
    rows = [[*row, 1 - sum(row)] for row in rows]
    return TableResponse.from_fractions(context, rows)


# --- definitions ----------------------------------------------------------------------------------


def test_definition_1_local_differential_privacy():
    mechanism = sf.PlainResponse(sf.Uniform(3, 1.0))
    assert keeps(mechanism, lambda x, x2: Fraction(1))
    assert not keeps(mechanism, lambda x, x2: Fraction(999, 1000))
    assert sf.certify(mechanism).promised_epsilon == 1.0


def test_definition_2_context_aware_local_differential_privacy():
    for mechanism in SMALL:
        assert keeps(mechanism, mechanism.context.exact_epsilon)
    context = sf.PrivacyMatrix([[0, 1, "inf"], [0.5, 0, 2], ["inf", 1, 0]])
    tight = sf.PrivacyMatrix([[0, 0.4, "inf"], [0.5, 0, 2], ["inf", 1, 0]])
    mechanism = sf.mechanism_for(sf.Uniform(3, context.smallest_epsilon), code="randomized")
    assert keeps(mechanism, context.exact_epsilon)
    assert not keeps(mechanism, tight.exact_epsilon)
    with pytest.raises(PrivacyViolation):
        sf.certify(mechanism, tight)


def test_definition_2_single_outputs_suffice():
    """The definition is about sets, certificates about single outputs: they agree."""
    rng = np.random.default_rng(2)
    for _ in range(20):
        E = random_context(rng, 3)
        rows = rng.integers(1, 30, (3, 4))
        integers = [[int(w) * N // int(row.sum()) for w in row] for row in rows]
        for row in integers:
            row[0] += N - sum(row)
        mechanism = TableResponse(E, integers)
        try:
            certified = sf.certify(mechanism) is not None
        except PrivacyViolation:
            certified = False
        assert certified == keeps(mechanism, E.exact_epsilon)


def test_definition_3_high_low():
    context = sf.HighLow(["park", "café", "clinic"], ["clinic"], 1)
    assert context.matrix().tolist() == [[0, inf, inf], [inf, 0, inf], [1, 1, 0]]
    mechanism = sf.HighLowResponse(context)
    assert keeps(mechanism, lambda x, x2: Fraction(1) if x == 2 else inf)
    # A report may prove that the answer was "park".
    assert not keeps(mechanism, lambda x, x2: Fraction(1))


def test_definition_4_block_structured():
    context = sf.Blocks(["Paris", "Paris", "Rome"], 1)
    assert context.matrix().tolist() == [[0, 1, inf], [1, 0, inf], [inf, inf, 0]]
    mechanism = sf.BlockResponse(context)
    assert keeps(mechanism, lambda x, x2: Fraction(1) if {x, x2} == {0, 1} else inf)
    assert not keeps(mechanism, lambda x, x2: Fraction(1))  # reports show the block


# --- theorem 1 ------------------------------------------------------------------------------------


def errors_of(mechanism, x, x2, x_outputs):
    row = mechanism.integer_row(x)
    row2 = mechanism.integer_row(x2)
    return sum(row2[y] for y in x_outputs), sum(
        row[y] for y in range(len(row)) if y not in x_outputs
    )


def breaks_an_inequality(mechanism, x, x2, x_outputs):
    """Test ``P_FA + e^{E[x2,x]} P_MD < 1`` or ``e^{E[x,x2]} P_FA + P_MD < 1``, in integers."""
    false_alarm, miss = errors_of(mechanism, x, x2, x_outputs)
    total = mechanism.denominator
    E = mechanism.context.exact_epsilon
    return not (
        within_odds(total - false_alarm, miss, E(x2, x))
        and within_odds(total - miss, false_alarm, E(x, x2))
    )


@pytest.mark.parametrize("seed", range(6))
def test_theorem_1_a_private_channel_obeys_both_inequalities_for_all_tests(seed):
    rng = np.random.default_rng(seed)
    mechanism = random_channel(rng, random_context(rng, 3), outputs=int(rng.integers(2, 10)))
    sf.certify(mechanism)
    for x, x2 in itertools.permutations(range(3), 2):
        assert sf.error_region(mechanism, x, x2).violating_test is None
        assert not any(
            breaks_an_inequality(mechanism, x, x2, set(S)) for S in subsets(mechanism.outputs)
        )


@pytest.mark.parametrize("seed", range(6))
def test_theorem_1_a_violation_of_a_billionth_yields_a_test(seed):
    rng = np.random.default_rng(100 + seed)
    context = random_context(rng, 3)
    outputs = int(rng.integers(2, 10))
    mechanism = random_channel(rng, context, outputs)
    x, x2 = next(p for p in itertools.permutations(range(3), 2) if context.exact_epsilon(*p) != inf)
    rows = [mechanism.integer_row(symbol) for symbol in range(3)]
    # Lift one entry of row x just above what row x2 permits, and lower another entry.
    y = min(range(outputs), key=lambda y: rows[x2][y])
    donor = mechanism.outputs - 1
    above = exp_bounds(context.exact_epsilon(x, x2))[1] * rows[x2][y] * (1 + Fraction(1, 10**9))
    lift = -(-above.numerator // above.denominator) - rows[x][y]
    rows[x][y] += lift
    rows[x][donor] -= lift
    broken = TableResponse(context, rows)
    test = sf.error_region(broken, x, x2).violating_test
    assert test is not None
    assert y in test.x_outputs
    assert breaks_an_inequality(broken, x, x2, test.x_outputs)
    false_alarm, miss = errors_of(broken, x, x2, test.x_outputs)
    assert (test.false_alarm, test.miss) == (Fraction(false_alarm, N), Fraction(miss, N))
    with pytest.raises(PrivacyViolation):
        sf.certify(broken)


@pytest.mark.parametrize(
    ("a", "b", "corner"),
    [
        (math.log(3), math.log(3), (1 / 4, 1 / 4)),  # the left panel of Figure 1: 1/(1 + e^ε)
        (math.log(2), math.log(4), (3 / 7, 1 / 7)),  # the right panel
        (inf, 1, (0, math.exp(-1))),
        (1, inf, (math.exp(-1), 0)),
        (inf, inf, (0, 0)),
    ],
)
def test_theorem_1_the_region_has_the_corner_of_figure_1(a, b, corner):
    context = sf.PrivacyMatrix([[0, a], [b, 0]])
    assert sf.error_region(context, 0, 1).corner == pytest.approx(corner, abs=1e-12)
    # The binary optimum attains it: its region is the promised one.
    reached = sf.error_region(sf.BinaryResponse(context), 0, 1).realised
    assert any((float(fa), float(md)) == pytest.approx(corner, abs=1e-12) for fa, md in reached)


def test_theorem_1_a_zero_leaves_blind_guessing():
    region = sf.error_region(sf.PrivacyMatrix([[0, 0], [1, 0]]), 0, 1)
    assert region.corner is None
    assert region.promised == ((0, 1), (1, 0))


@pytest.mark.parametrize("mechanism", SMALL[:12], ids=repr)
def test_theorem_1_the_region_is_the_convex_hull_of_all_tests(mechanism):
    if mechanism.inputs < 2:
        return
    edge = sf.error_region(mechanism, 0, 1).realised
    N = mechanism.denominator
    for S in subsets(mechanism.outputs):
        false_alarm, miss = (Fraction(n, N) for n in errors_of(mechanism, 0, 1, set(S)))
        below = [
            (md2 - md) * (false_alarm - fa) > (miss - md) * (fa2 - fa)
            for (fa, md), (fa2, md2) in itertools.pairwise(edge)
            if fa <= false_alarm <= fa2 and fa < fa2
        ]
        assert not any(below)


# --- propositions ---------------------------------------------------------------------------------

THIRDS = [
    [Fraction(1, 3), Fraction(2, 3), 0],
    [0, 1, 0],
    [0, 0, 1],
    [Fraction(1, 7), 0, Fraction(6, 7)],
]


def test_proposition_1_post_processing():
    mechanism = sf.PlainResponse(sf.Uniform(3, 1))
    processed = mechanism.then(THIRDS)
    sf.check_mechanism(processed)
    assert sf.certify(processed).realised_epsilon <= 1.0
    Q = mechanism.matrix()
    W = np.array([[float(entry) for entry in row] for row in THIRDS])
    np.testing.assert_allclose(processed.matrix(), Q @ W, atol=1e-15)
    assert processed.scores.risk(np.full(3, 1 / 3)) >= mechanism.scores.risk(np.full(3, 1 / 3))


def test_proposition_1_processing_twice_is_processing_once():
    mechanism = sf.BinaryResponse(sf.Uniform(2, 1))
    V = [["0.9", "0.1"], ["0.3", "0.7"]]
    W = [["0.5", "0.5"], [0, 1]]
    twice = mechanism.then(V).then(W)
    sf.check_mechanism(twice)
    product = np.array(V, dtype=float) @ np.array(W, dtype=float)
    np.testing.assert_allclose(twice.matrix(), mechanism.matrix() @ product, atol=1e-15)


@pytest.mark.parametrize(
    "W",
    [
        [["0.9", "0.2"], [0, 1]],
        [[1, 0]],
        [[1, 0], [0, 1], [0, 1]],
        [[1, 0], [1]],
        [["-0.5", "1.5"], [0, 1]],
        [["x"], [1]],
    ],
)
def test_proposition_1_invalid_channels_raise(W):
    with pytest.raises((InvalidContext, ContextMismatch)):
        sf.BinaryResponse(sf.Uniform(2, 1)).then(W)


def test_proposition_1_a_channel_that_forgets_everything_leaves_nothing_to_learn():
    blind = sf.BinaryResponse(sf.Uniform(2, 1)).then([[1, 0], [1, 0]])
    sf.certify(blind)
    with pytest.raises(NothingToLearn, match="cannot be inverted"):
        blind.scores.unbiased(blind.tally([0, 0]))


def test_proposition_2_adaptive_composition():
    first = sf.PlainResponse(sf.Uniform(3, 1))
    stages = {
        y: sf.PlainResponse(sf.Uniform(3, 0.5), sf.RandomizedCode if y else sf.HadamardCode)
        for y in range(4)
    }
    both = sf.compose(first, lambda report: stages[report])
    sf.check_mechanism(both)
    certificate = sf.certify(both)
    assert certificate.promised_epsilon == 1.5
    assert certificate.realised_epsilon > 1.5 - 1e-12
    assert both.context == sf.Uniform(3, 1) + sf.Uniform(3, 0.5)
    with pytest.raises(PrivacyViolation):
        sf.certify(both, sf.Uniform(3, 1.499))


def test_proposition_2_one_broken_second_stage_is_caught():
    first = sf.BinaryResponse(sf.Uniform(2, 1))
    honest = sf.PlainResponse(sf.Uniform(2, 0.5), sf.RandomizedCode)
    faulty = sf.PlainResponse(sf.Uniform(2, 0.5), OddsOnePerCentHigh)
    sf.certify(sf.compose(first, honest))
    with pytest.raises(PrivacyViolation) as violation:
        sf.certify(sf.compose(first, lambda report: faulty if report == 1 else honest))
    assert violation.value.output // 2 == 1


def test_proposition_2_stages_share_one_context_and_two_words():
    first = sf.BinaryResponse(sf.Uniform(2, 1))
    with pytest.raises(ContextMismatch, match="same context"):
        sf.compose(first, lambda report: sf.BinaryResponse(sf.Uniform(2, 1 + report)))
    with pytest.raises(ContextMismatch, match="2 words"):
        sf.compose(sf.compose(first, first), first)


@pytest.mark.parametrize("mechanism", SMALL, ids=repr)
def test_proposition_3_auxiliary_information(mechanism):
    """Bayes' rule never exceeds the bound on any report, for a skewed prior."""
    k = mechanism.inputs
    prior = np.arange(1.0, k + 1) / (k * (k + 1) / 2)
    bounds = sf.posterior_odds(mechanism.context, prior)
    for y in range(mechanism.outputs):
        joint = [Fraction(prior[x]) * mechanism.exact_row(x)[y] for x in range(k)]
        for x, x2 in itertools.permutations(range(k), 2):
            bound = bounds.bound(x, x2)
            if math.isfinite(bound):  # joint[x2] may be 0 only where joint[x] is
                assert joint[x] <= Fraction(bound) * (1 + Fraction(1, 10**12)) * joint[x2]


def test_proposition_3_the_bound_is_attained():
    mechanism = sf.BinaryResponse(sf.Uniform(2, 1))
    worst = max(mechanism.exact_row(1)[y] / mechanism.exact_row(0)[y] for y in (0, 1))
    assert float(worst) == pytest.approx(
        sf.posterior_odds(mechanism.context).bound(1, 0), rel=1e-12
    )


def test_proposition_3_in_words():
    odds = sf.posterior_odds(sf.HighLow(["no", "yes"], ["yes"], 1.0), [0.8, 0.2])
    assert (
        odds.in_words(1, 0)
        == "A report can move the odds of 'yes' against 'no' from 1:4 to at most 1:1.5."
    )
    assert "to certainty: nothing is promised" in odds.in_words(0, 1)
    even = sf.posterior_odds(sf.Uniform(["a", "b"], 1.0))
    assert "from 1:1 to at most 2.7:1" in even.in_words(0, 1)
    np.testing.assert_allclose(even.matrix(), [[1, math.e], [math.e, 1]])
    with pytest.raises(InvalidArgument, match="adding up to 1"):
        sf.posterior_odds(sf.Uniform(2, 1), [0.5, 0.6])


# --- theorem 2 ------------------------------------------------------------------------------------


def random_binary_channel(rng, A, B, outputs):
    """Return two rows of fractions with ``Q(y|0) ≤ A Q(y|1)`` and ``Q(y|1) ≤ B Q(y|0)``."""
    top, bottom = binary_optimum(A, B)
    split = [[Fraction(int(w)) for w in rng.integers(0, 100, outputs)] for _ in range(2)]
    W = [[w / sum(row) for w in row] for row in split]
    return [
        [sum(q * w[y] for q, w in zip(row, W, strict=True)) for y in range(outputs)]
        for row in (top, bottom)
    ], W


@pytest.mark.parametrize("seed", range(20))
def test_theorem_2_every_private_channel_is_a_garbling_of_the_optimum(seed):
    rng = np.random.default_rng(seed)
    A, B = (1 + Fraction(int(n), 100) for n in rng.integers(1, 900, 2))
    optimum = binary_optimum(A, B)
    Q, W = random_binary_channel(rng, A, B, outputs=int(rng.integers(2, 7)))
    result = factor(Q, optimum)
    assert result == W  # the optimum is invertible, so W is the only one
    assert all(min(row) >= 0 and sum(row) == 1 for row in result)
    product = [
        [sum(q * result[z][y] for z, q in enumerate(row)) for y in range(len(Q[0]))]
        for row in optimum
    ]
    assert product == Q


@pytest.mark.parametrize("seed", range(10))
def test_theorem_2_the_optimum_maximises_every_utility(seed):
    rng = np.random.default_rng(50 + seed)
    A = Fraction(2)
    B = Fraction(4)
    best = np.array(binary_optimum(A, B), dtype=float)
    Q = np.array(random_binary_channel(rng, A, B, outputs=int(rng.integers(2, 7)))[0], dtype=float)
    assert total_variation(*Q) <= total_variation(*best) + 1e-12
    assert mutual_information(Q, 0.3) <= mutual_information(best, 0.3) + 1e-12
    assert minimax_risk(Q) >= minimax_risk(best) - 1e-9


def test_theorem_2_channels_that_are_not_private_are_not_garblings():
    optimum = binary_optimum(Fraction(2), Fraction(4))
    with pytest.raises(PrivacyViolation) as violation:
        factor([[Fraction(9, 10), Fraction(1, 10)], [Fraction(4, 10), Fraction(6, 10)]], optimum)
    assert violation.value.output in (0, 1)
    with pytest.raises(ContextMismatch):
        factor([[Fraction(1)]], optimum)
    with pytest.raises(NothingToLearn):
        binary_optimum(Fraction(1), Fraction(2))


def test_theorem_2_the_realised_optimum_is_the_optimum():
    mechanism = sf.BinaryResponse(sf.PrivacyMatrix([[0, math.log(2)], [math.log(4), 0]]))
    np.testing.assert_allclose(
        mechanism.matrix(), np.array(binary_optimum(2, 4), dtype=float), atol=1e-15
    )
    warner = sf.BinaryResponse(sf.Uniform(2, math.log(3)))
    np.testing.assert_allclose(warner.matrix(), [[0.75, 0.25], [0.25, 0.75]], atol=1e-15)
    assert mutual_information(np.eye(2)) == pytest.approx(math.log(2))
    assert minimax_risk(np.eye(2)) == pytest.approx(0.25)
    assert minimax_risk([[0.5, 0.5], [0.5, 0.5]]) == inf
