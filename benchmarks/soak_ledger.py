"""What a soak sent to each survey, and what the aggregator must have counted because of it."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sfumato.survey import Survey
from upload_load import Request, make_request, random_outputs

__all__ = ["Faults", "SurveyRecord", "Upload"]

_SINGLE_UPLOADS = 64
_BULK_SIZES = (1, 300, 2000)
_MAX_EARLIER = 5000
"""How many acknowledged uploads of each survey can be sent again."""


class Faults:
    """What went wrong, and how often."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, fault: str) -> None:
        """Note a fault."""
        self._counts[fault] += 1

    @property
    def lines(self) -> list[str]:
        """Each fault, and how often it occurred."""
        return [f"{fault} (×{count})" for fault, count in self._counts.items()]


@dataclass(frozen=True, eq=False)
class Upload:
    """A request that can be sent under any identifier, and the reports in it."""

    request: Request
    outputs: NDArray[np.uint32]

    @classmethod
    def make(
        cls, survey: Survey, reports: int, seed: int, *, token: str = "", arrow: bool = False
    ) -> Self:
        """Return an upload of random reports."""
        request = make_request(survey, reports, seed, token=token, arrow=arrow)
        return cls(request, random_outputs(survey, reports, seed))

    def to_bytes(self, identifier: bytes) -> bytes:
        """Return the request with an identifier of 32 hexadecimal digits."""
        start, end = self.request
        return start + identifier + end


@dataclass(eq=False)
class SurveyRecord:
    """A survey, its prepared uploads, and the counts that were acknowledged and exported.

    ``last_export_count``: how many reports were acknowledged at the last export.
    ``state`` is "changing" while a request changes it. ``changes`` counts the changes.
    """

    survey: Survey
    singles: list[Upload]
    bulk: list[Upload]
    acknowledged: NDArray[np.int64]
    exported: NDArray[np.int64]
    last_export_count: int = 0
    state: str = "open"
    changes: int = 0
    earlier: list[tuple[Upload, bytes]] = field(default_factory=list)

    @classmethod
    def make(cls, survey: Survey, key: str) -> Self:
        """Prepare uploads to a survey. ``key``: the key of one of its bulk senders."""
        bulk = []
        for seed, size in enumerate(_BULK_SIZES):
            bulk.append(Upload.make(survey, size, seed, token=key))
            bulk.append(Upload.make(survey, size, seed, token=key, arrow=True))
        outputs = survey.mechanism.outputs
        return cls(
            survey,
            [Upload.make(survey, 1, seed) for seed in range(_SINGLE_UPLOADS)],
            bulk,
            np.zeros(outputs, dtype=np.int64),
            np.zeros(outputs, dtype=np.int64),
        )

    @property
    def report_count(self) -> int:
        """The number of acknowledged reports."""
        return int(self.acknowledged.sum())

    @property
    def version(self) -> tuple[str, int]:
        """The state, and which of its periods it is."""
        return self.state, self.changes

    def acknowledge(
        self, upload: Upload, identifier: bytes, generator: np.random.Generator
    ) -> None:
        """Note that an upload was counted."""
        np.add.at(self.acknowledged, upload.outputs, 1)
        if len(self.earlier) < _MAX_EARLIER:
            self.earlier.append((upload, identifier))
        else:
            self.earlier[int(generator.integers(_MAX_EARLIER))] = (upload, identifier)

    def statuses_to_expect(self, version: tuple[str, int], *, is_repeat: bool) -> set[int]:
        """Return the statuses of an upload that was sent when the record had this version."""
        usual = {200} if is_repeat else {201}
        if version != self.version or self.state == "changing":
            return usual | {410}
        return usual if self.state == "open" else {410}
