"""`sfumato store`: days, what results leave out, and bulk senders, on the store itself."""

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime

import numpy as np
import pytest

import sfumato as sf
from sfumato.aggregator.store import Store, backend_for
from support.http_client import batch_of
from support.run_here import run_command

SURVEY = sf.Survey("lunch", sf.Uniform(["park", "clinic"], 1))
DAY = datetime(2026, 11, 15, 12, tzinfo=UTC)


@pytest.fixture
def store_option(tmp_path, monkeypatch):
    """A store with 300 reports of one day, a third of them from the sender north."""
    monkeypatch.chdir(tmp_path)
    SURVEY.save("survey.json")
    url = "sqlite:///reports.db"
    with closing(Store(backend_for(url), now=lambda: DAY)) as store:
        store.register(SURVEY)
        store.add_sender(SURVEY.fingerprint, "north")
        store.commit([batch_of(SURVEY, np.arange(200) % 2, 1)])
        store.commit([batch_of(SURVEY, np.arange(100) % 2, 2).from_sender("north")])
    return ("--store", url)


def reports_in_results():
    with closing(Store.open("sqlite:///reports.db")) as store:
        return store.tally(SURVEY.fingerprint, SURVEY.mechanism.outputs).reports


def run(*arguments):
    return run_command("store", *arguments, folder=".")


def test_days_are_listed(store_option):
    result = run("days", "survey.json", *store_option)
    assert result.code == 0
    lines = result.out.splitlines()
    assert "2026-11-15" in lines[1]
    assert "anonymous" in lines[1]
    assert "200" in lines[1]
    rows = json.loads(run("days", SURVEY.fingerprint[:8], *store_option, "--json").out)
    assert [(row["sender"], row["reports"], row["left_out"]) for row in rows] == [
        ("", 200, False),
        ("north", 100, False),
    ]


def test_days_and_senders_are_left_out_and_included_again(store_option):
    leave_out = ("leave-out", "survey.json", *store_option)
    include = ("include", "survey.json", *store_option)
    result = run(*leave_out, "--sender", "north")
    assert "The results leave out: sender north." in result.err
    assert reports_in_results() == 200
    run(*leave_out, "--day", "2026-11-15")
    assert reports_in_results() == 0
    run(*include, "--day", "2026-11-15")
    result = run(*include, "--sender", "north")
    assert "The results leave out nothing." in result.err
    assert reports_in_results() == 300


def test_senders_are_added_listed_and_revoked(store_option):
    key = run("add-sender", "survey.json", "south", *store_option).out.strip()
    with closing(Store.open("sqlite:///reports.db")) as store:
        assert store.find_sender(SURVEY.fingerprint, key) == "south"
    assert run("senders", "survey.json", *store_option).out == "north\nsouth\n"
    assert run("revoke-sender", "survey.json", "south", *store_option).code == 0
    assert run("senders", "survey.json", *store_option).out == "north\nsouth  (revoked)\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("leave-out", "survey.json"), "--day DATE or --sender SENDER"),
        (("leave-out", "survey.json", "--day", "yesterday"), "2026-11-15"),
        (("leave-out", "survey.json", "--sender", "west"), "operator, north"),
        (("leave-out", "survey.json", "--sender", "north", "--day", "yesterday"), "2026-11-15"),
        (("leave-out", "survey.json", "--day", "2026-11-15", "--sender", "west"), "operator"),
        (("revoke-sender", "survey.json", "west"), "no bulk sender"),
        (("add-sender", "survey.json", "A B"), "lowercase letters"),
        (("days", "abc"), "at least 8 digits"),
        (("days", "ab" * 32), "Matching surveys: 0"),
    ],
)
def test_mistakes_are_explained(store_option, arguments, message):
    result = run(*arguments, *store_option)
    assert result.code == 2
    assert message in result.err
    assert reports_in_results() == 300


def test_a_missing_store_is_not_created(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("days", SURVEY.fingerprint)
    assert result.code == 2
    assert "there is no store at sfumato.db" in result.err
    assert not list(tmp_path.iterdir())


def test_a_day_without_reports_is_pointed_out(store_option):
    result = run("leave-out", "survey.json", *store_option, "--day", "2026-01-01")
    assert result.code == 0
    assert "Warning: no reports arrived on 2026-01-01." in result.err
    result = run("leave-out", "survey.json", *store_option, "--day", "2026-11-15")
    assert "no reports arrived" not in result.err


def test_a_store_of_an_older_version_is_not_migrated(store_option):
    with closing(Store.open("sqlite:///reports.db")) as store:
        store.set_setting("version", "2")
    result = run("days", "survey.json", *store_option)
    assert result.code != 0
    assert "start one of this version" in result.err
    with closing(sqlite3.connect("reports.db")) as connection:
        version = connection.execute("SELECT value FROM facts WHERE name = 'version'").fetchone()
    assert version == ("2",)
