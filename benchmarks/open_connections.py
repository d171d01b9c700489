"""The memory of an aggregator with many open connections: `python benchmarks/open_connections.py`.

Each connection has sent one report and stays open. uvicorn closes idle connections after five
seconds, so the memory is read while the last ones are being opened.
"""

import argparse
import asyncio
import resource
import tempfile
from collections.abc import Sequence
from pathlib import Path

from sfumato.survey import Survey
from upload_load import Request, make_request, serving

_SURVEY = """
name = "connections"
edition = 2
[domain]
kind = "range"
size = 1000
[context]
kind = "uniform"
epsilon = 1.0
"""
_AT_ONCE = 64


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--connections", type=int, default=10_000)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (options.connections + 100,) * 2)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        path = Path(folder) / "survey.toml"
        path.write_text(_SURVEY, encoding="utf-8")
        survey = Survey.load(path)
        store = f"sqlite:///{folder}/reports.db"
        with serving(str(path), "--store", store, "--requests-per-minute", "0") as server:
            requests = [make_request(survey, 1, seed) for seed in range(256)]
            for count in (options.connections // 10, options.connections):
                asyncio.run(_open_all(count, requests, server.port, server.process.pid))


async def _open_all(count: int, requests: Sequence[Request], port: int, pid: int) -> None:
    before = _resident_mib(pid)
    turns = asyncio.Semaphore(_AT_ONCE)
    opened = await asyncio.gather(*(_open(turns, requests[i % 256], port, i) for i in range(count)))
    after = _resident_mib(pid)
    still_open = sum(not reader.at_eof() for reader, _ in opened)
    print(
        f"{count:6,} connections, {still_open:,} open at the end: {before:.0f} MiB before, "
        f"{after:.0f} MiB after; {(after - before) * 10_000 / count:.0f} MiB per 10,000"
    )
    for _, writer in opened:
        writer.close()


async def _open(
    turns: asyncio.Semaphore, request: Request, port: int, number: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a connection, and send a report over it."""
    first, second = request
    async with turns:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(first + number.to_bytes(16, "big").hex().encode() + second)
        await reader.readuntil(b"}")
        return reader, writer


def _resident_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise SystemExit("the aggregator has ended")


if __name__ == "__main__":
    main()
