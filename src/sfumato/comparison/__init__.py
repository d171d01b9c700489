"""Comparison: a mechanism beside its classical peers, on answers that one already has. NOT PRIVATE."""

from sfumato.comparison.comparison import Comparison, Row, compare
from sfumato.comparison.draws import Draws
from sfumato.comparison.rivals import LocalHashing, Rival, UnaryEncoding

__all__ = ["Comparison", "Draws", "LocalHashing", "Rival", "Row", "UnaryEncoding", "compare"]
