"""kill -9 at any moment: acknowledged reports count exactly once."""

import signal
import sys
from pathlib import Path

import pytest

from support import forgetful_serve
from support.crash_rig import crash


def test_killed_aggregator_counts_reports_once(store_url):
    record = crash(store_url, kills=3, seed=1)
    assert record["acknowledged"] >= 20  # five before each kill, and five in the end
    assert record["refused"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3])
def test_aggregator_killed_many_times_counts_reports_once(store_url, capsys, seed):
    record = crash(store_url, kills=25, seed=seed)
    with capsys.disabled():
        print(f"\n{record}")
    assert record["acknowledged"] >= 130
    assert record["given up"]


def test_two_aggregators_killed_in_turn_count_reports_once(store_url):
    record = crash(store_url, kills=2, seed=5, servers=2)
    assert record["acknowledged"] >= 15


@pytest.mark.slow
def test_two_aggregators_killed_many_times_count_reports_once(store_url, capsys):
    record = crash(store_url, kills=50, seed=6, servers=2)
    with capsys.disabled():
        print(f"\n{record}")
    assert record["acknowledged"] >= 255
    assert record["given up"]


@pytest.mark.slow
def test_power_cut_to_database_and_aggregator_counts_reports_once(postgres, capsys):
    url = postgres.database()

    def cut_the_power(kill):
        postgres.stop(signal.SIGQUIT)
        postgres.start()

    record = crash(url, kills=20, seed=4, between=cut_the_power)
    postgres.release(url)
    with capsys.disabled():
        print(f"\n{record}")


@pytest.mark.parametrize("servers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_planted_double_count_is_detected(tmp_path, servers):
    url = f"sqlite:///{tmp_path / 'reports.db'}"
    command = (sys.executable, str(Path(forgetful_serve.__file__)))
    with pytest.raises(AssertionError, match="counted again"):
        crash(url, kills=1, seed=1, command=command, at_least=150, servers=servers)
