"""What a flood of forged reports does to a survey, and what is left of it after it is left out.

    python benchmarks/flood.py --seconds 10

Three honest days are already in the store. Then eight connections from one address send as many
forged reports as they can: first without a key and 65,536 reports per upload, then without a key
and one report per upload, then with a bulk sender's stolen key. At last, the operator leaves out
the day and the sender.
"""

import argparse
import asyncio
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import urllib3

from sfumato.aggregator import Store
from sfumato.aggregator.store import backend_for
from sfumato.batches import ARROW_MEDIA_TYPE, UploadRules, to_arrow
from sfumato.cells import NO_KEY
from sfumato.survey import Survey
from upload_load import serving

_SURVEY = """
name = "lunch"
title = "Where did you have lunch?"
edition = 2
[domain]
kind = "labels"
labels = ["park", "café", "clinic", "bar"]
[context]
kind = "high-low"
sensitive = ["clinic", "bar"]
epsilon = 1
"""
_SHARES = (0.5, 0.3, 0.15, 0.05)
_CONNECTIONS = 8
_BATCH = 65_536


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--people", type=int, default=50_000, help="honest people on each day")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=".") as folder:
        path = Path(folder, "survey.toml")
        path.write_text(_SURVEY, encoding="utf-8")
        survey = Survey.load(path)
        url = f"sqlite:///{folder}/reports.db"
        key = _collect_honest_days(survey, url, options.people)
        with serving(str(path), "--store", url, "--new-token") as server:
            _run(_Analyst(survey, server.token, server.port), key, options.seconds)


def _collect_honest_days(survey: Survey, url: str, people: int) -> str:
    """Store the reports of three earlier days. Return the key of a bulk sender."""
    generator = np.random.default_rng(1)
    now = [datetime.now(UTC)]
    with closing(Store(backend_for(url), now=lambda: now[0])) as store:
        store.register(survey)
        key = store.add_sender(survey.fingerprint, "south")
        for days in (3, 2, 1):
            now[0] = datetime.now(UTC) - timedelta(days=days)
            answers = generator.choice(survey.context.domain.labels, size=people, p=_SHARES)
            _commit(store, survey, survey.privatize(answers).numbers)
    return key


def _commit(store: Store, survey: Survey, reports: Any) -> None:
    rules = UploadRules.from_survey(survey)
    batches = []
    for start in range(0, reports.size, _BATCH):
        part = reports[start : start + _BATCH]
        batches.append(rules.make_batch(os.urandom(16), part, NO_KEY))
    store.commit(batches)


class _Analyst:
    """Asks for results, and leaves out days and senders."""

    def __init__(self, survey: Survey, token: str, port: int) -> None:
        self.survey = survey
        self.port = port
        self._pool = urllib3.PoolManager()
        self._headers = {"Authorization": f"Bearer {token}"}

    def ask(self, method: str, path: str) -> Any:
        address = f"http://127.0.0.1:{self.port}/v1/surveys/{self.survey.fingerprint}/{path}"
        answer = self._pool.request(method, address, headers=self._headers)
        if answer.status != 200:
            raise SystemExit(f"{method} {path}: {answer.status} {answer.data.decode()}")
        return answer.json()

    def show(self, title: str) -> None:
        result = self.ask("GET", "estimate")
        shares = []
        for symbol in result["symbols"]:
            interval = f"{symbol['low']:.3f} to {symbol['high']:.3f}"
            shares.append(f"{symbol['label']} {symbol['unbiased']:.3f} ({interval})")
        left_out = result["left_out"]["reports"]
        print(f"{title}: {result['reports']:,} reports, {left_out:,} left out")
        print(f"    {', '.join(shares)}", flush=True)


def _run(analyst: _Analyst, key: str, seconds: float) -> None:
    analyst.show("honest")
    _flood(analyst, "no key, 65,536 reports per upload", "", _BATCH, seconds)
    analyst.show("afterwards")
    _flood(analyst, "no key, one report per upload", "", 1, seconds)
    analyst.show("afterwards")
    _flood(analyst, "stolen key, 65,536 reports per upload", key, _BATCH, seconds)
    analyst.show("afterwards")
    for day in analyst.ask("GET", "days")["days"]:
        fit = "too few" if day["fit"] is None else f"{day['fit']:.2g}"
        sender = day["sender"] or "anonymous"
        print(f"    {day['day']} {sender:<10} {day['reports']:>12,}  fit {fit}")
    analyst.ask("PUT", "omissions/senders/south")
    analyst.show("sender left out")
    today = datetime.now(UTC).date().isoformat()
    analyst.ask("PUT", f"omissions/days/{today}")
    analyst.show("day left out, too")


def _flood(analyst: _Analyst, title: str, key: str, reports: int, seconds: float) -> None:
    rules = UploadRules.from_survey(analyst.survey)
    forged = np.full(reports, analyst.survey.mechanism.outputs - 1, dtype=np.uint32)
    headers = {"Content-Type": ARROW_MEDIA_TYPE}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    address = f"http://127.0.0.1:{analyst.port}/v1/surveys/{analyst.survey.fingerprint}/batches"

    def post(pool: urllib3.PoolManager) -> int:
        body = to_arrow(rules.make_batch(os.urandom(16), forged, NO_KEY))
        return pool.request("POST", address, body=body, headers=headers, retries=False).status

    statuses = asyncio.run(_repeat(post, seconds))
    counted_reports = statuses[201] * reports
    print(f"{title}, {seconds:g} s: {dict(statuses)}; {counted_reports:,} forged reports counted")


async def _repeat(post: Callable[[urllib3.PoolManager], int], seconds: float) -> Counter[int]:
    end = time.monotonic() + seconds

    def send() -> Counter[int]:
        statuses: Counter[int] = Counter()
        with urllib3.PoolManager() as pool:
            while time.monotonic() < end:
                statuses[post(pool)] += 1
        return statuses

    parts = await asyncio.gather(*(asyncio.to_thread(send) for _ in range(_CONNECTIONS)))
    return sum(parts, Counter())


if __name__ == "__main__":
    main()
