"""Stores of both kinds, and a survey whose reports are the values themselves."""

from datetime import UTC, datetime
from itertools import count

import pytest

from sfumato.aggregator.store import Store, backend_for
from support.postgres_server import PostgresServer, find_programs
from support.unrandomized import unrandomized_survey


@pytest.fixture(autouse=True)
def checksums_of_small_batches(request, monkeypatch):
    """Keep a checksum of every batch, so that tests of conflicts can use small ones.

    Tests marked `own_checksums` use the store as it is, without checksums of small batches.
    """
    if "own_checksums" not in request.keywords:
        monkeypatch.setattr("sfumato.aggregator.store.counting._MIN_DIGEST_REPORTS", 1)


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self):
        self.time = datetime(2026, 11, 15, 17, 30, tzinfo=UTC)

    def __call__(self):
        return self.time


@pytest.fixture(scope="session")
def postgres():
    """One PostgreSQL server for all tests of a worker."""
    if find_programs() is None:
        pytest.skip("no PostgreSQL server is installed (on Debian: apt-get install postgresql)")
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture(params=["sqlite", "postgresql"])
def new_url(request, tmp_path):
    """Return the URL of a new empty store on each call; tests run on both kinds."""
    if request.param == "sqlite":
        numbers = count()
        yield lambda: f"sqlite:///{tmp_path / f'reports-{next(numbers)}.db'}"
        return
    server = request.getfixturevalue("postgres")
    urls = []

    def new_database():
        url = server.database()
        urls.append(url)
        return url

    yield new_database
    for url in urls:
        server.release(url)


@pytest.fixture
def store_url(new_url):
    """The URL of an empty store."""
    return new_url()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def open_store(clock):
    """Open stores by their URL, and close all of them after the test."""
    stores = []

    def open_one(url, **options):
        store = Store(backend_for(url, **options), now=clock)
        stores.append(store)
        return store

    yield open_one
    for store in stores:
        store.close()


@pytest.fixture
def store(store_url, open_store, survey):
    """An empty store with the survey."""
    return register(open_store(store_url), survey)


@pytest.fixture
def new_store(new_url, open_store, survey):
    """Return another store with the survey on each call."""
    return lambda: register(open_store(new_url()), survey)


def register(store, survey):
    store.register(survey)
    return store


@pytest.fixture(scope="session")
def survey():
    """An unrandomized survey with enough values for several pages of counts."""
    return unrandomized_survey("places", 10_000)
