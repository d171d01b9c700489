"""Exact matrices: stored exactly, rounded down where needed, closed in integers."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from sfumato.contexts import ExactMatrix
from sfumato.errors import InvalidContext
from support.matrices import naive_closure

INF = math.inf


def _entries(matrix: ExactMatrix) -> list[list[Fraction | float]]:
    return [[matrix.entry(x, x2) for x2 in range(matrix.size)] for x in range(matrix.size)]


# --- parsing --------------------------------------------------------------------------------------


ONE_MATRIX = [[Fraction(0), Fraction(1, 2)], [INF, Fraction(0)]]


@pytest.mark.parametrize(
    "entries",
    [
        [[0, 0.5], [INF, 0]],
        [["0", "0.5"], ["inf", "0"]],
        [[0, 0.5], ["inf", 0]],
        [[0, Fraction(1, 2)], [INF, 0]],
        [[0, Decimal("0.5")], [Decimal("Infinity"), 0]],
        np.array([[0, 0.5], [INF, 0]]),
        np.array([[0, 0.5], [INF, 0]], dtype=np.float32),
        np.array([[0, 0.5], [INF, 0]], dtype=object),
        ((0, 0.5), (INF, 0)),
    ],
    ids=[
        "floats",
        "text",
        "mixed",
        "fractions",
        "decimals",
        "array",
        "float32",
        "objects",
        "tuples",
    ],
)
def test_every_way_to_write_a_matrix_reads_as_the_same_numbers(entries):
    assert _entries(ExactMatrix.parse(entries, "E")) == ONE_MATRIX


@pytest.mark.parametrize("entries", [[[0, 3], [4, 0]], np.array([[0, 3], [4, 0]], dtype=np.uint8)])
def test_integers_are_read_as_themselves(entries):
    assert _entries(ExactMatrix.parse(entries, "E")) == [[0, 3], [4, 0]]


def test_numpy_numbers_in_object_arrays_are_read():
    entries = [[0, Fraction(1, 2)], [np.int64(1), np.float64(0)]]
    assert _entries(ExactMatrix.parse(entries, "E")) == [[0, Fraction(1, 2)], [1, 0]]


@pytest.mark.parametrize(
    "text",
    [
        "0.1",
        "0.3",
        "1.1",
        "0.7",
        "0.01",
        "39.99",
        "0.123456789012345",
        "12.3456789012345",
        "1e-15",
        "0.999",
    ],
)
def test_float_means_its_decimal_repr(text):
    matrix = ExactMatrix.parse([[0, float(text)], [float(text), 0]], "E")
    assert matrix.entry(0, 1) == matrix.entry(1, 0) == Fraction(text)


def test_fractions_and_long_decimals_stay_exact():
    rows = [
        [0, Fraction(1, 3), Fraction(22, 7)],
        [Fraction("0.1234567890123456"), 0, INF],
        ["1", 2.5, 0],
    ]
    entries = _entries(ExactMatrix.parse(rows, "E"))
    assert entries[0] == [0, Fraction(1, 3), Fraction(22, 7)]
    assert entries[1] == [Fraction("0.1234567890123456"), 0, INF]
    assert entries[2] == [1, Fraction(5, 2), 0]


@pytest.mark.parametrize("scale", [1.0, 1 / 3, 13.7, 39.9, 1e5, 1e9])
def test_long_floats_are_rounded_down_slightly(scale):
    floats = np.random.default_rng(3).random((6, 6)) * scale
    np.fill_diagonal(floats, 0)
    matrix = ExactMatrix.parse(floats, "E")
    for x in range(6):
        for x2 in range(6):
            exact = Fraction(float(floats[x, x2]))
            assert 0 <= exact - matrix.entry(x, x2) <= Fraction(max(scale, 1.0)) / 2**50


def test_fractions_of_many_denominators_stay_exact():
    primes = [7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47]
    rows = [[Fraction(0)] * 4 for _ in range(4)]
    off_diagonal = [(x, x2) for x in range(4) for x2 in range(4) if x != x2]
    for (x, x2), prime in zip(off_diagonal, primes, strict=True):
        rows[x][x2] = Fraction(1, prime**2)
    assert _entries(ExactMatrix.parse(rows, "E")) == rows


@pytest.mark.parametrize("tiny", ["1e-18", "1.1e-18", "0.0000000000000000019"])
def test_tiny_epsilon_stays_exact_next_to_a_large_one(tiny):
    matrix = ExactMatrix.parse([[0, tiny], ["39.5", 0]], "E")
    assert _entries(matrix) == [[0, Fraction(tiny)], [Fraction(79, 2), 0]]
    assert matrix.to_floats().tolist() == [[0, float(tiny)], [39.5, 0]]


def test_stored_matrix_is_immutable():
    matrix = ExactMatrix.parse([[0, 1], [1, 0]], "E")
    for stored in (matrix, matrix.closure()):
        with pytest.raises(ValueError, match="read-only"):
            stored.numerators[0, 1] = 5


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([[0, 1]], "square"),
        ([0, 1], "square"),
        (0.0, "square"),
        (None, "square"),
        ([], "square"),
        (np.zeros((0, 0)), "square"),
        (np.zeros((2, 2, 2)), "square"),
        ([[0, 1], [1]], "differ in length"),
        ([[0, [1]], [1, 0]], "must be a number; got list"),
        ([[0, math.nan], [1, 0]], r"\[0, 1\]"),
        ([[0, 1], [-1, 0]], r"\[1, 0\] is -1"),
        ([[0, 1], [-INF, 0]], r"\[1, 0\]"),
        ([[0, 1], [1, 0.2]], r"diagonal; entry \[1, 1\] is 0.2\. Set it to 0\."),
        ([[INF, 1], [1, 0]], r"diagonal; entry \[0, 0\]"),
        ([["0", "abc"], ["1", "0"]], "decimal number"),
        ([["0", "nan"], ["1", "0"]], "NaN"),
        ([["0", "-1"], ["1", "0"]], "negative"),
        ([[0, None], [1, 0]], "number"),
        ([[False, True], [True, False]], "numbers"),
        ([[0, True], [Fraction(1, 2), 0]], "number"),
        ([[0j, 1], [1, 0]], "must be a number; got complex"),
        ([[b"0", b"1"], [b"1", b"0"]], "number"),
        ([[0, 1e30], [1, 0]], "must be below"),
        ([[0, "1e30"], [1, 0]], "1e18"),
        ("abc", "square"),
    ],
)
def test_invalid_matrix_error_names_the_argument(entries, words):
    with pytest.raises(InvalidContext, match=words) as caught:
        ExactMatrix.parse(entries, "the third matrix")
    assert "the third matrix" in str(caught.value) or "finite entries" in str(caught.value)


# --- queries --------------------------------------------------------------------------------------


def test_floats_are_the_nearest_to_the_entries():
    rows = [
        [0, Fraction(1, 3), Fraction("0.12345678901234567")],
        [INF, 0, Fraction(10**17 + 1, 10**17)],
        [7, 0, 0],
    ]
    matrix = ExactMatrix.parse(rows, "E")
    expected = [[float(matrix.entry(x, x2)) for x2 in range(3)] for x in range(3)]
    assert matrix.to_floats().tolist() == expected


@pytest.mark.parametrize("n", range(1, 40))
def test_floats_are_the_nearest_to_entries_of_seventeen_digits(n):
    """Rounding numerator and denominator before the division would miss one in four."""
    exact = Fraction(n * 7_919_191_919_191_919 % 10**17, 10**17)
    assert ExactMatrix.parse([[0, exact], [exact, 0]], "E").to_floats()[0, 1] == float(exact)


@pytest.mark.parametrize(
    ("rows", "smallest"),
    [
        ([[0, 3], [2, 0]], 2),
        ([[0, INF], [2.5, 0]], Fraction(5, 2)),
        ([[0, 0], [1, 0]], 0),
        ([[0]], INF),
        ([[0, INF], [INF, 0]], INF),
        ([[0, INF, INF], [INF, 0, INF], [INF, INF, 0]], INF),
    ],
)
def test_smallest_entry_is_off_the_diagonal(rows, smallest):
    assert ExactMatrix.parse(rows, "E").minimum() == smallest


def test_sums_are_exact():
    a = ExactMatrix.parse([[0, Fraction(1, 3), 1], [INF, 0, 0], [1, 2, 0]], "E")
    b = ExactMatrix.parse([[0, 0.1, INF], [INF, 0, 0.25], [0, 0, 0]], "E")
    assert _entries(a + b) == [[0, Fraction(13, 30), INF], [INF, 0, Fraction(1, 4)], [1, 2, 0]]


def test_products_are_exact():
    matrix = ExactMatrix.parse([[0, 0.1, INF], [3, 0, 0], [1, 2, 0]], "E").scale(Fraction(1, 3))
    assert _entries(matrix) == [
        [0, Fraction(1, 30), INF],
        [1, 0, 0],
        [Fraction(1, 3), Fraction(2, 3), 0],
    ]


# --- closure --------------------------------------------------------------------------------------


CLOSURES = {
    "a detour": ([[0, 5, 1], [5, 0, 1], [1, 1, 0]], [[0, 2, 1], [2, 0, 1], [1, 1, 0]]),
    "a chain": (
        [[0, 1, INF, INF], [1, 0, 1, INF], [INF, 1, 0, 1], [INF, INF, 1, 0]],
        [[0, 1, 2, 3], [1, 0, 1, 2], [2, 1, 0, 1], [3, 2, 1, 0]],
    ),
    "a one-way ring": (
        [[0, 1, INF, INF], [INF, 0, 1, INF], [INF, INF, 0, 1], [1, INF, INF, 0]],
        [[0, 1, 2, 3], [3, 0, 1, 2], [2, 3, 0, 1], [1, 2, 3, 0]],
    ),
    "a way that costs what infinity is held as": (
        [[0, 3, INF, INF], [INF, 0, 3, INF], [INF, INF, 0, 1], [INF, INF, INF, 0]],
        [[0, 3, 6, 7], [INF, 0, 3, 4], [INF, INF, 0, 1], [INF, INF, INF, 0]],
    ),
    "no finite way": ([[0, INF], [INF, 0]], [[0, INF], [INF, 0]]),
    "asymmetric": ([[0, 1, 10], [10, 0, 1], [1, 10, 0]], [[0, 1, 2], [2, 0, 1], [1, 2, 0]]),
    "a zero one way": ([[0, 0], [5, 0]], [[0, 0], [0, 0]]),
    "a zero one way, infinity back": ([[0, 0], [INF, 0]], [[0, 0], [0, 0]]),
    "zeros that spread": (
        [[0, 0, INF], [INF, 0, 0], [INF, INF, 0]],
        [[0, 0, 0], [0, 0, 0], [0, 0, 0]],
    ),
    "a zero that opens a way": (
        [[0, 1, INF], [INF, 0, INF], [INF, 0, 0]],
        [[0, 1, 1], [INF, 0, 0], [INF, 0, 0]],
    ),
    "one symbol": ([[0]], [[0]]),
}


@pytest.mark.parametrize(("rows", "closed"), CLOSURES.values(), ids=CLOSURES.keys())
def test_closures_by_hand(rows, closed):
    assert _entries(ExactMatrix.parse(rows, "E").closure()) == closed


def _random_rows(k: int, seed: int) -> list[list[Fraction | float]]:
    """Return decimals, zeros and infinities in proportions that depend on the seed."""
    rng = np.random.default_rng(seed)
    choices = [
        INF,
        INF,
        Fraction(0),
        Fraction(1),
        Fraction(5, 2),
        Fraction(1, 3),
        Fraction(40),
        Fraction("0.01"),
    ]
    weights = rng.dirichlet(np.ones(len(choices)))
    indices = rng.choice(len(choices), size=(k, k), p=weights)
    return [
        [Fraction(0) if x == x2 else choices[indices[x, x2]] for x2 in range(k)] for x in range(k)
    ]


@pytest.mark.parametrize("k", [2, 3, 4, 7, 12])
def test_closure_matches_brute_force(k):
    for seed in range(20):
        rows = _random_rows(k, seed)
        assert _entries(ExactMatrix.parse(rows, "E").closure()) == naive_closure(rows), seed


@pytest.mark.parametrize("k", [2, 5, 9])
def test_closing_twice_changes_nothing(k):
    for seed in range(20):
        closed = ExactMatrix.parse(_random_rows(k, seed), "E").closure()
        assert _entries(closed.closure()) == _entries(closed)


def test_long_chains_are_closed_from_end_to_end():
    k = 200
    rows = np.full((k, k), INF)
    np.fill_diagonal(rows, 0)
    rows[np.arange(k - 1), np.arange(1, k)] = 0.1
    closed = ExactMatrix.parse(rows, "E").closure()
    assert [closed.entry(0, x) for x in range(k)] == [Fraction(x, 10) for x in range(k)]
    assert closed.entry(k - 1, 0) == INF


def test_closing_large_and_fine_entries_does_not_overflow():
    """Entries near 40 with 17 digits fill most of 64 bits, yet a chain of them must add up."""
    step = Fraction("39.999999999999999")
    rows = [
        [Fraction(0) if x == x2 else step if x2 == x + 1 else INF for x2 in range(9)]
        for x in range(9)
    ]
    matrix = ExactMatrix.parse(rows, "E")
    exact = matrix.entry(0, 1)
    results = [matrix.closure().entry(0, x) for x in range(9)]
    assert all(0 <= x * exact - results[x] <= Fraction(x, 2**40) for x in range(9))


@pytest.mark.parametrize("denominator", [2**53 + 1, 2**63 - 1, 2**64 + 1, 10**30 + 1])
def test_large_denominators_are_not_rounded_before_dividing(denominator):
    finite = np.ones((2, 2), dtype=bool)
    for n in range(1, 50):
        result = ExactMatrix.from_finite([0, n, n, 0], denominator, finite).to_floats()[0, 1]
        assert result == float(Fraction(n, denominator))


# --- parts ----------------------------------------------------------------------------------------


def test_union_places_its_parts_side_by_side():
    a = ExactMatrix.parse([[0, "1/3"], [INF, 0]], "a")
    b = ExactMatrix.parse([[0, 0.5, 2], [1, 0, 3], [INF, 4, 0]], "b")
    places = [np.array([3, 1]), np.array([0, 2, 4])]
    both = ExactMatrix.block_diagonal([a, b], places)
    for part, rows in ((a, places[0]), (b, places[1])):
        assert _entries(both.submatrix(rows)) == _entries(part)
    assert all(both.entry(x, x2) == both.entry(x2, x) == INF for x in places[0] for x2 in places[1])


def test_coprime_denominators_may_exceed_64_bits():
    primes = [999_999_999_989, 999_999_999_961, 999_999_999_937]
    parts = [ExactMatrix.parse([[0, Fraction(40 * p - 1, p)], [1, 0]], "E") for p in primes]
    joined = ExactMatrix.block_diagonal(parts, [np.array([2 * j, 2 * j + 1]) for j in range(3)])
    assert [joined.entry(2 * j, 2 * j + 1) for j in range(3)] == [
        Fraction(40 * p - 1, p) for p in primes
    ]
    assert _entries(joined.closure()) == _entries(joined)
