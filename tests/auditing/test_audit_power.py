"""Audits detect broken mechanisms and pass correct ones, over a million seeded samples."""

import math

import numpy as np
import pytest
from scipy.stats import binom

import sfumato as sf
from sfumato.simulation import SeededWords

SAMPLES = 1_000_000
RIGHT = sf.Uniform(8, 1)
FIVE_PER_CENT = sf.Uniform(8, 1 + math.log(1.05))
CODES = {"randomised response": sf.RandomizedCode, "Hadamard": sf.HadamardCode}


def audited(mechanism, context, seed, samples=SAMPLES, **options):
    """An audit whose samples, and their sizes, come from a seed."""
    words = SeededWords(seed)

    def randomize(symbol, count):
        return mechanism.privatize(np.full(count, symbol), words)

    return sf.audit(randomize, context, samples=samples, source=SeededWords(seed, run=1), **options)


@pytest.mark.parametrize(
    "code", ["randomised response", pytest.param("Hadamard", marks=pytest.mark.slow)]
)
def test_odds_five_percent_too_large_are_detected(code):
    wrong = sf.PlainResponse(FIVE_PER_CENT, CODES[code])
    for seed in range(10):
        found = audited(wrong, RIGHT, seed)
        assert found.violates, (seed, found.verdict)
        assert found.violations[0].bound <= 1 + math.log(1.05), seed


@pytest.mark.slow
@pytest.mark.parametrize("code", CODES)
def test_correct_mechanisms_pass_99_of_100_audits(code):
    right = sf.PlainResponse(RIGHT, CODES[code])
    blamed = [seed for seed in range(100) if audited(right, RIGHT, seed).violates]
    assert len(blamed) <= 1, blamed


@pytest.mark.slow
def test_small_audits_keep_their_confidence():
    """At a level of 10 %, over 300 audits; a level of twice that would show."""
    right = sf.PlainResponse(sf.Uniform(3, 1), sf.RandomizedCode)
    blamed = sum(
        audited(right, right.context, seed, 20_000, confidence=0.9).violates for seed in range(300)
    )
    assert blamed <= binom.isf(1e-6, 300, 0.1)
    assert blamed > 0, "a test at this level that never errs is no test"


# --- bugs that other implementations had ----------------------------------------------------------


def subset_selection(k, size, epsilon, rng, excluded):
    """Reports are sets that contain the symbol with odds e^ε, or else lack ``excluded``."""
    e = math.exp(epsilon)
    chance = size * e / (size * e + k - size)

    def randomize(symbol, count):
        keys = rng.random((count, k))
        keys[:, excluded(symbol) % k] = 2.0  # comes last of all
        inside = rng.random(count) < chance
        keys[inside, symbol] = -1.0
        return np.sort(np.argsort(keys, axis=1)[:, :size], axis=1)

    return randomize


@pytest.mark.parametrize("seed", range(3))
def test_wrong_subset_selection_is_detected(seed):
    """It leaves out x − 1 instead of x, so a report with x − 1 rules x out: ε is infinite."""
    wrong = subset_selection(8, 2, 1, np.random.default_rng(seed), lambda x: x - 1)
    found = sf.audit(wrong, RIGHT, samples=50_000, source=SeededWords(seed))
    assert found.violates
    assert found.violations[0].bound > 4
    worst = found.violations[0]
    assert set.intersection(*map(set, worst.event)) == {(worst.x2 - 1) % 8}  # what gives it away


@pytest.mark.parametrize("seed", range(3))
def test_correct_subset_selection_passes(seed):
    right = subset_selection(8, 2, 1, np.random.default_rng(seed), lambda x: x)
    found = sf.audit(right, RIGHT, samples=200_000, source=SeededWords(seed))
    assert not found.violates
    assert np.nanmax(found.bounds) > 0.9


def test_unrandomised_bit_is_detected():
    """Bits of a vector are each flipped, but for the last one."""
    rng = np.random.default_rng(1)
    flip = 1 / (1 + math.exp(0.5))

    def unary(symbol, count):
        bits = (np.arange(6) == symbol) ^ (rng.random((count, 6)) < flip)
        bits[:, 5] = symbol == 5
        return bits

    found = sf.audit(unary, sf.Uniform(6, 1), samples=100_000, source=SeededWords(1))
    assert {5} < {pair.x for pair in found.violations} | {pair.x2 for pair in found.violations}
    assert found.violations[0].bound > 5


def one_pair(epsilon, seed):
    """Randomised response for ε = 1, except that symbol 3 sends report 6 too rarely."""
    Q = (np.ones((8, 8)) + (math.e - 1) * np.eye(8)) / (math.e + 7)
    missing = Q[3, 6] * (1 - math.exp(1 - epsilon))
    Q[3] += missing / 6 * ~np.isin(np.arange(8), (3, 6))
    Q[3, 6] -= missing
    rng = np.random.default_rng(seed)
    return lambda symbol, count: np.repeat(np.arange(8), rng.multinomial(count, Q[symbol]))


def test_one_bad_pair_of_many_is_detected():
    found = sf.audit(one_pair(1.2, 2), RIGHT, source=SeededWords(2))
    assert [(pair.x, pair.x2, pair.event) for pair in found.violations] == [(6, 3, (6,))]


@pytest.mark.slow
def test_pair_at_its_resolution_is_detected_with_the_stated_power():
    """It is a suspect in few audits of the right channel: its resolution counts on becoming one."""
    audits = 100

    def pair_of(epsilon, seed):
        found = sf.audit(one_pair(epsilon, seed), RIGHT, samples=200_000, source=SeededWords(seed))
        return next(pair for pair in found.pairs if (pair.x, pair.x2) == (6, 3))

    clear = [pair for pair in (pair_of(1.0, seed) for seed in range(20)) if not pair.is_suspect]
    resolution = float(np.median([pair.resolution for pair in clear]))
    seen = sum(pair_of(resolution, seed).violates for seed in range(audits))
    assert seen >= binom.isf(1 - 1e-6, audits, 0.99)
    less = sum(pair_of(1 + (resolution - 1) * 0.6, seed).violates for seed in range(audits))
    assert less < binom.isf(1 - 1e-6, audits, 0.99)


def test_verdict_resolution_is_true():
    """At the resolution of the least visible pair, all pairs of a mechanism are seen."""
    clear = audited(sf.PlainResponse(RIGHT, sf.RandomizedCode), RIGHT, 7, 200_000)
    assert not clear.violates
    resolution = max(pair.resolution for pair in clear.pairs)
    assert 1.05 < resolution < 1.3
    wrong = sf.PlainResponse(sf.Uniform(8, resolution), sf.RandomizedCode)
    assert all(audited(wrong, RIGHT, seed, 200_000).violates for seed in range(20))
