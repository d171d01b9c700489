"""A survey, an aggregator on the loopback, and clients that do not waste time."""

import pytest

import sfumato as sf
from sfumato.client import AggregatorClient
from support.fake_aggregator import FakeAggregator


@pytest.fixture(scope="session")
def survey():
    """A survey that hides much: equal reports are no accident of a coarse channel."""
    return sf.Survey("places", sf.Uniform([f"place {i}" for i in range(40)], 1))


@pytest.fixture
def aggregator(survey):
    with FakeAggregator(survey) as running:
        yield running


@pytest.fixture
def pauses():
    """How long clients wanted to wait."""
    return []


@pytest.fixture
def http_client(aggregator, pauses):
    """An HTTP client that pauses for no time, and says how long it would have."""
    return AggregatorClient(aggregator.url, pause=lambda seconds: pauses.append(seconds))
