"""Several processes that serve one store: the parent starts, watches and stops its workers.

Each worker has a listening socket of its own at the same address, among which the kernel divides
the connections. The parent keeps the sockets open: if a worker dies, its new connections wait until
another one has taken its place. Requests per client are counted in memory that the workers share,
and each worker has its part of the other limits. So all limits hold over all workers together
(docs/decisions/050.md).
"""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace

from sfumato.aggregator.http import (
    METRICS_FOLDER,
    ConnectionLimits,
    Settings,
    SharedBuckets,
    forget_worker,
)
from sfumato.aggregator.run import stop_signals, url_of
from sfumato.errors import InvalidSetting

__all__ = ["READY", "WorkerSetup", "run_workers"]

_RESTART_DELAY = 1.0
"""Seconds until another worker takes the place of one that died."""

_STOP_TIMEOUT = 18.5
"""Seconds until a worker that does not stop is killed. It has 10 for requests, and 8 to commit."""


READY = b"ready\n"
"""What a worker prints when it accepts connections."""


@dataclass(frozen=True)
class WorkerSetup:
    """What a worker needs to know.

    ``descriptors`` are those of the listening socket and of the shared memory for the requests of
    clients and of monitors.
    """

    store: str
    workers: int
    requests_per_minute: int
    reports_per_upload: int
    proxy: str | None
    descriptors: Sequence[int] = ()

    def to_json(self) -> bytes:
        """Return the setup as a line of JSON."""
        return json.dumps(asdict(self)).encode("ascii") + b"\n"

    @classmethod
    def from_json(cls, line: bytes) -> "WorkerSetup":
        """Return the setup in a line of JSON."""
        fields = json.loads(line)
        return cls(**fields)

    def settings(self) -> Settings:
        """Return the settings of each worker."""
        shared_memory = iter(self.descriptors[1:])
        return Settings(
            requests_per_minute=self.requests_per_minute,
            reports_per_upload=self.reports_per_upload,
            connections=ConnectionLimits.for_this_process(),
            workers=self.workers,
            new_buckets=lambda: SharedBuckets(next(shared_memory)),
        )


def run_workers(
    sockets: Sequence[socket.socket], setup: WorkerSetup, on_start: Callable[[str], None]
) -> None:
    """Run a worker for each socket until a signal stops them.

    Call ``on_start`` with the URL once all are ready. ``setup`` needs no descriptors.
    """
    with ExitStack() as stack:
        folder = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="sfumato-metrics-", dir=_metrics_parent())
        )
        shared = [SharedBuckets.create() for _ in range(2)]
        for descriptor in shared:
            stack.callback(os.close, descriptor)
        workers = []
        for listening_socket in sockets:
            descriptors = (listening_socket.fileno(), *shared)
            workers.append(_Worker(replace(setup, descriptors=descriptors), folder))
        asyncio.run(_run(workers, sockets, on_start))


def _metrics_parent() -> str | None:
    """Return the folder for metrics: in memory, because a full disk would end the workers."""
    shared_memory = "/dev/shm"  # noqa: S108 - the new folder in it is for its owner only
    return shared_memory if os.access(shared_memory, os.W_OK) else None


async def _run(
    workers: Sequence["_Worker"], sockets: Sequence[socket.socket], on_start: Callable[[str], None]
) -> None:
    must_stop = asyncio.Event()
    for number in stop_signals():
        asyncio.get_running_loop().add_signal_handler(number, must_stop.set)
    running = [asyncio.create_task(worker.keep_running()) for worker in workers]
    starting = asyncio.create_task(_wait_until_ready(workers))
    stopping = asyncio.create_task(must_stop.wait())
    await asyncio.wait({starting, stopping, *running}, return_when=asyncio.FIRST_COMPLETED)
    if starting.done():
        on_start(url_of(sockets[0]))
        await asyncio.wait({stopping, *running}, return_when=asyncio.FIRST_COMPLETED)
    for listening_socket in sockets:
        listening_socket.close()  # connections would wait in vain
    await asyncio.gather(*(worker.stop() for worker in workers))
    for task in (starting, stopping, *running):
        task.cancel()
    results = await asyncio.gather(*running, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception):
            raise result


async def _wait_until_ready(workers: Sequence["_Worker"]) -> None:
    for worker in workers:
        await worker.is_ready.wait()


class _Worker:
    """The place of a worker, which successive processes may take."""

    def __init__(self, setup: WorkerSetup, metrics_folder: str) -> None:
        self._setup = setup
        self._metrics_folder = metrics_folder
        self._process: Process | None = None
        self._must_stop = asyncio.Event()
        self.is_ready = asyncio.Event()  # set once the first process is ready

    async def keep_running(self) -> None:
        """Start a process, and another one whenever it dies.

        Raise ``InvalidSetting`` if the first one ends before it is ready: another would, too. Start
        none while others stop: the sockets are closed, and their numbers may be those of other
        files.
        """
        while not self._must_stop.is_set():
            try:
                process = await self._start()
            except OSError as error:
                if not self.is_ready.is_set():
                    raise
                # The system may have no memory or no process to spare at this moment.
                reason = os.strerror(error.errno or 0).lower()
                sys.stderr.write(f"sfumato: a worker cannot be started: {reason}. Trying again.\n")
                await asyncio.sleep(_RESTART_DELAY)
                continue
            status = await self._watch(process)
            if self._must_stop.is_set():
                return
            if not self.is_ready.is_set():
                raise InvalidSetting("a worker could not start. Its message is above this one.")
            sys.stderr.write(
                f"sfumato: a worker ended unexpectedly (status {status}). Starting another.\n"
            )
            await asyncio.sleep(_RESTART_DELAY)

    async def _watch(self, process: Process) -> int:
        """Note when a process is ready, and wait for its end. Return its status."""
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        if await process.stdout.readline() == READY:
            self.is_ready.set()
        status = await process.wait()
        forget_worker(process.pid, self._metrics_folder)
        return status

    async def _start(self) -> Process:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # import nothing from the current folder, where anybody's files may lie
            "-m",
            "sfumato.aggregator.worker",
            stdin=PIPE,
            stdout=PIPE,
            pass_fds=self._setup.descriptors,
            env={**os.environ, METRICS_FOLDER: self._metrics_folder},
            start_new_session=True,  # Ctrl-C reaches the parent only, which stops its workers
        )
        assert self._process.stdin is not None  # noqa: S101 - it is a pipe
        self._process.stdin.write(self._setup.to_json())
        return self._process

    async def stop(self) -> None:
        """Let the process finish its requests, and wait for its end."""
        self._must_stop.set()
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)
            try:
                await asyncio.wait_for(self._process.wait(), _STOP_TIMEOUT)
            except TimeoutError:
                self._process.kill()
                await self._process.wait()
