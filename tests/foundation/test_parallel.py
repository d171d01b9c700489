"""Threads that share work. Most tests of processes are in tests/engines/test_local.py."""

import signal
from concurrent.futures import ProcessPoolExecutor

import pytest

from sfumato.foundation.parallel import call_in_threads, parallel_map


@pytest.mark.parametrize("workers", [1, 2, 7])
@pytest.mark.parametrize("count", [0, 1, 20])
def test_each_index_is_used_once(workers, count):
    indices = []
    call_in_threads(indices.append, count, workers=workers)
    assert sorted(indices) == list(range(count))


@pytest.mark.parametrize("workers", [1, 2])
def test_error_reaches_the_caller_and_stops_the_threads(workers):
    indices = []

    def fail_at_three(index):
        indices.append(index)
        if index == 3:
            raise ValueError("three")

    with pytest.raises(ValueError, match="three"):
        call_in_threads(fail_at_three, 1_000_000, workers=workers)
    assert len(indices) < 1_000_000


def _double(item, on_progress):
    on_progress(1)
    return 2 * item


def test_interrupts_wait_whenever_a_worker_may_start(monkeypatch):
    masks = []
    submit = ProcessPoolExecutor.submit

    def record_mask(pool, *arguments):
        masks.append(signal.pthread_sigmask(signal.SIG_BLOCK, []))
        return submit(pool, *arguments)

    monkeypatch.setattr(ProcessPoolExecutor, "submit", record_mask)
    assert list(parallel_map(_double, range(8), workers=2)) == list(range(0, 16, 2))
    assert len(masks) == 8
    assert all(signal.SIGINT in mask for mask in masks)
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
