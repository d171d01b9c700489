"""Read any context from its record."""

from collections.abc import Mapping

from sfumato.contexts.context import Context
from sfumato.contexts.grouped import Blocks, HighLow, Tiers, Uniform
from sfumato.contexts.matrix import PrivacyMatrix
from sfumato.contexts.metric import Metric
from sfumato.contexts.unions import ContextUnion
from sfumato.errors import InvalidSurvey
from sfumato.foundation.records import record_kind, require_canonical

__all__ = ["CONTEXT_KINDS", "MAX_NESTING", "context_of_record"]

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
"""The classes of contexts that have a record, by kind."""


def context_of_record(record: object, name: str = "promise.context") -> Context:
    """Read the record of a context, with its domain; ``name`` says in messages what it is."""
    kind = record_kind(record, name)
    if not isinstance(record, Mapping) or kind not in CONTEXT_KINDS:
        raise InvalidSurvey(f"context.kind {kind!r} is not known to this version.")
    _require_shallow(record, 0)
    context = CONTEXT_KINDS[kind].of_record(record)
    return require_canonical(context, record, "context")


def _require_shallow(record: object, nesting: int) -> None:
    """Reject unions that are nested too deep, before anything is built."""
    parts = record.get("parts") if isinstance(record, Mapping) else None
    if not isinstance(parts, list):
        return
    if nesting == MAX_NESTING:
        raise InvalidSurvey(f"unions of contexts must be nested at most {MAX_NESTING} deep.")
    for part in parts:
        _require_shallow(part, nesting + 1)
