"""`sfumato serve` with a planted fault, whose name comes first: `faulty_serve.py error serve …`."""

import os
import sys
from dataclasses import replace
from itertools import count

import numpy as np

from sfumato.aggregator.store import Outcome, Store
from sfumato.cli.main import run

_commit = Store.commit
_read_omissions = Store.read_omissions
_numbers = count(1)


def _lose_a_batch(self, group):
    """Acknowledge a batch that is not counted."""
    if next(_numbers) % 2:
        return _commit(self, group)
    return [Outcome.COUNTED, *_commit(self, group[1:])]


def _count_another_report(self, group):
    """Count the wrong reports, but the right number of them."""
    # Every survey has the reports 0 and 1.
    others = [replace(batch, reports=np.uint32(batch.reports == 0)) for batch in group]
    return _commit(self, others)


def _fail(self, fingerprint):
    """Fail now and then with an error that nobody expects."""
    if next(_numbers) % 2 == 0:
        raise RuntimeError
    return _read_omissions(self, fingerprint)


def _die(self, group):
    """End the process without a word."""
    if next(_numbers) == 2:
        os._exit(1)
    return _commit(self, group)


if __name__ == "__main__":
    fault = sys.argv.pop(1)
    if fault == "error":
        Store.read_omissions = _fail
    else:
        Store.commit = {
            "lost": _lose_a_batch,
            "another": _count_another_report,
            "death": _die,
        }[fault]
    run()
