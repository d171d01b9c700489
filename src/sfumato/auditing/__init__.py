"""Audit any randomizer: test samples of its reports against the promise made for it."""

from sfumato.auditing.audit import audit
from sfumato.auditing.command import command_randomizer, end_process
from sfumato.auditing.sample_plan import SamplePlan
from sfumato.auditing.verdict import Audit, PairAudit

__all__ = ["Audit", "PairAudit", "SamplePlan", "audit", "command_randomizer", "end_process"]
