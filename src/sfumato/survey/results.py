"""Results as plain data: the same names in files, on the command line and over HTTP."""

import math
from typing import Any

from sfumato.domains import Label
from sfumato.estimation import Estimate
from sfumato.survey.survey import Survey

__all__ = ["COLUMNS", "FAKES", "results_of", "rows_of"]

FAKES = (1, 10, 100)
"""Numbers of fake people whose influence results report."""

COLUMNS = ("label", "frequency", "unbiased", "low", "high")


def rows_of(
    estimate: Estimate, level: float = 0.95
) -> list[tuple[Label, float, float, float, float]]:
    """Return the ``COLUMNS`` of each symbol.

    They are its label, the decoded and the unbiased frequency, and the ends of its interval.
    """
    low, high = estimate.interval(level)
    return list(
        zip(
            estimate.labels,
            estimate.frequencies.tolist(),
            estimate.unbiased.tolist(),
            low.tolist(),
            high.tolist(),
            strict=True,
        )
    )


def results_of(survey: Survey, estimate: Estimate, level: float = 0.95) -> dict[str, Any]:
    """Return an estimate of a survey as JSON data.

    ``repeated`` is true if a person may have sent several reports; intervals assume one each.
    ``manipulation`` says how far 1, 10 and 100 fake people could have moved the estimate.
    """
    fit = estimate.fit_result
    fakes = [count for count in FAKES if count <= estimate.reports]
    return {
        "survey": survey.fingerprint,
        "reports": estimate.reports,
        "decoder": estimate.decoder,
        "details": {name: _finite_or_null(value) for name, value in estimate.details.items()},
        "fit": {"p_value": fit.p_value, "verdict": fit.verdict},
        "repeated": survey.description.about["repeat"] != "once",
        "manipulation": [estimate.manipulation(count).in_json() for count in fakes],
        "symbols": [dict(zip(COLUMNS, row, strict=True)) for row in rows_of(estimate, level)],
    }


def _finite_or_null(value: object) -> object:
    """Return ``None`` for a float that JSON cannot write, such as an infinite log-likelihood."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
