"""Client, HTTP client and command against the real aggregator, over loopback sockets."""

import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
import uvicorn

import sfumato as sf
from sfumato.aggregator import Settings, create_app
from sfumato.aggregator.store import Store
from sfumato.batches import Batch, fresh_id
from sfumato.client import AggregatorClient, QueuedAnswer, Receipt
from sfumato.client.http import BatchConflict
from sfumato.errors import NotDelivered, ReportRejected, WrongSurvey
from support.command import call, folder  # noqa: F401 - fixtures

PEOPLE = 5000


@contextmanager
def running(store, **settings):
    """The application under uvicorn, in a thread, on a port of the system's choice."""
    config = uvicorn.Config(
        create_app(store, Settings(**{"reports_per_upload": 65_536, **settings})),
        host="127.0.0.1",
        port=0,
        log_level="critical",
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        thread.join(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture(params=[1, 2], ids=["edition 1", "edition 2"])
def clear(request):
    """Reports are the answers themselves: what must be counted is known exactly."""
    repeat = {"every": "day", "distinct": 2}
    return sf.Survey("clear", sf.Uniform(7, "inf"), repeat=repeat, edition=request.param)


@pytest.fixture
def store(tmp_path, clear, survey):
    opened = Store.open(f"sqlite:///{tmp_path / 'reports.db'}")
    for served in (clear, survey):
        opened.register(served)
    yield opened
    opened.close()


def counts(store, survey):
    return store.tally(survey.fingerprint, survey.mechanism.outputs).counts.tolist()


def test_devices_are_counted_once_each_period(store, clear, tmp_path):
    clock = [datetime(2026, 11, 15, tzinfo=UTC)]
    with running(store) as url:
        for device in range(4):
            for days in range(3):
                clock[0] = datetime(2026, 11, 15 + days, tzinfo=UTC)
                home = tmp_path / f"{device}"
                client = sf.Client(clear, url, home=home, allow_clear=True, clock=lambda: clock[0])
                assert client.answer(device) == client.answer(device + 1)
    assert counts(store, clear) == [3, 3, 3, 3, 0, 0, 0]


def test_replays_conflicts_and_refusals(store, survey):
    reports = np.tile(np.array([1, 2, 3], dtype=np.uint32), 100)
    batch = Batch(fresh_id(), survey.fingerprint, reports)
    with running(store) as url:
        http_client = AggregatorClient(url)
        assert (
            http_client.deliver(batch)
            == http_client.deliver(batch, arrow=True)
            == Receipt.for_batch(batch)
        )
        with pytest.raises(BatchConflict):
            http_client.deliver(Batch(batch.id, survey.fingerprint, reports[:299]))
        with pytest.raises(ReportRejected) as raised:
            http_client.deliver(
                Batch(fresh_id(), survey.fingerprint, np.array([0, 2**31], dtype=np.uint32))
            )
        assert raised.value.index == 1
        with pytest.raises(WrongSurvey, match="does not have"):
            http_client.deliver(Batch(fresh_id(), "ab" * 32, reports))
        store.set_closed(survey.fingerprint)
        with pytest.raises(WrongSurvey, match="closed"):
            http_client.deliver(batch)
    assert sum(counts(store, survey)) == 300


def test_surveys_are_fetched_and_pinned(store, survey, clear):
    with running(store) as url:
        http_client = AggregatorClient(url)
        assert http_client.fetch_survey(survey.fingerprint) == survey
        assert {listed.fingerprint for listed in http_client.list_surveys()} == {
            survey.fingerprint,
            clear.fingerprint,
        }
        assert all(listed.open for listed in http_client.list_surveys())


def test_answers_wait_until_the_survey_opens(store, tmp_path):
    later = sf.Survey("later", sf.Uniform(3, 1), opens="2026-12-01T00:00:00+00:00")
    store.register(later)
    now = [datetime(2026, 11, 30, tzinfo=UTC)]
    with running(store, now=lambda: now[0]) as url:
        client = sf.Client(later, url, home=tmp_path / "device")
        assert isinstance(client.answer(1), QueuedAnswer)
        with pytest.raises(NotDelivered, match="yet"):
            client.flush()
        now[0] += timedelta(days=2)
        assert len(client.flush()) == 1
    assert sum(counts(store, later)) == 1


@pytest.mark.parametrize("size", [7, 1000, 65_536])
def test_many_devices_are_counted_exactly(store, clear, folder, call, size):  # noqa: F811
    values = np.random.default_rng(size).integers(0, 7, PEOPLE)
    clear.save(folder / "clear.json")
    (folder / "crowd.csv").write_text("x\n" + "\n".join(map(str, values)) + "\n")
    with running(store) as url:
        command = (
            "send",
            "clear.json",
            "crowd.csv",
            "--column",
            "x",
            "--to",
            url,
            "--batch-size",
            size,
        )
        result = call(*command)
        assert (result.code, result.err) == (0, "5,000 rows: 5,000 counted.\n")
        assert call(*command).code == 2
    assert counts(store, clear) == np.bincount(values, minlength=7).tolist()


def test_answers_are_resent_after_an_aggregator_restart(store, clear, folder, call, monkeypatch):  # noqa: F811
    """The first run loses its aggregator on the way; the second meets one with the same store."""
    values = np.random.default_rng(3).integers(0, 7, PEOPLE)
    clear.save(folder / "clear.json")
    (folder / "crowd.csv").write_text("x\n" + "\n".join(map(str, values)) + "\n")
    delivered = []
    deliver = AggregatorClient.deliver

    def interrupted(self, batch, *, arrow=False):
        receipt = deliver(self, batch, arrow=arrow)
        delivered.append(batch.id)
        if len(delivered) > 10:
            raise NotDelivered("the answer was lost")
        return receipt

    with running(store) as url:
        command = (
            "send",
            "clear.json",
            "crowd.csv",
            "--column",
            "x",
            "--to",
            url,
            "--batch-size",
            "100",
        )
        with monkeypatch.context() as patch:
            patch.setattr(AggregatorClient, "deliver", interrupted)
            assert call(*command).code == 2
        assert 1000 < sum(counts(store, clear)) < PEOPLE
        assert call(*command).code == 0
    assert counts(store, clear) == np.bincount(values, minlength=7).tolist()


def test_too_many_requests_are_spread_out(store, survey):
    with running(store, requests_per_minute=3) as url:
        waited = []
        http_client = AggregatorClient(
            url, patience=300, pause=lambda seconds: waited.append(seconds) or len(waited) > 2
        )
        with pytest.raises(NotDelivered, match="429"):
            for _ in range(20):
                http_client.deliver(
                    Batch(fresh_id(), survey.fingerprint, np.array([1], dtype=np.uint32))
                )
    assert max(waited) >= 1
