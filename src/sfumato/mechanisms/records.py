"""Read mechanisms from their records."""

from collections.abc import Mapping

from sfumato.contexts import Context
from sfumato.errors import InvalidSurvey
from sfumato.foundation.canonical import Fields, record_kind, require_canonical
from sfumato.mechanisms.blocks import BlockResponse, PlainResponse
from sfumato.mechanisms.groups import GroupResponse, HighLowResponse
from sfumato.mechanisms.mechanism import Mechanism
from sfumato.mechanisms.product import ProductResponse
from sfumato.mechanisms.table import BinaryResponse, TableResponse
from sfumato.mechanisms.union import UnionResponse

__all__ = ["mechanism_of_record"]


def mechanism_of_record(record: object, context: Context) -> Mechanism:
    """Read any mechanism, with the integers of its record, for a context.

    Reading never chooses again: the integers may differ from those that this version would choose.
    """
    kind = record_kind(record, "promise.mechanism")
    if not isinstance(record, Mapping):
        raise InvalidSurvey(f"mechanism.kind {kind!r} is not known to this version.")
    return require_canonical(_read(kind, record, context), record, "mechanism")


def _read(kind: str, record: Fields, context: Context) -> Mechanism:
    if kind == UnionResponse.kind:
        return UnionResponse.of_record(record, context, mechanism_of_record)
    for cls in (
        BinaryResponse,
        TableResponse,
        PlainResponse,
        BlockResponse,
        HighLowResponse,
        GroupResponse,
        ProductResponse,
    ):
        if kind == cls.kind:
            return cls.of_record(record, context)
    raise InvalidSurvey(f"mechanism.kind {kind!r} is not known to this version.")
