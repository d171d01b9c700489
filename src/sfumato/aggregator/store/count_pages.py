"""Pages of counts: a commit rewrites only the pages that its reports fall on."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "PAGE_SIZE",
    "decode_page",
    "encode_page",
    "histogram_pages",
    "join_pages",
    "split_pages",
]

PAGE_SIZE = 4096
"""Counts per page (32 KiB): few statements if counts are dense, few bytes if they are sparse."""


def histogram_pages(reports: NDArray[np.uint32]) -> dict[int, NDArray[np.int64]]:
    """Count reports. Return the pages that they fall on by number.

    >>> pages = histogram_pages(np.array([1, 4098, 1], np.uint32))
    >>> {number: page.nonzero()[0].tolist() for number, page in pages.items()}
    {0: [1], 1: [2]}
    """
    page_of = reports // PAGE_SIZE
    numbers = np.flatnonzero(np.bincount(page_of, minlength=1))
    # Number the pages in use consecutively: memory grows with the reports, not with the outputs.
    place = np.zeros(int(numbers[-1]) + 1, dtype=np.int64)
    place[numbers] = np.arange(numbers.size)
    cell = place[page_of] * PAGE_SIZE + reports % PAGE_SIZE
    counts = np.bincount(cell, minlength=numbers.size * PAGE_SIZE)
    return dict(zip(numbers.tolist(), counts.reshape(-1, PAGE_SIZE), strict=True))


def split_pages(counts: NDArray[np.int64]) -> dict[int, NDArray[np.int64]]:
    """Split a histogram into pages. Return the nonempty ones by number."""
    padded = np.zeros(_round_up(counts.size), dtype=np.int64)
    padded[: counts.size] = counts
    pages = enumerate(padded.reshape(-1, PAGE_SIZE))
    return {number: page for number, page in pages if page.any()}


def join_pages(pages: Iterable[tuple[int, bytes]], outputs: int) -> NDArray[np.int64]:
    """Add up stored pages, in any order. A page number occurs once per part and day."""
    counts = np.zeros(_round_up(outputs), dtype=np.int64)
    for number, stored in pages:
        start = number * PAGE_SIZE
        counts[start : start + PAGE_SIZE] += decode_page(stored)
    return counts[:outputs]


def decode_page(stored: bytes) -> NDArray[np.int64]:
    """Decode a stored page: little-endian 64-bit integers."""
    return np.frombuffer(stored, dtype="<i8")


def encode_page(page: NDArray[np.int64]) -> bytes:
    """Encode a page for the store."""
    return page.astype("<i8", copy=False).tobytes()


def _round_up(outputs: int) -> int:
    return -(-outputs // PAGE_SIZE) * PAGE_SIZE
