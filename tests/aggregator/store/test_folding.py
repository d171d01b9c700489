"""Transactions that overlap count without waiting, and their rows become one."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from sfumato.aggregator.store import Outcome, folding
from sfumato.aggregator.store import store as store_module
from sfumato.aggregator.store.statements import PostgresStatements
from sfumato.batches import Batch
from sfumato.errors import StoreUnavailable
from support.postgres_server import administrator
from support.store_tables import dump
from support.unrandomized import batch_id, batch_of, counts_of, unrandomized_survey
from support.waiting import wait_until

COUNTED = Outcome.COUNTED
DAY = timedelta(days=1)
TABLES = ("cell_pages", "hour_counts")


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


def slots_of(url):
    """Return the number of slots in each table."""
    return {table: len(set(column_of(url, table, "slot"))) for table in TABLES}


def are_folded(url):
    """Whether all rows are in the slot of folded ones."""
    return all(set(column_of(url, table, "slot")) <= {0} for table in TABLES)


@contextmanager
def busy_slot(store):
    """Occupy the first slot for cells, as another transaction does."""
    with administrator(store) as other, other.transaction():
        other.execute("SELECT pg_advisory_xact_lock(%s, 0)", (0x5F5A72,))
        yield


def test_transactions_that_overlap_count_in_slots_of_their_own(pair, server_url, survey):
    first, second = pair
    assert first.commit([batch_of(survey, 1, 5, 5_000)]) == [COUNTED]
    assert column_of(server_url, "cell_pages", "slot") == [0, 0]
    with busy_slot(first):
        assert second.commit([batch_of(survey, 2, 5)]) == [COUNTED]
    assert second.commit([batch_of(survey, 1, 5, 5_000)]) == [Outcome.REPLAYED]
    assert column_of(server_url, "cell_pages", "slot") == [0, 0, 1]
    for store in pair:
        assert counts_of(store, survey) == {5: 2, 5_000: 1}
        status = store.read_status(survey.fingerprint)
        assert (status.reports, status.by_hour) == (3, (("2026-11-15T17", 3),))
        days = store.count_days(survey.fingerprint, survey.mechanism.outputs, 10)
        assert [(day.day, day.tally.reports) for day in days] == [("2026-11-15", 3)]


def test_slots_do_not_tell_when_reports_arrived(pair, server_url, survey, clock):
    """Aggregators come and go, but the slot of a cell is not the slot of its hour."""
    for hour in range(12):
        clock.time = datetime(2026, 11, 15, 10 + hour, tzinfo=UTC)
        pair[hour % 2].commit([batch_of(survey, hour, 100 + hour)])
    assert set(column_of(server_url, "cell_pages", "slot")) == {0}
    assert len(set(column_of(server_url, "hour_counts", "slot"))) > 1  # chance: 64 ** -11


def test_slots_do_not_tell_which_reports_arrived_together(pair, server_url, survey):
    """Reports of one device to two surveys may be in one transaction."""
    other_survey = unrandomized_survey("other", 100)
    store, _ = pair
    store.register(other_survey)
    for number in range(12):
        store.commit([batch_of(survey, number, 5), batch_of(other_survey, number, 5)])
    columns, rows = dump(server_url)["hour_counts"]
    slots = {}
    for row in rows:
        fields = dict(zip(columns, row, strict=True))
        slots.setdefault(fields["survey"], set()).add(fields["slot"])
    first, second = slots.values()
    assert first != second  # chance: 64 ** -12, or a little more


def test_an_upload_waits_for_no_slot(pair, survey):
    with administrator(pair[0]) as other, other.transaction():
        for slot in range(64):
            other.execute("SELECT pg_advisory_xact_lock(%s, %s)", (0x5F5A72, slot))
        with pytest.raises(StoreUnavailable, match="too many uploads"):
            pair[0].commit([batch_of(survey, 1, 5)])
    assert pair[0].commit([batch_of(survey, 1, 5)]) == [COUNTED]


def test_ended_days_are_folded_and_today_is_not(pair, server_url, survey, clock):
    first, second = pair
    first.commit([batch_of(survey, 1, 5, 5_000)])
    with busy_slot(first):
        second.commit([batch_of(survey, 2, 5)])
        second.commit([batch_of(survey, 3, 6).from_sender("clinic")])
        clock.time += DAY
        second.commit([batch_of(survey, 4, 7)])
    before = counts_of(first, survey)
    days = first.count_days(survey.fingerprint, survey.mechanism.outputs, 10)
    by_hour = first.read_status(survey.fingerprint).by_hour

    first.fold_if_due()

    assert column_of(server_url, "cell_pages", "slot") == [0, 0, 0, 1]
    assert counts_of(second, survey) == before == {5: 2, 5_000: 1, 6: 1, 7: 1}
    after = second.count_days(survey.fingerprint, survey.mechanism.outputs, 10)
    assert [(day.day, day.sender, day.tally.counts.tolist()) for day in after] == [
        (day.day, day.sender, day.tally.counts.tolist()) for day in days
    ]
    assert second.read_status(survey.fingerprint).by_hour == by_hour
    assert second.commit([batch_of(survey, 1, 5, 5_000)]) == [Outcome.REPLAYED]


def test_many_pages_are_folded_in_several_steps(pair, server_url, survey, clock, monkeypatch):
    monkeypatch.setattr(folding, "_MAX_PAGES", 2)
    steps = []
    fold_pages = store_module.fold_pages

    def count_steps(*arguments):
        steps.append(arguments)
        return fold_pages(*arguments)

    monkeypatch.setattr(store_module, "fold_pages", count_steps)
    first, second = pair
    first.commit([batch_of(survey, 1, 5, 5_000, 9_000)])
    with busy_slot(first):
        second.commit([batch_of(survey, 2, 5, 5_000, 9_000)])
    clock.time += DAY
    second.fold_if_due()
    assert len(steps) == 2
    assert are_folded(server_url)
    assert counts_of(first, survey) == {5: 2, 5_000: 2, 9_000: 2}


def test_folding_gives_uploads_their_turn(pair, server_url, survey, clock, monkeypatch):
    monkeypatch.setattr(folding, "_MAX_PAGES", 1)
    monkeypatch.setattr(store_module, "_MAX_FOLD_SECONDS", 0.0)
    first, second = pair
    with busy_slot(first):
        second.commit([batch_of(survey, 1, 5, 5_000, 9_000)])
    clock.time += DAY
    calls = 0
    while not are_folded(server_url):
        second.fold_if_due()
        calls += 1
        assert calls < 10
    assert calls >= 3
    assert counts_of(first, survey) == {5: 1, 5_000: 1, 9_000: 1}


def test_a_late_aggregator_is_folded_later(pair, server_url, survey, clock):
    first, second = pair
    clock.time = datetime(2026, 11, 16, 0, 10, tzinfo=UTC)
    first.fold_if_due()
    clock.time = datetime(2026, 11, 15, 23, 59, tzinfo=UTC)  # this aggregator's clock is slow
    with busy_slot(first):
        second.commit([batch_of(survey, 1, 5)])
    clock.time = datetime(2026, 11, 16, 1, 0, tzinfo=UTC)
    first.fold_if_due()  # within the hour: nothing is due
    assert column_of(server_url, "cell_pages", "slot") == [1]
    clock.time = datetime(2026, 11, 16, 1, 10, tzinfo=UTC)
    first.fold_if_due()
    assert are_folded(server_url)
    assert counts_of(first, survey) == {5: 1}


def test_a_clock_that_was_ahead_delays_nothing(pair, server_url, survey, clock):
    first, second = pair
    now = clock.time
    clock.time = datetime(2037, 1, 1, tzinfo=UTC)
    first.fold_if_due()
    clock.time = now
    with busy_slot(first):
        second.commit([batch_of(survey, 1, 5)])
    clock.time = now + DAY
    first.fold_if_due()
    assert are_folded(server_url)


def test_a_survey_that_is_locked_does_not_keep_others_from_being_folded(
    pair, server_url, open_store, survey, clock
):
    other_survey = unrandomized_survey("other", 100)
    first, second = pair
    second.register(other_survey)
    with busy_slot(first):
        second.commit([batch_of(survey, 1, 5), batch_of(other_survey, 2, 5)])
    clock.time += DAY
    impatient = open_store(server_url, lock_timeout=0.2)
    earlier = min(survey.fingerprint, other_survey.fingerprint)
    with administrator(first) as other, other.transaction():
        query = "SELECT number FROM surveys WHERE fingerprint = %s"
        (number,) = other.execute(query, (earlier,)).fetchone()
        other.execute("SELECT pg_advisory_xact_lock_shared(%s, %s)", (0x5F5A71, number))
        with pytest.raises(StoreUnavailable):
            impatient.fold_if_due()
    assert column_of(server_url, "cell_pages", "slot") == [0, 1]


def test_ending_a_survey_folds_all_of_its_days(pair, server_url, survey):
    first, second = pair
    first.commit([batch_of(survey, 1, 5)])
    with busy_slot(first):
        second.commit([batch_of(survey, 2, 5)])
    first.set_closed(survey.fingerprint)
    first.forget_ids(survey.fingerprint)
    assert are_folded(server_url)
    assert counts_of(first, survey) == {5: 2}


def test_exports_and_omissions_include_all_aggregators(pair, survey, clock):
    first, second = pair
    outputs = survey.mechanism.outputs
    first.commit([batch_of(survey, 1, 5)])
    with busy_slot(first):
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
    assert are_folded(url)
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
        paused_engine = store._backend.engine
        add = PostgresStatements.add_to_hour

        def add_slowly(statements, connection, *arguments):
            add(statements, connection, *arguments)
            if connection.engine is paused_engine:
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
    with busy_slot(first):
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
    stop = threading.Event()

    def count(store, start):
        for number in range(start, start + 150):
            assert store.commit([batch_of(survey, number, number % 100)]) == [COUNTED]

    def watch():
        waits = []
        query = "SELECT locktype, mode FROM pg_locks WHERE NOT granted AND locktype <> 'extend'"
        with administrator(pair[0]) as other:
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


# --- connections that break -----------------------------------------------------------------------


def test_a_commit_in_doubt_is_not_overwritten(pair, survey, monkeypatch):
    """The network fails while the server commits. The next commit must not undo that one."""
    store, _ = pair
    assert store.commit([batch_of(survey, 1, 5)]) == [COUNTED]
    delay_commits_of(store, batch_id(2))
    with monkeypatch.context() as planted:
        planted.setattr(type(store._backend.engine.dialect), "do_commit", lose_connection)
        with pytest.raises(StoreUnavailable):
            store.commit([batch_of(survey, 2, 6)])
    # The same aggregator goes on at once, with other people's reports.
    assert store.commit([batch_of(survey, 3, 7)]) == [COUNTED]
    wait_until(lambda: store.read_status(survey.fingerprint).reports == 3)
    assert store.commit([batch_of(survey, 2, 6)]) == [Outcome.REPLAYED]
    assert counts_of(store, survey) == {5: 1, 6: 1, 7: 1}


def delay_commits_of(store, id_):
    """Make the server's commit of a batch take two seconds, as on a slow disk."""
    with administrator(store) as other:
        other.execute(
            "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN PERFORM pg_sleep(2); RETURN NULL; END $$"
        )
        other.execute(
            "CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON batches DEFERRABLE INITIALLY DEFERRED "
            f"FOR EACH ROW WHEN (NEW.id = '\\x{id_.hex()}') EXECUTE FUNCTION slow()"
        )


def lose_connection(_, connection):
    """Ask the server to commit, and close the connection before it answers."""
    raw = getattr(connection, "driver_connection", connection)
    raw.pgconn.send_query(b"COMMIT")
    raw.pgconn.flush()
    raw.pgconn.finish()
    raise psycopg.OperationalError("the connection is lost")


def test_two_threads_may_count_in_one_store(pair, survey):
    store, _ = pair

    def count(start):
        for number in range(start, start + 50):
            assert store.commit([batch_of(survey, number, number % 100)]) == [COUNTED]

    with ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(count, 0), pool.submit(count, 1000)]:
            future.result()
    assert sum(counts_of(store, survey).values()) == 100


def test_the_isolation_level_does_not_depend_on_the_server(pair, survey, monkeypatch):
    """A commit that waits for an export must see what it changed."""
    first, second = pair
    with administrator(first) as other:
        database = other.info.dbname
        level = "repeatable read"
        other.execute(f"ALTER DATABASE {database} SET default_transaction_isolation = '{level}'")
    for store in pair:
        store.close()
        store.commit([batch_of(survey, 1, 5)])
    has_changed = threading.Event()
    may_end = threading.Event()
    update = store_module._update_survey

    def update_slowly(*arguments, **values):
        update(*arguments, **values)
        has_changed.set()
        assert may_end.wait(30)

    monkeypatch.setattr(store_module, "_update_survey", update_slowly)
    outputs = survey.mechanism.outputs
    with ThreadPoolExecutor(2) as pool:
        export = pool.submit(second.export, survey.fingerprint, batch_id(100), outputs)
        assert has_changed.wait(30)
        commit = pool.submit(first.commit, [batch_of(survey, 3, 7)])
        wait_until(lambda: is_waiting(first))
        may_end.set()
        exported = export.result()
        assert commit.result() == [COUNTED]
    monkeypatch.undo()
    again = second.export(survey.fingerprint, batch_id(100), outputs)
    assert again.tally.counts.tolist() == exported.tally.counts.tolist()
    rest = second.export(survey.fingerprint, batch_id(101), outputs)
    assert rest.tally.counts.nonzero()[0].tolist() == [7]


def is_waiting(store):
    """Whether a transaction waits for a lock."""
    with administrator(store) as other:
        query = "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'advisory'"
        (count,) = other.execute(query).fetchone()
    return count > 0
