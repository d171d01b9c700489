"""Exact linear systems, against fractions and Gauss."""

import random
from fractions import Fraction

import pytest

from sfumato.foundation.elimination import solve_integers


def naive_solution(M, B):
    """Gauss and Jordan in fractions: M⁻¹B, or None; and the determinant."""
    k = len(M)
    rows = [[Fraction(a) for a in (*row, *other)] for row, other in zip(M, B, strict=True)]
    determinant = Fraction(1)
    for i in range(k):
        pivot = next((r for r in range(i, k) if rows[r][i]), None)
        if pivot is None:
            return None, Fraction(0)
        if pivot != i:
            rows[i], rows[pivot], determinant = rows[pivot], rows[i], -determinant
        determinant *= rows[i][i]
        rows[i] = [a / rows[i][i] for a in rows[i]]
        for r in range(k):
            if r != i:
                rows[r] = [a - rows[r][i] * b for a, b in zip(rows[r], rows[i], strict=True)]
    return [row[k:] for row in rows], determinant


def drawn(k, columns, size, seed):
    source = random.Random(seed)
    return [[source.randint(-size, size) for _ in range(columns)] for _ in range(k)]


@pytest.mark.parametrize("size", [1, 3, 10**6, 10**40])
@pytest.mark.parametrize(("k", "columns"), [(1, 1), (2, 3), (3, 1), (5, 2), (8, 8)])
def test_solution_matches_gauss(k, columns, size):
    for seed in range(20):
        M = drawn(k, k, size, seed)
        B = drawn(k, columns, size, seed + 1000)
        wanted, determinant = naive_solution(M, B)
        found = solve_integers(M, B)
        assert (found is None) == (wanted is None)
        if found is not None:
            entries, scale = found
            assert abs(scale) == abs(determinant)  # up to the sign of the rows' exchange
            assert all(isinstance(entry, int) for row in entries for entry in row)
            assert [[Fraction(entry, scale) for entry in row] for row in entries] == wanted


def test_zero_pivot():
    assert solve_integers([[0, 1], [1, 0]], [[2], [3]]) in (([[3], [2]], 1), ([[-3], [-2]], -1))
    assert solve_integers([[0, 0, 2], [0, 3, 0], [5, 0, 0]], [[2], [3], [5]])[0][0][0] != 0


@pytest.mark.parametrize(
    "M", [[[0]], [[1, 2], [2, 4]], [[1, 0, 0], [0, 0, 1], [0, 0, 5]], [[1, 1, 0]] * 3]
)
def test_a_singular_matrix_has_no_solution(M):
    assert solve_integers(M, [[1]] * len(M)) is None


def test_arguments_are_not_changed():
    M = [[0, 1], [1, 1]]
    B = [[1], [2]]
    solve_integers(M, B)
    assert (M, B) == ([[0, 1], [1, 1]], [[1], [2]])


def test_right_sides_of_another_length_are_rejected():
    with pytest.raises(ValueError, match="zip"):
        solve_integers([[1, 0], [0, 1]], [[1]])


def test_empty_system():
    assert solve_integers([], []) == ([], 1)
