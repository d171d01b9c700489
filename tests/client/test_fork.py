"""After a fork nothing random is shared: reports, secrets and identifiers all differ."""

import os

import numpy as np
import pytest

import sfumato as sf
from sfumato.batches import fresh_id
from sfumato.client.memory import fresh_secret
from support.child_process import run_in_child

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

RUNS = 30
MECHANISM = sf.PlainResponse(sf.Uniform(2**12, 0.1))
PEOPLE = np.zeros(
    16, dtype=np.int64
)  # 16 reports of at least 12 nearly even bits: equal by chance in 1 of 2^190 pairs


def _drawn():
    """What a process makes of randomness: 64 bytes of reports, a secret, an identifier."""
    return MECHANISM.privatize(PEOPLE).astype("<u4").tobytes(), fresh_secret(), fresh_id()


def _of_a_child():
    said = run_in_child(lambda: b"".join(_drawn()))
    assert len(said) == 64 + 32 + 16
    return said[:64], said[64:96], said[96:]


def test_forked_children_draw_distinct_words():
    drawn = [_drawn()]  # used before the first fork, so that there is something to share
    for _ in range(RUNS):
        drawn += [_of_a_child(), _drawn()]
    for kind in zip(*drawn, strict=True):
        assert len(kind) == len(set(kind)) == 1 + 2 * RUNS


def test_a_source_that_reuses_its_key_is_detected():
    """The twin: words from one key, at the same place on both sides of a fork, are equal."""
    from sfumato.simulation import SeededWords

    source = SeededWords(1)
    parent = source.take(4).tobytes()
    source = SeededWords(1)
    assert run_in_child(lambda: source.take(4).tobytes()) == parent
