"""Take the pictures of docs/gallery.md: every page of Sfumato, as a browser shows it.

Run it with `.venv/bin/python docs/gallery/draw.py`; it needs Chromium, and the built pages (`make docs`) for the
playground. People are made up, and drawn from fixed seeds; an aggregator is started on this machine and ended again.
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
from sfumato.aggregator.store.backends import backend_of
from sfumato.aggregator.store.store import Store
from sfumato.batches import Batch
from sfumato.domains.partitions import grid_tiles
from sfumato.pages import alternatives_to, design_page, label_page, plan_page, report_page
from sfumato.randomness.words import words_from

HERE = Path(__file__).parent
BUILT = HERE.parent / "_build" / "html"
TODAY = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
DAYS = 14
DARK = {"try", "map"}  # some pictures show how pages look at night


def lunch() -> sf.Survey:
    places = ["park", "café", "canteen", "clinic", "bar", "office", "at home"]
    context = sf.HighLow(places, ["clinic", "bar"], 1)
    text = "One question, once. Whether somebody was at the clinic or the bar is nobody's business."
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


def people_of(survey: sf.Survey, count: int, day: int) -> np.ndarray:
    """Made-up people: on a map around a few centres; else in shares that shift a little in the second week."""
    draw = np.random.default_rng([count, day])
    if isinstance(survey.context.domain, sf.GridDomain):
        centres = np.array(
            [
                [40.7, -74.0],
                [34.0, -118.2],
                [41.8, -87.6],
                [29.7, -95.3],
                [47.6, -122.3],
                [25.9, -80.2],
            ]
        )
        of = draw.choice(len(centres), count, p=[0.28, 0.24, 0.18, 0.12, 0.1, 0.08])
        spread = draw.normal(0, 1, (count, 2)) * draw.gamma(1.2, 1.6, (count, 1))
        where = np.clip(centres[of] + spread, [25.01, -129.9], [49.99, -60.1])
        return survey.context.domain.symbols_at(where[:, 0], where[:, 1])
    shares = np.array([0.2, 0.17, 0.25, 0.04, 0.07, 0.17, 0.1])
    if day < 100 * (DAYS // 2):
        shares += np.array([0.04, 0, -0.04, 0, 0, 0, 0])
    return draw.choice(shares.size, count, p=shares)


def fill(store_url: str, surveys: list[sf.Survey]) -> None:
    """Two weeks of uploads."""
    clock = [TODAY]
    store = Store(backend_of(store_url), now=lambda: clock[0])
    for number, survey in enumerate(surveys):
        for day in range(DAYS - 1, -1, -1):
            for hour in range(7, 22):
                clock[0] = (TODAY - timedelta(days=day)).replace(hour=hour)
                wave = (1 + np.sin((hour - 7) / 15 * np.pi)) * (1 + 0.3 * np.sin(2 * day))
                people = people_of(
                    survey, int((400 if number == 0 else 2500) * wave), day * 100 + hour
                )
                words = words_from(
                    bytes([number + 1]) * 32, (day * 24 + hour) * 10_000, people.size
                )
                reports = survey.mechanism.reports_from(people, words[:, : survey.mechanism.words])
                store.commit(
                    [Batch(bytes([number, day, hour]) + bytes(13), survey.fingerprint, reports)]
                )
    store.close()


@contextmanager
def aggregator(folder: Path, surveys: list[sf.Survey]) -> Iterator[tuple[str, str]]:
    """The address and the token of an aggregator that has seen two weeks."""
    paths = [folder / f"{survey.name}.json" for survey in surveys]
    for survey, path in zip(surveys, paths, strict=True):
        survey.save(path)
    store = f"sqlite:///{folder}/reports.db"
    command = [
        sys.executable,
        "-m",
        "sfumato",
        "serve",
        *map(str, paths),
        "--store",
        store,
        "--port",
        "0",
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:  # noqa: S603 - our own command
        try:
            token = address = ""
            while not address:
                line = server.stderr.readline()  # type: ignore[union-attr]
                token = line.split()[-1] if "token" in line else token
                address = line.split()[-1] if "listens on" in line else ""
            fill(store, surveys)
            yield address, token
        finally:
            server.terminate()


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a folder of files."""
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def shot(
    browser: Browser,
    name: str,
    address: str,
    act: Callable[[Page], None],
    *,
    width: int = 1200,
    height: int = 1500,
) -> None:
    """Open a page, do something on it, and keep what is to be seen."""
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


def written(folder: Path) -> dict[str, str]:
    """Pages that are files."""
    survey = lunch()
    reports = survey.mechanism.reports_from(
        people_of(survey, 40_000, 3), words_from(bytes(32), 0, 40_000)[:, :1]
    )
    estimate = survey.estimate(survey.tally(reports))
    matrix = sf.PrivacyMatrix([[0, 1, 2, 4], [1, 0, 1, 4], [1, 1, 0, 2], ["inf", "inf", 3, 0]])
    found = sf.design(matrix, time_limit=20)
    pages = {
        "report": report_page(survey, estimate, survey.certify()),
        "label": label_page(survey),
        "plan": plan_page(sf.plan(survey.context, error=0.03)),
        "design": design_page(found, alternatives_to(found), seconds=1.0),
    }
    for name, html in pages.items():
        (folder / f"{name}.html").write_text(html, encoding="utf-8")
    return {name: f"file://{folder}/{name}.html" for name in pages}


def main() -> None:
    surveys = [lunch(), places()]
    with tempfile.TemporaryDirectory() as made, sync_playwright() as playwright:
        folder = Path(made)
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        with aggregator(folder, surveys) as (address, token):
            shot(
                browser,
                "dashboard",
                f"{address}/#{surveys[0].fingerprint}",
                unlock(token, "#decoded"),
            )
            shot(
                browser,
                "map",
                f"{address}/#{surveys[1].fingerprint}",
                unlock(token, "#map"),
                height=1000,
            )
            shot(browser, "try", f"{address}/try/{surveys[0].fingerprint}", try_lunch, width=900)
            shot(
                browser,
                "try-map",
                f"{address}/try/{surveys[1].fingerprint}",
                try_map,
                width=900,
                height=1100,
            )
        for name, page in written(folder).items():
            shot(browser, name, page, lambda page: None, width=1000)
        with served(BUILT) as site:
            shot(browser, "playground", f"{site}/playground/index.html", lambda page: None)
        browser.close()


if __name__ == "__main__":
    main()
