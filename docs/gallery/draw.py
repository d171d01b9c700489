"""Take the screenshots of docs/gallery.md: every page of Sfumato in a browser.

Run it with `.venv/bin/python docs/gallery/draw.py`. It needs Chromium, and the built pages
(`make docs`) for the playground. The people are simulated from fixed seeds. It starts an aggregator
on this machine and stops it again.

With a folder as its argument, it writes every page there at 1,400 and 390 pixels, light and dark,
as NAME-WIDTH-SCHEME.png, to look at before a release.
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
from typing import NamedTuple

import numpy as np
from playwright.sync_api import Browser, Page, sync_playwright

import sfumato as sf
from sfumato.aggregator.store import Store, backend_for
from sfumato.batches import Batch
from sfumato.domains.partitions import grid_tiles
from sfumato.pages import (
    alternatives_to,
    comparison_page,
    design_page,
    label_page,
    plan_page,
    report_page,
)
from sfumato.randomness import words_from
from sfumato.simulation import Draws, compare

HERE = Path(__file__).parent
BUILT = HERE.parent / "_build" / "html"
TODAY = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
DAYS = 14
HEIGHTS = {"label": 1500, "plan": 1250, "design": 1500, "comparison": 1000}
ONLY_TO_LOOK_AT = {"report-map", "docs"}  # these pages are not in docs/gallery.md
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


class Shot(NamedTuple):
    """A page to show: its address, what to do on it, and the size of its picture."""

    name: str
    address: str
    act: Callable[[Page], None]
    width: int = 1200
    height: int = 1500


def take_screenshot(browser: Browser, shot: Shot) -> None:
    """Open a page, do something on it, and take its picture for the gallery."""
    scheme = "dark" if shot.name in DARK else "light"
    size = {"width": shot.width, "height": shot.height}
    save_screenshot(browser, shot, size, scheme, HERE / f"{shot.name}.png")


def take_all_sizes(browser: Browser, shot: Shot, folder: Path) -> None:
    """Take pictures of a whole page at the width of a desktop and of a phone, light and dark."""
    for width in (1400, 390):
        for scheme in ("light", "dark"):
            path = folder / f"{shot.name}-{width}-{scheme}.png"
            size = {"width": width, "height": 900}
            save_screenshot(browser, shot, size, scheme, path, full_page=True)


def save_screenshot(
    browser: Browser,
    shot: Shot,
    size: dict[str, int],
    scheme: str,
    path: Path,
    *,
    full_page: bool = False,
) -> None:
    context = browser.new_context(viewport=size, color_scheme=scheme)
    page = context.new_page()
    page.goto(shot.address)
    shot.act(page)
    page.wait_for_timeout(1000)
    page.screenshot(path=str(path), full_page=full_page)
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
        page.locator(f"{wanted} svg:visible").first.wait_for(timeout=180_000)

    return act


def report_of(survey: sf.Survey, people: int) -> str:
    """Return the report page of simulated people."""
    words = words_from(bytes(32), 0, people)[:, : survey.mechanism.words]
    reports = survey.mechanism.reports_from(people_of(survey, people, 3), words)
    return report_page(survey, survey.estimate(survey.tally(reports)), survey.certify())


def write_pages(folder: Path) -> dict[str, str]:
    """Write the pages that are files; return their addresses."""
    survey = lunch()
    counts = np.bincount(people_of(survey, 40_000, 3), minlength=survey.context.size)
    matrix = sf.PrivacyMatrix([[0, 1, 2, 4], [1, 0, 1, 4], [1, 1, 0, 2], ["inf", "inf", 3, 0]])
    design = sf.design(matrix, time_limit=20)
    pages = {
        "report": report_of(survey, 40_000),
        "report-map": report_of(places(), 400_000),
        "label": label_page(survey),
        "plan": plan_page(sf.plan(survey.context, error=0.03)),
        "design": design_page(design, alternatives_to(design), seconds=1.0),
        "comparison": comparison_page(compare(survey.context, counts, draws=Draws(10, 1, 1))),
    }
    run_demo(folder)
    for name, html in pages.items():
        (folder / f"{name}.html").write_text(html, encoding="utf-8")
    return {name: f"file://{folder}/{name}.html" for name in (*pages, "demo")}


def run_demo(folder: Path) -> None:
    """Write the page of the demo."""
    command = [sys.executable, "-m", "sfumato", "demo", "-o", str(folder / "demo.html")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603


def main(folder_for_all_sizes: str | None = None) -> None:
    take = take_screenshot
    if folder_for_all_sizes is not None:
        target = Path(folder_for_all_sizes)
        target.mkdir(parents=True, exist_ok=True)
        take = functools.partial(take_all_sizes, folder=target)
    surveys = [lunch(), places()]
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        with aggregator(folder, surveys) as (address, token):
            first, second = (survey.fingerprint for survey in surveys)
            show_bars = unlock(token, "#shares")
            take(browser, Shot("dashboard", f"{address}/#{first}", show_bars))
            take(browser, Shot("map", f"{address}/#{second}", unlock(token, "#map"), height=1180))
            take(browser, Shot("try", f"{address}/try/{first}", try_lunch, 900))
            take(browser, Shot("try-map", f"{address}/try/{second}", try_map, 900, 1100))
        with serve(BUILT) as address:
            shots = [
                Shot(page, url, do_nothing, 1000, HEIGHTS.get(page, 1100))
                for page, url in write_pages(folder).items()
            ]
            shots.append(Shot("playground", f"{address}/playground/index.html", do_nothing))
            shots.append(Shot("docs", f"{address}/index.html", do_nothing))
            for shot in shots:
                if folder_for_all_sizes is not None or shot.name not in ONLY_TO_LOOK_AT:
                    take(browser, shot)
        browser.close()


def do_nothing(page: Page) -> None:
    """Leave the page as it is."""


if __name__ == "__main__":
    main(*sys.argv[1:2])
