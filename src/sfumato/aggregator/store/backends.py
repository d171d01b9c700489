"""The two supported databases: how to open and lock them, and what their errors mean.

SQLite uses one file, a write-ahead log and ``synchronous = FULL``, so committed data is on disk.
PostgreSQL is durable by default (``synchronous_commit``). Several aggregators can share a server.
"""

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from sqlalchemy import (
    Connection,
    Engine,
    RootTransaction,
    Select,
    create_engine,
    event,
    make_url,
    text,
)
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError
from sqlalchemy.pool import ConnectionPoolEntry

from sfumato.aggregator.store.statements import (
    SHARED_SLOTS,
    PostgresStatements,
    SqliteStatements,
    Statements,
)
from sfumato.errors import InvalidSetting, MissingExtra, StoreFull, StoreUnavailable
from sfumato.foundation.installation import install_hint
from sfumato.randomness import fresh_key

__all__ = ["WRITES", "Backend", "backend_for"]

_MIN_SQLITE = (3, 32, 0)
"""The first version of SQLite that takes as many parameters as a large group of batches has."""

_RESERVE_BYTES = 2**25
"""Bytes to keep free on SQLite's disk: writing stops before the disk is full."""

_CHECKPOINT_INTERVAL = 60.0
"""Seconds between checkpoints, which empty SQLite's write-ahead log into the database file."""

_CHECKPOINT_WAIT = 0.05
"""Seconds that a checkpoint waits for readers. Meanwhile, nothing can be written."""

_LOCK_TIMEOUT = 5.0
"""Seconds that a writer waits for another writer's lock."""

_STATEMENT_TIMEOUT = 30.0
"""Seconds that PostgreSQL may take for a statement, other than a migration or ``VACUUM``."""

_IDLE_TIMEOUT = 60.0
"""Seconds after which PostgreSQL ends the transaction of an aggregator that has been paused."""

_KEEPALIVE_SETTINGS = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
"""Connection settings that detect a lost server within seconds, so clients can retry elsewhere."""

_MIGRATION_LOCK_ID = 0x5F5A70  # arbitrary, but the same for all aggregators
_SURVEY_LOCK_CLASS = 0x5F5A71  # likewise; the second half of these locks is the survey's number
_CELL_SLOT_CLASS = 0x5F5A72  # likewise; the second half is the slot
_HOUR_SLOT_CLASS = 0x5F5A73  # likewise; the second half is the survey's number and the slot

_SLOT_COUNT = 64
"""How many transactions can count at the same time on PostgreSQL. A power of two, so that a random
byte chooses each slot equally often."""

_LOCK_CELL_SLOT = """
SELECT slot FROM generate_series(0, %(slots)s - 1) AS slot
WHERE pg_try_advisory_xact_lock(%(cells)s, slot) LIMIT 1
"""

_SHARE_SURVEY = """
SELECT pg_advisory_xact_lock_shared(%(surveys)s, %(survey)s), (
    SELECT number %% %(slots)s
    FROM generate_series(%(start)s, %(start)s + %(slots)s - 1) AS number
    WHERE pg_try_advisory_xact_lock(
        %(hours)s, CAST(%(survey)s AS integer) * %(slots)s + number %% %(slots)s
    ) LIMIT 1
)
"""

WRITES = "sfumato_writes"
"""The execution option that marks a connection that will write."""

_GENERATION = "sfumato_generation"
"""The key of a connection's number of earlier connection pools, which were disposed."""

_PRAGMAS = (
    "synchronous = FULL",
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
    """The database-specific part of the store."""

    engine: Engine
    statements: Statements

    def lock_cell_slot(self, connection: Connection) -> int:
        """Return a slot whose cells nobody else counts in until the transaction ends."""
        return SHARED_SLOTS.cells

    def share_survey(self, connection: Connection, number: int) -> int:
        """Keep others from locking a survey until the transaction ends.

        Return a slot whose hours nobody else counts in for this survey until then.
        """
        return SHARED_SLOTS.hours

    def lock_survey(self, connection: Connection, number: int) -> None:
        """Keep others from counting in a survey, or locking it, until the transaction ends."""

    def begin_snapshot(self, connection: Connection) -> RootTransaction:
        """Begin a transaction whose statements all see the same moment, as SQLite's do."""
        return connection.begin()

    def require_file(self) -> None:
        """Raise ``StoreUnavailable`` if what is written now would be lost."""

    def after_commit(self, connection: Connection) -> None:
        """Note what a commit on this connection did to the files."""

    def checkpoint_if_due(self) -> None:
        """Move what was committed to its final place from time to time."""

    def checkpoint(self) -> None:
        """Move what was committed to its final place, unless the database does that itself."""

    def erase_deleted_rows(self, table: str) -> None:
        """Remove what deleted rows leave in the files of the database."""
        raise NotImplementedError

    def require_space(self) -> None:
        """Raise ``StoreFull`` before space runs out, unless the database reports that itself."""

    def lock_for_migration(self, connection: Connection) -> None:
        """Ensure that only one aggregator at a time migrates the tables."""

    def lock_rows(self, query: Select[Any]) -> Select[Any]:
        """Return the query, changed to lock its rows until the transaction ends."""
        return query

    def translate(self, error: DBAPIError) -> StoreUnavailable:
        """Translate a database error into one of the store's errors."""
        raise NotImplementedError


def backend_for(
    url: str,
    *,
    reserve: int = _RESERVE_BYTES,
    lock_timeout: float = _LOCK_TIMEOUT,
    clock: Callable[[], float] = monotonic,
) -> Backend:
    """Return the backend for ``sqlite:///reports.db`` or ``postgresql://user@host/database``.

    ``reserve``: bytes to keep free on SQLite's disk. ``lock_timeout``: seconds to wait for a lock.
    ``clock``: returns the seconds that decide when the next checkpoint is due.
    """
    try:
        parsed_url = make_url(url)
    except ArgumentError:
        raise _invalid_store_url() from None
    if parsed_url.drivername == "sqlite":
        return _SqliteBackend(parsed_url, reserve=reserve, lock_timeout=lock_timeout, clock=clock)
    if parsed_url.drivername in ("postgresql", "postgres"):
        return _PostgresBackend(parsed_url, lock_timeout=lock_timeout)
    raise _invalid_store_url()


def _invalid_store_url() -> InvalidSetting:
    # Do not echo the URL: it may contain a password.
    return InvalidSetting("the store must be sqlite:///FILE or postgresql://USER@HOST/DATABASE.")


class _SqliteBackend(Backend):
    """A file on the aggregator's machine. Each write transaction locks the entire file."""

    statements = SqliteStatements()

    def __init__(
        self,
        url: URL,
        *,
        reserve: int,
        lock_timeout: float,
        clock: Callable[[], float],
    ) -> None:
        if not url.database or url.database == ":memory:":
            raise InvalidSetting(
                "the store must be a file, such as sqlite:///reports.db. "
                "Reports in memory would be lost."
            )
        if sqlite3.sqlite_version_info < _MIN_SQLITE:
            raise InvalidSetting(
                f"an SQLite store needs SQLite 3.32 or later; this is {sqlite3.sqlite_version}. "
                "Use another Python, or PostgreSQL."
            )
        self._file = Path(url.database).resolve()
        self._log_file = self._file.with_name(f"{self._file.name}-wal")
        self._reserve = reserve
        self._lock_timeout = lock_timeout
        self._clock = clock
        self._next_checkpoint = clock() + _CHECKPOINT_INTERVAL
        self._identity: tuple[int, int] | None = None
        self._log_identity: tuple[int, int] | None = None
        self._generation = 0
        if not self._file.parent.is_dir():
            raise InvalidSetting(
                f"the store's folder {self._file.parent} does not exist. Create it first."
            )
        _create_private_file(self._file)
        connect_args = {"check_same_thread": False, "timeout": lock_timeout}
        self.engine = create_engine(url, connect_args=connect_args)
        event.listen(self.engine, "connect", self._prepare_connection)
        event.listen(self.engine, "begin", _begin_sqlite)
        event.listen(self.engine, "engine_disposed", self._forget_log)

    def require_file(self) -> None:
        """Raise an error if the file or its write-ahead log was moved, replaced or deleted.

        Writes would succeed, but be lost when the last connection closes or the process is killed.
        """
        if self._was_replaced(self._file, self._identity):
            raise StoreUnavailable(
                "the store's file was moved, replaced or deleted. "
                "Restore it, or restart the aggregator."
            )
        if self._was_replaced(self._log_file, self._log_identity):
            raise StoreUnavailable(
                f"the store's write-ahead log ({self._log_file.name}) was moved, replaced or "
                "deleted. Stop the aggregator with SIGTERM, which saves its content, and start it "
                "again."
            )

    @staticmethod
    def _was_replaced(file: Path, identity: tuple[int, int] | None) -> bool:
        return identity is not None and identity != _identify(file)

    def require_space(self) -> None:
        """Raise an error if the disk is almost full: the write-ahead log would be incomplete."""
        try:
            free_bytes = shutil.disk_usage(self._file.parent).free
        except OSError:
            raise StoreUnavailable("the store's disk cannot be read. Restore it.") from None
        if free_bytes < self._reserve:
            reserve_mib = self._reserve // 2**20
            raise StoreFull(
                f"the store's disk has less than {reserve_mib} MiB left. Free some space."
            )

    def after_commit(self, connection: Connection) -> None:
        """Remember which file is the write-ahead log.

        A connection of a disposed pool closes soon, and may delete the log if it is the last one.
        """
        is_pooled = connection.info[_GENERATION] == self._generation
        if self._log_identity is None and is_pooled:
            self._log_identity = _identify(self._log_file)

    def checkpoint_if_due(self) -> None:
        """Checkpoint if the last one is a minute ago."""
        if self._clock() >= self._next_checkpoint:
            self.checkpoint()

    def checkpoint(self) -> None:
        """Empty the write-ahead log into the database file, unless a reader needs it.

        The log contains each commit by itself: the identifiers of its batches, and the counts
        before and after. So it shows the reports of each commit, which the counts alone do not.
        """
        self._next_checkpoint = self._clock() + _CHECKPOINT_INTERVAL
        with contextlib.suppress(DBAPIError):  # the commit is safe; the next checkpoint catches up
            self._checkpoint(busy_timeout=0.0)

    def erase_deleted_rows(self, table: str) -> None:
        """Write the table again, then empty the write-ahead log, which contains the old rows."""
        self._rewrite(table)
        self._empty_log()

    def _rewrite(self, table: str) -> None:
        """Write all rows of a table to new pages.

        ``secure_delete`` overwrites deleted rows where they are, and pages that become free. But
        when rows move between pages, copies of them stay in the unused part of the old page.
        """
        statements = (
            f"CREATE TEMP TABLE kept AS SELECT * FROM {table}",  # noqa: S608 - one of our tables
            f"DELETE FROM {table}",  # noqa: S608 - overwrites all pages
            f"INSERT INTO {table} SELECT * FROM kept",  # noqa: S608
            "DROP TABLE temp.kept",
        )
        with self.engine.connect() as connection:
            writer = connection.execution_options(**{WRITES: True})
            with writer.begin():
                for statement in statements:
                    writer.exec_driver_sql(statement)

    def _empty_log(self) -> None:
        """Empty the write-ahead log, or raise ``StoreUnavailable`` if a reader needs it."""
        deadline = monotonic() + self._lock_timeout
        while not self._checkpoint(busy_timeout=_CHECKPOINT_WAIT):
            if monotonic() >= deadline:
                raise StoreUnavailable(
                    "another program is reading the store, so deleted rows are still in its "
                    "write-ahead log. Try again when that program has finished."
                )
            sleep(_CHECKPOINT_WAIT)  # let others write

    def _checkpoint(self, *, busy_timeout: float) -> bool:
        """Empty the write-ahead log. Return whether it is empty, and not in use by a reader."""
        with self.engine.connect() as connection:
            # Outside a transaction: a checkpoint cannot wait for its own connection.
            cursor = connection.connection.cursor()
            try:
                cursor.execute(f"PRAGMA busy_timeout = {round(busy_timeout * 1000)}")
                row = cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            except sqlite3.Error as error:  # SQLAlchemy does not wrap the errors of raw cursors
                raise OperationalError("wal_checkpoint", None, error) from None
            finally:
                cursor.execute(f"PRAGMA busy_timeout = {round(self._lock_timeout * 1000)}")
                cursor.close()
        return row is not None and row[0] == 0

    def _forget_log(self, _: Engine) -> None:
        # Closing the last connection deletes the log. The next connection creates another one.
        self._generation += 1
        self._log_identity = None

    def _prepare_connection(
        self, connection: sqlite3.Connection, record: ConnectionPoolEntry
    ) -> None:
        record.info[_GENERATION] = self._generation
        connection.isolation_level = None  # _begin_sqlite starts transactions, not the driver
        self._use_log(connection)
        for pragma in _PRAGMAS:
            connection.execute(f"PRAGMA {pragma}").close()
        if self._identity is None:
            self._identity = _identify(self._file)

    def _use_log(self, connection: sqlite3.Connection) -> None:
        """Use a write-ahead log. SQLite does not wait if another connection is about to do so."""
        deadline = monotonic() + self._lock_timeout
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL").close()
            except sqlite3.OperationalError as error:
                is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
                if not is_busy or monotonic() >= deadline:
                    raise
            else:
                return
            sleep(_CHECKPOINT_WAIT)

    def translate(self, error: DBAPIError) -> StoreUnavailable:
        """Translate a SQLite error by its code."""
        code = getattr(error.orig, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            return StoreFull("the store's disk is full. Free some space.")
        problem = _SQLITE_PROBLEMS.get(code, "failed")
        return StoreUnavailable(f"the store {problem}. Nothing changed; try again later.")


def _identify(file: Path) -> tuple[int, int] | None:
    """Return the device and inode numbers, or ``None`` if there is no such file."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _create_private_file(file: Path) -> None:
    """Create an empty file that only its owner may read. SQLite's other files get its mode."""
    with contextlib.suppress(OSError):  # it exists, or SQLite will say what is wrong
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _begin_sqlite(connection: Connection) -> None:
    # Take the write lock now: upgrading a read lock later can fail.
    will_write = connection.get_execution_options().get(WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if will_write else "BEGIN")


def _too_many_transactions() -> StoreUnavailable:
    return StoreUnavailable("too many uploads are being counted. Try again in a moment.")


class _PostgresBackend(Backend):
    """A server that several aggregators can share. It reports a full disk itself."""

    statements = PostgresStatements()

    def __init__(self, url: URL, *, lock_timeout: float) -> None:
        try:
            import psycopg  # noqa: F401 - check that it is installed
        except ImportError:
            raise MissingExtra(
                f"a PostgreSQL store needs psycopg: {install_hint('server')}"
            ) from None
        settings = {
            "lock_timeout": int(lock_timeout * 1000),
            "statement_timeout": int(_STATEMENT_TIMEOUT * 1000),
            "idle_in_transaction_session_timeout": int(_IDLE_TIMEOUT * 1000),
            "timezone": "UTC",
        }
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        connect_timeout = max(2, int(lock_timeout))
        connect_args = {
            "connect_timeout": connect_timeout,
            "options": options,
            **_KEEPALIVE_SETTINGS,
        }
        self.engine = create_engine(
            url.set(drivername="postgresql+psycopg"),
            connect_args=connect_args,
            isolation_level="READ COMMITTED",  # a statement after a lock sees what was committed
            pool_pre_ping=True,
        )

    def lock_cell_slot(self, connection: Connection) -> int:
        """Take the first slot that is free. Never wait for one.

        A transaction keeps its slots even if its aggregator has lost the connection. So nobody
        overwrites what the server may still be committing.
        """
        values = {"cells": _CELL_SLOT_CLASS, "slots": _SLOT_COUNT}
        row = connection.exec_driver_sql(_LOCK_CELL_SLOT, values).one_or_none()
        if row is None:
            raise _too_many_transactions()
        return int(row.slot)

    # Advisory locks are granted in order. With locks on the survey's row, a stream of uploads could
    # keep an operator from closing the survey.

    def share_survey(self, connection: Connection, number: int) -> int:
        """Take a shared advisory lock, and a random slot for hours.

        If a transaction used one slot for the hours of all its surveys, the store would tell which
        reports to different surveys arrived together, perhaps from one device.
        """
        values = {
            "surveys": _SURVEY_LOCK_CLASS,
            "hours": _HOUR_SLOT_CLASS,
            "survey": number,
            "slots": _SLOT_COUNT,
            "start": fresh_key()[0] % _SLOT_COUNT,
        }
        _, slot = connection.exec_driver_sql(_SHARE_SURVEY, values).one()
        if slot is None:
            raise _too_many_transactions()
        return int(slot)

    def lock_survey(self, connection: Connection, number: int) -> None:
        """Take an exclusive advisory lock."""
        query = "SELECT pg_advisory_xact_lock(%s, %s)"
        connection.exec_driver_sql(query, (_SURVEY_LOCK_CLASS, number))

    def begin_snapshot(self, connection: Connection) -> RootTransaction:
        """Begin a transaction at the level that sees one moment; the default sees several."""
        return connection.execution_options(isolation_level="REPEATABLE READ").begin()

    def erase_deleted_rows(self, table: str) -> None:
        """Write the table and its index to new files.

        A plain ``VACUUM`` only marks the space of deleted rows as free, and leaves their bytes. The
        server's own log keeps traces until it is recycled.
        """
        with self.engine.connect() as connection:
            autocommit = connection.execution_options(isolation_level="AUTOCOMMIT")
            autocommit.exec_driver_sql("SET statement_timeout = 0")
            autocommit.exec_driver_sql(f"VACUUM FULL {table}")
            autocommit.exec_driver_sql("RESET statement_timeout")

    def lock_for_migration(self, connection: Connection) -> None:
        """Take an advisory lock, because the tables may not exist yet."""
        connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
        query = text("SELECT pg_advisory_xact_lock(:lock)")
        connection.execute(query, {"lock": _MIGRATION_LOCK_ID})

    def lock_rows(self, query: Select[Any]) -> Select[Any]:
        """Return the query with FOR UPDATE."""
        return query.with_for_update()

    def translate(self, error: DBAPIError) -> StoreUnavailable:
        """Translate a PostgreSQL error by its SQLSTATE."""
        state = getattr(error.orig, "sqlstate", None) or ""
        if state in ("53100", "53200"):  # disk full, out of memory
            return StoreFull("the database server has no space left. Free some space there.")
        if state == "55P03":  # lock not available
            return StoreUnavailable(
                "the store is locked by another program. Nothing changed; try again later."
            )
        if state == "57014":  # query cancelled
            return StoreUnavailable(
                "the database server took too long. Nothing changed; try again later."
            )
        if isinstance(error, OperationalError):  # possibly during a commit
            return StoreUnavailable(
                "the database server cannot be reached. Try again later; nothing is counted twice."
            )
        return StoreUnavailable("the database server failed. Nothing changed; try again later.")
