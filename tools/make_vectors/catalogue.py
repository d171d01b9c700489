"""The surveys in the test vectors, which cover every mechanism, code, context and domain."""

from collections.abc import Iterator
from math import inf

from sfumato.codes import BestCode, CyclicDesign, HadamardCode, RandomizedCode
from sfumato.contexts import (
    Blocks,
    Context,
    ContextUnion,
    HighLow,
    Metric,
    PrivacyMatrix,
    Tiers,
    Uniform,
)
from sfumato.designer import mechanism_for
from sfumato.domains import Domain, GridDomain, IntegerDomain
from sfumato.foundation.inputs import NumberLike
from sfumato.mechanisms import (
    BinaryResponse,
    BlockResponse,
    GroupResponse,
    HighLowResponse,
    Mechanism,
    PlainResponse,
    ProductResponse,
    TableResponse,
    UnionResponse,
)
from sfumato.survey import Survey

PLACES = Domain(["park", "café", "clinic", "bar", "東京", "𝒵oo"], other="somewhere else")
FANO_PLANE = CyclicDesign(7, ((0, 1, 3),))
"""The lines of the Fano plane: a balanced design, so some points may stay unused."""
UNBALANCED_DESIGN = CyclicDesign(6, ((0, 1), (0, 2)))
"""A design that is not balanced, so every point must be used."""


def surveys() -> dict[str, Survey]:
    """Return surveys with every kind of mechanism over 64-bit words, by name."""
    families = (_binary, _table, _plain, _blocks, _high_low, _groups, _product, _union)
    by_name: dict[str, Survey] = {}
    for family in families:
        for name, mechanism in family():
            by_name[name] = Survey(name, mechanism.context, mechanism)
    for name, context, mechanism in _weaker_contexts():
        by_name[name] = Survey(name, context, mechanism)
    return by_name


def large_surveys() -> list[Survey]:
    """Return surveys with more symbols than a client enumerates."""
    mechanisms = {
        "large, hadamard": PlainResponse(Uniform(IntegerDomain(43_750, start=-1000), 1)),
        "large, cyclic": PlainResponse(Uniform(1000, 1), BestCode()),
        "large, blocks on a grid": BlockResponse(_grid_of_tiles(), BestCode()),
        "large, high-low": HighLowResponse(HighLow(300, range(0, 300, 3), 2), BestCode()),
    }
    return [Survey(name, mechanism.context, mechanism) for name, mechanism in mechanisms.items()]


def shorten(survey: Survey) -> Survey:
    """Return the same survey over words short enough to try every word."""
    bits = 12 if survey.mechanism.words == 1 else 8
    return Survey(
        f"{survey.name}, {bits} bits", survey.context, survey.mechanism.with_word_bits(bits)
    )


NamedMechanisms = Iterator[tuple[str, Mechanism]]


def _binary() -> NamedMechanisms:
    epsilons: dict[str, tuple[NumberLike, NumberLike]] = {
        "even": (1, 1),
        "uneven": ("0.5", 2),
        "one way": (inf, 1),
        "clear": (inf, inf),
    }
    for name, (epsilon, reverse_epsilon) in epsilons.items():
        matrix = PrivacyMatrix([[0, epsilon], [reverse_epsilon, 0]], domain=["no", "yes"])
        yield f"binary, {name}", BinaryResponse(matrix)
    yield "binary, high-low", BinaryResponse(HighLow(["no", "yes"], ["yes"], "0.7"))


def _table() -> NamedMechanisms:
    E = PrivacyMatrix([[0, 1, inf], [2, 0, 1], [1, 3, 0]], domain=["a", "b", "c"])
    Q = [["0.5", "0.3", "0.2"], ["0.3", "0.5", "0.2"], ["0.25", "0.25", "0.5"]]
    yield "table", TableResponse.from_fractions(E, Q)
    yield "table, crowd", TableResponse.from_fractions(E, Q, crowd=[5, 2, 1])
    line = Metric([[0, 1, 2, 3], [1, 0, 1, 2], [2, 1, 0, 1], [3, 2, 1, 0]], "0.8")
    upper_rows = [["0.4", "0.3", "0.2", "0.1"], ["0.25", "0.35", "0.25", "0.15"]]
    lower_rows = [row[::-1] for row in reversed(upper_rows)]
    yield (
        "table, metric",
        TableResponse.from_fractions(line, [*upper_rows, *lower_rows]),
    )
    plain = PlainResponse(Uniform(3, 1), RandomizedCode)
    yield "table, tight", TableResponse(Uniform(3, 1), [plain.integer_row(x) for x in range(3)])
    rows: list[list[NumberLike]] = [
        ["0.5", 0, "0.25", "0.25", 0],
        ["0.25", 0, "0.5", "0.25", 0],
    ]
    yield "table, unused reports", TableResponse.from_fractions(Uniform(2, 1), rows)
    yield "table, clear", TableResponse.from_fractions(Uniform(2, inf), [[1, 0], [0, 1]])


def _plain() -> NamedMechanisms:
    yield "plain, hadamard", PlainResponse(Uniform(PLACES, 1))
    numbers = IntegerDomain(15, start=-3)
    yield "plain, hadamard, one symbol to spare", PlainResponse(Uniform(numbers, "2.5"))
    yield "plain, hadamard, two symbols", PlainResponse(Uniform(["no", "yes"], 1))
    yield "plain, randomized", PlainResponse(Uniform(IntegerDomain(5, start=18), 3), RandomizedCode)
    yield "plain, randomized, strong", PlainResponse(Uniform(4, 6), RandomizedCode)
    yield "plain, cyclic", PlainResponse(Uniform(7, 1), FANO_PLANE)
    yield (
        "plain, cyclic, unused points",
        PlainResponse(Uniform(PLACES.labels[:5], "1.5"), FANO_PLANE),
    )
    yield "plain, cyclic, two base blocks", PlainResponse(Uniform(6, 1), UNBALANCED_DESIGN)
    yield "plain, cyclic, searched", PlainResponse(Uniform(10, 1), BestCode())
    yield "plain, cyclic, Singer", PlainResponse(Uniform(20, 1), BestCode())
    yield "plain, clear", PlainResponse(Uniform(["a", "b", "c"], inf))
    yield "plain, one symbol", PlainResponse(Uniform(["only"], 1))


def _blocks() -> NamedMechanisms:
    interleaved = Blocks([0, 1, 0, 2, 0, 1, 3, 0], 1)
    yield "blocks, hadamard", BlockResponse(interleaved)
    yield "blocks, randomized", BlockResponse(interleaved, RandomizedCode)
    yield "blocks, best", BlockResponse(Blocks([i % 3 for i in range(20)], "0.5"), BestCode())
    block_of = {"a": "x", "b": "y", "c": "x", "d": "y", "e": "z", "f": "x"}
    by_block = Blocks(block_of, {"x": 1, "y": 2, "z": inf})
    yield "blocks, own epsilons", BlockResponse(by_block, RandomizedCode)
    yield "blocks, clear inside", BlockResponse(Blocks([0, 0, 0, 1, 1, 1, 1], [1, inf]))
    yield "blocks, cyclic", BlockResponse(Blocks([0] * 7 + [1] * 5, [1, 2]), FANO_PLANE)
    tiles = Blocks([0, 0, 1, 1, 0, 0, 1, 1, 2], 1, domain=GridDomain(0, 2, 0, 4, 1, other="away"))
    yield "blocks, grid", BlockResponse(tiles)


def _high_low() -> NamedMechanisms:
    lunch = HighLow(PLACES, ["clinic", "bar", "東京"], 1)
    yield "high-low, hadamard", HighLowResponse(lunch)
    yield "high-low, randomized", HighLowResponse(lunch, RandomizedCode)
    yield "high-low, cyclic", HighLowResponse(HighLow(9, range(1, 8), 1), FANO_PLANE)
    yield (
        "high-low, cyclic, unused points",
        HighLowResponse(HighLow(9, [0, 2, 4, 6, 8], 1), FANO_PLANE),
    )
    yield "high-low, one", HighLowResponse(HighLow(4, [2], 2), RandomizedCode)
    yield "high-low, none", HighLowResponse(HighLow(4, [], 1))
    yield "high-low, all", HighLowResponse(HighLow(6, range(6), 1), UNBALANCED_DESIGN)
    yield "high-low, clear", HighLowResponse(HighLow(4, [0, 3], inf))


def _groups() -> NamedMechanisms:
    yield "groups, tiers", GroupResponse(Tiers([0, 0, 0, 1, 1, 2, 2], [1, 2, inf]))
    all_private = Tiers([0, 1, 2, 0, 1, 2], [1, 2, 3])
    yield "groups, tiers without clear", GroupResponse(all_private, RandomizedCode)
    large_tiers = Tiers([0] * 6 + [1] * 6 + [2], [1, 2, inf])
    yield "groups, tiers, two base blocks", GroupResponse(large_tiers, UNBALANCED_DESIGN)
    yield "groups, tiers in clear", GroupResponse(Tiers([0, 0, 1], [inf, inf]))
    yield "groups, two levels", GroupResponse(Blocks([0, 1, 0, 1, 0, 1, 1, 2, 2, 2], 1, across=2))
    mixed = Blocks([0, 0, 0, 1, 1, 2, 3, 3, 3], [1, 2, 1, 3], across=2)
    yield "groups, own epsilons", GroupResponse(mixed, RandomizedCode)
    yield (
        "groups, cyclic",
        GroupResponse(Blocks([0] * 7 + [1] * 5 + [2], 1, across="1.5"), FANO_PLANE),
    )
    yield "groups, high-low", GroupResponse(HighLow(6, [1, 4, 5], 2), BestCode())


def _product() -> NamedMechanisms:
    blocks = Blocks([0, 1, 0, 1, 0], 1, across=3)
    yield "product, randomized", ProductResponse(blocks)
    yield "product, hadamard", ProductResponse(blocks, HadamardCode)
    yield "product, best", ProductResponse(Blocks([0, 0, 1, 1, 1, 2], 1, across=2), BestCode())


def _union() -> NamedMechanisms:
    yield (
        "union",
        _make_union(
            [0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3],
            PlainResponse(Uniform(3, 1)),
            HighLowResponse(HighLow(4, [1, 3], 2)),
            BinaryResponse(PrivacyMatrix([[0, 1], [2, 0]])),
            GroupResponse(Tiers([0, 1], [1, 2])),
        ),
    )
    interleaved = _make_union(
        [0, 1, 0, 1, 1],
        PlainResponse(Uniform(2, 1), RandomizedCode),
        PlainResponse(Uniform(3, inf)),
    )
    yield "union, interleaved", interleaved
    plain = PlainResponse(Uniform(3, 2))
    yield "union, nested", _make_union([0, 1, 0, 0, 1, 0, 1, 0], interleaved, plain)
    one_word = PlainResponse(Uniform(3, 1))
    two_words = ProductResponse(Blocks([0, 1, 0, 1], 1, across=3))
    yield "union, of one and two words", _make_union([0, 1, 1, 0, 1, 0, 1], one_word, two_words)


def _make_union(block_of: list[int], *parts: Mechanism) -> UnionResponse:
    return UnionResponse(ContextUnion([part.context for part in parts], block_of), parts)


def _weaker_contexts() -> Iterator[tuple[str, Context, Mechanism]]:
    """Yield contexts that are satisfied by a mechanism for a different context."""
    matrix = PrivacyMatrix(
        [[0, 1, inf], [1, 0, inf], [inf, inf, 0]], domain=["left", "right", "none"]
    )
    yield "matrix, kept by blocks", matrix, mechanism_for(matrix)
    plain = PlainResponse(Uniform(4, "0.2"), RandomizedCode)
    yield "tiers, kept by a plain response", Tiers([0, 0, 1, 1], ["0.2", "0.4"]), plain


def _grid_of_tiles() -> Blocks:
    """Return a context over 12 × 20 cells in 3 × 4 tiles."""
    grid = GridDomain(25, "27.4", -130, -126, "0.2")
    tiles = [cell // 80 * 4 + cell % 20 // 5 for cell in range(240)]
    return Blocks(tiles, 1, domain=grid)
