"""Estimates from tallies drawn at random, for tests of what is read from an estimate."""

import numpy as np
import pytest

import sfumato as sf
from support.mechanism_examples import REPRESENTATIVES

__all__ = ["MECHANISMS", "every_mechanism", "sample_estimate", "sample_tally"]

MECHANISMS = [mechanism for examples in REPRESENTATIVES.values() for mechanism in examples]

every_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)


def sample_tally(mechanism, p=None, reports=2000, seed=0):
    """Return a tally of reports of people drawn from p, by default from a random distribution."""
    random = np.random.default_rng(seed)
    if p is None:
        p = random.dirichlet(np.ones(mechanism.inputs))
    q = np.maximum(mechanism.forward(p), 0)
    return sf.Tally(random.multinomial(reports, q / q.sum()), mechanism.fingerprint)


def sample_estimate(mechanism, **keywords):
    """Return an estimate by the quickest decoder: intervals do not depend on it."""
    return sf.estimate(mechanism, sample_tally(mechanism, **keywords), decoder="unbiased")
