"""The statements that counting needs, for each database.

Nearly all of a store's work is to count batches. SQLAlchemy's expressions and results would take
longer than the databases, so these statements are text for the driver's own cursors. On PostgreSQL,
where each statement is a message to the server, a group of batches needs the same few, however many
batches it has.
"""

import json
import re
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal, NamedTuple

from sqlalchemy import Connection
from sqlalchemy.engine.interfaces import DBAPICursor
from sqlalchemy.exc import DBAPIError

__all__ = [
    "SHARED_SLOTS",
    "CellRow",
    "PostgresStatements",
    "Slots",
    "SqliteStatements",
    "State",
    "Statements",
    "SurveyRow",
]

State = Literal["open", "closed", "ended"]
"""An open survey accepts reports. A closed one can be opened again; an ended one cannot."""

_Values = Mapping[str, object] | Sequence[object]
"""The values of a statement: by the names in its SQL, or in the order of its question marks."""

_Digests = Mapping[bytes, bytes]
"""The checksums of batches (empty if they have none), by identifier."""


@dataclass(frozen=True)
class SurveyRow:
    """A survey's row: its number and state, the open part of its tally, its imported reports."""

    number: int
    state: State
    part: int
    imported_reports: int


class Slots(NamedTuple):
    """The slots of the rows that a transaction counts in for a survey: of cells, and of hours.

    They are chosen independently. Otherwise, the store would tell in which hour the reports in a
    slot's cells arrived. Each survey has a slot of its own for hours.
    """

    cells: int
    hours: int


SHARED_SLOTS = Slots(0, 0)
"""The slots of a transaction that nobody else counts at the same time as."""


@dataclass(frozen=True)
class CellRow:
    """The key of the rows that hold the pages of a cell."""

    survey: int
    part: int
    day: str
    sender: str
    key: str
    slot: int


_READ_SURVEY = "SELECT number, state, part, reports FROM surveys WHERE fingerprint = :fingerprint"

_IN_CELL = (
    "survey = :survey AND part = :part AND day = :day AND sender = :sender AND key = :key "
    "AND slot = :slot"
)

_WRITE_PAGES = """
INSERT INTO cell_pages (survey, part, day, sender, key, slot, page, counts) {rows}
ON CONFLICT (survey, part, day, sender, key, page, slot) DO UPDATE SET counts = excluded.counts
"""

_ADD_TO_HOUR = """
INSERT INTO hour_counts (survey, hour, slot, batches, reports)
VALUES (:survey, :hour, :slot, :batches, :reports)
ON CONFLICT (survey, hour, slot) DO UPDATE SET
batches = hour_counts.batches + excluded.batches, reports = hour_counts.reports + excluded.reports
"""

_SUM_HOURS = "SELECT coalesce(sum(reports), 0) FROM hour_counts WHERE survey = :survey"


class Statements(ABC):
    """What counting reads and writes. Its SQL has ``:name`` where a value goes."""

    def read_survey(self, connection: Connection, fingerprint: str) -> SurveyRow | None:
        """Return the row of a survey, or ``None`` if the survey is unknown."""
        row = self._run(connection, _READ_SURVEY, {"fingerprint": fingerprint}).fetchone()
        return None if row is None else SurveyRow(*row)

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

    @abstractmethod
    def write_pages(
        self, connection: Connection, cell: CellRow, pages: Mapping[int, bytes]
    ) -> None:
        """Write pages of a cell, in place of those it has."""

    def add_to_hour(
        self, connection: Connection, survey: int, hour: str, slot: int, sizes: Sequence[int]
    ) -> None:
        """Add batches of the given sizes to what arrived in an hour."""
        row = {
            "survey": survey,
            "hour": hour,
            "slot": slot,
            "batches": len(sizes),
            "reports": sum(sizes),
        }
        self._run(connection, _ADD_TO_HOUR, row)

    def sum_hours(self, connection: Connection, survey: int) -> int:
        """Return the number of uploaded reports."""
        [(total,)] = self._run(connection, _SUM_HOURS, {"survey": survey}).fetchall()
        return int(total)

    def _run(self, connection: Connection, sql: str, values: _Values) -> DBAPICursor:
        """Execute a statement. Return the cursor, which has the rows."""
        cursor = connection.connection.cursor()
        try:
            cursor.execute(self._for_driver(sql), values)
        except self.driver_error as error:
            raise _translate(connection, sql, error) from None
        return cursor

    @property
    @abstractmethod
    def driver_error(self) -> type[Exception]:
        """The base class of the driver's errors."""

    def _for_driver(self, sql: str) -> str:
        return sql


def _translate(connection: Connection, sql: str, error: Exception) -> BaseException:
    """Return SQLAlchemy's error for an error of the driver, without the values."""
    dialect = connection.dialect
    assert dialect.dbapi is not None  # noqa: S101 - a dialect in use has a driver
    return DBAPIError.instance(sql, None, error, dialect.dbapi.Error, dialect=dialect)


# --- SQLite ---------------------------------------------------------------------------------------

# OR ROLLBACK saves SQLite the journal with which it could undo this statement alone.
_INSERT_IDS_SQLITE = "INSERT OR ROLLBACK INTO batches (id, survey, digest) VALUES "

_READ_DIGESTS_SQLITE = "SELECT id, digest FROM batches WHERE survey = ? AND id IN "

_WRITE_PAGE_SQLITE = _WRITE_PAGES.format(
    rows="VALUES (:survey, :part, :day, :sender, :key, :slot, :page, :counts)"
)

_READ_PAGES_SQLITE = f"""
SELECT page, counts FROM cell_pages
WHERE {_IN_CELL} AND page IN (SELECT value FROM json_each(:pages))
"""  # noqa: S608


class SqliteStatements(Statements):
    """Statements for SQLite, whose writers take turns.

    Python's driver lets other threads run at each row that a statement returns, and at each
    execution. So these statements insert many rows at once, and return as few as possible.
    """

    driver_error = sqlite3.Error

    def insert_ids(self, connection: Connection, survey: int, digests: _Digests) -> set[bytes]:
        """Store the identifiers of batches. Return those that were not stored before."""
        # The transaction has the write lock, so nobody else stores them meanwhile.
        known = self.read_digests(connection, survey, list(digests))
        new_ids = digests.keys() - known.keys()
        values: list[object] = []
        for id_ in new_ids:
            values += (id_, survey, digests[id_])
        if new_ids:
            rows = ",".join(["(?,?,?)"] * len(new_ids))
            self._run(connection, f"{_INSERT_IDS_SQLITE}{rows}", values)
        return new_ids

    def read_digests(
        self, connection: Connection, survey: int, ids: Sequence[bytes]
    ) -> dict[bytes, bytes]:
        """Return the stored checksums of batches by identifier."""
        places = ",".join("?" * len(ids))
        sql = f"{_READ_DIGESTS_SQLITE}({places})"
        return dict(self._run(connection, sql, (survey, *ids)).fetchall())

    def read_pages(
        self, connection: Connection, cell: CellRow, pages: Sequence[int]
    ) -> dict[int, bytes]:
        """Return those of the pages that a cell has, by number."""
        values = {**vars(cell), "pages": json.dumps(list(pages))}
        return dict(self._run(connection, _READ_PAGES_SQLITE, values).fetchall())

    def write_pages(
        self, connection: Connection, cell: CellRow, pages: Mapping[int, bytes]
    ) -> None:
        """Write pages of a cell, in place of those it has."""
        key = vars(cell)
        rows = [{**key, "page": page, "counts": stored} for page, stored in pages.items()]
        cursor = connection.connection.cursor()
        try:
            cursor.executemany(_WRITE_PAGE_SQLITE, rows)
        except sqlite3.Error as error:
            raise _translate(connection, _WRITE_PAGE_SQLITE, error) from None


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

_WRITE_PAGES_POSTGRES = _WRITE_PAGES.format(
    rows="SELECT :survey, :part, :day, :sender, :key, :slot, page, counts "
    "FROM unnest(CAST(:pages AS integer[]), CAST(:counts AS bytea[])) AS new (page, counts)"
)

_READ_PAGES_POSTGRES = f"""
SELECT page, counts FROM cell_pages WHERE {_IN_CELL} AND page = ANY(CAST(:pages AS integer[]))
"""  # noqa: S608


class PostgresStatements(Statements):
    """Statements for PostgreSQL, where several aggregators count at the same time."""

    @cached_property
    def driver_error(self) -> type[Exception]:
        """The base class of psycopg's errors, which only PostgreSQL needs."""
        from psycopg import Error

        return Error

    def insert_ids(self, connection: Connection, survey: int, digests: _Digests) -> set[bytes]:
        """Store the identifiers of batches. Return those that were not stored before."""
        # Every aggregator stores identifiers in the same order, so that two cannot deadlock.
        ids = sorted(digests)
        values = {"survey": survey, "ids": ids, "digests": [digests[id_] for id_ in ids]}
        rows = self._run(connection, _INSERT_IDS_POSTGRES, values).fetchall()
        return {bytes(id_) for (id_,) in rows}

    def read_digests(
        self, connection: Connection, survey: int, ids: Sequence[bytes]
    ) -> dict[bytes, bytes]:
        """Return the stored checksums of batches by identifier."""
        values = {"survey": survey, "ids": list(ids)}
        rows = self._run(connection, _READ_DIGESTS_POSTGRES, values).fetchall()
        return {bytes(id_): bytes(digest) for id_, digest in rows}

    def read_pages(
        self, connection: Connection, cell: CellRow, pages: Sequence[int]
    ) -> dict[int, bytes]:
        """Return those of the pages that a cell has, by number."""
        values = {**vars(cell), "pages": list(pages)}
        rows = self._run(connection, _READ_PAGES_POSTGRES, values).fetchall()
        return {page: bytes(counts) for page, counts in rows}

    def write_pages(
        self, connection: Connection, cell: CellRow, pages: Mapping[int, bytes]
    ) -> None:
        """Write pages of a cell, in place of those it has."""
        values = {**vars(cell), "pages": list(pages), "counts": list(pages.values())}
        self._run(connection, _WRITE_PAGES_POSTGRES, values)

    def _for_driver(self, sql: str) -> str:
        return _with_psycopg_names(sql)


@lru_cache(maxsize=64)
def _with_psycopg_names(sql: str) -> str:
    """Return SQL with ``%(name)s`` for each ``:name``, and ``%(name)b`` for arrays of bytes.

    ``b`` sends bytes as they are. As text, they would be twice as long.
    """
    sql = re.sub(r":(\w+) AS bytea\[\]", r"%(\1)b AS bytea[]", sql)
    return re.sub(r":(\w+)", r"%(\1)s", sql)
