"""Surveys that promise nothing: reports are the values themselves, so counts compare exactly."""

import numpy as np

import sfumato as sf
from sfumato.batches import Batch


def unrandomized_survey(name, outputs, **options):
    """Return a survey whose reports are the values themselves."""
    return sf.Survey(name, sf.Uniform(sf.IntegerDomain(outputs), "inf"), **options)


def batch_id(number):
    return number.to_bytes(16, "big")


def batch_of(survey, number, *reports):
    """Return a batch of a survey; its identifier encodes `number`."""
    return Batch(batch_id(number), survey.fingerprint, np.array(reports, dtype=np.uint32))


def counts_of(store, survey):
    """Return how often a store has counted each report of a survey, without the zeros."""
    counts = store.tally(survey.fingerprint, survey.mechanism.outputs).counts
    return {int(report): int(counts[report]) for report in counts.nonzero()[0]}
