"""Results as plain data: the same words in files, on the command line and over the wire."""

import math
from typing import Any

from sfumato.domains import Label
from sfumato.estimation import Estimate
from sfumato.survey.survey import Survey

__all__ = ["COLUMNS", "FAKES", "results_of", "rows_of"]

FAKES = (1, 10, 100)
"""Numbers of fake people that results speak of."""

COLUMNS = ("label", "frequency", "unbiased", "low", "high")


def rows_of(found: Estimate, level: float = 0.95) -> list[tuple[Label, float, float, float, float]]:
    """For each symbol the ``COLUMNS``: its label, the decoded frequency, the unbiased one, and its interval."""
    low, high = found.interval(level)
    columns = (found.frequencies, found.unbiased, low, high)
    return list(zip(found.labels, *(column.tolist() for column in columns), strict=True))


def results_of(survey: Survey, found: Estimate, level: float = 0.95) -> dict[str, Any]:
    """An estimate of a survey for machines.

    ``repeated`` says that one person may have sent several of the reports: intervals take them for different people's.
    ``manipulation`` says how far 1, 10 and 100 fake people among them could have moved it.
    """
    fit = found.fit_result
    return {
        "survey": survey.fingerprint,
        "reports": found.reports,
        "decoder": found.decoder,
        "details": {name: _number_or_null(value) for name, value in found.details.items()},
        "fit": {"p_value": fit.p_value, "verdict": fit.verdict},
        "repeated": survey.description.about["repeat"] != "once",
        "manipulation": [found.manipulation(m).in_json() for m in FAKES if m <= found.reports],
        "symbols": [dict(zip(COLUMNS, row, strict=True)) for row in rows_of(found, level)],
    }


def _number_or_null(value: object) -> object:
    """JSON has no infinity: the likelihood of reports that nobody sends is one."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
