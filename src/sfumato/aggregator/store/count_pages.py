"""Pages of counts: a commit rewrites only the pages that its reports change.

A stored page has the smallest integers that hold its counts, because a commit writes whole pages.
"""

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
"""Counts per page (4 to 32 KiB): dense counts need few statements, and sparse ones few bytes."""

_STORED_TYPES = tuple(np.dtype(name) for name in ("<u1", "<u2", "<u4", "<i8"))


def histogram_pages(reports: NDArray[np.uint32]) -> dict[int, NDArray[np.int64]]:
    """Count reports. Return the non-empty pages of counts, by page number.

    >>> pages = histogram_pages(np.array([1, 4098, 1], np.uint32))
    >>> {number: page.nonzero()[0].tolist() for number, page in pages.items()}
    {0: [1], 1: [2]}
    """
    page_numbers = reports // PAGE_SIZE
    used_pages = np.flatnonzero(np.bincount(page_numbers, minlength=1))
    # Renumber the used pages consecutively, so that the memory needed depends on the number of
    # reports, not on the number of outputs.
    consecutive_numbers = np.zeros(int(used_pages[-1]) + 1, dtype=np.int64)
    consecutive_numbers[used_pages] = np.arange(used_pages.size)
    cells = consecutive_numbers[page_numbers] * PAGE_SIZE + reports % PAGE_SIZE
    counts = np.bincount(cells, minlength=used_pages.size * PAGE_SIZE)
    return dict(zip(used_pages.tolist(), counts.reshape(-1, PAGE_SIZE), strict=True))


def split_pages(counts: NDArray[np.int64]) -> dict[int, NDArray[np.int64]]:
    """Split counts into pages. Return the non-empty pages, by page number."""
    padded = np.zeros(_round_up(counts.size), dtype=np.int64)
    padded[: counts.size] = counts
    pages = enumerate(padded.reshape(-1, PAGE_SIZE))
    return {number: page for number, page in pages if page.any()}


def join_pages(pages: Iterable[tuple[int, bytes]], outputs: int) -> NDArray[np.int64]:
    """Add up stored pages and return all counts. A page number may occur several times."""
    counts = np.zeros(_round_up(outputs), dtype=np.int64)
    for number, stored in pages:
        start = number * PAGE_SIZE
        counts[start : start + PAGE_SIZE] += decode_page(stored)
    return counts[:outputs]


def decode_page(stored: bytes) -> NDArray[np.int64]:
    """Decode a stored page. Its length says how wide its integers are."""
    width = len(stored) // PAGE_SIZE
    stored_type = next(dtype for dtype in _STORED_TYPES if dtype.itemsize == width)
    return np.frombuffer(stored, dtype=stored_type).astype(np.int64)


def encode_page(page: NDArray[np.int64]) -> bytes:
    """Encode a page as little-endian integers of 1, 2, 4 or 8 bytes."""
    largest = int(page.max())
    stored_type = next(dtype for dtype in _STORED_TYPES if largest <= np.iinfo(dtype).max)
    return page.astype(stored_type).tobytes()


def _round_up(size: int) -> int:
    return -(-size // PAGE_SIZE) * PAGE_SIZE
