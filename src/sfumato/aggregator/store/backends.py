"""The two databases: how each is opened, locked and understood when it refuses.

SQLite: one file, write-ahead log, ``synchronous = FULL``, so that what is committed has reached the disk.
PostgreSQL: by address; durable by default (``synchronous_commit``); several aggregators may share one.
"""

import shutil
import sqlite3
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy import Connection, Engine, Select, create_engine, event, make_url, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError

from sfumato.errors import InvalidTable, MissingExtra, StoreFull, StoreUnavailable

__all__ = ["Backend", "PostgresBackend", "SqliteBackend", "backend_of"]

_RESERVE = 2**25
"""Free bytes below which SQLite is given nothing more: a full disk is met before it is met."""

_WAIT = 5.0
"""Seconds that a writer waits for a lock that somebody else holds."""

_ALIVE = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
"""A server that has vanished without a word is noticed within seconds, and uploads are told to come again."""

WRITES = "sfumato_writes"
"""The option of a connection that is going to write."""


class Backend(Protocol):
    """What differs between the two."""

    engine: Engine

    def demand_room(self) -> None:
        """Refuse to write (``StoreFull``) before there is no room left."""

    def lock_for_migration(self, connection: Connection) -> None:
        """Let one starting aggregator at a time look at the version of the tables."""

    def locked(self, query: Select[Any]) -> Select[Any]:
        """The query, with its rows locked until the end of the transaction."""

    def problem_of(self, error: DBAPIError) -> StoreUnavailable:
        """What an error of the database means."""


def backend_of(url: str, *, reserve: int = _RESERVE, wait: float = _WAIT) -> Backend:
    """The backend of a URL: ``sqlite:///reports.db`` or ``postgresql://user@host/database``."""
    try:
        address = make_url(url)
    except ArgumentError:
        raise _unknown_store() from None
    if address.drivername == "sqlite":
        return SqliteBackend(address, reserve=reserve, wait=wait)
    if address.drivername in ("postgresql", "postgres"):
        return PostgresBackend(address, wait=wait)
    raise _unknown_store()


def _unknown_store() -> InvalidTable:
    return InvalidTable(
        "the store must be sqlite:///FILE or postgresql://USER@HOST/DATABASE; found something else."
    )


class SqliteBackend:
    """A file beside the aggregator."""

    def __init__(self, address: URL, *, reserve: int = _RESERVE, wait: float = _WAIT) -> None:
        if not address.database or address.database == ":memory:":
            raise InvalidTable(
                "the store must be a file, such as sqlite:///reports.db: reports in memory would be lost."
            )
        self._file, self._reserve = Path(address.database).resolve(), reserve
        self._opened: tuple[int, int] | None = None
        if not self._file.parent.is_dir():
            raise InvalidTable(
                f"there is no folder {self._file.parent} for the store. Make it first."
            )
        self.engine = create_engine(
            address, connect_args={"check_same_thread": False, "timeout": wait}
        )
        event.listen(self.engine, "connect", self._prepare)
        event.listen(self.engine, "begin", _begin_sqlite)

    def demand_room(self) -> None:
        """Writing to a disk that is about to be full would end in half a write-ahead log.

        And writing to a file that was deleted or replaced would go well, and be lost with the last connection.
        """
        try:
            free = shutil.disk_usage(self._file.parent).free
            same = self._opened is None or self._opened == _identity(self._file)
        except OSError:
            raise _moved() from None
        if not same:
            raise _moved()
        if free < self._reserve:
            raise StoreFull(
                f"the disk of the store has less than {self._reserve // 2**20} MiB left. Make room."
            )

    def _prepare(self, connection: sqlite3.Connection, _: object) -> None:
        connection.isolation_level = (
            None  # transactions are begun by _begin_sqlite, not guessed at by the driver
        )
        for pragma in (
            "journal_mode = WAL",
            "synchronous = FULL",
            "foreign_keys = ON",
            "secure_delete = ON",
            "wal_autocheckpoint = 4000",
        ):
            connection.execute(f"PRAGMA {pragma}").close()
        self._opened = self._opened or _identity(self._file)

    def lock_for_migration(self, connection: Connection) -> None:
        """A transaction that is going to write holds the only lock there is."""

    def locked(self, query: Select[Any]) -> Select[Any]:
        """A transaction that is going to write holds the only lock there is."""
        return query

    def problem_of(self, error: DBAPIError) -> StoreUnavailable:
        """Full, locked, read-only or gone."""
        code = getattr(error.orig, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            return StoreFull("the disk of the store is full. Make room.")
        words = {
            sqlite3.SQLITE_BUSY: "is locked by another program",
            sqlite3.SQLITE_LOCKED: "is locked by another program",
            sqlite3.SQLITE_READONLY: "is read-only",
            sqlite3.SQLITE_CANTOPEN: "cannot be opened",
            sqlite3.SQLITE_IOERR: "cannot be read or written",
            sqlite3.SQLITE_CORRUPT: "is damaged",
            sqlite3.SQLITE_NOTADB: "is not a database",
        }
        return StoreUnavailable(
            f"the store {words.get(code, 'refuses to work')}. Nothing changed; try again later."
        )


def _identity(file: Path) -> tuple[int, int]:
    """Which file it is, whatever it is called."""
    status = file.stat()
    return status.st_dev, status.st_ino


def _moved() -> StoreUnavailable:
    return StoreUnavailable(
        "the file of the store was moved, replaced or deleted. Put it back, or start again."
    )


def _begin_sqlite(connection: Connection) -> None:
    # Whoever is going to write says so first: a reader that turns writer can lose the race for the lock.
    writes = connection.get_execution_options().get(WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


class PostgresBackend:
    """A server that several aggregators may share."""

    _MIGRATION_LOCK = 0x5F5A70  # any number, the same for all aggregators

    def __init__(self, address: URL, *, wait: float = _WAIT) -> None:
        try:
            import psycopg  # noqa: F401 - only to see that it is there
        except ImportError:
            raise MissingExtra(
                "a PostgreSQL store needs psycopg: pip install 'sfumato[server]'"
            ) from None
        options = f"-c lock_timeout={int(wait * 1000)} -c timezone=UTC"
        self.engine = create_engine(
            address.set(drivername="postgresql+psycopg"),
            connect_args={"connect_timeout": max(2, int(wait)), "options": options, **_ALIVE},
            pool_pre_ping=True,
        )

    def demand_room(self) -> None:
        """The server's disk is not ours to look at; it says so itself when it is full."""

    def lock_for_migration(self, connection: Connection) -> None:
        """A lock that belongs to no table: there may be none yet."""
        connection.execute(
            text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": self._MIGRATION_LOCK}
        )

    def locked(self, query: Select[Any]) -> Select[Any]:
        """A survey's row stands for all that hangs on it."""
        return query.with_for_update()

    def problem_of(self, error: DBAPIError) -> StoreUnavailable:
        """Full (SQLSTATE 53100), locked (55P03), out of reach, or something else."""
        state = getattr(error.orig, "sqlstate", None) or ""
        if state in ("53100", "53200"):
            return StoreFull("the database server has no room left. Make room there.")
        if state == "55P03":
            return StoreUnavailable(
                "the store is locked by another program. Nothing changed; try again later."
            )
        if isinstance(error, OperationalError):  # perhaps in the very moment of a commit
            return StoreUnavailable(
                "the database server is out of reach. Try again later: nothing counts twice."
            )
        return StoreUnavailable(
            "the database server refuses to work. Nothing changed; try again later."
        )
