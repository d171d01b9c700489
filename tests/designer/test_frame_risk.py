"""Repeated runs through the production kernel have the predicted risk, for every frame.

Everything is seeded, so a test passes always or never. Each has a counterexample with a risk that
is a tenth off.
"""

import math

import numpy as np
import pytest

import sfumato as sf
from sfumato.codes import BestCode, CyclicDesign, HadamardCode, RandomizedCode
from sfumato.codes.singer import SingerDesign, singer_set
from sfumato.simulation.seeded import SeededWords

RUNS = 1000
PEOPLE = 1000
SEED = 7
inf = math.inf


def blocks(*sizes):
    return np.repeat(np.arange(len(sizes)), sizes)


def mechanism_for_union(*parts):
    context = sf.union(parts)
    return sf.mechanism_for(context)


FRAMES = {
    "cyclic, several base blocks": sf.PlainResponse(
        sf.Uniform(12, 1), CyclicDesign(12, ((0, 1, 3, 7), (0, 2, 3, 8)))
    ),
    "Singer, with points to spare": sf.PlainResponse(
        sf.Uniform(10, 1), CyclicDesign.from_base_blocks(13, singer_set(SingerDesign(3, 3)))
    ),
    "blocks": sf.BlockResponse(sf.Blocks(blocks(5, 6, 1), [1, 2, 1]), BestCode()),
    "high-low": sf.mechanism_for(sf.HighLow(12, range(5), 1)),
    "tiers": sf.GroupResponse(
        sf.Tiers(blocks(4, 5, 3), [1, 2, inf]), [RandomizedCode, HadamardCode]
    ),
    "two levels": sf.GroupResponse(
        sf.Blocks(blocks(7, 5), 1, across=2), CyclicDesign(7, ((0, 1, 3),))
    ),
    "product": sf.ProductResponse(sf.Blocks(blocks(4, 6), "0.5", across=1), BestCode()),
    "union": mechanism_for_union(
        sf.Tiers(blocks(3, 3), [1, 2]), sf.HighLow(4, [0, 1], 1), sf.Uniform(3, 2)
    ),
}


def squared_errors(mechanism, p):
    """Return ``n ‖p̂ − p‖²`` of each run."""
    symbols = np.random.default_rng(SEED).choice(p.size, size=RUNS * PEOPLE, p=p)
    reports = mechanism.privatize(symbols, SeededWords(SEED)).astype(np.int64).reshape(RUNS, PEOPLE)
    shifted = reports + mechanism.outputs * np.arange(RUNS)[:, None]
    counts = np.bincount(shifted.ravel(), minlength=RUNS * mechanism.outputs).reshape(RUNS, -1)
    estimates = np.array([mechanism.scores.mean(run / PEOPLE) for run in counts])
    return PEOPLE * np.square(estimates - p).sum(axis=1)


def agrees(errors, risk):
    """Return whether the mean lies within three of its standard errors."""
    return abs(errors.mean() - risk) <= 3 * errors.std(ddof=1) / math.sqrt(errors.size)


@pytest.mark.parametrize("name", FRAMES)
def test_estimates_scatter_as_risk_predicts(name):
    mechanism = FRAMES[name]
    k = mechanism.inputs
    p = np.arange(1.0, k + 1)[::-1] / (k * (k + 1) / 2)
    errors = squared_errors(mechanism, p)
    risk = mechanism.scores.risk(p)
    spread = errors.std(ddof=1) / math.sqrt(RUNS)
    message = f"{name}: {errors.mean():.4f} ± {spread:.4f} against {risk:.4f} (seed {SEED})"
    assert agrees(errors, risk), message
    assert not agrees(errors, 1.1 * risk), f"a tenth more would pass, {message}"
    assert not agrees(errors, 0.9 * risk), f"a tenth less would pass, {message}"


@pytest.mark.parametrize("name", FRAMES)
def test_estimates_are_unbiased(name):
    """The mean over all runs is within 5.5 exact standard deviations, symbol by symbol."""
    mechanism = FRAMES[name]
    k = mechanism.inputs
    p = np.full(k, 1 / k)
    symbols = np.random.default_rng(SEED + 1).choice(k, size=RUNS * PEOPLE, p=p)
    tally = mechanism.tally(mechanism.privatize(symbols, SeededWords(SEED + 1)))
    deviations = np.abs(mechanism.scores.unbiased(tally) - p) / np.sqrt(
        mechanism.scores.variances(p, RUNS * PEOPLE)
    )
    assert deviations.max() < 5.5, (name, SEED + 1, deviations)
