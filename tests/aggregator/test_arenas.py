"""Threads of an aggregator share heaps, where the C library has such a setting."""

import ctypes
import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, re, sys, threading
from sfumato.aggregator import limit_arenas

if sys.argv[1] == "limited":
    limit_arenas()
library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
ready = threading.Barrier(9)

def allocate():
    library.malloc(1000)
    ready.wait()
    ready.wait()

threads = [threading.Thread(target=allocate) for _ in range(8)]
for thread in threads:
    thread.start()
ready.wait()
library.malloc_stats()
ready.wait()
"""


@pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "malloc_stats"), reason="needs the GNU C library"
)
def test_threads_share_heaps():
    counts = {}
    for name in ("limited", "default"):
        result = subprocess.run(
            [sys.executable, "-c", PROGRAM, name], capture_output=True, text=True, check=True
        )
        counts[name] = result.stderr.count("Arena ")
    assert counts["limited"] == 2
    assert counts["default"] > 2
