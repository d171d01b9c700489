"""Instances of every mechanism class there is: what the common exam is run over."""

import inspect
import math
from fractions import Fraction

import sfumato
from sfumato.codes import HadamardCode, RandomizedCode
from sfumato.contexts import Blocks, HighLow, Metric, PrivacyMatrix, Uniform
from sfumato.mechanisms import (
    BinaryResponse,
    BlockResponse,
    ComposedResponse,
    HighLowResponse,
    Mechanism,
    PlainResponse,
    ProcessedResponse,
    TableResponse,
)

inf = math.inf
FAMILIES = (HadamardCode, RandomizedCode)


def _binary():
    pairs = [(1, 1), (0.5, 2), (math.log(2), math.log(4)), (inf, 1), (1, inf), (inf, inf), (0.1, 40), (0.01, 0.01)]
    yield from (BinaryResponse(PrivacyMatrix([[0, a], [b, 0]])) for a, b in pairs)
    yield BinaryResponse(HighLow(["no", "yes"], ["yes"], 1))
    yield BinaryResponse(Metric([[0, 2], [2, 0]], 0.7))


def _plain():
    for family in FAMILIES:
        yield from (PlainResponse(Uniform(k, epsilon), family) for k in (1, 2, 3, 5, 16, 32) for epsilon in (0.5, 3))
    yield PlainResponse(Uniform(["a", "b", "c"], inf))
    yield PlainResponse(Uniform(3, "0.05"))
    yield PlainResponse(Uniform(6, 40), RandomizedCode)


def _blocks():
    for family in FAMILIES:
        yield BlockResponse(Blocks([0, 0, 0, 1, 2, 2, 2, 2], 1), family)
        yield BlockResponse(Blocks([i % 5 for i in range(32)], 0.5), family)
        yield BlockResponse(Blocks([0, 1, 0, 2, 0, 1, 3], 4), family)
    yield BlockResponse(Blocks([0, 1, 2], 1))
    yield BlockResponse(Blocks([0, 0, 1], inf))


def _high_low():
    for family in FAMILIES:
        for k, s in ((3, 1), (5, 2), (8, 8), (4, 0), (20, 7), (32, 15)):
            yield HighLowResponse(HighLow(k, range(0, k, -(-k // s)) if s else [], 1), family)
        yield HighLowResponse(HighLow(6, [1, 4], 4), family)
    yield HighLowResponse(HighLow(4, [0, 3], inf))


def _table():
    E = [[0, 1, inf], [2, 0, 1], [1, 3, 0]]
    Q = [["0.5", "0.3", "0.2"], ["0.3", "0.5", "0.2"], ["0.25", "0.25", "0.5"]]
    yield TableResponse.of(PrivacyMatrix(E), Q)
    yield TableResponse.of(Uniform(2, 1), [["0.5", "0.25", "0.25", 0], ["0.25", "0.5", "0.25", 0]])
    yield TableResponse.of(Uniform(2, inf), [[1, 0], [0, 1]])


def _processed():
    quarter = [["0.25"] * 4, [0, 1, 0, 0], [0, 0, "1/3", "2/3"], [0, 0, 0, 1]]
    yield PlainResponse(Uniform(3, 1)).then([[Fraction(entry) for entry in row] for row in quarter])
    yield BinaryResponse(PrivacyMatrix([[0, inf], [1, 0]])).then([["0.9", "0.1"], ["0.2", "0.8"]])
    yield BinaryResponse(Uniform(2, 1)).then([["0.9", "0.1"], [0, 1]]).then([["0.5", "0.5", 0], [0, 0, 1]])


def _composed():
    first = BinaryResponse(PrivacyMatrix([[0, 1], [2, 0]]))
    yield ComposedResponse(first, first)
    yield ComposedResponse(PlainResponse(Uniform(3, 1)), PlainResponse(Uniform(3, 0.5), RandomizedCode))
    stages = [
        TableResponse.of(Uniform(2, 1), rows) for rows in ([[0.6, 0.4], [0.4, 0.6]], [[0.5, 0, 0.5], [0.3, 0, 0.7]])
    ]
    yield ComposedResponse(first, lambda report: stages[report])


EXAMPLES = {
    BinaryResponse: tuple(_binary()),
    PlainResponse: tuple(_plain()),
    BlockResponse: tuple(_blocks()),
    HighLowResponse: tuple(_high_low()),
    TableResponse: tuple(_table()),
    ProcessedResponse: tuple(_processed()),
    ComposedResponse: tuple(_composed()),
}


def every_mechanism_class():
    """The concrete subclasses of Mechanism that the package defines, however deep."""
    found, waiting = set(), [Mechanism]
    while waiting:
        waiting.extend(children := waiting.pop().__subclasses__())
        found.update(children)
    return {cls for cls in found if cls.__module__.startswith(sfumato.__name__) and not inspect.isabstract(cls)}
