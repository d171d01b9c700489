"""How many reports per second an aggregator stores durably, on loopback.

    python benchmarks/aggregator.py --seconds 60 --connections 64

Every acknowledged report must be in the counts at the end. The load generator runs on the same
cores, so its CPU time is printed too. `benchmarks/ingestion.py` compares single reports with a bare
endpoint.
"""

import argparse
import asyncio
import json
import resource
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np

from sfumato.survey import Survey
from upload_load import RunningAggregator, cpu_seconds, make_request, send_for, serving

_SURVEY = """
name = "load"
edition = {edition}
repeat = {repeat}
[domain]
kind = "range"
size = 43750
[context]
kind = "uniform"
epsilon = 1.0
[mechanism]
code = "hadamard"
"""


def main() -> None:
    options = _options()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder, "survey.toml")
        repeat = '{ every = "week", distinct = 3 }' if options.repeated else '"once"'
        text = _SURVEY.format(edition=options.edition, repeat=repeat)
        path.write_text(text, encoding="utf-8")
        survey = Survey.load(path)
        store = options.store or f"sqlite:///{folder}/reports.db"
        arguments = (str(path), "--store", store, "--requests-per-minute", "0")
        with serving(*arguments) as server:
            for arm in options.arms:
                _run_arm(arm, survey, server, options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument(
        "--arms",
        nargs="*",
        default=["arrow", "json", "single"],
        choices=["arrow", "json", "single"],
    )
    parser.add_argument("--edition", type=int, default=1, choices=[1, 2])
    parser.add_argument("--repeated", action="store_true", help="a survey that repeats every week")
    parser.add_argument("--store", default=None, help="another store; otherwise a new SQLite file")
    parser.add_argument(
        "--folder", default=".", help="where the SQLite file goes: on a disk, not in memory"
    )
    return parser.parse_args()


def _run_arm(
    arm: str, survey: Survey, server: RunningAggregator, options: argparse.Namespace
) -> None:
    process, token, port = server
    per_batch = 1 if arm == "single" else 1000
    key = "" if arm == "single" else token  # large uploads need a key
    requests = []
    for seed in range(64):
        is_arrow = arm == "arrow"
        requests.append(make_request(survey, per_batch, seed, token=key, arrow=is_arrow))
    before = _count_reports(survey, token, port)
    own_start = _own_seconds()
    server_start = cpu_seconds(process.pid)
    started = time.perf_counter()
    latencies = asyncio.run(send_for(options.seconds, requests, port, options.connections))
    elapsed = time.perf_counter() - started
    own_cores = (_own_seconds() - own_start) / elapsed
    server_cores = (cpu_seconds(process.pid) - server_start) / elapsed
    done = len(latencies)
    if _count_reports(survey, token, port) - before != done * per_batch:
        raise SystemExit("the counts differ from the acknowledged reports")
    p50, p99 = np.percentile(latencies, [50, 99]) * 1000
    print(
        f"{arm:>6}: {done * per_batch / elapsed:>12,.0f} reports/s  "
        f"{done / elapsed:>7,.0f} requests/s  p50 {p50:5.1f} ms  p99 {p99:5.1f} ms  "
        f"cores: server {server_cores:.2f}, generator {own_cores:.2f}",
        flush=True,
    )


def _count_reports(survey: Survey, token: str, port: int) -> int:
    address = f"http://127.0.0.1:{port}/v1/surveys/{survey.fingerprint}/status"
    request = urllib.request.Request(address, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request) as answer:  # noqa: S310
        return int(json.load(answer)["reports"])


def _own_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
