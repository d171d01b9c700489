"""Waiting for what another thread or process does."""

import time
from pathlib import Path


def wait_until(condition, seconds=30):
    """Wait until a condition holds. Fail if it takes too long."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_running(process):
    """Whether a process exists and is no zombie: its parent may have gone before it."""
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"
