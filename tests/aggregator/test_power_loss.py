"""Power loss at any moment: acknowledged reports count exactly once.

Unlike `kill -9`, a power loss also takes what the operating system had not yet written to the disk.
"""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support import pragma_serve
from support.crash_rig import COMMAND, crash, prepare_store
from support.postgres_server import PostgresServer, find_programs
from support.power_loss import Disk


def serve_with(pragma):
    return (sys.executable, str(Path(pragma_serve.__file__)), pragma)


# Write, synchronise and delete files in the current folder; then end without more.
PROGRAM = """
import ctypes
import os

def write(name, content, synchronise=lambda descriptor: None):
    descriptor = os.open(name, os.O_WRONLY | os.O_CREAT)
    os.write(descriptor, content)
    synchronise(descriptor)
    os.close(descriptor)

def synchronise_folder():
    descriptor = os.open(".", os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)

def start_writing(descriptor):
    ctypes.CDLL(None).sync_file_range(descriptor, 0, 0, 7)

os.unlink("deleted")
write("listed", b"content")
synchronise_folder()
write("synced", b"synced", os.fsync)
write("data synced", b"synced", os.fdatasync)
write("synced", b"second")
write("created", b"content")
write("started", b"content", start_writing)
write("old", b"new")
os.unlink("unlinked")
os.unlink("replaced")
write("replaced", b"content")
"""
BEFORE = {"deleted": b"old", "old": b"old", "unlinked": b"old", "replaced": b"old"}
DURABLE = {
    "listed": b"",
    "synced": b"synced",
    "data synced": b"synced",
    "old": b"old",
    "unlinked": b"old",
    "replaced": b"old",
}
CURRENT = {
    "listed": b"content",
    "synced": b"second",
    "data synced": b"synced",
    "created": b"content",
    "started": b"content",
    "old": b"new",
    "replaced": b"content",
}


@pytest.mark.parametrize(("share", "expected"), [(0.0, DURABLE), (1.0, CURRENT)])
def test_only_synchronised_content_is_sure_to_survive(tmp_path, share, expected):
    folder = tmp_path / "folder"
    folder.mkdir()
    for name, content in BEFORE.items():
        (folder / name).write_bytes(content)
    disk = Disk(folder, tmp_path / "record")
    command = [sys.executable, "-c", PROGRAM]
    subprocess.run(command, cwd=folder, env={**os.environ, **disk.environment}, check=True)
    assert read_all(folder) == CURRENT
    disk.lose_power(random.Random(1), share)
    assert read_all(folder) == expected


def read_all(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


class SqliteMachine:
    """A store in a file on a disk that loses power with the aggregator."""

    def __init__(self, folder):
        store = folder / "store"
        store.mkdir()
        self.url = f"sqlite:///{store / 'reports.db'}"
        prepare_store(self.url)
        self.disk = Disk(store, folder / "record")

    def crash(self, *, losses, seed, **options):
        """Return what happened to the reports, and to the blocks of the disk."""
        choose = random.Random(f"power/{seed}")
        record = crash(
            self.url,
            kills=losses,
            seed=seed,
            between=lambda kill: self.disk.lose_power(choose),
            environment=self.disk.environment,
            **options,
        )
        return {**record, **self.disk.events}


@pytest.fixture
def sqlite_machine(tmp_path):
    return SqliteMachine(tmp_path)


def test_power_losses_spare_acknowledged_reports_in_a_file(sqlite_machine):
    record = sqlite_machine.crash(losses=3, seed=1)
    assert record["power losses"] == 3
    assert record["acknowledged"] >= 20


@pytest.mark.slow
@pytest.mark.parametrize("command", [COMMAND, serve_with("wal_autocheckpoint = 20")])
def test_many_power_losses_spare_acknowledged_reports_in_a_file(sqlite_machine, capsys, command):
    record = sqlite_machine.crash(losses=25, seed=2, command=command)
    with capsys.disabled():
        print(f"\n{record}")
    check_losses(record)


def check_losses(record):
    """Check that the power losses took something, and not everything, that was not synchronised."""
    assert record["power losses"] == 25
    assert any(name.endswith(" lost") for name in record)
    assert any(name.endswith(" kept") for name in record)


@pytest.mark.parametrize(
    "pragma",
    ["synchronous = OFF", pytest.param("synchronous = NORMAL", marks=pytest.mark.slow)],
)
def test_unsynchronised_reports_are_lost_in_a_file(sqlite_machine, pragma):
    with pytest.raises(AssertionError, match="an acknowledged"):
        sqlite_machine.crash(losses=1, seed=1, command=serve_with(pragma), at_least=50)


class PostgresMachine:
    """A database server on a disk that loses power; the aggregator is killed at the same time."""

    def __init__(self, **settings):
        self._server = PostgresServer(
            initialization=["--wal-segsize=1"],
            settings={"max_wal_size": "4MB", "min_wal_size": "2MB", **settings},
        )
        try:
            self._prepare()
        except BaseException:
            self.remove()  # the caller gets no machine to remove
            raise

    def _prepare(self):
        self._server.start()
        self.url = self._server.database()
        prepare_store(self.url)
        self._server.stop()
        record = self._server.folder / "record"
        self.disk = Disk(self._server.data, record, self._server.user)
        self._server.environment = self.disk.environment

    def crash(self, *, losses, seed, share=None):
        choose = random.Random(f"power/{seed}")

        def lose_power(kill):
            self._server.stop(signal.SIGQUIT)
            self.disk.lose_power(choose, share)
            self._server.start()

        self._server.start()
        record = crash(self.url, kills=losses, seed=seed, between=lose_power)
        return {**record, **self.disk.events}

    def remove(self):
        self._server.remove()


@pytest.fixture
def start_postgres_machine():
    if find_programs() is None:
        pytest.skip("no PostgreSQL server is installed (on Debian: apt-get install postgresql)")
    machines = []

    def start(**settings):
        machine = PostgresMachine(**settings)
        machines.append(machine)
        return machine

    yield start
    for machine in machines:
        machine.remove()


@pytest.mark.slow
def test_many_power_losses_spare_acknowledged_reports_in_postgresql(start_postgres_machine, capsys):
    record = start_postgres_machine().crash(losses=25, seed=3)
    with capsys.disabled():
        print(f"\n{record}")
    check_losses(record)


@pytest.mark.slow
def test_unsynchronised_reports_are_lost_in_postgresql(start_postgres_machine):
    machine = start_postgres_machine(fsync="off")
    # Blocks in any order would damage the database; without any of them it is an old one.
    with pytest.raises(AssertionError, match="an acknowledged"):
        machine.crash(losses=1, seed=1, share=0.0)
