"""How often intervals cover the truth: `python benchmarks/intervals.py [TALLIES] [REPORTS]`.

Tallies are drawn from Multinomial(n, Qᵀp), and every 95 % interval that an estimate offers is
compared with p. For each mechanism the table shows the coverage over all tallies and intervals of a
kind, with the least and the largest of any single interval; for simultaneous intervals, how often
all of them cover at once. Over 20,000 tallies, the coverage of one interval varies by ±0.15 % by
chance alone, and the least and the largest of twenty by twice that.

Cells and totals are computed for all tallies at once, by the functions that an estimate calls. The
first tallies are compared with the estimate itself.
"""

import sys
import time
from multiprocessing import Pool

import numpy as np

import sfumato as sf
from sfumato.estimation.uncertainty.intervals import share_bounds, tail_probability
from sfumato.foundation.arrays import Booleans, Floats, Symbols
from sfumato.mechanisms import ScoreMoments
from sfumato.tally import Tally

LEVEL = 0.95
BLOCK_OF = np.repeat(np.arange(4), 6)
PARTS = np.split(np.arange(24), 4)
OTHER_TOTALS = [np.arange(start, BLOCK_OF.size, 3) for start in range(3)]
TRUTH = np.ravel(
    [
        [0.11, 0.0001, 0.03, 0.02, 0.06, 0.05],
        [0.0, 0.0002, 0.002, 0.04, 0.1, 0.05],
        [0.02, 0.005, 0.002, 0.2, 0.01, 0.001],
        [0.15, 0.0005, 0.04, 0.03, 0.02, 0.0592],
    ]
)
RARE = TRUTH < 0.005  # of 50,000 reports sent as they are, at most a few hundred
NAMES = ("cells", "rare cells", "totals", "block totals", "shares in blocks", "all cells at once")


def mechanisms() -> dict[str, sf.Mechanism]:
    """Return the four kinds; the two codes also inside blocks that are sent as they are."""
    blocks = sf.Blocks(BLOCK_OF, 1.0)
    uniform = sf.Uniform(BLOCK_OF.size, 1.0)
    return {
        "Hadamard": sf.PlainResponse(uniform, sf.HadamardCode),
        "cyclic": sf.PlainResponse(uniform, sf.BestCode()),
        "Hadamard, blocks": sf.BlockResponse(blocks, sf.HadamardCode),
        "cyclic, blocks": sf.BlockResponse(blocks, sf.CyclicDesign(6, ((0, 1), (0, 2)))),
        "high-low": sf.HighLowResponse(sf.HighLow(BLOCK_OF.size, range(6, 13), 1.0), sf.BestCode()),
        "two-level": sf.GroupResponse(sf.Blocks(BLOCK_OF, 1.0, across=2.0), sf.BestCode()),
    }


def coverage(name: str, tallies: int, reports: int, seed: int = 0) -> list[Floats]:
    """Return the coverage of each interval, for each kind in ``NAMES``."""
    mechanism = mechanisms()[name]
    p = TRUTH
    q = np.maximum(mechanism.forward(p), 0)
    counts = np.random.default_rng(seed).multinomial(reports, q / q.sum(), size=tallies)
    low, high = _cells(mechanism, counts, tail_probability(LEVEL))
    _compare_with_estimates(mechanism, counts, low, high)
    cells = (low <= p) & (p <= high)
    low, high = _cells(mechanism, counts, tail_probability(LEVEL, p.size))
    together = ((low <= p) & (p <= high)).all(axis=1, keepdims=True)
    totals = _in_totals(mechanism, counts, OTHER_TOTALS)
    blocks = _in_totals(mechanism, counts, PARTS)
    shares = np.array([_in_shares(mechanism, Tally(row, mechanism.fingerprint)) for row in counts])
    hits = (cells[:, ~RARE], cells[:, RARE], totals, blocks, shares, together)
    return [each.mean(axis=0) for each in hits]


def _cells(mechanism: sf.Mechanism, counts: Symbols, tail: float) -> tuple[Floats, Floats]:
    f = counts / counts.sum(axis=1, keepdims=True)
    A = mechanism.scores.matrix()
    reach = mechanism.scores.reach
    m1, m2, m3, m4 = (f @ (A**power).T for power in (1, 2, 3, 4))
    moments = ScoreMoments(m1, m2, m3, m4, reach.lowest, reach.highest)
    return share_bounds(moments, int(counts[0].sum()), tail)


def _compare_with_estimates(
    mechanism: sf.Mechanism, counts: Symbols, low: Floats, high: Floats
) -> None:
    for row, lowest, highest in zip(counts[:20], low, high, strict=False):
        interval = sf.estimate(mechanism, Tally(row, mechanism.fingerprint)).interval(LEVEL)
        if not np.allclose(interval, (lowest, highest), rtol=1e-6, atol=1e-12):
            raise SystemExit("the estimate has another interval")


def _in_totals(mechanism: sf.Mechanism, counts: Symbols, groups: list[Symbols]) -> Booleans:
    n = int(counts[0].sum())
    f = counts / counts.sum(axis=1, keepdims=True)
    hits = []
    for group in groups:
        scores = mechanism.scores.totals(np.isin(np.arange(mechanism.inputs), group).astype(float))
        m1, m2, m3, m4 = (f @ scores**power for power in (1, 2, 3, 4))
        moments = ScoreMoments(m1, m2, m3, m4, scores.min(), scores.max())
        low, high = share_bounds(moments, n, tail_probability(LEVEL))
        hits.append((low <= TRUTH[group].sum()) & (TRUTH[group].sum() <= high))
    return np.array(hits).T


def _in_shares(mechanism: sf.Mechanism, tally: Tally) -> Booleans:
    """Check shares inside blocks: conditional intervals if reports show the block, else ratios."""
    estimate = sf.estimate(mechanism, tally, decoder="unbiased")
    theta = TRUTH / np.bincount(BLOCK_OF, TRUTH)[BLOCK_OF]
    if type(mechanism) is sf.BlockResponse:
        symbols = np.arange(TRUTH.size)
        shares = [estimate.block_shares(LEVEL)]
    else:
        symbols = np.concatenate(PARTS[1:3])
        shares = [estimate.shares_within(part.tolist(), LEVEL) for part in PARTS[1:3]]
    low = np.concatenate([each.low for each in shares])
    high = np.concatenate([each.high for each in shares])
    return (low <= theta[symbols]) & (theta[symbols] <= high)


def line(arguments: tuple[str, int, int]) -> str:
    start = time.perf_counter()
    *separate, together = coverage(*arguments)
    cells = []
    for shares in separate:
        ends = f"({100 * shares.min():5.2f}–{100 * shares.max():5.2f})"
        cells.append(f"{100 * shares.mean():6.2f} {ends}  ")
    seconds = time.perf_counter() - start
    return f"{arguments[0]:17}{''.join(cells)}{100 * together.mean():8.2f}   {seconds:.0f} s"


if __name__ == "__main__":
    tallies = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    reports = int(sys.argv[2]) if len(sys.argv) > 2 else 50_000
    print(f"{tallies:,} tallies of {reports:,} reports")
    print("coverage of 95 % intervals in per cent, mean (least–largest)")
    print(f"{'':17}" + "".join(f"{name:^22}" for name in NAMES[:-1]) + NAMES[-1])
    with Pool(2) as pool:
        for row in pool.imap(line, [(name, tallies, reports) for name in mechanisms()]):
            print(row, flush=True)
