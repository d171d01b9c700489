"""Uploads of one report per CPU second of the server, next to an endpoint that stores nothing.

    python benchmarks/ingestion.py --rounds 5 --seconds 6
    python benchmarks/ingestion.py --workers 1 2 --postgres postgresql://U@H/ONE postgresql://U@H/TWO

All servers run at the same time, and get the load in turns, so that they meet the same noise. All
limits are on, and too high to be reached. The database server's own CPU time is not included. At
the end, the counts must equal the acknowledged reports.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import numpy as np

from sfumato.survey import Survey
from upload_load import Request, cpu_seconds, make_request, send_for, serving

_SURVEY = """
name = "{name}"
edition = 2
[domain]
kind = "range"
size = {symbols}
[context]
kind = "uniform"
epsilon = 1.0
[mechanism]
code = "hadamard"
"""
_LIMIT = "600000000"  # requests per minute: as much work as any limit, but never reached
_BARE = "bare endpoint"


@dataclass
class _Arm:
    name: str
    process: subprocess.Popen[str]
    port: int
    requests: Sequence[Request]
    survey: Survey | None = None
    token: str = ""
    acknowledged: int = 0
    rates: list[float] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)


def main() -> None:
    options = _options()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=options.folder)))
        arms = [_start_bare(stack, folder, options)]
        for i, workers in enumerate(options.workers):
            stores = {"SQLite": f"sqlite:///{folder}/reports-{workers}.db"}
            if options.postgres:
                stores["PostgreSQL"] = options.postgres[i]
            for database, store in stores.items():
                arms.append(_start_aggregator(stack, folder, database, store, workers, options))
        for _ in range(options.rounds):
            for arm in arms:
                _run(arm, options)
            rates = ", ".join(f"{arm.name} {arm.rates[-1]:,.0f}" for arm in arms)
            print(f"requests per CPU second: {rates}", flush=True)
        _report(arms)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--symbols", type=int, default=43_750)
    parser.add_argument("--workers", type=int, nargs="+", default=[1])
    parser.add_argument(
        "--postgres", nargs="+", default=[], help="an empty database for each number of workers"
    )
    parser.add_argument(
        "--folder", default=".", help="where the SQLite file goes: on a disk, not in memory"
    )
    return parser.parse_args()


def _start_bare(stack: ExitStack, folder: Path, options: argparse.Namespace) -> _Arm:
    command = [sys.executable, "-m", "uvicorn", "--app-dir", str(Path(__file__).parent)]
    command += ["bare_endpoint:app", "--no-access-log", "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    stack.callback(_stop, process)
    _, survey = _write_survey(folder, "bare", options)
    for line in process.stderr or ():
        if "running on" in line:
            port = int(line.split("://127.0.0.1:")[1].split()[0])
            return _Arm(_BARE, process, port, _requests(survey))
    raise SystemExit("the bare endpoint did not start")


def _start_aggregator(
    stack: ExitStack,
    folder: Path,
    database: str,
    store: str,
    workers: int,
    options: argparse.Namespace,
) -> _Arm:
    name = f"{database}, {workers} worker{'s' * (workers > 1)}"
    path, survey = _write_survey(folder, f"{database.lower()}-{workers}", options)
    arguments = [str(path), "--store", store, "--requests-per-minute", _LIMIT, "--new-token"]
    if workers > 1:
        arguments += ["--workers", str(workers)]
    server = stack.enter_context(serving(*arguments))
    return _Arm(name, server.process, server.port, _requests(survey), survey, server.token)


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    process.wait(30)


def _write_survey(folder: Path, name: str, options: argparse.Namespace) -> tuple[Path, Survey]:
    path = folder / f"{name}.toml"
    path.write_text(_SURVEY.format(name=name, symbols=options.symbols), encoding="utf-8")
    return path, Survey.load(path)


def _requests(survey: Survey) -> list[Request]:
    return [make_request(survey, 1, seed) for seed in range(256)]


def _run(arm: _Arm, options: argparse.Namespace) -> None:
    start = cpu_seconds(arm.process.pid)
    latencies = asyncio.run(send_for(options.seconds, arm.requests, arm.port, options.connections))
    time.sleep(0.2)  # what was answered is stored, but the last commits are still being observed
    arm.acknowledged += len(latencies)
    arm.rates.append(len(latencies) / (cpu_seconds(arm.process.pid) - start))
    arm.latencies += latencies


def _report(arms: Sequence[_Arm]) -> None:
    bare = arms[0]
    print(f"{'':24} requests per CPU second   of the bare endpoint   p50 ms   p99 ms")
    for arm in arms:
        if arm.survey is not None and _count_reports(arm) != arm.acknowledged:
            raise SystemExit(f"{arm.name}: the counts differ from the acknowledged reports")
        ratios = [own / other for own, other in zip(arm.rates, bare.rates, strict=True)]
        p50, p99 = np.percentile(arm.latencies, [50, 99]) * 1000
        print(
            f"{arm.name:24} {median(arm.rates):23,.0f} {median(ratios):22.2f} {p50:8.1f} {p99:8.1f}"
        )


def _count_reports(arm: _Arm) -> int:
    assert arm.survey is not None  # noqa: S101 - the bare endpoint counts nothing
    address = f"http://127.0.0.1:{arm.port}/v1/surveys/{arm.survey.fingerprint}/status"
    request = urllib.request.Request(address, headers={"Authorization": f"Bearer {arm.token}"})
    with urllib.request.urlopen(request) as answer:  # noqa: S310
        return int(json.load(answer)["reports"])


if __name__ == "__main__":
    main()
