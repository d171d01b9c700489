"""Contexts: which pairs of symbols must look alike, and how much (the privacy matrix E)."""

from collections.abc import Mapping

from sfumato.contexts.composite import (
    ContextSum,
    ContextUnion,
    finest_groups,
    parts_by_block,
    union,
)
from sfumato.contexts.cone import Cone, LongIntegers
from sfumato.contexts.context import MAX_MATRIX_SIZE, Context
from sfumato.contexts.describe import ComparisonScope, PromiseRow, describe
from sfumato.contexts.exact import ExactMatrix
from sfumato.contexts.grouped import (
    Blocks,
    GroupedContext,
    HighLow,
    Tiers,
    Uniform,
    ranks_within,
    symbols_by_group,
)
from sfumato.contexts.matrix import PrivacyMatrix
from sfumato.contexts.metric import Metric
from sfumato.errors import InvalidSurvey
from sfumato.foundation.canonical import record_kind, require_canonical

__all__ = [
    "CONTEXT_KINDS",
    "MAX_MATRIX_SIZE",
    "MAX_NESTING",
    "Blocks",
    "ComparisonScope",
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
    "context_from_record",
    "describe",
    "finest_groups",
    "parts_by_block",
    "ranks_within",
    "symbols_by_group",
    "union",
]

MAX_NESTING = 8
"""How deep unions of contexts may be nested in a record."""

_CLASSES: tuple[type[Context], ...] = (
    Uniform,
    HighLow,
    Blocks,
    Tiers,
    Metric,
    PrivacyMatrix,
    ContextUnion,
)

CONTEXT_KINDS: Mapping[str, type[Context]] = {cls.kind: cls for cls in _CLASSES}
"""The classes of contexts that can be read from a record, by kind."""


def context_from_record(record: object, name: str = "promise.context") -> Context:
    """Read any context, with its domain, from its record; error messages call it ``name``."""
    kind = record_kind(record, name)
    if not isinstance(record, Mapping) or kind not in CONTEXT_KINDS:
        raise InvalidSurvey(f"context.kind {kind!r} is not known to this version.")
    _require_shallow(record, 0)
    context = CONTEXT_KINDS[kind].from_record(record)
    return require_canonical(context, record, "context")


def _require_shallow(record: object, nesting: int) -> None:
    """Reject unions that are nested too deeply, before anything is built."""
    parts = record.get("parts") if isinstance(record, Mapping) else None
    if not isinstance(parts, list):
        return
    if nesting == MAX_NESTING:
        raise InvalidSurvey(f"unions of contexts must be nested at most {MAX_NESTING} deep.")
    for part in parts:
        _require_shallow(part, nesting + 1)
