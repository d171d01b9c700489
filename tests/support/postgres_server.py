"""A real PostgreSQL server for the tests, in a folder of its own, reached through a socket in that folder."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from itertools import count
from pathlib import Path

import psycopg

_OWNER = "postgres"  # the server refuses to run as root
_SETTINGS = {
    "listen_addresses": "",
    "shared_buffers": "16MB",
    "max_connections": "40",
    "max_wal_size": "128MB",
    "fsync": "on",
    "synchronous_commit": "on",
    "autovacuum": "off",
    "logging_collector": "off",
    "log_min_messages": "fatal",
}
_OTHERS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
    "AND pid <> pg_backend_pid()"
)


def programs():
    """The folder of the newest server that Debian's packages installed, or ``None``."""
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3])
    )
    return found[-1].parent if found else None


class PostgresServer:
    """Started and stopped at will; what was committed stays."""

    def __init__(self):
        self._programs = programs()
        self._user = _OWNER if os.geteuid() == 0 else None
        # Not under pytest's own folder: that one is closed to the user who runs the server.
        self.folder = Path(tempfile.mkdtemp(prefix="sfumato-postgres-"))
        if self._user:
            shutil.chown(self.folder, self._user)
        self._process, self._numbers, self._free = None, count(), []
        options = [
            "--auth=trust",
            f"--username={_OWNER}",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
        ]
        self._run("initdb", *options, "--pgdata", str(self.folder / "data"))

    def _run(self, program, *arguments):
        # In a folder that its user may enter: the one we are in may be closed to it.
        command = [str(self._programs / program), *arguments]
        subprocess.run(
            command, user=self._user, cwd=self.folder, check=True, stdout=subprocess.DEVNULL
        )

    def start(self):
        """Start, and wait until it answers."""
        settings = [part for name, value in _SETTINGS.items() for part in ("-c", f"{name}={value}")]
        command = [
            str(self._programs / "postgres"),
            "-D",
            str(self.folder / "data"),
            "-k",
            str(self.folder),
            *settings,
        ]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, user=self._user, cwd=self.folder, stdout=log, stderr=log
            )
        deadline = time.monotonic() + 30
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL did not start: {(self.folder / 'log').read_text()}")
            time.sleep(0.02)

    def _answers(self):
        try:
            psycopg.connect(self.url("postgres")).close()
        except psycopg.OperationalError:
            return False
        return True

    def stop(self, how=signal.SIGINT):
        """End it: SIGINT for order (clients are thrown out), SIGQUIT for what a power cut leaves behind."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(30)
            self._process = None

    def remove(self):
        """End it at once, and throw everything away."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder)

    def url(self, database):
        return f"postgresql://{_OWNER}@/{database}?host={self.folder}"

    def database(self):
        """The address of an empty database; a new one only if none was given back, for files cost more than rows."""
        url = self._free.pop() if self._free else self._made()
        with contextlib.closing(psycopg.connect(url, autocommit=True)) as connection:
            connection.execute("SET client_min_messages = error")
            connection.execute(_OTHERS)  # stores that a test left open
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")
        return url

    def give_back(self, url):
        """The test that had this database needs it no more."""
        self._free.append(url)

    def _made(self):
        name = f"reports_{next(self._numbers)}"
        with contextlib.closing(
            psycopg.connect(self.url("postgres"), autocommit=True)
        ) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)
