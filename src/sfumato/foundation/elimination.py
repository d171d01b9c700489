"""Solve integer linear systems exactly."""


def solve_integers(M: list[list[int]], B: list[list[int]]) -> tuple[list[list[int]], int] | None:
    """Return ``d · M⁻¹ B`` and d, where d is ``det M`` up to sign, or None if M is singular.

    Fraction-free elimination (Bareiss 1968) keeps every entry an integer.

    >>> solve_integers([[2, 1], [1, 3]], [[1], [0]])
    ([[3], [-1]], 5)
    """
    k = len(M)
    augmented = [[*left, *right] for left, right in zip(M, B, strict=True)]
    previous_pivot = 1
    for i in range(k):
        pivot_index = next((row for row in range(i, k) if augmented[row][i]), None)
        if pivot_index is None:
            return None
        augmented[i], augmented[pivot_index] = augmented[pivot_index], augmented[i]
        pivot_row = augmented[i]
        for row in range(k):
            if row != i:
                augmented[row] = _eliminate(augmented[row], pivot_row, i, previous_pivot)
        previous_pivot = pivot_row[i]
    return [row[k:] for row in augmented], previous_pivot


def _eliminate(row: list[int], pivot_row: list[int], column: int, previous_pivot: int) -> list[int]:
    """Return ``row`` with a zero in the pivot's column. The division is exact."""
    pivot = pivot_row[column]
    factor = row[column]
    entries = zip(row, pivot_row, strict=True)
    return [(pivot * a - factor * b) // previous_pivot for a, b in entries]
