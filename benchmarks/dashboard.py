"""How soon the dashboard shows a map of 43,750 cells, and how it answers to clicks while a million reports arrive.

    python benchmarks/dashboard.py --reports 1000000

Everything runs on the same cores: aggregator, generator and Chromium. First the page is loaded a few times over a store
that is full already: from the last byte of the answer to the frame in which the map is drawn. Then the generator
sends as fast as it is answered, while somebody clicks on the table's heads: from each click to the next frame, as the
browser itself measures it, in steps of 8 ms. Tasks above 50 ms are what a click may have to wait for.
"""

import argparse
import http.client
import multiprocessing
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Page, sync_playwright

from sfumato.aggregator.store import Store
from sfumato.batches import ARROW, Batch, fresh_id, to_arrow
from sfumato.survey import Survey

_SURVEY = """
name = "load"
[domain]
kind = "grid"
south = 25.0
north = 50.0
west = -130.0
east = -60.0
step = 0.2
[context]
kind = "blocks"
epsilon = 1.0
rows = 25
columns = 70
"""
_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-sync",
]
_WATCH = """
window.tasks = [];
window.clicks = [];
new PerformanceObserver((list) => tasks.push(...list.getEntries().map((task) => task.duration)))
  .observe({ type: "longtask", buffered: true });
new PerformanceObserver((list) => clicks.push(...list.getEntries().filter(({ name }) => name === "click")
  .map(({ duration }) => duration))).observe({ type: "event", durationThreshold: 16 });
window.drawn = new Promise((resolve) => {
  const look = () => document.querySelector("#map .heatmaplayer image")
    ? requestAnimationFrame(() => resolve(performance.now()))
    : requestAnimationFrame(look);
  look();
});
"""
_TIMES = """drawn.then((end) => {
  const [results] = performance.getEntriesByType("resource").filter(({ name }) => name.includes("/results"));
  const { requestStart, responseStart, responseEnd, decodedBodySize } = results;
  return { worked: responseStart - requestStart, drawn: end - responseEnd, bytes: decodedBodySize };
})"""


def main() -> None:
    options = _options()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder, sync_playwright() as playwright:
        path, store = Path(folder, "survey.toml"), f"sqlite:///{folder}/reports.db"
        path.write_text(_SURVEY, encoding="utf-8")
        survey = Survey.load(path)
        _fill(survey, store, options.reports)
        with _serving(path, store) as (url, token):
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=_FLAGS
            )
            page = browser.new_page(viewport={"width": 1300, "height": 900})
            page.add_init_script(_WATCH)
            _draw(page, url, token, options.rounds)
            _click_under_load(page, url, survey, options.reports)
            browser.close()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--reports", type=int, default=1_000_000, help="in the store at first, and sent afterwards"
    )
    parser.add_argument("--rounds", type=int, default=5, help="how often the page is loaded")
    parser.add_argument(
        "--folder", default=".", help="where the SQLite file goes: on a disk, not in memory"
    )
    return parser.parse_args()


def _fill(survey: Survey, url: str, reports: int) -> None:
    generator = np.random.default_rng(1)
    store = Store.open(url)
    store.register(survey)
    for batch in _batches(survey, reports, 50_000, generator):
        store.commit([batch])
    store.close()


def _batches(
    survey: Survey, reports: int, size: int, generator: np.random.Generator
) -> Iterator[Batch]:
    for _ in range(0, reports, size):
        crowd = np.minimum(generator.pareto(1.2, size) * 50, survey.context.size - 1).astype(
            np.int64
        )
        yield Batch(fresh_id(), survey.fingerprint, survey.mechanism.privatize(crowd))


@contextmanager
def _serving(path: Path, store: str) -> Iterator[tuple[str, str]]:
    command = [sys.executable, "-m", "sfumato", "serve", str(path), "--store", store, "--port", "0"]
    server = subprocess.Popen(
        [*command, "--requests-per-minute", "0"], stderr=subprocess.PIPE, text=True
    )
    try:
        token = ""
        for line in server.stderr or ():
            if "token" in line:
                token = line.split()[-1]
            if "listens on" in line:
                yield line.split()[-1], token
                break
    finally:
        server.terminate()
        server.wait(30)


def _draw(page: Page, url: str, token: str, rounds: int) -> None:
    page.goto(url)
    page.locator("#secret").fill(token)
    page.locator("#secret").press("Enter")
    page.evaluate("drawn")
    times: list[dict[str, Any]] = []
    for _ in range(rounds):
        page.reload()
        times.append(page.evaluate(_TIMES))
    for name, words in (
        ("worked", "the aggregator worked"),
        ("drawn", "from the answer's last byte to the map"),
    ):
        took = [found[name] for found in times]
        print(
            f"{words:>40}: median {statistics.median(took):6,.0f} ms, at most {max(took):6,.0f} ms"
        )
    print(f"{'size of the answer':>40}: {times[0]['bytes'] / 1e6:.2f} MB")


def _click_under_load(page: Page, url: str, survey: Survey, reports: int) -> None:
    page.locator("#rows").scroll_into_view_if_needed()
    _click(page, "at rest", lambda seconds: seconds < 10)
    bodies = [
        (batch.id, to_arrow(batch))
        for batch in _batches(survey, 64_000, 1000, np.random.default_rng(2))
    ]
    given = (url, survey.fingerprint, bodies, reports)
    generator = multiprocessing.get_context("spawn").Process(target=_send, args=given)
    generator.start()
    _click(page, "under load", lambda seconds: generator.is_alive() or seconds < 10)
    generator.join()


def _click(page: Page, when: str, going: Callable[[float], bool]) -> None:
    page.evaluate("() => { tasks.length = clicks.length = 0; }")
    started, shown, pressed = time.perf_counter(), set(), 0
    while going(time.perf_counter() - started):
        page.locator("#rows th[scope=col] button").nth(pressed % 5).click()
        pressed += 1
        shown.add(page.locator("[data-part=summary] .lead").inner_text())
        page.locator(
            "#decoder"
        ).focus()  # a table with the focus in it would be left alone, which is too kind
        page.wait_for_timeout(100)
    clicks, tasks = page.evaluate("clicks"), page.evaluate("tasks")
    took = sorted([*clicks, *[16.0] * (pressed - len(clicks))])  # those below 16 ms are not told
    median, most = took[len(took) // 2], took[int(0.95 * len(took))]
    print(
        f"{f'{when}, from a click to the next frame':>40}: median {median:.0f} ms, 95 % {most:.0f} ms, at most "
        f"{took[-1]:.0f} ms, of {pressed} clicks\n{'tasks above 50 ms':>40}: {len(tasks)}, the longest "
        f"{max(tasks, default=0):.0f} ms; the page showed {len(shown)} states"
    )


def _send(url: str, fingerprint: str, bodies: list[tuple[bytes, bytes]], reports: int) -> None:
    """Send batches over one connection, each under a fresh identifier, as fast as they are counted."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"))
    started, sent = time.perf_counter(), 0
    while sent < reports:
        held, body = bodies[sent // 1000 % len(bodies)]
        fresh = body.replace(held.hex().encode(), fresh_id().hex().encode())
        connection.request(
            "POST", f"/v1/surveys/{fingerprint}/batches", fresh, {"Content-Type": ARROW}
        )
        answer = connection.getresponse()
        answer.read()
        if answer.status != 201:
            raise SystemExit(f"the aggregator answered {answer.status}")
        sent += 1000
    connection.close()
    took = time.perf_counter() - started
    print(f"{'meanwhile':>40}: {sent:,} reports in {took:.1f} s, {sent / took:,.0f} a second")


if __name__ == "__main__":
    main()
