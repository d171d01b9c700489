"""A client that runs as a process: send it requests and read its answers, with a time limit."""

import json
import os
import queue
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, Any, Self

from sfumato.auditing import end_process

__all__ = ["ClientExited", "ClientProcess"]

_MAX_LINE = 2**22
_MAX_WAITING = 16  # lines read before they are wanted, so that a client cannot flood us


class ClientExited(Exception):
    """The client gave no answer and will give no more."""


class ClientProcess:
    """Start a client, and end it on leaving together with every process that it started.

    ``patience`` is how many seconds to wait for an answer.
    """

    def __init__(self, command: Sequence[str], patience: float) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - starting this command is the request
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=os.name == "posix",
        )
        self._patience = patience
        self._lines: queue.Queue[bytes] = queue.Queue(_MAX_WAITING)
        arguments = (self._process.stdout,)
        threading.Thread(target=self._listen, args=arguments, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        end_process(self._process)

    def ask(self, request: Mapping[str, Any]) -> object:
        """Return the answer to a request. Text that is not JSON comes back as text."""
        self._send(json.dumps(request, separators=(",", ":")).encode("ascii") + b"\n")
        try:
            line = self._lines.get(timeout=self._patience)
        except queue.Empty:
            raise ClientExited(f"timed out after {self._patience:g} seconds") from None
        if not line:
            raise ClientExited(f"the client ended{self._exit_code()}")
        try:
            return json.loads(line)
        except ValueError:
            return line.decode("utf-8", "replace")

    def _listen(self, answers: IO[bytes]) -> None:
        """Read lines until the client ends or floods us. An empty line marks the end."""
        with answers, suppress(queue.Full):
            while line := answers.readline(_MAX_LINE):
                self._lines.put(line, timeout=self._patience)
            self._lines.put(b"", timeout=self._patience)

    def _send(self, line: bytes) -> None:
        """Write from another thread: a client that does not read must not block us."""
        done = threading.Event()

        def write() -> None:
            # If the client has ended, reading its answer reports that.
            with suppress(OSError, ValueError):
                self._process.stdin.write(line)  # type: ignore[union-attr]
                self._process.stdin.flush()  # type: ignore[union-attr]
            done.set()

        threading.Thread(target=write, daemon=True).start()
        if not done.wait(self._patience):
            raise ClientExited(f"the request was not read within {self._patience:g} seconds")

    def _exit_code(self) -> str:
        try:
            return f" with exit code {self._process.wait(1)}"
        except subprocess.TimeoutExpired:
            return ""
