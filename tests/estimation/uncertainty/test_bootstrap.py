"""The bootstrap repeats the way from the truth to the decoded frequencies."""

import numpy as np
import pytest
from scipy.stats import chi2

import sfumato as sf
from sfumato.errors import InvalidArgument
from sfumato.estimation.decoders.decoder import DecoderResult, Projection, Unbiased
from sfumato.estimation.uncertainty.bootstrap import Bootstrap
from support.mechanism_examples import REPRESENTATIVES

PLAIN = sf.PlainResponse(sf.Uniform(list("abcde"), 1.0))
CROWD = np.array([0.4, 0.3, 0.2, 0.1, 0.0])


def _estimate(mechanism=PLAIN, p=CROWD, reports=20_000, decoder="projection", seed=0):
    q = np.maximum(mechanism.forward(p), 0)
    counts = np.random.default_rng(seed).multinomial(reports, q / q.sum())
    return sf.estimate(mechanism, sf.Tally(counts, mechanism.fingerprint), decoder=decoder)


def _naive(mechanism, p, reports, runs, seed):
    """Run the bootstrap with NumPy's multinomial and a list of results."""
    random = np.random.default_rng(seed)
    q = mechanism.forward(p)
    tallies = [
        sf.Tally(random.multinomial(reports, q / q.sum()), mechanism.fingerprint)
        for _ in range(runs)
    ]
    pictures = np.array([Projection().decode(mechanism, tally).frequencies for tally in tallies])
    return np.abs(pictures - p).sum(axis=1) / 2, pictures


def test_bootstrap_matches_a_slow_twin():
    result = _estimate()
    p = result.frequencies
    runs = 1500
    boot = result.bootstrap(runs)
    errors, pictures = _naive(PLAIN, p, result.reports, runs, 1)
    # Two means of 1,500 runs each: within six standard errors of each other.
    spread = np.sqrt((errors.var() + boot.errors.var()) / runs)
    assert abs(boot.mean_error - errors.mean()) < 6 * spread
    assert boot.standard_errors == pytest.approx(pictures.std(axis=0, ddof=1), rel=0.12, abs=1e-9)
    assert boot.biases == pytest.approx(
        (pictures - p).mean(axis=0), abs=6 * pictures.std() / np.sqrt(runs)
    )
    low, high = np.quantile(errors, [0.025, 0.975])
    assert (boot.low, boot.high) == pytest.approx((low, high), rel=0.15)


def test_bootstrap_errors_of_the_unbiased_decoder_are_exact():
    """Variances over runs are scaled chi-squares; both tails at 1e-6, over five symbols."""
    result = _estimate(p=np.full(5, 0.2), decoder="unbiased")
    runs = 400
    boot = result.bootstrap(runs)
    variances = PLAIN.scores.variances(result.frequencies, result.reports)
    ratio = (runs - 1) * boot.standard_errors**2 / variances
    assert (chi2.sf(ratio, runs - 1) > 1e-6 / 5).all()
    assert (chi2.cdf(ratio, runs - 1) > 1e-6 / 5).all()


def test_bootstrap_test_detects_half_the_reports():
    result = _estimate(p=np.full(5, 0.2), decoder="unbiased")
    runs = 400
    half = sf.Tally(result._tally.counts // 2, PLAIN.fingerprint)
    boot = Bootstrap.run(PLAIN, Unbiased(), half, result.frequencies, runs=runs, seed=0, level=0.95)
    ratio = (
        (runs - 1)
        * boot.standard_errors**2
        / PLAIN.scores.variances(result.frequencies, result.reports)
    )
    assert (chi2.sf(ratio, runs - 1) < 1e-6 / 5).any()


def test_interval_contains_the_actual_error():
    """A smooth crowd with many reports: projection would move hardly any estimate."""
    runs = 60
    hits = 0
    for seed in range(runs):
        smooth = np.array([0.3, 0.25, 0.2, 0.15, 0.1])
        result = _estimate(seed=seed, p=smooth, decoder="unbiased")
        boot = result.bootstrap(100, seed=seed)
        hits += boot.low <= np.abs(result.frequencies - smooth).sum() / 2 <= boot.high
    assert hits >= 46  # 57 on average; below 46 less than once in a million runs


@pytest.mark.parametrize("mechanism", [each[0] for each in REPRESENTATIVES.values()], ids=repr)
def test_every_mechanism_has_a_bootstrap(mechanism):
    p = np.random.default_rng(0).dirichlet(np.ones(mechanism.inputs))
    boot = _estimate(mechanism, p, reports=500).bootstrap(5)
    assert 0 <= boot.low <= boot.mean_error <= boot.high <= 1
    assert boot.errors.shape == (5,)
    assert boot.standard_errors.shape == (mechanism.inputs,)


def test_bootstrap_depends_on_the_seed():
    result = _estimate()
    first, again, other = (result.bootstrap(10, seed=seed) for seed in (3, 3, 4))
    assert first.errors.tolist() == again.errors.tolist()
    assert first.errors.tolist() != other.errors.tolist()


def test_higher_level_gives_a_wider_interval():
    result = _estimate()
    narrow = result.bootstrap(100, level=0.5)
    wide = result.bootstrap(100, level=0.95)
    assert wide.low < narrow.low < narrow.mean_error < narrow.high < wide.high


def test_bootstrap_reuses_the_estimate_decoder():
    class Stubborn:
        name = "stubborn"

        def decode(self, mechanism, tally):
            return DecoderResult(CROWD)

    boot = _estimate(decoder=Stubborn()).bootstrap(3)
    assert boot.errors.tolist() == [0, 0, 0]
    assert boot.standard_errors.tolist() == [0] * 5


def test_few_reports_have_bootstrap_errors():
    boot = _estimate(reports=1).bootstrap(50)
    assert np.isfinite(boot.errors).all()


def test_bootstrap_repr_names_measure_and_runs():
    assert "total variation" in repr(_estimate().bootstrap(5))
    assert "5 runs" in repr(_estimate().bootstrap(5))


@pytest.mark.parametrize("runs", [0, 1, -3, 2.5, True, "many"])
def test_too_few_runs_are_rejected(runs):
    with pytest.raises(InvalidArgument, match="runs must be an integer of at least 2"):
        _estimate().bootstrap(runs)


@pytest.mark.parametrize("seed", [1.5, None, "seed", True])
def test_seed_must_be_an_integer(seed):
    with pytest.raises(InvalidArgument, match="seed must be an integer"):
        _estimate().bootstrap(2, seed=seed)
