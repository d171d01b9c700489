"""Six minutes of `benchmarks/soak.py` with two workers on SQLite."""

import pytest

from support.soak import SoakPlan, run_soak


@pytest.mark.slow
def test_a_soak_of_six_minutes_passes(tmp_path):
    assert run_soak(SoakPlan(seconds=360, workers=2, folder=str(tmp_path))) == []
