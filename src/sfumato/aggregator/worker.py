"""One of several workers: ``python -m sfumato.aggregator.worker``, started by ``run_workers``.

Standard input starts with the setup, because it contains the store's URL, which may have a password
in it, and process lists show arguments. It is closed when the parent ends, however that happens;
then the worker stops as well.
"""

import asyncio
import signal
import socket
import sys
from contextlib import closing

from sfumato.aggregator.app import create_app
from sfumato.aggregator.run import limit_arenas, run_server, shorten_switch_interval
from sfumato.aggregator.store import Store
from sfumato.aggregator.workers import READY, WorkerSetup
from sfumato.errors import SfumatoError

__all__: list[str] = []


def main() -> None:
    """Serve until the parent ends, or a signal arrives."""
    limit_arenas()
    setup = WorkerSetup.from_json(sys.stdin.buffer.readline())
    listening_socket = socket.socket(fileno=setup.descriptors[0])
    try:
        with listening_socket, closing(Store.open(setup.store)) as store:
            app = create_app(store, setup.settings())
            shorten_switch_interval()
            run_server(app, listening_socket, _report_ready, proxy=setup.proxy)
    except SfumatoError as error:
        sys.stderr.write(f"sfumato: {error}\n")
        sys.exit(2)


def _report_ready(_: str) -> None:
    sys.stdout.buffer.write(READY)
    sys.stdout.buffer.flush()
    # The parent writes nothing more, so only its end can be read from now on.
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), _stop)


def _stop() -> None:
    asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
    signal.raise_signal(signal.SIGTERM)


if __name__ == "__main__":
    main()
