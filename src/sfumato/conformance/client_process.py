"""Ask a client: start it, feed it requests, and read its answers, with an end to everybody's patience."""

import json
import os
import queue
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any

from sfumato.auditing.command import end_process

__all__ = ["ClientGone", "Interview", "interview"]

_LONGEST_LINE = 2**22
_WAITING = 16  # lines that are read ahead of being asked for: a client that babbles is not listened to for ever


class ClientGone(Exception):
    """The client gave no answer, and will give no more."""


class Interview:
    """A client that runs."""

    def __init__(self, process: "subprocess.Popen[bytes]", patience: float) -> None:
        self._process, self._patience = process, patience
        self._lines: queue.Queue[bytes] = queue.Queue(_WAITING)
        threading.Thread(target=self._listen, args=(process.stdout,), daemon=True).start()

    def _listen(self, answers: IO[bytes]) -> None:
        """Read lines as long as somebody wants them; an empty one is the end."""
        with answers, suppress(queue.Full):
            while line := answers.readline(_LONGEST_LINE):
                self._lines.put(line, timeout=self._patience)
            self._lines.put(b"", timeout=self._patience)

    def ask(self, request: Mapping[str, Any]) -> object:
        """The answer to a request, as it is; text that is no JSON comes back as text."""
        self._say(json.dumps(request, separators=(",", ":")).encode("ascii") + b"\n")
        try:
            line = self._lines.get(timeout=self._patience)
        except queue.Empty:
            raise ClientGone(f"no answer within {self._patience:g} seconds") from None
        if not line:
            raise ClientGone(f"the client ended{self._how()}")
        try:
            return json.loads(line)
        except ValueError:
            return line.decode("utf-8", "replace")

    def _say(self, line: bytes) -> None:
        """Write from another thread: a client that does not read must not hold us up."""
        done = threading.Event()

        def written() -> None:
            # Where it has ended, reading from it will say so.
            with suppress(OSError, ValueError):
                self._process.stdin.write(line)  # type: ignore[union-attr]
                self._process.stdin.flush()  # type: ignore[union-attr]
            done.set()

        threading.Thread(target=written, daemon=True).start()
        if not done.wait(self._patience):
            raise ClientGone(f"the request was not read within {self._patience:g} seconds")

    def _how(self) -> str:
        try:
            return f" with exit code {self._process.wait(1)}"
        except subprocess.TimeoutExpired:
            return ""


@contextmanager
def interview(command: Sequence[str], patience: float) -> Iterator[Interview]:
    """A client that is started, and ended whatever happens, with all that it started itself."""
    process = subprocess.Popen(  # noqa: S603 - to start this command is what was asked for
        list(command),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=os.name == "posix",
    )
    try:
        yield Interview(process, patience)
    finally:
        end_process(process)
