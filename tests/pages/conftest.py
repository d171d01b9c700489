"""Surveys with pages to test, and a real browser to open them."""

import shutil

import numpy as np
import pytest

import sfumato as sf
from sfumato.domains.partitions import grid_tiles
from support.browser import Browser
from support.survey_results import HOSTILE, simulate_results

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
]


@pytest.fixture(scope="session")
def lunch():
    """Five places, two of them sensitive, 20,000 people."""
    context = sf.HighLow(["park", "café", "clinic", "bar", "office"], ["clinic", "bar"], 1)
    people = np.repeat(np.arange(5), [9000, 6200, 1400, 1000, 2400])
    return simulate_results(
        sf.Survey("lunch-2026", context, title="Where did you have lunch?"), people
    )


@pytest.fixture(scope="session")
def hostile():
    """Labels, a name and a title that try to break out of text."""
    context = sf.Uniform(
        [HOSTILE, "<b>bold</b>", "$x^2$ %{y}", '<a href="https://example.com">a</a>'], 1
    )
    survey = sf.Survey(HOSTILE[:90], context, title=HOSTILE)
    return simulate_results(survey, np.arange(4000) % 4)


@pytest.fixture(scope="session")
def checkins():
    """The paper's grid, 43,750 cells in tiles, a skewed crowd."""
    grid = sf.GridDomain(25, 50, -130, -60, 0.2)
    survey = sf.Survey("checkins", sf.Blocks(grid_tiles(grid, 25, 70), 1, domain=grid))
    generator = np.random.default_rng(1)
    return simulate_results(
        survey, np.minimum(generator.pareto(1.2, 200_000) * 50, 43_749).astype(np.int64)
    )


@pytest.fixture(scope="session")
def chromium():
    """The system's Chromium, driven by Playwright."""
    executable = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        executable = None
    if executable is None:
        pytest.skip("skipped: needs Chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def browser(chromium):
    """Visitors of pages, each with their own storage."""
    people = Browser(chromium)
    yield people
    people.close()
