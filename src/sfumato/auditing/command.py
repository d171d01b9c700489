"""A client in any language as a black box: a process that answers each symbol with a report, line by line.

The protocol is one sentence. For every line of standard input that holds a symbol (a whole number from 0), the process
writes one line to standard output with a report of that symbol, made with fresh randomness, in the same order. What
stands in the line is compared as it is, spaces and all, as text; so one report must always be written in one way. The
process may read ahead, and write many lines at once; it ends when its input does.
"""

import os
import queue
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO

from sfumato.auditing.black_box import OneByOne
from sfumato.errors import NotEnoughReports, ReportRejected
from sfumato.foundation.arrays import Symbols

__all__ = ["command_randomizer", "end_process"]

_LONGEST_LINE = 2**16
_BATCH = (
    2**12
)  # symbols that are asked for at a time; clients that write when they like have room for so many
_FAREWELL = (
    5.0  # seconds that a process has to end in, when it is told that there are no more symbols
)
_END = b""


@contextmanager
def command_randomizer(command: Sequence[str], patience: float = 60.0) -> Iterator[OneByOne]:
    r"""A function of a symbol and a count that asks the process of this command, which is ended afterwards.

    An audit asks it for symbols in random order. ``patience`` is how many seconds to wait for the next report. A
    process that ends early, or falls silent, is ``NotEnoughReports``; one that says more than it was asked for,
    ``ReportRejected``.

    >>> import sys
    >>> echo = "import sys\nfor line in sys.stdin: print(line.strip(), flush=True)"
    >>> with command_randomizer([sys.executable, "-c", echo]) as randomize:
    ...     randomize(3, 2)
    ['3', '3']
    """
    process = subprocess.Popen(  # noqa: S603 - to start this command is what was asked for
        list(command),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=os.name == "posix",
    )
    try:
        conversation = _Conversation(process, patience)
        yield OneByOne(conversation.reports)
        conversation.close()
    finally:
        end_process(process)


class _Conversation:
    """A process that is asked for reports, and read by a thread of its own so that neither side waits for ever."""

    def __init__(self, process: "subprocess.Popen[bytes]", patience: float) -> None:
        self._process, self._patience = process, patience
        self._lines: queue.Queue[bytes] = queue.Queue(2 * _BATCH)
        threading.Thread(target=self._listen, args=(process.stdout,), daemon=True).start()

    def _listen(self, answers: IO[bytes]) -> None:
        with answers, suppress(queue.Full):
            while line := answers.readline(_LONGEST_LINE):
                self._lines.put(line, timeout=self._patience)
            self._lines.put(_END, timeout=self._patience)

    def reports(self, symbols: Symbols) -> list[str]:
        """One report of each symbol, in their order."""
        found: list[str] = []
        for start in range(0, symbols.size, _BATCH):
            asked = symbols[start : start + _BATCH].tolist()
            self._demand_silence()
            self._ask(b"".join(b"%d\n" % symbol for symbol in asked))
            found += [self._answer() for _ in asked]
        return found

    def close(self) -> None:
        """Say that no more symbols come, and refuse what is said after the last answer.

        A line too many at any time, such as a greeting, leaves one over here: all answers since were for the symbol
        before, and mean nothing.
        """
        with suppress(OSError):
            self._process.stdin.close()  # type: ignore[union-attr]
        with suppress(queue.Empty):  # one that does not end by itself has at least said nothing
            if self._lines.get(timeout=min(self._patience, _FAREWELL)) != _END:
                raise _more_lines()

    def _demand_silence(self) -> None:
        """Refuse lines that nobody asked for: reports would be counted for the wrong symbol from there on."""
        if any(self._lines.queue):
            raise _more_lines()

    def _ask(self, lines: bytes) -> None:
        """Write from another thread: a process that does not read must not hold us up. Reading will say if it ended."""

        def written() -> None:
            with suppress(OSError, ValueError):
                self._process.stdin.write(lines)  # type: ignore[union-attr]
                self._process.stdin.flush()  # type: ignore[union-attr]

        threading.Thread(target=written, daemon=True).start()

    def _answer(self) -> str:
        try:
            line = self._lines.get(timeout=self._patience)
        except queue.Empty:
            raise NotEnoughReports(
                f"the command gave no report within {self._patience:g} seconds. It must write a line for every symbol "
                "that it reads, and must not hold lines back."
            ) from None
        if line == _END:
            raise NotEnoughReports(
                f"the command ended{self._how()} before it had answered every symbol. It must write a line for every "
                "line that it reads, until there are no more."
            )
        if len(line) >= _LONGEST_LINE and not line.endswith(b"\n"):
            raise ReportRejected(
                f"the command wrote a line of {_LONGEST_LINE:,} bytes or more. Let it report less."
            )
        return line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", "backslashreplace")

    def _how(self) -> str:
        try:
            return f" with exit code {self._process.wait(1)}"
        except subprocess.TimeoutExpired:
            return ""


def _more_lines() -> ReportRejected:
    return ReportRejected(
        "the command wrote more lines than it had read. It must write one line for every symbol, and no others."
    )


def end_process(process: "subprocess.Popen[bytes]") -> None:
    """End the process, and what it started itself."""
    with suppress(ProcessLookupError, PermissionError):  # it has ended by itself
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()
    with suppress(OSError):  # what was not read yet goes nowhere
        process.stdin.close()  # type: ignore[union-attr]
