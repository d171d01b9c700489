"""Results of a survey that are the same in every run, and a label that tries to inject HTML."""

from types import SimpleNamespace

from sfumato.randomness import words_from
from sfumato.survey import ReportBatch

HOSTILE = "</script><script>alert(1)</script>\"'<img src=x onerror=alert(2)>&amp;"


def simulate_results(survey, symbols):
    """Return a survey, its certificate and the estimate from people with these symbols."""
    mechanism = survey.mechanism
    words = words_from(bytes(32), 0, len(symbols))[:, : mechanism.words]
    reports = mechanism.reports_from(symbols, words)
    tally = survey.tally(ReportBatch(reports, survey.fingerprint))
    return SimpleNamespace(
        survey=survey,
        estimate=survey.estimate(tally),
        certificate=survey.certify(),
    )
