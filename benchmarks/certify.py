"""How long a survey takes to certify itself before its first report: `python benchmarks/certify.py`.

One survey of 43,750 symbols (the check-ins' grid) for each kind of context; seconds of processor time and of the clock.
"""

import time

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


def main() -> None:
    print(f"{'context':30} {'mechanism':18} {'clock':>7} {'CPU':>7}")
    for name, context in contexts().items():
        survey = sf.Survey("benchmark", context)
        clock = time.perf_counter()
        cpu = time.process_time()
        survey.certify()
        cpu = time.process_time() - cpu
        clock = time.perf_counter() - clock
        print(f"{name:30} {type(survey.mechanism).__name__:18} {clock:6.2f}s {cpu:6.2f}s")


if __name__ == "__main__":
    main()
