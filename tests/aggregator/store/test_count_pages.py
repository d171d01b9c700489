"""Pages of counts against plain counting."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.aggregator.store.count_pages import (
    PAGE_SIZE,
    decode_page,
    encode_page,
    histogram_pages,
    join_pages,
    split_pages,
)

LAWS = settings(max_examples=60, deadline=None, derandomize=True, database=None)

near_edges = st.sampled_from(
    [0, 1, PAGE_SIZE - 1, PAGE_SIZE, PAGE_SIZE + 1, 7 * PAGE_SIZE - 1, 7 * PAGE_SIZE]
)
reports = st.lists(near_edges | st.integers(0, 8 * PAGE_SIZE), min_size=1, max_size=200)


def by_report(pages):
    """Every count of some pages that is not zero, by its report."""
    return {
        page * PAGE_SIZE + i: int(n)
        for page, cells in pages.items()
        for i, n in enumerate(cells)
        if n
    }


@LAWS
@given(reports)
def test_histogram_pages_match_a_plain_count(numbers):
    pages = histogram_pages(np.array(numbers, dtype=np.uint32))
    assert by_report(pages) == Counter(numbers)
    assert set(pages) == {number // PAGE_SIZE for number in numbers}
    assert all(cells.shape == (PAGE_SIZE,) and cells.dtype == np.int64 for cells in pages.values())


def test_memory_grows_with_pages_not_with_the_largest_report():
    pages = histogram_pages(np.array([2**32 - 1, 0], dtype=np.uint32))
    assert by_report(pages) == {0: 1, 2**32 - 1: 1}
    assert len(pages) == 2


@LAWS
@given(st.lists(reports, min_size=1, max_size=4), st.integers(0, PAGE_SIZE))
def test_pages_of_several_parts_add_up_to_a_histogram(parts, more):
    outputs = max(map(max, parts)) + 1 + more
    stored = [
        (page, encode_page(cells))
        for part in parts
        for page, cells in histogram_pages(np.array(part, np.uint32)).items()
    ]
    expected = np.bincount(np.concatenate(parts), minlength=outputs)
    assert join_pages(stored, outputs).tolist() == expected.tolist()
    assert join_pages(reversed(stored), outputs).tolist() == expected.tolist()


@LAWS
@given(
    st.dictionaries(st.integers(0, 3 * PAGE_SIZE), st.integers(1, 2**62), max_size=20),
    st.integers(1, PAGE_SIZE),
)
def test_histograms_round_trip_without_empty_pages(counts, more):
    histogram = np.zeros(max(counts, default=0) + more, dtype=np.int64)
    for report, count in counts.items():
        histogram[report] = count
    pages = split_pages(histogram)
    assert set(pages) == {report // PAGE_SIZE for report in counts}
    assert np.array_equal(
        join_pages([(page, encode_page(cells)) for page, cells in pages.items()], histogram.size),
        histogram,
    )


def test_a_page_is_stored_little_endian():
    cells = np.zeros(PAGE_SIZE, dtype=np.int64)
    cells[0] = 1
    cells[-1] = 2**62
    stored = encode_page(cells)
    assert stored[:8] == b"\x01" + bytes(7)
    assert stored[-8:] == bytes(7) + b"\x40"
    assert len(stored) == 8 * PAGE_SIZE
    assert encode_page(cells.astype(">i8")) == stored
    assert np.array_equal(decode_page(stored), cells)


@pytest.mark.parametrize("outputs", [1, PAGE_SIZE - 1, PAGE_SIZE, PAGE_SIZE + 1])
def test_no_pages_give_a_histogram_of_zeros(outputs):
    found = join_pages([], outputs)
    assert (found.shape, found.any()) == ((outputs,), False)
