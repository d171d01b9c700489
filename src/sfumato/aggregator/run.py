"""Run the aggregator under uvicorn."""

import asyncio
import contextlib
import ctypes
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from socket import SOCK_STREAM, create_server, gaierror, getaddrinfo, socket
from time import monotonic

import uvicorn
from fastapi import FastAPI

from sfumato.aggregator.http import Aggregator, SingleUploads
from sfumato.errors import InvalidSetting

__all__ = [
    "OncePerSecond",
    "limit_arenas",
    "listen",
    "listen_together",
    "run_server",
    "shorten_switch_interval",
    "stop_signals",
    "url_of",
]

_BACKLOG = 2048
_M_ARENA_MAX = -8  # the number of this setting in malloc.h
_MAX_ARENAS = 2


def shorten_switch_interval() -> None:
    """Reduce the delay before the writer thread runs.

    A commit executes a dozen statements and releases the GIL at each of them. By default, a busy
    event loop would hold the GIL for 5 ms after each release.
    """
    sys.setswitchinterval(0.0005)


def limit_arenas() -> None:
    """Let threads share their heaps, so that memory does not grow for hours.

    The GNU C library gives almost every thread a heap of its own. What one thread frees, others
    cannot use, so heaps grow apart. Call this before threads start. Other C libraries have no such
    setting and do not need it.
    """
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _MAX_ARENAS)


def listen(host: str, port: int) -> socket:
    """Open a listening socket. Port 0 means any free port."""
    with _explain_errors(host, port):
        family, *_, address = getaddrinfo(host, port, type=SOCK_STREAM)[0]
        return create_server(address[:2], family=family, backlog=_BACKLOG)


def listen_together(host: str, port: int, count: int) -> list[socket]:
    """Open several listening sockets at one address. The kernel divides connections among them.

    Raise ``InvalidSetting`` where several workers cannot run.
    """
    if not hasattr(os, "memfd_create"):  # what the workers share would have no memory
        raise InvalidSetting("--workers needs Linux. Leave it out.")
    with listen(host, port) as single:
        address = single.getsockname()[:2]
    # Nobody else listens there, which sockets that share an address would not notice.
    with _explain_errors(host, port):
        sockets = []
        for _ in range(count):
            shared = create_server(address, family=single.family, backlog=_BACKLOG, reuse_port=True)
            sockets.append(shared)
        return sockets


@contextlib.contextmanager
def _explain_errors(host: str, port: int) -> Iterator[None]:
    try:
        yield
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


def url_of(sock: socket) -> str:
    """Return the URL of a listening socket."""
    host, port = sock.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class OncePerSecond(logging.Filter):
    """Passes each kind of message at most once a second, so that clients cannot fill the log."""

    def __init__(self, *, clock: Callable[[], float] = monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._next_times: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to log a message. Its template decides what kind it is."""
        now = self._clock()
        template = str(record.msg)
        if now < self._next_times.get(template, now):
            return False
        self._next_times[template] = now + 1.0
        return True


class _Server(uvicorn.Server):
    """A server whose process exits normally after a signal to stop."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on SIGINT, SIGTERM and SIGHUP, and do not raise them again afterwards."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        previous_handlers = {}
        for signal_number in stop_signals():
            previous_handlers[signal_number] = signal.signal(signal_number, self.handle_exit)
        try:
            yield
        finally:
            for signal_number, handler in previous_handlers.items():
                signal.signal(signal_number, handler)


def stop_signals() -> list[signal.Signals]:
    """Return the signals that stop the server. ``nohup`` ignores SIGHUP, and so does the server."""
    signals = [signal.SIGINT, signal.SIGTERM]
    hangup = getattr(signal, "SIGHUP", None)  # Windows has none
    if hangup is not None and signal.getsignal(hangup) is not signal.SIG_IGN:
        signals.append(hangup)
    return signals


def run_server(
    app: FastAPI,
    sock: socket,
    on_start: Callable[[str], None],
    *,
    proxy: str | None = None,
    shutdown_timeout: int = 10,
) -> None:
    """Run the server until a signal stops it. Call ``on_start`` with its URL once it is ready.

    ``proxy``: the address of a reverse proxy whose X-Forwarded-For header to trust.
    ``shutdown_timeout``: the number of seconds for requests that have begun when it stops.
    """
    aggregator: Aggregator = app.state.aggregator
    config = uvicorn.Config(
        SingleUploads(app, aggregator),
        http=aggregator.connections.protocol,
        ws="none",  # an upgraded connection would have no limits
        log_level="warning",
        access_log=False,  # do not log the addresses of participants
        server_header=False,
        proxy_headers=proxy is not None,
        forwarded_allow_ips=proxy,
        timeout_graceful_shutdown=shutdown_timeout,
    )
    for name in ("uvicorn.error", "sfumato.aggregator"):
        logging.getLogger(name).addFilter(OncePerSecond())
    server = _Server(config)

    async def run() -> None:
        task = asyncio.ensure_future(server.serve(sockets=[sock]))
        while not server.started and not task.done():
            await asyncio.sleep(0.01)
        if server.started:
            on_start(url_of(sock))
        await task

    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(run())
