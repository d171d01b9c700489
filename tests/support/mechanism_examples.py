"""Instances of every mechanism class, for the exam and for other tests."""

import inspect
import math
from fractions import Fraction

import sfumato
from sfumato.codes import BestCode, CyclicDesign, HadamardCode, RandomizedCode
from sfumato.contexts import (
    Blocks,
    ContextUnion,
    HighLow,
    Metric,
    PrivacyMatrix,
    Tiers,
    Uniform,
    union,
)
from sfumato.mechanisms import (
    BinaryResponse,
    BlockResponse,
    ComposedResponse,
    GroupResponse,
    HighLowResponse,
    Mechanism,
    PlainResponse,
    ProcessedResponse,
    ProductResponse,
    TableResponse,
    UnionResponse,
)

inf = math.inf
FAMILIES = (HadamardCode, RandomizedCode, BestCode())


def _binary():
    pairs = [
        (1, 1),
        (0.5, 2),
        (math.log(2), math.log(4)),
        (inf, 1),
        (1, inf),
        (inf, inf),
        (0.1, 40),
        (0.01, 0.01),
    ]
    yield from (BinaryResponse(PrivacyMatrix([[0, a], [b, 0]])) for a, b in pairs)
    yield BinaryResponse(HighLow(["no", "yes"], ["yes"], 1))
    yield BinaryResponse(Metric([[0, 2], [2, 0]], 0.7))


def _plain():
    for family in FAMILIES:
        yield from (
            PlainResponse(Uniform(k, epsilon), family)
            for k in (1, 2, 3, 5, 16, 32)
            for epsilon in (0.5, 3)
        )
    for k, base in (
        (7, ((0, 1, 3),)),
        (13, ((0, 1, 3, 9),)),
        (6, ((0, 1), (0, 2))),
        (11, ((0, 1, 3),) * 2),
    ):
        yield PlainResponse(Uniform(k, 1), CyclicDesign(k, base))
    yield PlainResponse(Uniform(5, 1), CyclicDesign(7, ((0, 1, 3),)))
    yield PlainResponse(Uniform(["a", "b", "c"], inf))
    yield PlainResponse(Uniform(3, "0.05"))
    yield PlainResponse(Uniform(6, 40), RandomizedCode)


def _blocks():
    for family in FAMILIES:
        yield BlockResponse(Blocks([0, 0, 0, 1, 2, 2, 2, 2], 1), family)
        yield BlockResponse(Blocks([i % 5 for i in range(32)], 0.5), family)
        yield BlockResponse(Blocks([0, 1, 0, 2, 0, 1, 3], 4), family)
    yield BlockResponse(Blocks([0, 0, 0, 1, 1, 2, 2, 2], [1, 2, 0.5]), RandomizedCode)
    yield BlockResponse(Blocks([0, 0, 0, 1, 1, 1, 1], [1, inf]))
    yield BlockResponse(Blocks([0] * 7 + [1] * 5, [1, 2]), CyclicDesign(7, ((0, 1, 3),)))
    yield BlockResponse(Blocks([0, 1, 2], 1))
    yield BlockResponse(Blocks([0, 0, 1], inf))


def _high_low():
    for family in FAMILIES:
        for k, s in ((3, 1), (5, 2), (8, 8), (4, 0), (20, 7), (32, 15)):
            yield HighLowResponse(HighLow(k, range(0, k, -(-k // s)) if s else [], 1), family)
        yield HighLowResponse(HighLow(6, [1, 4], 4), family)
    yield HighLowResponse(HighLow(4, [0, 3], inf))
    yield HighLowResponse(HighLow(9, range(7), 1), CyclicDesign(7, ((0, 1, 3),)))
    yield HighLowResponse(HighLow(9, range(5), 1), CyclicDesign(7, ((0, 1, 3),)))
    yield HighLowResponse(HighLow(9, range(6), 1), CyclicDesign(6, ((0, 1), (0, 2))))


def _groups():
    for family in FAMILIES:
        yield GroupResponse(Tiers([0, 0, 0, 1, 1, 2, 2], [1, 2, inf]), family)
        yield GroupResponse(Tiers([0, 1, 2, 0, 1, 2], [1, 2, 3]), family)
        yield GroupResponse(Tiers([0, 1, 1, 1], [0.5, inf]), family)
        yield GroupResponse(Blocks([0, 0, 0, 1, 1, 1, 1, 2, 2, 2], 1, across=2), family)
        yield GroupResponse(Blocks([0, 0, 0, 1, 1, 2, 3, 3, 3], [1, 2, 1, 3], across=2), family)
        yield GroupResponse(HighLow(6, [1, 4, 5], 2), family)
    yield GroupResponse(
        Blocks([0] * 7 + [1] * 5 + [2], 1, across=1.5), CyclicDesign(7, ((0, 1, 3),))
    )
    yield GroupResponse(
        Tiers([0] * 6 + [1] * 6 + [2], [1, 2, inf]), CyclicDesign(6, ((0, 1), (0, 2)))
    )
    yield GroupResponse(Tiers([0, 0, 1], [inf, inf]))


def _product():
    for family in FAMILIES:
        yield ProductResponse(Blocks([0, 0, 0, 1, 1], 1, across=2), family)
    yield ProductResponse(Blocks([0, 1, 2, 0, 1, 0, 0], [1, 2, 1], across=3), RandomizedCode)
    yield ProductResponse(Blocks([0, 0, 1, 1, 1, 2], 1, across=1.5), BestCode())


def _union():
    context = union(
        [
            Uniform(3, 1),
            HighLow(4, [1, 3], 2),
            PrivacyMatrix([[0, 1], [2, 0]]),
            Tiers([0, 1], [1, 2]),
        ]
    )
    parts = [
        PlainResponse(context.parts[0]),
        HighLowResponse(context.parts[1], RandomizedCode),
        BinaryResponse(context.parts[2]),
        GroupResponse(context.parts[3]),
    ]
    yield UnionResponse(context, parts)
    interleaved = ContextUnion([Uniform(2, 1), Uniform(3, inf)], [0, 1, 0, 1, 1])
    yield UnionResponse(
        interleaved, [PlainResponse(part, RandomizedCode) for part in interleaved.parts]
    )
    stages = union([Uniform(2, 1) + Uniform(2, 1), HighLow(2, [0], 2)])
    twice = ComposedResponse(BinaryResponse(Uniform(2, 1)), BinaryResponse(Uniform(2, 1)))
    yield UnionResponse(stages, [twice, HighLowResponse(stages.parts[1])])


def _table():
    E = [[0, 1, inf], [2, 0, 1], [1, 3, 0]]
    Q = [["0.5", "0.3", "0.2"], ["0.3", "0.5", "0.2"], ["0.25", "0.25", "0.5"]]
    yield TableResponse.from_fractions(PrivacyMatrix(E), Q)
    yield TableResponse.from_fractions(
        Uniform(2, 1), [["0.5", "0.25", "0.25", 0], ["0.25", "0.5", "0.25", 0]]
    )
    yield TableResponse.from_fractions(Uniform(2, inf), [[1, 0], [0, 1]])


def _processed():
    quarter = [["0.25"] * 4, [0, 1, 0, 0], [0, 0, "1/3", "2/3"], [0, 0, 0, 1]]
    yield PlainResponse(Uniform(3, 1)).then([[Fraction(entry) for entry in row] for row in quarter])
    yield BinaryResponse(PrivacyMatrix([[0, inf], [1, 0]])).then([["0.9", "0.1"], ["0.2", "0.8"]])
    yield (
        BinaryResponse(Uniform(2, 1))
        .then([["0.9", "0.1"], [0, 1]])
        .then([["0.5", "0.5", 0], [0, 0, 1]])
    )


def _composed():
    first = BinaryResponse(PrivacyMatrix([[0, 1], [2, 0]]))
    yield ComposedResponse(first, first)
    yield ComposedResponse(
        PlainResponse(Uniform(3, 1)), PlainResponse(Uniform(3, 0.5), RandomizedCode)
    )
    stages = [
        TableResponse.from_fractions(Uniform(2, 1), rows)
        for rows in ([[0.6, 0.4], [0.4, 0.6]], [[0.5, 0, 0.5], [0.3, 0, 0.7]])
    ]
    yield ComposedResponse(first, lambda report: stages[report])


EXAMPLES = {
    BinaryResponse: tuple(_binary()),
    PlainResponse: tuple(_plain()),
    BlockResponse: tuple(_blocks()),
    HighLowResponse: tuple(_high_low()),
    GroupResponse: tuple(_groups()),
    TableResponse: tuple(_table()),
    ProductResponse: tuple(_product()),
    UnionResponse: tuple(_union()),
    ProcessedResponse: tuple(_processed()),
    ComposedResponse: tuple(_composed()),
}

# One instance for each class, kind of code and special case, enough for tests of structure. Only
# the exam sweeps over all EXAMPLES.
_REPRESENTATIVE_INDICES = {
    BinaryResponse: (1, 3),  # asymmetric; no promise in one direction
    PlainResponse: (0, 6, 18, 30, 38, 40, 41),  # one symbol, codes, unbalanced, spare, inf
    BlockResponse: (0, 6, 9, 10),  # two codes, an ε per block, an unprotected block
    HighLowResponse: (1, 3, 8, 24),  # two codes, nothing sensitive, unbalanced
    GroupResponse: (0, 4, 19, 20),  # tiers, blocks with ε across, unbalanced, inf
    TableResponse: (0, 2),
    ProductResponse: (0, 3),
    UnionResponse: (0, 1),
    ProcessedResponse: (0,),
    ComposedResponse: (1, 2),
}
REPRESENTATIVES = {
    cls: tuple(EXAMPLES[cls][index] for index in indices)
    for cls, indices in _REPRESENTATIVE_INDICES.items()
}
ALL_REPRESENTATIVES = [mechanism for each in REPRESENTATIVES.values() for mechanism in each]


def every_mechanism_class():
    """Return all concrete subclasses of Mechanism in the package."""
    classes = set()
    waiting = [Mechanism]
    while waiting:
        children = waiting.pop().__subclasses__()
        waiting.extend(children)
        classes.update(children)
    return {
        cls
        for cls in classes
        if cls.__module__.startswith(sfumato.__name__) and not inspect.isabstract(cls)
    }
