"""The database below the store: its tables, transactions, translated errors and small facts.

The tables hold the surveys, which batches were counted (identifiers and checksums, not reports),
the counts of each day, how many reports came in each hour, and which tallies were exported and
imported. They hold no address, no user agent and no time finer than the hour.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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
    insert,
    inspect,
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
    "counts",
    "exports",
    "facts",
    "hours",
    "imports",
    "surveys",
]

_VERSION = "version"

# --- tables ---------------------------------------------------------------------------------------

_tables = MetaData()

facts = Table(
    "facts",  # the version of this schema, and the hash of the analysts' token
    _tables,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

surveys = Table(
    "surveys",
    _tables,
    Column("number", Integer, primary_key=True),
    Column("fingerprint", Text, nullable=False, unique=True),
    Column("resolved", LargeBinary, nullable=False),
    # open, closed, or ended (closed, and its identifiers deleted)
    Column("state", Text, nullable=False),
    # the part of the tally that new reports go to; an export closes it
    Column("part", Integer, nullable=False),
    Column("reports", BigInteger, nullable=False),
)


def _survey() -> Column[int]:
    return Column("survey", Integer, ForeignKey("surveys.number"), primary_key=True)


batches = Table(
    "batches",
    _tables,
    # The identifier comes first: before PostgreSQL has statistics, it would read all batches of
    # the survey to find one.
    Column("id", LargeBinary, primary_key=True),
    _survey(),
    Column("digest", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)

counts = Table(
    "counts",
    _tables,
    _survey(),
    Column("part", Integer, primary_key=True),
    Column("day", Text, primary_key=True),  # 2026-11-15, in UTC; empty for imported tallies
    Column("page", Integer, primary_key=True),
    Column("cells", LargeBinary, nullable=False),
)

hours = Table(
    "hours",
    _tables,
    _survey(),
    Column("hour", Text, primary_key=True),  # 2026-11-15T17, in UTC
    Column("batches", BigInteger, nullable=False),
    Column("reports", BigInteger, nullable=False),
)

exports = Table(
    "exports",
    _tables,
    _survey(),
    Column("id", LargeBinary, primary_key=True),
    Column("part", Integer, nullable=False),
    Column("reports", BigInteger, nullable=False),
)

imports = Table(
    "imports",
    _tables,
    _survey(),
    Column("id", LargeBinary, primary_key=True),
    Column("digest", LargeBinary, nullable=False),
    Column("part", Integer, nullable=False),
    Column("reports", BigInteger, nullable=False),
    # identifiers of the tallies inside this one, in hexadecimal digits
    Column("covers", Text, nullable=False),
)


MIGRATIONS: Sequence[Callable[[Connection], None]] = (_tables.create_all,)
"""The first n of these, in order, make version n. Add new ones; never change an old one."""


# --- the database ---------------------------------------------------------------------------------


class Database:
    """A database with this version's schema. Opening an older one migrates it."""

    def __init__(
        self, backend: Backend, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._backend = backend
        self._now = now
        try:
            self._migrate()
        except BaseException:
            self.close()  # the caller gets no store to close
            raise

    @classmethod
    def open(cls, url: str) -> Self:
        """Open the store at ``sqlite:///reports.db`` or ``postgresql://user@host/database``."""
        return cls(backend_for(url))

    def close(self) -> None:
        """Close all connections."""
        self._backend.engine.dispose()

    # --- transactions -----------------------------------------------------------------------------

    @contextmanager
    def _write(self) -> Iterator[Connection]:
        self._backend.require_space()
        with self._translate_errors(), self._backend.engine.connect() as connection:
            writer = connection.execution_options(**{WRITES: True})
            with writer.begin():
                yield writer

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        with (
            self._translate_errors(),
            self._backend.engine.connect() as connection,
            connection.begin(),
        ):
            yield connection

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Raise our own errors: the database's may contain what was being written."""
        try:
            yield
        except DBAPIError as error:
            # Use a new connection next time: a broken one would keep failing.
            self._backend.engine.dispose()
            raise self._backend.translate(error) from None
        except SQLAlchemyError:
            self._backend.engine.dispose()
            raise StoreUnavailable("the store failed. Nothing changed; try again later.") from None

    def _migrate(self) -> None:
        with self._write() as connection:
            self._backend.lock_for_migration(connection)
            version = 0
            if inspect(connection).has_table(facts.name):
                version = int(_fact(connection, _VERSION) or 0)
            if version > len(MIGRATIONS):
                raise StoreUnavailable(
                    f"a newer version of Sfumato created the store (its schema is {version}; "
                    f"this version supports up to {len(MIGRATIONS)}). Upgrade Sfumato."
                )
            for migration in MIGRATIONS[version:]:
                migration(connection)
            _set_fact(connection, _VERSION, str(len(MIGRATIONS)))

    # --- facts ------------------------------------------------------------------------------------

    def fact(self, name: str) -> str | None:
        """Return a named text, or ``None``."""
        with self._read() as connection:
            return _fact(connection, name)

    def set_fact(self, name: str, value: str) -> None:
        """Store a named text."""
        with self._write() as connection:
            _set_fact(connection, name, value)

    def ping(self) -> None:
        """Raise ``StoreUnavailable`` unless the store is writable. It may miss a full disk."""
        query = select(facts.c.value).where(facts.c.name == _VERSION)
        with self._write() as connection:
            connection.execute(self._backend.lock_rows(query))


def _fact(connection: Connection, name: str) -> str | None:
    return connection.scalar(select(facts.c.value).where(facts.c.name == name))


def _set_fact(connection: Connection, name: str, value: str) -> None:
    result = connection.execute(update(facts).where(facts.c.name == name).values(value=value))
    if result.rowcount == 0:
        connection.execute(insert(facts).values(name=name, value=value))
