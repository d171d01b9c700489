"""The audit: what samples of any randomiser say against the promise that is made for it."""

from sfumato.auditing.audit import audit
from sfumato.auditing.command import command_randomizer
from sfumato.auditing.sample_plan import Allotment
from sfumato.auditing.verdict import Audit, PairAudit

__all__ = ["Allotment", "Audit", "PairAudit", "audit", "command_randomizer"]
