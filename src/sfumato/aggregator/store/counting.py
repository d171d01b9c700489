"""Counting batches: each is counted if and only if its identifier is new."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from sfumato.aggregator.store.count_pages import decode_page, encode_page, histogram_pages
from sfumato.aggregator.store.statements import CellRow, Slots, Statements, SurveyRow
from sfumato.batches import Batch
from sfumato.cells import CellKey
from sfumato.errors import StoreFull

__all__ = ["MAX_REPORTS", "Counting", "Outcome"]

MAX_REPORTS = 2**62
"""The maximum number of reports per survey."""

_NO_DIGEST = b""
_MIN_DIGEST_REPORTS = 256
"""A checksum of fewer reports could be undone: one could try all of them against it."""


class Outcome(Enum):
    """What happened to a batch or an imported tally."""

    COUNTED = "counted"
    REPLAYED = "replayed"  # the same content was already counted
    CONFLICT = "conflict"  # different content was counted under this identifier
    OVERLAP = "overlap"  # part of the tally was already counted
    CLOSED = "closed"
    UNKNOWN = "unknown"  # no such survey


class Counting:
    """Counts the batches of a survey within a transaction.

    The caller holds the survey's lock and the slots, and checked the reports.
    """

    def __init__(
        self, statements: Statements, connection: Connection, row: SurveyRow, slots: Slots
    ) -> None:
        self._statements = statements
        self._connection = connection
        self._row = row
        self._slots = slots

    def count(self, group: Sequence[Batch], now: datetime) -> list[Outcome]:
        """Count the new batches of a group, and return the outcome of each."""
        first_batches: dict[bytes, Batch] = {}
        for batch in group:
            first_batches.setdefault(batch.id, batch)
        digests = {id_: _digest_to_store(batch) for id_, batch in first_batches.items()}
        new_ids = self._statements.insert_ids(self._connection, self._row.number, digests)
        if len(new_ids) < len(digests):
            known_ids = [id_ for id_ in digests if id_ not in new_ids]
            known = self._statements.read_digests(self._connection, self._row.number, known_ids)
            digests.update(known)
        if new_ids:
            self._add_batches([first_batches[id_] for id_ in new_ids], now)
        outcomes = []
        for batch in group:
            if batch.id in new_ids:
                new_ids.remove(batch.id)  # the batch may occur again
                outcomes.append(Outcome.COUNTED)
            else:
                outcomes.append(_outcome(batch, digests[batch.id]))
        return outcomes

    def _add_batches(self, group: Sequence[Batch], now: datetime) -> None:
        sizes = [batch.reports.size for batch in group]
        self._require_room(sum(sizes))
        utc = now.astimezone(UTC)
        by_cell: dict[tuple[str, CellKey], list[NDArray[np.uint32]]] = {}
        for batch in group:
            by_cell.setdefault((batch.sender, batch.key), []).append(batch.reports)
        for (sender, key), reports in by_cell.items():
            pages = histogram_pages(np.concatenate(reports))
            self.add_pages(pages, day=utc.date().isoformat(), sender=sender, key=key)
        hour = utc.strftime("%Y-%m-%dT%H")
        self._statements.add_to_hour(
            self._connection, self._row.number, hour, self._slots.hours, sizes
        )

    def _require_room(self, new_count: int) -> None:
        """Raise ``StoreFull`` if counts could exceed the maximum, which only imports can reach."""
        total = self._row.imported_reports + new_count
        if total <= MAX_REPORTS // 2:
            return
        if total + self._statements.sum_hours(self._connection, self._row.number) > MAX_REPORTS:
            raise StoreFull("this survey has reached the maximum of 2^62 reports.")

    def add_pages(
        self, pages: Mapping[int, NDArray[np.int64]], *, day: str, sender: str, key: CellKey
    ) -> None:
        """Add pages of counts for a day, a sender and a cell to the open part."""
        cell = CellRow(self._row.number, self._row.part, day, sender, key.text, self._slots.cells)
        stored = self._statements.read_pages(self._connection, cell, list(pages))
        sums = {}
        for number, counts in pages.items():
            old_page = stored.get(number)
            sums[number] = encode_page(
                counts if old_page is None else counts + decode_page(old_page)
            )
        self._statements.write_pages(self._connection, cell, sums)


def _digest_to_store(batch: Batch) -> bytes:
    """Return the checksum to store. Small batches have none: it would reveal their reports."""
    return batch.digest if batch.reports.size >= _MIN_DIGEST_REPORTS else _NO_DIGEST


def _outcome(batch: Batch, stored_digest: bytes) -> Outcome:
    """Return the outcome of a batch whose identifier is stored with a checksum."""
    is_same = stored_digest in (_NO_DIGEST, _digest_to_store(batch))
    return Outcome.REPLAYED if is_same else Outcome.CONFLICT
