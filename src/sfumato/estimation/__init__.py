"""Estimation: from a tally to a distribution with uncertainty."""

from sfumato.estimation.estimate import Estimate, estimate

__all__ = ["Estimate", "estimate"]
