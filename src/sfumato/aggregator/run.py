"""Run the application under uvicorn."""

import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from socket import SOCK_STREAM, create_server, gaierror, getaddrinfo, socket

import uvicorn

from sfumato.errors import InvalidSetting

__all__ = ["listen", "run_server", "shorten_switch_interval"]

_BACKLOG = 2048


def shorten_switch_interval() -> None:
    """Let the writer thread run without delay.

    A commit has a dozen statements, and releases Python's lock at each. By default a busy event
    loop would then hold the lock for 5 ms each time.
    """
    sys.setswitchinterval(0.0005)


def listen(host: str, port: int) -> socket:
    """Open a socket that listens; port 0 means any free port."""
    try:
        family, *_, address = getaddrinfo(host, port, type=SOCK_STREAM)[0]
        return create_server(address[:2], family=family, backlog=_BACKLOG)
    except gaierror:
        raise InvalidSetting(
            f"host must be an address of this machine; {host} is not. Try 127.0.0.1."
        ) from None
    except OSError as problem:
        reason = os.strerror(problem.errno or 0).lower()
        raise InvalidSetting(
            f"cannot listen on {host}:{port}: {reason}. "
            "Choose another --port, or stop the program that uses this one."
        ) from None


class _Server(uvicorn.Server):
    """A server whose process exits normally after SIGINT or SIGTERM."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on SIGINT and SIGTERM, and do not raise them again afterwards."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        previous = {}
        for number in (signal.SIGINT, signal.SIGTERM):
            previous[number] = signal.signal(number, self.handle_exit)
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)


def run_server(config: uvicorn.Config, sock: socket, on_start: Callable[[str], None]) -> None:
    """Serve until a signal stops it. Call ``on_start`` with the URL once the server is ready."""
    server = _Server(config)

    async def run() -> None:
        task = asyncio.ensure_future(server.serve(sockets=[sock]))
        while not server.started and not task.done():
            await asyncio.sleep(0.01)
        if server.started:
            host, port = sock.getsockname()[:2]
            on_start(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")
        await task

    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(run())
