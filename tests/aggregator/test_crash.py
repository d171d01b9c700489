"""kill -9 at any moment: what was acknowledged counts once, whatever else happened."""

import signal
import sys
from pathlib import Path

import forgetful_serve
import pytest
from crash_rig import crash


def test_an_aggregator_that_is_killed_loses_and_doubles_nothing(store_url, tmp_path):
    record = crash(store_url, tmp_path, kills=3, seed=1)
    assert record.acknowledged >= 20  # five before each kill, and five in the end
    assert record.retried


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3])
def test_an_aggregator_that_is_killed_many_times_loses_and_doubles_nothing(store_url, tmp_path, capsys, seed):
    record = crash(store_url, tmp_path, kills=25, seed=seed)
    with capsys.disabled():
        print(f"\n{record}")
    assert record.acknowledged >= 130


@pytest.mark.slow
def test_a_server_and_its_aggregator_that_die_together_lose_and_double_nothing(postgres, tmp_path, capsys):
    url = postgres.database()

    def cut_the_power(kill):
        postgres.stop(signal.SIGQUIT)
        postgres.start()

    record = crash(url, tmp_path, kills=20, seed=4, between=cut_the_power)
    postgres.give_back(url)
    with capsys.disabled():
        print(f"\n{record}")


def test_a_planted_double_count_is_found(tmp_path):
    command = (sys.executable, str(Path(forgetful_serve.__file__)))
    with pytest.raises(AssertionError, match="doubtful"):
        crash(f"sqlite:///{tmp_path / 'reports.db'}", tmp_path, kills=1, seed=1, command=command, at_least=150)
