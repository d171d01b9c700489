"""How fast the commands privatise a file and estimate: `python benchmarks/tables.py [ROWS]`.

Write Parquet files of labels, numbers and positions, and CSV files of labels without and with
quotation marks. Run the commands on them as a user would, to reports and to a tally, and print rows
per second. If GNU time is installed, also print the peak
memory of each command.
"""

import multiprocessing
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

LABELS = """name = "labels"
[domain]
kind = "range"
size = 1000
[context]
kind = "high-low"
epsilon = 1.0
sensitive = [1, 2, 3, 5, 8, 13]
"""
GRID = """name = "grid"
[domain]
kind = "grid"
south = 25.0
north = 50.0
west = -130.0
east = -60.0
step = 0.2
[context]
kind = "blocks"
epsilon = 1.0
rows = 25
columns = 70
"""


PLACES = [f"place {i}" for i in range(1000)]
SURVEYS = {
    "text": LABELS.replace(
        'kind = "range"\nsize = 1000', f'kind = "labels"\nlabels = {PLACES!r}'.replace("'", '"')
    ).replace("[1, 2, 3, 5, 8, 13]", '["place 1", "place 2", "place 3"]'),
    "numbers": LABELS,
    "positions": GRID,
}
SURVEYS["csv"] = SURVEYS["text"]
SURVEYS["quoted"] = SURVEYS["text"]


def measure_command(*arguments: str) -> float:
    start = time.perf_counter()
    command = ["/usr/bin/env", "time", "-f", "%M KB", sys.executable, "-m", "sfumato", *arguments]
    command = command if shutil.which("time") else command[4:]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def write(kind: str, rows: int, folder: Path) -> None:
    """Write the answers, in a separate process: children inherit their parent's peak memory."""
    generator = np.random.default_rng(0)
    if kind == "positions":
        table = pa.table(
            {"lat": generator.uniform(25, 49.999, rows), "lon": generator.uniform(-130, -60, rows)}
        )
    else:
        numbers = pa.array(np.minimum(generator.zipf(1.3, rows) - 1, 999))
        table = pa.table(
            {"place": numbers if kind == "numbers" else pa.array(PLACES).take(numbers)}
        )
    if kind in ("csv", "quoted"):
        style = "needed" if kind == "quoted" else "none"
        options = pyarrow.csv.WriteOptions(quoting_style=style)
        table = table.append_column("id", pa.array(np.arange(rows)))
        pyarrow.csv.write_csv(table, folder / f"{kind}.csv", options)
    else:
        pa.parquet.write_table(table, folder / f"{kind}.parquet", row_group_size=2**20)


def main(rows: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind, description in SURVEYS.items():
            writer = multiprocessing.get_context("spawn").Process(
                target=write, args=(kind, rows, folder)
            )
            writer.start()
            writer.join()
            suffix = "csv" if kind in ("csv", "quoted") else "parquet"
            answers = str(folder / f"{kind}.{suffix}")
            survey = str(folder / f"{kind}.toml")
            reports = str(folder / f"{kind}-reports.parquet")
            Path(survey).write_text(description, encoding="utf-8")
            columns = ["--column", "place"]
            if kind == "positions":
                columns = ["--latitude", "lat", "--longitude", "lon"]
            tally = str(folder / f"{kind}.json")
            privatize_seconds = measure_command(
                "privatize", survey, answers, *columns, "-o", reports
            )
            estimate_seconds = measure_command("estimate", survey, reports)
            tally_seconds = [
                measure_command("privatize", survey, answers, *columns, "-o", tally, "--workers", n)
                for n in ("1", "2")
            ]
            speed = rows / (privatize_seconds + estimate_seconds) / 1e6
            print(
                f"{kind:<10} privatise {privatize_seconds:5.2f} s  "
                f"estimate {estimate_seconds:5.2f} s  {speed:5.1f} million rows/s  "
                f"tally alone {tally_seconds[0]:5.2f} s, two workers {tally_seconds[1]:5.2f} s"
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000)
