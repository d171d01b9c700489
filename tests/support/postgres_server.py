"""A real PostgreSQL server for the tests, with its data and its socket in a temporary folder."""

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
_CLOSE_OTHER_CONNECTIONS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
    "AND pid <> pg_backend_pid()"
)


def find_programs():
    """Return the folder of the newest server that Debian's packages installed, or None."""
    servers = Path("/usr/lib/postgresql").glob("*/bin/postgres")
    newest = max(servers, key=lambda path: int(path.parts[-3]), default=None)
    return None if newest is None else newest.parent


def administrator(store):
    """A connection of somebody else to the database of a store."""
    address = store._backend.engine.url.set(drivername="postgresql")
    return psycopg.connect(address.render_as_string(hide_password=False), autocommit=True)


class PostgresServer:
    """A server that tests start and stop; committed data survive.

    `initialization` are options of initdb, and `settings` are added to the server's.
    """

    def __init__(self, *, initialization=(), settings=None):
        self._programs = find_programs()
        self._settings = {**_SETTINGS, **(settings or {})}
        self.environment = {}
        self.user = _OWNER if os.geteuid() == 0 else None
        # Not in pytest's temporary folder: the user who runs the server cannot enter it.
        self.folder = Path(tempfile.mkdtemp(prefix="sfumato-postgres-"))
        if self.user:
            shutil.chown(self.folder, self.user)
        self._process = None
        self._numbers = count()
        self._free = []
        options = [
            "--auth=trust",
            f"--username={_OWNER}",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
            *initialization,
        ]
        self.data = self.folder / "data"
        self._run("initdb", *options, "--pgdata", str(self.data))

    def _run(self, program, *arguments):
        # The server's user may not be allowed to enter the current folder.
        command = [str(self._programs / program), *arguments]
        subprocess.run(
            command, user=self.user, cwd=self.folder, check=True, stdout=subprocess.DEVNULL
        )

    def start(self):
        """Start the server, and wait until it accepts connections."""
        settings = []
        for name, value in self._settings.items():
            settings += ["-c", f"{name}={value}"]
        command = [
            str(self._programs / "postgres"),
            "-D",
            str(self.data),
            "-k",
            str(self.folder),
            *settings,
        ]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                user=self.user,
                cwd=self.folder,
                env={**os.environ, **self.environment},
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + 30
        while not self._accepts_connections():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL did not start: {(self.folder / 'log').read_text()}")
            time.sleep(0.02)

    def _accepts_connections(self):
        try:
            psycopg.connect(self.url("postgres")).close()
        except psycopg.OperationalError:
            return False
        return True

    def stop(self, signal_number=signal.SIGINT):
        """Stop the server: cleanly with SIGINT, or as in a power cut with SIGQUIT."""
        if self._process is not None:
            self._process.send_signal(signal_number)
            self._process.wait(30)
            self._process = None

    @contextlib.contextmanager
    def paused(self):
        """Freeze all processes of the server, as if its machine were paused."""
        processes = [self._process.pid]
        os.kill(self._process.pid, signal.SIGSTOP)  # first, so that it starts no other process
        processes += _children_of(self._process.pid)
        for process in processes:
            os.kill(process, signal.SIGSTOP)
        try:
            yield
        finally:
            for process in processes:
                os.kill(process, signal.SIGCONT)

    def remove(self):
        """Stop the server at once and delete its data."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder)

    def url(self, database):
        return f"postgresql://{_OWNER}@/{database}?host={self.folder}"

    def database(self):
        """Return the URL of an empty database. Reuse released ones: creating one is slow."""
        url = self._free.pop() if self._free else self._create_database()
        with contextlib.closing(psycopg.connect(url, autocommit=True)) as connection:
            connection.execute("SET client_min_messages = error")
            connection.execute(_CLOSE_OTHER_CONNECTIONS)  # those of stores that a test left open
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")
        return url

    def release(self, url):
        """Let other tests use this database."""
        self._free.append(url)

    def _create_database(self):
        name = f"reports_{next(self._numbers)}"
        with contextlib.closing(
            psycopg.connect(self.url("postgres"), autocommit=True)
        ) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)


def _children_of(parent):
    """Return the numbers of a process's children."""
    children = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has just ended
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[1]) == parent:
                children.append(int(path.parent.name))
    return children
