"""The database below the store: transactions, errors in our words, versions of the tables, and small facts."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Self

from sqlalchemy import Connection, insert, inspect, select, update
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from sfumato.aggregator.store.backends import WRITES, Backend, backend_of
from sfumato.aggregator.store.schema import MIGRATIONS, facts
from sfumato.errors import StoreUnavailable

__all__ = ["Database"]

_VERSION = "version"


class Database:
    """A database whose tables are those of this version, or become so when it is opened."""

    def __init__(
        self, backend: Backend, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._backend, self._now = backend, now
        try:
            self._migrate()
        except BaseException:
            self.close()  # nobody else holds this store
            raise

    @classmethod
    def at(cls, url: str) -> Self:
        """The store of a URL: ``sqlite:///reports.db`` or ``postgresql://user@host/database``."""
        return cls(backend_of(url))

    def close(self) -> None:
        """Give back all connections."""
        self._backend.engine.dispose()

    # --- transactions -------------------------------------------------------------------------------

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        self._backend.demand_room()
        with self._understood(), self._backend.engine.connect() as connection:
            writer = connection.execution_options(**{WRITES: True})
            with writer.begin():
                yield writer

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with self._understood(), self._backend.engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def _understood(self) -> Iterator[None]:
        """Errors of the database in our words; theirs may hold what was being written."""
        try:
            yield
        except DBAPIError as error:
            # A fresh connection next time: one that has failed may go on failing.
            self._backend.engine.dispose()
            raise self._backend.problem_of(error) from None
        except SQLAlchemyError:
            self._backend.engine.dispose()
            raise StoreUnavailable(
                "the store refuses to work. Nothing changed; try again later."
            ) from None

    def _migrate(self) -> None:
        with self._writing() as connection:
            self._backend.lock_for_migration(connection)
            there = inspect(connection).has_table(facts.name)
            held = (
                connection.scalar(select(facts.c.value).where(facts.c.name == _VERSION))
                if there
                else "0"
            )
            version = int(held or 0)
            if version > len(MIGRATIONS):
                raise StoreUnavailable(
                    f"the store was made by a newer version of Sfumato (tables {version}; this one knows "
                    f"{len(MIGRATIONS)}). Upgrade Sfumato."
                )
            for migration in MIGRATIONS[version:]:
                migration(connection)
            _set_fact(connection, _VERSION, str(len(MIGRATIONS)))

    # --- facts --------------------------------------------------------------------------------------

    def fact(self, name: str) -> str | None:
        """A small thing that the store remembers."""
        with self._reading() as connection:
            return connection.scalar(select(facts.c.value).where(facts.c.name == name))

    def set_fact(self, name: str, value: str) -> None:
        """Remember a small thing."""
        with self._writing() as connection:
            _set_fact(connection, name, value)

    def ping(self) -> None:
        """Refuse (``StoreUnavailable``) unless the store could be written to now; a full disk may show only later."""
        with self._writing() as connection:
            connection.execute(
                self._backend.locked(select(facts.c.value).where(facts.c.name == _VERSION))
            )


def _set_fact(connection: Connection, name: str, value: str) -> None:
    if (
        connection.execute(update(facts).where(facts.c.name == name).values(value=value)).rowcount
        == 0
    ):
        connection.execute(insert(facts).values(name=name, value=value))
