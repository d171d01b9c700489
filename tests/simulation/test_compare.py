"""The comparison: peers against exhaustive channels in fractions, draws against exact moments, fairness of ε."""

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
CROWD = np.array([5, 0, 3])


# --- slow, obvious twins ------------------------------------------------------------------------------


def unary_channel(k, e=E):
    """OUE as published: for each symbol, the chance of each of 2^k rows of bits."""
    own, other = Fraction(1, 2), 1 / (e + 1)
    chance = {True: {1: own, 0: 1 - own}, False: {1: other, 0: 1 - other}}
    reports = list(itertools.product([0, 1], repeat=k))
    channel = [
        {y: math.prod(chance[x == z][bit] for z, bit in enumerate(y)) for y in reports}
        for x in range(k)
    ]
    return channel, lambda x, y: y[x] == 1


def hashing_channel(k, g, e=E):
    """OLH over all g^k hash functions: for each symbol, the chance of each (function, hash)."""
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
    """A channel in fractions, what a report supports, and the closed forms."""
    (channel, supports), rival = CHANNELS[request.param]
    return channel, supports, rival


def exact_chances(channel, supports):
    """p and q, which must not depend on the symbols."""
    k = range(len(channel))
    found = {(x == z): set() for x in k for z in k}
    for x, z in itertools.product(k, k):
        found[x == z].add(sum(chance for y, chance in channel[x].items() if supports(z, y)))
    (own,), (other,) = found[True], found[False]
    return own, other


def scores(channel, supports):
    own, other = exact_chances(channel, supports)
    return {
        y: [(supports(x, y) - other) / (own - other) for x in range(len(channel))]
        for y in channel[0]
    }


# --- the peers' closed forms ----------------------------------------------------------------------------


def test_every_row_of_the_twin_adds_up_to_one(twin):
    channel, _, _ = twin
    assert [sum(row.values()) for row in channel] == [1, 1, 1]


def test_the_odds_are_at_most_e_and_reach_it(twin):
    """The ε of each peer, by enumeration of all reports and pairs; and no slack, so that the comparison is fair."""
    channel, _, rival = twin
    worst = max(row[y] / row2[y] for row in channel for row2 in channel for y in row)
    assert worst == (Fraction(5, 4) if rival.epsilon < 1 else E)


def test_the_chances_are_those_of_all_reports(twin):
    channel, supports, rival = twin
    own, other = exact_chances(channel, supports)
    np.testing.assert_allclose(
        [rival.own, rival.other, rival.contrast],
        [float(c) for c in (own, other, own - other)],
        rtol=1e-13,
    )


def test_supports_are_independent(twin):
    """So that counts drawn label by label have the very law of reports; for hashing over all functions, too."""
    channel, supports, _ = twin
    own, other = exact_chances(channel, supports)
    for x, row in enumerate(channel):
        joint = dict.fromkeys(itertools.product([False, True], repeat=3), Fraction(0))
        for y, chance in row.items():
            joint[tuple(supports(z, y) for z in range(3))] += chance
        for pattern, chance in joint.items():
            each = [own if z == x else other for z in range(3)]
            assert chance == math.prod(
                c if held else 1 - c for c, held in zip(each, pattern, strict=True)
            )


def test_the_estimate_is_unbiased_and_its_variances_exact(twin):
    channel, supports, rival = twin
    A = scores(channel, supports)
    n = int(CROWD.sum())
    mean = [[sum(row[y] * A[y][z] for y in row) for z in range(3)] for row in channel]
    assert mean == [[int(x == z) for z in range(3)] for x in range(3)]
    second = [[sum(row[y] * A[y][z] ** 2 for y in row) for z in range(3)] for row in channel]
    variances = [
        sum(int(CROWD[x]) * (second[x][z] - (x == z)) for x in range(3)) / n**2 for z in range(3)
    ]
    np.testing.assert_allclose(
        rival.variances(CROWD), [float(variance) for variance in variances], rtol=1e-12
    )


def test_leverage_and_reach_are_the_worst_report(twin):
    channel, supports, rival = twin
    A = scores(channel, supports)
    largest = max(abs(score) for column in A.values() for score in column)
    moved = max(
        sum(abs(score - (x == held)) for x, score in enumerate(column)) / 2
        for column in A.values()
        for held in range(3)
    )
    np.testing.assert_allclose(
        [rival.leverage, rival.reach], [float(largest), float(moved)], rtol=1e-12
    )


def test_the_published_formulas():
    e = math.exp(1)
    assert UnaryEncoding(100, 1.0).leverage == pytest.approx(2 * e / (e - 1))
    assert LocalHashing(100, 1.0).leverage == pytest.approx((e + 3) / (e - 1))
    rare = np.append(
        np.zeros(99, dtype=np.int64), 1000
    )  # the variance of a label that nobody has: 4e/(n(e − 1)²)
    assert UnaryEncoding(100, 1.0).variances(rare)[0] == pytest.approx(4 * e / (e - 1) ** 2 / 1000)


def test_bits_are_those_of_a_report():
    assert UnaryEncoding(1000, 1.0).bits == 1000
    assert [LocalHashing(1000, epsilon).bits for epsilon in (0.1, 1.0, 2.0, 3.0)] == [
        65,
        66,
        67,
        69,
    ]


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 1.7, 3.0, 6.0])
def test_no_other_number_of_buckets_is_better_by_much(epsilon):
    """(e + g − 1)²/(g − 1) is the variance of a label that nobody has; the nearest integer is hardly worse."""
    e = math.exp(epsilon)
    cost = {g: (e + g - 1) ** 2 / (g - 1) for g in range(2, 1000)}
    assert cost[LocalHashing(5, epsilon).buckets] <= 1.01 * min(cost.values())


@pytest.mark.parametrize("epsilon", [1e-12, 1e-6, 40.0])
@pytest.mark.parametrize("kind", [UnaryEncoding, LocalHashing])
def test_extreme_promises_keep_their_digits(kind, epsilon):
    rival = kind(4, epsilon)
    if epsilon < 1:
        assert rival.leverage == pytest.approx(2 / epsilon, rel=2 * epsilon + 1e-12)
    else:
        assert rival.leverage == pytest.approx(2)
    assert np.isfinite(rival.draw(np.array([1, 2, 3, 4]), SeededWords(1).take(4))).all()


@pytest.mark.parametrize(
    ("size", "epsilon"), [(1, 1.0), (3, 0.0), (3, math.inf), (3, -1.0), (3, math.nan)]
)
def test_a_peer_needs_two_labels_and_a_finite_promise(size, epsilon):
    with pytest.raises(InvalidContext, match="at least two labels"):
        UnaryEncoding(size, epsilon)


# --- draws ----------------------------------------------------------------------------------------------

PEOPLE = np.array([30_000, 12_000, 5_000, 3_000, 0, 0])
RUNS = 400


def drawn(rival, runs=RUNS):
    return np.array(
        [rival.draw(PEOPLE, SeededWords(11, run=run).take(PEOPLE.size)) for run in range(runs)]
    )


def out_of_range(squares, freedom):
    """Whether a sum of squares of standard normal numbers lies in the outer α of its distribution."""
    return not chi2.ppf(ALPHA / 2, freedom) < squares < chi2.isf(ALPHA / 2, freedom)


@pytest.mark.parametrize("kind", [UnaryEncoding, LocalHashing])
def test_draws_scatter_as_the_variances_say(kind):
    """Entries are independent sums of fifty thousand bits: their standardised squares add up to a χ² number."""
    rival, truth = kind(PEOPLE.size, 1.0), PEOPLE / PEOPLE.sum()
    squares = float((np.square(drawn(rival) - truth) / rival.variances(PEOPLE)).sum())
    assert not out_of_range(squares, RUNS * PEOPLE.size), squares
    assert out_of_range(1.2 * squares, RUNS * PEOPLE.size)  # variances off by a fifth would show
    assert out_of_range(squares / 1.2, RUNS * PEOPLE.size)


@pytest.mark.parametrize("kind", [UnaryEncoding, LocalHashing])
def test_draws_of_labels_that_nobody_has_are_exactly_binomial(kind):
    """All their supports together, over all runs, are one binomial number; off by 1 % it would show."""
    rival = kind(PEOPLE.size, 1.0)
    n = int(PEOPLE.sum())
    supports = np.rint((drawn(rival)[:, 4:] * rival.contrast + rival.other) * n)
    count, trials = int(supports.sum()), supports.size * n
    tail = lambda chance: min(binom.cdf(count, trials, chance), binom.sf(count - 1, trials, chance))  # noqa: E731
    assert tail(rival.other) > ALPHA / 2, count
    assert tail(1.01 * rival.other) < ALPHA / 2


def test_all_words_are_used():
    """One changed word changes one entry: no two labels, and no two kinds of people, share a word."""
    rival, words = UnaryEncoding(PEOPLE.size, 1.0), SeededWords(3).take(PEOPLE.size).copy()
    before = rival.draw(PEOPLE, words)
    for x, side in itertools.product(range(4), range(2)):
        changed = words.copy()
        changed[x, side] ^= np.uint64(1 << 63)
        assert np.flatnonzero(rival.draw(PEOPLE, changed) != before).tolist() == [x]


def conditional_covariance(mechanism, counts):
    """Of the unbiased estimate for these very people, written out: ``Σ_x n_x Cov(A[·, Y] | x)/n²``."""
    Q, A, n = mechanism.matrix(), mechanism.scores.matrix(), counts.sum()
    return (
        sum(c * ((A * Q[x]) @ A.T - np.outer(A @ Q[x], A @ Q[x])) for x, c in enumerate(counts))
        / n**2
    )


CONTEXTS = [sf.Uniform(6, 1), sf.HighLow(6, [1, 4], 1), sf.Blocks([0, 0, 0, 1, 1, 1], 1)]


@pytest.mark.parametrize("context", CONTEXTS, ids=repr)
def test_the_mean_square_is_that_of_the_written_out_channel(context):
    counts = np.array([40, 20, 9, 5, 3, 0])
    found = compare(context, counts, draws=Draws(1), decoder="projection")
    classical = sf.Uniform(6, 1)
    mechanisms = {
        "sfumato": sf.mechanism_for(context),
        "k-rr": sf.PlainResponse(classical, sf.RandomizedCode),
        "hadamard": sf.PlainResponse(classical, sf.HadamardCode),
    }
    for name, mechanism in mechanisms.items():
        square = np.trace(conditional_covariance(mechanism, counts))
        assert found.row(name).l2 == pytest.approx(math.sqrt(square), rel=1e-9)
        assert (found.row(name).bits, found.row(name).leverage) == (
            mechanism.bits,
            mechanism.scores.leverage,
        )
        moved = max(
            np.abs(column - held).sum() / 2
            for column in mechanism.scores.matrix().T
            for held in np.eye(6)
        )
        assert found.row(name).reach == pytest.approx(moved, rel=1e-6)
    for name, kind in (("oue", UnaryEncoding), ("olh", LocalHashing)):
        assert found.row(name).l2 == pytest.approx(math.sqrt(kind(6, 1.0).variances(counts).sum()))


@pytest.mark.parametrize("context", CONTEXTS, ids=repr)
def test_tallies_of_a_crowd_scatter_as_the_channel_says(context):
    """Whitened errors of 150 runs against χ²; a crowd that is off by a fifteenth of its largest label shows."""
    mechanism, runs = sf.mechanism_for(context), 150
    covariance = conditional_covariance(mechanism, PEOPLE)
    rank = int(np.linalg.matrix_rank(covariance, tol=1e-12 * np.trace(covariance) * 1e3))
    whiten = np.linalg.pinv(covariance, rcond=1e-9)
    found = [
        mechanism.scores.unbiased(tally_population(mechanism, PEOPLE, SeededWords(5, run=run)))
        for run in range(runs)
    ]

    def squares(truth):
        errors = np.array(found) - truth / truth.sum()
        return float(np.einsum("ri,ij,rj->", errors, whiten, errors))

    assert not out_of_range(squares(PEOPLE), rank * runs), (squares(PEOPLE), rank * runs)
    assert out_of_range(squares(PEOPLE + np.array([-2000, 0, 2000, 0, 0, 0])), rank * runs)


def test_a_crowd_answers_once_each_whatever_the_chunks(monkeypatch):
    mechanism = sf.mechanism_for(sf.Uniform(6, 1))
    whole = tally_population(mechanism, PEOPLE, SeededWords(2))
    monkeypatch.setattr("sfumato.simulation.runs._CHUNK", 777)
    assert tally_population(mechanism, PEOPLE, SeededWords(2)) == whole
    people = np.repeat(np.arange(6), PEOPLE)
    assert mechanism.tally(mechanism.privatize(people, SeededWords(2))) == whole


# --- the comparison -------------------------------------------------------------------------------------

LUNCH = sf.HighLow(["park", "café", "clinic", "bar"], ["clinic", "bar"], 1)
COUNTS = [400, 300, 100, 200]


def quick(context=LUNCH, counts=COUNTS, **options):
    """Without the default decoder, which takes most of the time."""
    return compare(context, counts, decoder="projection", **options)


def figures(found):
    return json.dumps(found.in_json())


def test_classical_peers_take_the_smallest_promise():
    matrix = [[0, 3, 2], ["0.75", 0, 5], [4, 1, 0]]
    context = sf.PrivacyMatrix(matrix)
    mechanism = sf.PlainResponse(sf.Uniform(context.domain, "0.75"))
    found = quick(context, [5, 4, 3], mechanism=mechanism, draws=Draws(1))
    assert found.epsilon == 0.75
    assert [row.epsilon for row in found.rows[1:]] == [0.75] * 4
    assert found.row("oue").leverage == UnaryEncoding(3, 0.75).leverage
    assert found.row("hadamard").leverage == mechanism.scores.leverage


def test_no_peer_sees_more_than_the_context_allows():
    """Certified for the two that are mechanisms: at the ε that they were given, and not a hundredth more."""
    context = sf.Tiers([0, 0, 1, 1, 2], [1, 2, 3])
    for code in (sf.RandomizedCode, sf.HadamardCode):
        smallest = context.exact_smallest
        assert sf.certify(sf.PlainResponse(sf.Uniform(context.domain, smallest), code), context)
        with pytest.raises(sf.errors.PrivacyViolation):
            sf.certify(
                sf.PlainResponse(sf.Uniform(context.domain, smallest + Fraction(1, 100)), code),
                context,
            )


def test_everybody_is_decoded_alike_and_mechanisms_by_the_decoder_too():
    found = compare(LUNCH, COUNTS, draws=Draws(6, seed=3), decoder="unbiased")
    assert [row.name for row in found.rows] == ["sfumato", "k-rr", "hadamard", "oue", "olh"]
    assert [row.decoder_errors is None for row in found.rows] == [False, False, False, True, True]
    for row in found.rows:
        assert row.errors.shape == (6,)
        assert (row.errors >= 0).all()
        assert (row.errors <= 1).all()
    own = sf.mechanism_for(LUNCH)
    tally = tally_population(own, np.array(COUNTS), SeededWords(3, run=4))
    truth = np.array(COUNTS) / 1000
    assert found.rows[0].decoder_errors[4] == pytest.approx(
        np.abs(own.scores.unbiased(tally) - truth).sum() / 2
    )
    projected = project(own.scores.unbiased(tally))
    assert found.rows[0].errors[4] == pytest.approx(np.abs(projected - truth).sum() / 2)


@pytest.mark.parametrize("workers", [2, 3, 20])
def test_workers_change_nothing(workers):
    alone, together = (quick(draws=Draws(7, 1, number)) for number in (1, workers))
    assert figures(alone) == figures(together)
    for row, row2 in zip(alone.rows, together.rows, strict=True):
        np.testing.assert_array_equal(row.errors, row2.errors)


def test_more_runs_begin_like_fewer_and_seeds_differ():
    few, many, other = (quick(draws=Draws(runs, seed)) for runs, seed in ((3, 1), (5, 1), (3, 2)))
    for row, row2, row3 in zip(few.rows, many.rows, other.rows, strict=True):
        np.testing.assert_array_equal(row.errors, row2.errors[:3])
        assert (row.errors != row3.errors).any()


def test_participants_have_words_of_their_own():
    """The same channel twice, as one's own and as Hadamard response: the errors must not be copies."""
    found = quick(mechanism=sf.PlainResponse(sf.Uniform(LUNCH.domain, 1)), draws=Draws(5))
    own, hadamard = found.row("sfumato"), found.row("hadamard")
    assert own.l2 == hadamard.l2
    assert (own.errors != hadamard.errors).any()


def test_the_people_needed_are_the_ratio_of_mean_squares():
    found = quick(draws=Draws(1))
    assert found.people_needed(found.rows[0]) == 1
    wanted = UnaryEncoding(4, 1.0).variances(np.array(COUNTS)).sum() / found.rows[0].l2 ** 2
    assert found.people_needed(found.row("oue")) == pytest.approx(wanted)
    many = quick(counts=np.array(COUNTS) * 1000, draws=Draws(1))
    assert many.people_needed(many.row("oue")) == pytest.approx(
        found.people_needed(found.row("oue"))
    )


def test_where_ones_own_makes_no_error_nothing_is_divided_by_it():
    found = quick(sf.Blocks([0, 0, 1], 1), [0, 0, 5], draws=Draws(1))
    assert found.rows[0].l2 == 0
    assert {found.people_needed(row) for row in found.rows} == {None}
    json.loads(json.dumps(found.in_json(), allow_nan=False))


def test_the_spread_is_the_standard_error_of_the_mean():
    row = quick(draws=Draws(4)).rows[3]
    assert row.error.mean == pytest.approx(row.errors.mean())
    assert row.error.standard_error == pytest.approx(np.std(row.errors, ddof=1) / 2)
    assert quick(draws=Draws(1)).rows[3].error.standard_error is None


def test_it_says_not_private_and_shows_no_label():
    found = quick(draws=Draws(2))
    assert isinstance(found, Comparison)
    text = repr(found)
    assert text.startswith("NOT PRIVATE")
    assert "takes the smallest, ε = 1" in text
    for label in LUNCH.domain.labels:
        assert label not in text
        assert label not in figures(found)
    assert "smallest" not in repr(quick(sf.Uniform(3, 1), [1, 2, 3], draws=Draws(1)))


def test_each_mechanism_is_told_of_as_it_begins():
    told = []
    quick(draws=Draws(1), on_progress=told.append)
    assert told == ["Sfumato", "k-RR", "Hadamard response", "OUE", "OLH"]


@pytest.mark.parametrize(
    "counts", [[1, 2], [[1, 2, 3, 4]], [1.0, 2, 3, 4], [1, 2, 3, -4], "abcd", [True] * 4]
)
def test_a_crowd_is_a_whole_number_for_each_symbol(counts):
    with pytest.raises(
        InvalidSymbols, match="non-negative integers, one for each of the 4 symbols"
    ):
        compare(LUNCH, counts)


def test_nobody_is_no_crowd():
    with pytest.raises(NotEnoughReports, match="population is empty"):
        compare(LUNCH, [0, 0, 0, 0])


@pytest.mark.parametrize("context", [sf.Uniform(3, math.inf), sf.Blocks([0, 1, 2], 1)], ids=repr)
def test_a_promise_to_nobody_has_no_classical_peer(context):
    with pytest.raises(NothingToLearn, match="the smallest ε of this context is ∞"):
        compare(context, [1, 2, 3])


def test_a_mechanism_for_other_labels_is_refused():
    with pytest.raises(ContextMismatch, match="domain"):
        compare(LUNCH, COUNTS, mechanism=sf.mechanism_for(sf.Uniform(4, 1)))


def test_an_unknown_decoder_is_refused():
    with pytest.raises(InvalidArgument, match="decoder must be one of"):
        compare(LUNCH, COUNTS, decoder="nonsense")


@pytest.mark.parametrize("wrong", [{"runs": 0}, {"workers": 0}, {"runs": 1.5}, {"runs": True}])
def test_at_least_one_run_and_worker(wrong):
    with pytest.raises(InvalidArgument, match="positive integers"):
        Draws(**wrong)


@pytest.mark.parametrize("seed", [-1, 2**63, 0.5])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(InvalidArgument, match="seed must be an integer"):
        Draws(seed=seed)
