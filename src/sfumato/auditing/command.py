"""A client in any language as a black box: a process that answers symbols with reports, by lines.

The protocol is one sentence: for every line of standard input with a symbol (a non-negative
integer), the process writes one line to standard output with a report of that symbol, drawn with
fresh randomness, in the same order. Lines are compared as text, spaces included, so a report must
always be written in the same way. The process may read ahead, and write many lines at once. It ends
when its input does.
"""

import os
import queue
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO

from sfumato.auditing.black_box import BatchBox
from sfumato.errors import NotEnoughReports, ReportRejected
from sfumato.foundation.arrays import Symbols

__all__ = ["command_randomizer", "end_process"]

_MAX_LINE = 2**16
_BATCH = 2**12  # symbols per query; this many reports fit into the buffers of any client
_FAREWELL = 5.0  # seconds that a process has to end after its input does
_END = b""


@contextmanager
def command_randomizer(command: Sequence[str], patience: float = 60.0) -> Iterator[BatchBox]:
    r"""Start a command, and yield a randomizer that queries it. The process is ended afterwards.

    ``command`` is the program and its arguments. ``patience`` is how many seconds to wait for the
    next report. A process that ends early or falls silent raises ``NotEnoughReports``; one that
    writes more lines than it reads raises ``ReportRejected``.

    >>> import sys
    >>> echo = "import sys\nfor line in sys.stdin: print(line.strip(), flush=True)"
    >>> with command_randomizer([sys.executable, "-c", echo]) as randomize:
    ...     randomize(3, 2)
    ['3', '3']
    """
    process = subprocess.Popen(  # noqa: S603 - the user asked to start this command
        list(command),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=os.name == "posix",
    )
    try:
        client = _ClientProcess(process, patience)
        yield BatchBox(client.reports)
        client.close()
    finally:
        end_process(process)


class _ClientProcess:
    """A process that is queried for reports.

    A thread reads its output, so that neither side waits for ever.
    """

    def __init__(self, process: "subprocess.Popen[bytes]", patience: float) -> None:
        self._process = process
        self._patience = patience
        self._lines: queue.Queue[bytes] = queue.Queue(2 * _BATCH)
        threading.Thread(target=self._listen, args=(process.stdout,), daemon=True).start()

    def _listen(self, answers: IO[bytes]) -> None:
        with answers, suppress(queue.Full):
            while line := answers.readline(_MAX_LINE):
                self._lines.put(line, timeout=self._patience)
            self._lines.put(_END, timeout=self._patience)

    def reports(self, symbols: Symbols) -> list[str]:
        """Return one report of each symbol, in order."""
        reports: list[str] = []
        for start in range(0, symbols.size, _BATCH):
            batch = symbols[start : start + _BATCH].tolist()
            self._require_no_extra_lines()
            self._write(b"".join(b"%d\n" % symbol for symbol in batch))
            reports += [self._read_report() for _ in batch]
        return reports

    def close(self) -> None:
        """Close the input, and reject lines after the last report.

        A greeting, or any other extra line, leaves one line over at the end: all reports since then
        were counted for the previous symbol, and are meaningless.
        """
        with suppress(OSError):
            self._process.stdin.close()  # type: ignore[union-attr]
        with suppress(queue.Empty):  # it did not end, but wrote nothing either
            if self._lines.get(timeout=min(self._patience, _FAREWELL)) != _END:
                raise _extra_lines()

    def _require_no_extra_lines(self) -> None:
        """Reject unread lines: from there on, reports would be counted for the wrong symbol."""
        if any(self._lines.queue):
            raise _extra_lines()

    def _write(self, lines: bytes) -> None:
        """Write from another thread: a process that does not read must not block us.

        If the process has ended, reading will notice.
        """

        def write() -> None:
            with suppress(OSError, ValueError):
                self._process.stdin.write(lines)  # type: ignore[union-attr]
                self._process.stdin.flush()  # type: ignore[union-attr]

        threading.Thread(target=write, daemon=True).start()

    def _read_report(self) -> str:
        try:
            line = self._lines.get(timeout=self._patience)
        except queue.Empty:
            raise NotEnoughReports(
                f"the command timed out after {self._patience:g} seconds. It must write a line for "
                "every symbol that it reads, and flush its output."
            ) from None
        if line == _END:
            raise NotEnoughReports(
                f"the command ended{self._exit_code()} before it had answered every symbol. It "
                "must write a line for every line that it reads, until its input ends."
            )
        if len(line) >= _MAX_LINE and not line.endswith(b"\n"):
            raise ReportRejected(
                f"the command wrote a line of {_MAX_LINE:,} bytes or more. Reports must be shorter."
            )
        return line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", "backslashreplace")

    def _exit_code(self) -> str:
        try:
            return f" with exit code {self._process.wait(1)}"
        except subprocess.TimeoutExpired:
            return ""


def _extra_lines() -> ReportRejected:
    return ReportRejected(
        "the command wrote more lines than it read. It must write exactly one line per symbol."
    )


def end_process(process: "subprocess.Popen[bytes]") -> None:
    """Kill the process, and all processes that it started."""
    with suppress(ProcessLookupError, PermissionError):  # it has ended already
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()
    with suppress(OSError):  # discards what was not read yet
        process.stdin.close()  # type: ignore[union-attr]
