"""Running the application under uvicorn."""

import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from socket import AF_INET, AF_INET6, SOCK_STREAM, create_server, gaierror, getaddrinfo, socket

import uvicorn

from sfumato.errors import InvalidTable

__all__ = ["listening", "make_threads_share", "started"]

_BACKLOG = 2048


def make_threads_share() -> None:
    """Let the writer have its turn soon.

    Between two statements the writer gives up Python's lock; at the default of 5 ms a busy event loop would keep it
    that long each time, and a commit has a dozen statements.
    """
    sys.setswitchinterval(0.0005)


def listening(host: str, port: int) -> socket:
    """A socket that takes connections; port 0 asks for any that is free. Refused if the address cannot be had."""
    try:
        family, *_, address = getaddrinfo(host, port, type=SOCK_STREAM)[0]
        made = create_server(
            address[:2], family=AF_INET6 if family == AF_INET6 else AF_INET, backlog=_BACKLOG
        )
    except gaierror:
        raise InvalidTable(
            f"host must be an address of this machine; {host} is none. Try 127.0.0.1."
        ) from None
    except OSError as problem:
        why = os.strerror(problem.errno or 0)
        raise InvalidTable(
            f"nobody can listen on port {port} of {host}: {why}. Choose another --port, or end what holds this one."
        ) from None
    return made


class _Server(uvicorn.Server):
    """A server that was told to stop has done what it was told: its process ends well."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take SIGINT and SIGTERM as the wish to stop, and do not raise them again afterwards."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {
            number: signal.signal(number, self.handle_exit)
            for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def started(config: uvicorn.Config, on: socket, say: Callable[[str], None]) -> None:
    """Serve until told to stop; ``say`` hears the address once it can be reached."""
    server = _Server(config)

    async def run() -> None:
        serving = asyncio.ensure_future(server.serve(sockets=[on]))
        while not server.started and not serving.done():
            await asyncio.sleep(0.01)
        if server.started:
            host, port = on.getsockname()[:2]
            say(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")
        await serving

    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(run())
