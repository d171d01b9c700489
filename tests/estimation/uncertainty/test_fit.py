"""Goodness of fit: honest reports pass, others are detected, and chance raises no alarm."""

import itertools
import warnings

import numpy as np
import pytest
from scipy.special import gammaincc
from scipy.stats import binom, chi2

import sfumato as sf
from sfumato.estimation.uncertainty import fit as module
from sfumato.estimation.uncertainty.fit import REJECTION_THRESHOLD, FitWarning, check_fit
from sfumato.mechanisms import ScoreMoments
from support.mechanism_examples import ALL_REPRESENTATIVES
from support.slow import slow_except

LARGE = {
    "Hadamard": sf.PlainResponse(sf.Uniform(600, 1.0)),
    "blocks": sf.BlockResponse(sf.Blocks(np.repeat(np.arange(40), 6), 1.0)),
    "high-low": sf.HighLowResponse(sf.HighLow(500, range(300), 1.0)),
    "cyclic": sf.PlainResponse(sf.Uniform(100, 2.0), sf.BestCode()),
    "two-level": sf.GroupResponse(sf.Blocks(np.repeat(np.arange(4), 14), 1.0, across=2)),
}


def _draw_counts(mechanism, reports, seed, concentration=1.0):
    random = np.random.default_rng(seed)
    q = np.maximum(mechanism.forward(random.dirichlet(np.full(mechanism.inputs, concentration))), 0)
    return random.multinomial(reports, q / q.sum())


def _fit(mechanism, counts):
    return check_fit(mechanism, sf.Tally(counts, mechanism.fingerprint))


# --- honest reports -------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ALL_REPRESENTATIVES, ids=repr)
def test_honest_reports_are_possible(mechanism):
    for reports, (seed, concentration) in itertools.product(
        [1, 3, 100, 50_000], [(0, 0.1), (1, 10)]
    ):
        result = _fit(mechanism, _draw_counts(mechanism, reports, seed, concentration))
        assert result.is_possible, result
        assert "cannot have come" not in result.verdict
        assert 0 <= result.p_value <= 1


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("reports", slow_except({1000}, [150, 1000, 20_000]))
def test_p_values_of_honest_reports_are_not_too_small(name, reports):
    """From mostly empty to full cells, at levels of 10 and 1 %, by the exact tail at 1e-6."""
    runs = 60
    mechanism = LARGE[name]
    result = np.array(
        [
            _fit(mechanism, _draw_counts(mechanism, reports, seed, 0.3)).p_value
            for seed in range(runs)
        ]
    )
    for level in (0.1, 0.01):
        assert binom.sf((result < level).sum() - 1, runs, level) > 1e-6


def test_p_values_of_residuals_are_even():
    """They are not conservative: half of them lie below one half."""
    mechanism = LARGE["Hadamard"]
    runs = 100
    result = np.array(
        [
            _fit(mechanism, _draw_counts(mechanism, 3000, seed)).tests["residuals"]
            for seed in range(runs)
        ]
    )
    assert 1e-6 < binom.cdf((result < 0.5).sum(), runs, 0.5) < 1 - 1e-6


def _dense(mechanism, counts):
    """Return the statistic and its p-value from explicit matrices."""
    Q = mechanism.matrix()
    A = mechanism.scores.matrix()
    n = counts.sum()
    f = counts / n
    P = np.eye(mechanism.outputs) - Q.T @ A
    q = module._q_with_smoothing(mechanism, sf.Tally(counts, mechanism.fingerprint))
    root = np.diag(q**-0.5)
    statistic = n * ((P @ f) ** 2 / q).sum()
    M = root @ P @ np.diag(q) @ P.T @ root
    rho = np.diag(P.T @ np.diag(1 / q) @ P)
    squares = np.trace(M @ M)
    skewness = (8 * squares**2 / np.trace(M) + 4 / n * (q**2 * rho**3).sum()) / (2 * squares) ** 1.5
    z = (statistic - f @ rho) / np.sqrt(2 * squares)
    return statistic, gammaincc(4 / skewness**2, 4 / skewness**2 + 2 * z / skewness)


@pytest.mark.parametrize(
    "mechanism",
    [
        sf.PlainResponse(sf.Uniform(20, 1.0)),
        sf.PlainResponse(sf.Uniform(6, 1.0), sf.CyclicDesign(6, ((0, 1), (0, 2)))),
        sf.GroupResponse(sf.Blocks([0, 0, 0, 1, 1, 1, 1, 2, 2, 2], 1, across=2)),
        sf.ComposedResponse(
            sf.PlainResponse(sf.Uniform(3, 1)), sf.PlainResponse(sf.Uniform(3, 0.5))
        ),
    ],
    ids=repr,
)
def test_residuals_are_those_of_matrices_written_out(mechanism):
    counts = _draw_counts(mechanism, 4000, 1)
    result = _fit(mechanism, counts)
    statistic, p_value = _dense(mechanism, counts)
    assert result.statistic == pytest.approx(statistic, rel=1e-6)
    assert result.tests["residuals"] == pytest.approx(p_value, rel=1e-5)
    assert result.degrees_of_freedom == mechanism.outputs - mechanism.inputs


def test_random_directions_agree_with_all_of_them(monkeypatch):
    mechanism = sf.PlainResponse(sf.Uniform(150, 1.0))
    counts = _draw_counts(mechanism, 20_000, 2)
    exact = _fit(mechanism, counts).tests["residuals"]
    monkeypatch.setattr(module, "_MAX_EXACT_OUTPUTS", 8)
    assert _fit(mechanism, counts).tests["residuals"] == pytest.approx(exact, abs=0.15)


def test_p_value_is_chi_square_for_many_reports():
    mechanism = sf.PlainResponse(sf.Uniform(6, 1.0), sf.CyclicDesign(6, ((0, 1), (0, 2))))
    q = mechanism.forward(np.full(6, 1 / 6))
    counts = np.random.default_rng(5).multinomial(10**6, q)
    result = _fit(mechanism, counts)
    assert result.tests["residuals"] == pytest.approx(chi2.sf(result.statistic, 6), abs=0.01)


# --- reports that do not fit ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Hadamard", "blocks", "high-low", "two-level"])
def test_evenly_drawn_reports_are_detected(name):
    mechanism = LARGE[name]
    counts = np.random.default_rng(1).multinomial(
        300_000, np.full(mechanism.outputs, 1 / mechanism.outputs)
    )
    assert not _fit(mechanism, counts).is_possible


def test_noise_among_honest_reports_is_detected():
    mechanism = LARGE["high-low"]
    honest = _draw_counts(mechanism, 500_000, 1)
    noise = np.random.default_rng(1).multinomial(
        500_000, np.full(mechanism.outputs, 1 / mechanism.outputs)
    )
    assert _fit(mechanism, honest).is_possible
    result = _fit(mechanism, honest + noise)
    assert result.tests["noise"] < 1e-9
    assert result.tests["noise"] < 1e-3 * result.tests["residuals"]


@pytest.mark.parametrize("name", LARGE)
def test_repeated_report_is_detected(name):
    mechanism = LARGE[name]
    counts = _draw_counts(mechanism, 50_000, 3)
    counts[mechanism.outputs // 3] += 3000
    result = _fit(mechanism, counts)
    assert result.p_value < REJECTION_THRESHOLD
    assert "cannot have come from this mechanism" in result.verdict


def test_unrandomised_answers_are_detected():
    mechanism = sf.PlainResponse(sf.Uniform(10, 1.0), sf.RandomizedCode)
    counts = np.array([50_000, 30_000, 10_000, 5000, 1000, 0, 0, 0, 0, 0])
    result = _fit(mechanism, counts)
    assert not result.is_possible
    assert "far below 0" in result.verdict


RANDOMISED = sf.PlainResponse(sf.Uniform(60, 1.0), sf.RandomizedCode)


def _forge_counts(mechanism, reports, forged, seed):
    """Return honest reports of a uniform crowd, and one report that all forgers send."""
    q = mechanism.forward(np.full(mechanism.inputs, 1 / mechanism.inputs))
    counts = np.random.default_rng(seed).multinomial(reports - forged, q)
    counts[7] += forged
    return counts


def test_share_far_above_one_is_detected():
    """Each other share is below 0 by less than its noise, but their sum is far below."""
    counts = _forge_counts(RANDOMISED, 3000, 250, 1)
    f = counts / 3000
    assert RANDOMISED.scores.mean(f)[7] > 2.5
    low = module.probability_below(ScoreMoments.for_symbols(RANDOMISED.scores, f), 3000, 0.0)
    assert low.min() > 1e-4  # not visible from below
    result = _fit(RANDOMISED, counts)
    assert not result.is_possible
    assert "far above 1" in result.verdict


def test_share_of_one_is_not_flagged():
    """Everyone has the same symbol: half of all estimates exceed 1 by chance."""
    runs = 200
    q = RANDOMISED.forward(np.eye(60)[7])
    results = [
        _fit(RANDOMISED, np.random.default_rng(seed).multinomial(3000, q)) for seed in range(runs)
    ]
    for level in (0.1, 0.01):
        assert binom.sf(sum(fit.p_value < level for fit in results) - 1, runs, level) > 1e-6


@pytest.mark.parametrize("mechanism", ALL_REPRESENTATIVES, ids=repr)
def test_complement_has_the_moments_of_one_minus_scores(mechanism):
    counts = _draw_counts(mechanism, 500, 2)
    f = counts / 500
    B = 1 - mechanism.scores.matrix()
    result = module._complement(ScoreMoments.for_symbols(mechanism.scores, f))
    for moment, i in ((result.first, 1), (result.second, 2), (result.third, 3)):
        np.testing.assert_allclose(moment, B**i @ f, rtol=1e-7, atol=1e-7 * np.abs(B).max() ** i)
    assert np.all(result.lowest <= B.min(axis=1) + 1e-9)
    assert np.all(result.highest >= B.max(axis=1) - 1e-9)


def test_correction_counts_every_test_of_a_share():
    """The smallest p-value times two tests per symbol and two per group."""
    mechanism = sf.HighLowResponse(sf.HighLow(5, [0, 1], 1.0))
    # Nearly all reports are unrandomized, slightly more than possible.
    counts = np.array([54, 54, 54, 54, 0, 0, 225])
    n = counts.sum()
    A = mechanism.scores.matrix()
    f = counts / n
    group_of = mechanism.context.groups.group_of
    totals = [A[group_of == g].sum(axis=0) for g in range(group_of.max() + 1)]
    assert len(totals) > 1
    scores = [a for row in [*A, *totals] for a in (row, 1 - row)]
    chances = [
        module.probability_below(ScoreMoments.for_total(row, f), n, 0.0)[0] for row in scores
    ]
    expected = min(chances) * 2 * (5 + len(totals))
    assert expected < 0.5
    assert _fit(mechanism, counts).tests["impossible shares"] == pytest.approx(expected, rel=1e-6)


def test_reports_of_another_epsilon_are_detected():
    mine, other = (sf.PlainResponse(sf.Uniform(12, epsilon)) for epsilon in (1.0, 4.0))
    counts = np.random.default_rng(0).multinomial(50_000, other.forward([0.5, 0.4] + [0.01] * 10))
    assert not _fit(mine, counts).is_possible


def test_group_share_far_below_zero_is_detected():
    mechanism = sf.HighLowResponse(sf.HighLow(4, [0, 1], 1.0))
    counts = np.zeros(mechanism.outputs, dtype=int)
    counts[-2:] = 5000  # all reports unrandomized: nobody gave cover
    assert not _fit(mechanism, counts).is_possible


def test_reports_that_no_symbol_sends_are_named():
    mechanism = sf.TableResponse.from_fractions(
        sf.Uniform(2, 1), [["0.5", "0.25", "0.25", 0], ["0.25", "0.5", "0.25", 0]]
    )
    assert _fit(mechanism, [40, 40, 20, 0]).impossible_count == 0
    result = _fit(mechanism, [40, 40, 20, 3])
    assert (result.p_value, result.impossible_count) == (0, 3)
    assert "3 of the 103 reports cannot come from any symbol" in result.verdict


def test_wrong_residual_is_detected(monkeypatch):
    """A planted fault: residuals against a slightly wrong crowd."""
    mechanism = LARGE["Hadamard"]
    right = module._Residuals.project
    monkeypatch.setattr(
        module._Residuals,
        "project",
        lambda self, u: right(self, u) + 0.02 * np.sin(np.arange(u.size)) * u,
    )
    assert not _fit(mechanism, _draw_counts(mechanism, 10**7, 4)).is_possible


# --- texts and warnings ---------------------------------------------------------------------------


def test_single_symbol_always_fits():
    mechanism = sf.PlainResponse(sf.Uniform(1, 1.0))
    result = _fit(mechanism, [10])
    assert (result.p_value, result.tests) == (1, {})
    assert result.verdict == "Any reports would fit this mechanism."


def test_verdict_names_a_doubtful_fit():
    words = module._verdict(1e-4, {"residuals": 5e-5, "noise": 0.3}, 0, 100)
    assert words.startswith("The fit is doubtful (p = 0.0001)")


def test_estimate_warns_only_on_request():
    mechanism = sf.PlainResponse(sf.Uniform(["a", "b", "c"], 1.0))
    tally = sf.Tally([0, 50_000, 50_000, 0], mechanism.fingerprint)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = sf.estimate(mechanism, tally)
        repr(result)
        result._repr_html_()
    with pytest.warns(FitWarning, match="cannot have come from this mechanism"):
        first = result.check_fit()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert result.fit_result is first


def test_good_fit_does_not_warn():
    mechanism = sf.PlainResponse(sf.Uniform(["a", "b", "c"], 1.0))
    fit = sf.estimate(
        mechanism, sf.Tally(_draw_counts(mechanism, 1000, 1), mechanism.fingerprint)
    ).fit_result
    assert fit.verdict == "The reports fit the mechanism."
