"""Solve linear systems of integers exactly."""


def solve_integers(M: list[list[int]], B: list[list[int]]) -> tuple[list[list[int]], int] | None:
    """Return ``(det M) · M⁻¹ B`` and ``det M``, or None if M is singular.

    Fraction-free elimination (Bareiss 1968): every entry stays an integer.

    >>> solve_integers([[2, 1], [1, 3]], [[1], [0]])
    ([[3], [-1]], 5)
    """
    k = len(M)
    table = [[*row, *right] for row, right in zip(M, B, strict=True)]
    previous = 1
    for i in range(k):
        pivot = next((row for row in range(i, k) if table[row][i]), None)
        if pivot is None:
            return None
        table[i], table[pivot] = table[pivot], table[i]
        head = table[i][i]
        for row in range(k):
            if row != i:
                table[row] = _eliminate(table[row], table[i], table[row][i], head, previous)
        previous = head
    return [row[k:] for row in table], previous


def _eliminate(
    row: list[int], pivot_row: list[int], factor: int, head: int, previous: int
) -> list[int]:
    """Clear the pivot's column from one row. The division is exact."""
    entries = zip(row, pivot_row, strict=True)
    return [(head * a - factor * b) // previous for a, b in entries]
