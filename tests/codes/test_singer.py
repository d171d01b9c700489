"""Singer's difference sets: the designs, the polynomials, and the sets themselves, against slow
twins.
"""

from itertools import count

import numpy as np
import pytest

from sfumato.codes import singer
from sfumato.codes.singer import (
    MAX_POINTS,
    SingerDesign,
    require_difference_set,
    singer_designs,
    singer_set,
)
from sfumato.errors import ExamFailed, InvalidContext

PRIMES_TO_53 = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53]
PLANES = [(q, 3) for q in sorted({*PRIMES_TO_53, 4, 8, 9, 16, 25, 27, 32, 49})]
SPACES = [(2, d) for d in range(4, 10)] + [(3, d) for d in range(4, 9)]
SPACES += [(4, 4), (4, 5), (4, 6), (5, 4), (5, 5), (7, 4), (8, 4), (9, 4), (16, 4)]


def naive_differences(D, K):
    """How often each number is a difference of two members, pair by pair."""
    return np.bincount((D[:, None] - D[None, :]).ravel() % K, minlength=K)


def naive_order_of_x(f, p):
    """Multiply by x until 1 comes back."""
    one = [1] + [0] * (len(f) - 1)
    power = one
    for order in range(1, p ** len(f)):
        power = [(c - power[-1] * d) % p for c, d in zip([0, *power[:-1]], f, strict=True)]
        if power == one:
            return order
    return None


@pytest.mark.parametrize(("q", "d"), PLANES + SPACES)
def test_every_difference_occurs_equally_often(q, d):
    design = SingerDesign(q, d)
    D = singer_set(design)
    counts = naive_differences(D, design.points)
    assert counts[0] == len(D) == design.raised
    assert (counts[1:] == design.shared).all()
    assert (np.diff(D) > 0).all() and D[0] >= 0 and D[-1] < design.points


@pytest.mark.parametrize(
    "design", [SingerDesign(2, 20), SingerDesign(729, 3), SingerDesign(1021, 3)]
)
def test_largest_useful_designs_are_built(design):
    """Around 2^20 points; `singer_set` itself counts the differences, and here a few of them are
    counted again.
    """
    D = singer_set(design)
    member = np.zeros(design.points, dtype=bool)
    member[D] = True
    for d in (1, 2, 12_345, design.points // 2):
        assert (member & np.roll(member, d)).sum() == design.shared


def test_design_numbers_count_pairs():
    """r(r − 1) = λ(K − 1): ordered pairs of members, counted in two ways."""
    for q, d in PLANES + SPACES:
        design = SingerDesign(q, d)
        assert design.raised * (design.raised - 1) == design.shared * (design.points - 1)


@pytest.mark.parametrize(
    ("q", "d"), [(2, 3), (2, 8), (3, 4), (3, 5), (4, 3), (5, 3), (7, 3), (8, 3), (9, 3), (16, 3)]
)
def test_polynomial_is_the_first_primitive_one(q, d):
    p, a = singer._prime_power(q)
    f = singer._find_primitive_polynomial(q, d)
    assert naive_order_of_x(f, p) == q**d - 1
    chosen = sum(c * p**i for i, c in enumerate(f))
    for number in range(1, chosen):
        earlier = singer._digits(number, p, a * d)
        assert earlier[0] == 0 or naive_order_of_x(earlier, p) != q**d - 1


def test_irreducible_polynomial_is_not_enough():
    irreducible = [1, 1, 1, 1]  # x^4 + x^3 + x^2 + x + 1 over two elements: x^5 = 1
    assert naive_order_of_x(irreducible, 2) == 5
    assert not singer._is_primitive(irreducible, 2, 15, [3, 5])
    assert not singer._is_primitive([1, 0, 1, 0], 2, 15, [3, 5])  # (x^2 + x + 1)^2: reducible
    assert singer._is_primitive([1, 1, 0, 0], 2, 15, [3, 5])


@pytest.mark.parametrize(("f", "p"), [([1, 1, 0], 2), ([2, 1, 0, 0], 3), ([3, 4, 0, 1, 2], 7)])
def test_recurrence_follows_its_polynomial(f, p):
    n = len(f)
    slow = [0] * (n - 1) + [1]
    while len(slow) < 500:
        slow.append(-sum(c * s for c, s in zip(f, slow[-n:], strict=True)) % p)
    assert singer._recurrence_terms(f, p, n, 500).tolist() == slow


@pytest.mark.parametrize(("q", "d"), [(2, 3), (3, 4), (4, 3), (13, 3), (2, 9)])
def test_wrong_difference_sets_raise(q, d):
    design = SingerDesign(q, d)
    D = singer_set(design)
    require_difference_set((3 - D) % design.points, design)  # mirrored and moved: still one
    free = np.setdiff1d(np.arange(design.points), D)
    moved = D.copy()
    moved[len(D) // 2] = free[-1]
    for wrong in (moved, D[1:], np.append(D, free[0])):
        with pytest.raises(ExamFailed, match="difference_set"):
            require_difference_set(wrong, design)


def test_singer_set_is_cached_and_read_only():
    design = SingerDesign(9, 3)
    first = singer_set(design)
    singer_set.cache_clear()
    assert np.array_equal(first, singer_set(design))
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 1


@pytest.mark.parametrize(
    ("points", "largest"), [(2, 64), (7, 7), (8, 12), (43, 700), (100, 2000), (1000, 8192)]
)
def test_designs_match_the_definition(points, largest):
    wanted = []
    for q in range(2, 100):
        if len(set(singer._prime_factors(q))) == 1:
            size = next(n for n in (sum(q**i for i in range(d)) for d in count(3)) if n >= points)
            wanted += [(size, q)] if size <= largest else []
    designs = singer_designs(points, largest)
    assert [(design.points, design.q) for design in designs] == sorted(wanted)


def test_many_points_have_designs():
    designs = singer_designs(43_750, 1 << 19)
    assert len(designs) > 100
    assert all(43_750 <= design.points <= 1 << 19 for design in designs)


@pytest.mark.parametrize(
    ("q", "d"), [(6, 3), (1, 3), (0, 3), (-3, 3), (2, 2), (2, 27), (12, 4), (10**30, 3), (2, 10**9)]
)
def test_invalid_designs_raise(q, d):
    with pytest.raises(InvalidContext, match="prime power"):
        SingerDesign(q, d)


def test_designs_stay_within_the_limit():
    assert max(design.points for design in singer_designs(MAX_POINTS // 2, 1 << 40)) <= MAX_POINTS
