"""An aggregator under mixed traffic for long: counts, errors, log, memory and open files.

    python benchmarks/soak.py --minutes 60 --workers 2
    python benchmarks/soak.py --minutes 60 --store postgresql://U@H/EMPTY

`sfumato serve` runs as a process, on SQLite in a temporary folder unless there is a --store.
Devices send single reports over connections that they keep, and repeat a tenth of them. Bulk
senders send JSON and Arrow. Analysts read results, dashboards and metrics; clients read surveys.
Others send invalid requests, or half a request. An operator registers more surveys, and closes,
opens and ends them.

Every minute, and at the end, the counts of each survey must equal what was acknowledged: in its
status, in its tally exports, report by report, and in the metrics. No response may have a status
that the client does not expect, above all no 5xx, and no connection may be lost. The log must have
no line but expected ones. In the second half, memory may grow by 5 % per hour (or by 2 % in all, in
a short run), and the number of open files by 16. If a check fails, the exit code is 1.
"""

import argparse
import asyncio
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from time import monotonic

from soak_growth import Growth, ProcessSample
from soak_ledger import Faults
from soak_plan import SoakPlan
from soak_traffic import Traffic
from upload_load import cpu_seconds, read_announcement

__all__ = ["run_soak"]

_LIMIT = "600000000"  # requests per minute: as much work as any limit, but never reached
_STOP_TIMEOUT = 60
_CHANGES = 40
"""How often a survey changes in a run. Four changes need another survey, which the server keeps in
memory, so their number does not depend on the time."""

_SAMPLES_PER_INTERVAL = 12

_EXPECTED_LOG = re.compile(r"Dashboard for analysts, |WARNING:  Invalid HTTP request received\.$")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--store", default="", help="the URL of a store, instead of SQLite")
    parser.add_argument("--folder", default=".", help="where SQLite's file goes: on a disk")
    parser.add_argument("--reports-per-second", type=float, default=100)
    options = parser.parse_args()
    plan = SoakPlan(
        seconds=60 * options.minutes,
        workers=options.workers,
        store=options.store,
        folder=options.folder,
        reports_per_second=options.reports_per_second,
        change_seconds=60 * options.minutes / _CHANGES,
    )
    sys.exit(1 if run_soak(plan) else 0)


def run_soak(plan: SoakPlan) -> list[str]:
    """Run a soak, and print a line after each interval. Return what went wrong."""
    with tempfile.TemporaryDirectory(dir=plan.folder) as folder:
        soak = _Soak(plan, plan.store or f"sqlite:///{folder}/reports.db")
        try:
            asyncio.run(soak.run())
        finally:
            soak.stop()
        soak.summarize()
        return soak.faults.lines


class _Soak:
    """A server, its traffic, and what was observed."""

    def __init__(self, plan: SoakPlan, url: str) -> None:
        self._plan = plan
        self._url = url
        self.faults = Faults()
        command = [*plan.command, "serve", "--store", url, "--port", "0", "--new-token"]
        command += ["--requests-per-minute", _LIMIT]
        if plan.workers > 1:
            command += ["--workers", str(plan.workers)]
        self._server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self._token, self._port = read_announcement(self._server)
        self._log_reader = threading.Thread(target=self._read_log, daemon=True)
        self._log_reader.start()
        self._start = 0.0
        self._start_cpu_seconds = 0.0
        self._samples: list[ProcessSample] = []
        self._statuses: Mapping[int, int] = {}

    def _read_log(self) -> None:
        for line in self._server.stderr or ():
            if not _EXPECTED_LOG.match(line.rstrip("\n")):
                self.faults.add(f"log: {line.strip()}")

    async def run(self) -> None:
        """Keep clients busy, take samples, and check the counts after each interval."""
        traffic = Traffic(self._plan, self._url, self._port, self._token, self.faults)
        for _ in range(2):  # these stay open all the time
            await traffic.add_survey()
        self._start = monotonic()
        self._start_cpu_seconds = cpu_seconds(self._server.pid)
        async with traffic.run():
            sampling = asyncio.create_task(self._take_samples())
            end = self._start + self._plan.seconds
            while (now := monotonic()) < end:
                await asyncio.sleep(min(self._plan.interval, end - now))
                await self._check(traffic)
            sampling.cancel()
            with suppress(asyncio.CancelledError):
                await sampling
        await traffic.check_counts()
        self._statuses = traffic.statuses

    async def _take_samples(self) -> None:
        while True:
            self._sample()
            await asyncio.sleep(self._plan.interval / _SAMPLES_PER_INTERVAL)

    def _sample(self) -> None:
        if self._server.poll() is not None:
            self.faults.add("the server has ended")
            return
        hours = (monotonic() - self._start) / 3600
        try:
            self._samples.append(ProcessSample.take(self._server.pid, hours))
        except (FileNotFoundError, ProcessLookupError):
            self.faults.add("a process of the server has ended")
            return
        if self._samples[-1].pids != self._samples[0].pids:
            self.faults.add("a process of the server was replaced")

    async def _check(self, traffic: Traffic) -> None:
        check_start = monotonic()
        await traffic.check_counts()
        self._sample()
        sample = self._samples[-1]
        seconds = monotonic() - self._start
        report_count = sum(record.report_count for record in traffic.records)
        server_seconds = cpu_seconds(self._server.pid) - self._start_cpu_seconds
        check_seconds = monotonic() - check_start
        verdict = f"{len(self.faults.lines)} faults" if self.faults.lines else "no fault"
        print(
            f"{seconds / 60:5.1f} minutes: {report_count:>10,} reports in "
            f"{len(traffic.records)} surveys, {_describe(traffic.statuses)}, "
            f"memory {sample.memory_mib:.1f} MiB, {sample.open_files} open files, "
            f"server {server_seconds / seconds:.0%} of a core, check {check_seconds:.1f} s: "
            f"{verdict}",
            flush=True,
        )

    def stop(self) -> None:
        """Stop the server, which must exit normally and say nothing unexpected."""
        self._server.terminate()
        try:
            status = self._server.wait(_STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._server.kill()
            status = self._server.wait()
        if status != 0:
            self.faults.add(f"the server ended with status {status}")
        self._log_reader.join(_STOP_TIMEOUT)
        if self._server.stderr is not None:
            self._server.stderr.close()

    def summarize(self) -> None:
        """Judge the growth, and print a summary."""
        growth = Growth.from_samples(self._samples)
        for problem in growth.problems:
            self.faults.add(problem)
        statuses = [f"{status} {count:,}" for status, count in sorted(self._statuses.items())]
        print(f"responses by status: {'; '.join(statuses)}")
        print(growth.summary())
        for line in self.faults.lines:
            print(f"FAULT: {line}")
        print("passed" if not self.faults.lines else "failed", flush=True)


def _describe(statuses: Mapping[int, int]) -> str:
    """Return how many responses had a status of each class."""
    classes = {2: 0, 3: 0, 4: 0, 5: 0}
    for status, count in statuses.items():
        if status:
            classes[status // 100] += count
    return ", ".join(f"{count:,} {class_}xx" for class_, count in classes.items())


if __name__ == "__main__":
    main()
