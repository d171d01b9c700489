"""Three aggregators, any events in any order: each counts every report at most once.

Every report has a unique value, so a double count shows as a 2. Stores and writers are the real
ones; lost requests, lost answers, restarts and exchanged tallies come as Hypothesis finds them.
"""

import asyncio
import tempfile
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import delete, select

import sfumato.aggregator.store.store as store_module
from sfumato.aggregator.store import Outcome, Store
from sfumato.aggregator.store.database import batches, imports
from sfumato.aggregator.writer import Writer
from sfumato.batches import TallyExport, parse_tally, tally_to_json
from sfumato.errors import StoreUnavailable
from support.unrandomized import batch_id, batch_of, counts_of, unrandomized_survey

SURVEY = unrandomized_survey("values", 5_000)
SAME = {
    "deadline": None,
    "derandomize": True,
    "database": None,
    "suppress_health_check": list(HealthCheck),
    "phases": [Phase.generate],  # shrinking takes minutes; add Phase.shrink to look at a failure
    "report_multiple_bugs": False,
}
which = st.integers(0, 2)


class Place:
    """An aggregator's store and writer, which can be started again, and what they should hold."""

    def __init__(self, url):
        self._url = url
        self._runner = asyncio.Runner()
        self._start()
        self.store.register(SURVEY)
        self.held = set()
        self.part = set()
        self.open = True
        self.uploads = {}
        self.exports = {}
        self.imports = set()

    def _start(self):
        self.store = Store.open(self._url)
        self._writer = Writer(self.store)
        self._writer.start()

    def _stop(self):
        self._writer.stop()
        self.store.close()

    def end(self):
        self._stop()
        self._runner.close()

    def restart(self):
        self._stop()
        self._start()

    def upload(self, *batches):
        """What became of batches that arrive at the same time."""

        async def together():
            return await asyncio.gather(*map(self._writer.count, batches))

        return self._runner.run(together())

    def export(self, number):
        sent = self.store.export(SURVEY.fingerprint, batch_id(number), SURVEY.mechanism.outputs)
        return None if sent is None else tally_to_json(sent)

    def add(self, values):
        self.held |= values
        self.part |= values

    def expect(self, batch):
        """What should become of a batch; it is counted if it is new."""
        values = batch.reports.tolist()
        if not self.open:
            return Outcome.CLOSED
        if batch.id in self.uploads:
            return Outcome.REPLAYED if self.uploads[batch.id] == values else Outcome.CONFLICT
        self.uploads[batch.id] = values
        self.add(set(values))
        return Outcome.COUNTED

    def expect_tally(self, number, values):
        """What should become of a tally; it is counted if nothing in it was before."""
        if not self.open:
            return Outcome.CLOSED
        if number in self.imports:
            return Outcome.REPLAYED
        if values & self.held:
            return Outcome.OVERLAP
        self.imports.add(number)
        self.add(values)
        return Outcome.COUNTED


class Aggregators(RuleBasedStateMachine):
    batches = Bundle("batches")
    tallies = Bundle("tallies")

    def __init__(self, new_url):
        super().__init__()
        self._new_url = new_url
        self._values = count()
        self._numbers = count(1)
        self.places = []

    @initialize()
    def start(self):
        self.places = [Place(self._new_url()) for _ in range(3)]

    def teardown(self):
        for place in self.places:
            place.end()

    def _fresh(self, size):
        return batch_of(SURVEY, next(self._numbers), *(next(self._values) for _ in range(size)))

    @rule(target=batches, at=which, size=st.integers(1, 5), sent=st.booleans())
    def upload(self, at, size, sent):
        """A new batch; it may be lost on its way, and come later."""
        batch = self._fresh(size)
        if sent:
            assert self.places[at].upload(batch) == [self.places[at].expect(batch)]
        return at, batch

    @rule(which_one=batches)
    def send_again(self, which_one):
        """Somebody whose answer, or whose request, was lost."""
        at, batch = which_one
        assert self.places[at].upload(batch) == [self.places[at].expect(batch)]

    @rule(which_one=batches, again=st.integers(2, 4))
    def send_many_times_at_once(self, which_one, again):
        at, batch = which_one
        fresh = self._fresh(1)
        sent = [batch] * again + [fresh]
        expected = [self.places[at].expect(one) for one in sent]
        assert self.places[at].upload(*sent) == expected

    @rule(which_one=batches)
    def send_other_reports_under_the_same_name(self, which_one):
        at, batch = which_one
        if batch.id in self.places[at].uploads:
            forged = batch_of(SURVEY, int.from_bytes(batch.id, "big"), next(self._values))
            assert self.places[at].upload(forged) == [self.places[at].expect(forged)]

    @rule(target=batches, at=which, written=st.booleans())
    def upload_while_the_store_breaks(self, at, written):
        """The store fails before it has written, or after: the sender cannot tell which."""
        place = self.places[at]
        batch = self._fresh(2)
        commit = place.store.commit

        def breaks(group):
            if written:
                commit(group)
            raise StoreUnavailable("planted")

        place.store.commit = breaks
        with pytest.raises(StoreUnavailable):
            place.upload(batch)
        del place.store.commit
        if written:
            place.expect(batch)
        return at, batch

    @rule(at=which)
    def restart(self, at):
        self.places[at].restart()

    @rule(at=which, opened=st.sampled_from([True, True, False]))
    def open_or_close(self, at, opened):
        place = self.places[at]
        (place.store.set_open if opened else place.store.set_closed)(SURVEY.fingerprint)
        place.open = opened

    @rule(target=tallies, at=which)
    def export(self, at):
        place = self.places[at]
        number = next(self._numbers)
        body = place.export(number)
        if body is None:
            assert not place.part
            return multiple()
        assert values_in(body) == place.part
        place.exports[number] = body
        place.part = set()
        return at, number

    @rule(tally=tallies)
    def export_again(self, tally):
        at, number = tally
        assert self.places[at].export(number) == self.places[at].exports[number]

    @rule(tally=tallies, away=st.integers(0, 2))
    def bring(self, tally, away):
        at, number = tally
        body = self.places[at].exports[number]
        place = self.places[(at + away) % 3]
        expected = place.expect_tally(number, values_in(body))
        assert place.store.import_tally(parse_tally(body)) is expected

    @rule(target=tallies, at=which, away=st.integers(1, 2))
    def relay(self, at, away):
        """A report travels in a tally to a second store, and in that store's tally to a third."""
        batch = self._fresh(1)
        assert self.places[at].upload(batch) == [self.places[at].expect(batch)]
        made = []
        for place in (at, (at + away) % 3):
            tally = self.export(place)
            if not isinstance(tally, tuple):
                break
            made.append(tally)
            self.bring(tally, away)
        return multiple(*made)

    @invariant()
    def every_report_counts_once(self):
        for place in self.places:
            assert counts_of(place.store, SURVEY) == dict.fromkeys(place.held, 1)
            assert place.store.read_status(SURVEY.fingerprint).reports == len(place.held)


def values_in(body):
    """The reports in an exported tally, each once."""
    counts = parse_tally(body).tally.counts
    assert set(counts.tolist()) <= {0, 1}
    return set(counts.nonzero()[0].tolist())


def run(new_url, **chosen):
    run_state_machine_as_test(lambda: Aggregators(new_url), settings=settings(**SAME, **chosen))


@pytest.fixture
def files():
    """Addresses of files that go away with the test; there are many, and pytest would keep them."""
    with tempfile.TemporaryDirectory() as folder:
        numbers = count()
        yield lambda: f"sqlite:///{Path(folder) / f'{next(numbers)}.db'}"


def test_every_report_counts_once_in_files(files):
    run(files, max_examples=15, stateful_step_count=30)


@pytest.mark.slow
def test_every_report_counts_once_on_a_server(postgres):
    with Recycled(postgres) as new_url:
        run(new_url, max_examples=5, stateful_step_count=30)


@pytest.mark.slow
def test_every_report_counts_once_in_files_for_long(files):
    run(files, max_examples=150, stateful_step_count=60)


@pytest.mark.slow
def test_every_report_counts_once_on_a_server_for_long(postgres):
    with Recycled(postgres) as new_url:
        run(new_url, max_examples=60, stateful_step_count=60)


class Recycled:
    """Three databases that are emptied for every run."""

    def __init__(self, server):
        self._server = server
        self._taken = []

    def __enter__(self):
        return self

    def __call__(self):
        if len(self._taken) == 3:
            self._server.release(self._taken.pop(0))
        self._taken.append(self._server.database())
        return self._taken[-1]

    def __exit__(self, *_):
        for url in self._taken:
            self._server.release(url)


# --- the machine has teeth ------------------------------------------------------------------------


def keep_no_names(monkeypatch):
    """Batches are counted without a look at their names."""

    count_known = Store._count

    def count_all(self, connection, fingerprint, group, slots):
        outcomes = []
        for batch in group:
            connection.execute(delete(batches).where(batches.c.id == batch.id))
            outcomes += count_known(self, connection, fingerprint, [batch], slots)
        return outcomes

    monkeypatch.setattr(Store, "_count", count_all)


def keep_names_in_memory(monkeypatch):
    """A store that is started again has forgotten the batches before."""
    start = Place._start

    def forgetting(self):
        start(self)
        with self.store._write() as connection:
            connection.exec_driver_sql("DELETE FROM batches")

    monkeypatch.setattr(Place, "_start", forgetting)


def forget_what_is_inside(monkeypatch):
    """Only the tallies themselves are looked for, not those inside them."""
    all_tally_ids = store_module._all_tally_ids

    def shallow(connection, number):
        inside = connection.scalars(
            select(imports.c.covers).where(imports.c.survey == number)
        ).all()
        hidden = {
            bytes.fromhex(text[i : i + 32]) for text in inside for i in range(0, len(text), 32)
        }
        return all_tally_ids(connection, number) - hidden

    monkeypatch.setattr(store_module, "_all_tally_ids", shallow)


def hand_out_everything(monkeypatch):
    """An export holds what earlier exports held."""
    export = Store.export

    def export_whole(self, fingerprint, id_, outputs):
        part = export(self, fingerprint, id_, outputs)
        if part is None:
            return None
        return TallyExport.from_tally(part.id, self.tally(fingerprint, outputs), part.covers)

    monkeypatch.setattr(Store, "export", export_whole)


OTHERS = [keep_names_in_memory, forget_what_is_inside, hand_out_everything]


@pytest.mark.parametrize(
    "plant", [keep_no_names, *(pytest.param(plant, marks=pytest.mark.slow) for plant in OTHERS)]
)
def test_a_planted_double_count_is_found(files, monkeypatch, plant):
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        run(files, max_examples=200, stateful_step_count=40)
