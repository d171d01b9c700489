"""Tallies: the histogram of reports. They add up, in any order, to the same integers."""

import os
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.domains.symbols import all_below, kind_of
from sfumato.errors import InvalidTally, ReportRejected, WrongSurvey
from sfumato.foundation.files import atomic_file

__all__ = ["Tally", "tally_of_batches"]

_FORMAT = 1
_LARGEST_COUNT = 2**62
_CHUNK = 2**14  # reports that fit the cache, widened, together with their counts


@dataclass(frozen=True, eq=False)
class Tally:
    """How often each report was received, and which mechanism or survey the reports belong to.

    Guarantees: ``a + b == b + a``; a tally of everything equals the sum of tallies of any parts; a
    tally with another fingerprint, or with another number of outputs, is refused.

    >>> a = Tally.of([0, 2, 2], outputs=3, fingerprint="lunch")
    >>> (a + a).counts, (a + a).reports
    (array([2, 0, 4]), 6)
    """

    counts: NDArray[np.int64]
    fingerprint: str

    def __post_init__(self) -> None:
        counts = np.array(self.counts)
        if counts.dtype.kind not in "iu" or counts.ndim != 1 or counts.size == 0:
            raise InvalidTally(
                f"counts must be a row of integers; found {kind_of(counts)}, shape {counts.shape}."
            )
        # The largest count times their number bounds the sum without adding up; add exactly if it must be.
        bound = int(counts.max()) * counts.size
        if (counts < 0).any() or (bound > _LARGEST_COUNT and sum(counts.tolist()) > _LARGEST_COUNT):
            raise InvalidTally("counts must be non-negative and add up to at most 2^62.")
        counts = counts.astype(np.int64)
        counts.flags.writeable = False
        object.__setattr__(self, "counts", counts)

    @classmethod
    def of(cls, reports: ArrayLike, *, outputs: int, fingerprint: str) -> Self:
        """Count one batch of reports; a report that is not in ``0 … outputs − 1`` rejects the batch."""
        counts = np.zeros(outputs, dtype=np.int64)
        _count_into(counts, reports)
        return cls(counts, fingerprint)

    @property
    def reports(self) -> int:
        """The number of reports, n."""
        return int(self.counts.sum())

    @property
    def outputs(self) -> int:
        """The number of different reports there can be."""
        return self.counts.size

    def require(self, fingerprint: str, outputs: int) -> None:
        """Refuse to be taken for another mechanism's tally."""
        if self.fingerprint != fingerprint or self.outputs != outputs:
            raise WrongSurvey(
                f"this tally belongs to {self.fingerprint[:12]}… with {self.outputs} outputs; expected "
                f"{fingerprint[:12]}… with {outputs}. Use the mechanism or survey that the reports were made with."
            )

    def __add__(self, other: "Tally") -> "Tally":
        if not isinstance(other, Tally):
            return NotImplemented
        other.require(self.fingerprint, self.outputs)
        return Tally(self.counts + other.counts, self.fingerprint)

    def __radd__(self, other: object) -> "Tally":
        """``sum(tallies)`` starts from 0."""
        return self if other == 0 and isinstance(other, int) else NotImplemented

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tally):
            return NotImplemented
        return self.fingerprint == other.fingerprint and np.array_equal(self.counts, other.counts)

    def __hash__(self) -> int:
        return hash((self.fingerprint, self.counts.tobytes()))

    def __repr__(self) -> str:
        return f"Tally({self.reports} reports, {self.outputs} outputs, fingerprint={self.fingerprint[:12]}…)"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tally to a file that appears whole or not at all (NumPy's ``.npz``, no pickles)."""
        with atomic_file(path) as file:
            np.savez(
                file, format=_FORMAT, fingerprint=np.array(self.fingerprint), counts=self.counts
            )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a saved tally; a damaged or foreign file is refused whole."""
        name = Path(path).name
        try:
            with Path(path).open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                version, fingerprint, counts = file["format"], file["fingerprint"], file["counts"]
        except FileNotFoundError:
            raise
        except (
            ValueError,
            LookupError,
            EOFError,
            TypeError,
            RuntimeError,
            OSError,
            zipfile.BadZipFile,
        ) as problem:
            raise InvalidTally(f"{name} is not a tally file, or is damaged.") from problem
        if version.shape != () or version.dtype.kind not in "iu" or int(version) != _FORMAT:
            raise InvalidTally(f"{name} has a format that this version does not read.")
        if fingerprint.shape != () or fingerprint.dtype.kind != "U":
            raise InvalidTally(f"{name} does not say which mechanism its counts belong to.")
        return cls(counts, str(fingerprint))


def tally_of_batches(batches: Iterable[ArrayLike], *, outputs: int, fingerprint: str) -> Tally:
    """Count a stream of batches in memory for one of them."""
    counts = np.zeros(outputs, dtype=np.int64)
    for batch in batches:
        _count_into(counts, batch)
    return Tally(counts, fingerprint)


def _count_into(counts: NDArray[np.int64], reports: ArrayLike) -> None:
    """Add a batch of reports to counts, in time for the batch alone: there may be more outputs than reports."""
    try:
        array = np.asarray(reports)
    except (ValueError, TypeError):
        raise ReportRejected(
            "reports must be a row of integers; found a ragged sequence."
        ) from None
    if array.size == 0:
        return
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise ReportRejected(f"reports must be a row of integers; found {kind_of(array)}.")
    outputs = counts.size
    if not all_below(array, outputs):
        wrong = (array < 0) | (array >= outputs)
        raise ReportRejected(
            f"reports must lie in 0..{outputs - 1}; {int(wrong.sum())} of {array.size} do not (the first at "
            f"position {int(np.argmax(wrong))}). They come from another mechanism or a broken client.",
            index=int(np.argmax(wrong)),
        )
    for start in range(0, array.size, _CHUNK):
        np.add.at(counts, array[start : start + _CHUNK].astype(np.intp, copy=False), 1)
