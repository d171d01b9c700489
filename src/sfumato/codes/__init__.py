"""Codes: families of randomised responses with fast encoding and decoding."""

from sfumato.codes.best import BestCode
from sfumato.codes.code import MAX_OUTPUTS, Code, CodeFamily
from sfumato.codes.cyclic import CyclicCode, CyclicDesign
from sfumato.codes.hadamard import HadamardCode
from sfumato.codes.records import RecordedCodes, code_of_record
from sfumato.codes.singleton import ClearCode, RandomizedCode

__all__ = [
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
    "code_of_record",
]
