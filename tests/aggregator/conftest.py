"""Stores of both kinds, and a survey whose reports are the values themselves."""

from datetime import UTC, datetime
from itertools import count

import pytest

from sfumato.aggregator.store import Store, backend_for
from support.postgres_server import PostgresServer, programs
from support.unrandomized import unrandomized_survey


class Clock:
    """A time that stands still until it is set."""

    def __init__(self):
        self.time = datetime(2026, 11, 15, 17, 30, tzinfo=UTC)

    def __call__(self):
        return self.time


@pytest.fixture(scope="session")
def postgres():
    """One PostgreSQL server for all tests of a worker."""
    if programs() is None:
        pytest.skip("no PostgreSQL server is installed (on Debian: apt-get install postgresql)")
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture(params=["sqlite", "postgresql"])
def new_url(request, tmp_path):
    """Addresses of empty stores, one per call: each test runs on both kinds."""
    if request.param == "sqlite":
        numbers = count()
        yield lambda: f"sqlite:///{tmp_path / f'reports-{next(numbers)}.db'}"
        return
    server, taken = request.getfixturevalue("postgres"), []

    def taking():
        taken.append(server.database())
        return taken[-1]

    yield taking
    for url in taken:
        server.give_back(url)


@pytest.fixture
def store_url(new_url):
    """The address of an empty store."""
    return new_url()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def open_store(clock):
    """Opens stores by their address, and closes all of them in the end."""
    opened = []

    def opening(url, **options):
        opened.append(Store(backend_for(url, **options), now=clock))
        return opened[-1]

    yield opening
    for store in opened:
        store.close()


@pytest.fixture
def store(store_url, open_store, survey):
    """An empty store that serves the survey."""
    return serving(open_store(store_url), survey)


@pytest.fixture
def new_store(new_url, open_store, survey):
    """Further stores of the same kind that serve the survey, one per call."""
    return lambda: serving(open_store(new_url()), survey)


def serving(store, survey):
    store.register(survey)
    return store


@pytest.fixture(scope="session")
def survey():
    """A survey in the clear, with enough values for several pages of counts."""
    return unrandomized_survey("places", 10_000)
