"""Codes: families of randomized responses with fast encoding and decoding."""

from sfumato.codes.best import EXTRA_BITS, BestCode, max_outputs, search_designs
from sfumato.codes.code import MAX_OUTPUTS, Code, CodeFamily
from sfumato.codes.cyclic import CyclicCode, CyclicDesign
from sfumato.codes.hadamard import HadamardCode
from sfumato.codes.records import RecordedCodes, code_from_record
from sfumato.codes.search import best_sizes, ye_barg_risk
from sfumato.codes.singer import SingerDesign, singer_designs, singer_set
from sfumato.codes.singleton import ClearCode, RandomizedCode

__all__ = [
    "EXTRA_BITS",
    "MAX_OUTPUTS",
    "BestCode",
    "ClearCode",
    "Code",
    "CodeFamily",
    "CyclicCode",
    "CyclicDesign",
    "HadamardCode",
    "RandomizedCode",
    "RecordedCodes",
    "SingerDesign",
    "best_sizes",
    "code_from_record",
    "max_outputs",
    "search_designs",
    "singer_designs",
    "singer_set",
    "ye_barg_risk",
]
