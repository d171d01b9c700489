"""Linear systems of integers, solved exactly."""

__all__ = ["solved"]


def solved(M: list[list[int]], B: list[list[int]]) -> tuple[list[list[int]], int] | None:
    """``(det M) · M⁻¹ B`` and ``det M``, by fraction-free elimination (Bareiss 1968): every entry stays an integer.

    ``None`` if M is singular.

    >>> solved([[2, 1], [1, 3]], [[1], [0]])
    ([[3], [-1]], 5)
    """
    k = len(M)
    table = [[*row, *other] for row, other in zip(M, B, strict=True)]
    previous = 1
    for i in range(k):
        pivot = next((row for row in range(i, k) if table[row][i]), None)
        if pivot is None:
            return None
        table[i], table[pivot] = table[pivot], table[i]
        for row in range(k):
            if row != i:
                factor, head = table[row][i], table[i][i]
                table[row] = [
                    (head * a - factor * b) // previous
                    for a, b in zip(table[row], table[i], strict=True)
                ]
        previous = table[i][i]
    return [row[k:] for row in table], previous
