"""How often intervals cover the truth: `python benchmarks/intervals.py [TALLIES] [REPORTS]`.

Tallies are drawn from Multinomial(n, Qᵀp), and every 95 % interval that an estimate offers is compared with p. For each
mechanism the table gives the coverage over all tallies and intervals of a kind, with the least and the largest of any
single interval; for simultaneous intervals, how often all of them cover at once. Over 20,000 tallies one interval
strays by ±0.15 % by chance alone, and the least and largest of twenty by twice that.

Cells and totals are worked out for all tallies in one go, by the functions that an estimate calls; on the first tallies
they are compared with what the estimate itself says.
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
CROWD = np.ravel(
    [
        [0.11, 0.0001, 0.03, 0.02, 0.06, 0.05],
        [0.0, 0.0002, 0.002, 0.04, 0.1, 0.05],
        [0.02, 0.005, 0.002, 0.2, 0.01, 0.001],
        [0.15, 0.0005, 0.04, 0.03, 0.02, 0.0592],
    ]
)
RARE = (
    CROWD < 0.005
)  # in clear, and with 50,000 reports, these are counts of about a hundred and less
NAMES = ("cells", "rare cells", "totals", "block totals", "shares in blocks", "all cells at once")


def mechanisms() -> dict[str, sf.Mechanism]:
    """The four kinds; the two codes also inside blocks that are sent in clear."""
    blocks, uniform = sf.Blocks(BLOCK_OF, 1.0), sf.Uniform(BLOCK_OF.size, 1.0)
    return {
        "Hadamard": sf.PlainResponse(uniform, sf.HadamardCode),
        "cyclic": sf.PlainResponse(uniform, sf.BestCode()),
        "Hadamard, blocks": sf.BlockResponse(blocks, sf.HadamardCode),
        "cyclic, blocks": sf.BlockResponse(blocks, sf.CyclicDesign(6, ((0, 1), (0, 2)))),
        "high-low": sf.HighLowResponse(sf.HighLow(BLOCK_OF.size, range(6, 13), 1.0), sf.BestCode()),
        "two-level": sf.GroupResponse(sf.Blocks(BLOCK_OF, 1.0, across=2.0), sf.BestCode()),
    }


def coverage(name: str, tallies: int, reports: int, seed: int = 0) -> list[Floats]:
    """For each name the coverage of its intervals, one by one."""
    mechanism, p = mechanisms()[name], CROWD
    q = np.maximum(mechanism.forward(p), 0)
    counts = np.random.default_rng(seed).multinomial(reports, q / q.sum(), size=tallies)
    low, high = _cells(mechanism, counts, tail_probability(LEVEL))
    _compare_with_estimates(mechanism, counts, low, high)
    cells = (low <= p) & (p <= high)
    low, high = _cells(mechanism, counts, tail_probability(LEVEL, p.size))
    together = ((low <= p) & (p <= high)).all(axis=1, keepdims=True)
    totals, blocks = (_in_totals(mechanism, counts, groups) for groups in (OTHER_TOTALS, PARTS))
    shares = np.array([_in_shares(mechanism, Tally(row, mechanism.fingerprint)) for row in counts])
    hits = (cells[:, ~RARE], cells[:, RARE], totals, blocks, shares, together)
    return [each.mean(axis=0) for each in hits]


def _cells(mechanism: sf.Mechanism, counts: Symbols, tail: float) -> tuple[Floats, Floats]:
    f, A = counts / counts.sum(axis=1, keepdims=True), mechanism.scores.matrix()
    reach = mechanism.scores.reach
    moments = ScoreMoments(f @ A.T, f @ (A**2).T, f @ (A**3).T, reach.lowest, reach.highest)
    return share_bounds(moments, int(counts[0].sum()), tail)


def _compare_with_estimates(
    mechanism: sf.Mechanism, counts: Symbols, low: Floats, high: Floats
) -> None:
    for row, lowest, highest in zip(counts[:20], low, high, strict=False):
        found = sf.estimate(mechanism, Tally(row, mechanism.fingerprint)).interval(LEVEL)
        if not np.allclose(found, (lowest, highest), rtol=1e-6, atol=1e-12):
            raise SystemExit("the estimate says something else")


def _in_totals(mechanism: sf.Mechanism, counts: Symbols, groups: list[Symbols]) -> Booleans:
    n, f, hits = int(counts[0].sum()), counts / counts.sum(axis=1, keepdims=True), []
    for group in groups:
        scores = mechanism.scores.totals(np.isin(np.arange(mechanism.inputs), group).astype(float))
        moments = ScoreMoments(f @ scores, f @ scores**2, f @ scores**3, scores.min(), scores.max())
        low, high = share_bounds(moments, n, tail_probability(LEVEL))
        hits.append((low <= CROWD[group].sum()) & (CROWD[group].sum() <= high))
    return np.array(hits).T


def _in_shares(mechanism: sf.Mechanism, tally: Tally) -> Booleans:
    """Inside blocks that are sent in clear the conditional intervals, else ratios of two estimates."""
    found = sf.estimate(mechanism, tally, decoder="unbiased")
    theta = CROWD / np.bincount(BLOCK_OF, CROWD)[BLOCK_OF]
    if type(mechanism) is sf.BlockResponse:
        shares, asked = [found.block_shares(LEVEL)], np.arange(CROWD.size)
    else:
        shares, asked = (
            [found.shares_within(part.tolist(), LEVEL) for part in PARTS[1:3]],
            np.concatenate(PARTS[1:3]),
        )
    low, high = (np.concatenate([getattr(each, end) for each in shares]) for end in ("low", "high"))
    return (low <= theta[asked]) & (theta[asked] <= high)


def line(arguments: tuple[str, int, int]) -> str:
    start = time.perf_counter()
    *found, together = coverage(*arguments)
    columns = "".join(
        f"{100 * c.mean():6.2f} ({100 * c.min():5.2f}–{100 * c.max():5.2f})  " for c in found
    )
    return f"{arguments[0]:17}{columns}{100 * together.mean():8.2f}   {time.perf_counter() - start:.0f} s"


if __name__ == "__main__":
    tallies, reports = (
        int(given) for given in (*sys.argv[1:], *("20000", "50000")[len(sys.argv) - 1 :])
    )
    print(
        f"{tallies:,} tallies of {reports:,} reports; coverage of 95 % intervals in per cent, mean (least–largest)"
    )
    print(f"{'':17}" + "".join(f"{name:^22}" for name in NAMES[:-1]) + NAMES[-1])
    with Pool(2) as pool:
        for row in pool.imap(line, [(name, tallies, reports) for name in mechanisms()]):
            print(row, flush=True)
