"""Check privacy promises exactly, and compute what they imply for an observer."""

from sfumato.mechanisms import compose
from sfumato.promises.certificate import Certificate, certify
from sfumato.promises.exam import ExamReport, check_mechanism
from sfumato.promises.loss import PrivacyLoss, privacy_loss
from sfumato.promises.observer import ErrorRegion, PosteriorOdds, error_region, posterior_odds
from sfumato.promises.optimality import binary_optimum, factor

__all__ = [
    "Certificate",
    "ErrorRegion",
    "ExamReport",
    "PosteriorOdds",
    "PrivacyLoss",
    "binary_optimum",
    "certify",
    "check_mechanism",
    "compose",
    "error_region",
    "factor",
    "posterior_odds",
    "privacy_loss",
]
