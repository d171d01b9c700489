"""The local engine: same results for any files, slices and workers; failures leave nothing."""

import math
import os
import signal
import subprocess
import sys
import time
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.engines import privatize_files, tally_files
from sfumato.errors import (
    EngineStopped,
    InvalidArgument,
    InvalidTable,
    UnknownValue,
)
from sfumato.foundation import parallel
from sfumato.foundation.parallel import parallel_map
from sfumato.simulation import simulate, simulate_files
from sfumato.tables import AnswerColumns, FileSlice, answers, first_rows, report_batches, slice_file

ROWS = 5000
K = 23
SYMBOLS = np.arange(ROWS) ** 2 % K
PLACE = AnswerColumns("place")
IN_CLEAR = sf.Survey("in-clear", sf.Uniform(K, math.inf))
PRIVATE = sf.Survey("private", sf.Uniform(K, 1))


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(answers, "_TARGET_SLICE_ROWS", 700)


def parquet(folder, name, symbols, group=300):
    pq.write_table(pa.table({"place": pa.array(symbols)}), folder / name, row_group_size=group)
    return str(folder / name)


def csv(folder, name, symbols):
    (folder / name).write_text("place\n" + "".join(f"{x}\n" for x in symbols))
    return str(folder / name)


@pytest.fixture
def files(tmp_path):
    """The same people in one file, in several, and in several formats."""
    cut = np.split(SYMBOLS, [1, 1800, 3100])
    return {
        "one": [parquet(tmp_path, "one.parquet", SYMBOLS)],
        "several": [parquet(tmp_path, f"{i}.parquet", part) for i, part in enumerate(cut)],
        "csv": [csv(tmp_path, f"{i}.csv", part) for i, part in enumerate(cut)],
        "mixed": [
            (parquet if i % 2 else csv)(tmp_path, f"mixed{i}", part) for i, part in enumerate(cut)
        ],
    }


# --- pieces ---------------------------------------------------------------------------------------


def test_slices_cover_all_row_groups_once(tmp_path, small_pieces):
    pieces = slice_file(parquet(tmp_path, "a.parquet", SYMBOLS))
    assert [group for piece in pieces for group in piece.row_groups] == list(
        range(math.ceil(ROWS / 300))
    )
    assert sum(piece.row_count for piece in pieces) == ROWS
    assert [piece.first_row for piece in pieces] == np.cumsum(
        [0, *(piece.row_count for piece in pieces[:-1])]
    ).tolist()
    assert all(piece.row_count >= 700 for piece in pieces[:-1])


@pytest.mark.parametrize("name", ["-", "a.csv", "nowhere.csv"])
def test_files_without_row_groups_are_one_slice(tmp_path, name):
    csv(tmp_path, "a.csv", SYMBOLS)
    path = name if name == "-" else str(tmp_path / name)
    assert slice_file(path) == [FileSlice(path)]


def test_rows_are_numbered_through_all_files(files, small_pieces):
    for paths in files.values():
        pieces = [piece for path in paths for piece in slice_file(path)]
        firsts = first_rows(pieces, PLACE)
        read = []
        for piece in pieces:
            batches = sf.tables.answer_batches(piece, PLACE, IN_CLEAR.context.domain)
            read.append(np.concatenate([batch.symbols for batch in batches]))
        assert firsts == np.cumsum([0, *(part.size for part in read[:-1])]).tolist()
        np.testing.assert_array_equal(np.concatenate(read), SYMBOLS)


def test_standard_input_must_come_last():
    with pytest.raises(InvalidArgument, match="all files except the last must be regular files"):
        first_rows([FileSlice("-"), FileSlice("-")], PLACE)


# --- tallies and reports --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "workers"),
    [("one", 1), ("several", 1), ("csv", 1), ("mixed", 1), ("one", 2), ("mixed", 3)],
)
def test_every_row_counts_once(files, kind, workers, small_pieces):
    heard = []
    tally = tally_files(IN_CLEAR, files[kind], PLACE, workers=workers, on_progress=heard.append)
    assert tally.fingerprint == IN_CLEAR.fingerprint
    np.testing.assert_array_equal(tally.counts, np.bincount(SYMBOLS, minlength=K))
    assert heard == sorted(heard)
    assert heard[-1] == ROWS


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("kind", ["one", "csv"])
def test_reports_keep_the_order_of_the_answers(files, kind, workers, small_pieces):
    reports = np.concatenate(list(privatize_files(IN_CLEAR, files[kind], PLACE, workers=workers)))
    np.testing.assert_array_equal(reports, SYMBOLS)


def test_workers_draw_independent_words(tmp_path, monkeypatch):
    """Forty pieces of the same 60 people in the same order: no two of them are answered alike."""
    monkeypatch.setattr(answers, "_TARGET_SLICE_ROWS", 60)
    path = parquet(tmp_path, "same.parquet", np.tile(np.arange(60) % K, 40), group=60)
    reports = np.concatenate(list(privatize_files(PRIVATE, [path], PLACE, workers=2)))
    assert len({row.tobytes() for row in reports.reshape(40, 60)}) == 40


def test_the_fused_tally_is_that_of_the_reports():
    from sfumato.simulation import SeededWords

    for mechanism in (PRIVATE.mechanism, sf.BlockResponse(sf.Blocks(np.arange(K) // 5, 1.0))):
        reports = mechanism.privatize(SYMBOLS, SeededWords(1))
        parts = np.split(SYMBOLS, [1, 1700])
        assert mechanism.privatize_and_tally(parts, SeededWords(1)) == mechanism.tally(reports)
        assert mechanism.privatize_and_tally(SYMBOLS, SeededWords(1)) == mechanism.tally(reports)
        assert mechanism.privatize_and_tally(SYMBOLS.tolist(), SeededWords(1)) == mechanism.tally(
            reports
        )
        assert mechanism.privatize_and_tally(SYMBOLS, SeededWords(2)) != mechanism.tally(reports)


# --- simulation -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "workers"),
    [("one", 1), ("several", 1), ("csv", 1), ("mixed", 1), ("one", 2), ("mixed", 2)],
)
def test_workers_and_files_change_no_simulation(files, kind, workers, small_pieces):
    whole = simulate(PRIVATE, [SYMBOLS], runs=2, seed=3, decoder="projection")
    found = simulate_files(
        PRIVATE, files[kind], PLACE, runs=2, seed=3, decoder="projection", workers=workers
    )
    np.testing.assert_array_equal(found.estimates, whole.estimates)
    assert found.to_dict() == whole.to_dict()


def test_a_slice_at_a_wrong_row_is_detected(files, small_pieces, monkeypatch):
    simulate_module = sys.modules["sfumato.simulation.simulate"]
    monkeypatch.setattr(simulate_module, "first_rows", lambda slices, columns: [0] * len(slices))
    whole = simulate(PRIVATE, [SYMBOLS], runs=2, seed=3, decoder="projection")
    found = simulate_files(PRIVATE, files["several"], PLACE, runs=2, seed=3, decoder="projection")
    assert not np.array_equal(found.estimates, whole.estimates)


# --- files that are not what they seem ------------------------------------------------------------


def test_empty_row_groups_make_no_slice(tmp_path, small_pieces):
    table = pa.table({"place": pa.array(SYMBOLS[:700])})
    with pq.ParquetWriter(tmp_path / "a.parquet", table.schema) as writer:
        for part in (table[:0], table, table[:0]):
            writer.write_table(part, row_group_size=700)
    path = str(tmp_path / "a.parquet")
    assert [piece.row_count for piece in slice_file(path)] == [700]
    assert tally_files(IN_CLEAR, [path], PLACE).reports == 700


def test_a_file_without_rows_is_refused(tmp_path):
    with pytest.raises(InvalidTable, match=r"none\.parquet has no rows"):
        tally_files(IN_CLEAR, [parquet(tmp_path, "none.parquet", SYMBOLS[:0])], PLACE)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    "replace",
    [
        lambda folder: parquet(folder, "a.parquet", SYMBOLS, group=70),
        lambda folder: parquet(folder, "a.parquet", np.tile(SYMBOLS, 2), group=600),
        lambda folder: parquet(folder, "a.parquet", SYMBOLS[:300]),
        lambda folder: csv(folder, "a.parquet", SYMBOLS),
    ],
    ids=["other groups", "longer groups", "fewer groups", "CSV"],
)
def test_changed_files_are_not_counted(tmp_path, monkeypatch, small_pieces, replace, workers):
    path = parquet(tmp_path, "a.parquet", SYMBOLS)
    found = answers.slice_file

    def changed_after(path):
        pieces = found(path)
        replace(tmp_path)
        return pieces

    monkeypatch.setattr(answers, "slice_file", changed_after)
    with pytest.raises(InvalidTable, match=r"a\.parquet changed while it was being read"):
        tally_files(IN_CLEAR, [path], PLACE, workers=workers)


def test_paths_of_standard_input_are_read_once(tmp_path):
    (tmp_path / "-").write_text("x")
    IN_CLEAR.save(tmp_path / "s.json")
    call = [
        sys.executable,
        "-m",
        "sfumato",
        "privatize",
        "s.json",
        "-",
        "--column",
        "place",
        "-o",
        "t.json",
    ]
    answers = "place\n" + "".join(f"{x}\n" for x in SYMBOLS)
    subprocess.run(call, cwd=tmp_path, input=answers, text=True, capture_output=True, check=True)
    assert sf.tables.count_files([str(tmp_path / "t.json")], IN_CLEAR).reports == ROWS


def test_descriptors_are_read_by_this_process(tmp_path):
    IN_CLEAR.save(tmp_path / "s.json")
    first = csv(tmp_path, "a.csv", SYMBOLS[:1000])
    second = csv(tmp_path, "b.csv", SYMBOLS[1000:])
    inputs = f"<(cat {first}) {second}"
    command = f"{sys.executable} -m sfumato privatize"
    script = f"{command} s.json {inputs} --column place -o t.json"
    subprocess.run(
        ["/bin/bash", "-c", script], cwd=tmp_path, capture_output=True, check=True, timeout=120
    )
    tally = sf.tables.count_files([str(tmp_path / "t.json")], IN_CLEAR)
    np.testing.assert_array_equal(tally.counts, np.bincount(SYMBOLS, minlength=K))


# --- when something is wrong ----------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
def test_unknown_values_are_named_by_row(tmp_path, workers, small_pieces):
    symbols = SYMBOLS.copy()
    symbols[3333] = 777_777
    path = parquet(tmp_path, "wrong.parquet", symbols)
    with pytest.raises(
        UnknownValue, match=r"wrong.parquet: 1 of .*the first in data row 3,334\)"
    ) as caught:
        tally_files(PRIVATE, [path], PLACE, workers=workers)
    assert (caught.value.first, caught.value.count) == (3333, 1)
    assert "777" not in str(caught.value)


@pytest.mark.parametrize("workers", [0, -1, 1.0, True])
def test_at_least_one_worker(files, workers):
    with pytest.raises(InvalidArgument, match="workers must be a positive integer"):
        tally_files(PRIVATE, files["one"], PLACE, workers=workers)


def _dies(piece, on_progress):
    os.kill(os.getpid(), signal.SIGKILL)


def test_killed_workers_raise_and_do_not_hang():
    with pytest.raises(EngineStopped, match="fewer workers"):
        list(parallel_map(_dies, range(4), workers=2))


def _counted(piece, on_progress):
    on_progress(piece)
    return Counter([piece])


def test_few_items_wait_at_a_time(monkeypatch):
    submitted = []
    submit = parallel.ProcessPoolExecutor.submit
    monkeypatch.setattr(
        parallel.ProcessPoolExecutor,
        "submit",
        lambda pool, *work: submitted.append(work) or submit(pool, *work),
    )
    results = parallel_map(_counted, range(50), workers=2)
    first = [next(results) for _ in range(10)]
    assert len(submitted) <= 10 + 4
    assert first + list(results) == [Counter([piece]) for piece in range(50)]


SCRIPT = """
import os, time
from sfumato.foundation.parallel import parallel_map

def slow(piece, on_progress):
    os.write(1, b"working\\n")  # in one piece, as another worker writes as well
    time.sleep(600)

if __name__ == "__main__":
    list(parallel_map(slow, range(4), workers=2))
"""


@pytest.mark.parametrize(
    "signalled", ["everybody by Ctrl-C", "the parent ended", "the parent killed"]
)
def test_workers_end_with_their_parent(tmp_path, signalled):
    (tmp_path / "slow.py").write_text(SCRIPT)
    running = subprocess.Popen(
        [sys.executable, "slow.py"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert running.stdout.readline() == b"working\n"
    if signalled == "everybody by Ctrl-C":
        os.killpg(running.pid, signal.SIGINT)
    else:
        running.send_signal(signal.SIGTERM if signalled == "the parent ended" else signal.SIGKILL)
    _, said = running.communicate(timeout=60)
    assert running.returncode != 0
    assert said.count(b"Traceback") <= 2  # the parent's own, and none of a worker
    deadline = time.monotonic() + 60
    while _alive(running.pid):
        assert time.monotonic() < deadline, "a worker outlived its parent"
        time.sleep(0.05)


def _alive(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


# --- the command ----------------------------------------------------------------------------------


def test_the_command_counts_without_reports(tmp_path, files):
    IN_CLEAR.save(tmp_path / "s.json")
    command = [
        sys.executable,
        "-m",
        "sfumato",
        "privatize",
        "s.json",
        *files["several"],
        "--column",
        "place",
    ]
    done = subprocess.run(
        [*command, "-o", "tally.json"], cwd=tmp_path, capture_output=True, check=True, text=True
    )
    assert "Tally of 5,000 reports" in done.stdout
    counted = sf.tables.count_files([str(tmp_path / "tally.json")], IN_CLEAR)
    np.testing.assert_array_equal(counted.counts, np.bincount(SYMBOLS, minlength=K))
    subprocess.run(
        [*command, "-o", "reports.parquet"], cwd=tmp_path, capture_output=True, check=True
    )
    reports = [
        batch.numbers
        for batch in report_batches(str(tmp_path / "reports.parquet"), IN_CLEAR.fingerprint)
    ]
    np.testing.assert_array_equal(np.concatenate(reports), SYMBOLS)


@pytest.mark.parametrize(
    "other_name", [None, os.symlink, os.link], ids=["itself", "symbolic link", "hard link"]
)
def test_a_file_named_twice_is_refused(tmp_path, files, other_name):
    IN_CLEAR.save(tmp_path / "s.json")
    twice = [files["one"][0], files["one"][0]]
    if other_name is not None:
        twice[1] = str(tmp_path / "other")
        other_name(twice[0], twice[1])
    for command in (["privatize", "-o", "tally.json"], ["simulate"]):
        call = [
            sys.executable,
            "-m",
            "sfumato",
            command[0],
            "s.json",
            *twice,
            "--column",
            "place",
            *command[1:],
        ]
        done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert "listed twice" in done.stderr
    assert not (tmp_path / "tally.json").exists()
