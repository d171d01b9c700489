"""The statements that counting needs, for each database.

Nearly all of a store's work is to count batches. SQLAlchemy's expressions would take longer than
the databases, so these statements are text. A group of batches needs the same few statements,
however many batches it has.
"""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from sqlalchemy import Connection, CursorResult

__all__ = ["CellRow", "PostgresStatements", "SqliteStatements", "State", "Statements", "SurveyRow"]

State = Literal["open", "closed", "ended"]
"""An open survey accepts reports. A closed one can be opened again; an ended one cannot."""

_Values = Mapping[str, object] | Sequence[Mapping[str, object]]
"""The values of a statement, or of each of its executions."""

_Digests = Mapping[bytes, bytes]
"""The checksums of batches (empty if they have none), by identifier."""


@dataclass(frozen=True)
class SurveyRow:
    """A survey's row: its number and state, the open part of its tally, its imported reports."""

    number: int
    state: State
    part: int
    imported_reports: int


@dataclass(frozen=True)
class CellRow:
    """The key of the rows that hold the pages of a cell."""

    survey: int
    part: int
    day: str
    sender: str
    key: str
    writer: str


_READ_SURVEY = "SELECT number, state, part, reports FROM surveys WHERE fingerprint = :fingerprint"

_IN_CELL = (
    "survey = :survey AND part = :part AND day = :day AND sender = :sender AND key = :key "
    "AND writer = :writer"
)

_WRITE_PAGE = """
INSERT INTO cells (survey, part, day, sender, key, writer, page, counts)
VALUES (:survey, :part, :day, :sender, :key, :writer, :page, :counts)
ON CONFLICT (survey, part, day, sender, key, page, writer) DO UPDATE SET counts = excluded.counts
"""

_ADD_TO_HOUR = """
INSERT INTO hours (survey, hour, writer, batches, reports)
VALUES (:survey, :hour, :writer, :batches, :reports)
ON CONFLICT (survey, hour, writer)
DO UPDATE SET batches = hours.batches + excluded.batches, reports = hours.reports + excluded.reports
"""

_SUM_HOURS = "SELECT coalesce(sum(reports), 0) FROM hours WHERE survey = :survey"


class Statements(ABC):
    """What counting reads and writes. Its SQL has ``:name`` where a value goes."""

    def read_survey(self, connection: Connection, fingerprint: str) -> SurveyRow | None:
        """Return the row of a survey, or ``None`` if the survey is unknown."""
        row = self._run(connection, _READ_SURVEY, {"fingerprint": fingerprint}).first()
        if row is None:
            return None
        return SurveyRow(row.number, row.state, row.part, row.reports)

    @abstractmethod
    def insert_ids(self, connection: Connection, survey: int, digests: _Digests) -> set[bytes]:
        """Store the identifiers of batches. Return those that were not stored before."""

    @abstractmethod
    def read_digests(
        self, connection: Connection, survey: int, ids: Sequence[bytes]
    ) -> dict[bytes, bytes]:
        """Return the stored checksums of batches by identifier."""

    @abstractmethod
    def read_pages(
        self, connection: Connection, cell: CellRow, pages: Sequence[int]
    ) -> dict[int, bytes]:
        """Return those of the pages that a cell has, by number."""

    def write_pages(
        self, connection: Connection, cell: CellRow, pages: Mapping[int, bytes]
    ) -> None:
        """Write pages of a cell, in place of those it has."""
        key = vars(cell)
        rows = [{**key, "page": page, "counts": stored} for page, stored in pages.items()]
        if rows:
            self._run(connection, _WRITE_PAGE, rows)

    def add_to_hour(
        self, connection: Connection, survey: int, hour: str, writer: str, sizes: Sequence[int]
    ) -> None:
        """Add batches of the given sizes to what arrived in an hour."""
        row = {
            "survey": survey,
            "hour": hour,
            "writer": writer,
            "batches": len(sizes),
            "reports": sum(sizes),
        }
        self._run(connection, _ADD_TO_HOUR, row)

    def sum_hours(self, connection: Connection, survey: int) -> int:
        """Return the number of uploaded reports."""
        return int(self._run(connection, _SUM_HOURS, {"survey": survey}).scalar_one())

    def _run(self, connection: Connection, sql: str, values: _Values) -> CursorResult[Any]:
        return connection.exec_driver_sql(self._for_driver(sql), values)

    def _for_driver(self, sql: str) -> str:
        return sql


# --- SQLite ---------------------------------------------------------------------------------------

_SENT_IDS = """
WITH RECURSIVE sent(n, id) AS (
    SELECT 0, substr(:ids, 1, 16)
    UNION ALL
    SELECT n + 1, substr(:ids, 16 * (n + 1) + 1, 16) FROM sent WHERE n + 1 < :count
)
"""
"""The identifiers in a string of bytes, because SQLite has no arrays."""

_INSERT_IDS_SQLITE = f"""
{_SENT_IDS}
INSERT INTO batches (id, survey, digest)
SELECT id, :survey, coalesce(substr(:digests, 16 * n + 1, 16), x'') FROM sent WHERE true
ON CONFLICT DO NOTHING
RETURNING id
"""  # noqa: S608 - our own text

_READ_DIGESTS_SQLITE = f"""
{_SENT_IDS}
SELECT batches.id, batches.digest FROM sent JOIN batches USING (id) WHERE batches.survey = :survey
"""  # noqa: S608

_READ_PAGES_SQLITE = f"""
SELECT page, counts FROM cells WHERE {_IN_CELL} AND page IN (SELECT value FROM json_each(:pages))
"""  # noqa: S608


class SqliteStatements(Statements):
    """Statements for SQLite, whose writers take turns."""

    def insert_ids(self, connection: Connection, survey: int, digests: _Digests) -> set[bytes]:
        """Store the identifiers of batches. Return those that were not stored before."""
        # Batches with a checksum come first: past the end of the checksums, there are none.
        ids = sorted(digests, key=lambda id_: not digests[id_])
        values = {
            "survey": survey,
            "count": len(ids),
            "ids": b"".join(ids),
            "digests": b"".join(digests[id_] for id_ in ids),
        }
        return set(self._run(connection, _INSERT_IDS_SQLITE, values).scalars().all())

    def read_digests(
        self, connection: Connection, survey: int, ids: Sequence[bytes]
    ) -> dict[bytes, bytes]:
        """Return the stored checksums of batches by identifier."""
        values = {"survey": survey, "count": len(ids), "ids": b"".join(ids)}
        rows = self._run(connection, _READ_DIGESTS_SQLITE, values).all()
        return {row.id: row.digest for row in rows}

    def read_pages(
        self, connection: Connection, cell: CellRow, pages: Sequence[int]
    ) -> dict[int, bytes]:
        """Return those of the pages that a cell has, by number."""
        values = {**vars(cell), "pages": json.dumps(list(pages))}
        rows = self._run(connection, _READ_PAGES_SQLITE, values).all()
        return {row.page: row.counts for row in rows}


# --- PostgreSQL -----------------------------------------------------------------------------------

_INSERT_IDS_POSTGRES = """
INSERT INTO batches (id, survey, digest)
SELECT id, :survey, digest
FROM unnest(CAST(:ids AS bytea[]), CAST(:digests AS bytea[])) AS sent (id, digest)
ON CONFLICT DO NOTHING
RETURNING id
"""

_READ_DIGESTS_POSTGRES = """
SELECT id, digest FROM batches WHERE survey = :survey AND id = ANY(CAST(:ids AS bytea[]))
"""

_READ_PAGES_POSTGRES = f"""
SELECT page, counts FROM cells WHERE {_IN_CELL} AND page = ANY(CAST(:pages AS integer[]))
"""  # noqa: S608


class PostgresStatements(Statements):
    """Statements for PostgreSQL, where several aggregators count at the same time."""

    def insert_ids(self, connection: Connection, survey: int, digests: _Digests) -> set[bytes]:
        """Store the identifiers of batches. Return those that were not stored before."""
        # Every aggregator stores identifiers in the same order, so that two cannot deadlock.
        ids = sorted(digests)
        values = {"survey": survey, "ids": ids, "digests": [digests[id_] for id_ in ids]}
        return set(map(bytes, self._run(connection, _INSERT_IDS_POSTGRES, values).scalars()))

    def read_digests(
        self, connection: Connection, survey: int, ids: Sequence[bytes]
    ) -> dict[bytes, bytes]:
        """Return the stored checksums of batches by identifier."""
        values = {"survey": survey, "ids": list(ids)}
        rows = self._run(connection, _READ_DIGESTS_POSTGRES, values).all()
        return {bytes(row.id): bytes(row.digest) for row in rows}

    def read_pages(
        self, connection: Connection, cell: CellRow, pages: Sequence[int]
    ) -> dict[int, bytes]:
        """Return those of the pages that a cell has, by number."""
        values = {**vars(cell), "pages": list(pages)}
        rows = self._run(connection, _READ_PAGES_POSTGRES, values).all()
        return {row.page: bytes(row.counts) for row in rows}

    def _for_driver(self, sql: str) -> str:
        return _with_psycopg_names(sql)


@lru_cache(maxsize=64)
def _with_psycopg_names(sql: str) -> str:
    """Return SQL with ``%(name)s`` for each ``:name``."""
    return re.sub(r":(\w+)", r"%(\1)s", sql)
