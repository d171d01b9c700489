"""How long it takes to certify a survey: `python benchmarks/certify.py`.

One survey of 43,750 symbols (the check-ins' grid) for each kind of context, and a table of 16
reports whose 700,000 integers are all different; in seconds of CPU and wall time.
"""

import time
from collections.abc import Iterator

import numpy as np

import sfumato as sf

GRID = sf.GridDomain(25, 50, -130, -60, 0.2)


def contexts() -> dict[str, sf.Context]:
    symbols = np.arange(GRID.size)
    return {
        "uniform": sf.Uniform(GRID, 1),
        "high-low, 4,000 sensitive": sf.HighLow(GRID.size, range(4000), 1),
        "blocks of 25": sf.Blocks(symbols // 25, 1, domain=GRID),
        "blocks of 1,750": sf.Blocks(symbols // 1750, 1, domain=GRID),
        "blocks with a promise across": sf.Blocks(symbols // 1750, 1, across=2, domain=GRID),
        "tiers": sf.Tiers(symbols % 3, [1, 2, "inf"], domain=GRID),
    }


def table() -> sf.Mechanism:
    """Return a table that keeps ε = 1: every entry is near 2^60."""
    random = np.random.default_rng(1)
    rows = (2**60 + random.integers(0, 2**55, (GRID.size, 16))).tolist()
    for row in rows:
        row[-1] = 2**64 - sum(row[:-1])
    return sf.TableResponse(sf.Uniform(GRID, 1), rows)


def surveys() -> Iterator[tuple[str, sf.Survey]]:
    for name, context in contexts().items():
        yield name, sf.Survey("benchmark", context)
    mechanism = table()
    yield "uniform, a table", sf.Survey("benchmark", mechanism.context, mechanism)


def main() -> None:
    print(f"{'context':30} {'mechanism':18} {'clock':>7} {'CPU':>7}")
    for name, survey in surveys():
        clock = time.perf_counter()
        cpu = time.process_time()
        survey.certify()
        cpu = time.process_time() - cpu
        clock = time.perf_counter() - clock
        print(f"{name:30} {type(survey.mechanism).__name__:18} {clock:6.2f}s {cpu:6.2f}s")


if __name__ == "__main__":
    main()
