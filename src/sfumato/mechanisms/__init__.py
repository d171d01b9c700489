"""Mechanisms: channels that keep a context's promise (symbol → report)."""

from sfumato.mechanisms.binary import BinaryResponse
from sfumato.mechanisms.blocks import BlockResponse
from sfumato.mechanisms.composed import ComposedResponse
from sfumato.mechanisms.groups import GroupResponse
from sfumato.mechanisms.high_low import HighLowResponse
from sfumato.mechanisms.mechanism import Mechanism
from sfumato.mechanisms.plain import PlainResponse
from sfumato.mechanisms.processed import ProcessedResponse
from sfumato.mechanisms.product import ProductResponse
from sfumato.mechanisms.table import TableResponse
from sfumato.mechanisms.union import UnionResponse

__all__ = [
    "BinaryResponse",
    "BlockResponse",
    "ComposedResponse",
    "GroupResponse",
    "HighLowResponse",
    "Mechanism",
    "PlainResponse",
    "ProcessedResponse",
    "ProductResponse",
    "TableResponse",
    "UnionResponse",
]
