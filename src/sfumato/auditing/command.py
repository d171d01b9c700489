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
from typing import IO, Self

from sfumato.auditing.black_box import BatchBox
from sfumato.errors import NotEnoughReports, ReportRejected
from sfumato.foundation.arrays import Symbols

_MAX_LINE = 2**16
_BATCH = 2**12  # symbols per query; this many reports fit into the buffers of any client
_SECONDS_TO_END = 5.0  # that a process has to end after its input does


class LineProcess:
    """A process that reads and writes lines. Leaving the ``with`` block kills it.

    A thread reads its output, so that neither side waits for ever. ``patience`` is how many seconds
    to wait for the process. Lines are cut at ``max_line`` bytes. At most ``max_waiting`` lines are
    read before they are needed, so that the process cannot flood us.
    """

    def __init__(
        self, command: Sequence[str], patience: float, *, max_line: int, max_waiting: int
    ) -> None:
        self.patience = patience
        self.lines: queue.Queue[bytes] = queue.Queue(max_waiting)
        """The lines that the process wrote; an empty one marks the end."""
        self._max_line = max_line
        self._process = subprocess.Popen(  # noqa: S603 - the user asked to start this command
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=os.name == "posix",
        )
        output = self._process.stdout
        threading.Thread(target=self._listen, args=(output,), daemon=True).start()

    def _listen(self, output: IO[bytes]) -> None:
        with output, suppress(queue.Full):
            while line := output.readline(self._max_line):
                self.lines.put(line, timeout=self.patience)
            self.lines.put(b"", timeout=self.patience)

    def write(self, data: bytes) -> threading.Event:
        """Write from another thread: a process that does not read must not block us.

        Return an event that is set when the data are written, or the process has ended.
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
        """Return the exit code of the process for an error message, if it has ended."""
        try:
            return f" with exit code {self._process.wait(1)}"
        except subprocess.TimeoutExpired:
            return ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        """Kill the process, and all processes that it started."""
        with suppress(ProcessLookupError, PermissionError):  # it has ended already
            if os.name == "posix":
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()
        self._process.wait()
        self.close_input()  # discards what was not read yet


@contextmanager
def command_randomizer(command: Sequence[str], patience: float = 60.0) -> Iterator[BatchBox]:
    r"""Start a command, and yield a randomizer that queries it. The process is killed afterwards.

    ``command`` is the program and its arguments. ``patience`` is how many seconds to wait for the
    next report. A process that ends early or falls silent raises ``NotEnoughReports``; one that
    writes more lines than it reads raises ``ReportRejected``.

    >>> import sys
    >>> echo = "import sys\nfor line in sys.stdin: print(line.strip(), flush=True)"
    >>> with command_randomizer([sys.executable, "-c", echo]) as randomize:
    ...     randomize(3, 2)
    ['3', '3']
    """
    with LineProcess(command, patience, max_line=_MAX_LINE, max_waiting=2 * _BATCH) as process:
        yield BatchBox(lambda symbols: _query(process, symbols))
        _require_end(process)


def _query(process: LineProcess, symbols: Symbols) -> list[str]:
    """Return one report of each symbol, in order."""
    reports: list[str] = []
    for start in range(0, symbols.size, _BATCH):
        batch = symbols[start : start + _BATCH].tolist()
        if any(process.lines.queue):
            raise _extra_lines()  # from here on, reports would be counted for the wrong symbol
        process.write(b"".join(b"%d\n" % symbol for symbol in batch))
        reports += [_read_report(process) for _ in batch]
    return reports


def _require_end(process: LineProcess) -> None:
    """Reject lines after the last report.

    A greeting, or any other extra line, leaves one line over at the end: all reports since then
    were counted for the previous symbol, and are meaningless.
    """
    process.close_input()
    with suppress(queue.Empty):  # it did not end, but wrote nothing either
        if process.lines.get(timeout=min(process.patience, _SECONDS_TO_END)):
            raise _extra_lines()


def _read_report(process: LineProcess) -> str:
    try:
        line = process.lines.get(timeout=process.patience)
    except queue.Empty:
        raise NotEnoughReports(
            f"the command timed out after {process.patience:g} seconds. It must write a line for "
            "every symbol that it reads, and flush its output."
        ) from None
    if not line:
        raise NotEnoughReports(
            f"the command ended{process.exit_text()} before it had answered every symbol. It "
            "must write a line for every line that it reads, until its input ends."
        )
    if len(line) >= _MAX_LINE and not line.endswith(b"\n"):
        raise ReportRejected(
            f"the command wrote a line of {_MAX_LINE:,} bytes or more. Reports must be shorter."
        )
    return line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", "backslashreplace")


def _extra_lines() -> ReportRejected:
    return ReportRejected(
        "the command wrote more lines than it read. It must write exactly one line per symbol."
    )
