"""Maps: cells lie where they should, and noise is drawn as noise."""

import base64
import math
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import sfumato as sf
from sfumato.charts.maps import GridShapes, MapChart, MapProjection, OutlineMap, PolygonShapes
from sfumato.charts.outlines import Bounds, nearest_place
from sfumato.estimation.estimate_chart import draw_bars, draw_map
from sfumato.foundation.formatting import format_share
from support.survey_results import simulate_results

SVG = "{http://www.w3.org/2000/svg}"
SHAPES = GridShapes(south=40, west=0, step=1, rows=2, columns=3)


def draw(values, low=None, shapes=SHAPES, **options):
    values = np.array(values, dtype=float)
    low = values / 2 if low is None else np.array(low, dtype=float)
    write = lambda share: format_share(share, 2)  # noqa: E731
    return MapChart("A map", shapes, values, low, 2 * values, write, **options)


def paths(chart, width=300):
    """Return the commands of each colour."""
    root = ET.fromstring(chart.to_svg(width))  # noqa: S314 - our own text
    found = {}
    for path in root.iter(f"{SVG}path"):
        match = re.search(r"--chart-(map\d|noise)", path.get("fill") or "")
        if match:
            found[match[1]] = path.get("d")
    return found


def test_cells_lie_at_their_position():
    """The first cell is in the south-west: at the left of the last row of the picture."""
    commands = paths(draw([1, 0, 0, 0, 0, 0]))
    stretch = 1 / math.cos(math.radians(41))
    (path,) = commands.values()
    left, top, right, bottom = map(
        float, re.fullmatch(r"M([\d.]+) ([\d.]+)H([\d.]+)V([\d.]+)H0.00z", path).groups()
    )
    assert (left, right) == (0, 100)
    assert top == pytest.approx(100 * stretch, abs=0.1)
    assert bottom == pytest.approx(200 * stretch, abs=0.1)


def test_neighbours_of_one_colour_are_one_rectangle():
    (path,) = paths(draw([0.3, 0.3, 0.3, 0, 0, 0])).values()
    assert path.count("M") == 1
    assert "H300.00" in path


def test_cells_that_may_be_empty_have_the_colour_of_noise():
    chart = draw([0.4, 0.3, 0.2, 0.1, 0, 0], low=[0.2, 0, 0.1, 0.05, 0, 0])
    assert chart.steps.tolist() == [6, -1, 3, 0, -2, -2]
    assert set(paths(chart)) == {"map6", "noise", "map3", "map0"}
    assert "may be empty" in chart.to_svg(300)
    assert "may be empty" not in draw([0.4, 0.3, 0.2, 0.1, 0, 0]).to_svg(300)


def test_cells_without_colour_are_explained():
    assert ">zero<" in draw([0.4, 0.3, 0.2, 0.1, 0, 0]).to_svg(300)
    assert ">zero<" not in draw([0.4, 0.3, 0.2, 0.1, 0.1, 0.1]).to_svg(300)


def test_scale_does_not_tell_shares_apart_that_are_smaller_than_their_intervals():
    values = np.array([0.4, 0.2, 0.00002, 0.00001, 0.1, 0.1])
    chart = MapChart("x", SHAPES, values, np.full(6, 0.01), values + 0.05, lambda share: f"{share}")
    assert chart.steps.tolist() == [6, 5, 0, 0, 3, 3]
    smallest = (0.05002 - 0.01) / 2  # half of the narrowest interval with a colour: the third's
    assert f"≤ {100 * smallest:.1f}%" in chart.to_svg(300)
    assert "≤" not in draw([0.4, 0.3, 0.2, 0.1, 0.1, 0.1]).to_svg(300)


def test_maps_with_the_same_scale_have_the_same_colours():
    scale = (0.001, 1.0)
    small = draw([0.01] * 6, scale=scale)
    large = draw([0.01, 0.5, 0.1, 0.1, 0.1, 0.1], scale=scale)
    assert small.steps[0] == large.steps[0]
    assert draw([0.01] * 6).steps[0] != large.steps[0]


def test_a_map_without_people_is_drawn():
    assert paths(draw([0] * 6)) == {}
    assert paths(draw([0.1] * 6, low=[0] * 6)).keys() == {"noise"}


def test_polygons_are_drawn_where_they_are():
    square = ((0.0, 40.0), (1.0, 40.0), (1.0, 41.0), (0.0, 41.0))
    far = ((2.0, 40.0), (3.0, 40.0), (3.0, 42.0), (2.0, 42.0))
    shapes = PolygonShapes((square, far))
    assert shapes.bounds == Bounds(40, 42, 0, 3)
    commands = paths(draw([1.0, 0.0], shapes=shapes))
    (path,) = commands.values()
    assert path.startswith("M0 ") or path.startswith("M0.0 ")
    assert path.endswith("z")


def test_projection_has_equal_scales_in_the_middle():
    projection = MapProjection(Bounds(40, 50, 0, 10), 500)
    horizontal, vertical = projection.pixels_per_degree
    assert horizontal == 50
    assert vertical == pytest.approx(50 / math.cos(math.radians(45)))
    assert projection.place(10, 40) == pytest.approx((500, projection.height))


def test_text_maps_have_north_at_the_top():
    lines = draw([1, 0, 0, 0, 0, 0]).to_text().splitlines()
    assert lines[0].strip() == ""
    assert lines[1].startswith("█")


def test_names_of_places_do_not_cover_each_other():
    """Boxes are estimated in the same way, so compare the texts that are left at two widths."""
    shapes = GridShapes(south=25, west=-130, step=5, rows=5, columns=14)
    chart = draw([0.01] * 70, shapes=shapes)
    names = {
        width: re.findall(r">([A-Z][^<]+)</text>", chart.to_svg(width)) for width in (820, 340)
    }
    assert "New York" in names[820]
    assert len(names[340]) < len(names[820])


def test_cells_are_named_after_a_place_nearby():
    assert nearest_place(-74.2, 40.6, 0.5).name == "New York"
    assert nearest_place(-40, 30, 0.5) is None


# --- maps of estimates ----------------------------------------------------------------------------


def test_estimates_on_a_grid_are_maps_without_other():
    grid = sf.GridDomain(0, 2, 10, 13, 1, other="elsewhere")
    survey = sf.Survey("map", sf.Uniform(grid, 3))
    case = simulate_results(survey, np.arange(7000) % 7)
    chart = case.estimate.plot()
    assert isinstance(chart, MapChart)
    assert chart.shapes == GridShapes(0, 10, 1, 2, 3)
    assert chart.values.tolist() == case.estimate.frequencies[:6].tolist()
    assert chart.low.tolist() == case.estimate.interval()[0][:6].tolist()


def test_huge_maps_merge_cells(monkeypatch):
    monkeypatch.setattr("sfumato.estimation.map_cells._MAX_CELLS", 30)
    grid = sf.GridDomain(0, 10, 0, 10, 1)
    survey = sf.Survey("huge", sf.Uniform(grid, 3))
    case = simulate_results(survey, np.arange(1000) % 100)
    chart = draw_map(case.estimate, grid, case.estimate.interval())
    assert chart.shapes == GridShapes(0, 0, 2, 5, 5)
    assert chart.values.sum() == pytest.approx(1)


def test_h3_cells_are_hexagons():
    h3 = pytest.importorskip("h3")
    centre = h3.latlng_to_cell(52.5, 13.4, 5)
    cells = sorted(h3.grid_disk(centre, 1))
    survey = sf.Survey("hexagons", sf.Uniform(sf.H3Domain(cells), 3))
    case = simulate_results(survey, np.arange(7000) % 7)
    chart = case.estimate.plot()
    assert [len(polygon) for polygon in chart.shapes.polygons] == [6] * 7
    longitude, latitude = chart.shapes.polygons[0][0]
    assert 12 < longitude < 15
    assert 51 < latitude < 54
    svg = chart.to_svg(400)
    assert "Berlin" in svg
    assert svg.count("<title>") == 7
    low = format_share(float(case.estimate.interval()[0][0]), 1)
    assert f"95% interval {low} to " in svg


def test_cells_are_named_by_their_centre():
    """The cell from 40 to 41 degrees holds New York; its corner is nearer to other places."""
    grid = sf.GridDomain(38, 44, -78, -70, 1)
    survey = sf.Survey("homes", sf.Uniform(grid, 3))
    cell = int(grid.symbols_at([40.75], [-73.98])[0])
    bars = draw_bars_of(survey, cell)
    assert bars[0].label.startswith("near New York (40,")


def draw_bars_of(survey, cell):
    case = simulate_results(survey, np.full(5000, cell))
    bounds = case.estimate.interval()
    return draw_bars(case.estimate, survey.context, bounds, 0.95, 1).bars


def test_negative_estimates_stay_negative_on_a_map():
    chart = draw([-0.1, 0.5, 0.2, 0.1, 0.1, 0.2], low=[0] * 6)
    packed = re.search(r'data-cells="([^"]+)"', chart.to_html())[1]
    numbers = np.frombuffer(base64.b64decode(packed), dtype="<f4")
    assert numbers[0] == pytest.approx(-0.1)


def names_in(chart, width):
    """Return the names of places, with how many pixels they are above the lower edge."""
    root = ET.fromstring(chart.to_svg(width))  # noqa: S314 - our own text
    height = float(root.get("viewBox").split()[3])
    return {text.text: height - float(text.get("y")) for text in root.iter(f"{SVG}text")}


@pytest.mark.parametrize("width", [340, 820])
def test_footer_of_an_outline_map_has_no_names(width):
    country = Bounds(25, 50, -130, -60)
    names = names_in(OutlineMap("Outlines", country), width)
    assert min(names.values()) < 18
    with_footer = names_in(OutlineMap("Outlines", country, footer=18), width)
    assert min(with_footer.values()) >= 18
    assert set(with_footer) < set(names)
    assert "New York" in with_footer


def test_maps_are_at_most_twice_as_high_as_wide():
    assert MapProjection(Bounds(-90, 90, 0, 1), 100).height == pytest.approx(200)


def test_maps_without_a_certain_cell_have_no_scale():
    text = draw([0.1] * 6, low=[0] * 6).to_svg(600)
    assert "may be empty" in text
    assert "%</text>" not in text


def test_h3_cells_at_the_date_line_are_next_to_each_other():
    h3 = pytest.importorskip("h3")
    cells = sorted(h3.grid_disk(h3.latlng_to_cell(0, 179.99, 3), 1))
    survey = sf.Survey("pacific", sf.Uniform(sf.H3Domain(cells), 3))
    bounds = simulate_results(survey, np.arange(700) % 7).estimate.plot().shapes.bounds
    assert bounds.east - bounds.west < 10
    assert bounds.west < 180 < bounds.east or bounds.west < -180 < bounds.east
