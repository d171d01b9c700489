"""Codes: families of randomised responses with fast encoding and decoding."""

from sfumato.codes.best import BestCode
from sfumato.codes.clear import ClearCode
from sfumato.codes.code import Code, CodeFamily
from sfumato.codes.cyclic import CyclicCode, CyclicDesign
from sfumato.codes.hadamard import HadamardCode
from sfumato.codes.randomized import RandomizedCode

__all__ = [
    "BestCode",
    "ClearCode",
    "Code",
    "CodeFamily",
    "CyclicCode",
    "CyclicDesign",
    "HadamardCode",
    "RandomizedCode",
]
