"""After a fork nothing random is shared: reports, secrets and identifiers of parent and children all differ."""

import os
import warnings

import numpy as np
import pytest

import sfumato as sf
from sfumato.batches import fresh_id
from sfumato.client.memory import fresh_secret

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

RUNS = 100
MECHANISM = sf.PlainResponse(sf.Uniform(2**12, 0.1))
PEOPLE = np.zeros(16, dtype=np.int64)  # 16 reports of at least 12 nearly even bits: equal by chance in 1 of 2^190 pairs


def _drawn():
    """What a process makes of randomness: 64 bytes of reports, a secret, an identifier."""
    return MECHANISM.privatize(PEOPLE).astype("<u4").tobytes(), fresh_secret(), fresh_id()


def _of_a_child():
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the child draws, writes and ends
        child = os.fork()
    if child == 0:
        try:
            os.write(writing, b"".join(_drawn()))
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    assert len(said) == 64 + 32 + 16
    return said[:64], said[64:96], said[96:]


def test_a_hundred_children_and_their_parent_draw_nothing_twice():
    drawn = [_drawn()]  # used before the first fork, so that there is something to share
    for _ in range(RUNS):
        drawn += [_of_a_child(), _drawn()]
    for kind in zip(*drawn, strict=True):
        assert len(kind) == len(set(kind)) == 1 + 2 * RUNS


def test_a_source_that_kept_its_key_would_be_found_out():
    """The twin: words from one key, drawn at the same place on both sides of a fork, are the same."""
    from sfumato.simulation import SeededWords

    source = SeededWords(1)
    parent = source.take(4).tobytes()
    source = SeededWords(1)
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            os.write(writing, source.take(4).tobytes())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        assert pipe.read() == parent
    os.waitpid(child, 0)
