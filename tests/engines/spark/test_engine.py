"""Spark on a real cluster: killed and repeated tasks change nothing, and no secret leaks."""

import ast
import math
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import sfumato.engines.spark.secret as spark_secret
from sfumato import Domain, GridDomain, HighLow, Survey, Uniform
from sfumato.engines.spark.engine import keyed_reports, privatize_to, tally_column, tally_files
from sfumato.engines.spark.tasks import person_block
from sfumato.errors import InvalidArgument, InvalidTable, UnknownValue
from sfumato.randomness import words_at
from sfumato.tables import AnswerColumns, count_files
from support.paths import ROOT
from support.spark_cluster import encodings, java_is_new_enough

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

LABELS = ["park", "café", "clinic", "bar", "school"]
CANARY = "kanarienvogel-4711"
IN_CLEAR = Survey("in-clear", Uniform(Domain(LABELS), math.inf), edition=2)
PRIVATE = Survey("private", HighLow(Domain(LABELS), ["clinic", "bar"], 1))
PEOPLE = 3000


def places(people=PEOPLE):
    """A label for each of many people, by a fixed rule."""
    return [LABELS[(i * i + i // 7) % len(LABELS)] for i in range(people)]


def counts_of(values):
    return [values.count(label) for label in LABELS]


def killer(folder):
    """Pass batches on; in the first attempt of every other task, the worker dies halfway."""
    folder = str(folder)

    def pass_on(batches):
        import os
        import uuid

        from pyspark import TaskContext

        task = TaskContext.get()
        doomed = task.attemptNumber() == 0 and task.partitionId() % 2 == 0
        for done, batch in enumerate(batches):
            if doomed and done == 2:
                (Path(folder) / f"killed-{uuid.uuid4().hex}").touch()
                os._exit(1)
            yield batch

    return pass_on


def witness(folder):
    """Note every key and report of each attempt. The first attempts at two partitions die."""
    folder = str(folder)

    def note(batches):
        import os
        import uuid

        from pyspark import TaskContext

        task = TaskContext.get()
        name = f"seen-{task.partitionId()}-{task.attemptNumber()}-{uuid.uuid4().hex}"
        with (Path(folder) / name).open("w", encoding="utf-8") as seen:
            for done, batch in enumerate(batches):
                for row in batch.to_pylist():
                    seen.write(f"{row['key']} {row['report']}\n")
                seen.flush()
                if task.attemptNumber() == 0 and done == 3 and task.partitionId() in (1, 2):
                    os._exit(1)
                yield batch

    return note


def pairs_of(folder):
    """For each key the reports that any attempt had, and how many attempts each partition had."""
    reports = defaultdict(set)
    attempts = defaultdict(int)
    for path in folder.glob("seen-*"):
        attempts[path.name.split("-")[1]] += 1
        for line in path.read_text(encoding="utf-8").splitlines():
            key, _, report = line.rpartition(" ")
            reports[key].add(int(report))
    return reports, attempts


@pytest.fixture
def secrets(monkeypatch):
    """All keys that the driver draws for jobs."""
    drawn = []
    draw = spark_secret.fresh_key
    monkeypatch.setattr(spark_secret, "fresh_key", lambda: drawn.append(draw()) or drawn[-1])
    return drawn


# --- tallies --------------------------------------------------------------------------------------


def test_counts_are_exact_although_tasks_are_killed(cluster, tmp_path):
    values = places()
    table = cluster.table([(value,) for value in values], ["place"], 5)
    killed = table.mapInArrow(killer(tmp_path), table.schema)
    tally = tally_column(IN_CLEAR, killed, column="place")
    assert tally.counts.tolist() == counts_of(values)
    assert tally.fingerprint == IN_CLEAR.fingerprint
    assert tally_column(PRIVATE, table, column="place").reports == PEOPLE
    assert len(list(tmp_path.glob("killed-*"))) == 3


@pytest.mark.slow
def test_every_row_counts_once_although_an_executor_dies(cluster):
    table = cluster.table([(value,) for value in places()], ["place"], 24)
    for survey in (PRIVATE, IN_CLEAR):
        killing = threading.Thread(
            target=kill_an_executor, args=(cluster.spark, executors(cluster.spark))
        )
        killing.start()
        tally = tally_column(survey, table, column="place")
        killing.join()
        assert tally.reports == PEOPLE
    assert tally.counts.tolist() == counts_of(places())


def executors(spark):
    """The process numbers of the executors: each is the grandparent of its Python workers."""

    def grandparent(batches):
        import os
        import time

        import pyarrow as pa

        time.sleep(0.5)  # so that both have something to do
        lines = Path(f"/proc/{os.getppid()}/status").read_text().splitlines()
        pid = next(int(line.split()[1]) for line in lines if line.startswith("PPid"))
        yield pa.record_batch([pa.array([pid])], names=["pid"])

    return sorted(
        {
            row["pid"]
            for row in spark.range(0, 4, 1, 4).mapInArrow(grandparent, "pid long").collect()
        }
    )


def kill_an_executor(spark, pids):
    """Wait until some tasks of a job are done, and kill."""
    tracker = spark.sparkContext.statusTracker()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        active = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        if any(
            stage is not None and stage.numTasks == 24 and stage.numCompletedTasks
            for stage in active
        ):
            os.kill(pids[0], signal.SIGKILL)
            return
        time.sleep(0.005)


@pytest.mark.slow
def test_positions_and_whole_numbers_are_counted_too(cluster):
    grid = GridDomain(0, 3, 0, 4, 1)
    survey = Survey("cells", Uniform(grid, math.inf))
    spots = [(i % 3 + 0.5, i % 4 + 0.5, i % 12) for i in range(600)]
    table = cluster.table(spots, ["the lat", "lon.gitude", "number"], 2)
    tally = tally_column(survey, table, latitude="the lat", longitude="lon.gitude")
    expected = np.bincount(grid.symbols_at(*np.array(spots)[:, :2].T), minlength=12)
    assert tally.counts.tolist() == expected.tolist()
    numbers = Survey("numbers", Uniform(12, math.inf))
    assert tally_column(numbers, table, column="number").counts.tolist() == [50] * 12


@pytest.mark.slow
def test_files_are_opened_by_the_tasks(cluster, tmp_path):
    values = places(500)
    (tmp_path / "a.csv").write_text("place\n" + "\n".join(values[:200]) + "\n", encoding="utf-8")
    pa.parquet.write_table(pa.table({"place": values[200:]}), tmp_path / "b.parquet")
    paths = [str(tmp_path / "a.csv"), str(tmp_path / "b.parquet")]
    tally = tally_files(cluster.spark, IN_CLEAR, paths, AnswerColumns("place"))
    assert tally.counts.tolist() == counts_of(values)
    (tmp_path / "c.csv").write_text(f"place\npark\n{CANARY}\n", encoding="utf-8")
    with pytest.raises(UnknownValue, match=r"c\.csv.*row 2") as caught:
        tally_files(
            cluster.spark, IN_CLEAR, [*paths, str(tmp_path / "c.csv")], AnswerColumns("place")
        )
    assert CANARY not in str(caught.value)
    with pytest.raises(InvalidTable, match=r"cannot open gone\.csv"):
        tally_files(cluster.spark, IN_CLEAR, [str(tmp_path / "gone.csv")], AnswerColumns("place"))


def test_unknown_values_are_counted_but_not_shown(cluster):
    rows = [(value,) for value in places(300)]
    for i in (5, 17, 299):
        rows[i] = (CANARY,)
    rows[8] = (None,)
    problems = (
        "1 of 300 rows has no answer.* 3 of 300 rows have an answer that is not in the domain"
    )
    with pytest.raises(UnknownValue, match=problems) as caught:
        tally_column(PRIVATE, cluster.table(rows, ["place"], 1), column="place")
    assert CANARY not in str(caught.value)
    assert CANARY.encode() not in cluster.logs()


@pytest.mark.parametrize(
    ("names", "asked", "message"),
    [
        (["place"], {"column": "where"}, "one column 'where', but it has 0"),
        (["place"], {}, "either --column, or both"),
        (["place"], {"latitude": "place", "longitude": "where"}, "grid or H3"),
    ],
)
def test_invalid_columns_are_refused(cluster, names, asked, message):
    with pytest.raises((InvalidTable, InvalidArgument), match=message):
        tally_column(PRIVATE, cluster.table([("park",)], names), **asked)


@pytest.mark.slow
def test_tables_that_cannot_be_counted_are_refused(cluster):
    table = cluster.table([("park", 1.5)], ["place", "share"])
    with pytest.raises(
        InvalidTable, match="'share' must contain text or integers, but its type is double"
    ):
        tally_column(PRIVATE, table, column="share")
    with pytest.raises(InvalidTable, match="no rows"):
        tally_column(PRIVATE, table.where("share > 2"), column="place")
    with pytest.raises(InvalidTable, match="listed twice"):
        tally_files(cluster.spark, PRIVATE, ["/a/b.csv", "/a//b.csv"], AnswerColumns("place"))
    with pytest.raises(InvalidTable, match="absolute"):
        tally_files(cluster.spark, PRIVATE, ["a.csv"], AnswerColumns("place"))


# --- reports under keys ---------------------------------------------------------------------------


def test_all_attempts_have_one_report_per_person(cluster, tmp_path):
    """Tasks die halfway, and rows are split differently and recomputed: still one report each."""
    rows = [(f"person {i}", value) for i, value in enumerate(places())]
    table = cluster.table(rows, ["who", "place"], 6)
    with keyed_reports(PRIVATE, table, column="place", key="who") as reports:
        first = reports.mapInArrow(witness(tmp_path), reports.schema).collect()
        _, attempts = pairs_of(tmp_path)
        again = reports.repartition(3).mapInArrow(witness(tmp_path), reports.schema).collect()
    assert sorted(first) == sorted(again)
    assert {row["key"] for row in first} == {who for who, _ in rows}
    seen, _ = pairs_of(tmp_path)
    assert len(seen) == PEOPLE
    assert {len(reports) for reports in seen.values()} == {1}
    assert {who: report for who, (report,) in seen.items()} == {
        row["key"]: row["report"] for row in first
    }
    assert attempts["1"] >= 2, "this task was to die"
    assert attempts["2"] >= 2, "this task was to die"
    with keyed_reports(PRIVATE, table, column="place", key="who") as reports:
        other = reports.collect()
    assert sorted(other) != sorted(first), "another job has another secret"


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param(["Ada", "", "Zoë", "Zoe\u0308", "7", "a\u0000b"], id="text"),
        pytest.param([0, -1, 7, 2**63 - 1, -(2**63)], id="whole", marks=pytest.mark.slow),
        pytest.param([b"", b"\xff\x00", b"7"], id="bytes", marks=pytest.mark.slow),
    ],
)
def test_reports_come_from_the_words_of_their_keys(cluster, secrets, keys):
    rows = [(key, LABELS[i % len(LABELS)]) for i, key in enumerate(keys)]
    table = cluster.table(rows, ["who", "place"])
    with keyed_reports(PRIVATE, table, column="place", key="who") as reports:
        # Bytes come back as another kind of bytes.
        found = [
            (bytes(key) if isinstance(key, bytearray) else key, report)
            for key, report in reports.collect()
        ]
    secret = secrets[0]
    mechanism = PRIVATE.mechanism
    for key, place in rows:
        symbol = LABELS.index(place)
        chained = words_at(secret, person_block(PRIVATE.fingerprint, key))[0].tolist()
        block = (chained[0] ^ symbol).to_bytes(8, "little") + chained[1].to_bytes(8, "little")
        words = words_at(secret, block)[:, : mechanism.words]
        slow = mechanism.reports_from([symbol], words >> np.uint64(64 - mechanism.word_bits))
        assert dict(found)[key] == slow[0]


@pytest.mark.slow
def test_keys_that_do_not_name_one_person_are_refused(cluster, tmp_path):
    rows = [(f"{CANARY} {i}", "park") for i in range(50)]
    twice = [*rows, (rows[3][0], "bar"), (rows[4][0], "park"), (rows[4][0], "park")]
    out = tmp_path / "out"
    with pytest.raises(
        InvalidTable, match=r"^2 keys occur in more than one row.*write the result to files"
    ) as caught:
        privatize_to(
            PRIVATE, cluster.table(twice, ["who", "place"]), str(out), column="place", key="who"
        )
    assert CANARY not in str(caught.value)
    with pytest.raises(InvalidTable, match="2 of 52 rows have no key"):
        nobody = cluster.table([*rows, (None, "park"), (None, "bar")], ["who", "place"])
        privatize_to(PRIVATE, nobody, str(out), column="place", key="who")
    with pytest.raises(UnknownValue, match="1 of 51 rows has an answer"):
        unknown = cluster.table([*rows, ("x", CANARY)], ["who", "place"])
        privatize_to(PRIVATE, unknown, str(out), column="place", key="who")
    table = cluster.table(rows, ["who", "place"])
    with pytest.raises(InvalidTable, match="the expression Uuid does not guarantee that"):
        privatize_to(
            PRIVATE, table.selectExpr("uuid() AS who", "place"), str(out), column="place", key="who"
        )
    with pytest.raises(InvalidTable, match="text, integers or bytes"):
        privatize_to(
            PRIVATE, table.selectExpr("1.5D AS who", "place"), str(out), column="place", key="who"
        )
    assert not out.exists()
    assert CANARY.encode() not in cluster.logs()


@pytest.mark.slow
def test_after_the_block_there_are_no_more_reports(cluster):
    from pyspark.errors import PythonException

    table = cluster.table([("Ada", "park")], ["who", "place"], 1)
    with keyed_reports(PRIVATE, table, column="place", key="who") as reports:
        assert reports.count() == 1
    with pytest.raises(PythonException, match="the secret is gone"):
        reports.collect()


@pytest.mark.slow
def test_report_folders_name_the_survey_but_no_key(cluster, tmp_path):
    values = places()
    rows = [(f"{CANARY} {i}", value) for i, value in enumerate(values)]
    out = tmp_path / "out"
    table = cluster.table(rows, ["who", "place"], 3)
    privatize_to(IN_CLEAR, table, str(out), column="place", key="who")
    parts = sorted(out.glob("*.parquet"))
    tables = [pa.parquet.read_table(part) for part in parts]
    names = {name for part in tables for name in part.column_names}
    assert len(parts) == 3
    assert len(names) == 1
    assert names.pop().startswith(f"report@{IN_CLEAR.fingerprint}#")
    numbers = np.concatenate([part.column(0).to_numpy() for part in tables])
    assert IN_CLEAR.tally(numbers).counts.tolist() == counts_of(values)
    assert count_files([str(out)], IN_CLEAR).counts.tolist() == counts_of(values)
    assert not any(
        CANARY.encode() in path.read_bytes() for path in out.rglob("*") if path.is_file()
    )


@pytest.mark.slow
def test_the_page_about_spark_is_true(cluster, tmp_path):
    """The programs on the page are run one after the other, in a folder of ours."""
    text = (ROOT / "docs" / "spark.md").read_text(encoding="utf-8")
    blocks = re.findall(r"(?:^    .*\n(?:\n(?=    ))?)+", text, re.MULTILINE)
    programs = [textwrap.dedent(block) for block in blocks if "pip install" not in block]
    values = places(300)
    (tmp_path / "answers").mkdir()
    table = pa.table({"place": values, "account": [f"person {i}" for i in range(300)]})
    pa.parquet.write_table(table, tmp_path / "answers" / "all.parquet")
    IN_CLEAR.save(tmp_path / "lunch.json")
    shown = {"spark": cluster.spark}
    tallies = []
    for program in programs:
        exec(program.replace("/data/", f"{tmp_path}/"), shown)  # noqa: S102 - our own page
        tallies.append(shown["tally"].counts.tolist())
    assert len(programs) == 5
    assert tallies == [counts_of(values)] * 5
    assert count_files([str(tmp_path / "reports-once")], IN_CLEAR).counts.tolist() == counts_of(
        values
    )
    written = (tmp_path / "reports-csv").glob("*.csv")
    reports = [int(line) for path in written for line in path.read_text().splitlines()]
    assert IN_CLEAR.tally(np.array(reports)).counts.tolist() == counts_of(values)


# --- the secret -----------------------------------------------------------------------------------


def test_the_secret_is_in_nothing_that_spark_writes(cluster, secrets, tmp_path):
    table = cluster.table([(i, value) for i, value in enumerate(places())], ["who", "place"])
    with keyed_reports(PRIVATE, table, column="place", key="who") as reports:
        reports.write.parquet(str(cluster.folder / "out" / "kept"))
        shown = reports._jdf.queryExecution().toString().encode()
    (cluster.folder / "plan").write_bytes(shown)
    secret = secrets[0]
    assert cluster.files_with(secret) == []


def test_the_search_for_a_secret_finds_a_planted_one(cluster):
    planted = bytes(range(200, 232))
    cluster.spark.sparkContext.setJobDescription(planted.hex())
    cluster.spark.range(1).count()
    cluster.spark.sparkContext.setJobDescription(None)
    assert any(name.startswith(("events", "app-")) for name in cluster.files_with(planted))


JOB = """
import sys, urllib.request
from pathlib import Path
import pytest
folder, tests, noted = map(Path, sys.argv[1:])
sys.path.insert(0, str(tests))
from support.spark_cluster import Cluster
import sfumato.engines.spark.secret as spark_secret
from support.spark_cluster import encodings, java_is_new_enough
from sfumato import Domain, Survey, Uniform
from sfumato.engines.spark.engine import keyed_reports
drawn, draw = [], spark_secret.fresh_key
spark_secret.fresh_key = lambda: drawn.append(draw()) or drawn[-1]
labels = [f"a rather long label, number {i:06}" for i in range(40_000)]
survey = Survey("large", Uniform(Domain(labels), 1))
assert len(survey.resolved()) > 2**20
settings = {"spark.ui.enabled": "true", "spark.ui.port": "0"}
cluster = Cluster(folder, pytest.MonkeyPatch(), **settings)
cluster.spark.sparkContext.setLogLevel("DEBUG")
table = cluster.table([(i, survey.context.domain.labels[i]) for i in range(1000)], ["who", "place"])
with keyed_reports(survey, table, column="place", key="who") as reports:
    assert reports.count() == 1000
    page = cluster.spark.sparkContext.uiWebUrl
    for name in ("environment/", "SQL/", "SQL/execution/?id=0", "jobs/", "stages/", "executors/"):
        with urllib.request.urlopen(f"{page}/{name}") as answer:
            (folder / ("page-" + name.replace("/", "-"))).write_bytes(answer.read())
    reports.explain(True)
    during = cluster.files_with(drawn[0])
planted = bytes(range(200, 232))
def naive(batches, filling=survey.resolved()):
    planted
    return batches
table.mapInArrow(naive, table.schema).count()
after = cluster.files_with(drawn[0])
noted.write_text(repr((drawn[0].hex(), during, after, cluster.files_with(planted))))
cluster.spark.stop()
"""


@pytest.mark.slow
def test_the_secret_is_nowhere_with_every_page_open_and_every_line_logged(tmp_path):
    """Spark writes a job's functions to disk above a megabyte: ours contain no secret."""
    pytest.importorskip("pyspark")
    if not java_is_new_enough():
        pytest.skip("needs Java 17")
    (tmp_path / "cluster").mkdir()
    arguments = [str(tmp_path / "cluster"), str(ROOT / "tests"), str(tmp_path / "noted")]
    ended = subprocess.run(
        [sys.executable, "-c", JOB, *arguments], capture_output=True, check=False, timeout=600
    )
    assert ended.returncode == 0, ended.stderr[-3000:].decode()
    secret, during, after, planted = ast.literal_eval((tmp_path / "noted").read_text())
    assert during == []
    assert after == []
    assert planted, "a secret inside a function is on disk, and the search finds it"
    said = ended.stdout + ended.stderr
    assert len(ended.stderr) > 100_000, "every line was to be logged"
    assert b"MapInArrow" in ended.stdout, "the plan was to be shown"
    assert not any(encoding in said for encoding in encodings(bytes.fromhex(secret)))
