"""Maximum likelihood: no distribution is likelier by more than the gap."""

import math

import numpy as np
import pytest

from sfumato.codes import HadamardCode, RandomizedCode
from sfumato.contexts import Blocks, HighLow, Uniform
from sfumato.errors import InvalidArgument, NotEnoughReports, WrongSurvey
from sfumato.estimation.decoders import likelihood
from sfumato.estimation.decoders.decoder import DecoderResult, Projection
from sfumato.estimation.decoders.likelihood import Likelihood
from sfumato.foundation.simplex import project
from sfumato.mechanisms import (
    BlockResponse,
    GroupResponse,
    HighLowResponse,
    PlainResponse,
    TableResponse,
)
from sfumato.tally import Tally
from support.mechanism_examples import REPRESENTATIVES

ALL = [
    (f"{cls.__name__}-{i}", mechanism)
    for cls, each in REPRESENTATIVES.items()
    for i, mechanism in enumerate(each)
]
FIRST_OF_EACH = [
    (cls.__name__, each[min(2, len(each) - 1)]) for cls, each in REPRESENTATIVES.items()
]
every_example = pytest.mark.parametrize(
    "mechanism", [m for _, m in ALL], ids=[name for name, _ in ALL]
)
one_of_each = pytest.mark.parametrize(
    "mechanism", [m for _, m in FIRST_OF_EACH], ids=[n for n, _ in FIRST_OF_EACH]
)
BLOCKS = BlockResponse(Blocks([0, 0, 0, 1, 2, 2, 2, 2], 1), RandomizedCode)
TIGHT = Likelihood(tolerance=1e-4)


def _likely(mechanism, seed=0, reports=2_000):
    """Return the tally of a crowd with few of the symbols: many entries of p̂ are negative."""
    rng = np.random.default_rng(seed)
    q = np.maximum(mechanism.forward(rng.dirichlet(np.full(mechanism.inputs, 0.2))), 0)
    return Tally(rng.multinomial(reports, q / q.sum()), mechanism.fingerprint)


def _unlikely(mechanism, seed=0, reports=200):
    """Return a tally of random reports, impossible ones included."""
    rng = np.random.default_rng(seed)
    return Tally(
        rng.multinomial(reports, rng.dirichlet(np.full(mechanism.outputs, 0.3))),
        mechanism.fingerprint,
    )


def _naive_value(mechanism, tally, p):
    """Return Σ_y count(y) log q(y) over the reports that some symbol can send."""
    Q = mechanism.matrix()
    q = p @ Q
    return sum(
        count * (math.log(q[y]) if q[y] > 0 else -math.inf)
        for y, count in enumerate(tally.counts.tolist())
        if count and Q[:, y].any()
    )


def _naive_gap(mechanism, tally, p):
    """Return the gap by its formula, from the matrix, group by group."""
    Q = mechanism.matrix()
    n = tally.reports
    f = np.where(Q.any(axis=0), tally.counts / n, 0.0)
    q = p @ Q
    g = [sum(row[y] * f[y] / q[y] for y in range(f.size) if f[y] > 0) for row in Q]
    groups, shares = mechanism.scores.observed_shares(tally)
    tops = [max(g[x] for x in np.flatnonzero(groups == j)) for j in range(shares.size)]
    return n * (sum(share * top for share, top in zip(shares, tops, strict=True)) - f.sum())


def _slow_em(mechanism, tally, steps=2_000):
    """Run plain EM from even shares: p_x ← p_x Σ_y Q(y|x) f(y)/q(y), group by group."""
    Q = mechanism.matrix()
    possible = Q.any(axis=0)
    groups, shares = mechanism.scores.observed_shares(tally)
    p = (shares / np.bincount(groups))[groups]
    for _ in range(steps):
        q = p @ Q
        odds = np.divide(tally.counts, q, out=np.zeros_like(q), where=possible & (tally.counts > 0))
        weighted = p * (Q @ odds)
        totals = np.bincount(groups, weighted, minlength=shares.size)
        p = np.where(
            totals[groups] > 0, weighted * (shares / np.where(totals > 0, totals, 1))[groups], p
        )
    return p


def _demand_gap_holds(mechanism, tally, result, better):
    """Check that this distribution is not likelier by more than the gap."""
    rise = _naive_value(mechanism, tally, better) - _naive_value(
        mechanism, tally, result.frequencies
    )
    assert rise <= result.details["gap"] + 1e-9 * tally.reports


# --- the maximum and its bound --------------------------------------------------------------------


@every_example
@pytest.mark.parametrize("drawn", [_likely, _unlikely])
def test_likelihood_matches_em_and_its_gap_is_a_bound(mechanism, drawn):
    tally = drawn(mechanism)
    result = TIGHT.decode(mechanism, tally)
    assert result.details["converged"]
    assert 0 <= result.details["gap"] <= 1e-4
    naive = _naive_gap(mechanism, tally, result.frequencies)
    assert result.details["gap"] == pytest.approx(naive, abs=1e-9 * tally.reports)
    value = _naive_value(mechanism, tally, result.frequencies)
    assert result.details["log_likelihood"] == pytest.approx(value, rel=1e-12, abs=1e-9)
    slow = _slow_em(mechanism, tally, steps=500)
    _demand_gap_holds(mechanism, tally, result, slow)


@one_of_each
def test_likelihood_matches_a_general_optimiser(mechanism):
    optimize = pytest.importorskip("scipy.optimize")
    tally = _likely(mechanism, seed=3, reports=500)
    groups, shares = mechanism.scores.observed_shares(tally)
    Q = mechanism.matrix()
    n = tally.reports
    observed = np.flatnonzero(tally.counts)
    sums = [
        {"type": "eq", "fun": lambda p, j=j: p[groups == j].sum() - shares[j]}
        for j in range(shares.size)
    ]
    optimum = optimize.minimize(
        lambda p: -(tally.counts[observed] / n) @ np.log(np.maximum(p @ Q[:, observed], 1e-12)),
        (shares / np.bincount(groups))[groups],
        bounds=[(0, 1)] * mechanism.inputs,
        constraints=sums,
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1_000},
    )
    result = TIGHT.decode(mechanism, tally)
    assert result.details["log_likelihood"] == pytest.approx(-n * optimum.fun, abs=1e-3)
    # One standard error costs half a unit, so 1e-4 of a unit is about a hundredth of one.
    reach = 0.05 * np.sqrt(mechanism.scores.variances(result.frequencies, n).clip(0)) + 1e-4
    assert (np.abs(result.frequencies - optimum.x) <= reach).all()


@every_example
def test_result_is_a_distribution_at_least_as_likely_as_the_projection(
    mechanism,
):
    for drawn, most in ((_likely, 5_000), (_unlikely, 5_000), (_likely, 1)):
        tally = drawn(mechanism, seed=1)
        result = Likelihood(max_iterations=most).decode(mechanism, tally)
        groups, shares = mechanism.scores.observed_shares(tally)
        assert (result.frequencies >= 0).all()
        assert np.bincount(groups, result.frequencies).tolist() == pytest.approx(
            shares.tolist(), abs=1e-12
        )
        nearest = Projection().decode(mechanism, tally).frequencies
        least = _naive_value(mechanism, tally, nearest)
        assert _naive_value(mechanism, tally, result.frequencies) >= least - 1e-12 * abs(least)
        assert result.details["iterations"] <= most


@pytest.mark.parametrize(
    "mechanism", [BLOCKS, PlainResponse(Uniform(5, 1), HadamardCode)], ids=["blocks", "plain"]
)
@pytest.mark.parametrize(
    "wrong",
    [
        lambda problem, g: max(
            float(problem.shares @ np.full(problem.shares.size, g.max())) - 1, 0.0
        ),
        lambda problem, g: problem.report_count * max(float(g.mean()) - 1, 0.0),
        lambda problem, g: problem.report_count * max(float(np.median(g)) - 1, 0.0),
    ],
    ids=["as if of one report", "the mean", "the median"],
)
def test_wrong_gap_is_detected(mechanism, wrong, monkeypatch):
    tallies = [_likely(mechanism, seed) for seed in range(5)]
    tops = [_slow_em(mechanism, tally) for tally in tallies]
    for tally, top in zip(tallies, tops, strict=True):
        _demand_gap_holds(
            mechanism, tally, Likelihood(max_iterations=1).decode(mechanism, tally), top
        )
    monkeypatch.setattr(likelihood._Problem, "gap_from_gradient", wrong)
    with pytest.raises(AssertionError):  # any of the tallies may show it
        for tally, top in zip(tallies, tops, strict=True):
            _demand_gap_holds(
                mechanism, tally, Likelihood(max_iterations=1).decode(mechanism, tally), top
            )


# --- correct results ------------------------------------------------------------------------------


class _Even:
    """A replacement for the projection: even shares, far from the truth."""

    def decode(self, mechanism, tally):
        groups, shares = mechanism.scores.observed_shares(tally)
        return DecoderResult((shares / np.bincount(groups))[groups])


@every_example
def test_exact_frequencies_recover_the_distribution(mechanism, monkeypatch):
    p = np.random.default_rng(7).dirichlet(np.ones(mechanism.inputs))
    p[1::3] = 0
    p /= p.sum()
    tally = Tally(np.rint(mechanism.forward(p) * 2**30).astype(np.int64), mechanism.fingerprint)
    close = pytest.approx(
        p.tolist(), abs=20 * max(math.sqrt(mechanism.scores.risk(p)), 1) / 2**15 * 1e-2 + 1e-6
    )
    assert Likelihood().decode(mechanism, tally).frequencies.tolist() == close
    monkeypatch.setattr(likelihood, "Projection", _Even)
    assert Likelihood().decode(mechanism, tally).frequencies.tolist() == close


def test_unrandomized_reports_are_counted():
    clear = HighLowResponse(HighLow(4, [], 1))
    counts = np.array([5, 0, 3, 2])
    assert Likelihood().decode(clear, Tally(counts, clear.fingerprint)).frequencies.tolist() == [
        0.5,
        0,
        0.3,
        0.2,
    ]
    mixed = BlockResponse(Blocks([0, 0, 0, 1, 1, 1, 1], [1, math.inf]))
    tally = Tally(np.array([*[9, 1, 1, 1], *[6, 0, 3, 1]]), mixed.fingerprint)
    assert Likelihood().decode(mixed, tally).frequencies[3:].tolist() == pytest.approx(
        [6 / 22, 0, 3 / 22, 1 / 22]
    )


def test_observed_free_symbols_stay_possible():
    """Euclidean projection cuts one to 0, where the tally is impossible; likelihood must not."""
    mechanism = HighLowResponse(HighLow(40, range(31), 0.5), HadamardCode)
    counts = np.zeros(mechanism.outputs, dtype=np.int64)
    counts[1:13] = 25
    counts[-1] = 1
    tally = Tally(counts, mechanism.fingerprint)
    assert project(mechanism.scores.unbiased(tally))[-1] == 0
    result = TIGHT.decode(mechanism, tally)
    assert result.frequencies[-1] >= 1 / tally.reports
    assert result.details["converged"]


@every_example
def test_few_reports_are_enough(mechanism):
    for seed in range(6):
        for reports in (1, 3):
            tally = _unlikely(mechanism, seed, reports)
            result = Likelihood().decode(mechanism, tally)
            assert result.details["converged"]
            assert math.isfinite(_naive_value(mechanism, tally, result.frequencies))


def test_block_without_reports_decodes_to_zero():
    counts = np.zeros(BLOCKS.outputs, dtype=np.int64)
    counts[:3] = 4, 2, 2
    result = Likelihood().decode(BLOCKS, Tally(counts, BLOCKS.fingerprint))
    assert (result.frequencies[3:] == 0).all()
    assert result.details["converged"]


def test_impossible_reports_have_no_effect():
    mechanism = TableResponse.from_fractions(
        Uniform(2, 1), [["0.5", "0.25", "0.25", 0], ["0.25", "0.5", "0.25", 0]]
    )
    with_it, without = (Tally(np.array([30, 25, 10, c]), mechanism.fingerprint) for c in (7, 0))
    one, other = (TIGHT.decode(mechanism, tally) for tally in (with_it, without))
    assert one.frequencies.tolist() == pytest.approx(other.frequencies.tolist(), abs=1e-3)
    assert one.details["log_likelihood"] == pytest.approx(other.details["log_likelihood"], abs=1e-4)
    nothing_else = Tally(np.array([0, 0, 0, 7]), mechanism.fingerprint)
    assert Likelihood().decode(mechanism, nothing_else).frequencies.sum() == pytest.approx(1)


# --- details and invalid input --------------------------------------------------------------------


def test_likelihood_reports_when_it_did_not_converge():
    tally = _likely(BLOCKS, seed=4)
    details = Likelihood(tolerance=1e-9, max_iterations=1).decode(BLOCKS, tally).details
    assert set(details) == {"gap", "log_likelihood", "iterations", "converged"}
    assert details["converged"] is False
    assert details["gap"] > 1e-9
    assert Likelihood().name == "likelihood"


@pytest.mark.parametrize("tolerance", [0, -1, math.inf, math.nan])
def test_invalid_tolerances_are_rejected(tolerance):
    with pytest.raises(InvalidArgument, match="tolerance must be positive"):
        Likelihood(tolerance=tolerance)


@pytest.mark.parametrize("most", [0, -3, 2.5, True])
def test_invalid_max_iterations_are_rejected(most):
    with pytest.raises(InvalidArgument, match="max_iterations must be a positive integer"):
        Likelihood(max_iterations=most)


def test_foreign_and_empty_tallies_are_rejected():
    with pytest.raises(WrongSurvey):
        Likelihood().decode(BLOCKS, Tally(np.ones(BLOCKS.outputs, dtype=np.int64), "other"))
    with pytest.raises(NotEnoughReports):
        Likelihood().decode(
            BLOCKS, Tally(np.zeros(BLOCKS.outputs, dtype=np.int64), BLOCKS.fingerprint)
        )


# --- speed, in iterations -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mechanism", "most"),
    [
        (PlainResponse(Uniform(2_000, 1), HadamardCode), 10),
        (BlockResponse(Blocks(np.arange(2_000) // 25, 1), HadamardCode), 25),
        (HighLowResponse(HighLow(2_000, range(1_500), 1), HadamardCode), 12),
    ],
    ids=["plain", "blocks", "high-low"],
)
@pytest.mark.parametrize("reports", [1_000, 100_000, 4_000_000])
def test_few_iterations_are_enough(mechanism, most, reports):
    result = Likelihood().decode(mechanism, _likely(mechanism, reports=reports))
    assert result.details["converged"]
    assert result.details["iterations"] <= most


@pytest.mark.parametrize(
    ("mechanism", "seed"),
    [
        (HighLowResponse(HighLow(20, range(0, 20, 3), 1), HadamardCode), 0),
        (GroupResponse(HighLow(6, [1, 4, 5], 2), HadamardCode), 1),
    ],
    ids=["high-low", "groups"],
)
def test_start_at_the_right_scale_saves_iterations(mechanism, seed):
    """The projection removes most of the free symbols, whose reports do not fit the others."""
    details = Likelihood().decode(mechanism, _unlikely(mechanism, seed, 1_000_000)).details
    assert details["converged"]
    assert details["iterations"] <= 40


def test_momentum_keeps_probabilities_positive():
    before = likelihood._Point(np.array([0.5, 0.5]), np.array([0.6, 0.4]))
    now = likelihood._Point(np.array([0.1, 0.9]), np.array([0.2, 0.8]))
    assert now.extrapolate(before, 0.25).q.tolist() == pytest.approx([0.1, 0.9])
    far = now.extrapolate(before, 0.9)
    assert far.q.tolist() == pytest.approx([0.02, 0.98])
    assert far.p.tolist() == pytest.approx([-0.08, 1.08])
