"""Audit a client in any language: a process that reads symbols and writes reports, line by line.

The process reads symbols (non-negative integers) from standard input, one per line. For each of
them, in the same order, it writes one line to standard output: a report of that symbol, drawn with
fresh randomness. Lines are compared as text, including spaces, so equal reports must be written
identically. The process may read ahead and write many lines at once. It must exit when its input
ends.
"""

import os
import queue
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Self

import numpy as np

from sfumato.auditing.black_box import BatchBox
from sfumato.errors import NotEnoughReports, ReportRejected
from sfumato.foundation.arrays import Symbols

_MAX_LINE_BYTES = 2**16
_BATCH_SIZE = 2**12  # symbols per query; few enough for any client to buffer their reports
_EXIT_TIMEOUT = 5.0  # the maximum number of seconds to wait for extra lines or the exit


class LineProcess:
    """A process that reads and writes lines. Leaving the ``with`` block kills it.

    A thread reads the output to avoid deadlocks. ``timeout`` is the number of seconds to wait for
    the process. Lines of more than ``max_line_bytes`` bytes are split. At most ``max_queued`` lines
    are read ahead, so the process cannot exhaust our memory.
    """

    def __init__(
        self, command: Sequence[str], timeout: float, *, max_line_bytes: int, max_queued: int
    ) -> None:
        self.timeout = timeout
        self.lines: queue.Queue[bytes] = queue.Queue(max_queued)
        """The lines of output that are still to be processed; ``b""`` marks the end."""
        self._max_line_bytes = max_line_bytes
        self._process = subprocess.Popen(  # noqa: S603 - the user asked to start this command
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=os.name == "posix",
        )
        output = self._process.stdout
        threading.Thread(target=self._read_output, args=(output,), daemon=True).start()

    def _read_output(self, output: IO[bytes]) -> None:
        with output, suppress(queue.Full):
            while line := output.readline(self._max_line_bytes):
                self.lines.put(line, timeout=self.timeout)
            self.lines.put(b"", timeout=self.timeout)

    def write(self, data: bytes) -> threading.Event:
        """Write ``data`` in another thread, so that a process that does not read cannot block us.

        Returns an event that is set once the data has been written or writing has failed.
        """
        done = threading.Event()

        def write() -> None:
            with suppress(OSError, ValueError):
                self._process.stdin.write(data)  # type: ignore[union-attr]
                self._process.stdin.flush()  # type: ignore[union-attr]
            done.set()

        threading.Thread(target=write, daemon=True).start()
        return done

    def close_input(self) -> None:
        """Tell the process that there are no more lines."""
        with suppress(OSError):
            self._process.stdin.close()  # type: ignore[union-attr]

    def exit_text(self) -> str:
        """Return the exit code as text for an error message.

        Returns "" if the process does not exit within a second.
        """
        try:
            return f" with exit code {self._process.wait(1)}"
        except subprocess.TimeoutExpired:
            return ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Kill the process and, on POSIX systems, its whole process group."""
        with suppress(ProcessLookupError, PermissionError):  # the process has already exited
            if os.name == "posix":
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()
        self._process.wait()
        self.close_input()  # input that was not written is discarded


@contextmanager
def command_randomizer(command: Sequence[str], timeout: float = 60.0) -> Iterator[BatchBox]:
    r"""Start a command and yield a randomizer that queries it. The process is killed afterwards.

    ``command`` is the program and its arguments. ``timeout`` is the number of seconds to wait for
    each report. Raises ``NotEnoughReports`` if the process exits early or stops answering, and
    ``ReportRejected`` if it writes a line that is too long, or more lines than it reads.

    >>> import sys
    >>> echo = "import sys\nfor line in sys.stdin: print(line.strip(), flush=True)"
    >>> with command_randomizer([sys.executable, "-c", echo]) as randomize:
    ...     randomize(3, 2)
    ['3', '3']
    """
    with _start(command, timeout) as process:
        yield BatchBox(
            lambda symbols: _query(process, symbols),
            lambda symbol: _first_report(command, timeout, symbol),
        )
        _reject_extra_lines(process)


def _start(command: Sequence[str], timeout: float) -> LineProcess:
    return LineProcess(command, timeout, max_line_bytes=_MAX_LINE_BYTES, max_queued=2 * _BATCH_SIZE)


def _first_report(command: Sequence[str], timeout: float, symbol: int) -> str:
    """Start another process, and return its report of one symbol."""
    with _start(command, timeout) as process:
        [report] = _query(process, np.array([symbol]))
        return report


def _query(process: LineProcess, symbols: Symbols) -> list[str]:
    """Return one report of each symbol, in order."""
    reports: list[str] = []
    for start in range(0, symbols.size, _BATCH_SIZE):
        batch = symbols[start : start + _BATCH_SIZE].tolist()
        if any(process.lines.queue):
            # From here on, reports would be counted for the wrong symbols.
            raise _extra_lines_error()
        process.write(b"".join(b"%d\n" % symbol for symbol in batch))
        reports += [_read_report(process) for _ in batch]
    return reports


def _reject_extra_lines(process: LineProcess) -> None:
    """Raise ``ReportRejected`` if there are lines after the last report.

    If the process writes a greeting or any other extra line, all later reports are counted for the
    wrong symbols, and one line is left over at the end.
    """
    process.close_input()
    with suppress(queue.Empty):  # the process did not exit, but it wrote nothing more
        if process.lines.get(timeout=min(process.timeout, _EXIT_TIMEOUT)):
            raise _extra_lines_error()


def _read_report(process: LineProcess) -> str:
    try:
        line = process.lines.get(timeout=process.timeout)
    except queue.Empty:
        raise NotEnoughReports(
            f"the command timed out after {process.timeout:g} seconds. It must write a line for "
            "every symbol it reads, and flush its output."
        ) from None
    if not line:
        raise NotEnoughReports(
            f"the command exited{process.exit_text()} before it had answered every symbol. It "
            "must write a line for every line it reads, until its input ends."
        )
    if len(line) >= _MAX_LINE_BYTES and not line.endswith(b"\n"):
        raise ReportRejected(
            f"the command wrote a line of {_MAX_LINE_BYTES:,} bytes or more. Reports must be "
            "shorter."
        )
    return line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", "backslashreplace")


def _extra_lines_error() -> ReportRejected:
    return ReportRejected(
        "the command wrote more lines than it read. It must write exactly one line per symbol."
    )
