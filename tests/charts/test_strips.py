"""Strips and large heat maps: runs are where the numbers are, and the picture stays small."""

import re
import xml.etree.ElementTree as ET

import pytest

from sfumato.charts import HeatMap, Square
from sfumato.charts.drawing import Drawing
from sfumato.charts.palette import FIXED
from sfumato.charts.strips import (
    ColourRun,
    Span,
    Strip,
    StripChart,
    draw_runs,
    label_stride,
    number_labels,
    scale_colour,
)

SVG = "{http://www.w3.org/2000/svg}"
STRIPS = StripChart(
    "Channel",
    (
        Strip("park", (ColourRun(0, 0.5, 1.0), ColourRun(0.5, 1, 0.0))),
        Strip("clinic", (ColourRun(0, 0.5, 0.5), ColourRun(0.5, 1, None))),
    ),
    (Span(0, 0.5, 0), Span(0.5, 1, 1)),
    "two reports",
    scale_ends=("rarely", "often"),
)


def parse(chart, width=820.0):
    return ET.fromstring(chart.to_svg(width, palette=FIXED))  # noqa: S314 - our own text


def texts(root):
    return [element.text for element in root.iter(f"{SVG}text")]


def runs_drawn(root):
    """Return the start, the end and the row's middle of each run, by colour."""
    found = {}
    for path in root.iter(f"{SVG}path"):
        x = y = 0.0
        for command, numbers in re.findall(r"([Mmh])([-\d. ]+)", path.get("d")):
            values = [float(number) for number in numbers.split()]
            if command == "M":
                x, y = values
            elif command == "m":
                x += values[0]
            else:
                found.setdefault(path.get("stroke"), []).append((x, x + values[0], y))
                x += values[0]
    return found


@pytest.mark.parametrize("width", [340, 820])
def test_runs_are_where_their_numbers_are(width):
    drawn = runs_drawn(parse(STRIPS, width))
    assert {colour: len(runs) for colour, runs in drawn.items()} == {
        FIXED["map6"]: 1,
        FIXED["map0"]: 1,
        FIXED["map3"]: 1,
        FIXED["noise"]: 1,
    }
    (left, middle, first_row) = drawn[FIXED["map6"]][0]
    assert drawn[FIXED["map0"]][0] == (middle, pytest.approx(width, abs=0.11), first_row)
    assert drawn[FIXED["map3"]][0][:2] == (left, middle)
    assert drawn[FIXED["noise"]][0][2] > first_row
    assert middle == pytest.approx((left + width) / 2, abs=0.2)


def test_labels_and_the_scale_are_written():
    assert texts(parse(STRIPS)) == [
        "two reports", "park", "clinic", "park", "clinic", "rarely", "often",
    ]  # fmt: skip


def test_labels_that_do_not_fit_are_numbers():
    long = "a label that is far too long for a quarter of the width"
    chart = StripChart(
        "x",
        (Strip(long, (ColourRun(0, 1, 1.0),)), Strip("b", (ColourRun(0, 1, 0.0),))),
        (Span(0, 0.9, 0), Span(0.9, 1, 1)),
    )
    numbers_and_rows = texts(parse(chart, 340))
    assert numbers_and_rows[:2] == ["1", "2"]
    assert numbers_and_rows[2].startswith("1 a lab")
    assert numbers_and_rows[3] == "2 b"


def test_short_labels_stay_as_they_are():
    assert number_labels(["0", "1"], 100) == (["0", "1"], ["0", "1"])
    assert number_labels(["no", "yes"], 100) == (["1 no", "2 yes"], ["1", "2"])


def test_neighbours_of_the_same_colour_are_one_run():
    drawing = Drawing(100, FIXED)
    row = [(0.0, 10.04, "map1"), (10.04, 20.0, "map1"), (20.0, 20.01, "map2"), (20.0, 30.0, "map3")]
    draw_runs(drawing, [row], 0, 20)
    drawn = runs_drawn(ET.fromstring(drawing.to_svg(20, "x")))  # noqa: S314 - our own text
    assert drawn == {FIXED["map1"]: [(0, 20, 10)], FIXED["map3"]: [(20, 30, 10)]}


def test_most_frequent_colour_of_low_rows_is_a_background():
    rows = [[(0.0, 1.0, "map0"), (1.0, 2.0, "map1"), (2.0, 3.0, "map0")]] * 4
    drawing = Drawing(3, FIXED)
    draw_runs(drawing, rows, 0, 2)
    svg = drawing.to_svg(8, "x")
    assert svg.count("<rect") == 1
    assert FIXED["map0"] in svg.partition("<rect")[2].partition("/>")[0]
    assert svg.count("<path") == 1
    holes = Drawing(3, FIXED)
    draw_runs(holes, [*rows, rows[0][:2]], 0, 2)
    assert "<rect" not in holes.to_svg(8, "x")


@pytest.mark.parametrize(
    ("strength", "colour"),
    [(None, "noise"), (0.0, "map0"), (0.14, "map0"), (0.15, "map1"), (1.0, "map6")],
)
def test_colours_follow_the_strength(strength, colour):
    assert scale_colour("map", strength) == colour


@pytest.mark.parametrize(("count", "height", "stride"), [(8, 30, 1), (30, 8, 3), (256, 1.5, 22)])
def test_about_twelve_labels_if_there_is_no_room_for_all(count, height, stride):
    assert label_stride(count, height) == stride


def test_text_for_terminals_fits_its_width():
    assert STRIPS.to_text(18).splitlines() == ["  park  █████", "clinic  ▒▒▒▒▒"]


# --- heat maps ------------------------------------------------------------------------------------


def heat_map(labels):
    rows = []
    for x in range(len(labels)):
        squares = [Square(None if x == x2 else 0.5, "0.5") for x2 in range(len(labels))]
        rows.append(tuple(squares))
    return HeatMap("x", tuple(labels), tuple(rows))


def test_large_heat_maps_are_small_pictures():
    chart = heat_map([str(x) for x in range(256)])
    svg = chart.to_svg(390, palette=FIXED)
    assert len(svg) < 10_000
    diagonal = runs_drawn(parse(chart, 390))[FIXED["noise"]]
    assert len(diagonal) == 256
    starts = [start for start, _, _ in diagonal]
    assert starts == sorted(starts)
    rows = [y for _, _, y in diagonal]
    assert rows == sorted(rows)


def test_columns_are_numbered_if_their_labels_do_not_fit():
    chart = heat_map(["park", "clinic", "sea"])
    assert texts(parse(chart, 820))[:3] == ["park", "clinic", "sea"]
    written = texts(parse(heat_map([f"condition {x}" for x in range(8)]), 390))
    assert written[:8] == ["1", "2", "3", "4", "5", "6", "7", "8"]
    assert "1 condition 0" in written


@pytest.mark.parametrize(("count", "size"), [(4, "12"), (12, "10"), (20, None)])
def test_texts_are_written_only_if_all_of_them_fit(count, size):
    root = parse(heat_map([str(x) for x in range(count)]), 254)
    sizes = {
        element.get("font-size") for element in root.iter(f"{SVG}text") if element.text == "0.5"
    }
    assert sizes == ({size} if size else set())
