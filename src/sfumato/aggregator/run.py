"""Run the aggregator under uvicorn."""

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
    """Reduce the delay before the writer thread runs.

    A commit executes a dozen statements and releases the GIL at each of them. By default, a busy
    event loop would hold the GIL for 5 ms after each release.
    """
    sys.setswitchinterval(0.0005)


def listen(host: str, port: int) -> socket:
    """Open a listening socket. Port 0 means any free port."""
    try:
        family, *_, address = getaddrinfo(host, port, type=SOCK_STREAM)[0]
        return create_server(address[:2], family=family, backlog=_BACKLOG)
    except gaierror:
        raise InvalidSetting(
            f"host must be an address of this machine, but {host} is not. Try 127.0.0.1."
        ) from None
    except OSError as error:
        reason = os.strerror(error.errno or 0).lower()
        raise InvalidSetting(
            f"cannot listen on {host}:{port}: {reason}. "
            "Choose another --port, or stop the program that is using this one."
        ) from None


class _Server(uvicorn.Server):
    """A server whose process exits normally after SIGINT or SIGTERM."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on SIGINT and SIGTERM, and do not raise them again afterwards."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        previous_handlers = {}
        for signal_number in (signal.SIGINT, signal.SIGTERM):
            previous_handlers[signal_number] = signal.signal(signal_number, self.handle_exit)
        try:
            yield
        finally:
            for signal_number, handler in previous_handlers.items():
                signal.signal(signal_number, handler)


def run_server(config: uvicorn.Config, sock: socket, on_start: Callable[[str], None]) -> None:
    """Run the server until a signal stops it. Call ``on_start`` with its URL once it is ready."""
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
