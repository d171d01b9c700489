"""What the uploads to one survey must look like."""

from dataclasses import dataclass
from datetime import datetime
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sfumato.batches.batch import Batch
from sfumato.batches.tally_format import TallyExport
from sfumato.cells import NO_KEY, CellKey
from sfumato.errors import InvalidBatch, InvalidTally
from sfumato.foundation.periods import period_start, recent_period
from sfumato.survey import Survey

__all__ = ["UploadRules"]


_EXAMPLES = {"day": "2026-11-15", "week": "2026-W46", "month": "2026-11", "year": "2026"}


@dataclass(frozen=True)
class UploadRules:
    """The format, the survey's fingerprint, the number of outputs, and the length of periods.

    ``every`` is "" if batches have no period: in edition 1, or if a survey is answered once.
    ``anonymous_reports`` is how many reports an upload may contain without a key, if the survey
    says so.
    """

    edition: int
    fingerprint: str
    outputs: int
    every: str = ""
    anonymous_reports: int | None = None

    @classmethod
    def from_survey(cls, survey: Survey) -> Self:
        """Return the rules for uploads to a survey."""
        every = survey.description.every if survey.edition >= 2 else ""
        return cls(
            survey.edition,
            survey.fingerprint,
            survey.mechanism.outputs,
            every,
            survey.description.about["reports_per_upload"],
        )

    def require_export(self, export: TallyExport) -> None:
        """Reject a tally in another format, or with cells that the survey does not have.

        Cells without a period hold reports from tables, whose periods are unknown.
        """
        if export.edition != self.edition:
            raise InvalidTally(f"format must be {self.edition} for this survey.")
        for key in export.cells.cells:
            if key.period and not self._is_period(key.period):
                raise InvalidTally("a cell's period is not one of this survey's periods.")

    def make_batch(self, id_: bytes, reports: NDArray[np.uint32], key: CellKey) -> Batch:
        """Return a batch for a cell of this survey (see ``parse_key``)."""
        return Batch(id_, self.fingerprint, reports, key, self.edition)

    def parse_key(self, period: object) -> CellKey:
        """Return the cell of a batch. Reject a period unless it is the exact name of one."""
        if not self.every:
            return NO_KEY
        if not isinstance(period, str) or not self._is_period(period):
            raise self._invalid_period()
        return CellKey(period)

    def assign_cell(self, batch: Batch, now: datetime) -> Batch:
        """Return the batch with its reports in the cell where they are counted.

        A period that is long past or in the future is not believed: its reports go to the cell
        without a period. So a device with a wrong clock loses nothing, and a sender who invents
        periods cannot create cells without limit.
        """
        if not self.every or recent_period(self.every, batch.key.period, now):
            return batch
        return batch.move_to(NO_KEY)

    def _is_period(self, name: str) -> bool:
        if not self.every:
            return False
        try:
            period_start(self.every, name)
        except ValueError:
            return False
        return True

    def _invalid_period(self) -> InvalidBatch:
        return InvalidBatch(
            f"period must be the name of the {self.every} of the answer, in UTC, such as "
            f"{_EXAMPLES[self.every]}."
        )
