"""A batch of reports: what people send, with the fingerprint of the survey that they answer."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["ReportBatch"]


@dataclass(frozen=True, eq=False, repr=False)
class ReportBatch:
    """Reports as integers, and the fingerprint of the survey that they belong to."""

    numbers: NDArray[np.uint32]
    fingerprint: str

    def __len__(self) -> int:
        return len(self.numbers)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ReportBatch):
            return NotImplemented
        return self.fingerprint == other.fingerprint and np.array_equal(self.numbers, other.numbers)

    def __hash__(self) -> int:
        return hash((self.fingerprint, self.numbers.tobytes()))

    def __repr__(self) -> str:
        return f"ReportBatch({len(self)} reports, fingerprint={self.fingerprint[:12]}…)"
