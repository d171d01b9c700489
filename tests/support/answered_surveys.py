"""Surveys with answers, the same every time, and a label that would like to be more than text."""

from types import SimpleNamespace

from sfumato.randomness import words_from
from sfumato.survey import ReportBatch

HOSTILE = "</script><script>alert(1)</script>\"'<img src=x onerror=alert(2)>&amp;"


def answered(survey, symbols):
    """A survey with its certificate and the estimate from people with these symbols, the same every time."""
    mechanism = survey.mechanism
    words = words_from(bytes(32), 0, len(symbols))[:, : mechanism.words]
    tally = survey.tally(ReportBatch(mechanism.reports_from(symbols, words), survey.fingerprint))
    return SimpleNamespace(
        survey=survey, estimate=survey.estimate(tally), certificate=survey.certify()
    )
