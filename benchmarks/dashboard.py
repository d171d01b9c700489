"""How fast the dashboard draws a map of 43,750 cells, and reacts to clicks under load.

    python benchmarks/dashboard.py --reports 1000000

Aggregator, load generator and Chromium run on the same cores. First the page is loaded a few times
from a full store; the time runs from the last byte of the response to the frame that shows the map.
Then the generator sends reports as fast as they are acknowledged, while the table's headings are
clicked. The browser measures the time from each click to the next frame, in steps of 8 ms. Tasks
above 50 ms are what a click may have to wait for.
"""

import argparse
import http.client
import multiprocessing
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Page, sync_playwright

from sfumato.aggregator.store import Store
from sfumato.batches import ARROW_MEDIA_TYPE, Batch, fresh_id, to_arrow
from sfumato.survey import Survey
from upload_load import serving

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
new PerformanceObserver((list) => clicks.push(
  ...list.getEntries().filter(({ name }) => name === "click").map(({ duration }) => duration),
)).observe({ type: "event", durationThreshold: 16 });
window.drawn = new Promise((resolve) => {
  const look = () => document.querySelector("#map .heatmaplayer image")
    ? requestAnimationFrame(() => resolve(performance.now()))
    : requestAnimationFrame(look);
  look();
});
"""
_TIMES = """drawn.then((end) => {
  const resources = performance.getEntriesByType("resource");
  const results = resources.find(({ name }) => name.includes("/results"));
  const { requestStart, responseStart, responseEnd, decodedBodySize } = results;
  return { worked: responseStart - requestStart, drawn: end - responseEnd, bytes: decodedBodySize };
})"""


def main() -> None:
    options = _options()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder, sync_playwright() as playwright:
        path = Path(folder, "survey.toml")
        store = f"sqlite:///{folder}/reports.db"
        path.write_text(_SURVEY, encoding="utf-8")
        survey = Survey.load(path)
        _fill(survey, store, options.reports)
        limits = ("--requests-per-minute", "0", "--reports-per-upload", "65536")
        with serving(str(path), "--store", store, *limits) as (_, token, port):
            url = f"http://127.0.0.1:{port}"
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
        "--reports",
        type=int,
        default=1_000_000,
        help="how many are in the store, and how many are sent",
    )
    parser.add_argument("--rounds", type=int, default=5, help="how often to load the page")
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
        symbols = np.minimum(generator.pareto(1.2, size) * 50, survey.context.size - 1)
        reports_of_batch = survey.mechanism.privatize(symbols.astype(np.int64))
        yield Batch(fresh_id(), survey.fingerprint, reports_of_batch)


def _draw(page: Page, url: str, token: str, rounds: int) -> None:
    page.goto(url)
    page.locator("#secret").fill(token)
    page.locator("#secret").press("Enter")
    page.evaluate("drawn")
    times: list[dict[str, Any]] = []
    for _ in range(rounds):
        page.reload()
        times.append(page.evaluate(_TIMES))
    for name, label in (
        ("worked", "time in the aggregator"),
        ("drawn", "from the response's last byte to the map"),
    ):
        own = [measurement[name] for measurement in times]
        median = statistics.median(own)
        print(f"{label:>40}: median {median:6,.0f} ms, at most {max(own):6,.0f} ms")
    print(f"{'size of the response':>40}: {times[0]['bytes'] / 1e6:.2f} MB")


def _click_under_load(page: Page, url: str, survey: Survey, reports: int) -> None:
    page.locator("#rows").scroll_into_view_if_needed()
    _click(page, "at rest", lambda seconds: seconds < 10)
    bodies = []
    for batch in _batches(survey, 64_000, 1000, np.random.default_rng(2)):
        bodies.append((batch.id, to_arrow(batch)))
    arguments = (url, survey.fingerprint, bodies, reports)
    generator = multiprocessing.get_context("spawn").Process(target=_send, args=arguments)
    generator.start()
    _click(page, "under load", lambda seconds: generator.is_alive() or seconds < 10)
    generator.join()


def _click(page: Page, when: str, continues: Callable[[float], bool]) -> None:
    page.evaluate("() => { tasks.length = clicks.length = 0; }")
    start = time.perf_counter()
    states = set()
    presses = 0
    while continues(time.perf_counter() - start):
        buttons = page.locator("#rows th[scope=col] button")
        buttons.nth(presses % buttons.count()).click()
        presses += 1
        states.add(page.locator("[data-part=summary] .lead").inner_text())
        # Move the focus out of the table: a table with the focus is not redrawn.
        page.locator("#decoder").focus()
        page.wait_for_timeout(100)
    clicks = page.evaluate("clicks")
    tasks = page.evaluate("tasks")
    # The browser does not report clicks below 16 ms.
    times = sorted([*clicks, *[16.0] * (presses - len(clicks))])
    median = times[len(times) // 2]
    percentile = times[int(0.95 * len(times))]
    print(
        f"{f'{when}, from a click to the next frame':>40}: median {median:.0f} ms, "
        f"95 % {percentile:.0f} ms, at most {times[-1]:.0f} ms, of {presses} clicks\n"
        f"{'tasks above 50 ms':>40}: {len(tasks)}, the longest {max(tasks, default=0):.0f} ms; "
        f"the page showed {len(states)} states"
    )


def _send(url: str, fingerprint: str, bodies: list[tuple[bytes, bytes]], reports: int) -> None:
    """Send batches over one connection as fast as they are counted, with fresh identifiers."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"))
    start = time.perf_counter()
    sent = 0
    while sent < reports:
        identifier, body = bodies[sent // 1000 % len(bodies)]
        fresh = body.replace(identifier.hex().encode(), fresh_id().hex().encode())
        connection.request(
            "POST", f"/v1/surveys/{fingerprint}/batches", fresh, {"Content-Type": ARROW_MEDIA_TYPE}
        )
        answer = connection.getresponse()
        answer.read()
        if answer.status != 201:
            raise SystemExit(f"the aggregator answered {answer.status}")
        sent += 1000
    connection.close()
    seconds = time.perf_counter() - start
    print(
        f"{'meanwhile':>40}: {sent:,} reports in {seconds:.1f} s, {sent / seconds:,.0f} per second"
    )


if __name__ == "__main__":
    main()
