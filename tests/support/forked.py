"""A child of this process, asked for some bytes."""

import os
import warnings


def told_by_a_child(tell):
    """What ``tell`` returns in a forked child, which then ends."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # Newer Pythons warn of forking beside threads; the child only draws, writes and ends.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            os.write(writing, tell())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    return told
