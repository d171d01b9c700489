"""The demo's page: maps side by side, with the error of each."""

import re

import numpy as np
import pytest

from sfumato.charts.maps import GridShapes, MapChart
from sfumato.pages import PromiseMap, demo_page
from support.browser import accessibility_violations

SHAPES = GridShapes(south=40, west=0, step=1, rows=2, columns=3)


def draw(values):
    shares = np.array(values, dtype=float)
    return MapChart("A map", SHAPES, shares, shares / 2, 2 * shares, lambda share: f"{share:.0%}")


@pytest.fixture(scope="module")
def source():
    maps = [
        PromiseMap("true homes", "nothing", draw([0.5, 0.5, 0, 0, 0, 0]), None),
        PromiseMap("classical", "everything", draw([0.2] * 5 + [0]), 0.6, 17, 1234),
        PromiseMap("towns", "the street", draw([0.45, 0.55, 0, 0, 0, 0]), 0.05, 18, 7),
    ]
    return demo_page("Homes", 1000, maps, "Places: invented.")


def test_errors_are_stated_first_and_below_each_map(source):
    opening = source[: source.index("<main>")]
    assert opening.index("60%") < opening.index("5%")
    assert "1,000 people" in opening
    assert source.count("60% of people in the wrong cell</text>") == 2  # both layouts
    assert "the truth, which nobody sees" in source
    assert "<script" not in source


def test_table_says_among_how_many_cells_a_person_is_hidden(source):
    cells = re.findall(r'data-name="cells">([\d,]+)<', source)
    assert cells == ["1,234", "7"]


def assert_numbers_are_named(page, width):
    """Check that each number has its heading above it, or on phones before it."""
    head = page.locator(".cards thead")
    assert (head.bounding_box()["height"] > 10) is (width > 640)
    cell = page.locator(".cards td.number").first
    label = cell.evaluate("(cell) => getComputedStyle(cell, '::before').content")
    assert label == ('"cells"' if width < 640 else "none")


@pytest.mark.parametrize("width", [390, 1400])
def test_page_fits_and_is_accessible(source, browser, tmp_path, width):
    file = tmp_path / "demo.html"
    file.write_text(source, encoding="utf-8")
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(file.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert_numbers_are_named(page, width)
    assert accessibility_violations(page) == []
