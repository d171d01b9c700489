"""Read mechanisms from their records."""

from collections.abc import Callable, Mapping

from sfumato.contexts import Context
from sfumato.errors import InvalidSurvey
from sfumato.foundation.canonical import Fields, record_kind, require_canonical
from sfumato.mechanisms.blocks import BlockResponse, PlainResponse
from sfumato.mechanisms.groups import GroupResponse, HighLowResponse
from sfumato.mechanisms.mechanism import Mechanism
from sfumato.mechanisms.product import ProductResponse
from sfumato.mechanisms.table import BinaryResponse, TableResponse
from sfumato.mechanisms.union import UnionResponse

__all__ = ["mechanism_from_record"]


def mechanism_from_record(record: object, context: Context) -> Mechanism:
    """Return the mechanism stored in a record, for the given context.

    Its integers may differ from those that this version of Sfumato would choose.
    """
    kind = record_kind(record, "promise.mechanism")
    if kind not in _READERS or not isinstance(record, Mapping):
        raise InvalidSurvey(f"mechanism.kind {kind!r} is not supported by this version.")
    mechanism = _READERS[kind](record, context)
    return require_canonical(mechanism, record, "mechanism")


def _read_union(record: Fields, context: Context) -> Mechanism:
    return UnionResponse.from_record(record, context, mechanism_from_record)


_READERS: Mapping[str, Callable[[Fields, Context], Mechanism]] = {
    BinaryResponse.kind: BinaryResponse.from_record,
    BlockResponse.kind: BlockResponse.from_record,
    GroupResponse.kind: GroupResponse.from_record,
    HighLowResponse.kind: HighLowResponse.from_record,
    PlainResponse.kind: PlainResponse.from_record,
    ProductResponse.kind: ProductResponse.from_record,
    TableResponse.kind: TableResponse.from_record,
    UnionResponse.kind: _read_union,
}
