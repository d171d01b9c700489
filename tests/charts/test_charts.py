"""Charts: their marks are where the numbers are, at every width, and all text is escaped."""

import math
import re
import xml.etree.ElementTree as ET

import pytest

from sfumato.charts import (
    Bar,
    BarChart,
    Column,
    ColumnChart,
    Curve,
    CurveChart,
    HeatMap,
    Marker,
    Panel,
    Rule,
    SmallMultiples,
    Square,
    css_variables,
    label_axis,
    linear_axis,
    log_axis,
    time_axis,
)
from sfumato.charts.drawing import fit_text, text_width
from sfumato.charts.palette import DARK, FIXED, LIGHT
from sfumato.errors import InvalidSetting, MissingExtra
from sfumato.foundation.formatting import format_share

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = '</svg><script>alert("1")</script>&'


def write(share):
    return format_share(share, 1)


BARS = (
    Bar("park", 0.5, 0.48, 0.52),
    Bar("clinic", 0.2, 0.15, 0.25, is_accented=True, note="clinic: 20%"),
    Bar("sea", 0.0, 0.0, 0.01),
)
CHART = BarChart("Shares", BARS, write, maximum=0.6)
LINE = ((100.0, 1.0), (10_000.0, 0.1))
CURVES = CurveChart(
    "Error",
    (Curve("a", LINE, is_chosen=True), Curve("b", ((100.0, 3.0), (10_000.0, 0.3)), "accent")),
    log_axis(100, 10_000, lambda x: f"{x:,.0f}", "people"),
    log_axis(0.1, 1, lambda y: f"{y:g}", "error"),
    (Rule(0.5, "goal"),),
    (Marker(1000, 0.3, "here", is_ring=True),),
)
HEAT = HeatMap(
    "Promise",
    ("a", "b"),
    ((Square(None, "–"), Square(0.9, "1", "a against b")), (Square(0.1, "3"), Square(None, "–"))),
    "odds",
)
COLUMNS = ColumnChart(
    "Reports", (Column(0, 10, "first"), Column(3600, 20)), 3600, lambda count: f"{count:.0f}"
)
MULTIPLES = SmallMultiples("Regions", (Panel("north", CHART, "100 reports"), Panel("south", CHART)))
RINGS = BarChart(
    "Rings",
    (Bar("park", 0.3, 0.2, 0.4, ring=0.5), Bar("sea", 0.1, 0.0, 0.2, ring=0.0)),
    write,
    legend=("unbiased", "decoded"),
)
DOTS = CurveChart(
    "Dots",
    (
        Curve(
            "unbiased",
            ((0.0, 0.1), (1.0, 0.2), (2.0, 0.4)),
            band=(((0.0, 0.0), (1.0, 0.1), (2.0, 0.3)), ((0.0, 0.2), (1.0, 0.3), (2.0, 0.5))),
            is_scatter=True,
            notes=("first", "second", "third"),
        ),
        Curve("decoded", ((0.0, 0.15), (1.0, 0.2), (2.0, 0.25)), "ink"),
    ),
    label_axis(["0 to 9", "10.50 to 19.00", HOSTILE], "answer"),
    linear_axis(0, 0.5, write, "share"),
)
ALL = (CHART, CURVES, HEAT, COLUMNS, MULTIPLES, RINGS, DOTS)


def parse(chart, width=820.0):
    return ET.fromstring(chart.to_svg(width))  # noqa: S314 - our own text


def texts(root):
    return [element.text for element in root.iter(f"{SVG}text")]


# --- every chart ----------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [200, 340, 820])
@pytest.mark.parametrize("chart", ALL, ids=lambda chart: type(chart).__name__)
def test_svg_is_valid_and_fits_its_width(chart, width):
    root = parse(chart, width)
    assert root.get("aria-label") == chart.title
    assert root.get("viewBox").split()[2] == str(width)
    for rect in root.iter(f"{SVG}rect"):
        assert float(rect.get("x")) >= -0.1
        assert float(rect.get("x")) + float(rect.get("width")) <= width + 1
        assert float(rect.get("width")) >= 0


@pytest.mark.parametrize("chart", ALL, ids=lambda chart: type(chart).__name__)
def test_text_for_terminals_fits_its_width(chart):
    for line in chart.to_text(60).splitlines():
        assert len(line) <= 60


@pytest.mark.parametrize("chart", ALL, ids=lambda chart: type(chart).__name__)
def test_equal_charts_are_equal_texts(chart):
    assert chart.to_html() == chart.to_html()


@pytest.mark.parametrize("chart", ALL, ids=lambda chart: type(chart).__name__)
def test_notebooks_show_charts_on_light_paper(chart):
    """A dark notebook must not give light text to a chart with light squares."""
    html = chart._repr_html_()
    assert html.startswith('<div style="background:#fff;')
    assert chart.to_svg(palette=FIXED) in html
    assert "currentColor" not in html


def test_pages_get_a_wide_and_a_narrow_layout():
    html = CHART.to_html()
    assert html.count("<svg") == 2
    assert 'class="wide"' in html
    assert 'class="narrow"' in html


def test_gradients_of_different_charts_have_different_ids():
    other = BarChart("Other", BARS, write, maximum=0.7)
    ids = re.findall(r'id="([^"]+)"', CHART.to_html() + other.to_html())
    assert len(ids) == len(set(ids)) == 8
    for name in re.findall(r"url\(#([^)]+)\)", CHART.to_html() + other.to_html()):
        assert name in ids


def test_text_is_escaped():
    chart = BarChart(HOSTILE, (Bar(HOSTILE, 0.5, note=HOSTILE),), write)
    assert "<script" not in chart.to_html()
    root = parse(chart)
    assert root.get("aria-label") == HOSTILE
    assert root.find(f".//{SVG}title").text == HOSTILE


def test_page_colours_can_be_changed_by_a_style_sheet():
    assert "var(--chart-accent," in CHART.to_svg()
    assert "var(" not in CHART.to_svg(palette=FIXED)
    assert set(LIGHT) == set(DARK)
    assert f"--chart-bar: {LIGHT['bar']};" in css_variables(LIGHT)


def _luminance(colour):
    shares = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_have_contrast(colours):
    """WCAG 2.2: 4.5 for text, 3 for marks."""

    def contrast(first, second):
        high, low = sorted(map(_luminance, (colours[first], colours[second])), reverse=True)
        return (high + 0.05) / (low + 0.05)

    assert contrast("ink", "paper") >= 4.5
    assert contrast("faint", "paper") >= 4.5
    for mark in ("bar", "accent"):
        assert contrast(mark, "paper") >= 3
    assert contrast("line", "paper") < 3  # the check can fail


# --- files ----------------------------------------------------------------------------------------


def test_charts_are_saved_as_svg_and_png(tmp_path):
    CHART.save(tmp_path / "a.svg")
    assert "#4f86ad" in (tmp_path / "a.svg").read_text("utf-8")
    pytest.importorskip("resvg_py")
    CHART.save(tmp_path / "a.png", width=340)
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(InvalidSetting, match=r"\.svg or \.png; got a\.gif"):
        CHART.save(tmp_path / "a.gif")


def test_png_without_the_extra_names_it(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "resvg_py", None)
    with pytest.raises(MissingExtra, match=r"pip install .*\[charts\]"):
        CHART.save(tmp_path / "a.png")
    assert not list(tmp_path.iterdir())


# --- bars -----------------------------------------------------------------------------------------


def marks(chart, width, row):
    """Return the solid end, the faded end and the estimate of a bar, on a scale from 0 to 1."""
    root = parse(chart, width)
    rects = list(root.iter(f"{SVG}rect"))
    solid = [rect for rect in rects if not rect.get("fill").startswith("url")][row]
    faded = [rect for rect in rects if rect.get("fill").startswith("url")][row]
    lines = [line for line in root.iter(f"{SVG}line") if line.get("stroke") == "currentColor"]
    grid = [line for line in root.iter(f"{SVG}line") if "line" in line.get("stroke")]
    left = float(grid[0].get("x1"))
    right = float(grid[-1].get("x1"))  # the tick at 0.6
    scale = 0.6 / (right - left)

    def share(x):
        return (x - left) * scale

    solid_end = share(float(solid.get("x")) + float(solid.get("width")))
    faded_end = share(float(faded.get("x")) + float(faded.get("width")))
    return solid_end, faded_end, share(float(lines[row].get("x1")))


@pytest.mark.parametrize("width", [340, 820])
@pytest.mark.parametrize("row", [0, 1])
def test_bars_end_at_their_numbers(width, row):
    bar = BARS[row]
    pixel = 0.6 / 150
    solid_end, faded_end, estimate = marks(CHART, width, row)
    assert solid_end == pytest.approx(bar.low, abs=pixel)
    assert faded_end == pytest.approx(bar.high, abs=pixel)
    assert estimate == pytest.approx(bar.value, abs=pixel)
    assert not math.isclose(solid_end, bar.high, abs_tol=pixel)  # a swap would be noticed


@pytest.mark.parametrize("width", [340, 820])
def test_values_and_intervals_are_written_at_every_width(width):
    written = texts(parse(CHART, width))
    for expected in ("50.0%", "48.0% – 52.0%", "20.0%", "15.0% – 25.0%"):
        assert expected in written


def test_numbers_of_bars_end_in_columns():
    for width in (340, 820):
        root = parse(CHART, width)
        ends = {text.text: text.get("x") for text in root.iter(f"{SVG}text")}
        assert ends["50.0%"] == ends["20.0%"] == ends["0.0%"]
        assert ends["48.0% – 52.0%"] == ends["0.0% – 1.0%"] == str(width)


def test_no_line_of_the_axis_crosses_the_numbers_above_a_bar():
    root = parse(CHART, 340)
    baselines = [
        float(text.get("y")) for text in root.iter(f"{SVG}text") if text.text in "park sea"
    ]
    assert len(baselines) == 2
    for line in root.iter(f"{SVG}line"):
        for baseline in baselines:
            is_above = float(line.get("y2")) <= baseline - 12
            is_below = float(line.get("y1")) >= baseline + 4
            assert is_above or is_below


def test_sensitive_bars_have_the_accent_colour():
    root = parse(CHART)
    fills = [rect.get("fill") for rect in root.iter(f"{SVG}rect")]
    assert sum("--chart-accent" in fill for fill in fills) == 1


def test_long_labels_are_cut_in_the_middle():
    label = "a label that is far too long for any chart, whatever its width: north"
    chart = BarChart("x", (Bar(label, 0.5),), write)
    for width in (340, 820):
        shown = next(text for text in texts(parse(chart, width)) if "…" in text)
        assert shown.startswith("a label")
        assert shown.endswith("north")
    assert text_width(fit_text(label, 100)) <= 100


def test_text_bars_get_lighter_along_the_interval():
    line = CHART.to_text(80).splitlines()[1]
    assert re.search(r"█+▓+▒+░+", line)
    assert "█▓" not in CHART.to_text(80).splitlines()[2]


@pytest.mark.parametrize("width", [340, 820])
def test_rings_are_at_their_numbers(width):
    root = parse(RINGS, width)
    grid = [line for line in root.iter(f"{SVG}line") if "line" in line.get("stroke")]
    left = float(grid[0].get("x1"))
    right = float(grid[-1].get("x1"))
    largest = RINGS.axis.ticks(6 if width > 520 else 3)[-1]
    _, *rings = root.iter(f"{SVG}circle")  # the first is the legend's
    for ring, bar in zip(rings, RINGS.bars, strict=True):
        x = left + bar.ring / largest * (right - left)
        assert float(ring.get("cx")) == pytest.approx(x, abs=0.3)
        assert float(ring.get("cx")) >= float(ring.get("r"))  # drawn whole


def test_axis_reaches_the_last_ring():
    assert RINGS.axis.high == 0.5


def test_rings_are_explained():
    assert {"unbiased", "decoded"} <= set(texts(parse(RINGS, 340)))
    lines = RINGS.to_text(60).splitlines()
    assert lines[-1].endswith("◆ decoded")
    assert "◆" in lines[0]
    assert lines[1].split()[1].startswith("◆")
    assert "◆" not in CHART.to_text(60)


# --- axes -----------------------------------------------------------------------------------------


def test_ticks_are_round():
    assert linear_axis(0, 0.52, write).ticks(5) == pytest.approx([0, 0.2, 0.4])
    ticks = linear_axis(0, 0.015, write).ticks(6)
    assert [write(tick) for tick in ticks] == ["0.0%", "0.5%", "1.0%", "1.5%"]
    assert log_axis(100, 1e6, str).ticks(8) == [100, 1000, 10_000, 100_000, 1_000_000]
    assert log_axis(0.05, 1, str).ticks(5) == pytest.approx([0.05, 0.1, 0.2, 0.5, 1])
    assert linear_axis(0, 1, write).tick_text(0.5) == "50%"


def test_positions_on_axes():
    assert log_axis(1, 100, str).position(10) == pytest.approx(0.5)
    assert linear_axis(2, 4, str).position(9) == 1
    assert linear_axis(3, 3, str).position(3) == 0


def test_times_are_written_as_hours_or_days():
    day = 86_400.0
    short = time_axis(0, day)
    assert [short.write(tick) for tick in short.ticks(4)] == [
        "1 Jan",
        "06:00",
        "12:00",
        "18:00",
        "2 Jan",
    ]
    days = time_axis(0, 3 * day)
    texts_of_days = [days.write(tick) for tick in days.ticks(6)]
    assert len(set(texts_of_days)) >= len(texts_of_days) - 2  # noon may recur
    assert "12:00" in texts_of_days
    long = time_axis(0, 100 * day)
    assert all(":" not in long.write(tick) for tick in long.ticks(5))
    assert len(long.ticks(5)) <= 6


# --- curves ---------------------------------------------------------------------------------------


def test_curves_are_cut_off_at_the_frame():
    """The second curve starts above the axis: it enters where it crosses the edge."""
    lines = list(parse(CURVES).iter(f"{SVG}polyline"))
    first, second = (
        [tuple(map(float, point.split(","))) for point in line.get("points").split()]
        for line in lines
    )
    assert len(second) == 2
    assert second[0][1] == pytest.approx(first[0][1], abs=0.2)  # both at the top edge
    share = (second[0][0] - first[0][0]) / (first[1][0] - first[0][0])
    assert share == pytest.approx(math.log(3) / math.log(10), abs=0.01)


def test_curves_may_leave_the_frame_and_come_back():
    """No line runs along the edge where the curve is outside."""
    points = tuple((x / 4, y) for x, y in enumerate((0.5, 1.5, 1.5, 0.5, 0.5)))
    axes = linear_axis(0, 1, write), linear_axis(0, 1, write)
    root = parse(CurveChart("x", (Curve("a", points),), *axes))
    before, after = [line.get("points").split() for line in root.iter(f"{SVG}polyline")]
    assert len(before) == 2
    assert len(after) == 3
    left, right = (float(point.split(",")[0]) for point in (before[-1], after[0]))
    assert right - left > 300  # of 820 pixels


def test_legend_names_all_curves():
    written = texts(parse(CURVES, 340))
    assert {"a", "b", "goal", "here", "people", "error"} <= set(written)


def test_bands_lie_around_their_curve():
    points = ((0.0, 0.5), (1.0, 0.5))
    band = (((0.0, 0.4), (1.0, 0.4)), ((0.0, 0.7), (1.0, 0.7)))
    axes = linear_axis(0, 1, write), linear_axis(0, 1, write)
    chart = CurveChart("x", (Curve("a", points, band=band),), *axes)
    root = parse(chart)
    curve = next(root.iter(f"{SVG}polyline")).get("points").split()[0].split(",")
    heights = []
    for polygon in root.iter(f"{SVG}polygon"):
        ys = [float(point.split(",")[1]) for point in polygon.get("points").split()]
        assert min(ys) < float(curve[1]) < max(ys)
        heights.append(max(ys) - min(ys))
    assert heights == sorted(heights)
    assert len(heights) == 4


def test_dots_are_at_their_points_with_a_note():
    root = parse(DOTS)
    groups = [group for group in root.iter(f"{SVG}g") if group.find(f"{SVG}circle") is not None]
    assert [group.find(f"{SVG}title").text for group in groups] == ["first", "second", "third"]
    heights = [float(group.find(f"{SVG}circle").get("cy")) for group in groups]
    assert heights[1] - heights[2] == pytest.approx(2 * (heights[0] - heights[1]), abs=0.2)
    (line,) = root.iter(f"{SVG}polyline")  # no line through the dots
    assert line.get("stroke") == "currentColor"
    ends = [float(point.split(",")[0]) for point in line.get("points").split()]
    xs = [float(group.find(f"{SVG}circle").get("cx")) for group in groups]
    assert xs == ends


def test_dots_in_terminals_are_not_joined():
    scatter = CurveChart("x", DOTS.curves[:1], DOTS.x_axis, DOTS.y_axis).to_text(60)
    assert sum("\u2800" < character <= "\u28ff" for character in scatter) == 3


def test_labels_on_an_axis_are_written_as_they_are():
    axis = DOTS.x_axis
    assert axis.ticks(8) == [0, 1, 2]
    assert axis.tick_text(1) == "10.50 to 19.00"  # not without its last zeros
    assert len(axis.tick_text(2)) <= 20
    assert label_axis(range(100)).ticks(8) == [0, 20, 40, 60, 80]


# --- the others -----------------------------------------------------------------------------------


def test_squares_are_coloured_by_strength():
    root = parse(HEAT)
    fills = [rect.get("fill") for rect in root.iter(f"{SVG}rect")]
    assert ["noise" in fill for fill in fills] == [True, False, False, True]
    assert "promise4" in fills[1]
    assert "promise0" in fills[2]
    assert "a against b" in [title.text for title in root.iter(f"{SVG}title")]


def test_columns_have_the_height_of_their_numbers():
    first, second = parse(COLUMNS).iter(f"{SVG}rect")
    assert float(second.get("height")) == pytest.approx(2 * float(first.get("height")), rel=0.01)
    assert float(second.get("x")) > float(first.get("x")) + float(first.get("width"))


@pytest.mark.parametrize("width", [340, 820])
def test_days_are_written_below_the_middle_of_their_columns(width):
    day = 86_400.0
    columns = tuple(Column(index * day, 10) for index in range(14))
    root = parse(ColumnChart("x", columns, day, lambda count: f"{count:.0f}"), width)
    rects = list(root.iter(f"{SVG}rect"))
    middles = [float(rect.get("x")) + float(rect.get("width")) / 2 for rect in rects]
    days = {}
    for text in root.iter(f"{SVG}text"):
        if text.text.endswith("Jan"):
            days[int(text.text.split()[0]) - 1] = float(text.get("x"))
    assert 3 <= len(days) <= 14
    for index, x in days.items():
        assert x == pytest.approx(middles[index], abs=0.2)  # each name belongs to a column
    assert middles[0] < 120  # no empty days before the first
    assert middles[-1] > width - 60


@pytest.mark.parametrize(("width", "row_count"), [(820, 1), (340, 2)])
def test_panels_are_side_by_side_if_there_is_room(width, row_count):
    root = parse(MULTIPLES, width)
    panels = root.findall(f"{SVG}g")
    tops = set()
    for panel in panels:
        numbers = re.findall(r"[\d.]+", panel.get("transform") or "translate(0 0)")
        tops.add(float(numbers[-1]))
    assert len(panels) == 2
    assert len(tops) == row_count


def test_labels_that_look_like_parts_of_a_chart_stay_labels():
    for label in ("me@fade-out.org", "<fade>bar", "a\x01b"):
        root = parse(BarChart("x", (Bar(label, 0.5, 0.4, 0.6),), write))
        assert label.replace("\x01", "\ufffd") in texts(root)


def test_small_counts_have_whole_ticks():
    columns = (Column(0, 1), Column(3600, 0))
    chart = ColumnChart("x", columns, 3600, lambda count: f"{count:.0f}")
    numbers = [text for text in texts(parse(chart)) if text.isdecimal()]
    assert len(numbers) == len(set(numbers))


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_numbers_on_squares_have_contrast(colours):
    for step in range(5):
        text = colours["paper" if step >= 3 else "ink"]
        high, low = sorted(map(_luminance, (text, colours[f"promise{step}"])), reverse=True)
        assert (high + 0.05) / (low + 0.05) >= 4.5, step


@pytest.mark.parametrize("width", [340, 820])
def test_title_of_the_y_axis_stands_above_the_top_number(width):
    root = ET.fromstring(CURVES.to_svg(width))  # noqa: S314 - our own text
    baseline_of = {text.text: float(text.get("y")) for text in root.iter(f"{SVG}text")}
    assert baseline_of["1"] - baseline_of["error"] >= 18  # 12 pixels of text, and some air
