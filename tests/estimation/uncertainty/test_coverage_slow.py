"""Coverage of intervals over thousands of tallies, through the public interface.

`benchmarks/intervals.py` does the same with 20,000 tallies and prints the figures.
"""

import numpy as np
import pytest
from scipy.stats import binom

import sfumato as sf

pytestmark = pytest.mark.slow

TALLIES = 3000
REPORTS = 50_000
LEVEL = 0.95
BLOCK_OF = np.repeat([0, 1, 2], 6)
PARTS = np.split(np.arange(18), 3)
CROWD = np.array(
    [
        0.15,
        0.0,
        0.03,
        0.02,
        0.06,
        0.05,
        0.1,
        0.004,
        0.04,
        0.1,
        0.05,
        0.01,
        0.2,
        0.05,
        0.02,
        0.03,
        0.03,
        0.056,
    ]
)
MECHANISMS = {
    "Hadamard": lambda: sf.BlockResponse(sf.Blocks(BLOCK_OF, 1.0)),
    "cyclic": lambda: sf.BlockResponse(
        sf.Blocks(BLOCK_OF, 1.0), sf.CyclicDesign(6, ((0, 1), (0, 2)))
    ),
    "high-low": lambda: sf.HighLowResponse(sf.HighLow(18, range(7), 1.0), sf.BestCode()),
    "two-level": lambda: sf.GroupResponse(sf.Blocks(BLOCK_OF, 1.0, across=2.0), sf.BestCode()),
}
LEAST = 0.944
MOST = 0.956


def _estimates(mechanism):
    random = np.random.default_rng(11)
    q = np.maximum(mechanism.forward(CROWD), 0)
    for counts in random.multinomial(REPORTS, q / q.sum(), size=TALLIES):
        yield sf.estimate(mechanism, sf.Tally(counts, mechanism.fingerprint), decoder="unbiased")


def _kinds(result):
    """Return, for each kind of interval, whether each interval covers."""
    low, high = result.interval(LEVEL)
    yield "cells", (low <= CROWD) & (high >= CROWD)
    parts = [result.total(part.tolist(), LEVEL) for part in PARTS]
    yield (
        "block totals",
        np.array(
            [t.low <= CROWD[part].sum() <= t.high for t, part in zip(parts, PARTS, strict=True)]
        ),
    )
    shares = result.shares_within(PARTS[2].tolist(), LEVEL)
    theta = CROWD[PARTS[2]] / CROWD[PARTS[2]].sum()
    yield "shares", (shares.low <= theta) & (theta <= shares.high)
    low, high = result.simultaneous_interval(LEVEL)
    yield "together", np.array([((low <= CROWD) & (high >= CROWD)).all()])
    wald = 0.9 * 1.96 * result.standard_errors
    yield "planted: a tenth too narrow", np.abs(result.unbiased - CROWD) <= wald


def _plausible(hits, least, most):
    """Return whether the hits fit a coverage between LEAST and MOST, at 1e-6 for each kind."""
    level = 1e-6 / hits.size
    return (binom.cdf(hits, TALLIES, least) > level).all() and (
        binom.sf(hits - 1, TALLIES, most) > level
    ).all()


@pytest.mark.parametrize("name", MECHANISMS)
def test_intervals_cover_at_their_level(name):
    mechanism = MECHANISMS[name]()
    hits = {}
    for result in _estimates(mechanism):
        for kind, covered in _kinds(result):
            hits[kind] = hits.get(kind, 0) + covered
    for kind in ("cells", "block totals", "shares"):
        assert _plausible(hits[kind], LEAST, MOST), f"{name}, {kind}: {hits[kind] / TALLIES}"
    assert _plausible(hits["together"], 0.94, 1.0), (
        f"{name}, together: {hits['together'] / TALLIES}"
    )
    assert not _plausible(hits["planted: a tenth too narrow"], LEAST, MOST)
