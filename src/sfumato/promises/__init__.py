"""Promises: what the software claims, checked exactly."""

from sfumato.promises.certificate import Certificate, certify
from sfumato.promises.exam import ExamReport, check_mechanism

__all__ = ["Certificate", "ExamReport", "certify", "check_mechanism"]
