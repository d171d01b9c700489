"""Codes: families of randomised responses with fast encoding and decoding."""

from sfumato.codes.clear import ClearCode
from sfumato.codes.code import Code, CodeFamily
from sfumato.codes.hadamard import HadamardCode
from sfumato.codes.randomized import RandomizedCode

__all__ = ["ClearCode", "Code", "CodeFamily", "HadamardCode", "RandomizedCode"]
