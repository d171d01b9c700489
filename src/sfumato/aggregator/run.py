"""Run the application under uvicorn."""

import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from socket import AF_INET, AF_INET6, SOCK_STREAM, create_server, gaierror, getaddrinfo, socket

import uvicorn

from sfumato.errors import InvalidSetting

__all__ = ["listen", "run_server", "shorten_switch_interval"]

_BACKLOG = 2048


def shorten_switch_interval() -> None:
    """Let the writer thread run soon.

    It releases Python's lock between statements. At the default of 5 ms a busy event loop would
    keep the lock that long each time, and a commit has a dozen statements.
    """
    sys.setswitchinterval(0.0005)


def listen(host: str, port: int) -> socket:
    """Open a listening socket; port 0 means any free port."""
    try:
        family, *_, address = getaddrinfo(host, port, type=SOCK_STREAM)[0]
        return create_server(
            address[:2], family=AF_INET6 if family == AF_INET6 else AF_INET, backlog=_BACKLOG
        )
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
    """Ends its process normally after SIGINT or SIGTERM."""

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
    """Serve until a signal stops it; pass the URL to ``on_start`` once it can be reached."""
    server = _Server(config)

    async def run() -> None:
        serving = asyncio.ensure_future(server.serve(sockets=[sock]))
        while not server.started and not serving.done():
            await asyncio.sleep(0.01)
        if server.started:
            host, port = sock.getsockname()[:2]
            on_start(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")
        await serving

    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(run())
