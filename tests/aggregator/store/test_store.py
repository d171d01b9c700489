"""One exam for both kinds of store: what is counted, what is refused, and what is kept."""

import random
import sqlite3
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pytest
from sqlalchemy import event, inspect, text

import sfumato as sf
from sfumato.aggregator import Token, writer
from sfumato.aggregator.catalogue import Catalogue
from sfumato.aggregator.store import Outcome, Store, backend_for
from sfumato.aggregator.store import database as database_module
from sfumato.aggregator.store.count_pages import decode_page
from sfumato.aggregator.store.database import MIGRATIONS
from sfumato.aggregator.store.statements import Statements
from sfumato.errors import InvalidSetting, StoreUnavailable, WrongSurvey
from support.store_tables import dump
from support.unrandomized import batch_id, batch_of, counts_of, unrandomized_survey

COUNTED = Outcome.COUNTED
REPLAYED = Outcome.REPLAYED
CONFLICT = Outcome.CONFLICT
CLOSED = Outcome.CLOSED
UNKNOWN = Outcome.UNKNOWN


# --- counting -------------------------------------------------------------------------------------


def test_repeated_batches_count_once(store, survey):
    batch = batch_of(survey, 1, 5, 5, 9_999)
    assert store.commit([batch]) == [COUNTED]
    assert store.commit([batch]) == [REPLAYED]
    assert store.commit([batch, batch]) == [REPLAYED, REPLAYED]
    assert counts_of(store, survey) == {5: 2, 9_999: 1}
    assert store.read_status(survey.fingerprint).reports == 3


def test_duplicates_in_one_group_count_once(store, survey):
    group = [batch_of(survey, 1, 5), batch_of(survey, 1, 5), batch_of(survey, 2, 5)]
    assert store.commit(group) == [COUNTED, REPLAYED, COUNTED]
    assert counts_of(store, survey) == {5: 2}


def test_conflicts_keep_the_first_reports(store, survey):
    assert store.commit([batch_of(survey, 1, 5), batch_of(survey, 1, 6)]) == [COUNTED, CONFLICT]
    assert store.commit([batch_of(survey, 1, 7), batch_of(survey, 1, 5)]) == [CONFLICT, REPLAYED]
    assert store.commit([batch_of(survey, 1, 5, 5)]) == [CONFLICT]
    assert counts_of(store, survey) == {5: 1}


def test_the_order_of_reports_is_part_of_a_batch(store, survey):
    assert store.commit([batch_of(survey, 1, 5, 6), batch_of(survey, 1, 6, 5)]) == [
        COUNTED,
        CONFLICT,
    ]
    assert counts_of(store, survey) == {5: 1, 6: 1}


def test_an_unknown_survey_does_not_affect_the_rest_of_its_group(store, survey):
    stranger = unrandomized_survey("elsewhere", 10)
    assert store.commit([batch_of(stranger, 1, 5), batch_of(survey, 1, 5)]) == [UNKNOWN, COUNTED]
    with pytest.raises(WrongSurvey):
        store.tally(stranger.fingerprint, 10)
    assert counts_of(store, survey) == {5: 1}


def test_surveys_in_one_group_have_their_own_counts_and_identifiers(store, survey):
    other = unrandomized_survey("other places", 70_000)
    store.register(other)
    assert (
        store.commit([batch_of(survey, 1, 5), batch_of(other, 1, 69_999), batch_of(survey, 2, 6)])
        == [COUNTED] * 3
    )
    assert store.commit([batch_of(other, 1, 69_999), batch_of(survey, 1, 6)]) == [
        REPLAYED,
        CONFLICT,
    ]
    assert counts_of(store, survey) == {5: 1, 6: 1}
    assert counts_of(store, other) == {69_999: 1}


def test_an_empty_group_changes_nothing(store, store_url):
    before = dump(store_url)
    assert store.commit([]) == []
    assert dump(store_url) == before


class Twin:
    """What a store should do, over dictionaries."""

    def __init__(self):
        self.held = {}
        self.counts = {}

    def commit(self, group):
        outcomes = []
        for batch in group:
            key = (batch.fingerprint, batch.id)
            content = batch.reports.tolist()
            if key in self.held:
                outcomes.append(REPLAYED if self.held[key] == content else CONFLICT)
            else:
                self.held[key] = content
                self.counts.setdefault(batch.fingerprint, Counter()).update(content)
                outcomes.append(COUNTED)
        return outcomes


def random_batch(choose, surveys):
    """A batch whose identifier has probably come before, with reports on few or on many pages."""
    survey = choose.choice(surveys)
    number = choose.randrange(30)
    size = choose.choice([1, 1, 2, 400])
    content = random.Random(choose.choice([number, number, choose.random()]))
    return batch_of(
        survey, number, *(content.randrange(survey.mechanism.outputs) for _ in range(size))
    )


@pytest.mark.parametrize("seed", range(2))
def test_random_groups_match_a_simple_model(store, survey, seed):
    surveys = [survey, unrandomized_survey("coin", 2), unrandomized_survey("wide", 20_000)]
    for other in surveys[1:]:
        store.register(other)
    choose = random.Random(seed)
    twin = Twin()
    seen = set()
    for _ in range(15):
        group = [random_batch(choose, surveys) for _ in range(choose.randrange(1, 12))]
        expected = twin.commit(group)
        assert store.commit(group) == expected
        seen.update(expected)
    assert seen == {COUNTED, REPLAYED, CONFLICT}
    for one in surveys:
        assert counts_of(store, one) == dict(twin.counts[one.fingerprint])
        assert store.read_status(one.fingerprint).reports == twin.counts[one.fingerprint].total()


def test_the_largest_batch_is_counted(store, survey):
    reports = np.arange(65_536) % 10_000
    assert store.commit([batch_of(survey, 1, *reports)]) == [COUNTED]
    assert counts_of(store, survey) == dict(Counter(reports.tolist()))


def test_counts_survive_a_restart(store, store_url, open_store, survey):
    store.commit([batch_of(survey, 1, 5)])
    store.close()
    again = open_store(store_url)
    again.register(survey)
    assert again.commit([batch_of(survey, 1, 5), batch_of(survey, 2, 5)]) == [REPLAYED, COUNTED]
    assert counts_of(again, survey) == {5: 2}


def test_a_failed_count_stores_no_identifiers(store, survey, monkeypatch):
    store.commit([batch_of(survey, 1, 5)])

    def broken(*_, **__):
        raise ZeroDivisionError

    with monkeypatch.context() as planted, pytest.raises(ZeroDivisionError):
        planted.setattr(Statements, "add_to_hour", broken)  # the last write of a commit
        store.commit([batch_of(survey, 2, 6)])
    assert counts_of(store, survey) == {5: 1}
    assert store.commit([batch_of(survey, 2, 6)]) == [COUNTED]


# --- what is kept ---------------------------------------------------------------------------------


def test_a_store_contains_only_identifiers_counts_and_hours(store, store_url, survey):
    first = batch_of(survey, 1, 5, 4_097, 5)
    second = batch_of(survey, 2, 7)
    store.commit([first])
    store.commit([second])
    fingerprint = survey.fingerprint
    found = dump(store_url)
    pages = found.pop("cell_pages")
    hour_columns, hours = found.pop("hour_counts")
    assert hour_columns == ("survey", "hour", "slot", "batches", "reports")
    assert {row[:2] for row in hours} == {(1, "2026-11-15T17")}
    assert [sum(row[i] for row in hours) for i in (3, 4)] == [2, 4]
    assert found == {
        "facts": (("name", "value"), {("version", str(len(MIGRATIONS)))}),
        "surveys": (
            ("number", "fingerprint", "resolved", "state", "part", "reports"),
            {(1, fingerprint, survey.resolved(), "open", 0, 0)},
        ),
        "batches": (
            ("id", "survey", "digest"),
            {(first.id, 1, first.digest), (second.id, 1, second.digest)},
        ),
        "exports": (("survey", "id", "part", "reports"), set()),
        "imports": (("survey", "id", "digest", "part", "reports", "covers"), set()),
        "senders": (("survey", "name", "key_sha256"), set()),
        "omissions": (("survey", "column", "value"), set()),
    }
    assert pages[0] == ("survey", "part", "day", "sender", "key", "page", "slot", "counts")
    held = {
        row[:7]: Counter({i: int(n) for i, n in enumerate(decode_page(row[7])) if n})
        for row in pages[1]
    }
    assert held == {
        (1, 0, "2026-11-15", "", "", 0, 0): {5: 2, 7: 1},
        (1, 0, "2026-11-15", "", "", 1, 0): {1: 1},
    }


def test_counts_do_not_reveal_batches(new_url, open_store, survey):
    together = new_url()
    apart = new_url()
    one = open_store(together)
    other = open_store(apart)
    for made in (one, other):
        made.register(survey)
    one.commit([batch_of(survey, 1, 5, 4_097, 5)])
    for number, report in enumerate([4_097, 5, 5]):
        other.commit([batch_of(survey, number, report)])
    assert dump(together)["cell_pages"] == dump(apart)["cell_pages"]


def test_hours_are_in_utc_and_in_order(store, survey, clock):
    clock.time = datetime(2026, 11, 16, 0, 59, 59, tzinfo=timezone(timedelta(hours=2)))
    store.commit([batch_of(survey, 1, 5, 5)])
    store.commit([batch_of(survey, 2, 5)])
    clock.time = datetime(2026, 11, 15, 23, 0, tzinfo=UTC)
    store.commit([batch_of(survey, 3, 5)])
    clock.time = datetime(2026, 11, 15, 9, 0, tzinfo=UTC)
    store.commit([batch_of(survey, 4, 5), batch_of(survey, 1, 5, 5)])
    by_hour = (("2026-11-15T09", 1), ("2026-11-15T22", 3), ("2026-11-15T23", 1))
    assert store.read_status(survey.fingerprint).by_hour == by_hour


def test_tally_between_counts_the_uploads_of_those_days(store, survey, clock):
    outputs = survey.mechanism.outputs
    for number, day in enumerate([1, 2, 2, 4]):
        clock.time = datetime(2026, 11, day, 23, 59, tzinfo=UTC)
        store.commit([batch_of(survey, number, 10 + day, number)])
        store.export(survey.fingerprint, batch_id(100 + number), outputs)
    store.commit([batch_of(survey, 0, 11, 0)])  # a repetition, days later
    expected = {
        (1, 1): {11: 1, 0: 1},
        (2, 3): {12: 2, 1: 1, 2: 1},
        (3, 3): {},
        (2, 4): {12: 2, 14: 1, 1: 1, 2: 1, 3: 1},
    }
    for (first, last), counts in expected.items():
        found = store.tally_between(
            survey.fingerprint, outputs, date(2026, 11, first), date(2026, 11, last)
        ).counts
        assert {int(report): int(found[report]) for report in found.nonzero()[0]} == counts


# --- surveys and their states ---------------------------------------------------------------------


def test_registering_again_updates_only_the_title(store, survey):
    corrected = sf.Survey(survey.name, survey.context, title="Where do you live?")
    assert corrected.fingerprint == survey.fingerprint
    store.commit([batch_of(survey, 1, 5)])
    store.set_closed(survey.fingerprint)
    store.register(corrected)
    assert store.read_resolved(survey.fingerprint) == corrected.resolved() != survey.resolved()
    assert store.read_states() == {survey.fingerprint: "closed"}
    assert counts_of(store, survey) == {5: 1}


def test_surveys_are_listed_in_the_order_in_which_they_came(store, survey):
    others = [unrandomized_survey(f"survey {i}", 4) for i in range(8)]
    for other in others:
        store.register(other)
    assert list(store.read_states()) == [one.fingerprint for one in (survey, *others)]


def test_reopened_surveys_remember_their_batches(store, survey):
    store.commit([batch_of(survey, 1, 5)])
    store.set_closed(survey.fingerprint)
    assert store.commit([batch_of(survey, 1, 5), batch_of(survey, 2, 6)]) == [CLOSED, CLOSED]
    store.set_closed(survey.fingerprint)
    assert store.read_status(survey.fingerprint).state == "closed"
    store.set_open(survey.fingerprint)
    store.set_open(survey.fingerprint)
    assert store.commit([batch_of(survey, 1, 5), batch_of(survey, 2, 6)]) == [REPLAYED, COUNTED]


def test_ended_surveys_have_no_identifiers_and_stay_closed(store, store_url, survey):
    other = unrandomized_survey("other", 10)
    store.register(other)
    store.commit([batch_of(survey, 1, 5), batch_of(other, 1, 5)])
    with pytest.raises(WrongSurvey, match="Close it first"):
        store.forget_ids(survey.fingerprint)
    store.set_closed(survey.fingerprint)
    store.forget_ids(survey.fingerprint)
    assert dump(store_url)["batches"][1] == {(batch_id(1), 2, batch_of(other, 1, 5).digest)}
    with pytest.raises(WrongSurvey, match="has ended"):
        store.set_open(survey.fingerprint)
    store.set_closed(survey.fingerprint)
    store.register(survey)
    store.forget_ids(survey.fingerprint)
    assert store.read_status(survey.fingerprint).state == "ended"
    assert store.commit([batch_of(survey, 1, 5)]) == [CLOSED]
    assert counts_of(store, survey) == {5: 1}


def test_unknown_surveys_are_refused_by_all_methods(store):
    unknown = "ab" * 32
    assert store.read_resolved(unknown) is None
    asked = [
        store.set_open,
        store.set_closed,
        store.forget_ids,
        store.read_status,
        store.list_exports,
    ]
    for ask in [
        *asked,
        lambda name: store.tally(name, 4),
        lambda name: store.export(name, bytes(16), 4),
    ]:
        with pytest.raises(WrongSurvey, match="no survey"):
            ask(unknown)


def test_a_catalogue_finds_later_surveys(store, survey):
    catalogue = Catalogue(store)
    late = unrandomized_survey("late", 7)
    assert catalogue.get(survey.fingerprint) is None
    assert catalogue.find(late.fingerprint) is None
    store.register(late)
    found = catalogue.find(late.fingerprint)
    assert (found.resolved, found.outputs) == (late.resolved(), 7)
    assert catalogue.get(late.fingerprint) is catalogue.find(late.fingerprint) is found


def test_invalid_fingerprints_are_unknown_surveys(store):
    for name in ("", "\0", "\ud800", "é" * 64, "AB" * 32, "ab" * 32 + "\n", "a" * 100_000):
        assert Catalogue(store).find(name) is None


# --- settings -------------------------------------------------------------------------------------


def test_settings_are_stored_and_replaced(store, store_url, open_store):
    assert store.get_setting("colour") is None
    store.set_setting("colour", "blue")
    store.set_setting("colour", "green")
    assert open_store(store_url).get_setting("colour") == "green"


def test_only_the_last_token_matches_and_only_its_hash_is_stored(store, store_url, open_store):
    seconds = [0.0]
    here, there = (Token(one, clock=lambda: seconds[0]) for one in (store, open_store(store_url)))
    assert not here.exists
    assert not here.matches("")
    first = there.create()
    assert there.matches(first)
    assert not there.matches(first[:-1])
    assert not here.matches(first)  # it has just looked
    seconds[0] = 100.0
    assert here.matches(first)
    assert first not in str(dump(store_url))
    second = there.create()
    assert there.matches(second)
    assert not there.matches(first)


# --- versions of the tables -----------------------------------------------------------------------


def planted(runs):
    """A further migration, which notes that it ran."""

    def migration(connection):
        runs.append(1)
        connection.execute(text("CREATE TABLE planted (number INTEGER)"))

    return migration


def test_migrations_run_once_and_keep_counts(store, store_url, open_store, survey, monkeypatch):
    store.commit([batch_of(survey, 1, 5)])
    runs = []
    monkeypatch.setattr(database_module, "MIGRATIONS", (*MIGRATIONS, planted(runs)))
    for _ in range(2):
        newer = open_store(store_url)
        assert runs == [1]
        assert newer.get_setting("version") == str(len(MIGRATIONS) + 1)
        assert newer.commit([batch_of(survey, 1, 5)]) == [REPLAYED]
        assert counts_of(newer, survey) == {5: 1}
    assert "planted" in dump(store_url)


def test_a_failed_migration_changes_nothing(store, store_url, open_store, survey, monkeypatch):
    store.commit([batch_of(survey, 1, 5)])
    before = dump(store_url)

    def fails(connection):
        planted([])(connection)
        connection.execute(text("DELETE FROM cell_pages"))
        connection.execute(text("SELECT * FROM nowhere"))

    with monkeypatch.context() as patched, pytest.raises(StoreUnavailable):
        patched.setattr(database_module, "MIGRATIONS", (*MIGRATIONS, fails))
        open_store(store_url)
    assert dump(store_url) == before
    assert counts_of(open_store(store_url), survey) == {5: 1}


def test_stores_of_newer_versions_are_refused_unchanged(store, store_url, open_store):
    store.set_setting("version", str(len(MIGRATIONS) + 1))
    before = dump(store_url)
    with pytest.raises(StoreUnavailable, match=r"newer version .* Upgrade"):
        open_store(store_url)
    assert dump(store_url) == before


def test_concurrent_starts_create_the_tables_once(store_url, survey, monkeypatch):
    runs = []
    together = threading.Barrier(4)
    monkeypatch.setattr(database_module, "MIGRATIONS", (*MIGRATIONS, planted(runs)))

    def start():
        together.wait()
        store = Store.open(store_url)
        store.register(survey)
        store.close()

    with ThreadPoolExecutor(4) as pool:
        for started in [pool.submit(start) for _ in range(4)]:
            started.result()
    assert runs == [1]
    assert len(dump(store_url)["surveys"][1]) == 1


def test_concurrent_starts_on_a_new_file_wait_for_each_other(tmp_path):
    for round_number in range(15):
        url = f"sqlite:///{tmp_path / f'round-{round_number}.db'}"
        together = threading.Barrier(6)

        def start(url=url, together=together):
            together.wait()
            Store.open(url).close()

        with ThreadPoolExecutor(6) as pool:
            for future in [pool.submit(start) for _ in range(6)]:
                future.result()


# --- addresses ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url", ["", "reports.db", "mysql://localhost/reports", "sqlite://", "sqlite:///:memory:"]
)
def test_invalid_store_urls_are_refused(url):
    with pytest.raises(InvalidSetting, match="must be"):
        Store.open(url)


def test_missing_folders_are_named(tmp_path):
    with pytest.raises(InvalidSetting, match=str(tmp_path / "nowhere")):
        Store.open(f"sqlite:///{tmp_path / 'nowhere' / 'reports.db'}")


def test_an_old_sqlite_is_refused(tmp_path, monkeypatch):
    """It would refuse the statement that stores the identifiers of a large group."""
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 31, 1))
    with pytest.raises(InvalidSetting, match=r"needs SQLite 3\.32"):
        Store.open(f"sqlite:///{tmp_path}/reports.db")
    assert not list(tmp_path.iterdir())


def test_the_oldest_sqlite_takes_the_largest_group(tmp_path, open_store, survey):
    store = open_store(f"sqlite:///{tmp_path}/reports.db")
    store.register(survey)

    @event.listens_for(store._backend.engine, "connect")
    def limit(connection, _):
        connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 32_766)

    store.close()
    group = [batch_of(survey, number, 5) for number in range(writer._MAX_GROUP_SIZE)]
    assert store.commit(group) == [COUNTED] * len(group)


def test_tables_have_the_required_keys(store, store_url):
    engine = backend_for(store_url).engine
    found = inspect(engine)
    keys = {
        name: found.get_pk_constraint(name)["constrained_columns"]
        for name in found.get_table_names()
    }
    engine.dispose()
    assert keys["batches"] == ["id", "survey"]
    assert keys["imports"] == ["survey", "id"]
    assert keys["cell_pages"] == ["survey", "part", "day", "sender", "key", "page", "slot"]
