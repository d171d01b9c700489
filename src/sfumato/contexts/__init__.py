"""Contexts: which pairs of symbols must look alike, and how much (the privacy matrix E)."""

from sfumato.contexts.cone import Cone, LongIntegers
from sfumato.contexts.context import MAX_MATRIX_SIZE, Context
from sfumato.contexts.describe import Against, PromiseRow, describe
from sfumato.contexts.exact import ExactMatrix
from sfumato.contexts.grouped import Blocks, GroupedContext, HighLow, Tiers, Uniform, ranks_within
from sfumato.contexts.matrix import PrivacyMatrix
from sfumato.contexts.metric import Metric
from sfumato.contexts.parts import finest_groups, parts_inside
from sfumato.contexts.records import CONTEXT_KINDS, MAX_NESTING, context_of_record
from sfumato.contexts.sums import ContextSum
from sfumato.contexts.unions import ContextUnion, union

__all__ = [
    "CONTEXT_KINDS",
    "MAX_MATRIX_SIZE",
    "MAX_NESTING",
    "Against",
    "Blocks",
    "Cone",
    "Context",
    "ContextSum",
    "ContextUnion",
    "ExactMatrix",
    "GroupedContext",
    "HighLow",
    "LongIntegers",
    "Metric",
    "PrivacyMatrix",
    "PromiseRow",
    "Tiers",
    "Uniform",
    "context_of_record",
    "describe",
    "finest_groups",
    "parts_inside",
    "ranks_within",
    "union",
]
