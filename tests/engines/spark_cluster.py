"""A real Spark cluster: a driver and two executors, on this machine's loopback only."""

import base64
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = "127.0.0.1"


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


class Cluster:
    """A session, and the folders where anything that Spark writes must be."""

    def __init__(self, folder, monkeypatch, **settings):
        from pyspark.sql import SparkSession

        self.folder = folder
        for name in ("events", "local", "out", "tmp"):
            (folder / name).mkdir()
        environment = {
            "SPARK_HOME": str(spark_home(folder / "spark")),
            "SPARK_LOCAL_DIRS": str(folder / "local"),
            "SPARK_LOCAL_IP": HERE,
            "TMPDIR": str(folder / "tmp"),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path.endswith("src")),
        }
        for name, value in environment.items():
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
            "spark.sql.execution.arrow.maxRecordsPerBatch": "100",
            "spark.speculation": "true",
            "spark.speculation.interval": "100ms",
            "spark.speculation.quantile": "0.3",
            "spark.speculation.multiplier": "1.1",
            "spark.speculation.minTaskRuntime": "500ms",
            "spark.excludeOnFailure.enabled": "false",
            **settings,
        }
        builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("tests")
        for name, value in given.items():
            builder = builder.config(name, value)
        self.spark = builder.getOrCreate()

    def table(self, rows, names, parts=4):
        """A table of rows, spread over several tasks."""
        return self.spark.createDataFrame(rows, names).repartition(parts)

    def logs(self):
        """Everything that executors printed."""
        return b"".join(path.read_bytes() for path in (self.folder / "spark" / "work").rglob("std*"))

    def holders(self, secret):
        """The files, of all that Spark wrote and this session knows, that hold the secret in any dress."""
        settings = repr(self.spark.sparkContext.getConf().getAll()).encode()
        (self.folder / "settings").write_bytes(settings)
        written = [path for path in self.folder.rglob("*") if path.is_file() and not path.is_symlink()]
        return sorted({path.name for path in written if any(dress in path.read_bytes() for dress in dresses(secret))})


def dresses(secret):
    """A secret as it may have been written: raw, in hex, in base64 at any offset, escaped by Python or by Java."""
    shifted = [base64.b64encode(bytes(shift) + secret)[4 if shift else 0 : -4] for shift in range(3)]
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
