"""Take the screenshots of docs/gallery.md: every page of Sfumato in a browser.

Run it with `.venv/bin/python docs/gallery/draw.py`. It needs Chromium, and the built pages
(`make docs`) for the playground. The people are simulated from fixed seeds. It starts an aggregator
on this machine and stops it again.
"""

import functools
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
from playwright.sync_api import Browser, Page, sync_playwright

import sfumato as sf
from sfumato.aggregator.store import Store, backend_for
from sfumato.batches import Batch
from sfumato.domains.partitions import grid_tiles
from sfumato.pages import alternatives_to, design_page, label_page, plan_page, report_page
from sfumato.randomness import words_from

HERE = Path(__file__).parent
BUILT = HERE.parent / "_build" / "html"
TODAY = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
DAYS = 14
DARK = {"try", "map"}  # these screenshots show the dark colour scheme
CENTRES = np.array(
    [[40.7, -74.0], [34.0, -118.2], [41.8, -87.6], [29.7, -95.3], [47.6, -122.3], [25.9, -80.2]]
)


def lunch() -> sf.Survey:
    places = ["park", "café", "canteen", "clinic", "bar", "office", "at home"]
    context = sf.HighLow(places, ["clinic", "bar"], 1)
    text = "One question, once. Visits to the clinic or the bar are private."
    return sf.Survey(
        "lunch", context, title="Where did you have lunch?", text=text, contact="lunch@example.org"
    )


def places() -> sf.Survey:
    grid = sf.GridDomain(25, 50, -130, -60, 0.2)
    context = sf.Blocks(grid_tiles(grid, 25, 70), 1, domain=grid)
    return sf.Survey(
        "places",
        context,
        title="Where do people check in?",
        text="The region may be known, not the town.",
    )


def people_of(survey: sf.Survey, count: int, seed: int) -> np.ndarray:
    """Simulate people: around a few centres on a map, otherwise in fixed shares.

    The shares shift a little in the second week: seeds are the day, times 100, plus the hour.
    """
    generator = np.random.default_rng([count, seed])
    if isinstance(survey.context.domain, sf.GridDomain):
        centre = generator.choice(len(CENTRES), count, p=[0.28, 0.24, 0.18, 0.12, 0.1, 0.08])
        spread = generator.normal(0, 1, (count, 2)) * generator.gamma(1.2, 1.6, (count, 1))
        places = np.clip(CENTRES[centre] + spread, [25.01, -129.9], [49.99, -60.1])
        return survey.context.domain.symbols_at(places[:, 0], places[:, 1])
    shares = np.array([0.2, 0.17, 0.25, 0.04, 0.07, 0.17, 0.1])
    if seed < 100 * (DAYS // 2):
        shares += np.array([0.04, 0, -0.04, 0, 0, 0, 0])
    return generator.choice(shares.size, count, p=shares)


def fill(store_url: str, surveys: list[sf.Survey]) -> None:
    """Fill a store with two weeks of uploads."""
    clock = [TODAY]
    store = Store(backend_for(store_url), now=lambda: clock[0])
    for number, survey in enumerate(surveys):
        for day in range(DAYS - 1, -1, -1):
            for hour in range(7, 22):
                clock[0] = (TODAY - timedelta(days=day)).replace(hour=hour)
                store.commit([batch_of(survey, number, day, hour)])
    store.close()


def batch_of(survey: sf.Survey, number: int, day: int, hour: int) -> Batch:
    """Return the reports of one hour."""
    wave = (1 + np.sin((hour - 7) / 15 * np.pi)) * (1 + 0.3 * np.sin(2 * day))
    mean = 400 if number == 0 else 2500
    people = people_of(survey, int(mean * wave), day * 100 + hour)
    words = words_from(bytes([number + 1]) * 32, (day * 24 + hour) * 10_000, people.size)
    reports = survey.mechanism.reports_from(people, words[:, : survey.mechanism.words])
    return Batch(bytes([number, day, hour]) + bytes(13), survey.fingerprint, reports)


@contextmanager
def aggregator(folder: Path, surveys: list[sf.Survey]) -> Iterator[tuple[str, str]]:
    """Run an aggregator with two weeks of reports; yield its address and token."""
    paths = [folder / f"{survey.name}.json" for survey in surveys]
    for survey, path in zip(surveys, paths, strict=True):
        survey.save(path)
    store = f"sqlite:///{folder}/reports.db"
    command = [sys.executable, "-m", "sfumato", "serve", *map(str, paths)]
    command += ["--store", store, "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:  # noqa: S603
        try:
            token = address = ""
            while not address:
                line = server.stderr.readline()  # type: ignore[union-attr]
                token = line.split()[-1] if "token" in line else token
                address = line.split()[-1] if "listening on" in line else ""
            fill(store, surveys)
            yield address, token
        finally:
            server.terminate()


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Serve a folder of files; yield its address."""
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def take_screenshot(
    browser: Browser,
    name: str,
    address: str,
    act: Callable[[Page], None],
    *,
    width: int = 1200,
    height: int = 1500,
) -> None:
    """Open a page, do something on it, and take a screenshot."""
    scheme = "dark" if name in DARK else "light"
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    page = context.new_page()
    page.goto(address)
    act(page)
    page.wait_for_timeout(1000)
    page.screenshot(path=str(HERE / f"{name}.png"))
    context.close()


def try_lunch(page: Page) -> None:
    page.check("input[value='3']")
    page.click("#many")


def try_map(page: Page) -> None:
    page.fill("[name=latitude]", "40.71")
    page.fill("[name=longitude]", "-74.01")
    page.click("#many")


def unlock(token: str, wanted: str) -> Callable[[Page], None]:
    def act(page: Page) -> None:
        page.fill("#secret", token)
        page.click("text=Show results")
        page.wait_for_selector(f"{wanted} .main-svg", timeout=60_000)
        if wanted == "#map":
            page.locator("#map-section").evaluate("section => section.scrollIntoView()")

    return act


def write_pages(folder: Path) -> dict[str, str]:
    """Write the pages that are files; return their addresses."""
    survey = lunch()
    reports = survey.mechanism.reports_from(
        people_of(survey, 40_000, 3), words_from(bytes(32), 0, 40_000)[:, :1]
    )
    estimate = survey.estimate(survey.tally(reports))
    matrix = sf.PrivacyMatrix([[0, 1, 2, 4], [1, 0, 1, 4], [1, 1, 0, 2], ["inf", "inf", 3, 0]])
    design = sf.design(matrix, time_limit=20)
    pages = {
        "report": report_page(survey, estimate, survey.certify()),
        "label": label_page(survey),
        "plan": plan_page(sf.plan(survey.context, error=0.03)),
        "design": design_page(design, alternatives_to(design), seconds=1.0),
    }
    for name, html in pages.items():
        (folder / f"{name}.html").write_text(html, encoding="utf-8")
    return {name: f"file://{folder}/{name}.html" for name in pages}


def main() -> None:
    surveys = [lunch(), places()]
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        with aggregator(folder, surveys) as (address, token):
            first, second = (survey.fingerprint for survey in surveys)
            show_bars = unlock(token, "#decoded")
            show_map = unlock(token, "#map")
            take_screenshot(browser, "dashboard", f"{address}/#{first}", show_bars)
            take_screenshot(browser, "map", f"{address}/#{second}", show_map, height=1000)
            take_screenshot(browser, "try", f"{address}/try/{first}", try_lunch, width=900)
            take_screenshot(
                browser, "try-map", f"{address}/try/{second}", try_map, width=900, height=1100
            )
        for page, address in write_pages(folder).items():
            take_screenshot(browser, page, address, do_nothing, width=1000)
        with serve(BUILT) as address:
            take_screenshot(browser, "playground", f"{address}/playground/index.html", do_nothing)
        browser.close()


def do_nothing(page: Page) -> None:
    """Leave the page as it is."""


if __name__ == "__main__":
    main()
