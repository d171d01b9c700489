"""Mechanisms: channels that keep a context's promise (symbol → report)."""

from sfumato.mechanisms.binary import BinaryResponse
from sfumato.mechanisms.blocks import BlockResponse
from sfumato.mechanisms.high_low import HighLowResponse
from sfumato.mechanisms.mechanism import Mechanism
from sfumato.mechanisms.plain import PlainResponse

__all__ = ["BinaryResponse", "BlockResponse", "HighLowResponse", "Mechanism", "PlainResponse"]
