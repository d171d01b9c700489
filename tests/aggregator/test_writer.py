"""The one writer: full queues are said, and nobody's trouble becomes that of the others."""

import asyncio
import threading

import numpy as np
import pytest

from sfumato.aggregator import Token
from sfumato.aggregator import writer as writer_module
from sfumato.aggregator.http.limits import MemoryQuota
from sfumato.aggregator.http.monitoring import Readiness
from sfumato.aggregator.http.problems import problem_for
from sfumato.aggregator.store import Outcome
from sfumato.aggregator.writer import Writer
from sfumato.batches import TallyExport
from sfumato.errors import (
    EntropyUnavailable,
    InvalidContext,
    MissingExtra,
    PrivacyViolation,
    StoreFull,
    StoreUnavailable,
)
from sfumato.tally import Tally
from support.unrandomized import batch_of, counts_of, unrandomized_survey


class Held:
    """A store whose commits wait until they are let through."""

    def __init__(self, store):
        self._store = store
        self.through = threading.Event()
        self.groups = []

    def checkpoint_if_due(self):
        pass

    def commit(self, group):
        self.groups.append(len(group))
        assert self.through.wait(30)
        return self._store.commit(group)


@pytest.fixture
def file_store(tmp_path, open_store, survey):
    store = open_store(f"sqlite:///{tmp_path}/reports.db")
    store.register(survey)
    return store


@pytest.fixture
def writing():
    """Starts writers, and stops all of them in the end."""
    started = []

    def starting(store, **options):
        started.append(Writer(store, **options))
        started[-1].start()
        return started[-1]

    yield starting
    for writer in started:
        writer.stop()


def gathered(*awaited):
    async def all_of_them():
        return await asyncio.gather(*(make() for make in awaited), return_exceptions=True)

    return asyncio.run(all_of_them())


def _full(survey):
    counts = np.zeros(survey.mechanism.outputs, dtype=np.int64)
    counts[0] = 2**62
    return TallyExport.from_tally(b"f" * 16, Tally(counts, survey.fingerprint))


def test_a_failing_survey_does_not_affect_the_rest_of_its_group(file_store, survey, writing):
    other = unrandomized_survey("other", 50)
    file_store.register(other)
    assert file_store.import_tally(_full(other)) is Outcome.COUNTED
    held = Held(file_store)
    writer = writing(held)
    batches = [
        batch_of(survey, 1, 5),
        batch_of(other, 2, 7),
        batch_of(survey, 3, 6),
        batch_of(survey, 1, 5),
    ]
    threading.Timer(0.3, held.through.set).start()
    first, full, third, again = gathered(
        *(lambda batch=batch: writer.count(batch) for batch in batches)
    )
    assert sorted(o.value for o in (first, third, again)) == ["counted", "counted", "replayed"]
    assert isinstance(full, StoreFull)
    assert counts_of(file_store, survey) == {5: 1, 6: 1}
    assert problem_for(full).status == 507


def test_an_unavailable_store_is_asked_once_per_group(file_store, survey, writing, monkeypatch):
    other = unrandomized_survey("other", 50)
    asked = []

    def away(group):
        asked.append(len(group))
        raise StoreUnavailable("away")

    monkeypatch.setattr(file_store, "commit", away)
    writer = writing(file_store)
    answers = gathered(
        lambda: writer.count(batch_of(survey, 1, 5)), lambda: writer.count(batch_of(other, 2, 5))
    )
    assert all(isinstance(answer, StoreUnavailable) for answer in answers)
    assert sum(asked) == 2


@pytest.mark.parametrize("limits", [{"max_batches": 3}, {"max_reports": 2}])
def test_a_full_queue_refuses_uploads_until_it_drains(file_store, survey, writing, limits):
    held = Held(file_store)
    writer = writing(held, **limits)
    threading.Timer(0.5, held.through.set).start()
    answers = gathered(*(lambda i=i: writer.count(batch_of(survey, i, i)) for i in range(8)))
    refused = [answer for answer in answers if isinstance(answer, StoreUnavailable)]
    counted = [answer for answer in answers if answer is Outcome.COUNTED]
    assert len(refused) + len(counted) == 8
    assert refused
    assert len(counts_of(file_store, survey)) == len(counted)
    assert (writer.waiting_count, writer._waiting_report_count) == (0, 0)
    assert gathered(lambda: writer.count(batch_of(survey, 99, 9))) == [Outcome.COUNTED]


def test_groups_are_bounded(file_store, survey, writing, monkeypatch):
    monkeypatch.setattr(writer_module, "_MAX_GROUP_SIZE", 4)
    held = Held(file_store)
    writer = writing(held)
    threading.Timer(0.3, held.through.set).start()
    assert set(
        gathered(*(lambda i=i: writer.count(batch_of(survey, i, i)) for i in range(10)))
    ) == {Outcome.COUNTED}
    assert max(held.groups) <= 4


def test_an_idle_writer_empties_the_log(tmp_path, open_store, survey, writing, monkeypatch):
    monkeypatch.setattr(writer_module, "_MAX_IDLE_SECONDS", 0.02)
    clock = [0.0]
    store = open_store(f"sqlite:///{tmp_path}/reports.db", clock=lambda: clock[0])
    store.register(survey)
    writer = writing(store)
    asyncio.run(writer.count(batch_of(survey, 1, 1)))
    log = tmp_path / "reports.db-wal"
    assert log.stat().st_size > 0
    clock[0] = 60.0
    checked = threading.Event()
    for _ in range(1000):
        if log.stat().st_size == 0:
            return
        checked.wait(0.02)
    pytest.fail("the log still shows the last commit")


def test_a_failing_observer_does_not_stop_the_writer(file_store, survey, writing):
    writer = writing(file_store, observe=lambda batches, outcomes, seconds: 1 / 0)
    for number in (1, 2):
        assert gathered(lambda number=number: writer.count(batch_of(survey, number, 5))) == [
            Outcome.COUNTED
        ]
    assert writer.is_alive


def test_a_stopped_writer_is_not_ready_and_accepts_nothing(file_store, survey):
    writer = Writer(file_store)
    writer.start()
    readiness = Readiness(file_store, writer)
    assert gathered(readiness.require) == [None]
    writer.stop()
    assert isinstance(gathered(readiness.require)[0], StoreUnavailable)
    assert isinstance(gathered(lambda: writer.count(batch_of(survey, 1, 5)))[0], StoreUnavailable)


def test_readiness_checks_the_store_once_a_second(file_store, writing, monkeypatch):
    now = [0.0]
    looks = []
    ping = file_store.ping
    monkeypatch.setattr(file_store, "ping", lambda: looks.append(now[0]) or ping())
    readiness = Readiness(file_store, writing(file_store), clock=lambda: now[0])
    gathered(*[readiness.require] * 50)
    assert len(looks) == 1
    monkeypatch.setattr(file_store, "ping", _away)
    assert gathered(readiness.require) == [None]
    now[0] = 2.0
    assert isinstance(gathered(readiness.require)[0], StoreUnavailable)


def _away(*_):
    raise StoreUnavailable("away")


def test_wrong_tokens_do_not_query_an_unavailable_store(file_store, monkeypatch):
    now = [0.0]
    asked = []
    token = Token(file_store, clock=lambda: now[0])
    right = token.create()
    monkeypatch.setattr(file_store, "get_setting", lambda name: asked.append(name) or _away())
    now[0] = 10.0
    assert not any(token.matches(f"guess {i}") for i in range(20))
    assert len(asked) == 1
    assert token.matches(right)  # what was known goes on being known


def test_the_memory_quota_is_limited_and_released():
    quota = MemoryQuota(100)
    quota.acquire(60)
    with pytest.raises(StoreUnavailable, match="not enough memory"):
        quota.acquire(41)
    quota.acquire(40)
    quota.release(100)
    quota.acquire(100)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InvalidContext("a label"), 422),
        (EntropyUnavailable("none"), 503),
        (MissingExtra("h3"), 500),
        (PrivacyViolation("broken", x=0, x2=1, output=0), 500),
    ],
)
def test_only_invalid_questions_are_client_errors(error, status):
    assert problem_for(error).status == status


def test_identifiers_are_deleted_in_small_steps(file_store, survey, monkeypatch):
    from sfumato.aggregator.store import store as store_module

    monkeypatch.setattr(store_module, "_DELETE_BATCH_SIZE", 3)
    other = unrandomized_survey("other", 50)
    file_store.register(other)
    for number in range(10):
        file_store.commit([batch_of(survey, number, 5), batch_of(other, number, 5)])
    file_store.set_closed(survey.fingerprint)
    file_store.forget_ids(survey.fingerprint)
    assert file_store.read_status(survey.fingerprint).state == "ended"
    assert counts_of(file_store, survey) == {5: 10}
    assert file_store.commit([batch_of(other, 3, 5)]) == [
        Outcome.REPLAYED
    ]  # another survey keeps its own
    with file_store._read() as connection:
        left = connection.exec_driver_sql(
            "SELECT survey, count(*) FROM batches GROUP BY survey"
        ).all()
    assert [tuple(row) for row in left] == [(2, 10)]
