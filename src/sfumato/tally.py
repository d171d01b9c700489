"""Tallies: histograms of reports, which can be added in any order with the same result."""

import os
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.domains import all_in_range, describe_kind
from sfumato.errors import InvalidTally, ReportRejected, WrongSurvey
from sfumato.foundation.files import atomic_file
from sfumato.foundation.notebook import facts_html
from sfumato.foundation.numpy_values import require_unmasked

__all__ = ["Tally", "tally_batches"]

_FORMAT = 1
_MAX_TOTAL = 2**62
_MISSING: Any = None  # a missing fingerprint gets an error that shows the right call
_COUNTING_ADVICE = "To count reports, call mechanism.tally(reports) or survey.tally(reports)."
_CHUNK_SIZE = 2**14  # this many 64-bit reports fit in the CPU cache along with their counts


@dataclass(frozen=True, eq=False)
class Tally:
    """How often each report was received, and which mechanism or survey the reports belong to.

    ``counts[y]``: how often report y was received.
    ``fingerprint``: the fingerprint of the mechanism or survey.

    Addition is commutative. The tally of all reports is the sum of the tallies of their batches.
    Adding a tally with a different fingerprint or number of outputs raises
    ``WrongSurvey``.

    >>> a = Tally.from_reports([0, 2, 2], outputs=3, fingerprint="lunch")
    >>> (a + a).counts, (a + a).reports
    (array([2, 0, 4]), 6)
    """

    counts: NDArray[np.int64]
    fingerprint: str = _MISSING

    def __post_init__(self) -> None:
        if not isinstance(self.fingerprint, str):
            raise InvalidTally(
                "a tally needs the fingerprint of the mechanism or survey that its reports belong "
                f"to, as text. {_COUNTING_ADVICE}"
            )
        counts = _as_array(self.counts)
        if counts.dtype.kind not in "iu" or counts.ndim != 1 or counts.size == 0:
            raise InvalidTally(
                "counts must be a one-dimensional array of integers, one for each possible report; "
                f"got {describe_kind(counts)}, shape {counts.shape}. {_COUNTING_ADVICE}"
            )
        # The total is at most the largest count times the number of counts. Compute the exact
        # total only if that bound is too large.
        bound = int(counts.max()) * counts.size
        is_too_large = bound > _MAX_TOTAL and sum(counts.tolist()) > _MAX_TOTAL
        if (counts < 0).any() or is_too_large:
            raise InvalidTally("counts must be non-negative and add up to at most 2^62.")
        counts = counts.astype(np.int64)
        counts.flags.writeable = False
        object.__setattr__(self, "counts", counts)

    @classmethod
    def from_reports(cls, reports: ArrayLike, *, outputs: int, fingerprint: str) -> Self:
        """Count one batch of reports; reject it if a report is not in ``0 … outputs − 1``."""
        counts = np.zeros(outputs, dtype=np.int64)
        _add_to_counts(counts, reports)
        return cls(counts, fingerprint)

    @property
    def reports(self) -> int:
        """The number of reports, n."""
        return int(self.counts.sum())

    @property
    def outputs(self) -> int:
        """The number of possible reports."""
        return self.counts.size

    def require(self, fingerprint: str, outputs: int) -> None:
        """Raise ``WrongSurvey`` unless the tally has this fingerprint and number of outputs."""
        if self.fingerprint != fingerprint or self.outputs != outputs:
            raise WrongSurvey(
                f"this tally belongs to {self.fingerprint[:12]}… with {self.outputs} outputs; "
                f"expected {fingerprint[:12]}… with {outputs}. Use the mechanism or survey that "
                "produced the reports."
            )

    def __add__(self, other: "Tally") -> "Tally":
        if not isinstance(other, Tally):
            return NotImplemented
        other.require(self.fingerprint, self.outputs)
        return Tally(self.counts + other.counts, self.fingerprint)

    def __radd__(self, other: object) -> "Tally":
        """Support ``sum(tallies)``, which starts from 0."""
        return self if other == 0 and isinstance(other, int) else NotImplemented

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tally):
            return NotImplemented
        return self.fingerprint == other.fingerprint and np.array_equal(self.counts, other.counts)

    def __hash__(self) -> int:
        return hash((self.fingerprint, self.counts.tobytes()))

    def __repr__(self) -> str:
        return (
            f"Tally({self.reports} reports, {self.outputs} outputs, "
            f"fingerprint={self.fingerprint[:12]}…)"
        )

    def _repr_html_(self) -> str:
        """Return the size of the tally as HTML, for notebooks."""
        facts = {
            "reports": f"{self.reports:,}",
            "distinct reports": f"{np.count_nonzero(self.counts):,} of {self.outputs:,} possible",
            "fingerprint": self.fingerprint,
        }
        return facts_html("Tally", facts)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tally to an ``.npz`` file, atomically and without pickles."""
        with atomic_file(path) as file:
            np.savez(
                file, format=_FORMAT, fingerprint=np.array(self.fingerprint), counts=self.counts
            )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a saved tally; raise ``InvalidTally`` if the file is damaged or not a tally."""
        name = Path(path).name
        try:
            with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as archive:
                version = archive["format"]
                fingerprint = archive["fingerprint"]
                counts = archive["counts"]
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
            raise InvalidTally(f"{name} has a format that this version cannot read.")
        if fingerprint.shape != () or fingerprint.dtype.kind != "U":
            raise InvalidTally(f"{name} has no valid fingerprint.")
        return cls(counts, str(fingerprint))


def tally_batches(batches: Iterable[ArrayLike], *, outputs: int, fingerprint: str) -> Tally:
    """Count a stream of batches, with only one batch in memory at a time."""
    counts = np.zeros(outputs, dtype=np.int64)
    for batch in batches:
        _add_to_counts(counts, batch)
    return Tally(counts, fingerprint)


def _as_array(counts: ArrayLike) -> np.ndarray:
    """Return counts as a new array; a ragged sequence becomes an array of objects."""
    require_unmasked(counts, "counts", InvalidTally)
    try:
        return np.array(counts)
    except (ValueError, TypeError):
        return np.empty(0, dtype=object)


def _add_to_counts(counts: NDArray[np.int64], reports: ArrayLike) -> None:
    """Add a batch of reports to ``counts``.

    The running time depends only on the size of the batch, not on the number of outputs, which may
    be far larger.
    """
    require_unmasked(reports, "reports", ReportRejected)
    try:
        array = np.asarray(reports)
    except (ValueError, TypeError):
        raise ReportRejected(
            "reports must be a one-dimensional array of integers; got a ragged sequence."
        ) from None
    if array.size == 0:
        return
    if array.dtype.kind not in "iu" or array.ndim != 1:
        shape_text = "" if array.ndim == 1 else f" in {array.ndim} dimensions"
        raise ReportRejected(
            "reports must be a one-dimensional array of integers; got "
            f"{describe_kind(array)}{shape_text}. Reports are what privatize "
            "returns; randomize answers first: survey.privatize(answers)."
        )
    outputs = counts.size
    if not all_in_range(array, outputs):
        is_invalid = (array < 0) | (array >= outputs)
        first = int(np.argmax(is_invalid))
        raise ReportRejected(
            f"reports must be in 0..{outputs - 1}; {int(is_invalid.sum())} of {array.size} are not "
            f"(the first is at position {first}). They come from a different mechanism or a broken "
            "client.",
            index=first,
        )
    for start in range(0, array.size, _CHUNK_SIZE):
        chunk = array[start : start + _CHUNK_SIZE]
        np.add.at(counts, chunk.astype(np.intp, copy=False), 1)
