"""Format numbers: bounds are never rounded down."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.foundation.formatting import format_upper_bound


@pytest.mark.parametrize(
    ("bound", "digits", "text"),
    [
        (0, 3, "0"),
        (0.0322, 3, "0.0322"),
        (0.03221, 3, "0.0323"),
        (0.03221, 2, "0.033"),
        (0.3 - 0.1, 2, "0.2"),  # 0.19999999999999998
        (0.1 + 0.2, 3, "0.3"),  # 0.30000000000000004
        (1.5, 3, "1.5"),
        (9.991, 3, "10"),
        (12345, 3, "12,400"),
    ],
)
def test_bounds_are_never_rounded_down(bound, digits, text):
    assert format_upper_bound(bound, digits) == text


@given(st.floats(1e-9, 1e9), st.integers(1, 6))
def test_a_bound_is_rounded_up_by_less_than_one_unit(bound, digits):
    shown = float(format_upper_bound(bound, digits).replace(",", ""))
    assert bound * (1 - 1e-8) <= shown <= bound * (1 + 1.01 * 10.0 ** (1 - digits))
