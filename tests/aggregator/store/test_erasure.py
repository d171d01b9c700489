"""What a store must not reveal: single reports, and which batches an ended survey had."""

import gc
import hashlib
import itertools
import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from time import sleep

import numpy as np
import psycopg
import pytest
from sqlalchemy import event

from sfumato.aggregator.store import Outcome, Store
from sfumato.batches import Batch
from sfumato.errors import StoreUnavailable
from support.store_tables import dump
from support.unrandomized import batch_of, unrandomized_survey


def file_of(url, suffix=""):
    return Path(url.removeprefix("sqlite:///") + suffix)


def bytes_of_store(url):
    """Return the content of all files of a SQLite store."""
    content = b""
    for suffix in ("", "-wal", "-journal"):
        file = file_of(url, suffix)
        if file.exists():
            content += file.read_bytes()
    return content


@pytest.fixture
def sqlite_url(tmp_path):
    return f"sqlite:///{tmp_path / 'reports.db'}"


@pytest.fixture
def sqlite_store(sqlite_url, open_store, survey):
    store = open_store(sqlite_url)
    store.register(survey)
    return store


@pytest.mark.own_checksums
def test_small_batches_leave_no_checksum(store, store_url, survey):
    reports = list(range(300))
    store.commit([batch_of(survey, 1, 7), batch_of(survey, 2, *reports)])
    digests = {bytes(id_): bytes(digest) for id_, _, digest in dump(store_url)["batches"][1]}
    assert digests[batch_of(survey, 1, 7).id] == b""
    assert digests[batch_of(survey, 2, 7).id] == batch_of(survey, 2, *reports).digest


@pytest.mark.own_checksums
def test_other_reports_under_a_known_identifier_count_nothing(store, survey):
    many = list(range(300))
    assert store.commit([batch_of(survey, 1, 7), batch_of(survey, 2, *many)]) == [
        Outcome.COUNTED,
        Outcome.COUNTED,
    ]
    assert store.commit([batch_of(survey, 1, 8)]) == [Outcome.REPLAYED]
    assert store.commit([batch_of(survey, 2, *many[::-1])]) == [Outcome.CONFLICT]
    assert store.tally(survey.fingerprint, survey.mechanism.outputs).reports == 301


def test_end_erases_identifiers_from_every_file(sqlite_store, sqlite_url, survey):
    batches = [batch_of(survey, number, number) for number in range(1000, 1300)]
    for batch in batches:
        sqlite_store.commit([batch])
    # A second reader, as another aggregator would have; it is not in a transaction.
    with closing(sqlite3.connect(file_of(sqlite_url))) as reader:
        assert reader.execute("SELECT count(*) FROM batches").fetchone() == (300,)
        assert all(batch.id in bytes_of_store(sqlite_url) for batch in batches)
        sqlite_store.set_closed(survey.fingerprint)
        sqlite_store.forget_ids(survey.fingerprint)
        content = bytes_of_store(sqlite_url)
    assert not any(batch.id in content for batch in batches)


def mixed_batches(survey, other_survey):
    """Return groups of batches of two surveys, with identifiers as random as those of devices."""
    groups = []
    for start in range(0, 8000, 200):
        group = []
        for number in range(start, start + 200):
            id_ = hashlib.sha256(b"%d" % number).digest()[:16]
            fingerprint = (survey, other_survey)[number % 2].fingerprint
            group.append(Batch(id_, fingerprint, np.array([1], dtype=np.uint32)))
        groups.append(group)
    return groups


def halves_in(content, ids):
    """Return which halves of these identifiers are somewhere in the content, as integers."""
    halves = np.frombuffer(b"".join(ids), dtype=np.uint64)
    found = set()
    for offset in range(8):
        count = (len(content) - offset) // 8
        words = np.frombuffer(content, dtype=np.uint64, count=count, offset=offset)
        found.update(words[np.isin(words, halves)].tolist())
    return found


def test_end_erases_copies_that_rows_leave_behind_when_they_move(store, store_url, survey, request):
    """Rows of two surveys share pages, and move from page to page as others are added."""
    other_survey = unrandomized_survey("other", 10)
    store.register(other_survey)
    groups = mixed_batches(survey, other_survey)
    for group in groups:
        store.commit(group)
    ids = {True: [], False: []}
    for batch in itertools.chain(*groups):
        ids[batch.fingerprint == survey.fingerprint].append(batch.id)
    content = database_bytes(request, store_url)
    assert len(halves_in(content, ids[True])) == 8000
    store.set_closed(survey.fingerprint)
    store.forget_ids(survey.fingerprint)
    content = database_bytes(request, store_url)
    assert not halves_in(content, ids[True])
    assert len(halves_in(content, ids[False])) == 8000
    assert {bytes(row[0]) for row in dump(store_url)["batches"][1]} == set(ids[False])
    assert set(store.commit(groups[0])) == {Outcome.CLOSED, Outcome.REPLAYED}


def database_bytes(request, url):
    """Return the content of all files of a store, but not of PostgreSQL's write-ahead log."""
    if url.startswith("sqlite"):
        return bytes_of_store(url)
    with closing(psycopg.connect(url, autocommit=True)) as connection:
        connection.execute("CHECKPOINT")
        (number,) = connection.execute(
            "SELECT oid FROM pg_database WHERE datname = current_database()"
        ).fetchone()
    folder = request.getfixturevalue("postgres").data / "base" / str(number)
    return b"".join(file.read_bytes() for file in folder.iterdir())


def test_end_fails_while_a_reader_keeps_the_log(tmp_path, open_store, survey):
    url = f"sqlite:///{tmp_path / 'reports.db'}"
    store = open_store(url, lock_timeout=0.2)
    store.register(survey)
    store.commit([batch_of(survey, 1, 1)])
    store.set_closed(survey.fingerprint)
    with closing(sqlite3.connect(file_of(url), isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM batches").fetchone()
        with pytest.raises(StoreUnavailable, match="write-ahead log"):
            store.forget_ids(survey.fingerprint)
        reader.execute("ROLLBACK")
    store.forget_ids(survey.fingerprint)
    assert batch_of(survey, 1, 1).id not in bytes_of_store(url)


def test_erasing_lets_others_write(tmp_path, open_store, survey):
    other_survey = unrandomized_survey("other", 10)
    url = f"sqlite:///{tmp_path / 'reports.db'}"
    store = open_store(url, lock_timeout=2.0)
    impatient = open_store(url, lock_timeout=0.5)
    store.register(survey)
    store.register(other_survey)
    store.commit([batch_of(survey, 1, 1)])
    store.set_closed(survey.fingerprint)
    with (
        closing(sqlite3.connect(file_of(url), isolation_level=None)) as reader,
        ThreadPoolExecutor(1) as threads,
    ):
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM batches").fetchone()
        end = threads.submit(store.forget_ids, survey.fingerprint)
        number = 1
        while not end.done():
            number += 1
            assert impatient.commit([batch_of(other_survey, number, 1)]) == [Outcome.COUNTED]
            sleep(0.02)  # SQLite's lock goes to the first that asks, not to the one that waits
        reader.execute("ROLLBACK")
    with pytest.raises(StoreUnavailable, match="write-ahead log"):
        end.result()
    assert number > 2


def test_a_failing_checkpoint_is_an_error_of_the_store(sqlite_store, survey):
    def forbid_checkpoints(connection, _):
        def authorize(action, name, *_):
            is_checkpoint = action == sqlite3.SQLITE_PRAGMA and name == "wal_checkpoint"
            return sqlite3.SQLITE_DENY if is_checkpoint else sqlite3.SQLITE_OK

        connection.set_authorizer(authorize)

    event.listen(sqlite_store._backend.engine, "connect", forbid_checkpoints)
    sqlite_store.close()  # the next connection is a new one
    sqlite_store._backend.checkpoint()  # the next one catches up
    sqlite_store.set_closed(survey.fingerprint)
    with pytest.raises(StoreUnavailable, match="failed"):
        sqlite_store.forget_ids(survey.fingerprint)


def test_an_error_while_identifiers_are_written_again_loses_none(tmp_path, open_store, survey):
    other_survey = unrandomized_survey("other", 10)
    store = open_store(f"sqlite:///{tmp_path / 'reports.db'}")
    store.register(survey)
    store.register(other_survey)
    kept = [batch_of(other_survey, number, 1) for number in range(1, 300)]
    store.commit([batch_of(survey, 1000, 1), *kept])
    store.set_closed(survey.fingerprint)

    def forbid_the_last_step(connection, _):
        def authorize(action, *_):
            is_last_step = action == sqlite3.SQLITE_DROP_TEMP_TABLE
            return sqlite3.SQLITE_DENY if is_last_step else sqlite3.SQLITE_OK

        connection.set_authorizer(authorize)

    engine = store._backend.engine
    event.listen(engine, "connect", forbid_the_last_step)
    store.close()  # the next connection is a new one
    with pytest.raises(StoreUnavailable, match="failed"):
        store.forget_ids(survey.fingerprint)
    assert store.commit(kept) == [Outcome.REPLAYED] * 299
    event.remove(engine, "connect", forbid_the_last_step)
    store.close()
    store.forget_ids(survey.fingerprint)
    assert store.commit(kept) == [Outcome.REPLAYED] * 299


@pytest.fixture
def minutes():
    """A list of minutes, the last of which is the time of the stores' checkpoints."""
    return [0.0]


@pytest.fixture
def checkpointed_store(sqlite_url, open_store, survey, minutes):
    store = open_store(sqlite_url, clock=lambda: 60 * minutes[-1])
    store.register(survey)
    return store


def test_single_commits_leave_the_log_within_a_minute(
    checkpointed_store, sqlite_url, survey, minutes
):
    """The log shows the counts before and after each commit, and so its reports."""
    batches = [batch_of(survey, number, number) for number in range(1, 20)]
    for batch in batches:
        checkpointed_store.commit([batch])
    log = file_of(sqlite_url, "-wal")
    assert all(batch.id in log.read_bytes() for batch in batches)
    minutes.append(0.9)
    checkpointed_store.checkpoint_if_due()
    assert log.stat().st_size > 0
    minutes.append(1.0)
    checkpointed_store.checkpoint_if_due()
    assert log.stat().st_size == 0
    assert checkpointed_store.commit(batches) == [Outcome.REPLAYED] * 19


def test_a_reader_delays_a_checkpoint_and_nothing_else(
    checkpointed_store, sqlite_url, survey, minutes
):
    checkpointed_store.commit([batch_of(survey, 1, 1)])
    with closing(sqlite3.connect(file_of(sqlite_url), isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM batches").fetchone()
        minutes.append(1.0)
        checkpointed_store.checkpoint_if_due()
        assert checkpointed_store.commit([batch_of(survey, 2, 2)]) == [Outcome.COUNTED]
        reader.execute("ROLLBACK")
    minutes.append(2.0)
    checkpointed_store.checkpoint_if_due()
    assert file_of(sqlite_url, "-wal").stat().st_size == 0


def test_files_are_for_their_owner_only(sqlite_store, sqlite_url, survey):
    sqlite_store.commit([batch_of(survey, 1, 1)])
    for suffix in ("", "-wal", "-shm"):
        mode = file_of(sqlite_url, suffix).stat().st_mode
        assert stat.S_IMODE(mode) == 0o600, suffix


def test_a_deleted_log_stops_writes_and_a_clean_stop_saves_them(
    sqlite_store, sqlite_url, open_store, survey
):
    for number in range(1, 8):
        sqlite_store.commit([batch_of(survey, number, number)])
    file_of(sqlite_url, "-wal").unlink()
    for ask in (lambda: sqlite_store.commit([batch_of(survey, 9, 9)]), sqlite_store.ping):
        with pytest.raises(StoreUnavailable, match="write-ahead log"):
            ask()
    sqlite_store.close()
    reopened = open_store(sqlite_url)
    assert reopened.tally(survey.fingerprint, survey.mechanism.outputs).reports == 7


def test_an_error_during_a_commit_does_not_stop_writes(sqlite_store, survey):
    """After an error, a commit that is in progress may close the last connection to the log."""
    with sqlite_store._write():
        sqlite_store._backend.engine.dispose()  # as in another thread
    gc.collect()
    assert sqlite_store.commit([batch_of(survey, 1, 1)]) == [Outcome.COUNTED]


def test_the_survey_is_in_the_file_at_once(sqlite_store, sqlite_url, tmp_path, survey):
    """Without its log, a young store must still have its survey."""
    copy = tmp_path / "copy.db"
    copy.write_bytes(file_of(sqlite_url).read_bytes())
    with closing(Store.open(f"sqlite:///{copy}")) as store:
        assert store.read_resolved(survey.fingerprint) == survey.resolved()


@pytest.mark.parametrize("version", ["abc", "0", "-1", "1e9", "99999999999999999999"])
def test_damaged_versions_are_refused_in_words(sqlite_store, sqlite_url, version):
    sqlite_store.set_setting("version", version)
    with pytest.raises(StoreUnavailable, match="version"):
        Store.open(sqlite_url)


@pytest.mark.parametrize("table", ["facts", "batches", "cells", "senders"])
def test_foreign_databases_are_refused(sqlite_url, table):
    with closing(sqlite3.connect(file_of(sqlite_url))) as connection:
        connection.execute(f"CREATE TABLE {table} (name TEXT, value TEXT)")
    with pytest.raises(StoreUnavailable, match="another program"):
        Store.open(sqlite_url)
    with closing(sqlite3.connect(file_of(sqlite_url))) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [(table,)]


def test_a_full_disk_allows_reading_and_closing(sqlite_store, sqlite_url, open_store, survey):
    sqlite_store.commit([batch_of(survey, 1, 1)])
    sqlite_store.close()
    full = open_store(sqlite_url, reserve=2**62)
    full.register(survey)
    assert full.tally(survey.fingerprint, survey.mechanism.outputs).reports == 1
    with pytest.raises(StoreUnavailable, match="MiB left"):
        full.commit([batch_of(survey, 2, 2)])
    full.set_closed(survey.fingerprint)
    assert full.read_status(survey.fingerprint).state == "closed"
