"""The store: surveys, identifiers and counts, changed together or not at all.

``commit`` is the heart. In one transaction it locks the survey, looks which batches are known, writes the identifiers
of the others and adds their reports to the counts. So a batch is counted if and only if its identifier is there, and
what was acknowledged survives whatever happens next. Reports are not kept; a checksum of each batch is, until the
survey has ended (docs/decisions/031.md says what it tells).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date
from enum import Enum
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Connection, Row, bindparam, delete, insert, select, update

from sfumato.aggregator.store.count_pages import cells_of, dense, folded, page_bytes, pages_of
from sfumato.aggregator.store.database import Database
from sfumato.aggregator.store.schema import batches, counts, exports, hours, imports, surveys
from sfumato.batches import Batch, TallyExport
from sfumato.errors import InvalidTally, StoreFull, WrongSurvey
from sfumato.survey import Survey
from sfumato.tally import Tally

__all__ = ["Outcome", "State", "Status", "Store"]

_LARGEST_TOTAL = 2**62
_NO_DAY = ""
_PIECE = 5000


State = Literal["open", "closed", "ended"]
"""A survey takes reports, or takes none; once it has ended it will never take any again."""


class Outcome(Enum):
    """What became of a batch, or of a tally that was brought."""

    COUNTED = "counted"
    REPLAYED = "replayed"  # the same was counted before
    CONFLICT = "conflict"  # another one was counted under this identifier
    OVERLAP = "overlap"  # a tally that holds what was counted already
    CLOSED = "closed"
    UNKNOWN = "unknown"  # there is no such survey


@dataclass(frozen=True)
class Status:
    """How a survey stands: its state, how many reports it has, and how many came in which hour."""

    fingerprint: str
    state: State
    reports: int
    by_hour: tuple[tuple[str, int], ...]


class Store(Database):
    """Surveys, identifiers and counts in a database; one for SQLite and PostgreSQL."""

    # --- surveys ------------------------------------------------------------------------------------

    def register(self, survey: Survey) -> None:
        """Take a survey in, open; one that is there keeps its counts and its state, and gets the corrected title."""
        with self._writing() as connection:
            self._backend.lock_for_migration(
                connection
            )  # two aggregators may start with the same survey
            there = connection.execute(
                update(surveys)
                .where(surveys.c.fingerprint == survey.fingerprint)
                .values(resolved=survey.resolved())
            )
            if there.rowcount == 0:
                fields = {"fingerprint": survey.fingerprint, "resolved": survey.resolved()}
                connection.execute(
                    insert(surveys).values(**fields, state="open", part=0, reports=0)
                )

    def resolved(self, fingerprint: str) -> bytes | None:
        """A survey's resolved form, if it is here."""
        with self._reading() as connection:
            held = connection.scalar(
                select(surveys.c.resolved).where(surveys.c.fingerprint == fingerprint)
            )
        return None if held is None else bytes(held)

    def states(self) -> Mapping[str, State]:
        """The state of each survey by fingerprint, in the order in which they came."""
        with self._reading() as connection:
            rows = connection.execute(
                select(surveys.c.fingerprint, surveys.c.state).order_by(surveys.c.number)
            ).all()
        return {fingerprint: state for fingerprint, state in rows}  # noqa: C416 - rows are not pairs to a type checker

    def set_open(self, fingerprint: str) -> None:
        """Take reports again; refused once the identifiers are forgotten, for then replays would count."""
        with self._writing() as connection:
            row = self._demand(connection, fingerprint)
            if row.state == "ended":
                raise WrongSurvey(
                    "this survey has ended: its identifiers are forgotten, so a repeated batch could not be told from "
                    "a new one. Ask again under another name."
                )
            connection.execute(
                update(surveys).where(surveys.c.number == row.number).values(state="open")
            )

    def set_closed(self, fingerprint: str) -> None:
        """Take no more reports; identifiers stay, so that the survey can be opened again."""
        with self._writing() as connection:
            row = self._demand(connection, fingerprint)
            state = "ended" if row.state == "ended" else "closed"
            connection.execute(
                update(surveys).where(surveys.c.number == row.number).values(state=state)
            )

    def forget_ids(self, fingerprint: str) -> None:
        """Delete the identifiers of a closed survey's batches: it has ended, and stays so.

        The state first, then piece by piece, so that uploads to other surveys are not held up. If it is cut off, the
        next call goes on.
        """
        with self._writing() as connection:
            row = self._demand(connection, fingerprint)
            if row.state == "open":
                raise WrongSurvey(
                    "an open survey needs its identifiers, or a repeated batch would count. Close it first."
                )
            connection.execute(
                update(surveys).where(surveys.c.number == row.number).values(state="ended")
            )
        own = batches.c.survey == row.number
        deleted = 1
        while deleted:
            with self._writing() as connection:
                some = connection.scalars(select(batches.c.id).where(own).limit(_PIECE)).all()
                deleted = len(some)
                if some:
                    connection.execute(delete(batches).where(own, batches.c.id.in_(some)))

    def status(self, fingerprint: str) -> Status:
        """How a survey stands."""
        with self._reading() as connection:
            row = self._demand(connection, fingerprint, lock=False)
            by_hour = connection.execute(
                select(hours.c.hour, hours.c.reports)
                .where(hours.c.survey == row.number)
                .order_by(hours.c.hour)
            ).all()
        return Status(
            fingerprint, row.state, row.reports, tuple((hour, reports) for hour, reports in by_hour)
        )

    def _row(
        self, connection: Connection, fingerprint: str, *, lock: bool = True
    ) -> Row[Any] | None:
        query = select(surveys.c.number, surveys.c.state, surveys.c.part, surveys.c.reports)
        query = query.where(surveys.c.fingerprint == fingerprint)
        return connection.execute(self._backend.locked(query) if lock else query).first()

    def _demand(self, connection: Connection, fingerprint: str, *, lock: bool = True) -> Row[Any]:
        row = self._row(connection, fingerprint, lock=lock)
        if row is None:
            raise WrongSurvey("there is no survey with this fingerprint here.")
        return row

    # --- counting -----------------------------------------------------------------------------------

    def commit(self, group: Sequence[Batch]) -> list[Outcome]:
        """Count a group of batches in one transaction; what became of each.

        Reports must have been checked against their survey (``Batch.require``).
        """
        outcomes: list[Outcome] = [Outcome.UNKNOWN] * len(group)
        with self._writing() as connection:
            # In one order everywhere: two aggregators never wait for each other in a circle.
            for fingerprint in sorted({batch.fingerprint for batch in group}):
                places = [i for i, batch in enumerate(group) if batch.fingerprint == fingerprint]
                row = self._row(connection, fingerprint)
                if row is None:
                    continue
                if row.state != "open":
                    found = [Outcome.CLOSED] * len(places)
                else:
                    found = self._count(connection, row, [group[i] for i in places])
                for i, outcome in zip(places, found, strict=True):
                    outcomes[i] = outcome
        return outcomes

    def _count(
        self, connection: Connection, row: Row[Any], group: Sequence[Batch]
    ) -> list[Outcome]:
        ids = [batch.id for batch in group]
        query = select(batches.c.id, batches.c.digest).where(
            batches.c.survey == row.number, batches.c.id.in_(ids)
        )
        known = {bytes(id_): bytes(digest) for id_, digest in connection.execute(query).all()}
        outcomes, fresh = [], []
        for batch in group:
            held = known.get(batch.id)
            if held is None:
                known[batch.id] = batch.digest  # it may come a second time in this very group
                fresh.append(batch)
                outcomes.append(Outcome.COUNTED)
            else:
                outcomes.append(Outcome.REPLAYED if held == batch.digest else Outcome.CONFLICT)
        if fresh:
            connection.execute(
                insert(batches),
                [{"survey": row.number, "id": batch.id, "digest": batch.digest} for batch in fresh],
            )
            reports = np.concatenate([batch.reports for batch in fresh])
            if row.reports + reports.size > _LARGEST_TOTAL:
                raise StoreFull(
                    "the counts of this survey have no room for more: they add up to at most 2^62."
                )
            self._add(connection, row, folded(reports), reports.size, day=self._today)
            self._note_hour(connection, row.number, reports.size, len(fresh))
        return outcomes

    def _add(
        self,
        connection: Connection,
        row: Row[Any],
        pages: Mapping[int, NDArray[np.int64]],
        reports: int,
        *,
        day: str,
    ) -> None:
        """Add pages of counts to the part that is open, under the day that they belong to."""
        total = row.reports + reports  # the row is locked, so this is still what it says
        if total > _LARGEST_TOTAL:
            raise InvalidTally("counts must add up to at most 2^62; this would be more.")
        connection.execute(
            update(surveys).where(surveys.c.number == row.number).values(reports=total)
        )
        here = (counts.c.survey == row.number) & (counts.c.part == row.part) & (counts.c.day == day)
        query = select(counts.c.page, counts.c.cells).where(here, counts.c.page.in_(list(pages)))
        held = {page: cells_of(cells) for page, cells in connection.execute(query).all()}
        changed = [
            {"at": page, "to": page_bytes(pages[page] + cells)} for page, cells in held.items()
        ]
        if changed:
            there = counts.c.page == bindparam("at")
            connection.execute(
                update(counts).where(here, there).values(cells=bindparam("to")), changed
            )
        place = {"survey": row.number, "part": row.part, "day": day}
        added = [
            {**place, "page": page, "cells": page_bytes(pages[page])}
            for page in pages
            if page not in held
        ]
        if added:
            connection.execute(insert(counts), added)

    @property
    def _today(self) -> str:
        return self._now().astimezone(UTC).date().isoformat()

    def _note_hour(self, connection: Connection, number: int, reports: int, of: int) -> None:
        hour = self._now().astimezone(UTC).strftime("%Y-%m-%dT%H")
        this = (hours.c.survey == number) & (hours.c.hour == hour)
        more = {"batches": hours.c.batches + of, "reports": hours.c.reports + reports}
        if connection.execute(update(hours).where(this).values(**more)).rowcount == 0:
            connection.execute(
                insert(hours).values(survey=number, hour=hour, batches=of, reports=reports)
            )

    def tally(self, fingerprint: str, outputs: int) -> Tally:
        """All that was counted: every part, exported or not."""
        with self._reading() as connection:
            row = self._demand(connection, fingerprint, lock=False)
            return _summed(connection, counts.c.survey == row.number, outputs, fingerprint)

    def tally_of_days(self, fingerprint: str, outputs: int, first: date, last: date) -> Tally:
        """What was counted from uploads on some days (UTC), both ends included; tallies that were brought have none."""
        with self._reading() as connection:
            row = self._demand(connection, fingerprint, lock=False)
            days = (counts.c.day >= first.isoformat()) & (counts.c.day <= last.isoformat())
            return _summed(connection, (counts.c.survey == row.number) & days, outputs, fingerprint)

    # --- tallies that go out and come in ------------------------------------------------------------

    def export(self, fingerprint: str, id_: bytes, outputs: int) -> TallyExport | None:
        """Close the part that is open and hand it out under an identifier; the same identifier gives the same again.

        ``None`` where nothing was counted since the last export: there is nothing to name.
        """
        with self._writing() as connection:
            row = self._demand(connection, fingerprint)
            this = (exports.c.survey == row.number) & (exports.c.id == id_)
            part = connection.scalar(select(exports.c.part).where(this))
            if part is None:
                part = row.part
                found = self._part(connection, row.number, part, fingerprint, id_, outputs)
                if found.tally.reports == 0:
                    return None
                fields = {
                    "survey": row.number,
                    "id": id_,
                    "part": part,
                    "reports": found.tally.reports,
                }
                connection.execute(insert(exports).values(**fields))
                connection.execute(
                    update(surveys).where(surveys.c.number == row.number).values(part=part + 1)
                )
                return found
            return self._part(connection, row.number, part, fingerprint, id_, outputs)

    def exports(self, fingerprint: str) -> list[tuple[bytes, int]]:
        """What went out: identifiers and numbers of reports, oldest first."""
        with self._reading() as connection:
            row = self._demand(connection, fingerprint, lock=False)
            query = select(exports.c.id, exports.c.reports).where(exports.c.survey == row.number)
            return [
                (bytes(id_), reports)
                for id_, reports in connection.execute(query.order_by(exports.c.part)).all()
            ]

    def _part(
        self,
        connection: Connection,
        number: int,
        part: int,
        fingerprint: str,
        id_: bytes,
        outputs: int,
    ) -> TallyExport:
        here = (counts.c.survey == number) & (counts.c.part == part)
        tally = _summed(connection, here, outputs, fingerprint)
        brought = select(imports.c.id, imports.c.covers).where(
            imports.c.survey == number, imports.c.part == part
        )
        covers = [
            i
            for row_id, inside in connection.execute(brought).all()
            for i in (bytes(row_id), *_ids(inside))
        ]
        return TallyExport(id_, tally, tuple(sorted(covers)))

    def bring(self, sent: TallyExport) -> Outcome:
        """Add a tally that another store handed out: once, and only if nothing in it was counted here before."""
        with self._writing() as connection:
            row = self._row(connection, sent.tally.fingerprint)
            if row is None:
                return Outcome.UNKNOWN
            if row.state != "open":
                return Outcome.CLOSED
            this = (imports.c.survey == row.number) & (imports.c.id == sent.id)
            held = connection.scalar(select(imports.c.digest).where(this))
            if held is not None:
                return Outcome.REPLAYED if bytes(held) == sent.digest else Outcome.CONFLICT
            if self._counted_here(connection, row.number) & {sent.id, *sent.covers}:
                return Outcome.OVERLAP
            reports = sent.tally.reports
            fields = {
                "survey": row.number,
                "id": sent.id,
                "digest": sent.digest,
                "part": row.part,
                "reports": reports,
            }
            covers = "".join(id_.hex() for id_ in sent.covers)
            connection.execute(insert(imports).values(**fields, covers=covers))
            self._add(connection, row, pages_of(sent.tally.counts), reports, day=_NO_DAY)
            return Outcome.COUNTED

    def _counted_here(self, connection: Connection, number: int) -> set[bytes]:
        """Identifiers of all tallies that are in the counts already: brought, inside those, and handed out by us."""
        out = connection.scalars(select(exports.c.id).where(exports.c.survey == number)).all()
        brought = connection.execute(
            select(imports.c.id, imports.c.covers).where(imports.c.survey == number)
        ).all()
        return {
            *map(bytes, out),
            *(i for id_, inside in brought for i in (bytes(id_), *_ids(inside))),
        }


def _summed(
    connection: Connection, which: ColumnElement[bool], outputs: int, fingerprint: str
) -> Tally:
    """The sum of some pages, read a few at a time: there is a set of them for every day."""
    query = select(counts.c.page, counts.c.cells).where(which).execution_options(yield_per=64)
    return Tally(
        dense(((page, cells) for page, cells in connection.execute(query)), outputs), fingerprint
    )


def _ids(joined: str) -> list[bytes]:
    raw = bytes.fromhex(joined)
    return [raw[i : i + 16] for i in range(0, len(raw), 16)]
