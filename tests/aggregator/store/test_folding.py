"""Aggregators that share a server count without waiting, and their rows become one."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from sfumato.aggregator.store import Outcome
from sfumato.aggregator.store.statements import PostgresStatements
from sfumato.batches import Batch
from sfumato.errors import StoreUnavailable
from support.store_tables import dump
from support.unrandomized import batch_id, batch_of, counts_of

COUNTED = Outcome.COUNTED
DAY = timedelta(days=1)


@pytest.fixture
def server_url(postgres):
    url = postgres.database()
    yield url
    postgres.release(url)


@pytest.fixture
def pair(server_url, open_store, survey):
    """Two aggregators' stores on one server."""
    stores = [open_store(server_url), open_store(server_url)]
    stores[0].register(survey)
    return stores


def column_of(url, table, name):
    columns, rows = dump(url)[table]
    index = columns.index(name)
    return sorted(row[index] for row in rows)


def writers_of(url):
    return {table: set(column_of(url, table, "writer")) for table in ("cells", "hours")}


def test_each_aggregator_counts_in_its_own_rows(pair, server_url, survey):
    first, second = pair
    assert first.commit([batch_of(survey, 1, 5, 5_000)]) == [COUNTED]
    assert second.commit([batch_of(survey, 2, 5)]) == [COUNTED]
    assert second.commit([batch_of(survey, 1, 5, 5_000)]) == [Outcome.REPLAYED]
    names = {first._writer, second._writer}
    assert writers_of(server_url) == {"cells": names, "hours": names}
    for store in pair:
        assert counts_of(store, survey) == {5: 2, 5_000: 1}
        status = store.read_status(survey.fingerprint)
        assert (status.reports, status.by_hour) == (3, (("2026-11-15T17", 3),))
        days = store.count_days(survey.fingerprint, survey.mechanism.outputs, 10)
        assert [(day.day, day.tally.reports) for day in days] == [("2026-11-15", 3)]


def test_ended_days_are_folded_and_today_is_not(pair, server_url, survey, clock):
    first, second = pair
    first.commit([batch_of(survey, 1, 5, 5_000)])
    second.commit([batch_of(survey, 2, 5)])
    second.commit([batch_of(survey, 3, 6).from_sender("clinic")])
    clock.time += DAY
    second.commit([batch_of(survey, 4, 7)])
    before = counts_of(first, survey)
    days = first.count_days(survey.fingerprint, survey.mechanism.outputs, 10)
    by_hour = first.read_status(survey.fingerprint).by_hour

    first.fold_if_due()

    assert column_of(server_url, "cells", "writer") == sorted(["", "", "", second._writer])
    assert column_of(server_url, "hours", "writer") == ["", second._writer]
    assert counts_of(second, survey) == before == {5: 2, 5_000: 1, 6: 1, 7: 1}
    after = second.count_days(survey.fingerprint, survey.mechanism.outputs, 10)
    assert [(day.day, day.sender, day.tally.counts.tolist()) for day in after] == [
        (day.day, day.sender, day.tally.counts.tolist()) for day in days
    ]
    assert second.read_status(survey.fingerprint).by_hour == by_hour
    assert second.commit([batch_of(survey, 1, 5, 5_000)]) == [Outcome.REPLAYED]


def test_a_late_aggregator_is_folded_later(pair, server_url, survey, clock):
    first, second = pair
    clock.time = datetime(2026, 11, 16, 0, 10, tzinfo=UTC)
    first.fold_if_due()
    clock.time = datetime(2026, 11, 15, 23, 59, tzinfo=UTC)  # this aggregator's clock is slow
    second.commit([batch_of(survey, 1, 5)])
    clock.time = datetime(2026, 11, 16, 1, 0, tzinfo=UTC)
    first.fold_if_due()  # within the hour: nothing is due
    assert writers_of(server_url)["cells"] == {second._writer}
    clock.time = datetime(2026, 11, 16, 1, 10, tzinfo=UTC)
    first.fold_if_due()
    assert writers_of(server_url) == {"cells": {""}, "hours": {""}}
    assert counts_of(first, survey) == {5: 1}


def test_exports_and_omissions_include_all_aggregators(pair, survey, clock):
    first, second = pair
    outputs = survey.mechanism.outputs
    first.commit([batch_of(survey, 1, 5)])
    second.commit([batch_of(survey, 2, 6)])
    first.leave_out_day(survey.fingerprint, clock.time.date())
    assert counts_of(second, survey) == {}
    first.include_day(survey.fingerprint, clock.time.date())
    exported = second.export(survey.fingerprint, batch_id(100), outputs)
    assert exported.tally.counts.nonzero()[0].tolist() == [5, 6]
    first.commit([batch_of(survey, 3, 7)])
    clock.time += DAY
    second.fold_if_due()
    again = first.export(survey.fingerprint, batch_id(100), outputs)
    assert again.tally.counts.tolist() == exported.tally.counts.tolist()
    rest = first.export(survey.fingerprint, batch_id(101), outputs)
    assert rest.tally.counts.nonzero()[0].tolist() == [7]


def test_sqlite_has_nothing_to_fold(tmp_path, open_store, survey, clock):
    url = f"sqlite:///{tmp_path / 'reports.db'}"
    store = open_store(url)
    store.register(survey)
    store.commit([batch_of(survey, 1, 5)])
    assert writers_of(url) == {"cells": {""}, "hours": {""}}
    before = dump(url)
    clock.time += DAY
    store.fold_if_due()
    assert dump(url) == before


# --- nobody waits ---------------------------------------------------------------------------------


class Pause:
    """Holds up the commits of one store before they end."""

    def __init__(self, store, monkeypatch):
        self.entered = threading.Event()
        self.left = threading.Event()
        writer = store._writer
        add = PostgresStatements.add_to_hour

        def add_slowly(statements, connection, survey, hour, name, sizes):
            add(statements, connection, survey, hour, name, sizes)
            if name == writer:
                self.entered.set()
                assert self.left.wait(30)

        monkeypatch.setattr(PostgresStatements, "add_to_hour", add_slowly)


def test_an_aggregator_counts_while_another_commits(pair, survey, monkeypatch):
    first, second = pair
    pause = Pause(first, monkeypatch)
    with ThreadPoolExecutor(1) as pool:
        commit = pool.submit(first.commit, [batch_of(survey, 1, 5)])
        try:
            assert pause.entered.wait(30)
            assert second.commit([batch_of(survey, 2, 5)]) == [COUNTED]
            assert not commit.done()
        finally:
            pause.left.set()
        assert commit.result() == [COUNTED]
    assert counts_of(first, survey) == {5: 2}


@pytest.mark.parametrize("change", ["set_closed", "export", "fold"])
def test_changes_to_a_survey_wait_for_commits(
    pair, server_url, open_store, survey, monkeypatch, clock, change
):
    """Otherwise a report could be added to a part that was exported, or to a closed survey."""
    first, _ = pair
    impatient = open_store(server_url, lock_timeout=0.2)
    changes = {
        "set_closed": lambda: impatient.set_closed(survey.fingerprint),
        "export": lambda: impatient.export(survey.fingerprint, batch_id(100), 10_000),
        "fold": impatient.fold_if_due,
    }
    first.commit([batch_of(survey, 1, 5)])
    clock.time += DAY
    pause = Pause(first, monkeypatch)
    with ThreadPoolExecutor(1) as pool:
        commit = pool.submit(first.commit, [batch_of(survey, 2, 5)])
        try:
            assert pause.entered.wait(30)
            with pytest.raises(StoreUnavailable, match="locked by another program"):
                changes[change]()
        finally:
            pause.left.set()
        assert commit.result() == [COUNTED]
    assert counts_of(first, survey) == {5: 2}
    assert first.read_status(survey.fingerprint).state == "open"


def test_no_lock_is_waited_for(pair, server_url, survey):
    """Two aggregators count in one survey, and the server's own view of its locks is watched."""
    address = pair[0]._backend.engine.url.set(drivername="postgresql")
    stop = threading.Event()

    def count(store, start):
        for number in range(start, start + 150):
            assert store.commit([batch_of(survey, number, number % 100)]) == [COUNTED]

    def watch():
        waits = []
        text = address.render_as_string(hide_password=False)
        query = "SELECT locktype, mode FROM pg_locks WHERE NOT granted AND locktype <> 'extend'"
        with psycopg.connect(text, autocommit=True) as other:
            while not stop.is_set():
                waits += other.execute(query).fetchall()
        return waits

    with ThreadPoolExecutor(3) as pool:
        watching = pool.submit(watch)
        counting = [pool.submit(count, store, 1_000 * i) for i, store in enumerate(pair)]
        for future in counting:
            future.result()
        stop.set()
        assert watching.result() == []
    assert sum(counts_of(pair[0], survey).values()) == 300


def test_senders_and_periods_have_rows_of_their_own(pair, survey):
    first, second = pair
    batch = batch_of(survey, 1, 5)
    named = Batch(batch_id(2), batch.fingerprint, batch.reports).from_sender("clinic")
    first.commit([batch])
    second.commit([named])
    days = first.count_days(survey.fingerprint, survey.mechanism.outputs, 10)
    assert [(day.sender, day.tally.reports) for day in days] == [("", 1), ("clinic", 1)]
