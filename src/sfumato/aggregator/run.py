"""Running the application under uvicorn."""

import asyncio
import sys
from collections.abc import Callable

import uvicorn

__all__ = ["make_threads_share", "started"]


def make_threads_share() -> None:
    """Let the writer have its turn soon.

    Between two statements the writer gives up Python's lock; at the default of 5 ms a busy event loop would keep it
    that long each time, and a commit has a dozen statements.
    """
    sys.setswitchinterval(0.0005)


def started(config: uvicorn.Config, say: Callable[[str], None]) -> None:
    """Serve until told to stop; ``say`` hears the address once it can be reached."""
    server = uvicorn.Server(config)

    async def run() -> None:
        serving = asyncio.ensure_future(server.serve())
        while not server.started and not serving.done():
            await asyncio.sleep(0.01)
        if server.started:
            port = server.servers[0].sockets[0].getsockname()[1]
            say(f"http://{config.host}:{port}")
        await serving

    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(run())
