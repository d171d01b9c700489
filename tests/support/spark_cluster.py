"""Real Spark clusters on loopback: a driver and two executors."""

import base64
import os
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow as pa

FIRST_HOST = "127.0.0.1"
SECOND_HOST = "127.0.0.2"  # Spark takes this address for another host


def java_is_new_enough():
    """Return whether Java 17 or newer is installed."""
    program = shutil.which("java")
    if program is None:
        return False
    run = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)
    version = run.stderr.partition('"')[2].partition(".")[0]
    return version.isdigit() and int(version) >= 17


def link_spark_home(folder):
    """Link the installed package into a folder: executors write their logs next to it."""
    import pyspark

    folder.mkdir()
    for part in Path(pyspark.__file__).parent.iterdir():
        if part.name != "work":  # logs of other runs
            (folder / part.name).symlink_to(part)


def environment(folder, address=FIRST_HOST):
    """Return the environment of a cluster's processes, which makes them write to `folder` only."""
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
    """Create the folders that a cluster writes to."""
    for name in ("events", "local", "out", "tmp"):
        (folder / name).mkdir()
    link_spark_home(folder / "spark")


class Cluster:
    """A Spark session, and the folder that contains everything Spark writes."""

    def __init__(self, folder, monkeypatch, master="local-cluster[2,1,1024]", **settings):
        from pyspark.sql import SparkSession

        self.folder = folder
        prepare(folder)
        for name, value in environment(folder).items():
            monkeypatch.setenv(name, value)
        options = {
            "spark.driver.host": FIRST_HOST,
            "spark.driver.bindAddress": FIRST_HOST,
            "spark.driver.memory": "700m",
            "spark.executor.memory": "700m",
            "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={folder / 'tmp'}",
            "spark.executor.extraJavaOptions": f"-Djava.io.tmpdir={folder / 'tmp'}",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": str(folder / "events"),
            # Compressed files cannot be searched for secrets.
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
        for name, value in options.items():
            builder = builder.config(name, value)
        self.spark = builder.getOrCreate()
        self.spark.sparkContext.setCheckpointDir(str(folder / "checkpoints"))

    def table(self, rows, names, parts=4):
        """Return a table over several tasks. Rows from Arrow become part of the query plan."""
        columns = [pa.array(column) for column in zip(*rows, strict=True)]
        return self.spark.createDataFrame(pa.table(columns, names)).repartition(parts)

    def logs(self):
        """Return everything that the executors printed."""
        return b"".join(
            path.read_bytes() for path in (self.folder / "spark" / "work").rglob("std*")
        )

    def files_with(self, secret):
        """Return the names of the files that contain the secret in any encoding.

        Search everything that Spark wrote, and the settings of this session.
        """
        settings = repr(self.spark.sparkContext.getConf().getAll()).encode()
        (self.folder / "settings").write_bytes(settings)
        names = set()
        for path in self.folder.rglob("*"):
            if path.is_file() and not path.is_symlink():
                content = path.read_bytes()
                if any(encoding in content for encoding in encodings(secret)):
                    names.add(path.name)
        return sorted(names)


@contextmanager
def two_hosts(folder):
    """Run a standalone master, and a worker on each of two addresses; yield the master's URL.

    Spark never speculates on the host that runs the original task, so one host is not enough.
    """
    prepare(folder)
    with ExitStack() as stack:
        ports = ("--port", "0", "--webui-port", "0")
        master = _start_daemon(stack, folder, FIRST_HOST, "master.Master", *ports)
        url = _wait_for_text(master, "Starting Spark master at ").split()[0]
        for address in (FIRST_HOST, SECOND_HOST):
            resources = ("--cores", "1", "--memory", "1g")
            worker = _start_daemon(stack, folder, address, "worker.Worker", *resources, url)
            _wait_for_text(worker, "Successfully registered with master")
        yield url


def _start_daemon(stack, folder, address, name, *arguments):
    """Start a daemon that stops when `stack` closes; return the path of its log."""
    log = folder / f"{name}-{address}.log"
    command = [
        folder / "spark" / "bin" / "spark-class",
        f"org.apache.spark.deploy.{name}",
        "--host",
        address,
    ]
    variables = {**os.environ, **environment(folder, address), "SPARK_DAEMON_MEMORY": "256m"}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, *arguments], env=variables, stdout=output, stderr=output
        )
    stack.callback(process.wait, timeout=60)
    stack.callback(process.terminate)
    return log


def _wait_for_text(log, text):
    """Wait until a log contains `text`; return the rest of that line."""
    content = ""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        content = log.read_text(encoding="utf-8", errors="replace")
        _, match, rest = content.partition(text)
        if match and "\n" in rest:
            return rest.partition("\n")[0]
        time.sleep(0.1)
    raise TimeoutError(f"{log.name} does not contain {text!r}: {content[-2000:]}")


def encodings(secret):
    """Return a secret as Spark may write it: raw, hex, base64 at any offset, or escaped."""
    hexadecimal = [secret.hex().encode(), secret.hex().upper().encode()]
    base64_texts = [
        base64.b64encode(bytes(shift) + secret)[4 if shift else 0 : -4] for shift in range(3)
    ]
    python_escape = repr(secret)[2:-1].encode()
    signed_bytes = [byte - 256 if byte > 127 else byte for byte in secret]
    lists = [", ".join(map(str, numbers)).encode() for numbers in (secret, signed_bytes)]
    return [secret, *hexadecimal, *base64_texts, python_escape, *lists]


def stop_java():
    """Stop the driver's Java, so that the next cluster can have other settings."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    SparkContext._gateway = None
    SparkContext._jvm = None
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(timeout=30)
