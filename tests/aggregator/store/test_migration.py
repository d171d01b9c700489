"""A store of version 1 opens with the same results, or stays as it was."""

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest
from sqlalchemy import insert, text

from sfumato.aggregator.store import Outcome
from sfumato.aggregator.store import database as database_module
from sfumato.aggregator.store.database import MIGRATIONS
from sfumato.batches import TallyExport, parse_tally
from sfumato.cells import NO_KEY, TallyCells
from sfumato.errors import StoreUnavailable
from sfumato.foundation.canonical import canonical_bytes
from support.store_tables import dump
from support.unrandomized import batch_id, batch_of
from support.version_1_store import BATCHES, EXPORT_IDS, IMPORTED, LUNCH, PLACES, read_results

DATA = Path(__file__).parent / "data"
EXPECTED = json.loads((DATA / "version_1.json").read_text())
# Version 1 had no cells, so only the name and the columns of this table changed.
OLD_COLUMNS = ("survey", "part", "day", "page", "cells")
NEW_COLUMNS = ("survey", "part", "day", "sender", "key", "page", "slot", "counts")


@pytest.fixture
def old_sqlite(tmp_path):
    """A copy of the store that commit 6d20f96 wrote."""
    file = tmp_path / "version_1.db"
    file.write_bytes(gzip.decompress((DATA / "version_1.db.gz").read_bytes()))
    return f"sqlite:///{file}"


@pytest.fixture(params=["sqlite", "postgresql"])
def old_url(request, old_sqlite, monkeypatch, open_store):
    """A store of version 1 with that content, on both kinds of database."""
    if request.param == "sqlite":
        yield old_sqlite
        return
    server = request.getfixturevalue("postgres")
    url = server.database()
    with monkeypatch.context() as patched:
        patched.setattr(database_module, "MIGRATIONS", MIGRATIONS[:1])
        store = open_store(url)
    _copy_rows(dump(old_sqlite), store)
    store.close()
    yield url
    server.release(url)


def _copy_rows(tables, store):
    """Fill empty tables of version 1; surveys come first, because the others refer to them."""
    with store._write() as connection:
        connection.execute(text("DELETE FROM facts"))
        for name in sorted(tables, key=lambda name: name != "surveys"):
            columns, rows = tables[name]
            table = database_module._metadata_1.tables[name]
            for row in rows:
                values = dict(zip(columns, row, strict=True))
                keyed = {column.key: values[column.name] for column in table.columns}
                connection.execute(insert(table).values(keyed))
        number = "SELECT setval('surveys_number_seq', (SELECT max(number) FROM surveys))"
        connection.execute(text(number))


def test_the_copy_is_of_version_1(old_url):
    tables = dump(old_url)
    assert "cells" not in tables
    assert tables["counts"][0] == OLD_COLUMNS
    assert len(tables["counts"][1]) == 9
    assert ("version", "1") in tables["facts"][1]


def test_results_are_the_same_after_the_migration(old_url, open_store):
    assert EXPECTED["lunch"]["status"][:2] == ["open", 17]
    assert EXPECTED["places"]["status"][:2] == ["closed", 4]
    assert read_results(open_store(old_url)) == EXPECTED


def test_every_row_is_kept(old_url, open_store):
    before = dump(old_url)
    open_store(old_url)
    after = dump(old_url)
    columns, counts = before.pop("counts")
    assert columns == OLD_COLUMNS
    moved = {(survey, part, day, "", "", page, 0, row) for survey, part, day, page, row in counts}
    assert after.pop("cell_pages") == (NEW_COLUMNS, moved)
    _, hours = before.pop("hours")
    assert after.pop("hour_counts")[1] == {
        (survey, hour, 0, *sums) for survey, hour, *sums in hours
    }
    columns, surveys = before.pop("surveys")
    uploaded = Counter()
    for survey, _, _, reports in hours:
        uploaded[survey] += reports
    imported = {(*survey[:-1], survey[-1] - uploaded[survey[0]]) for survey in surveys}
    assert after.pop("surveys") == (columns, imported)
    settings = after.pop("facts")[1]
    assert settings == before.pop("facts")[1] - {("version", "1")} | {("version", "4")}
    assert after.pop("senders")[1] == set()
    assert after.pop("omissions")[1] == set()
    columns, batches = before.pop("batches")
    # A checksum could reveal the report of a batch, so the migration erases it.
    assert after.pop("batches") == (columns, {(id_, survey, b"") for id_, survey, _ in batches})
    assert after == before


def test_opening_again_changes_nothing(old_url, open_store):
    open_store(old_url)
    once = dump(old_url)
    again = open_store(old_url)
    assert dump(old_url) == once
    assert read_results(again) == EXPECTED


def test_replays_and_overlaps_are_still_recognised(old_url, open_store):
    store = open_store(old_url)
    before = dump(old_url)
    lunch = [batch for batch in BATCHES if batch.fingerprint == LUNCH.fingerprint]
    assert store.commit(lunch) == [Outcome.REPLAYED] * 4
    # Without a checksum, other reports under a known identifier count as little as a replay.
    assert store.commit([batch_of(LUNCH, 1, 0, 1, 2)]) == [Outcome.REPLAYED]
    assert store.commit([batch_of(PLACES, 1, 5, 9_999)]) == [Outcome.CLOSED]
    imported = parse_tally(canonical_bytes(IMPORTED))
    assert store.import_tally(imported) is Outcome.REPLAYED
    for id_ in (batch_id(40), *EXPORT_IDS):
        overlapping = TallyExport(id_, imported.cells, (), 1)
        assert store.import_tally(overlapping) is Outcome.OVERLAP
    store.set_open(PLACES.fingerprint)
    assert store.commit([batch_of(PLACES, 1, 5, 9_999)]) == [Outcome.REPLAYED]
    store.set_closed(PLACES.fingerprint)
    assert dump(old_url) == before


def test_counting_goes_on(old_url, open_store):
    """New reports are added to the migrated counts of the open part, not to those exported."""
    store = open_store(old_url)
    assert store.commit([batch_of(LUNCH, 5, 0, 2)]) == [Outcome.COUNTED]
    exported = store.export(LUNCH.fingerprint, batch_id(103), LUNCH.mechanism.outputs)
    assert exported.cells == TallyCells({NO_KEY: exported.tally})
    assert exported.tally.counts.tolist() == [2, 0, 1]
    assert store.tally(LUNCH.fingerprint, LUNCH.mechanism.outputs).reports == 19
    new_survey = type(LUNCH)("new", LUNCH.context, edition=2)
    store.register(new_survey)
    assert store.read_status(new_survey.fingerprint).state == "open"
    assert list(store.read_states())[-1] == new_survey.fingerprint


def _fail(connection):
    connection.execute(text("SELECT * FROM nowhere"))


def _split_then_fail(connection):
    MIGRATIONS[1](connection)
    _fail(connection)


def _fail_before_the_old_counts_are_dropped(connection):
    """Interrupt the migration itself, after it has written the new table."""

    def refuse(_):
        rows = connection.execute(text("SELECT count(*) FROM cells")).scalar()
        assert rows == 9
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(database_module._counts_1, "drop", refuse)
        MIGRATIONS[1](connection)


@pytest.mark.parametrize(
    ("further", "error"),
    [
        ([_split_then_fail], StoreUnavailable),
        ([_fail_before_the_old_counts_are_dropped], KeyboardInterrupt),
        ([MIGRATIONS[1], _fail], StoreUnavailable),  # all migrations are one transaction
    ],
)
def test_a_failure_leaves_version_1(old_url, open_store, monkeypatch, further, error):
    before = dump(old_url)
    with monkeypatch.context() as patched, pytest.raises(error):
        patched.setattr(database_module, "MIGRATIONS", (MIGRATIONS[0], *further))
        open_store(old_url)
    assert dump(old_url) == before
    assert read_results(open_store(old_url)) == EXPECTED


def test_version_1_refuses_a_migrated_store(old_url, open_store, monkeypatch):
    open_store(old_url)
    before = dump(old_url)
    with monkeypatch.context() as patched:
        patched.setattr(database_module, "MIGRATIONS", MIGRATIONS[:1])
        with pytest.raises(StoreUnavailable, match=r"schema 4; .* up to 1\). Upgrade"):
            open_store(old_url)
    assert dump(old_url) == before
    assert read_results(open_store(old_url)) == EXPECTED
