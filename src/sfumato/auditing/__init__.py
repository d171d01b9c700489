"""Audit any randomizer: use samples of its reports to test whether it keeps its promise."""

from sfumato.auditing.audit import audit
from sfumato.auditing.command import LineProcess, command_randomizer
from sfumato.auditing.sample_plan import SamplePlan
from sfumato.auditing.sequences import SequenceTest
from sfumato.auditing.verdict import Audit, PairAudit

__all__ = [
    "Audit",
    "LineProcess",
    "PairAudit",
    "SamplePlan",
    "SequenceTest",
    "audit",
    "command_randomizer",
]
