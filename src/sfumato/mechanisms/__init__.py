"""Mechanisms: channels that randomly map symbols to reports and satisfy a privacy context."""

from sfumato.mechanisms.blocks import BlockResponse, PlainResponse
from sfumato.mechanisms.composition import ComposedResponse, ProcessedResponse, compose
from sfumato.mechanisms.groups import GroupResponse, HighLowResponse
from sfumato.mechanisms.holder import (
    MechanismHolder,
    context_of,
    mechanism_of,
    require_mechanism,
)
from sfumato.mechanisms.mechanism import CompactRow, Mechanism
from sfumato.mechanisms.product import ProductResponse
from sfumato.mechanisms.records import mechanism_from_record
from sfumato.mechanisms.row_class import RowClass
from sfumato.mechanisms.scores import Reach, ScoreMoments, Scores, require_people
from sfumato.mechanisms.table import BinaryResponse, TableResponse
from sfumato.mechanisms.union import UnionResponse, contains_table

__all__ = [
    "BinaryResponse",
    "BlockResponse",
    "CompactRow",
    "ComposedResponse",
    "GroupResponse",
    "HighLowResponse",
    "Mechanism",
    "MechanismHolder",
    "PlainResponse",
    "ProcessedResponse",
    "ProductResponse",
    "Reach",
    "RowClass",
    "ScoreMoments",
    "Scores",
    "TableResponse",
    "UnionResponse",
    "compose",
    "contains_table",
    "context_of",
    "mechanism_from_record",
    "mechanism_of",
    "require_mechanism",
    "require_people",
]
