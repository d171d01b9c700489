"""Random and halved histograms: exact distributions where possible, otherwise χ² at 1e-6."""

import numpy as np
import pytest
from scipy.stats import binom, chi2, norm, poisson

from sfumato.estimation.decoders.halves import split_in_half
from sfumato.estimation.decoders.histograms import draw_histogram, halve_counts
from sfumato.randomness import words_from
from sfumato.tally import Tally

ALPHA = 1e-6
DRAWS = 100_000
KEYS = [bytes([seed]) * 32 for seed in (1, 2)]


def _surprise(result, pmf):
    """Return the χ² p-value over values with at least 20 expected draws, the rest in one class."""
    expected = pmf * result.size
    often = np.flatnonzero(expected >= 20)
    counts = np.bincount(result, minlength=pmf.size)[: pmf.size]
    observed = np.append(counts[often], result.size - counts[often].sum())
    due = np.append(expected[often], result.size - expected[often].sum())
    used = due > 0
    assert not observed[~used].any()
    return chi2.sf(((observed[used] - due[used]) ** 2 / due[used]).sum(), used.sum() - 1)


# --- halves ---------------------------------------------------------------------------------------


def test_small_counts_are_split_by_the_bits_of_a_word():
    """For a count c below 64: the number of ones among the lowest c bits of its word."""
    counts = np.arange(64)
    words = words_from(KEYS[0], 0, 64)[:, 0].tolist()
    expected = [bin(word % 2**c).count("1") for c, word in zip(counts.tolist(), words, strict=True)]
    assert halve_counts(counts, KEYS[0]).tolist() == expected


@pytest.mark.parametrize("key", KEYS, ids=["1", "2"])
@pytest.mark.parametrize("count", [1, 2, 5, 20, 63, 64, 100, 1_000])
def test_half_of_a_count_is_binomial(count, key):
    heads = halve_counts(np.full(DRAWS, count), key)
    assert heads.min() >= 0
    assert heads.max() <= count
    pmf = binom.pmf(np.arange(count + 1), count, 0.5)
    assert _surprise(heads, pmf) > ALPHA
    assert (
        _surprise(heads, binom.pmf(np.arange(count + 1), count, 0.52 if count < 20 else 0.505))
        < ALPHA
    )


def test_halves_of_large_counts_have_binomial_moments():
    heads = halve_counts(np.full(DRAWS, 10**8), KEYS[0])
    z = (heads - 5e7) / 5e3
    assert abs(z.mean()) < norm.isf(ALPHA / 2) / np.sqrt(DRAWS)
    squares = (z**2).sum()
    assert chi2.ppf(ALPHA / 2, DRAWS) < squares < chi2.isf(ALPHA / 2, DRAWS)


@pytest.mark.parametrize("mean", [3.0, 40.0, 5_000.0])
def test_halves_of_poisson_counts_are_independent(mean):
    """Deviations of both halves are uncorrelated; a half and the total are not."""
    counts = np.random.default_rng(1).poisson(mean, DRAWS)
    heads = halve_counts(counts, KEYS[0])
    a, b, whole = (x - x.mean() for x in (heads, counts - heads, counts))

    def correlated(x, y):
        return abs((x * y).mean()) / ((x * y).std() / np.sqrt(x.size)) > norm.isf(ALPHA / 2)

    assert not correlated(a, b)
    assert not correlated(a[1:], a[:-1])
    assert correlated(a, whole)


def test_split_in_half_is_complete_and_reproducible():
    tally = Tally(np.array([0, 1, 7, 63, 64, 10_000]), "f" * 64)
    a, b = split_in_half(tally)
    assert (a.counts + b.counts).tolist() == tally.counts.tolist()
    assert a.fingerprint == b.fingerprint == tally.fingerprint
    assert split_in_half(tally)[0].counts.tolist() == a.counts.tolist()
    assert (a.counts[4:] > 0).all()
    assert (b.counts[4:] > 0).all()


# --- draws ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mean", [0.01, 0.5, 3.0, 15.9])
def test_small_counts_are_poisson(mean):
    result = draw_histogram(np.full(DRAWS, mean / 1_000), 1_000, draw_index=0)
    assert _surprise(result, poisson.pmf(np.arange(200), mean)) > ALPHA
    assert _surprise(result, poisson.pmf(np.arange(200), 1.15 * mean + 0.02)) < ALPHA


@pytest.mark.parametrize("mean", [16.1, 60.0, 2_000.0])
def test_large_counts_have_poisson_moments(mean):
    result = draw_histogram(np.full(DRAWS, mean / 10_000), 10_000, draw_index=0)
    z = (result - mean) / np.sqrt(mean)
    reach = norm.isf(ALPHA / 2) / np.sqrt(DRAWS)
    assert abs(z.mean()) < reach
    # Rounding and correction add 0.06 + 1/12.
    assert abs(z.var() - 1) < reach * np.sqrt(2 + 1 / mean) + 0.15 / mean
    assert abs((z**3).mean() - 1 / np.sqrt(mean)) < reach * np.sqrt(15) + 0.5 / mean
    if mean < 100:
        assert (z**3).mean() > reach * np.sqrt(15)  # a rounded normal would fail


def test_draws_are_reproducible_and_different():
    q = np.full(1_000, 1e-3)
    first, again, other = (
        draw_histogram(q, 5_000, draw_index=draw, key=KEYS[0]) for draw in (0, 0, 1)
    )
    assert first.tolist() == again.tolist()
    assert abs(np.corrcoef(first, other)[0, 1]) < norm.isf(ALPHA / 2) / np.sqrt(q.size)
    assert draw_histogram(q, 5_000, draw_index=0, key=KEYS[1]).tolist() != first.tolist()


def test_impossible_reports_stay_impossible():
    q = np.array([0.5, 0.0, 0.5, -1e-17])
    for draw in range(50):
        assert draw_histogram(q, 1_000, draw_index=draw)[[1, 3]].tolist() == [0, 0]
