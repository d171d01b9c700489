"""Mark the cases of a sweep that only `make test-slow` runs."""

from collections.abc import Collection, Iterable

import pytest


def slow_except(fast: Collection, cases: Iterable) -> list:
    """Return the cases with all but those in ``fast`` marked slow."""
    marked = []
    for case in cases:
        values = case if isinstance(case, tuple) else (case,)
        marks = () if case in fast else pytest.mark.slow
        marked.append(pytest.param(*values, marks=marks))
    return marked
