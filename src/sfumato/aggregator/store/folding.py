"""Folding: when a day has ended, the rows of all aggregators become one.

On PostgreSQL, each aggregator counts in rows of its own, so that none waits for another's. Results
add them up. What a day's rows show beyond their sum, which aggregator counted how much, is needed
no longer when the day has ended.
"""

from collections.abc import Mapping
from datetime import date

import numpy as np
from sqlalchemy import ColumnElement, Connection, and_, delete, func, insert, select

from sfumato.aggregator.store.count_pages import decode_page, encode_page
from sfumato.aggregator.store.database import cells, hours, surveys

__all__ = ["fold_survey", "surveys_to_fold"]

_SHARED = ""
"""The writer of folded rows."""

_CELL_KEY = (cells.c.part, cells.c.day, cells.c.sender, cells.c.key)


def surveys_to_fold(connection: Connection, today: date) -> list[str]:
    """Return the fingerprints of surveys with rows of single aggregators from earlier days."""
    has_cells = select(cells.c.survey).where(_is_old_cell(today))
    has_hours = select(hours.c.survey).where(_is_old_hour(today))
    matches = surveys.c.number.in_(has_cells) | surveys.c.number.in_(has_hours)
    query = select(surveys.c.fingerprint).where(matches).order_by(surveys.c.fingerprint)
    return list(connection.scalars(query))


def fold_survey(connection: Connection, survey: int, today: date) -> None:
    """Add up the rows of a survey from earlier days. The caller holds the survey's lock."""
    is_old = (cells.c.survey == survey) & _is_old_cell(today)
    keys = connection.execute(select(*_CELL_KEY).where(is_old).distinct()).mappings().all()
    for key in keys:
        _fold_cell(connection, {"survey": survey, **key})
    _fold_hours(connection, survey, today)


def _is_old_cell(today: date) -> ColumnElement[bool]:
    return (cells.c.writer != _SHARED) & (cells.c.day < today.isoformat())


def _is_old_hour(today: date) -> ColumnElement[bool]:
    return (hours.c.writer != _SHARED) & (hours.c.hour < today.isoformat())


def _fold_cell(connection: Connection, key: Mapping[str, object]) -> None:
    in_cell = and_(*[cells.c[name] == value for name, value in key.items()])
    pages = connection.scalars(select(cells.c.page).where(in_cell).distinct()).all()
    for page in pages:  # one at a time, to save memory
        in_page = in_cell & (cells.c.page == page)
        stored_pages = connection.scalars(select(cells.c.counts).where(in_page)).all()
        total = np.sum([decode_page(stored) for stored in stored_pages], axis=0)
        connection.execute(delete(cells).where(in_page))
        row = {**key, "page": page, "writer": _SHARED, "counts": encode_page(total)}
        connection.execute(insert(cells).values(row))


def _fold_hours(connection: Connection, survey: int, today: date) -> None:
    in_survey = hours.c.survey == survey
    old_hours = select(hours.c.hour).where(in_survey, _is_old_hour(today)).distinct()
    in_old_hour = in_survey & hours.c.hour.in_(connection.scalars(old_hours).all())
    totals = select(
        hours.c.hour,
        func.sum(hours.c.batches).label("batches"),
        func.sum(hours.c.reports).label("reports"),
    )
    sums = connection.execute(totals.where(in_old_hour).group_by(hours.c.hour)).all()
    connection.execute(delete(hours).where(in_old_hour))
    for hour, batches, reports in sums:
        row = {
            "survey": survey,
            "hour": hour,
            "writer": _SHARED,
            "batches": int(batches),
            "reports": int(reports),
        }
        connection.execute(insert(hours).values(row))
