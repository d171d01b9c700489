"""Contexts: which pairs of symbols must look alike, and how much (the privacy matrix E)."""

from sfumato.contexts.blocks import Blocks
from sfumato.contexts.context import Context
from sfumato.contexts.groups import Groups
from sfumato.contexts.high_low import HighLow
from sfumato.contexts.matrix import PrivacyMatrix
from sfumato.contexts.metric import Metric
from sfumato.contexts.sums import ContextSum
from sfumato.contexts.tiers import Tiers
from sfumato.contexts.uniform import Uniform
from sfumato.contexts.union import ContextUnion

__all__ = [
    "Blocks",
    "Context",
    "ContextSum",
    "ContextUnion",
    "Groups",
    "HighLow",
    "Metric",
    "PrivacyMatrix",
    "Tiers",
    "Uniform",
]
