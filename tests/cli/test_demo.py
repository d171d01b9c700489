"""`demo`: one page, one table, three promises as maps."""

import re

import pytest

from sfumato.cli.demo import make_promises
from sfumato.contexts import Blocks
from sfumato.domains.partitions import nearest_places
from sfumato.paper.population import american_places, map_grid
from support.command import read_folder, run_process


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    return folder, run_process("demo", "-o", "page.html", cwd=folder)


def test_demo_writes_only_its_page(demo):
    folder, run = demo
    assert (run.returncode, run.stderr) == (0, b"")
    assert [path.name for path in read_folder(folder)] == ["page.html"]
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert page.lstrip().lower().startswith("<!doctype html")
    assert len(page.encode()) < 3e6


def test_page_shows_the_maps_with_their_errors(demo):
    folder, run = demo
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert page.count("of people in the wrong cell</text>") == 6  # for desktops and for phones
    errors = re.findall(r"│\s*(0\.\d{3})\s*│", run.stdout.decode())
    percentages = list(map(float, re.findall(r">(\d+)% of people in the wrong cell<", page)))
    assert percentages[:3] == percentages[3:]
    for percentage, error in zip(percentages, errors, strict=False):
        assert abs(percentage - 100 * float(error)) <= 0.55
    for name in ("New York", "Los Angeles"):
        assert f">{name}</text>" in page


def test_demo_names_its_source_and_page(demo):
    text = demo[1].stdout.decode()
    assert "GeoNames (CC BY 4.0)" in text
    assert "1,000,000 people" in text
    assert "page.html" in text


def test_weaker_promises_have_smaller_errors(demo):
    errors = [
        float(number)
        for number in re.findall(r"│\s*(0\.\d{3}|1\.\d{3})\s*│", demo[1].stdout.decode())
    ]
    assert len(errors) == 3
    classical, tiles, towns = errors
    assert classical > tiles > 0
    assert classical > towns > 0


def test_no_report_reveals_a_cell():
    grid = map_grid()
    for _, context in make_promises(grid).values():
        assert context.sizes.min() >= 4
    largest = american_places().largest(1750)  # neighbours in a large city leave each other no room
    block_of = nearest_places(grid, largest.latitudes, largest.longitudes)
    assert (Blocks(block_of, 1, domain=grid).sizes == 1).sum() > 100


def test_unwritable_output_is_rejected_first(error_from):
    assert "no folder" in error_from("demo", "-o", "no/page.html")
