"""Mechanisms: channels that keep a context's promise (symbol → report)."""

from sfumato.mechanisms.binary import BinaryResponse
from sfumato.mechanisms.blocks import BlockResponse
from sfumato.mechanisms.composed import ComposedResponse
from sfumato.mechanisms.high_low import HighLowResponse
from sfumato.mechanisms.mechanism import Mechanism
from sfumato.mechanisms.plain import PlainResponse
from sfumato.mechanisms.processed import ProcessedResponse
from sfumato.mechanisms.table import TableResponse

__all__ = [
    "BinaryResponse",
    "BlockResponse",
    "ComposedResponse",
    "HighLowResponse",
    "Mechanism",
    "PlainResponse",
    "ProcessedResponse",
    "TableResponse",
]
