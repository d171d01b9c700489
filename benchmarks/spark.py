"""How fast a Spark cluster counts: `python benchmarks/spark.py [ROWS]`.

It needs `sfumato[spark]` and Java 17. It writes Parquet files with 43,750 different integers and
tallies them on a driver with two executors of one core each. Without randomisation, the counts must
equal NumPy's exactly. For comparison, one process reads the same files on one core.
"""

import math
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from sfumato import HadamardCode, PlainResponse, Survey, Tally, Uniform
from sfumato.engines.spark import privatize_to, tally_column, tally_files
from sfumato.tables import AnswerColumns, answer_batches

SYMBOLS = 43_750
FILES = 16
VALUE = AnswerColumns("value")
HERE = "127.0.0.1"


def write_answers(folder: Path, rows: int) -> np.ndarray:
    """Write files of values, small ones more often. Return the count of each value."""
    counts = np.zeros(SYMBOLS, dtype=np.int64)
    generator = np.random.default_rng(1)
    folder.mkdir()
    for i in range(FILES):
        people = rows * (i + 1) // FILES - rows * i // FILES
        values = (SYMBOLS * generator.random(people) ** 2).astype(np.int32)
        counts += np.bincount(values, minlength=SYMBOLS)
        first = rows * i // FILES
        table = pa.table({"value": values, "who": np.arange(first, first + people)})
        pa.parquet.write_table(table, folder / f"{i:02}.parquet")
    return counts


def measure(name: str, rows: int, work: Callable[[], Tally]) -> Tally:
    start = time.perf_counter()
    tally = work()
    seconds = time.perf_counter() - start
    print(f"{name:<46} {seconds:7.1f} s  {rows / seconds / 1e6:6.2f} million rows/s", flush=True)
    return tally


def main(rows: int) -> None:
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
    import pyspark
    from pyspark.sql import SparkSession

    os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP=HERE)
    unrandomized = Survey("unrandomized", Uniform(SYMBOLS, math.inf))
    hadamard = Survey(
        "hadamard", Uniform(SYMBOLS, 1), PlainResponse(Uniform(SYMBOLS, 1), HadamardCode)
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        truth = write_answers(folder / "answers", rows)
        paths = sorted(map(str, (folder / "answers").iterdir()))
        home = folder / "spark"  # executors write next to it
        home.mkdir()
        for part in Path(pyspark.__file__).parent.iterdir():
            if part.name != "work":
                (home / part.name).symlink_to(part)
        os.environ.update(SPARK_HOME=str(home), SPARK_LOCAL_DIRS=str(folder / "local"))
        builder = SparkSession.builder.master("local-cluster[2,1,2048]").config(
            "spark.executor.memory", "1500m"
        )
        for setting in ("spark.driver.host", "spark.driver.bindAddress"):
            builder = builder.config(setting, HERE)
        for setting in ("spark.ui.enabled", "spark.ui.showConsoleProgress"):
            builder = builder.config(setting, "false")
        session = builder.config(
            "spark.sql.execution.arrow.maxRecordsPerBatch", str(2**16)
        ).getOrCreate()
        answers = session.read.parquet(str(folder / "answers"))
        domain = hadamard.context.domain

        def alone() -> Tally:
            people = (batch for path in paths for batch in answer_batches(path, VALUE, domain))
            return hadamard.mechanism.privatize_and_tally(people)

        print(f"{rows:,} rows, {SYMBOLS:,} symbols, {FILES} files")
        print(f"{os.cpu_count()} cores; PySpark {pyspark.__version__}")
        answers.count()  # starts the executors
        first = measure(
            "cluster, unrandomized, Spark reads",
            rows,
            lambda: tally_column(unrandomized, answers, column="value"),
        )
        print("  equal to NumPy's counts:", np.array_equal(first.counts, truth))
        files = measure(
            "cluster, unrandomized, tasks read",
            rows,
            lambda: tally_files(session, unrandomized, paths, VALUE),
        )
        print("  equal to NumPy's counts:", np.array_equal(files.counts, truth))
        measure(
            "cluster, Hadamard ε = 1, Spark reads",
            rows,
            lambda: tally_column(hadamard, answers, column="value"),
        )
        measure(
            "cluster, Hadamard ε = 1, tasks read",
            rows,
            lambda: tally_files(session, hadamard, paths, VALUE),
        )
        measure("one process, Hadamard ε = 1", rows, alone)

        def write_keyed_reports() -> Tally:
            privatize_to(hadamard, answers, str(folder / "reports"), column="value", key="who")
            return first

        measure("cluster, Hadamard ε = 1, reports under keys", rows, write_keyed_reports)
        session.stop()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50_000_000)
