"""The database underlying the store: its tables, transactions, error translation and settings.

The tables contain the surveys, which batches were counted (identifiers and, for large batches,
checksums; never reports), the counts for each day, bulk sender and cell, how many reports arrived
in each hour, which tallies were exported and imported, the keys of bulk senders (hashed), and what
operators left out of the results. They contain no address, no user agent and no timestamp more
precise than the hour. On PostgreSQL, transactions that overlap count in different rows ("slots"),
which become one when the day has ended.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Self

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    func,
    insert,
    inspect,
    literal,
    select,
    update,
)
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from sfumato.aggregator.store.backends import WRITES, Backend, backend_for
from sfumato.errors import StoreUnavailable

__all__ = [
    "MIGRATIONS",
    "Database",
    "batches",
    "cells",
    "exports",
    "hours",
    "imports",
    "omissions",
    "senders",
    "settings",
    "surveys",
]

_VERSION_SETTING = "version"

# --- tables ---------------------------------------------------------------------------------------

_metadata_1 = MetaData()

settings = Table(
    "facts",  # the version of this schema, and the hash of the analyst token
    _metadata_1,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

surveys = Table(
    "surveys",
    _metadata_1,
    Column("number", Integer, primary_key=True),
    Column("fingerprint", Text, nullable=False, unique=True),
    Column("resolved", LargeBinary, nullable=False),
    # open, closed, or ended (closed, with its batch identifiers deleted)
    Column("state", Text, nullable=False),
    # the part of the tally that new reports are added to; an export closes it
    Column("part", Integer, nullable=False),
    # Since version 4, only the reports of imported tallies: `hours` has those of uploads.
    Column("reports", BigInteger, key="imported_reports", nullable=False),
)


def _survey_key() -> Column[int]:
    return Column("survey", Integer, ForeignKey(surveys.c.number), primary_key=True)


batches = Table(
    "batches",
    _metadata_1,
    # The identifier comes first in the key: otherwise PostgreSQL, before it has statistics, would
    # scan all of a survey's batches to find one.
    Column("id", LargeBinary, primary_key=True),
    _survey_key(),
    Column("digest", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)

_counts_1 = Table(
    "counts",  # in version 1; `cells` replaced it
    _metadata_1,
    _survey_key(),
    Column("part", Integer, primary_key=True),
    Column("day", Text, primary_key=True),  # 2026-11-15, in UTC; empty for imported tallies
    Column("page", Integer, primary_key=True),
    Column("cells", LargeBinary, nullable=False),
)

_hours_1 = Table(
    "hours",  # until version 3
    _metadata_1,
    _survey_key(),
    Column("hour", Text, primary_key=True),  # 2026-11-15T17, in UTC
    Column("batches", BigInteger, nullable=False),
    Column("reports", BigInteger, nullable=False),
)

exports = Table(
    "exports",
    _metadata_1,
    _survey_key(),
    Column("id", LargeBinary, primary_key=True),
    Column("part", Integer, nullable=False),
    Column("reports", BigInteger, nullable=False),
)

imports = Table(
    "imports",
    _metadata_1,
    _survey_key(),
    Column("id", LargeBinary, primary_key=True),
    Column("digest", LargeBinary, nullable=False),
    Column("part", Integer, nullable=False),
    Column("reports", BigInteger, nullable=False),
    # identifiers of the tallies inside this one, hex-encoded
    Column("covers", Text, nullable=False),
)


# Version 2 splits the counts by cell.
_metadata_2 = MetaData()

_cells_2 = Table(
    "cells",  # in versions 2 and 3
    _metadata_2,
    _survey_key(),
    Column("part", Integer, primary_key=True),
    Column("day", Text, primary_key=True),  # of the upload, in UTC; empty for imported tallies
    Column("sender", Text, primary_key=True),  # a bulk sender; empty for anonymous uploads
    Column("key", Text, primary_key=True),  # the text of a CellKey
    Column("page", Integer, primary_key=True),
    Column("counts", LargeBinary, nullable=False),
)


def _split_by_cell(connection: Connection) -> None:
    """Move the counts of version 1 to cells without a key."""
    _metadata_2.create_all(connection)
    old = _counts_1.c
    columns = [old.survey, old.part, old.day, literal(""), literal(""), old.page, old.cells]
    names = ["survey", "part", "day", "sender", "key", "page", "counts"]
    connection.execute(insert(_cells_2).from_select(names, select(*columns)))
    _counts_1.drop(connection)


# Version 3 knows bulk senders, and what operators leave out of the results.
_metadata_3 = MetaData()

senders = Table(
    "senders",
    _metadata_3,
    _survey_key(),
    Column("name", Text, primary_key=True),
    Column("key_sha256", Text, nullable=False),  # empty after the key was revoked
)

omissions = Table(
    "omissions",
    _metadata_3,
    _survey_key(),
    Column("column", Text, primary_key=True),  # the column of `cells` to compare: day or sender
    Column("value", Text, primary_key=True),
)


def _add_senders(connection: Connection) -> None:
    """Add the new tables. Erase the checksums of batches, which could reveal a single report."""
    _metadata_3.create_all(connection)
    connection.execute(update(batches).values(digest=b""))


# Version 4 lets several transactions count in the same cell. The tables have new names, so that an
# aggregator of an earlier version that is still running fails instead of miscounting.
_metadata_4 = MetaData()


def _slot_key() -> Column[int]:
    """The number of the row among those that overlapping transactions count in."""
    return Column("slot", Integer, primary_key=True, autoincrement=False)


cells = Table(
    "cell_pages",
    _metadata_4,
    _survey_key(),
    Column("part", Integer, primary_key=True),
    Column("day", Text, primary_key=True),  # of the upload, in UTC; empty for imported tallies
    Column("sender", Text, primary_key=True),  # a bulk sender; empty for anonymous uploads
    Column("key", Text, primary_key=True),  # the text of a CellKey
    Column("page", Integer, primary_key=True),
    _slot_key(),
    Column("counts", LargeBinary, nullable=False),
)

hours = Table(
    "hour_counts",
    _metadata_4,
    _survey_key(),
    Column("hour", Text, primary_key=True),  # 2026-11-15T17, in UTC
    _slot_key(),
    Column("batches", BigInteger, nullable=False),
    Column("reports", BigInteger, nullable=False),
)


def _split_by_slot(connection: Connection) -> None:
    """Add the slot to the keys, and count the reports of uploads in one place only."""
    if connection.dialect.name == "postgresql":
        # An aggregator of the earlier version may still be counting.
        connection.exec_driver_sql("LOCK TABLE surveys, cells, hours")
    in_survey = _hours_1.c.survey == surveys.c.number
    uploaded = select(func.coalesce(func.sum(_hours_1.c.reports), 0)).where(in_survey)
    imported = surveys.c.imported_reports - uploaded.scalar_subquery()
    connection.execute(update(surveys).values(imported_reports=imported))
    _metadata_4.create_all(connection)
    for old_table, table in ((_cells_2, cells), (_hours_1, hours)):
        names = [column.name for column in old_table.columns]
        columns = select(*old_table.columns, literal(0))
        connection.execute(insert(table).from_select([*names, "slot"], columns))
        old_table.drop(connection)


MIGRATIONS: Sequence[Callable[[Connection], None]] = (
    _metadata_1.create_all,
    _split_by_cell,
    _add_senders,
    _split_by_slot,
)
"""The first n migrations create version n of the schema. Add new ones; never change an old one."""


# --- the database ---------------------------------------------------------------------------------


class Database:
    """A database with this version's schema. Opening an older one migrates it."""

    def __init__(
        self,
        backend: Backend,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        may_migrate: bool = True,
    ) -> None:
        self._backend = backend
        self._now = now
        try:
            self._bring_up_to_date(may_migrate)
        except BaseException:
            self.close()  # the caller gets no object to close
            raise

    @classmethod
    def open(cls, url: str) -> Self:
        """Open the store at ``sqlite:///reports.db`` or ``postgresql://user@host/database``."""
        return cls(backend_for(url))

    @classmethod
    def open_current(cls, url: str) -> Self:
        """Open a store as ``open`` does, unless an aggregator of this version never used it.

        A migration would break older aggregators that are still running.
        """
        return cls(backend_for(url), may_migrate=False)

    def close(self) -> None:
        """Close all connections."""
        self._backend.engine.dispose()

    # --- transactions -----------------------------------------------------------------------------

    @contextmanager
    def _write(self, *, may_use_reserve: bool = False) -> Iterator[Connection]:
        self._backend.require_file()
        if not may_use_reserve:
            self._backend.require_space()
        with self._translate_errors(), self._backend.engine.connect() as connection:
            writer = connection.execution_options(**{WRITES: True})
            with writer.begin():
                yield writer
            self._backend.after_commit(connection)

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        with (
            self._translate_errors(),
            self._backend.engine.connect() as connection,
            self._backend.begin_snapshot(connection),
        ):
            yield connection

    def checkpoint_if_due(self) -> None:
        """Move what was committed to its final place, once a minute. Never waits for others."""
        self._backend.checkpoint_if_due()

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Replace the database's errors, which may contain the data being written."""
        try:
            yield
        except DBAPIError as error:
            # Use a new connection next time: a broken one would keep failing.
            self._backend.engine.dispose()
            raise self._backend.translate(error) from None
        except SQLAlchemyError:
            self._backend.engine.dispose()
            raise StoreUnavailable("the store failed. Nothing changed; try again later.") from None

    def _bring_up_to_date(self, may_migrate: bool) -> None:
        """Migrate if necessary. A current store is not written to: its disk may be full."""
        if self.read_version() == len(MIGRATIONS):
            return
        if not may_migrate:
            raise StoreUnavailable(
                "this version of Sfumato did not make the store. Stop its aggregators, and start "
                "one of this version, which brings the store up to date."
            )
        self._migrate()

    def _migrate(self) -> None:
        with self._write() as connection:
            self._backend.lock_for_migration(connection)
            version = _read_version(connection)
            for migration in MIGRATIONS[version:]:
                migration(connection)
            _set_setting(connection, _VERSION_SETTING, str(len(MIGRATIONS)))
        if version:
            # If another program is reading, SQLite erases them at the next clean stop, and
            # PostgreSQL when a survey ends.
            with suppress(StoreUnavailable):
                self._erase_deleted_rows()

    def read_version(self) -> int:
        """Return the version of the tables, or 0 for an empty database."""
        with self._read() as connection:
            return _read_version(connection)

    def _erase_deleted_rows(self) -> None:
        """Remove the traces that deleted and changed rows leave in the database's files."""
        with self._translate_errors():
            self._backend.erase_deleted_rows(batches.name)

    # --- settings ---------------------------------------------------------------------------------

    def get_setting(self, name: str) -> str | None:
        """Return the value of a setting, or ``None`` if it is not set."""
        with self._read() as connection:
            return _get_setting(connection, name)

    def set_setting(self, name: str, value: str) -> None:
        """Store the value of a setting."""
        with self._write() as connection:
            _set_setting(connection, name, value)

    def ping(self) -> None:
        """Raise ``StoreUnavailable`` unless the store is writable. A full disk may go unnoticed."""
        query = select(settings.c.value).where(settings.c.name == _VERSION_SETTING)
        with self._write() as connection:
            connection.execute(self._backend.lock_rows(query))


def _read_version(connection: Connection) -> int:
    """Return the version of the schema, or 0 for an empty database."""
    tables = set(inspect(connection).get_table_names())
    text = _get_setting(connection, _VERSION_SETTING) if settings.name in tables else None
    if text is None:
        if tables & _table_names():
            raise StoreUnavailable(
                "the database has tables of another program, with the names that Sfumato uses. "
                "Choose an empty database for the store."
            )
        return 0
    if not _is_version(text):
        raise StoreUnavailable(
            "the store's version is not a number, so the store is damaged or was made by another "
            "program. Restore a backup, or choose an empty database."
        )
    if int(text) > len(MIGRATIONS):
        raise StoreUnavailable(
            f"the store was created by a newer version of Sfumato (schema {text}; "
            f"this version supports up to {len(MIGRATIONS)}). Upgrade Sfumato."
        )
    return int(text)


def _table_names() -> set[str]:
    """Return the names of all tables, of this version and of older ones."""
    names: set[str] = set()
    for metadata in (_metadata_1, _metadata_2, _metadata_3, _metadata_4):
        names.update(metadata.tables)
    return names


def _is_version(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 9 and int(text) > 0


def _get_setting(connection: Connection, name: str) -> str | None:
    return connection.scalar(select(settings.c.value).where(settings.c.name == name))


def _set_setting(connection: Connection, name: str, value: str) -> None:
    result = connection.execute(update(settings).where(settings.c.name == name).values(value=value))
    if result.rowcount == 0:
        connection.execute(insert(settings).values(name=name, value=value))
