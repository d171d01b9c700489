"""deploy/compose.yaml: what it promises, and its services as processes with PostgreSQL and nginx.

No container engine is needed. The commands, health checks, secrets, volumes and environments of the
services are those of the file; a stand-in for docker maps paths and addresses.
"""

import re
from contextlib import closing

import psycopg
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

import sfumato as sf
from sfumato.aggregator.store.database import MIGRATIONS
from support.http_client import batch_of
from support.page_machine import PageMachine, free_port, missing_programs, serve_has
from support.paths import ROOT
from support.postgres_server import PostgresServer, find_programs

TOKEN = re.compile(r"not shown again\): (\S+)")
LISTENING = "listening on"
DOCUMENT = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8"))
SERVICES = DOCUMENT["services"]
IGNORED = [
    line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")
]


# --- the file -------------------------------------------------------------------------------------


def test_only_nginx_has_ports_that_others_reach():
    published = {name: service.get("ports", []) for name, service in SERVICES.items()}
    assert published == {
        "database": [],
        "aggregator": ["127.0.0.1:8750:8750"],
        "nginx": ["80:80", "443:443"],
    }


def test_the_database_has_no_way_out():
    assert SERVICES["database"]["networks"] == ["store"]
    assert DOCUMENT["networks"]["store"]["internal"] is True
    assert "store" not in SERVICES["nginx"]["networks"]


@pytest.mark.parametrize("name", SERVICES)
def test_services_are_confined(name):
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert {"mem_limit", "healthcheck", "restart", "logging"} <= service.keys()
    if "build" not in service:
        assert re.fullmatch(r"[a-z]+:\d+(\.\d+)?", service["image"]), "pin the major version"


def test_secrets_are_files_that_stay_out_of_the_image_and_the_repository():
    folders = {secret["file"].split("/")[0] for secret in DOCUMENT["secrets"].values()}
    assert folders == {"secrets"}
    assert "deploy/secrets" in IGNORED
    assert "/deploy/secrets/" in (ROOT / ".gitignore").read_text().splitlines()
    environments = [service.get("environment", {}) for service in SERVICES.values()]
    values = [str(value) for environment in environments for value in environment.values()]
    names = [name for environment in environments for name in environment]
    assert not [name for name in names if "PASSWORD" in name and not name.endswith("_FILE")]
    assert not [value for value in values if "password=" in value]


def test_the_aggregator_trusts_only_nginx():
    command = SERVICES["aggregator"]["entrypoint"]
    address = SERVICES["nginx"]["networks"]["inside"]["ipv4_address"]
    assert f"--proxy={address}" in command


def test_open_files_suffice_for_all_connections():
    for name in ("aggregator", "nginx"):
        assert SERVICES[name]["ulimits"]["nofile"] == 65_536


def test_the_aggregator_has_two_processes():
    assert "--workers=2" in SERVICES["aggregator"]["entrypoint"]


def test_options_of_serve_exist():
    words = SERVICES["aggregator"]["entrypoint"]
    assert words[1] == "serve"
    options = {word.partition("=")[0] for word in words[2:]}
    assert [option for option in options if not serve_has(option)] == []


# --- the services ---------------------------------------------------------------------------------


class DatabaseContainer(PostgresServer):
    """PostgreSQL as its image starts it: clients on the network need the password in the file."""

    def __init__(self):
        self.port = free_port()
        settings = {"listen_addresses": "127.0.0.1", "port": str(self.port)}
        super().__init__(initialization=["--auth-host=scram-sha-256"], settings=settings)

    def url(self, database):
        return f"{super().url(database)}&port={self.port}"

    def create(self, environment, password):
        user = environment["POSTGRES_USER"]
        with closing(psycopg.connect(self.url("postgres"), autocommit=True)) as connection:
            connection.execute(f"CREATE ROLE {user} SUPERUSER LOGIN PASSWORD '{password}'")
            connection.execute(f"CREATE DATABASE {environment['POSTGRES_DB']} OWNER {user}")


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    """The services after the first start on the page, and the token."""
    if missing_programs():
        pytest.skip(f"this machine lacks {missing_programs()}")
    if find_programs() is None:
        pytest.skip("no PostgreSQL server is installed (on Debian: apt-get install postgresql)")
    server = DatabaseContainer()
    database = {"port": server.port, "socket": str(server.folder), "url": server.url("reports")}
    machine = PageMachine(tmp_path_factory.mktemp("containers") / "machine", database=database)
    try:
        machine.write_nginx_folder(machine.root / "containers" / "nginx")
        machine.follow("Install")  # only curl and certbot are needed here
        machine.put_certificate()
        machine.enter("deploy")
        machine.follow("Write the secrets")
        server.start()
        password = (machine.source / "deploy" / "secrets" / "database_password").read_text()
        server.create(SERVICES["database"]["environment"], password.strip())
        said = machine.follow_until("Register the survey in its container", LISTENING)
        token = TOKEN.search(said)[1]
        machine.follow("Start the containers")
        machine.follow("Keep the token", text=f"{token}\n")
        assert machine.follow("Check").endswith("\n404\n404\n404\n")
        yield machine, token
    finally:
        machine.stop_all()
        server.remove()


@pytest.fixture
def machine(started):
    return started[0]


@pytest.fixture
def token(machine):
    """The token that is valid now: a test replaces it."""
    return machine.path("/etc/sfumato/token").read_text().strip()


@pytest.fixture
def survey(machine):
    return sf.Survey.load(machine.source / "lunch.toml")


def reports_of(machine, survey, token):
    return machine.request(f"/v1/surveys/{survey.fingerprint}/status", token=token).json["reports"]


def upload(machine, survey, number):
    return machine.upload(batch_of(survey, [number % 2], number)).status


def test_uploads_reach_the_database_through_nginx(machine, survey, token):
    before = reports_of(machine, survey, token)
    assert [upload(machine, survey, 100), upload(machine, survey, 100)] == [201, 200]
    assert reports_of(machine, survey, token) == before + 1
    page = machine.request("/")
    assert page.status == 200
    assert "strict-transport-security" in page.headers


def test_any_process_answers_for_both(machine, survey, token):
    before = counted(machine, token)
    statuses = [upload(machine, survey, number) for number in range(300, 340)]
    assert statuses == [201] * 40
    assert [counted(machine, token) for _ in range(10)] == [before + 40] * 10


def counted(machine, token):
    """Return how many batches the metrics say were counted."""
    text = machine.request("/metrics", token=token, port="8750").body.decode()
    return sum(
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "sfumato_batches_total" and sample.labels["outcome"] == "counted"
    )


def test_the_database_needs_the_password(machine, started):
    password = (machine.source / "deploy" / "secrets" / "database_password").read_text().strip()
    assert len(password) == 64
    address = {"host": "127.0.0.1", "port": machine.database["port"], "dbname": "reports"}
    psycopg.connect(user="sfumato", password=password, **address).close()
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(user="sfumato", password="0" * 64, **address)
    assert password not in machine.logs()


@pytest.mark.parametrize("path", ["/ready", "/health", "/metrics"])
def test_monitors_addresses_are_not_reachable_from_outside(machine, token, path):
    assert machine.request(path, token=token).status == 404
    assert machine.request(path, token=token, port="8750").status == 200


def test_a_restored_backup_knows_its_batches(machine, survey, token):
    early = range(200, 210)
    late = range(210, 220)
    assert {upload(machine, survey, number) for number in early} == {201}
    before = reports_of(machine, survey, token)
    machine.follow("Back up PostgreSQL")
    with closing(psycopg.connect(machine.database["url"], autocommit=True)) as connection:
        connection.execute("CREATE TABLE of_a_newer_version (number integer)")
    assert {upload(machine, survey, number) for number in late} == {201}
    machine.follow("Restore PostgreSQL")
    assert reports_of(machine, survey, token) == before
    assert {upload(machine, survey, number) for number in early} == {200}
    assert {upload(machine, survey, number) for number in late} == {201}
    with closing(psycopg.connect(machine.database["url"])) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables").fetchall()
    assert ("facts",) in tables
    assert ("of_a_newer_version",) not in tables
    (backup,) = machine.path("/var/backups/sfumato").iterdir()
    assert backup.parent.stat().st_mode & 0o77 == 0


def test_the_token_is_replaced_in_containers(machine, token):
    said = machine.follow_until("Replace the token in containers", LISTENING)
    new = TOKEN.search(said)[1]
    machine.follow("Keep the token", text=f"{new}\n")
    machine.wait_until_replaced(token, new)


@pytest.mark.slow
def test_an_upgrade_starts_the_aggregator_again(machine, survey, token):
    before = reports_of(machine, survey, token)
    process = (machine.root / "aggregator.pid").read_text()
    assert machine.follow("Upgrade in containers").split() == [str(len(MIGRATIONS))]
    assert (machine.root / "aggregator.pid").read_text() != process
    assert reports_of(machine, survey, token) == before
