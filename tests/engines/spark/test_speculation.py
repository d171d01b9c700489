"""Speculation: a copy on another host overtakes a slow task, and makes the same reports."""

import json
import subprocess
import sys
from collections import defaultdict

import pytest

from support.paths import ROOT
from support.spark_cluster import java_is_new_enough, two_hosts

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

PEOPLE = 400
SLOW = 2  # the partition whose first attempt waits for a second one

JOB = """
import sys
from pathlib import Path
import pytest
folder, tests, master, speculation, patience = sys.argv[1:]
folder = Path(folder)
sys.path.insert(0, tests)
from support.spark_cluster import Cluster
from sfumato import Domain, Survey, Uniform
from sfumato.engines.spark.engine import keyed_reports

LABELS = ["park", "bar", "clinic"]
survey = Survey("private", Uniform(Domain(LABELS), 1))
settings = {
    "spark.speculation": speculation,
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.3",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.minTaskRuntime": "500ms",
}
cluster = Cluster(folder, pytest.MonkeyPatch(), master, **settings)
table = cluster.table([(i, LABELS[i % 3]) for i in range(PEOPLE)], ["who", "place"], 4)

def note(batches, seen=str(folder / "seen"), patience=float(patience)):
    import time
    import uuid
    from pathlib import Path
    from pyspark import TaskContext
    task = TaskContext.get()
    rows = [row for batch in batches for row in batch.to_pylist()]
    name = f"{task.partitionId()}-{task.attemptNumber()}-{uuid.uuid4().hex}"
    (Path(seen) / name).write_text("".join(f"{row['key']} {row['report']}\\n" for row in rows))
    deadline = time.monotonic() + patience
    while task.partitionId() == SLOW and task.attemptNumber() == 0 and time.monotonic() < deadline:
        if any(Path(seen).glob(f"{SLOW}-1-*")):
            break
        time.sleep(0.05)
    time.sleep(0.5)
    yield from []

(folder / "seen").mkdir()
with keyed_reports(survey, table, column="place", key="who") as reports:
    reports.mapInArrow(note, reports.schema).collect()
cluster.spark.stop()
"""


@pytest.fixture(scope="module")
def master(tmp_path_factory):
    pytest.importorskip("pyspark")
    if not java_is_new_enough():
        pytest.skip("needs Java 17")
    with two_hosts(tmp_path_factory.mktemp("hosts")) as url:
        yield url


def run_job(folder, master, speculation, patience):
    """Make all reports; the first attempt at one partition waits up to ``patience`` seconds."""
    job = JOB.replace("PEOPLE", str(PEOPLE)).replace("SLOW", str(SLOW))
    folder.mkdir()
    arguments = [str(folder), str(ROOT / "tests"), master, speculation, str(patience)]
    ended = subprocess.run(
        [sys.executable, "-c", job, *arguments], capture_output=True, check=False, timeout=300
    )
    assert ended.returncode == 0, ended.stderr[-3000:].decode()


def speculative_tasks(folder):
    """The tasks that Spark's own event log calls speculative, and how many tasks ended in all."""
    logs = (folder / "events").rglob("events_*")
    events = [
        json.loads(line)
        for log in logs
        for line in log.read_text(encoding="utf-8").splitlines()
        if line
    ]
    ended = [event["Task Info"] for event in events if event["Event"] == "SparkListenerTaskEnd"]
    return [task for task in ended if task["Speculative"]], len(ended)


def reports_seen(folder):
    """Return the reports of each key over all attempts, and the attempts at the slow partition."""
    reports = defaultdict(set)
    for path in (folder / "seen").iterdir():
        for line in path.read_text(encoding="utf-8").splitlines():
            key, report = line.split()
            reports[int(key)].add(int(report))
    return reports, len(list((folder / "seen").glob(f"{SLOW}-*")))


def test_speculative_attempts_make_the_same_reports(master, tmp_path):
    folder = tmp_path / "job"
    run_job(folder, master, "true", 60)
    speculative, _ = speculative_tasks(folder)
    reports, attempts = reports_seen(folder)
    assert speculative
    assert attempts >= 2
    assert set(reports) == set(range(PEOPLE))
    assert {len(made) for made in reports.values()} == {1}


def test_without_speculation_the_event_log_shows_none(master, tmp_path):
    """The twin: the same job, in which the test above must find nothing."""
    folder = tmp_path / "job"
    run_job(folder, master, "false", 3)
    speculative, ended = speculative_tasks(folder)
    _, attempts = reports_seen(folder)
    assert ended > 4
    assert speculative == []
    assert attempts == 1
