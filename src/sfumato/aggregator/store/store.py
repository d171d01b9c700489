"""The store: surveys, identifiers and counts, updated atomically.

``commit`` is the central method. In one transaction, it stores the identifiers of those batches
that are new, and adds their reports to the counts. So a batch is counted if and only if its
identifier is stored, and acknowledged batches survive any crash. Individual reports are not stored,
and neither are checksums of small batches, from which they could be computed
(docs/decisions/045.md). On PostgreSQL, transactions that overlap count in different rows
(docs/decisions/048.md).
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from time import monotonic

from sqlalchemy import ColumnElement, Connection, delete, insert, select, update

from sfumato.aggregator.store.backends import Backend
from sfumato.aggregator.store.count_pages import join_pages, split_pages
from sfumato.aggregator.store.counting import MAX_REPORTS, Counting, Outcome
from sfumato.aggregator.store.database import (
    Database,
    batches,
    cells,
    exports,
    hours,
    imports,
    surveys,
)
from sfumato.aggregator.store.folding import fold_hours, fold_pages, surveys_to_fold
from sfumato.aggregator.store.omissions import (
    LeftOut,
    Omissions,
    delete_omission,
    insert_omission,
    read_omissions,
)
from sfumato.aggregator.store.senders import (
    OPERATOR,
    Sender,
    find_sender,
    insert_sender,
    list_senders,
    revoke_key,
)
from sfumato.aggregator.store.statements import SHARED_SLOTS, Slots, State, SurveyRow
from sfumato.batches import Batch, TallyExport
from sfumato.cells import CellKey, TallyCells
from sfumato.errors import InvalidTally, StoreUnavailable, UnknownSender, WrongSurvey
from sfumato.survey import Survey
from sfumato.tally import Tally

__all__ = ["DayCounts", "LeftOut", "Outcome", "State", "Status", "Store"]

_NO_DAY = ""  # for imported tallies
_NO_SENDER = ""  # for imported tallies and anonymous uploads

_ID_BYTES = 16
_DELETE_BATCH_SIZE = 5000
_FOLD_INTERVAL = timedelta(hours=1)
_MAX_FOLD_SECONDS = 0.5


@dataclass(frozen=True)
class Status:
    """The state of a survey, its number of reports, and how many arrived in each hour."""

    state: State
    reports: int
    by_hour: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class DayCounts:
    """The reports of one day of arrival and one sender ("" if anonymous)."""

    day: str
    sender: str
    tally: Tally
    is_left_out: bool


class Store(Database):
    """Surveys, identifiers and counts in SQLite or PostgreSQL."""

    def __init__(
        self,
        backend: Backend,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        may_migrate: bool = True,
    ) -> None:
        self._last_fold: datetime | None = None
        self._numbers: dict[str, int] = {}  # of surveys, by fingerprint; a survey keeps its number
        super().__init__(backend, now=now, may_migrate=may_migrate)

    # --- surveys ----------------------------------------------------------------------------------

    def register(self, survey: Survey) -> None:
        """Add and open a survey. If it exists, keep its counts and state, but update its title."""
        resolved = survey.resolved()
        if self.read_resolved(survey.fingerprint) == resolved:
            return  # without a write, because the disk may be full
        matches = surveys.c.fingerprint == survey.fingerprint
        with self._write() as connection:
            # Two aggregators may register the same survey at the same time.
            self._backend.lock_for_migration(connection)
            result = connection.execute(update(surveys).where(matches).values(resolved=resolved))
            if result.rowcount == 0:
                statement = insert(surveys).values(
                    fingerprint=survey.fingerprint,
                    resolved=resolved,
                    state="open",
                    part=0,
                    imported_reports=0,
                )
                connection.execute(statement)
        self._backend.checkpoint()  # a young store consists of little more than its log

    def read_resolved(self, fingerprint: str) -> bytes | None:
        """Return a survey's resolved form, or ``None`` if the survey is unknown."""
        query = select(surveys.c.resolved).where(surveys.c.fingerprint == fingerprint)
        with self._read() as connection:
            resolved = connection.scalar(query)
        return None if resolved is None else bytes(resolved)

    def read_states(self) -> Mapping[str, State]:
        """Return the state of each survey by fingerprint, oldest first."""
        query = select(surveys.c.fingerprint, surveys.c.state).order_by(surveys.c.number)
        with self._read() as connection:
            rows = connection.execute(query).all()
        return {row.fingerprint: row.state for row in rows}

    def set_open(self, fingerprint: str) -> None:
        """Accept reports again. Raise ``WrongSurvey`` if the survey has ended."""
        with self._write() as connection:
            row = self._lock_survey_row(connection, fingerprint)
            if row.state == "ended":
                raise WrongSurvey(
                    "this survey has ended. Its identifiers are deleted, so repeated batches could "
                    "not be recognised. Start a new survey with a different name."
                )
            _update_survey(connection, row, state="open")

    def set_closed(self, fingerprint: str) -> None:
        """Stop accepting reports. The survey keeps its identifiers, so it can be opened again."""
        with self._write(may_use_reserve=True) as connection:
            row = self._lock_survey_row(connection, fingerprint)
            if row.state != "ended":
                _update_survey(connection, row, state="closed")

    def forget_ids(self, fingerprint: str) -> None:
        """Delete the identifiers of a closed survey's batches. This ends the survey permanently.

        The state changes first. Then identifiers are deleted in small steps, so uploads to other
        surveys do not have to wait. Finally, the table is written again, which erases the traces of
        deleted rows from the database's files. Meanwhile, uploads have to wait. After a crash or an
        error, call this method again to continue.
        """
        with self._write() as connection:
            row = self._lock_survey_row(connection, fingerprint)
            if row.state == "open":
                raise WrongSurvey(
                    "an open survey needs its identifiers to recognise repeated batches. "
                    "Close it first."
                )
            _update_survey(connection, row, state="ended")
        in_survey = batches.c.survey == row.number
        query = select(batches.c.id).where(in_survey).limit(_DELETE_BATCH_SIZE)
        deleted_count = 1
        while deleted_count:
            with self._write() as connection:
                ids = connection.scalars(query).all()
                deleted_count = len(ids)
                if ids:
                    connection.execute(delete(batches).where(in_survey, batches.c.id.in_(ids)))
        self._fold(fingerprint, date.max)
        self._erase_deleted_rows()

    def read_status(self, fingerprint: str) -> Status:
        """Return a survey's state and how many reports arrived, in total and in each hour."""
        with self._read() as connection:
            row = self._read_survey_row(connection, fingerprint)
            query = select(hours.c.hour, hours.c.reports).where(hours.c.survey == row.number)
            rows = connection.execute(query).all()
        by_hour: dict[str, int] = {}
        for hour, reports in rows:  # one row for each aggregator
            by_hour[hour] = by_hour.get(hour, 0) + reports
        report_count = row.imported_reports + sum(by_hour.values())
        return Status(row.state, report_count, tuple(sorted(by_hour.items())))

    def _read_survey_row(self, connection: Connection, fingerprint: str) -> SurveyRow:
        row = self._backend.statements.read_survey(connection, fingerprint)
        if row is None:
            raise WrongSurvey("the store has no survey with this fingerprint.")
        return row

    def _lock_survey_row(self, connection: Connection, fingerprint: str) -> SurveyRow:
        """Return a survey's row. Nobody else counts in the survey until the transaction ends."""
        row = self._read_survey_row(connection, fingerprint)
        self._backend.lock_survey(connection, row.number)
        return self._read_survey_row(connection, fingerprint)  # it may have changed meanwhile

    # --- counting ---------------------------------------------------------------------------------

    def commit(self, group: Sequence[Batch]) -> list[Outcome]:
        """Count a group of batches in one transaction, and return the outcome of each.

        The caller must check the reports against their survey first (``Batch.require``).
        """
        outcomes = [Outcome.UNKNOWN] * len(group)
        indices: dict[str, list[int]] = {}
        for index, batch in enumerate(group):
            indices.setdefault(batch.fingerprint, []).append(index)
        with self._write() as connection:
            cell_slot = self._backend.lock_cell_slot(connection)
            # Share surveys in sorted order, so that two aggregators cannot deadlock.
            for fingerprint in sorted(indices):
                survey_group = [group[index] for index in indices[fingerprint]]
                survey_outcomes = self._count(connection, fingerprint, survey_group, cell_slot)
                for index, outcome in zip(indices[fingerprint], survey_outcomes, strict=True):
                    outcomes[index] = outcome
        return outcomes

    def _count(
        self, connection: Connection, fingerprint: str, group: Sequence[Batch], cell_slot: int
    ) -> list[Outcome]:
        row, hour_slot = self._share_survey_row(connection, fingerprint)
        if row is None:
            return [Outcome.UNKNOWN] * len(group)
        if row.state != "open":
            return [Outcome.CLOSED] * len(group)
        slots = Slots(cell_slot, hour_slot)
        counting = Counting(self._backend.statements, connection, row, slots)
        return counting.count(group, self._now())

    def _share_survey_row(
        self, connection: Connection, fingerprint: str
    ) -> tuple[SurveyRow | None, int]:
        """Return a survey's row, and a slot for its hours.

        Nobody changes the row until the transaction ends, but all may count. The row is ``None`` if
        the survey is unknown.
        """
        statements = self._backend.statements
        number = self._numbers.get(fingerprint)
        hour_slot = SHARED_SLOTS.hours
        while True:
            if number is not None:
                hour_slot = self._backend.share_survey(connection, number)
            row = statements.read_survey(connection, fingerprint)
            if row is None or row.number == number:
                return row, hour_slot
            # It is not known yet, or a backup was restored that gives it another number.
            number = row.number
            self._numbers[fingerprint] = number

    def fold_if_due(self) -> None:
        """Once an hour, add up the slots of days that have ended.

        After half a second, uploads get their turn, and the next call goes on.
        """
        now = self._now().astimezone(UTC)
        # A clock that is set back must not delay the next time.
        if (
            self._last_fold is not None
            and self._last_fold <= now < self._last_fold + _FOLD_INTERVAL
        ):
            return
        self._last_fold = now
        with self._read() as connection:
            fingerprints = surveys_to_fold(connection, now.date())
        failure = None
        deadline = monotonic() + _MAX_FOLD_SECONDS
        for fingerprint in fingerprints:
            try:
                if not self._fold(fingerprint, now.date(), deadline):
                    self._last_fold = None
                    return
            except StoreUnavailable as error:  # the other surveys can be folded nevertheless
                failure = error
        if failure is not None:
            raise failure

    def _fold(self, fingerprint: str, before: date, deadline: float = math.inf) -> bool:
        """Add up the slots of earlier days, in small steps, because others have to wait.

        Return whether all of them are added up before the deadline.
        """
        has_more = True
        while has_more:
            with self._write() as connection:
                row = self._lock_survey_row(connection, fingerprint)
                has_more = fold_pages(connection, row.number, before)
            if has_more and monotonic() >= deadline:
                return False
        with self._write() as connection:
            row = self._lock_survey_row(connection, fingerprint)
            fold_hours(connection, row.number, before)
        return True

    def tally(self, fingerprint: str, outputs: int) -> Tally:
        """Return all counts, exported or not, except those that are left out."""
        tally, _ = self.tally_and_omissions(fingerprint, outputs)
        return tally

    def tally_and_omissions(self, fingerprint: str, outputs: int) -> tuple[Tally, LeftOut]:
        """Return the counts for results, and what they leave out, as of the same moment."""
        with self._read() as connection:
            row = self._read_survey_row(connection, fingerprint)
            in_survey = cells.c.survey == row.number
            omitted = read_omissions(connection, row.number)
            included = in_survey & ~omitted.condition()
            tally = _sum_pages(connection, included, outputs, fingerprint)
            if not omitted:
                return tally, LeftOut()
            excluded = in_survey & omitted.condition()
            count = _sum_pages(connection, excluded, outputs, fingerprint).reports
            return tally, LeftOut(omitted.days, omitted.senders, count)

    def tally_between(self, fingerprint: str, outputs: int, first: date, last: date) -> Tally:
        """Return the counts of reports that arrived from ``first`` to ``last``, inclusive (UTC).

        Imported tallies have no day, so they are excluded, as is everything that is left out.
        """
        with self._read() as connection:
            row = self._read_survey_row(connection, fingerprint)
            in_survey = cells.c.survey == row.number
            in_period = cells.c.day.between(first.isoformat(), last.isoformat())
            included = ~read_omissions(connection, row.number).condition()
            return _sum_pages(connection, in_survey & in_period & included, outputs, fingerprint)

    def count_days(self, fingerprint: str, outputs: int, max_days: int) -> list[DayCounts]:
        """Return the counts of each sender on the latest days, and of all that is left out.

        The latest day comes first.
        """
        with self._read() as connection:
            row = self._read_survey_row(connection, fingerprint)
            omitted = read_omissions(connection, row.number)
            in_survey = (cells.c.survey == row.number) & (cells.c.day != _NO_DAY)
            latest = select(cells.c.day).where(in_survey).distinct()
            latest = latest.order_by(cells.c.day.desc()).limit(max_days)
            is_shown = cells.c.day.in_(connection.scalars(latest).all()) | omitted.condition()
            query = select(cells.c.day, cells.c.sender).where(in_survey, is_shown).distinct()
            query = query.order_by(cells.c.day.desc(), cells.c.sender)
            days = []
            for day, sender in connection.execute(query).all():
                in_cell = in_survey & (cells.c.day == day) & (cells.c.sender == sender)
                tally = _sum_pages(connection, in_cell, outputs, fingerprint)
                days.append(DayCounts(day, sender, tally, omitted.covers(day, sender)))
            return days

    # --- what results leave out -------------------------------------------------------------------

    def read_omissions(self, fingerprint: str) -> Omissions:
        """Return what is left out of a survey's results."""
        with self._read() as connection:
            row = self._read_survey_row(connection, fingerprint)
            return read_omissions(connection, row.number)

    def leave_out_day(self, fingerprint: str, day: date) -> None:
        """Leave out of the results everything that was uploaded on a day (UTC)."""
        with self._write() as connection:
            row = self._lock_survey_row(connection, fingerprint)
            insert_omission(connection, row.number, "day", day.isoformat())

    def include_day(self, fingerprint: str, day: date) -> None:
        """Include a day in the results again."""
        with self._write() as connection:
            row = self._lock_survey_row(connection, fingerprint)
            delete_omission(connection, row.number, "day", day.isoformat())

    def leave_out_sender(self, fingerprint: str, name: str) -> None:
        """Leave out of the results everything that a bulk sender uploaded."""
        with self._write() as connection:
            row = self._lock_survey_row(connection, fingerprint)
            _require_sender(connection, row.number, name)
            insert_omission(connection, row.number, "sender", name)

    def include_sender(self, fingerprint: str, name: str) -> None:
        """Include a bulk sender in the results again."""
        with self._write() as connection:
            row = self._lock_survey_row(connection, fingerprint)
            _require_sender(connection, row.number, name)
            delete_omission(connection, row.number, "sender", name)

    # --- bulk senders -----------------------------------------------------------------------------

    def add_sender(self, fingerprint: str, name: str) -> str:
        """Add a bulk sender, or replace its key. Return the key; only its hash is stored."""
        with self._write() as connection:
            row = self._lock_survey_row(connection, fingerprint)
            return insert_sender(connection, row.number, name)

    def revoke_sender(self, fingerprint: str, name: str) -> None:
        """Revoke a bulk sender's key. What it uploaded stays in the results."""
        with self._write() as connection:
            row = self._lock_survey_row(connection, fingerprint)
            if not revoke_key(connection, row.number, name):
                raise UnknownSender("the survey has no bulk sender with this name.")

    def list_senders(self, fingerprint: str) -> list[Sender]:
        """List a survey's bulk senders, including those whose key was revoked."""
        with self._read() as connection:
            row = self._read_survey_row(connection, fingerprint)
            return list_senders(connection, row.number)

    def find_sender(self, fingerprint: str, key: str) -> str | None:
        """Return the name of the bulk sender with this key, or ``None``."""
        with self._read() as connection:
            row = self._read_survey_row(connection, fingerprint)
            return find_sender(connection, row.number, key)

    # --- export and import ------------------------------------------------------------------------

    def export(
        self, fingerprint: str, id_: bytes, outputs: int, edition: int = 1
    ) -> TallyExport | None:
        """Close the open part of the tally and export it under the identifier ``id_``.

        What is left out of the results stays in the new open part, so it can be exported later.
        Calling this again with the same identifier returns the same tally. Return ``None`` if
        nothing has been counted since the last export.
        """
        with self._write() as connection:
            row = self._lock_survey_row(connection, fingerprint)
            matches_id = (exports.c.survey == row.number) & (exports.c.id == id_)
            part = connection.scalar(select(exports.c.part).where(matches_id))
            is_new = part is None
            if part is None:
                part = row.part
            in_part = (cells.c.survey == row.number) & (cells.c.part == part)
            exported = in_part
            if is_new:
                left_out = read_omissions(connection, row.number).condition()
                exported = in_part & ~left_out
            tallies = _sum_cells(connection, exported, outputs, fingerprint)
            if tallies is None:
                return None
            if is_new:
                connection.execute(update(cells).where(in_part, left_out).values(part=part + 1))
                reports = tallies.total().reports
                statement = insert(exports).values(
                    survey=row.number, id=id_, part=part, reports=reports
                )
                connection.execute(statement)
                _update_survey(connection, row, part=part + 1)
            imported_into_part = (imports.c.survey == row.number) & (imports.c.part == part)
            covered_ids = sorted(_import_ids(connection, imported_into_part))
            return TallyExport(id_, tallies, tuple(covered_ids), edition)

    def list_exports(self, fingerprint: str) -> list[tuple[bytes, int]]:
        """List each exported tally's identifier and number of reports, oldest first."""
        with self._read() as connection:
            row = self._read_survey_row(connection, fingerprint)
            query = select(exports.c.id, exports.c.reports).where(exports.c.survey == row.number)
            rows = connection.execute(query.order_by(exports.c.part)).all()
        return [(bytes(id_), reports) for id_, reports in rows]

    def import_tally(self, exported: TallyExport) -> Outcome:
        """Add a tally from another store, unless part of it was already counted here."""
        report_count = exported.tally.reports
        new_digest = exported.digest  # computed before the lock, because it reads every count
        with self._write() as connection:
            try:
                row = self._lock_survey_row(connection, exported.cells.fingerprint)
            except WrongSurvey:
                return Outcome.UNKNOWN
            if row.state != "open":
                return Outcome.CLOSED
            matches_id = (imports.c.survey == row.number) & (imports.c.id == exported.id)
            digest = connection.scalar(select(imports.c.digest).where(matches_id))
            if digest is not None:
                is_same = bytes(digest) == new_digest
                return Outcome.REPLAYED if is_same else Outcome.CONFLICT
            if not _all_tally_ids(connection, row.number).isdisjoint(
                [exported.id, *exported.covers]
            ):
                return Outcome.OVERLAP
            statement = insert(imports).values(
                survey=row.number,
                id=exported.id,
                digest=new_digest,
                part=row.part,
                reports=report_count,
                covers=b"".join(exported.covers).hex(),
            )
            connection.execute(statement)
            self._add_imported_reports(connection, row, report_count)
            counting = Counting(self._backend.statements, connection, row, SHARED_SLOTS)
            for key, tally in exported.cells.cells.items():
                pages = split_pages(tally.counts)
                counting.add_pages(pages, day=_NO_DAY, sender=_NO_SENDER, key=key)
            return Outcome.COUNTED

    def _add_imported_reports(self, connection: Connection, row: SurveyRow, reports: int) -> None:
        imported_reports = row.imported_reports + reports
        uploaded_reports = self._backend.statements.sum_hours(connection, row.number)
        if imported_reports + uploaded_reports > MAX_REPORTS:
            raise InvalidTally("counts must add up to at most 2^62.")
        _update_survey(connection, row, imported_reports=imported_reports)


def _require_sender(connection: Connection, survey_number: int, name: str) -> None:
    names = [OPERATOR, *(sender.name for sender in list_senders(connection, survey_number))]
    if name not in names:
        raise UnknownSender(f"there is no such sender. The survey's senders: {', '.join(names)}.")


def _update_survey(connection: Connection, row: SurveyRow, **values: object) -> None:
    connection.execute(update(surveys).where(surveys.c.number == row.number).values(**values))


def _sum_pages(
    connection: Connection, condition: ColumnElement[bool], outputs: int, fingerprint: str
) -> Tally:
    """Add up the pages that match a condition. Fetch a few at a time to save memory."""
    query = select(cells.c.page, cells.c.counts).where(condition).execution_options(yield_per=64)
    pages = ((page, stored) for page, stored in connection.execute(query))
    return Tally(join_pages(pages, outputs), fingerprint)


def _sum_cells(
    connection: Connection, condition: ColumnElement[bool], outputs: int, fingerprint: str
) -> TallyCells | None:
    """Return the tally of each cell that matches a condition, or ``None`` if no cell does."""
    tallies = {}
    for text in connection.scalars(select(cells.c.key).where(condition).distinct()).all():
        key = CellKey.from_record(json.loads(text) if text else {})
        in_cell = condition & (cells.c.key == text)
        tallies[key] = _sum_pages(connection, in_cell, outputs, fingerprint)
    return TallyCells(tallies) if tallies else None


def _all_tally_ids(connection: Connection, survey_number: int) -> set[bytes]:
    """Return the identifiers of all exported and imported tallies, and of tallies inside them."""
    exported = connection.scalars(select(exports.c.id).where(exports.c.survey == survey_number))
    return {*map(bytes, exported), *_import_ids(connection, imports.c.survey == survey_number)}


def _import_ids(connection: Connection, condition: ColumnElement[bool]) -> list[bytes]:
    """Return the identifiers of imported tallies, and of the tallies inside them."""
    ids = []
    for row in connection.execute(select(imports.c.id, imports.c.covers).where(condition)):
        ids.append(bytes(row.id))
        covered = bytes.fromhex(row.covers)
        for start in range(0, len(covered), _ID_BYTES):
            ids.append(covered[start : start + _ID_BYTES])
    return ids
