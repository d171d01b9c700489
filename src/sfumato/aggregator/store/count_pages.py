"""Counts in pages: a commit rewrites the pages that its reports fall on, not the whole histogram."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

__all__ = ["PAGE", "cells_of", "dense", "folded", "page_bytes", "pages_of"]

PAGE = 4096
"""Counts in a page: 32 KiB. Few statements for a crowded histogram, few bytes for a sparse one."""


def folded(reports: NDArray[np.uint32]) -> dict[int, NDArray[np.int64]]:
    """The histogram of some reports: the pages that they fall on, by their numbers.

    >>> {page: cells.nonzero()[0].tolist() for page, cells in folded(np.array([1, 4098, 1], np.uint32)).items()}
    {0: [1], 1: [2]}
    """
    page_of = reports // PAGE
    hit = np.flatnonzero(np.bincount(page_of, minlength=1))
    # Pages that are hit move together, so that memory goes with the reports and not with the outputs.
    place = np.zeros(int(hit[-1]) + 1, dtype=np.int64)
    place[hit] = np.arange(hit.size)
    cells = np.bincount(place[page_of] * PAGE + reports % PAGE, minlength=hit.size * PAGE)
    return dict(zip(hit.tolist(), cells.reshape(hit.size, PAGE), strict=True))


def pages_of(counts: NDArray[np.int64]) -> dict[int, NDArray[np.int64]]:
    """The pages of a histogram that hold anything."""
    padded = np.zeros(-(-counts.size // PAGE) * PAGE, dtype=np.int64)
    padded[: counts.size] = counts
    return {page: cells for page, cells in enumerate(padded.reshape(-1, PAGE)) if cells.any()}


def dense(pages: Iterable[tuple[int, bytes]], outputs: int) -> NDArray[np.int64]:
    """All counts, from pages in any order; a page may come several times, once for each part."""
    counts = np.zeros(-(-outputs // PAGE) * PAGE, dtype=np.int64)
    for page, cells in pages:
        counts[page * PAGE : (page + 1) * PAGE] += cells_of(cells)
    return counts[:outputs]


def cells_of(stored: bytes) -> NDArray[np.int64]:
    """A page as it is stored, little-endian."""
    return np.frombuffer(stored, dtype="<i8")


def page_bytes(cells: NDArray[np.int64]) -> bytes:
    """A page to be stored."""
    return cells.astype("<i8", copy=False).tobytes()
