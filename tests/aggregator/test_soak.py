"""A few seconds of `benchmarks/soak.py`, and planted faults that it must find."""

import os
import re
import sys
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from support import faulty_serve
from support.soak import Growth, ProcessSample, SoakPlan, run_soak


def short_plan(folder, seconds, **options):
    """A plan in which everything happens within seconds."""
    return SoakPlan(
        seconds=seconds,
        folder=str(folder),
        interval=seconds / 2,
        reports_per_second=60,
        pause=0.04,
        change_seconds=0.4,
        **options,
    )


def test_a_short_soak_passes(tmp_path, capsys):
    assert run_soak(short_plan(tmp_path, 5, workers=2)) == []
    output = capsys.readouterr().out
    # There are two checks of the counts, or one where the machine is busy.
    assert output.count(": no fault\n") == output.count(" 0 5xx,") >= 1
    assert output.endswith("too short to judge\npassed\n")
    statuses = dict(re.findall(r"(\d{3}) ([\d,]+)[;\n]", output))
    refusals = {"400", "401", "403", "404", "405", "409", "413", "415", "422"}
    assert {"200", "201", "304"} | refusals <= set(statuses)
    assert not any(status.startswith("5") for status in statuses)
    assert list(tmp_path.iterdir()) == []


COUNTS = r"soak-\w+-\d: [\d,]+ reports, but [\d,]+ were acknowledged"
SAME_COUNTS = r"soak-\w+-\d: ([\d,]+) reports, but \1 were acknowledged"
FAULTS = {
    "lost": [f"status of {COUNTS}", f"export of {COUNTS}"],
    "another": [f"export of {SAME_COUNTS}"],
    "error": [r"status: status 500 \(internal-error", "log: .*a request failed with RuntimeError"],
    "death": [
        "upload: the server closed the connection",
        "the server has ended",
        "the server ended with status 1 ",
    ],
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_soak_finds_a_planted_fault(fault, tmp_path, capsys):
    command = (sys.executable, str(Path(faulty_serve.__file__)), fault)
    faults = run_soak(short_plan(tmp_path, 1, command=command))
    for pattern in FAULTS[fault]:
        assert any(re.match(pattern, line) for line in faults), (pattern, faults)
    assert capsys.readouterr().out.endswith("failed\n")


def samples(minutes, memory_mib, open_files):
    """Samples every 5 seconds. The memory and the files are functions of the minutes."""
    return [
        ProcessSample(minute / 60, memory_mib(minute), open_files(minute), (1,))
        for minute in np.arange(0, minutes, 1 / 12)
    ]


@pytest.mark.parametrize("minutes", [6, 60])
def test_flat_memory_and_files_pass(minutes):
    """A start that needs more memory, caches that come and go, and silent clients."""
    growth = Growth.from_samples(
        samples(
            minutes,
            lambda minute: 400 - 100 * 0.5 ** (20 * minute / minutes) + 3 * np.sin(7 * minute),
            lambda minute: 60 + 5 * np.sin(3 * minute),
        )
    )
    assert growth.is_judged
    assert growth.problems == []


def test_a_leak_of_memory_fails():
    """21 MiB per hour are more than 5 % of 400 MiB, and in six minutes, 2 % are too much."""
    hour = Growth.from_samples(samples(60, lambda minute: 400 + 21.5 * minute / 60, lambda _: 60))
    assert hour.memory_mib_per_hour == pytest.approx(21.5)
    assert [problem[:15] for problem in hour.problems] == ["the memory grew"]
    slower = Growth.from_samples(samples(60, lambda minute: 400 + 19 * minute / 60, lambda _: 60))
    assert slower.problems == []
    short = Growth.from_samples(samples(6, lambda minute: 400 + 3 * minute, lambda _: 60))
    assert [problem[:15] for problem in short.problems] == ["the memory grew"]


def test_open_files_that_grow_fail():
    growth = Growth.from_samples(samples(60, lambda _: 400, lambda minute: 60 + minute // 1.5))
    assert [problem[:24] for problem in growth.problems] == ["the number of open files"]


def test_a_short_time_is_not_judged():
    growth = Growth.from_samples(samples(3, lambda minute: 100 * minute, lambda minute: minute))
    assert not growth.is_judged
    assert growth.problems == []


def test_samples_show_memory_and_open_files(tmp_path):
    """The judge sees what a process really uses."""
    before = ProcessSample.take(os.getpid(), 0)
    with ExitStack() as stack:
        for i in range(50):
            stack.enter_context((tmp_path / str(i)).open("w"))
        block = np.ones(2**26, dtype=np.uint8)
        after = ProcessSample.take(os.getpid(), 0)
    assert after.open_files >= before.open_files + 50
    assert after.memory_mib > before.memory_mib + 60
    assert after.pids[0] == os.getpid()
    assert block.size == 2**26
