"""Comparisons: baselines against exact channels in fractions, and draws against exact moments."""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom, chi2

import sfumato as sf
from sfumato.errors import (
    ContextMismatch,
    InvalidArgument,
    InvalidContext,
    InvalidSymbols,
    NotEnoughReports,
    NothingToLearn,
)
from sfumato.foundation.simplex import project
from sfumato.promises.exam import ALPHA
from sfumato.simulation import (
    Comparison,
    Draws,
    LocalHashing,
    SeededWords,
    UnaryEncoding,
    compare,
    tally_population,
)

E = Fraction(3)  # e^ε in fractions; g = 4 suits it best
EPSILON = math.log(3)
COUNTS_OF_THREE = np.array([5, 0, 3])


# --- the channels in fractions ---------------------------------------------------------------


def unary_channel(k, e=E):
    """Return OUE as published: for each symbol, the chance of each of 2^k rows of bits."""
    own = Fraction(1, 2)
    other = 1 / (e + 1)
    chance = {True: {1: own, 0: 1 - own}, False: {1: other, 0: 1 - other}}
    reports = list(itertools.product([0, 1], repeat=k))
    channel = [
        {y: math.prod(chance[x == z][bit] for z, bit in enumerate(y)) for y in reports}
        for x in range(k)
    ]
    return channel, lambda x, y: y[x] == 1


def hashing_channel(k, g, e=E):
    """Return OLH over all g^k hash functions: for each symbol, the chance of each (h, hash)."""
    functions = list(itertools.product(range(g), repeat=k))
    reports = list(itertools.product(functions, range(g)))
    chance = {True: e / (e + g - 1), False: 1 / (e + g - 1)}
    channel = [{(h, y): chance[h[x] == y] / len(functions) for h, y in reports} for x in range(k)]
    return channel, lambda x, report: report[0][x] == report[1]


CHANNELS = {
    "oue": (unary_channel(3), UnaryEncoding(3, EPSILON)),
    "olh": (hashing_channel(3, 4), LocalHashing(3, EPSILON)),
    "olh, two buckets": (hashing_channel(3, 2, Fraction(5, 4)), LocalHashing(3, math.log(1.25))),
}


@pytest.fixture(params=CHANNELS)
def twin(request):
    """Return a channel in fractions, what a report supports, and the closed forms."""
    (channel, supports), baseline = CHANNELS[request.param]
    return channel, supports, baseline


def exact_chances(channel, supports):
    """Return p and q, which must not depend on the symbols."""
    own_chances = set()
    other_chances = set()
    for x, row in enumerate(channel):
        for z in range(len(channel)):
            chance = sum(chance for y, chance in row.items() if supports(z, y))
            if x == z:
                own_chances.add(chance)
            else:
                other_chances.add(chance)
    (own,) = own_chances
    (other,) = other_chances
    return own, other


def scores(channel, supports):
    own, other = exact_chances(channel, supports)
    return {
        y: [(supports(x, y) - other) / (own - other) for x in range(len(channel))]
        for y in channel[0]
    }


# --- closed forms of the baselines -----------------------------------------------------------


def test_rows_add_up_to_one(twin):
    channel, _, _ = twin
    assert [sum(row.values()) for row in channel] == [1, 1, 1]


def test_largest_odds_are_e(twin):
    """The ε of each baseline over all reports and pairs, without slack: the comparison is fair."""
    channel, _, baseline = twin
    worst = max(row[y] / row2[y] for row in channel for row2 in channel for y in row)
    assert worst == (Fraction(5, 4) if baseline.epsilon < 1 else E)


def test_probabilities_match_all_reports(twin):
    channel, supports, baseline = twin
    own, other = exact_chances(channel, supports)
    np.testing.assert_allclose(
        [baseline.own_probability, baseline.other_probability, baseline.contrast],
        [float(c) for c in (own, other, own - other)],
        rtol=1e-13,
    )


def test_supports_are_independent(twin):
    """So counts drawn label by label have the same distribution as counts of reports."""
    channel, supports, _ = twin
    own, other = exact_chances(channel, supports)
    for x, row in enumerate(channel):
        joint = dict.fromkeys(itertools.product([False, True], repeat=3), Fraction(0))
        for y, chance in row.items():
            joint[tuple(supports(z, y) for z in range(3))] += chance
        for pattern, chance in joint.items():
            expected = Fraction(1)
            for z, is_supported in enumerate(pattern):
                support = own if z == x else other
                expected *= support if is_supported else 1 - support
            assert chance == expected


def test_estimate_is_unbiased_with_exact_variances(twin):
    channel, supports, baseline = twin
    A = scores(channel, supports)
    n = int(COUNTS_OF_THREE.sum())
    mean = [[sum(row[y] * A[y][z] for y in row) for z in range(3)] for row in channel]
    assert mean == [[int(x == z) for z in range(3)] for x in range(3)]
    second = [[sum(row[y] * A[y][z] ** 2 for y in row) for z in range(3)] for row in channel]
    variances = [
        sum(int(COUNTS_OF_THREE[x]) * (second[x][z] - (x == z)) for x in range(3)) / n**2
        for z in range(3)
    ]
    np.testing.assert_allclose(
        baseline.variances(COUNTS_OF_THREE), [float(variance) for variance in variances], rtol=1e-12
    )


def test_leverage_and_reach_are_those_of_the_worst_report(twin):
    channel, supports, baseline = twin
    A = scores(channel, supports)
    largest = max(abs(score) for column in A.values() for score in column)
    reach = max(
        sum(abs(score - (x == own)) for x, score in enumerate(column)) / 2
        for column in A.values()
        for own in range(3)
    )
    np.testing.assert_allclose(
        [baseline.leverage, baseline.reach], [float(largest), float(reach)], rtol=1e-12
    )


def test_published_formulas():
    e = math.exp(1)
    assert UnaryEncoding(100, 1.0).leverage == pytest.approx(2 * e / (e - 1))
    assert LocalHashing(100, 1.0).leverage == pytest.approx((e + 3) / (e - 1))
    # A label that no one has has the variance 4e/(n(e − 1)²).
    counts = np.append(np.zeros(99, dtype=np.int64), 1000)
    variance = UnaryEncoding(100, 1.0).variances(counts)[0]
    assert variance == pytest.approx(4 * e / (e - 1) ** 2 / 1000)


def test_bits_are_those_of_a_report():
    assert UnaryEncoding(1000, 1.0).bits == 1000
    bits = [LocalHashing(1000, epsilon).bits for epsilon in (0.1, 1.0, 2.0, 3.0)]
    assert bits == [65, 66, 67, 69]


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 1.7, 3.0, 6.0])
def test_number_of_buckets_is_nearly_optimal(epsilon):
    """The variance of a label that no one has is proportional to (e + g − 1)²/(g − 1)."""
    e = math.exp(epsilon)
    cost = {g: (e + g - 1) ** 2 / (g - 1) for g in range(2, 1000)}
    assert cost[LocalHashing(5, epsilon).bucket_count] <= 1.01 * min(cost.values())


@pytest.mark.parametrize("epsilon", [1e-12, 1e-6, 40.0])
@pytest.mark.parametrize("kind", [UnaryEncoding, LocalHashing])
def test_extreme_epsilons_lose_no_precision(kind, epsilon):
    baseline = kind(4, epsilon)
    if epsilon < 1:
        assert baseline.leverage == pytest.approx(2 / epsilon, rel=2 * epsilon + 1e-12)
    else:
        assert baseline.leverage == pytest.approx(2)
    assert np.isfinite(baseline.draw(np.array([1, 2, 3, 4]), SeededWords(1).take(4))).all()


@pytest.mark.parametrize(
    ("size", "epsilon"), [(1, 1.0), (3, 0.0), (3, math.inf), (3, -1.0), (3, math.nan)]
)
def test_baseline_needs_two_labels_and_a_finite_epsilon(size, epsilon):
    with pytest.raises(InvalidContext, match="at least two labels"):
        UnaryEncoding(size, epsilon)


# --- draws ------------------------------------------------------------------------------

PEOPLE = np.array([30_000, 12_000, 5_000, 3_000, 0, 0])
RUNS = 400


def draw_estimates(baseline):
    estimates = []
    for run in range(RUNS):
        words = SeededWords(11, run=run).take(PEOPLE.size)
        estimates.append(baseline.draw(PEOPLE, words))
    return np.array(estimates)


def out_of_range(squares, freedom):
    """Return whether a sum of squares of normal numbers lies in the outer α of its distribution."""
    return not chi2.ppf(ALPHA / 2, freedom) < squares < chi2.isf(ALPHA / 2, freedom)


@pytest.mark.parametrize("kind", [UnaryEncoding, LocalHashing])
def test_draws_have_the_stated_variances(kind):
    """Entries are independent sums of fifty thousand bits: their standardised squares are χ²."""
    baseline = kind(PEOPLE.size, 1.0)
    truth = PEOPLE / PEOPLE.sum()
    squares = float(
        (np.square(draw_estimates(baseline) - truth) / baseline.variances(PEOPLE)).sum()
    )
    assert not out_of_range(squares, RUNS * PEOPLE.size), squares
    assert out_of_range(1.2 * squares, RUNS * PEOPLE.size)  # variances off by a fifth would show
    assert out_of_range(squares / 1.2, RUNS * PEOPLE.size)


@pytest.mark.parametrize("kind", [UnaryEncoding, LocalHashing])
def test_draws_of_absent_labels_are_exactly_binomial(kind):
    """All their supports over all runs are one binomial number. An error of 1 % would show."""
    baseline = kind(PEOPLE.size, 1.0)
    n = int(PEOPLE.sum())
    supports = np.rint(
        (draw_estimates(baseline)[:, 4:] * baseline.contrast + baseline.other_probability) * n
    )
    count = int(supports.sum())
    trials = supports.size * n

    def tail(chance):
        return min(binom.cdf(count, trials, chance), binom.sf(count - 1, trials, chance))

    assert tail(baseline.other_probability) > ALPHA / 2, count
    assert tail(1.01 * baseline.other_probability) < ALPHA / 2


def test_draws_use_every_word_once():
    """Changing one word changes one entry: no two labels or kinds of people share a word."""
    baseline = UnaryEncoding(PEOPLE.size, 1.0)
    words = SeededWords(3).take(PEOPLE.size).copy()
    before = baseline.draw(PEOPLE, words)
    for x, side in itertools.product(range(4), range(2)):
        changed = words.copy()
        changed[x, side] ^= np.uint64(1 << 63)
        assert np.flatnonzero(baseline.draw(PEOPLE, changed) != before).tolist() == [x]


def conditional_covariance(mechanism, counts):
    """Return the covariance of the unbiased estimate for exactly these people.

    This is ``Σ_x n_x Cov(A[·, Y] | x)/n²``.
    """
    Q = mechanism.matrix()
    A = mechanism.scores.matrix()
    total = np.zeros((len(A), len(A)))
    for x, count in enumerate(counts):
        mean = A @ Q[x]
        total += count * ((A * Q[x]) @ A.T - np.outer(mean, mean))
    return total / counts.sum() ** 2


CONTEXTS = [sf.Uniform(6, 1), sf.HighLow(6, [1, 4], 1), sf.Blocks([0, 0, 0, 1, 1, 1], 1)]


@pytest.mark.parametrize("context", CONTEXTS, ids=repr)
def test_l2_and_reach_match_the_full_matrix(context):
    counts = np.array([40, 20, 9, 5, 3, 0])
    result = compare(context, counts, draws=Draws(1), decoder="projection")
    classical = sf.Uniform(6, 1)
    mechanisms = {
        "sfumato": sf.mechanism_for(context),
        "k-rr": sf.PlainResponse(classical, sf.RandomizedCode),
        "hadamard": sf.PlainResponse(classical, sf.HadamardCode),
    }
    for name, mechanism in mechanisms.items():
        square = np.trace(conditional_covariance(mechanism, counts))
        row = result.row(name)
        assert row.l2 == pytest.approx(math.sqrt(square), rel=1e-9)
        assert row.bits == mechanism.bits
        assert row.leverage == mechanism.scores.leverage
        reach = max(
            np.abs(column - unit).sum() / 2
            for column in mechanism.scores.matrix().T
            for unit in np.eye(6)
        )
        assert row.reach == pytest.approx(reach, rel=1e-6)
    for name, kind in (("oue", UnaryEncoding), ("olh", LocalHashing)):
        assert result.row(name).l2 == pytest.approx(math.sqrt(kind(6, 1.0).variances(counts).sum()))


@pytest.mark.parametrize("context", CONTEXTS, ids=repr)
def test_population_tallies_have_the_exact_covariance(context):
    """Compare the whitened errors of 150 runs with χ². A population that is slightly off shows."""
    mechanism = sf.mechanism_for(context)
    runs = 150
    covariance = conditional_covariance(mechanism, PEOPLE)
    rank = int(np.linalg.matrix_rank(covariance, tol=1e-12 * np.trace(covariance) * 1e3))
    whiten = np.linalg.pinv(covariance, rcond=1e-9)
    estimates = []
    for run in range(runs):
        tally = tally_population(mechanism, PEOPLE, SeededWords(5, run=run))
        estimates.append(mechanism.scores.unbiased(tally))

    def squares(truth):
        errors = np.array(estimates) - truth / truth.sum()
        return float(np.einsum("ri,ij,rj->", errors, whiten, errors))

    assert not out_of_range(squares(PEOPLE), rank * runs), (squares(PEOPLE), rank * runs)
    assert out_of_range(squares(PEOPLE + np.array([-2000, 0, 2000, 0, 0, 0])), rank * runs)


def test_tally_does_not_depend_on_chunks(monkeypatch):
    mechanism = sf.mechanism_for(sf.Uniform(6, 1))
    tally = tally_population(mechanism, PEOPLE, SeededWords(2))
    monkeypatch.setattr("sfumato.simulation.runs._CHUNK_SIZE", 777)
    assert tally_population(mechanism, PEOPLE, SeededWords(2)) == tally
    people = np.repeat(np.arange(6), PEOPLE)
    assert mechanism.tally(mechanism.privatize(people, SeededWords(2))) == tally


# --- the comparison ------------------------------------------------------------------------------

LUNCH = sf.HighLow(["park", "café", "clinic", "bar"], ["clinic", "bar"], 1)
COUNTS = [400, 300, 100, 200]


def quick(context=LUNCH, counts=COUNTS, **options):
    """Compare without the default decoder, which takes most of the time."""
    return compare(context, counts, decoder="projection", **options)


def figures(comparison):
    return json.dumps(comparison.to_dict())


def test_baselines_use_the_smallest_epsilon():
    matrix = [[0, 3, 2], ["0.75", 0, 5], [4, 1, 0]]
    context = sf.PrivacyMatrix(matrix)
    mechanism = sf.PlainResponse(sf.Uniform(context.domain, "0.75"))
    result = quick(context, [5, 4, 3], mechanism=mechanism, draws=Draws(1))
    assert result.epsilon == 0.75
    assert [row.epsilon for row in result.rows[1:]] == [0.75] * 4
    assert result.row("oue").leverage == UnaryEncoding(3, 0.75).leverage
    assert result.row("hadamard").leverage == mechanism.scores.leverage


def test_baselines_keep_the_context():
    """The two that are mechanisms are certified at the smallest ε, but not at 0.01 more."""
    context = sf.Tiers([0, 0, 1, 1, 2], [1, 2, 3])
    for code in (sf.RandomizedCode, sf.HadamardCode):
        smallest = context.exact_minimum
        assert sf.certify(sf.PlainResponse(sf.Uniform(context.domain, smallest), code), context)
        with pytest.raises(sf.errors.PrivacyViolation):
            sf.certify(
                sf.PlainResponse(sf.Uniform(context.domain, smallest + Fraction(1, 100)), code),
                context,
            )


def test_rows_have_projected_and_decoded_errors():
    result = compare(LUNCH, COUNTS, draws=Draws(6, seed=3), decoder="unbiased")
    assert [row.name for row in result.rows] == ["sfumato", "k-rr", "hadamard", "oue", "olh"]
    assert [row.decoder_errors is None for row in result.rows] == [False, False, False, True, True]
    for row in result.rows:
        assert row.errors.shape == (6,)
        assert (row.errors >= 0).all()
        assert (row.errors <= 1).all()
    own = sf.mechanism_for(LUNCH)
    tally = tally_population(own, np.array(COUNTS), SeededWords(3, run=4))
    truth = np.array(COUNTS) / 1000
    assert result.rows[0].decoder_errors[4] == pytest.approx(
        np.abs(own.scores.unbiased(tally) - truth).sum() / 2
    )
    projected = project(own.scores.unbiased(tally))
    assert result.rows[0].errors[4] == pytest.approx(np.abs(projected - truth).sum() / 2)


@pytest.mark.parametrize("workers", [2, 3, 20])
def test_results_do_not_depend_on_workers(workers):
    alone = quick(draws=Draws(7, 1, 1))
    together = quick(draws=Draws(7, 1, workers))
    assert figures(alone) == figures(together)
    for row, row2 in zip(alone.rows, together.rows, strict=True):
        np.testing.assert_array_equal(row.errors, row2.errors)


def test_first_runs_do_not_depend_on_the_number_of_runs():
    few = quick(draws=Draws(3, 1))
    many = quick(draws=Draws(5, 1))
    other = quick(draws=Draws(3, 2))
    for row, row2, row3 in zip(few.rows, many.rows, other.rows, strict=True):
        np.testing.assert_array_equal(row.errors, row2.errors[:3])
        assert (row.errors != row3.errors).any()


def test_rows_do_not_share_words():
    """The same channel as your own and as Hadamard response: the errors must not be copies."""
    result = quick(mechanism=sf.PlainResponse(sf.Uniform(LUNCH.domain, 1)), draws=Draws(5))
    own = result.row("sfumato")
    hadamard = result.row("hadamard")
    assert own.l2 == hadamard.l2
    assert (own.errors != hadamard.errors).any()


def test_people_needed_is_the_ratio_of_mean_squares():
    result = quick(draws=Draws(1))
    assert result.people_ratio(result.rows[0]) == 1
    expected = UnaryEncoding(4, 1.0).variances(np.array(COUNTS)).sum() / result.rows[0].l2 ** 2
    assert result.people_ratio(result.row("oue")) == pytest.approx(expected)
    many = quick(counts=np.array(COUNTS) * 1000, draws=Draws(1))
    assert many.people_ratio(many.row("oue")) == pytest.approx(
        result.people_ratio(result.row("oue"))
    )


def test_people_needed_is_none_without_an_error():
    result = quick(sf.Blocks([0, 0, 1], 1), [0, 0, 5], draws=Draws(1))
    assert result.rows[0].l2 == 0
    assert {result.people_ratio(row) for row in result.rows} == {None}
    json.loads(json.dumps(result.to_dict(), allow_nan=False))


def test_spread_is_the_standard_error_of_the_mean():
    row = quick(draws=Draws(4)).rows[3]
    assert row.error.mean == pytest.approx(row.errors.mean())
    assert row.error.standard_error == pytest.approx(np.std(row.errors, ddof=1) / 2)
    assert quick(draws=Draws(1)).rows[3].error.standard_error is None


def test_text_says_not_private_and_shows_no_label():
    result = quick(draws=Draws(2))
    assert isinstance(result, Comparison)
    text = repr(result)
    assert text.startswith("NOT PRIVATE")
    assert "uses the smallest, ε = 1" in text
    for label in LUNCH.domain.labels:
        assert label not in text
        assert label not in figures(result)
    assert "smallest" not in repr(quick(sf.Uniform(3, 1), [1, 2, 3], draws=Draws(1)))


def test_progress_names_each_mechanism():
    lines = []
    quick(draws=Draws(1), on_progress=lines.append)
    assert lines == ["Sfumato", "k-RR", "Hadamard response", "OUE", "OLH"]


@pytest.mark.parametrize(
    "counts", [[1, 2], [[1, 2, 3, 4]], [1.0, 2, 3, 4], [1, 2, 3, -4], "abcd", [True] * 4]
)
def test_invalid_counts_are_rejected(counts):
    with pytest.raises(
        InvalidSymbols, match="non-negative integers, one for each of the 4 symbols"
    ):
        compare(LUNCH, counts)


def test_empty_population_is_rejected():
    with pytest.raises(NotEnoughReports, match="population is empty"):
        compare(LUNCH, [0, 0, 0, 0])


@pytest.mark.parametrize("context", [sf.Uniform(3, math.inf), sf.Blocks([0, 1, 2], 1)], ids=repr)
def test_context_without_promises_has_no_baseline(context):
    with pytest.raises(NothingToLearn, match="the smallest ε of this context is ∞"):
        compare(context, [1, 2, 3])


def test_mechanism_for_other_labels_is_rejected():
    with pytest.raises(ContextMismatch, match="domain"):
        compare(LUNCH, COUNTS, mechanism=sf.mechanism_for(sf.Uniform(4, 1)))


def test_unknown_decoder_is_rejected():
    with pytest.raises(InvalidArgument, match="decoder must be one of"):
        compare(LUNCH, COUNTS, decoder="nonsense")


@pytest.mark.parametrize("wrong", [{"runs": 0}, {"workers": 0}, {"runs": 1.5}, {"runs": True}])
def test_runs_and_workers_must_be_positive_integers(wrong):
    with pytest.raises(InvalidArgument, match="positive integers"):
        Draws(**wrong)


@pytest.mark.parametrize("seed", [-1, 2**63, 0.5])
def test_invalid_seeds_are_rejected(seed):
    with pytest.raises(InvalidArgument, match="seed must be an integer"):
        Draws(seed=seed)
