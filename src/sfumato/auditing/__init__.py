"""Audit any randomizer: test samples of its reports against the promise made for it."""

from sfumato.auditing.audit import audit
from sfumato.auditing.command import LineProcess, command_randomizer
from sfumato.auditing.sample_plan import SamplePlan
from sfumato.auditing.verdict import Audit, PairAudit

__all__ = ["Audit", "LineProcess", "PairAudit", "SamplePlan", "audit", "command_randomizer"]
