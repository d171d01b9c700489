"""How long the standalone certificate checker takes.

    python benchmarks/checker.py [--sizes 1001 10000 43750]

Tables have 16 columns, with 8 different rows or with all rows different. Matrices are checked up to
2,000 symbols. Codes are those of `mechanism_for`, and Hadamard codes. Times are the best of three
and include the start of Python.
"""

import argparse
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import sfumato as sf
from sfumato.codes import HadamardCode

CHECKER = Path(__file__).parents[1] / "tools" / "check_certificate.py"
N = 1 << 64
COLUMNS = 16
MAX_MATRIX_SIZE = 2000


def rows(k: int, different: int) -> list[list[int]]:
    """Return rows with odds of at most e. Beyond 2^8 different rows, each moves its own words."""
    low = (int(2 * N / COLUMNS / (1 + math.e)) // 2 + 10**9) * 2
    high = 2 * N // COLUMNS - low
    result = []
    for x in range(k):
        number = x % different
        row = [high if (number >> (y // 2)) & 1 == y % 2 else low for y in range(COLUMNS)]
        # A few words move between two columns: a different row, with smaller odds.
        own = number // 256 * 2
        row[row.index(high)] -= own
        row[row.index(low)] += own
        result.append(row)
    return result


def surveys(k: int) -> Iterator[tuple[str, sf.Survey]]:
    uniform = sf.Uniform(k, 1)
    blocks = sf.Blocks([x // 7 for x in range(k)], 1)
    streets = sf.Blocks([x // 70 for x in range(k)], 1, across=2)
    high_low = sf.HighLow(k, range(k // 3), 1)
    for name, different in (("8 different rows", 8), ("all rows different", k)):
        yield (
            f"table, uniform, {name}",
            sf.Survey("t", uniform, sf.TableResponse(uniform, rows(k, different))),
        )
        yield (
            f"table, blocks, {name}",
            sf.Survey("t", blocks, sf.TableResponse(blocks, rows(k, different))),
        )
    if k <= MAX_MATRIX_SIZE:
        matrix = sf.PrivacyMatrix(
            [["0" if x == x2 else str(1 + (x + x2) % 3) for x2 in range(k)] for x in range(k)]
        )
        yield (
            "table, matrix, all rows different",
            sf.Survey("m", matrix, sf.TableResponse(matrix, rows(k, k))),
        )
    yield "code, uniform, best", sf.Survey("c", uniform)
    yield (
        "code, uniform, Hadamard",
        sf.Survey("c", uniform, sf.PlainResponse(uniform, HadamardCode)),
    )
    yield "code, blocks of 7", sf.Survey("c", blocks)
    yield "code, high-low", sf.Survey("c", high_low)
    yield "code, blocks of 70 and across", sf.Survey("c", streets)


def seconds(path: Path) -> float:
    """Return the best of three times."""
    best = math.inf
    for _ in range(3):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-I", CHECKER, path], stdout=subprocess.DEVNULL, check=True)
        best = min(best, time.perf_counter() - started)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1001, 10_000, 43_750])
    sizes = parser.parse_args().sizes
    print("| survey | symbols | file, MiB | check, s |")
    print("|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "survey.json"
        for k in sizes:
            for name, survey in surveys(k):
                survey.save(path)
                size = path.stat().st_size / 2**20
                print(f"| {name} | {k:,} | {size:.1f} | {seconds(path):.2f} |", flush=True)


if __name__ == "__main__":
    main()
