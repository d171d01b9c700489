"""Laws of tallies, for streams that nobody thought of."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidTally, ReportRejected, WrongSurvey
from sfumato.tally import Tally, tally_batches

OUTPUTS = 7
LAWS = settings(max_examples=150, deadline=None, derandomize=True, database=None)

reports = st.lists(st.integers(0, OUTPUTS - 1), max_size=60)
batches = st.lists(reports, max_size=8)
counts = st.lists(st.integers(0, 2**59), min_size=1, max_size=7)
fingerprints = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=70)


def _tally(batch, fingerprint="survey"):
    return Tally.from_reports(batch, outputs=OUTPUTS, fingerprint=fingerprint)


@LAWS
@given(reports)
def test_a_tally_is_a_naive_count(batch):
    tally = _tally(batch)
    assert tally.counts.tolist() == [batch.count(y) for y in range(OUTPUTS)]
    assert tally.reports == len(batch)


@LAWS
@given(batches, st.randoms(use_true_random=False))
def test_parts_in_any_order_add_up_to_the_whole(parts, random):
    whole = _tally([report for part in parts for report in part])
    shuffled = random.sample(parts, len(parts))
    assert sum((_tally(part) for part in shuffled), start=_tally([])) == whole
    assert tally_batches(iter(shuffled), outputs=OUTPUTS, fingerprint="survey") == whole
    assert tally_batches(map(np.array, parts), outputs=OUTPUTS, fingerprint="survey") == whole


@LAWS
@given(reports, reports, reports)
def test_addition_is_commutative_and_associative(a, b, c):
    A = _tally(a)
    B = _tally(b)
    C = _tally(c)
    assert A + B == B + A
    assert (A + B) + C == A + (B + C)
    assert hash(A + B) == hash(B + A)


@LAWS
@given(counts, fingerprints)
def test_a_saved_tally_loads_as_itself(numbers, fingerprint):
    tally = Tally(numbers, fingerprint)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "tally.npz"
        tally.save(path)
        loaded = Tally.load(path)
    assert loaded == tally
    assert loaded.fingerprint == fingerprint


@LAWS
@given(reports, st.integers().filter(lambda report: not 0 <= report < OUTPUTS), reports)
def test_a_report_outside_rejects_the_batch_and_is_not_echoed(before, bad, after):
    batch = [*before, bad, *after]
    with pytest.raises(ReportRejected) as caught:
        _tally(batch)
    if -(2**63) <= bad < 2**63:
        assert f"1 of {len(batch)}" in str(caught.value)
        assert f"position {len(before)}" in str(caught.value)
    if abs(bad) > 1000:
        assert str(bad) not in str(caught.value)


@LAWS
@given(st.lists(st.integers(-(2**70), 2**70), min_size=1, max_size=6))
def test_counts_are_accepted_exactly_when_they_can_be_a_tally(numbers):
    if min(numbers) >= 0 and sum(numbers) <= 2**62:
        tally = Tally(numbers, "survey")
        assert tally.counts.tolist() == numbers
        assert tally.reports == sum(numbers)
    else:
        with pytest.raises(InvalidTally):
            Tally(numbers, "survey")


@LAWS
@given(st.lists(st.integers(0, 2**62), min_size=1, max_size=4), st.data())
def test_a_sum_is_exact_or_refused(numbers, data):
    others = data.draw(
        st.lists(st.integers(0, 2**62), min_size=len(numbers), max_size=len(numbers))
    )
    if max(sum(numbers), sum(others)) > 2**62:
        return
    A = Tally(numbers, "survey")
    B = Tally(others, "survey")
    if sum(numbers) + sum(others) <= 2**62:
        assert (A + B).counts.tolist() == [a + b for a, b in zip(numbers, others, strict=True)]
    else:
        with pytest.raises(InvalidTally):
            A + B


@LAWS
@given(reports, fingerprints, fingerprints)
def test_tallies_add_up_only_with_equal_fingerprints(batch, first, second):
    A = _tally(batch, first)
    B = _tally(batch, second)
    if first == second:
        assert (A + B).reports == 2 * len(batch)
    else:
        with pytest.raises(WrongSurvey):
            A + B
