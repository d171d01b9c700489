"""How far each decoder is from the truth, in total variation.

    python benchmarks/decoders.py cells              k = 1000 and ε = 1: four distributions,
                                                     five numbers of blocks, four of people
    python benchmarks/decoders.py cells --code best  the same with the best code, not Hadamard's
    python benchmarks/decoders.py grid --counts FILE check-ins on a grid of 125 × 350 cells
                                                     (CSV: row, column, count)
    python benchmarks/decoders.py grid               the same on a simulated map of towns
    python benchmarks/decoders.py speed              seconds per decoder

Tallies are drawn from the multinomial distribution of the reports: no people are simulated. The
cells are printed for two seeds. The decoders were not fitted to either.
"""

import argparse
import csv
import gzip
import sys
import time
from collections.abc import Iterator
from typing import cast

import numpy as np

import sfumato as sf
from sfumato.designer.choose import CodeName
from sfumato.domains.partitions import grid_tiles
from sfumato.estimation.decoders import get_decoder
from sfumato.foundation.simplex import project
from sfumato.mechanisms import Mechanism
from sfumato.tally import Tally

K = 1000
BLOCKS = (1, 10, 20, 50, 100)
PEOPLE = (1_000, 8_000, 64_000, 512_000)
PARTITIONS = (None, (5, 7), (25, 35), (25, 70))
DECODERS = ("projection", "likelihood", "empirical-bayes", "auto")


def total_variation(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a - b).sum() / 2)


def draw_tally(mechanism: Mechanism, p: np.ndarray, n: int, rng: np.random.Generator) -> Tally:
    q = np.maximum(mechanism.forward(p), 0)
    return Tally(rng.multinomial(n, q / q.sum()), mechanism.fingerprint)


def shapes(seed: int) -> dict[str, np.ndarray]:
    rank = np.arange(K)
    geometric = 0.95**rank
    shuffled = np.random.default_rng(seed).permutation(geometric)
    weights = {
        "uniform": np.ones(K),
        "Geo(.95)": geometric,
        "Geo(.95) shuffled": shuffled,
        "Zipf(1)": 1 / (rank + 1),
    }
    return {name: p / p.sum() for name, p in weights.items()}


def cells(code: str, runs: int, seed: int) -> Iterator[tuple[str, int, int, dict[str, float]]]:
    rng = np.random.default_rng(seed)
    for name, p in shapes(seed).items():
        for m in BLOCKS:
            context = sf.Uniform(K, 1) if m == 1 else sf.Blocks(np.arange(K) // (K // m), 1)
            mechanism = sf.mechanism_for(context, code=cast(CodeName, code))
            for n in PEOPLE:
                errors: dict[str, list[float]] = {}
                for _ in range(runs):
                    tally = draw_tally(mechanism, p, n, rng)
                    estimates = {"global projection": project(mechanism.scores.unbiased(tally))}
                    for decoder in DECODERS:
                        result = get_decoder(decoder).decode(mechanism, tally)
                        estimates[decoder] = result.frequencies
                    for decoder, frequencies in estimates.items():
                        errors.setdefault(decoder, []).append(total_variation(frequencies, p))
                print(f"\r{name}, {m} blocks, {n} people    ", end="", file=sys.stderr, flush=True)
                yield name, m, n, {decoder: float(np.mean(tv)) for decoder, tv in errors.items()}


def print_cells(code: str, runs: int, seed: int) -> None:
    rows = list(cells(code, runs, seed))
    print(f"\n{code} code, {runs} runs per cell, seed {seed}:")
    print("total variation over that of global projection")
    print(f"{'decoder':<18} geometric mean   best   worst  (worst cell)")
    for decoder in DECODERS:
        ratios = np.array([row[3][decoder] / row[3]["global projection"] for row in rows])
        worst = rows[int(ratios.argmax())]
        mean = np.exp(np.log(ratios).mean())
        where = f"({worst[0]}, {worst[1]} blocks, {worst[2]} people)"
        print(f"{decoder:<18} {mean:14.3f} {ratios.min():6.3f} {ratios.max():7.3f}  {where}")


def town_map(seed: int) -> np.ndarray:
    """Return a simulated map of check-ins: towns of Zipf sizes on a thin background."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:125, :350]
    density = np.zeros(y.shape)
    for rank in range(400):
        centre = rng.uniform(0, 1, 2) * y.shape
        width = rng.lognormal(0, 0.6)
        town = np.exp(-0.5 * ((y - centre[0]) ** 2 + (x - centre[1]) ** 2) / width**2)
        density += town / town.sum() / (rank + 1) * rng.lognormal(0, 0.8, y.shape)
    background = rng.gamma(0.05, 1, y.shape)
    density = 0.95 * density / density.sum() + 0.05 * background / background.sum()
    counts = rng.poisson(density * 1e6)
    return (counts / counts.sum()).ravel()


def read_counts(path: str) -> tuple[np.ndarray, int]:
    counts = np.zeros(125 * 350)
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", newline="") as lines:
        for row in csv.DictReader(lines):
            counts[int(row["row"]) * 350 + int(row["column"])] += int(row["count"])
    return counts / counts.sum(), int(counts.sum())


def print_grid(p: np.ndarray, n: int, epsilon: float, code: str, runs: int) -> None:
    grid = sf.GridDomain(25, 50, -130, -60, 0.2)
    rng = np.random.default_rng(0)
    print(f"\n{n} people on {grid.cell_count} cells, ε = {epsilon}, {code} code, {runs} runs:")
    print("total variation (seconds)")
    names = ("projection", "likelihood", "empirical-bayes", "spatial-bayes", "auto")
    print(f"{'blocks':<9} {'global':>8} " + " ".join(f"{name:>16}" for name in names))
    for tiles in PARTITIONS:
        context = (
            sf.Uniform(grid, epsilon)
            if tiles is None
            else sf.Blocks(grid_tiles(grid, *tiles), epsilon, domain=grid)
        )
        mechanism = sf.mechanism_for(context, code=cast(CodeName, code))
        errors = np.zeros((runs, len(names) + 1))
        seconds = np.zeros((runs, len(names)))
        for run in range(runs):
            tally = draw_tally(mechanism, p, n, rng)
            errors[run, 0] = total_variation(project(mechanism.scores.unbiased(tally)), p)
            for i, name in enumerate(names):
                start = time.perf_counter()
                errors[run, i + 1] = total_variation(
                    get_decoder(name).decode(mechanism, tally).frequencies, p
                )
                seconds[run, i] = time.perf_counter() - start
        figures = [
            f"{tv:8.4f} ({s:.2f})"
            for tv, s in zip(errors.mean(axis=0)[1:], seconds.mean(axis=0), strict=True)
        ]
        print(
            f"{'LDP' if tiles is None else tiles!s:<9} {errors[:, 0].mean():8.4f} "
            + " ".join(f"{f:>16}" for f in figures)
        )


def print_speed() -> None:
    rng = np.random.default_rng(0)
    print(
        f"\n{'symbols':>9} "
        + " ".join(f"{name:>16}" for name in DECODERS)
        + "   seconds, plain best code, 4 million people"
    )
    for k in (1_000, 43_750, 1_000_000):
        p = rng.pareto(1.2, k)
        mechanism = sf.mechanism_for(sf.Uniform(k, 1), code="hadamard" if k > 100_000 else "best")
        tally = draw_tally(mechanism, p / p.sum(), 4_000_000, rng)
        times = []
        for name in DECODERS:
            start = time.perf_counter()
            get_decoder(name).decode(mechanism, tally)
            times.append(time.perf_counter() - start)
        print(f"{k:9d} " + " ".join(f"{s:16.2f}" for s in times), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("table", choices=("cells", "grid", "speed"))
    parser.add_argument("--code", choices=("hadamard", "best"))
    parser.add_argument("--counts", help="CSV with columns row, column, count")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=4)
    options = parser.parse_args()
    if options.table == "cells":
        for seed in (2, 3):
            print_cells(options.code or "hadamard", options.runs, seed)
    elif options.table == "grid":
        p, n = (town_map(1), 1_000_000) if options.counts is None else read_counts(options.counts)
        print_grid(p, n, options.epsilon, options.code or "best", options.runs)
    else:
        print_speed()


if __name__ == "__main__":
    main()
