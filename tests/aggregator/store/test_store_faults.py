"""A store that cannot write says so, changes nothing, and goes on by itself when it can."""

import contextlib
import shutil
import signal
import sqlite3
import threading
import time
from collections import namedtuple

import pytest
from sqlalchemy import event

from sfumato.aggregator import Settings, create_app
from sfumato.aggregator.store import Outcome, backends
from sfumato.aggregator.store.statements import Statements
from sfumato.batches import JSON_MEDIA_TYPE, to_json
from sfumato.errors import StoreFull, StoreUnavailable
from support.http_client import AsgiClient, upload_path
from support.postgres_server import administrator
from support.unrandomized import batch_of, counts_of

COUNTED = Outcome.COUNTED
REPLAYED = Outcome.REPLAYED


@pytest.fixture
def file(tmp_path):
    return tmp_path / "reports.db"


@pytest.fixture
def sqlite(file, open_store, survey):
    """A store in a file, which does not wait long for a lock."""
    store = open_store(f"sqlite:///{file}", lock_timeout=0.05)
    store.register(survey)
    return store


@pytest.fixture
def server_store(postgres, open_store, survey):
    """A store on the server, which does not wait long for a lock."""
    url = postgres.database()
    store = open_store(url, lock_timeout=0.1)
    store.register(survey)
    yield store
    postgres.release(url)


@contextlib.contextmanager
def every_connection(store, pragma):
    """Apply a setting to every connection that the store opens within the block."""
    engine = store._backend.engine

    def prepare(connection, _):
        connection.execute(f"PRAGMA {pragma}").close()

    engine.dispose()
    event.listen(engine, "connect", prepare)
    yield
    event.remove(engine, "connect", prepare)


@contextlib.contextmanager
def held_by_another(file):
    """Another program is writing to the file."""
    with contextlib.closing(
        sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    ) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def acknowledged_until(problem, store, survey, numbers):
    """Commit batches of one report until the store refuses; return the acknowledged reports."""
    counted = []
    with pytest.raises(problem):
        for number in numbers:
            assert store.commit([batch_of(survey, number, number)]) == [COUNTED]
            counted.append(number)
    return counted


def still_knows(store, survey, counted):
    """Exactly these reports are in the counts, and their batches are known again."""
    assert counts_of(store, survey) == dict.fromkeys(counted, 1)
    assert store.read_status(survey.fingerprint).reports == len(counted)
    for number in counted:
        assert store.commit([batch_of(survey, number, number)]) == [REPLAYED]


# --- a file ---------------------------------------------------------------------------------------


def pack(file):
    """Remove the free pages of a SQLite file. Return the number of pages that are left."""
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("VACUUM")
        return connection.execute("PRAGMA page_count").fetchone()[0]


def test_a_full_disk_changes_nothing_until_space_is_free(sqlite, file, survey):
    pages = pack(file)
    with every_connection(sqlite, f"max_page_count = {pages + 1}"):  # room for one page of counts
        counted = acknowledged_until(StoreFull, sqlite, survey, [0, 4_096, 8_192])
        assert counted == [0]
        with pytest.raises(StoreFull, match=r"full\. Free some space"):
            sqlite.commit([batch_of(survey, 4_096, 4_096)])
        still_knows(sqlite, survey, counted)
    sqlite.close()  # connections of the full disk; the store goes on
    assert sqlite.commit([batch_of(survey, 4_096, 4_096)]) == [COUNTED]
    still_knows(sqlite, survey, [0, 4_096])


def test_writes_stop_before_the_disk_is_full(sqlite, survey, monkeypatch):
    usage = namedtuple("usage", "total used free")
    with monkeypatch.context() as planted:
        planted.setattr(backends.shutil, "disk_usage", lambda _: usage(2**40, 2**40, 2**25 - 1))
        for ask in (lambda: sqlite.commit([batch_of(survey, 1, 1)]), sqlite.ping):
            with pytest.raises(StoreFull, match="less than 32 MiB left"):
                ask()
        assert counts_of(sqlite, survey) == {}  # reading needs no room
    assert sqlite.commit([batch_of(survey, 1, 1)]) == [COUNTED]


def test_a_store_does_not_open_on_a_full_disk(file, open_store):
    with pytest.raises(StoreFull):
        open_store(f"sqlite:///{file}", reserve=2**62)


def test_a_read_only_store_answers_and_counts_nothing(sqlite, survey):
    sqlite.commit([batch_of(survey, 1, 1)])
    with every_connection(sqlite, "query_only = ON"):
        for ask in (
            lambda: sqlite.commit([batch_of(survey, 2, 2)]),
            lambda: sqlite.set_closed(survey.fingerprint),
        ):
            with pytest.raises(StoreUnavailable, match="read-only"):
                ask()
        assert counts_of(sqlite, survey) == {1: 1}
    sqlite.close()
    assert sqlite.commit([batch_of(survey, 1, 1), batch_of(survey, 2, 2)]) == [REPLAYED, COUNTED]


def test_a_locked_store_can_be_retried(sqlite, file, survey):
    sqlite.commit([batch_of(survey, 1, 1)])
    with held_by_another(file):
        with pytest.raises(StoreUnavailable, match="locked by another program"):
            sqlite.commit([batch_of(survey, 2, 2)])
        with pytest.raises(StoreUnavailable, match="locked"):
            sqlite.ping()
        assert counts_of(sqlite, survey) == {1: 1}
    assert sqlite.commit([batch_of(survey, 2, 2)]) == [COUNTED]


def test_short_locks_go_unnoticed(file, open_store, survey):
    patient = open_store(f"sqlite:///{file}", lock_timeout=20)
    patient.register(survey)
    with contextlib.closing(
        sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    ) as other:
        other.execute("BEGIN IMMEDIATE")
        timer = threading.Timer(0.2, lambda: other.execute("ROLLBACK"))
        timer.start()
        assert patient.commit([batch_of(survey, 1, 1)]) == [COUNTED]
        timer.join()


@pytest.mark.parametrize("garbage", [b"no database at all" * 500, b"\0" * 8192])
def test_files_that_are_not_databases_are_refused_unchanged(file, open_store, garbage):
    file.write_bytes(garbage)
    with pytest.raises(StoreUnavailable, match="not a database"):
        open_store(f"sqlite:///{file}")
    assert file.read_bytes() == garbage


def test_damaged_files_raise_our_error(sqlite, file, survey, open_store):
    sqlite.commit([batch_of(survey, number, number) for number in range(200)])
    sqlite.close()
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = bytearray(file.read_bytes())
    whole[4096:] = b"\xa5" * (len(whole) - 4096)
    file.write_bytes(whole)
    with pytest.raises(StoreUnavailable, match=r"damaged|failed"):
        open_store(f"sqlite:///{file}").commit([batch_of(survey, 1, 1)])


def test_a_folder_may_disappear_and_return(tmp_path, open_store, survey):
    here = tmp_path / "here"
    away = tmp_path / "away"
    here.mkdir()
    store = open_store(f"sqlite:///{here / 'reports.db'}")
    store.register(survey)
    store.commit([batch_of(survey, 1, 1)])
    here.rename(away)
    with pytest.raises(StoreUnavailable):
        store.commit([batch_of(survey, 2, 2)])
    away.rename(here)
    assert store.commit([batch_of(survey, 1, 1), batch_of(survey, 2, 2)]) == [REPLAYED, COUNTED]


@pytest.mark.parametrize("replace", [False, True])
def test_nothing_is_acknowledged_into_a_file_that_was_deleted(
    sqlite, file, survey, tmp_path, replace
):
    sqlite.commit([batch_of(survey, 1, 1)])
    (tmp_path / "kept").mkdir()
    for path in tmp_path.glob("reports.db*"):
        path.rename(tmp_path / "kept" / path.name)
    if replace:
        shutil.copy(tmp_path / "kept" / file.name, file)
    for ask in (lambda: sqlite.commit([batch_of(survey, 2, 2)]), sqlite.ping):
        with pytest.raises(StoreUnavailable, match="moved, replaced or deleted"):
            ask()
    for path in (tmp_path / "kept").iterdir():
        path.replace(tmp_path / path.name)
    assert sqlite.commit([batch_of(survey, 1, 1), batch_of(survey, 2, 2)]) == [REPLAYED, COUNTED]


# --- a server -------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT])
def test_a_server_may_stop_and_return(postgres, server_store, survey, how):
    server_store.commit([batch_of(survey, 1, 1)])
    postgres.stop(how)
    try:
        for ask in (
            lambda: server_store.commit([batch_of(survey, 2, 2)]),
            lambda: server_store.read_status(survey.fingerprint),
            server_store.ping,
        ):
            with pytest.raises(StoreUnavailable, match="cannot be reached"):
                ask()
    finally:
        postgres.start()
    assert server_store.commit([batch_of(survey, 1, 1), batch_of(survey, 2, 2)]) == [
        REPLAYED,
        COUNTED,
    ]
    assert counts_of(server_store, survey) == {1: 1, 2: 1}


def test_a_connection_lost_during_a_commit(server_store, survey, monkeypatch):
    def cut(*_, **__):
        with administrator(server_store) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE state = 'idle in transaction'"
            )

    with monkeypatch.context() as planted, pytest.raises(StoreUnavailable):
        # After identifiers and counts, before the end.
        planted.setattr(Statements, "add_to_hour", cut)
        server_store.commit([batch_of(survey, 1, 1)])
    assert counts_of(server_store, survey) == {}
    assert server_store.commit([batch_of(survey, 1, 1)]) == [COUNTED]


def test_a_locked_survey_can_be_retried(server_store, survey):
    with administrator(server_store) as other, other.transaction():
        other.execute("LOCK TABLE batches")
        with pytest.raises(StoreUnavailable, match="locked by another program"):
            server_store.commit([batch_of(survey, 1, 1)])
    assert server_store.commit([batch_of(survey, 1, 1)]) == [COUNTED]


def test_a_full_server_is_a_full_store(server_store, survey):
    with administrator(server_store) as other:
        other.execute(
            "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'no space' USING ERRCODE = 'disk_full'; END $$"
        )
        other.execute(
            "CREATE TRIGGER full_disk BEFORE INSERT ON cell_pages EXECUTE FUNCTION full_disk()"
        )
        with pytest.raises(StoreFull, match="no space left"):
            server_store.commit([batch_of(survey, 1, 1)])
        other.execute("DROP TRIGGER full_disk ON cell_pages")
    assert server_store.commit([batch_of(survey, 1, 1)]) == [COUNTED]


def test_a_read_only_server_counts_nothing(server_store, survey):
    with administrator(server_store) as other:
        name = other.info.dbname
        other.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        try:
            server_store.close()
            with pytest.raises(StoreUnavailable, match="failed"):
                server_store.commit([batch_of(survey, 1, 1)])
            assert counts_of(server_store, survey) == {}
        finally:
            other.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
    server_store.close()
    assert server_store.commit([batch_of(survey, 1, 1)]) == [COUNTED]


def test_an_unreachable_server_fails_at_start(postgres, open_store):
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        open_store(postgres.url("no_such_database"))


# --- over HTTP ------------------------------------------------------------------------------------


@contextlib.contextmanager
def asking(store):
    """Uploads to an aggregator over this store."""
    with AsgiClient(create_app(store, Settings(requests_per_minute=0))) as http:

        def upload(batch):
            headers = {"Content-Type": JSON_MEDIA_TYPE}
            return http.request(
                "POST", upload_path(batch.fingerprint), body=to_json(batch), headers=headers
            )

        yield http, upload


def test_a_full_file_is_507_and_then_counts_again(sqlite, file, survey):
    with asking(sqlite) as (http, upload):
        assert upload(batch_of(survey, 1, 1)).status == 201
        pages = pack(file)
        with every_connection(sqlite, f"max_page_count = {pages}"):
            refused = upload(batch_of(survey, 2, 9_000))
            assert (refused.status, refused.problem, refused.headers["retry-after"]) == (
                507,
                "store-full",
                "30",
            )
            assert (
                upload(batch_of(survey, 1, 1)).status == 200
            )  # what was counted is known, room or not
        sqlite.close()
        assert upload(batch_of(survey, 2, 9_000)).status == 201
        assert http.get("/ready").status == 200
    assert counts_of(sqlite, survey) == {1: 1, 9_000: 1}


def test_a_locked_file_is_503_and_then_counts_again(sqlite, file, survey):
    with asking(sqlite) as (http, upload):
        assert upload(batch_of(survey, 1, 1)).status == 201
        with held_by_another(file):
            refused = upload(batch_of(survey, 2, 2))
            ready = http.get("/ready")
            assert (refused.status, refused.problem, refused.headers["retry-after"]) == (
                503,
                "store-unavailable",
                "1",
            )
            assert (ready.status, ready.problem) == (503, "store-unavailable")
            assert http.get("/health").status == 200
        assert upload(batch_of(survey, 2, 2)).status == 201
        assert upload(batch_of(survey, 2, 2)).status == 200
    assert counts_of(sqlite, survey) == {1: 1, 2: 1}


def test_a_stopped_server_is_503_and_then_counts_again(postgres, server_store, survey):
    with asking(server_store) as (http, upload):
        assert upload(batch_of(survey, 1, 1)).status == 201
        postgres.stop()
        try:
            refused = upload(batch_of(survey, 2, 2))
            ready = http.get("/ready")
            assert (refused.status, refused.problem) == (503, "store-unavailable")
            assert (ready.status, ready.problem) == (503, "store-unavailable")
        finally:
            postgres.start()
        assert upload(batch_of(survey, 1, 1)).status == 200
        assert upload(batch_of(survey, 2, 2)).status == 201
        while http.get("/ready").status != 200:  # what it knows may be a second old
            time.sleep(0.1)
    assert counts_of(server_store, survey) == {1: 1, 2: 1}
