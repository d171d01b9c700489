"""Real Spark clusters: a driver and two executors, on this machine's loopback only."""

import base64
import os
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow as pa

HERE = "127.0.0.1"
ELSEWHERE = "127.0.0.2"  # another host, as far as Spark can tell


def java_is_new_enough():
    """Whether there is a Java 17 or newer."""
    program = shutil.which("java")
    if program is None:
        return False
    said = subprocess.run([program, "-version"], capture_output=True, text=True, check=False).stderr
    version = said.partition('"')[2].partition(".")[0]
    return version.isdigit() and int(version) >= 17


def spark_home(folder):
    """The installed package under another roof: executors lay down their logs beside it, and must not do so there."""
    import pyspark

    folder.mkdir()
    for part in Path(pyspark.__file__).parent.iterdir():
        if part.name != "work":  # somebody else's logs
            (folder / part.name).symlink_to(part)
    return folder


def environment(folder, address=HERE):
    """What every process of a cluster must know; all that it writes goes to ``folder``."""
    return {
        "SPARK_HOME": str(folder / "spark"),
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_LOCAL_IP": address,
        "TMPDIR": str(folder / "tmp"),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path.endswith("src")),
    }


def prepare(folder):
    """Make the folders that a cluster writes to."""
    for name in ("events", "local", "out", "tmp"):
        (folder / name).mkdir()
    spark_home(folder / "spark")


class Cluster:
    """A session, and the folders where anything that Spark writes must be."""

    def __init__(self, folder, monkeypatch, master="local-cluster[2,1,1024]", **settings):
        from pyspark.sql import SparkSession

        self.folder = folder
        prepare(folder)
        for name, value in environment(folder).items():
            monkeypatch.setenv(name, value)
        given = {
            "spark.driver.host": HERE,
            "spark.driver.bindAddress": HERE,
            "spark.driver.memory": "700m",
            "spark.executor.memory": "700m",
            "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={folder / 'tmp'}",
            "spark.executor.extraJavaOptions": f"-Djava.io.tmpdir={folder / 'tmp'}",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": str(folder / "events"),
            # What is compressed cannot be searched.
            "spark.eventLog.compress": "false",
            "spark.broadcast.compress": "false",
            "spark.shuffle.compress": "false",
            "spark.sql.shuffle.partitions": "4",
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.sql.execution.arrow.maxRecordsPerBatch": "100",
            "spark.excludeOnFailure.enabled": "false",
            **settings,
        }
        builder = SparkSession.builder.master(master).appName("tests")
        for name, value in given.items():
            builder = builder.config(name, value)
        self.spark = builder.getOrCreate()
        self.spark.sparkContext.setCheckpointDir(str(folder / "checkpoints"))

    def table(self, rows, names, parts=4):
        """A table of rows, spread over several tasks. From Arrow, the rows are part of the plan itself."""
        columns = [pa.array(column) for column in zip(*rows, strict=True)]
        return self.spark.createDataFrame(pa.table(columns, names)).repartition(parts)

    def logs(self):
        """Everything that executors printed."""
        return b"".join(
            path.read_bytes() for path in (self.folder / "spark" / "work").rglob("std*")
        )

    def holders(self, secret):
        """The files, of all that Spark wrote and this session knows, that hold the secret in any dress."""
        settings = repr(self.spark.sparkContext.getConf().getAll()).encode()
        (self.folder / "settings").write_bytes(settings)
        written = [
            path for path in self.folder.rglob("*") if path.is_file() and not path.is_symlink()
        ]
        return sorted(
            {
                path.name
                for path in written
                if any(dress in path.read_bytes() for dress in dresses(secret))
            }
        )


@contextmanager
def two_hosts(folder):
    """A standalone master and a worker on each of two addresses; gives the master's URL.

    Spark never speculates on the host that runs the original, so one host is not enough to see it.
    """
    prepare(folder)
    with ExitStack() as running:
        master = _daemon(running, folder, HERE, "master.Master", "--port", "0", "--webui-port", "0")
        url = _awaited(master, "Starting Spark master at ").split()[0]
        for address in (HERE, ELSEWHERE):
            worker = _daemon(
                running, folder, address, "worker.Worker", "--cores", "1", "--memory", "1g", url
            )
            _awaited(worker, "Successfully registered with master")
        yield url


def _daemon(running, folder, address, name, *arguments):
    """Start a daemon that ends with ``running``; gives the file of its log."""
    log = folder / f"{name}-{address}.log"
    command = [
        folder / "spark" / "bin" / "spark-class",
        f"org.apache.spark.deploy.{name}",
        "--host",
        address,
    ]
    known = {**os.environ, **environment(folder, address), "SPARK_DAEMON_MEMORY": "256m"}
    with log.open("wb") as output:
        started = subprocess.Popen([*command, *arguments], env=known, stdout=output, stderr=output)
    running.callback(started.wait, timeout=60)
    running.callback(started.terminate)
    return log


def _awaited(log, said):
    """What a log says after some words, once it says them."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        _, found, rest = log.read_text(encoding="utf-8", errors="replace").partition(said)
        if found and "\n" in rest:
            return rest.partition("\n")[0]
        time.sleep(0.1)
    raise TimeoutError(
        f"{log.name} did not say {said!r}: {log.read_text(encoding='utf-8', errors='replace')[-2000:]}"
    )


def dresses(secret):
    """A secret as it may have been written: raw, in hex, in base64 at any offset, escaped by Python or by Java."""
    shifted = [
        base64.b64encode(bytes(shift) + secret)[4 if shift else 0 : -4] for shift in range(3)
    ]
    signed = [byte - 256 if byte > 127 else byte for byte in secret]
    escaped = repr(secret)[2:-1].encode()
    lists = [", ".join(map(str, numbers)).encode() for numbers in (secret, signed)]
    return [secret, secret.hex().encode(), secret.hex().upper().encode(), *shifted, escaped, *lists]


def stop_java():
    """End the driver's Java too, so that another cluster may have other settings."""
    from pyspark import SparkContext

    gateway, SparkContext._gateway, SparkContext._jvm = SparkContext._gateway, None, None
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(timeout=30)
