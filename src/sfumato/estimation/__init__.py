"""Estimate a distribution from a tally, and quantify the uncertainty."""

from sfumato.estimation import decoders
from sfumato.estimation.decoders.histograms import draw_tally
from sfumato.estimation.estimate import Estimate, estimate
from sfumato.estimation.estimate_table import EstimateRow
from sfumato.estimation.uncertainty.comparisons import Difference, TopSymbols
from sfumato.estimation.uncertainty.fit import FitResult, FitWarning, check_fit
from sfumato.estimation.uncertainty.manipulation import (
    Manipulation,
    ManipulationBounds,
    check_fake_count,
)
from sfumato.estimation.uncertainty.shares import Shares, Total

__all__ = [
    "Difference",
    "Estimate",
    "EstimateRow",
    "FitResult",
    "FitWarning",
    "Manipulation",
    "ManipulationBounds",
    "Shares",
    "TopSymbols",
    "Total",
    "check_fake_count",
    "check_fit",
    "decoders",
    "draw_tally",
    "estimate",
]
