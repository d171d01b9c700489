"""Run a function in a forked child of this process."""

import os
import warnings


def run_in_child(function):
    """Return the bytes that `function` returns in a forked child, which then exits."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # Newer Pythons warn about forking with threads; the child only draws, writes and exits.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            os.write(writing, function())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        output = pipe.read()
    os.waitpid(child, 0)
    return output
