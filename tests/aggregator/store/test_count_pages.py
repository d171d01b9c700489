"""Pages of counts against plain counting."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.aggregator.store.count_pages import PAGE, cells_of, dense, folded, page_bytes, pages_of

LAWS = settings(max_examples=60, deadline=None, derandomize=True, database=None)

near_edges = st.sampled_from([0, 1, PAGE - 1, PAGE, PAGE + 1, 7 * PAGE - 1, 7 * PAGE])
reports = st.lists(near_edges | st.integers(0, 8 * PAGE), min_size=1, max_size=200)


def by_report(pages):
    """Every count of some pages that is not zero, by its report."""
    return {
        page * PAGE + i: int(n) for page, cells in pages.items() for i, n in enumerate(cells) if n
    }


@LAWS
@given(reports)
def test_a_fold_is_a_plain_count_on_the_pages_that_are_hit(numbers):
    pages = folded(np.array(numbers, dtype=np.uint32))
    assert by_report(pages) == Counter(numbers)
    assert set(pages) == {number // PAGE for number in numbers}
    assert all(cells.shape == (PAGE,) and cells.dtype == np.int64 for cells in pages.values())


def test_memory_goes_with_the_pages_that_are_hit_and_not_with_the_largest_report():
    pages = folded(np.array([2**32 - 1, 0], dtype=np.uint32))
    assert by_report(pages) == {0: 1, 2**32 - 1: 1}
    assert len(pages) == 2


@LAWS
@given(st.lists(reports, min_size=1, max_size=4), st.integers(0, PAGE))
def test_pages_of_several_parts_add_up_to_a_histogram(parts, more):
    outputs = max(map(max, parts)) + 1 + more
    stored = [
        (page, page_bytes(cells))
        for part in parts
        for page, cells in folded(np.array(part, np.uint32)).items()
    ]
    expected = np.bincount(np.concatenate(parts), minlength=outputs)
    assert dense(stored, outputs).tolist() == expected.tolist()
    assert dense(reversed(stored), outputs).tolist() == expected.tolist()


@LAWS
@given(
    st.dictionaries(st.integers(0, 3 * PAGE), st.integers(1, 2**62), max_size=20),
    st.integers(1, PAGE),
)
def test_a_histogram_comes_back_from_its_pages_and_empty_pages_are_not_stored(counts, more):
    histogram = np.zeros(max(counts, default=0) + more, dtype=np.int64)
    for report, count in counts.items():
        histogram[report] = count
    pages = pages_of(histogram)
    assert set(pages) == {report // PAGE for report in counts}
    assert np.array_equal(
        dense([(page, page_bytes(cells)) for page, cells in pages.items()], histogram.size),
        histogram,
    )


def test_a_page_is_stored_little_endian():
    cells = np.zeros(PAGE, dtype=np.int64)
    cells[0], cells[-1] = 1, 2**62
    stored = page_bytes(cells)
    assert stored[:8] == b"\x01" + bytes(7)
    assert stored[-8:] == bytes(7) + b"\x40"
    assert len(stored) == 8 * PAGE
    assert page_bytes(cells.astype(">i8")) == stored
    assert np.array_equal(cells_of(stored), cells)


@pytest.mark.parametrize("outputs", [1, PAGE - 1, PAGE, PAGE + 1])
def test_nothing_stored_is_a_histogram_of_zeros(outputs):
    found = dense([], outputs)
    assert (found.shape, found.any()) == ((outputs,), False)
