"""Estimation: from a tally to a distribution with uncertainty."""

from sfumato.estimation import decoders
from sfumato.estimation.estimate import Estimate, estimate
from sfumato.estimation.uncertainty.fit import FitResult, FitWarning

__all__ = ["Estimate", "FitResult", "FitWarning", "decoders", "estimate"]
