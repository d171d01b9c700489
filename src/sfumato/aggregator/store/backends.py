"""The two databases: how to open and lock each, and what its errors mean.

SQLite: one file, write-ahead log, ``synchronous = FULL``, so a commit has reached the disk.
PostgreSQL: durable by default (``synchronous_commit``); several aggregators may share a server.
"""

import shutil
import sqlite3
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, Select, create_engine, event, make_url, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError

from sfumato.errors import InvalidSetting, MissingExtra, StoreFull, StoreUnavailable

__all__ = ["WRITES", "Backend", "backend_for"]

_RESERVE = 2**25
"""Bytes to keep free on the disk of SQLite: stop writing before the disk is full."""

_WAIT = 5.0
"""Seconds that a writer waits for another writer's lock."""

_KEEPALIVE = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
"""Notice within seconds that a server is gone, so that clients can retry elsewhere."""

_MIGRATION_LOCK = 0x5F5A70  # any number, the same for all aggregators

WRITES = "sfumato_writes"
"""The execution option of connections that will write."""

_PRAGMAS = (
    "journal_mode = WAL",
    "synchronous = FULL",
    "foreign_keys = ON",
    "secure_delete = ON",
    "wal_autocheckpoint = 4000",
)

_SQLITE_PROBLEMS = {
    sqlite3.SQLITE_BUSY: "is locked by another program",
    sqlite3.SQLITE_LOCKED: "is locked by another program",
    sqlite3.SQLITE_READONLY: "is read-only",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened",
    sqlite3.SQLITE_IOERR: "cannot be read or written",
    sqlite3.SQLITE_CORRUPT: "is damaged",
    sqlite3.SQLITE_NOTADB: "is not a database",
}


class Backend:
    """The part of the store that depends on the database."""

    engine: Engine

    def require_space(self) -> None:
        """Raise ``StoreFull`` before there is no space left, unless the database itself does."""

    def lock_for_migration(self, connection: Connection) -> None:
        """Let only one starting aggregator at a time migrate the tables."""

    def lock_rows(self, query: Select[Any]) -> Select[Any]:
        """Return the query with its rows locked until the end of the transaction."""
        return query

    def translate(self, error: DBAPIError) -> StoreUnavailable:
        """Return the store's error for an error of the database."""
        raise NotImplementedError


def backend_for(url: str, *, reserve: int = _RESERVE, wait: float = _WAIT) -> Backend:
    """Return the backend for ``sqlite:///reports.db`` or ``postgresql://user@host/database``.

    ``reserve``: bytes to keep free on SQLite's disk. ``wait``: seconds to wait for a lock.
    """
    try:
        address = make_url(url)
    except ArgumentError:
        raise _unknown_store() from None
    if address.drivername == "sqlite":
        return _SqliteBackend(address, reserve=reserve, wait=wait)
    if address.drivername in ("postgresql", "postgres"):
        return _PostgresBackend(address, wait=wait)
    raise _unknown_store()


def _unknown_store() -> InvalidSetting:
    # Do not echo the URL: it may contain a password.
    return InvalidSetting("the store must be sqlite:///FILE or postgresql://USER@HOST/DATABASE.")


class _SqliteBackend(Backend):
    """A file on the aggregator's machine. A transaction that writes holds the only lock."""

    def __init__(self, address: URL, *, reserve: int, wait: float) -> None:
        if not address.database or address.database == ":memory:":
            raise InvalidSetting(
                "the store must be a file, such as sqlite:///reports.db: "
                "reports in memory would be lost."
            )
        self._file = Path(address.database).resolve()
        self._reserve = reserve
        self._identity: tuple[int, int] | None = None
        if not self._file.parent.is_dir():
            raise InvalidSetting(
                f"the store's folder {self._file.parent} does not exist. Create it first."
            )
        connect_args = {"check_same_thread": False, "timeout": wait}
        self.engine = create_engine(address, connect_args=connect_args)
        event.listen(self.engine, "connect", self._prepare)
        event.listen(self.engine, "begin", _begin_sqlite)

    def require_space(self) -> None:
        """Refuse to write to a disk that is almost full, or to a file that was replaced.

        A full disk would leave half a write-ahead log. Writes to a file that was deleted or
        replaced would succeed, and be lost when the last connection closes.
        """
        try:
            free = shutil.disk_usage(self._file.parent).free
            has_moved = self._identity is not None and self._identity != _identity_of(self._file)
        except OSError:
            has_moved = True
        if has_moved:
            raise StoreUnavailable(
                "the store's file was moved, replaced or deleted. "
                "Restore it, or restart the aggregator."
            )
        if free < self._reserve:
            reserve = self._reserve // 2**20
            raise StoreFull(f"the store's disk has less than {reserve} MiB left. Free some space.")

    def _prepare(self, connection: sqlite3.Connection, _: object) -> None:
        connection.isolation_level = None  # _begin_sqlite starts transactions, not the driver
        for pragma in _PRAGMAS:
            connection.execute(f"PRAGMA {pragma}").close()
        if self._identity is None:
            self._identity = _identity_of(self._file)

    def translate(self, error: DBAPIError) -> StoreUnavailable:
        """Return the store's error for an error of SQLite, by its code."""
        code = getattr(error.orig, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            return StoreFull("the store's disk is full. Free some space.")
        problem = _SQLITE_PROBLEMS.get(code, "failed")
        return StoreUnavailable(f"the store {problem}. Nothing changed; try again later.")


def _identity_of(file: Path) -> tuple[int, int]:
    """Identify a file independently of its name."""
    status = file.stat()
    return status.st_dev, status.st_ino


def _begin_sqlite(connection: Connection) -> None:
    # Take the write lock now: a reader that becomes a writer can lose the race for it.
    writes = connection.get_execution_options().get(WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


class _PostgresBackend(Backend):
    """A server that several aggregators may share. It reports a full disk itself."""

    def __init__(self, address: URL, *, wait: float) -> None:
        try:
            import psycopg  # noqa: F401 - is it installed?
        except ImportError:
            raise MissingExtra(
                "a PostgreSQL store needs psycopg: pip install 'sfumato[server]'"
            ) from None
        options = f"-c lock_timeout={int(wait * 1000)} -c timezone=UTC"
        connect_args = {"connect_timeout": max(2, int(wait)), "options": options, **_KEEPALIVE}
        self.engine = create_engine(
            address.set(drivername="postgresql+psycopg"),
            connect_args=connect_args,
            pool_pre_ping=True,
        )

    def lock_for_migration(self, connection: Connection) -> None:
        """Take a lock that belongs to no table: there may be none yet."""
        query = text("SELECT pg_advisory_xact_lock(:lock)")
        connection.execute(query, {"lock": _MIGRATION_LOCK})

    def lock_rows(self, query: Select[Any]) -> Select[Any]:
        """Lock the rows of the query. A survey's row protects everything that refers to it."""
        return query.with_for_update()

    def translate(self, error: DBAPIError) -> StoreUnavailable:
        """Return the store's error for an error of PostgreSQL, by its SQLSTATE."""
        state = getattr(error.orig, "sqlstate", None) or ""
        if state in ("53100", "53200"):  # disk full, out of memory
            return StoreFull("the database server has no space left. Free some space there.")
        if state == "55P03":  # lock not available
            return StoreUnavailable(
                "the store is locked by another program. Nothing changed; try again later."
            )
        if isinstance(error, OperationalError):  # perhaps in the middle of a commit
            return StoreUnavailable(
                "the database server cannot be reached. Try again later: nothing counts twice."
            )
        return StoreUnavailable("the database server failed. Nothing changed; try again later.")
