"""What operators leave out of the results: whole days, and bulk senders.

Nothing is deleted. Leaving out a day or a sender is a row in a table, and including it again
deletes that row.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import ColumnElement, Connection, and_, delete, insert, or_, select

from sfumato.aggregator.store.database import cells, omissions

__all__ = ["LeftOut", "Omissions", "delete_omission", "insert_omission", "read_omissions"]

OmittedColumn = Literal["day", "sender"]


@dataclass(frozen=True)
class Omissions:
    """The days of arrival (UTC, such as 2026-11-15) and the bulk senders that are left out."""

    days: tuple[str, ...] = ()
    senders: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.days or self.senders)

    def covers(self, day: str, sender: str) -> bool:
        """Whether the reports of a sender on a day are left out."""
        return day in self.days or sender in self.senders

    def condition(self) -> ColumnElement[bool]:
        """Return the condition for cells that are left out."""
        return or_(cells.c.day.in_(self.days), cells.c.sender.in_(self.senders))


@dataclass(frozen=True)
class LeftOut(Omissions):
    """What a result leaves out, and the number of reports in it."""

    reports: int = 0


def read_omissions(connection: Connection, survey_number: int) -> Omissions:
    """Return what is left out of a survey's results."""
    query = select(omissions.c.column, omissions.c.value)
    query = query.where(omissions.c.survey == survey_number)
    rows = connection.execute(query.order_by(omissions.c.value)).all()
    return Omissions(_values(rows, "day"), _values(rows, "sender"))


def _values(rows: Sequence[tuple[str, str]], column: OmittedColumn) -> tuple[str, ...]:
    return tuple(value for name, value in rows if name == column)


def insert_omission(
    connection: Connection, survey_number: int, column: OmittedColumn, value: str
) -> None:
    """Leave out the cells with this value. Do nothing if they are left out already."""
    delete_omission(connection, survey_number, column, value)
    row = {"survey": survey_number, "column": column, "value": value}
    connection.execute(insert(omissions).values(row))


def delete_omission(
    connection: Connection, survey_number: int, column: OmittedColumn, value: str
) -> None:
    """Include the cells with this value again."""
    matches = and_(
        omissions.c.survey == survey_number,
        omissions.c.column == column,
        omissions.c.value == value,
    )
    connection.execute(delete(omissions).where(matches))
