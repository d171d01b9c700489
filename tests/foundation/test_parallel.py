"""Threads that share work. Processes are tested in tests/engines/test_local.py."""

import pytest

from sfumato.foundation.parallel import call_in_threads


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
