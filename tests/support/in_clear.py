"""Surveys that promise nothing: what arrives is exactly what was sent, so that counts can be compared exactly."""

import numpy as np

import sfumato as sf
from sfumato.batches import Batch


def survey_in_clear(name, outputs):
    """A survey whose reports are the values themselves."""
    return sf.Survey(name, sf.Uniform(sf.IntegerDomain(outputs), "inf"))


def id_of_number(number):
    return number.to_bytes(16, "big")


def batch_of(survey, number, *reports):
    """A batch of a survey, under the identifier that a number stands for."""
    return Batch(id_of_number(number), survey.fingerprint, np.array(reports, dtype=np.uint32))


def counts_of(store, survey):
    """What a store has counted of a survey: reports and how often, without the zeros."""
    counts = store.tally(survey.fingerprint, survey.mechanism.outputs).counts
    return {int(report): int(counts[report]) for report in counts.nonzero()[0]}
