"""Folding: when a day has ended, the rows of all slots become one.

On PostgreSQL, transactions that overlap count in different slots, so that none waits for another.
Results add them up. What a day's rows show beyond their sum, which reports were counted while
others were, is needed no longer when the day has ended.
"""

from collections.abc import Mapping
from datetime import date

import numpy as np
from sqlalchemy import ColumnElement, Connection, and_, delete, func, insert, select

from sfumato.aggregator.store.count_pages import decode_page, encode_page
from sfumato.aggregator.store.database import cells, hours, surveys

__all__ = ["fold_hours", "fold_pages", "surveys_to_fold"]

_FOLDED = 0
"""The slot of folded rows."""

_MAX_PAGES = 64
"""How many pages to fold in a transaction, because uploads wait for it."""

_PAGE_KEY = (cells.c.part, cells.c.day, cells.c.sender, cells.c.key, cells.c.page)


def surveys_to_fold(connection: Connection, before: date) -> list[str]:
    """Return the fingerprints of surveys that have rows in other slots from earlier days."""
    has_cells = select(cells.c.survey).where(_cells_to_fold(before))
    has_hours = select(hours.c.survey).where(_hours_to_fold(before))
    matches = surveys.c.number.in_(has_cells) | surveys.c.number.in_(has_hours)
    query = select(surveys.c.fingerprint).where(matches).order_by(surveys.c.fingerprint)
    return list(connection.scalars(query))


def fold_pages(connection: Connection, survey: int, before: date) -> bool:
    """Add up the slots of some pages from earlier days. Return whether there may be more.

    The caller holds the survey's lock.
    """
    to_fold = (cells.c.survey == survey) & _cells_to_fold(before)
    query = select(*_PAGE_KEY).where(to_fold).distinct().limit(_MAX_PAGES)
    keys = connection.execute(query).mappings().all()
    for key in keys:
        _fold_page(connection, {"survey": survey, **key})
    return len(keys) == _MAX_PAGES


def fold_hours(connection: Connection, survey: int, before: date) -> None:
    """Add up the slots of all hours of earlier days. The caller holds the survey's lock."""
    in_survey = hours.c.survey == survey
    old_hours = select(hours.c.hour).where(in_survey, _hours_to_fold(before)).distinct()
    to_fold = in_survey & hours.c.hour.in_(connection.scalars(old_hours).all())
    totals = select(
        hours.c.hour,
        func.sum(hours.c.batches).label("batches"),
        func.sum(hours.c.reports).label("reports"),
    )
    sums = connection.execute(totals.where(to_fold).group_by(hours.c.hour)).all()
    connection.execute(delete(hours).where(to_fold))
    for hour, batches, reports in sums:
        row = {
            "survey": survey,
            "hour": hour,
            "slot": _FOLDED,
            "batches": int(batches),
            "reports": int(reports),
        }
        connection.execute(insert(hours).values(row))


def _cells_to_fold(before: date) -> ColumnElement[bool]:
    return (cells.c.slot != _FOLDED) & (cells.c.day < before.isoformat())


def _hours_to_fold(before: date) -> ColumnElement[bool]:
    return (hours.c.slot != _FOLDED) & (hours.c.hour < before.isoformat())


def _fold_page(connection: Connection, key: Mapping[str, object]) -> None:
    in_page = and_(*[cells.c[name] == value for name, value in key.items()])
    stored_pages = connection.scalars(select(cells.c.counts).where(in_page)).all()
    total = np.sum([decode_page(stored) for stored in stored_pages], axis=0)
    connection.execute(delete(cells).where(in_page))
    row = {**key, "slot": _FOLDED, "counts": encode_page(total)}
    connection.execute(insert(cells).values(row))
