"""Mixtures with projection, weighted by an unbiased comparison of halves of the tally."""

from dataclasses import dataclass

import numpy as np
import pytest

from sfumato.codes import RandomizedCode
from sfumato.contexts import Blocks, Uniform
from sfumato.estimation.decoders import halves
from sfumato.estimation.decoders.decoder import DecoderResult, Projection
from sfumato.estimation.decoders.empirical_bayes import EmpiricalBayes
from sfumato.estimation.decoders.halves import bayes_weight, mix_with_projection, split_in_half
from sfumato.mechanisms import BlockResponse, PlainResponse
from sfumato.tally import Tally

PLAIN = PlainResponse(Uniform(300, 1))
SPIKY = np.where(np.arange(300) < 6, 0.16, 0.04 / 294)


@dataclass(frozen=True)
class _Planted:
    """A decoder that always returns the same frequencies."""

    frequencies: np.ndarray
    name: str = "planted"

    def decode(self, mechanism, tally):
        return DecoderResult(self.frequencies)


def _draw_tally(mechanism, p, reports, seed=0):
    q = np.maximum(mechanism.forward(p), 0)
    return Tally(
        np.random.default_rng(seed).multinomial(reports, q / q.sum()), mechanism.fingerprint
    )


def _naive_share(o, e, p):
    """Return the λ for which λe + (1 − λ)o is nearest to p in weighted squares, by grid search."""
    D = np.abs(o - e)
    omega = D + 0.1 * D.mean()
    tried = np.linspace(-2, 3, 5_001)
    losses = ((np.outer(tried, e) + np.outer(1 - tried, o) - p) ** 2 / omega).sum(axis=1)
    return tried[int(np.argmin(losses))]


# --- equal estimates ------------------------------------------------------------------------------


def test_equal_estimates_have_no_weight_to_choose():
    """Where nothing is shrunk, both estimates agree but for rounding, which must not decide."""
    mechanism = PlainResponse(Uniform(3, 2), RandomizedCode)
    for seed in range(20):
        tally = _draw_tally(mechanism, np.array([0.56, 0.04, 0.40]), 4820, seed)
        details = mix_with_projection(EmpiricalBayes(), mechanism, tally).details
        assert (details["chosen"], details["share"]) == ("empirical-bayes", 1.0)


# --- the weight -----------------------------------------------------------------------------------


def test_perfect_decoder_gets_full_weight():
    judged = [
        bayes_weight(_Planted(SPIKY), PLAIN, _draw_tally(PLAIN, SPIKY, 200_000, seed))
        for seed in range(20)
    ]
    shares, errors = np.array(judged).T
    assert (np.abs(shares - 1) < 5 * errors).all()
    assert abs(shares.mean() - 1) < 5 * errors.mean() / np.sqrt(20)
    assert errors.max() < 0.6


def test_bad_decoder_gets_little_weight():
    """It returns equal shares for a crowd on six symbols with many reports."""
    for seed in range(5):
        share, error = bayes_weight(
            _Planted(np.full(300, 1 / 300)), PLAIN, _draw_tally(PLAIN, SPIKY, 500_000, seed)
        )
        assert share < 0.1
        assert error < 0.05


def test_weight_is_that_of_the_best_mixture():
    """Exactly for B's unbiased estimate, and within the claimed error for p itself."""
    e = 0.5 * SPIKY + 0.5 / 300
    deviations = []
    for seed in range(20):
        a, b = split_in_half(_draw_tally(PLAIN, SPIKY, 100_000, seed))
        share, error = halves._one_way_weight(_Planted(e), PLAIN, a, b)
        o = Projection().decode(PLAIN, a).frequencies
        assert share == pytest.approx(_naive_share(o, e, PLAIN.scores.unbiased(b)), abs=1e-3)
        deviations.append((share - _naive_share(o, e, SPIKY)) / error)
    assert np.abs(deviations).max() < 5
    assert abs(np.mean(deviations)) < 5 / np.sqrt(20)
    assert 0.4 < np.std(deviations) < 2  # the claimed error is the actual spread


def test_projection_keeps_its_full_weight():
    assert bayes_weight(Projection(), PLAIN, _draw_tally(PLAIN, SPIKY, 1_000)) == (1.0, np.inf)


def test_one_half_without_reports_cannot_judge():
    tally = PLAIN.tally([5])
    assert bayes_weight(EmpiricalBayes(), PLAIN, tally) == (1.0, np.inf)


def test_imprecise_split_uses_both_halves(monkeypatch):
    tally = _draw_tally(PLAIN, SPIKY, 3_000)
    decoder = _Planted(np.full(300, 1 / 300))
    a, b = split_in_half(tally)
    first = halves._one_way_weight(decoder, PLAIN, a, b)
    second = halves._one_way_weight(decoder, PLAIN, b, a)
    monkeypatch.setattr(halves, "_MAX_ONE_WAY_ERROR", first[1] / 2)
    share, error = bayes_weight(decoder, PLAIN, tally)
    assert share == pytest.approx((first[0] + second[0]) / 2)
    assert error == pytest.approx(np.hypot(first[1], second[1]) / 2)
    monkeypatch.setattr(halves, "_MAX_ONE_WAY_ERROR", first[1] * 2)
    assert bayes_weight(decoder, PLAIN, tally) == first


# --- the mixture ----------------------------------------------------------------------------------


def test_mixture_has_the_weight_plus_its_error():
    tally = _draw_tally(PLAIN, SPIKY, 200_000)
    result = mix_with_projection(EmpiricalBayes(), PLAIN, tally)
    bayes, projected = (
        decoder.decode(PLAIN, tally).frequencies for decoder in (EmpiricalBayes(), Projection())
    )
    share, error = bayes_weight(EmpiricalBayes(), PLAIN, tally)
    share = min(max(share + error, 0.0), 1.0)
    assert result.details["chosen"] == "empirical-bayes"
    assert result.details["share"] == pytest.approx(share, abs=1e-4)
    assert result.frequencies == pytest.approx(share * bayes + (1 - share) * projected, abs=1e-12)


@pytest.mark.parametrize(
    ("planted", "least", "most"),
    [(SPIKY, 0.9, 1.0), (np.full(300, 1 / 300), 0.0, 0.15)],
    ids=["perfect", "bad"],
)
def test_mixture_follows_the_weight(planted, least, most):
    tally = _draw_tally(PLAIN, SPIKY, 200_000)
    result = mix_with_projection(_Planted(planted), PLAIN, tally)
    assert least <= result.details["share"] <= most
    projected = Projection().decode(PLAIN, tally).frequencies
    ours, plain = (np.abs(each - SPIKY).sum() for each in (result.frequencies, projected))
    assert ours < (0.2 if least else 1.1) * plain


@pytest.mark.parametrize("reports", [2, 3, 10, 1_000, 100_000])
def test_weight_in_the_mixture_is_between_zero_and_one(reports):
    for seed in range(3 if reports <= 10 else 1):
        tally = _draw_tally(PLAIN, SPIKY, reports, seed)
        details = mix_with_projection(EmpiricalBayes(), PLAIN, tally).details
        assert 0 <= details["share"] <= 1


def test_one_report_and_one_symbol_are_projected():
    one = PLAIN.tally([7])
    result = mix_with_projection(EmpiricalBayes(), PLAIN, one)
    assert result.details == {"chosen": "projection"}
    single = PlainResponse(Uniform(1, 1))
    result = mix_with_projection(EmpiricalBayes(), single, single.tally([0, 0, 0]))
    assert result.frequencies.tolist() == [1.0]
    assert result.details == {"chosen": "projection"}


def test_mixture_nearly_matches_projection_where_shrinking_fails():
    """Small blocks in which one symbol has nearly everything, and a large ε."""
    k = 400
    size = 8
    mechanism = BlockResponse(Blocks(np.arange(k) // size, 2.0))
    inside = np.full((k // size, size), 0.02 / (size - 1))
    inside[np.arange(k // size), np.random.default_rng(1).integers(0, size, k // size)] = 0.98
    p = (inside / (k // size)).ravel()
    errors = np.zeros((5, 2))
    for seed in range(5):
        tally = _draw_tally(mechanism, p, 400_000, seed)
        mixture = mix_with_projection(EmpiricalBayes(), mechanism, tally)
        for i, result in enumerate((mixture, Projection().decode(mechanism, tally))):
            errors[seed, i] = np.abs(result.frequencies - p).sum() / 2
    ours, projected = errors.mean(axis=0)
    assert ours < 1.1 * projected
