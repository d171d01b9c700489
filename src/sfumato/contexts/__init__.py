"""Contexts: how hard it must be to tell each pair of symbols apart (the privacy matrix E)."""

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
"""The maximum nesting depth of unions in a record."""

_CONTEXT_CLASSES: tuple[type[Context], ...] = (
    Uniform,
    HighLow,
    Blocks,
    Tiers,
    Metric,
    PrivacyMatrix,
    ContextUnion,
)

CONTEXT_KINDS: Mapping[str, type[Context]] = {cls.kind: cls for cls in _CONTEXT_CLASSES}
"""The context classes that can be parsed from a record, by kind."""


def context_from_record(record: object, name: str = "promise.context") -> Context:
    """Return the context that a record of any kind describes.

    Error messages refer to the record as ``name``.
    """
    kind = record_kind(record, name)
    if not isinstance(record, Mapping) or kind not in CONTEXT_KINDS:
        raise InvalidSurvey(f"context.kind {kind!r} is not supported by this version.")
    _require_shallow_nesting(record, 0)
    context = CONTEXT_KINDS[kind].from_record(record)
    return require_canonical(context, record, "context")


def _require_shallow_nesting(record: object, depth: int) -> None:
    """Reject a record with unions that are nested too deeply, before any context is built."""
    parts = record.get("parts") if isinstance(record, Mapping) else None
    if not isinstance(parts, list):
        return
    if depth == MAX_NESTING:
        raise InvalidSurvey(f"unions of contexts may be nested at most {MAX_NESTING} levels deep.")
    for part in parts:
        _require_shallow_nesting(part, depth + 1)
