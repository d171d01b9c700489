"""Estimate a distribution from a tally, and quantify the uncertainty."""

from sfumato.estimation import decoders
from sfumato.estimation.decoders.histograms import draw_tally
from sfumato.estimation.estimate import Estimate, estimate
from sfumato.estimation.uncertainty.comparisons import Difference
from sfumato.estimation.uncertainty.fit import FitResult, FitWarning, check_fit
from sfumato.estimation.uncertainty.manipulation import (
    Manipulation,
    ManipulationBounds,
    check_fake_count,
)

__all__ = [
    "Difference",
    "Estimate",
    "FitResult",
    "FitWarning",
    "Manipulation",
    "ManipulationBounds",
    "check_fake_count",
    "check_fit",
    "decoders",
    "draw_tally",
    "estimate",
]
