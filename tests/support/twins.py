"""Slow, obvious twins and tools that several tests share."""

import traceback
from fractions import Fraction


def naive_closure(rows: list[list[Fraction | float]]) -> list[list[Fraction | float]]:
    """Relax every pair by every detour and make zeros mutual, in fractions, until nothing changes."""
    E, k = [list(row) for row in rows], range(len(rows))
    while True:
        before = [list(row) for row in E]
        for x in k:
            for x2 in k:
                E[x][x2] = min(E[x][x2], *(E[x][z] + E[z][x2] for z in k))
                if E[x2][x] == 0:
                    E[x][x2] = Fraction(0)
        if before == E:
            return E


def all_said(error):
    """Everything that an error, and all errors behind it, say; and the traceback that a log would show."""
    said, seen = [], error
    while seen is not None:
        said += [str(seen), repr(seen), repr(seen.args), repr(vars(seen))]
        seen = seen.__cause__ or seen.__context__
    return "\n".join([*said, *traceback.format_exception(error)])
