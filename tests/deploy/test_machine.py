"""docs/deployment.md on one machine: systemd's units, SQLite, nginx, and what follows later.

The blocks of the page run in its order, as in one shell, on a machine that is a folder.
"""

import csv
import gzip
import json
import re
import shutil
import sqlite3
import subprocess
import threading
from contextlib import closing, contextmanager

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

import sfumato as sf
from sfumato.aggregator.store import Store
from sfumato.aggregator.store.database import MIGRATIONS
from support.http_client import batch_of
from support.page_machine import SERVER_NAME, PageMachine, missing_programs
from support.paths import ROOT
from support.stand_ins import stop
from support.version_1_store import read_results
from support.waiting import wait_until

pytestmark = pytest.mark.skipif(
    bool(missing_programs()), reason=f"this machine lacks {missing_programs()}"
)

TOKEN = re.compile(r"not shown again\): (\S+)")
LISTENING = "listening on"
OLD_STORE = ROOT / "tests" / "aggregator" / "store" / "data"
BACKUP_SCRIPT = ROOT / "deploy" / "sfumato-backup"


@pytest.fixture
def machine(tmp_path):
    """A machine that has nothing yet."""
    found = PageMachine(tmp_path / "machine")
    try:
        yield found
    finally:
        found.stop_all()


@pytest.fixture
def survey(machine):
    return sf.Survey.load(machine.source / "lunch.toml")


def keep_token(machine, said):
    token = TOKEN.search(said)[1]
    machine.follow("Keep the token", text=f"{token}\n")
    return token


def start_service(machine):
    """Follow the page to a running service. Return the token."""
    machine.follow("Install")
    token = keep_token(machine, machine.follow_until("Register the survey", LISTENING))
    assert json.loads(machine.follow("Start the service")) == {"status": "ready"}
    return token


def status_of(machine, survey, token):
    path = f"/v1/surveys/{survey.fingerprint}/status"
    answer = machine.request(path, token=token, port="8750")
    assert answer.status == 200, answer
    return answer.json


class Uploads:
    """Uploads of one report each, and their statuses."""

    def __init__(self, machine, survey):
        self._machine = machine
        self._survey = survey
        self.statuses = []

    def send(self, number):
        batch = batch_of(self._survey, [number % 2], number + 1)
        return self._machine.upload(batch, port="8750").status

    @contextmanager
    def running(self):
        """Upload in a thread, one after another."""
        is_over = threading.Event()

        def run():
            while not is_over.is_set():
                self.statuses.append(self.send(len(self.statuses)))

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield self
        finally:
            is_over.set()
            thread.join()

    def wait_for_more(self, count=20):
        target = len(self.statuses) + count
        wait_until(lambda: len(self.statuses) >= target, seconds=60)


# --- from nothing to TLS --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def behind_tls(tmp_path_factory):
    """A machine on which the first part of the page was followed, its token, and what it showed."""
    machine = PageMachine(tmp_path_factory.mktemp("page") / "machine")
    try:
        token = start_service(machine)
        machine.follow("Add TLS")
        yield machine, token, machine.follow("Check")
    finally:
        machine.stop_all()


def test_the_check_shows_what_the_page_says(behind_tls):
    machine, token, shown = behind_tls
    survey = sf.Survey.load(machine.source / "lunch.toml")
    assert shown.startswith('{"status":"ready"}')
    assert survey.fingerprint in shown
    assert "# TYPE sfumato_batches_total counter" in shown
    assert shown.endswith("\n404\n404\n404\n")
    assert token not in machine.logs()


def test_uploads_through_tls_count(behind_tls):
    machine, token, _ = behind_tls
    survey = sf.Survey.load(machine.source / "lunch.toml")
    before = status_of(machine, survey, token)["reports"]
    machine.follow("Send an answer")
    batch = batch_of(survey, [1])
    assert machine.upload(batch).status == 201
    assert machine.upload(batch).status == 200  # a replay
    many = batch_of(survey, [number % 4 for number in range(200)], 2)
    assert machine.upload(many, token=token).status == 201
    assert status_of(machine, survey, token)["reports"] == before + 202


def test_dashboard_is_served_through_tls(behind_tls):
    machine, token, _ = behind_tls
    survey = sf.Survey.load(machine.source / "lunch.toml")
    page = machine.request("/")
    assert page.status == 200
    assert page.headers["content-type"].startswith("text/html")
    assert page.headers["strict-transport-security"] == "max-age=31536000"
    days = f"/dashboard/{survey.fingerprint}/days"
    assert machine.request(days, token=token).status == 200
    assert machine.request(days).status == 401


@pytest.mark.parametrize(
    "path", ["/ready", "/health", "/metrics", "//metrics", "/v1/../metrics", "/%6detrics"]
)
def test_monitors_addresses_are_not_reachable_from_outside(behind_tls, path):
    machine, token, _ = behind_tls
    answer = machine.request(path, token=token)
    assert answer.status == 404
    assert answer.headers["server"] == "nginx"  # the aggregator has not been asked
    assert answer.headers["content-type"] == "text/html"


def test_only_named_networks_may_import_tallies(behind_tls):
    machine, token, _ = behind_tls
    path = f"/v1/surveys/{'ab' * 32}/imports"
    assert machine.request(path, method="POST", token=token).status == 403


def test_plain_http_only_proves_the_name(behind_tls):
    machine, _, _ = behind_tls
    answer = machine.request("/v1/surveys", port="80")
    assert answer.status == 301
    assert answer.headers["location"] == f"https://{SERVER_NAME}/v1/surveys"
    challenge = machine.path("/var/www/html/.well-known/acme-challenge")
    challenge.mkdir(parents=True)
    (challenge / "name").write_text("proof")
    assert machine.request("/.well-known/acme-challenge/name", port="80").body == b"proof"


def test_clients_cannot_invent_addresses(machine):
    """nginx replaces X-Forwarded-For, so a client has one allowance whatever it claims."""
    unit = machine.source / "deploy" / "sfumato.service"
    text = unit.read_text()
    assert "--proxy 127.0.0.1\n" in text
    unit.write_text(
        text.replace("--proxy 127.0.0.1\n", "--proxy 127.0.0.1 --requests-per-minute 5\n")
    )
    start_service(machine)
    machine.follow("Add TLS")
    statuses = [
        machine.request("/v1/surveys", X_Forwarded_For=f"192.0.2.{number}").status
        for number in range(12)
    ]
    assert statuses[0] == 200
    assert statuses[-1] == 429


# --- backup and restore ---------------------------------------------------------------------------


def test_backup_during_uploads_restores_what_it_had(machine, survey):
    token = start_service(machine)
    uploads = Uploads(machine, survey)
    with uploads.running():
        uploads.wait_for_more()
        sent_before = len(uploads.statuses)
        (name,) = machine.follow("Back up SQLite").split()
        sent_after = len(uploads.statuses)
        uploads.wait_for_more()
    assert set(uploads.statuses) == {201}
    backup = machine.path("/var/lib/sfumato-backups") / name
    assert backup.stat().st_mode & 0o77 == 0

    machine.follow("Restore SQLite")
    wait_until(lambda: is_ready(machine), seconds=60)
    restored = status_of(machine, survey, token)["reports"]
    assert sent_before <= restored <= sent_after + 1
    assert restored < len(uploads.statuses)

    # Everything is sent again: what the backup had is a replay, and later batches count again.
    statuses = [uploads.send(number) for number in range(len(uploads.statuses))]
    assert statuses == [200] * restored + [201] * (len(statuses) - restored)
    assert status_of(machine, survey, token)["reports"] == len(statuses)


def is_ready(machine):
    try:
        return machine.request("/ready", port="8750").status == 200
    except OSError:
        return False


@pytest.fixture
def folders(tmp_path):
    """A store with one row, and a folder with three backups of earlier days."""
    store = tmp_path / "reports.db"
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("CREATE TABLE facts (name TEXT)")
        connection.execute("INSERT INTO facts VALUES ('row')")
        connection.commit()
    backups = tmp_path / "backups"
    backups.mkdir()
    for day in (11, 12, 13):
        (backups / f"reports-2026-01-{day}T030000Z.db").touch()
    return store, backups


def back_up(store, backups):
    command = ["sh", str(BACKUP_SCRIPT), str(store), str(backups), "3"]
    return subprocess.run(command, capture_output=True, text=True)


def test_only_the_newest_backups_are_kept(folders):
    store, backups = folders
    (backups / "reports-2026-01-09T030000Z.db.part").touch()  # the machine was switched off
    (backups / "notes.txt").touch()
    assert back_up(store, backups).returncode == 0
    names = sorted(file.name for file in backups.iterdir())
    assert names[:3] == [
        "notes.txt",
        "reports-2026-01-12T030000Z.db",
        "reports-2026-01-13T030000Z.db",
    ]
    assert len(names) == 4
    with closing(sqlite3.connect(backups / names[3])) as connection:
        assert connection.execute("SELECT name FROM facts").fetchall() == [("row",)]


@pytest.mark.parametrize("fault", ["absent", "damaged"])
def test_a_failed_backup_deletes_nothing(folders, fault):
    store, backups = folders
    before = sorted(backups.iterdir())
    if fault == "absent":
        store.unlink()
    else:
        content = bytearray(store.read_bytes())
        content[4096:] = b"\xff" * (len(content) - 4096)
        store.write_bytes(content)
    assert back_up(store, backups).returncode != 0
    assert [file for file in sorted(backups.iterdir()) if file.suffix == ".db"] == before
    assert store.exists() == (fault == "damaged")


# --- upgrade --------------------------------------------------------------------------------------


def test_a_store_of_version_1_is_upgraded_and_backed_up(machine):
    start_service(machine)
    stop(machine.root, "sfumato.service")
    store = machine.path("/var/lib/sfumato/reports.db")
    store.write_bytes(gzip.decompress((OLD_STORE / "version_1.db.gz").read_bytes()))
    shown = machine.follow("Upgrade on one machine")
    assert shown == f'{{"status":"ready"}}{len(MIGRATIONS)}\n'
    (backup,) = machine.path("/var/lib/sfumato-backups").iterdir()
    assert version_of(backup) == "1"  # the way back
    stop(machine.root, "sfumato.service")
    with closing(Store.open_current(f"sqlite:///{store}")) as upgraded:
        assert read_results(upgraded) == json.loads((OLD_STORE / "version_1.json").read_text())


def test_nothing_is_installed_without_a_backup(machine):
    start_service(machine)
    marker = machine.root / "installed"
    pip = machine.path("/opt/sfumato/bin/pip")
    pip.write_text(f"#!/bin/sh\ntouch {marker}\n")
    backup = machine.path("/opt/sfumato/bin/sfumato-backup")
    backup.write_text("#!/bin/sh\nexit 1\n")
    assert machine.follow("Upgrade on one machine").startswith('{"status":"ready"}')
    assert not marker.exists()
    backup.write_text(BACKUP_SCRIPT.read_text())
    machine.follow("Upgrade on one machine")
    assert marker.exists()


def test_a_backup_restores_on_a_new_machine(machine, survey, tmp_path):
    """Its own first start makes a store and a token, which the backup replaces."""
    token = start_service(machine)
    assert machine.upload(batch_of(survey, [1]), port="8750").status == 201
    machine.follow("Back up SQLite")
    new_machine = PageMachine(tmp_path / "new")
    try:
        new_machine.follow("Install")
        new_machine.follow("Keep the token", text=f"{token}\n")
        new_machine.follow("Start the service")
        folder = "/var/lib/sfumato-backups"
        shutil.copytree(machine.path(folder), new_machine.path(folder))
        new_machine.follow("Restore SQLite")
        wait_until(lambda: is_ready(new_machine), seconds=60)
        assert status_of(new_machine, survey, token)["reports"] == 1
    finally:
        new_machine.stop_all()


def version_of(store):
    with closing(sqlite3.connect(store)) as connection:
        return connection.execute("SELECT value FROM facts WHERE name = 'version'").fetchone()[0]


# --- the token ------------------------------------------------------------------------------------


def test_the_token_is_replaced_while_uploads_go_on(machine, survey):
    old = start_service(machine)
    uploads = Uploads(machine, survey)
    with uploads.running():
        uploads.wait_for_more()
        said = machine.follow_until("Replace the token on one machine", LISTENING)
        new = keep_token(machine, said)
        machine.wait_until_replaced(old, new)
        assert status_of(machine, survey, new)["reports"] > 0
        uploads.wait_for_more()
    assert set(uploads.statuses) == {201}

    # The files for Prometheus and curl have the new one.
    machine.follow("Scrape the metrics")
    settings = machine.path("/etc/default/prometheus").read_text()
    assert settings.endswith('\nARGS="--web.listen-address=127.0.0.1:9090"\n')
    job = read_scrape_job(machine)
    credentials = machine.path(job["authorization"]["credentials_file"])
    assert credentials.read_text() == f"{new}\n"
    assert credentials.stat().st_mode & 0o77 == 0
    assert job["static_configs"] == [{"targets": ["127.0.0.1:8750"]}]
    answer = scrape(machine, credentials.read_text().strip(), job["metrics_path"])
    samples = {
        (sample.name, sample.labels.get("outcome")): sample.value
        for family in text_string_to_metric_families(answer.body.decode())
        for sample in family.samples
    }
    assert samples["sfumato_batches_total", "counted"] == len(uploads.statuses)


def scrape(machine, token, path="/metrics"):
    return machine.request(path, token=token, port="8750")


def read_scrape_job(machine):
    text = (machine.source / "deploy" / "prometheus.yml").read_text()
    (job,) = yaml.safe_load(text)["scrape_configs"]
    return job


# --- the archive ----------------------------------------------------------------------------------


def test_an_archive_gives_the_results_without_an_aggregator(machine, survey):
    token = start_service(machine)
    path = f"/v1/surveys/{survey.fingerprint}"
    outputs = survey.mechanism.outputs
    for number in range(3):
        reports = [report % outputs for report in range(number, number + 200)]
        assert (
            machine.upload(batch_of(survey, reports, number + 1), token=token, port="8750").status
            == 201
        )
        if number == 0:  # counts that an earlier export holds
            exported = machine.request(
                f"{path}/exports/{'ab' * 16}", method="PUT", token=token, port="8750"
            )
            assert exported.status == 200
    machine.follow("Write the archive", FINGERPRINT=survey.fingerprint)
    # Nothing is new, so writing it again gives the same tallies.
    archive = machine.path(f"/var/lib/sfumato-archive/{survey.fingerprint}")
    tallies = {file.name: file.read_bytes() for file in archive.glob("tally-*.json")}
    assert len(tallies) == 2
    shown = machine.follow("Write the archive", FINGERPRINT=survey.fingerprint)
    assert shown.endswith("}Nothing has arrived since the last export.\n")
    assert {file.name: file.read_bytes() for file in archive.glob("tally-*.json")} == tallies

    stop(machine.root, "sfumato.service")
    machine.follow("Read the archive", FINGERPRINT=survey.fingerprint)
    online = json.loads((archive / "estimate.json").read_text())
    with (archive / "shares.csv").open(encoding="utf-8", newline="") as file:
        offline = list(csv.DictReader(file))
    assert online["reports"] == 600
    assert shares_of(offline) == shares_of(online["symbols"])
    assert len(shares_of(offline)) == 5
    assert (archive / "survey.json").read_bytes() == survey.resolved()
    assert "shares.csv" in (archive / "SHA256SUMS").read_text()
    assert token not in "".join(file.read_text("utf-8") for file in archive.iterdir())


def shares_of(rows):
    return {row["label"]: float(row["frequency"]) for row in rows}


def test_an_ended_survey_leaves_no_identifiers(machine, survey):
    token = start_service(machine)
    batch = batch_of(survey, [1], 0x5F3C_91A7_0B6D_E284_C51F_7A39_D846_B20E)
    assert machine.upload(batch, port="8750").status == 201
    machine.follow("Back up SQLite")
    (backup,) = machine.path("/var/lib/sfumato-backups").iterdir()
    assert batch.id in backup.read_bytes()
    closed = machine.request(
        f"/v1/surveys/{survey.fingerprint}/close", method="POST", token=token, port="8750"
    )
    assert closed.json["state"] == "closed"
    shown = machine.follow("Delete what is no longer needed", FINGERPRINT=survey.fingerprint)
    assert json.loads(shown)["state"] == "ended"
    (backup,) = machine.path("/var/lib/sfumato-backups").iterdir()
    for file in (backup, machine.path("/var/lib/sfumato/reports.db")):
        assert batch.id not in file.read_bytes()
    assert status_of(machine, survey, token)["reports"] == 1
