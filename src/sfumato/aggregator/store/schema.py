"""The tables of the store, and their migrations.

They hold the surveys, which batches were counted (identifiers and checksums, not reports), the
counts of each day, how many reports came in each hour, and which tallies were exported and
imported. They hold no address, no user agent and no time finer than the hour.
"""

from collections.abc import Callable, Sequence

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
)

__all__ = ["MIGRATIONS", "batches", "counts", "exports", "facts", "hours", "imports", "surveys"]

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
