"""The outlines on maps: known facts of geography, exact clipping, and the script that made them."""

import copy
import json
import math
from importlib.resources import files
from itertools import pairwise

import pytest

from sfumato.charts import outlines as module
from sfumato.charts.outlines import CREDIT, Bounds, largest_places, outlines_within
from sfumato.errors import InvalidArgument
from tools import make_outlines

UNITED_STATES = Bounds(25, 50, -130, -60)
FRANCE = Bounds(42, 51.1, -5, 8.3)
WORLD = Bounds(-90, 90, -180, 180)
KINDS = ("land", "lakes", "coasts", "borders", "states")
MAX_FILE_SIZE = 100_000

SOME_BOUNDS = [
    UNITED_STATES,
    FRANCE,
    WORLD,
    Bounds(47.3, 55.1, 5.9, 15.1),
    Bounds(60.01, 71.97, 170.03, 199.99),  # across the date line
    Bounds(-90, 90, 0, 360),
    Bounds(70, 90, -180, 180),
    Bounds(-90, -60, -180, 180),
    Bounds(-100, 100, -200, 200),
]


def lines_of(bounds, *kinds):
    outlines = outlines_within(bounds)
    return [line for kind in kinds for line in getattr(outlines, kind)]


def all_within(lines, bounds):
    return all(bounds.contains(*point) for line in lines for point in line)


def is_inside(point, polygon):
    """Count the edges to the east of a point."""
    x, y = point
    inside = False
    for (x1, y1), (x2, y2) in pairwise([*polygon, polygon[0]]):
        if (y1 > y) != (y2 > y) and x < x1 + (x2 - x1) * (y - y1) / (y2 - y1):
            inside = not inside
    return inside


def area(polygon):
    edges = pairwise([*polygon, polygon[0]])
    return abs(sum(x1 * y2 - x2 * y1 for (x1, y1), (x2, y2) in edges)) / 2


def distance(point, lines):
    return min(math.dist(point, other) for line in lines for other in line)


def names(bounds, count, **options):
    return [place.name for place in largest_places(bounds, count, **options)]


# --- the file ------------------------------------------------------------------------------------


def test_the_file_is_small_and_gives_credit():
    text = files("sfumato.charts").joinpath("outlines.json").read_text("utf-8")
    assert len(text.encode()) <= MAX_FILE_SIZE
    assert json.loads(text)["credit"] == CREDIT


def test_the_file_and_the_script_agree_on_the_code():
    content = json.loads(files("sfumato.charts").joinpath("outlines.json").read_text("utf-8"))
    assert content["alphabet"] == make_outlines.ALPHABET
    assert content["last_digits"] == make_outlines.LAST_DIGITS
    assert content["steps_per_degree"] == make_outlines.STEPS_PER_DEGREE


def test_no_line_jumps_across_the_map():
    # The longest straight line is the border along the 49th parallel.
    lines = lines_of(WORLD, "coasts", "borders", "states")
    longest = max(abs(start[0] - end[0]) for line in lines for start, end in pairwise(line))
    assert 27 < longest < 28


# --- geography -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "point",
    [(2.35, 48.86), (-105, 39.7), (37.6, 55.75), (149.1, -35.3), (178, -17.8), (0, -89)],
    ids=["Paris", "Denver", "Moscow", "Canberra", "Fiji", "South Pole"],
)
def test_land_is_land(point):
    assert sum(is_inside(point, polygon) for polygon in outlines_within(WORLD).land) == 1


@pytest.mark.parametrize("point", [(-40, 30), (3.5, 56), (-150, 0), (0, 89)])
def test_sea_is_not_land(point):
    assert not any(is_inside(point, polygon) for polygon in outlines_within(WORLD).land)


@pytest.mark.parametrize("point", [(-87.5, 47.7), (51, 42), (33, -1)])
def test_lake_superior_the_caspian_sea_and_lake_victoria_are_lakes(point):
    assert any(is_inside(point, polygon) for polygon in outlines_within(WORLD).lakes)


def test_borders_are_where_they_are():
    borders = outlines_within(WORLD).borders
    assert distance((7.58, 47.58), borders) < 0.1  # France, Germany and Switzerland
    assert distance((-95.15, 49.0), borders) < 0.05  # the end of the 49th parallel
    assert distance((2.35, 48.86), borders) > 1  # Paris


def test_four_states_meet_in_one_corner():
    states = outlines_within(UNITED_STATES).states
    assert distance((-109.05, 37.0), states) < 0.03
    assert outlines_within(FRANCE).states == ()


def test_the_middle_of_an_ocean_is_empty():
    bounds = Bounds(-55, -45, -130, -115)
    assert not lines_of(bounds, *KINDS)
    assert largest_places(bounds, 10) == []


def test_the_middle_of_a_continent_is_land_and_nothing_else():
    outlines = outlines_within(Bounds(51, 52, 97, 98.5))
    assert [area(polygon) for polygon in outlines.land] == [1.5]
    assert outlines.coasts == outlines.states == ()


# --- clipping ------------------------------------------------------------------------------------


@pytest.mark.parametrize("bounds", SOME_BOUNDS, ids=str)
def test_everything_stays_within_the_bounds(bounds):
    lines = lines_of(bounds, *KINDS)
    assert lines
    assert all_within(lines, bounds)
    assert all(len(line) >= 2 for line in lines)
    assert all(len(polygon) >= 3 for polygon in lines_of(bounds, "land", "lakes"))


def test_the_check_notices_lines_that_were_not_clipped():
    assert not all_within(lines_of(WORLD, "borders"), FRANCE)


def test_a_line_is_split_where_it_leaves_the_bounds():
    line = ((0.0, 0.0), (4.0, 0.0), (4.0, 2.0), (0.0, 2.0))
    pieces = list(module._clip_line(line, Bounds(-1, 3, -1, 2)))
    assert pieces == [[(0.0, 0.0), (2.0, 0.0)], [(2.0, 2.0), (0.0, 2.0)]]


def test_a_segment_may_cross_the_bounds_without_a_point_inside():
    line = ((-10.0, 1.0), (10.0, 1.0))
    assert list(module._clip_line(line, Bounds(0, 2, 3, 5))) == [[(3.0, 1.0), (5.0, 1.0)]]
    assert list(module._clip_line(line, Bounds(2, 3, 3, 5))) == []


def test_an_area_is_closed_along_the_edge_of_the_bounds():
    square = ((0.0, 0.0), (4.0, 0.0), (4.0, 4.0), (0.0, 4.0))
    piece = module._clip_area(square, Bounds(1, 3, 2, 9))
    assert sorted(piece) == [(2.0, 1.0), (2.0, 3.0), (4.0, 1.0), (4.0, 3.0)]
    assert area(piece) == 4


def test_lines_that_are_cut_reach_the_edge():
    bounds = Bounds(40, 45, -100, -90)
    ends = [line[index] for line in outlines_within(bounds).states for index in (0, -1)]
    assert {bounds.west, bounds.east} < {longitude for longitude, _ in ends}
    assert {bounds.south, bounds.north} < {latitude for _, latitude in ends}


def test_halves_have_the_same_area_as_the_whole():
    def land_area(*parts):
        return sum(area(polygon) for part in parts for polygon in outlines_within(part).land)

    west = Bounds(-90, 90, -180, 10.5)
    east = Bounds(-90, 90, 10.5, 180)
    assert land_area(west, east) == pytest.approx(land_area(WORLD))
    assert land_area(Bounds(-90, 90, 0, 360)) == pytest.approx(land_area(WORLD))


def test_a_map_may_cross_the_date_line():
    bounds = Bounds(60, 72, 170, 200)
    coasts = outlines_within(bounds).coasts
    longitudes = {longitude for line in coasts for longitude, _ in line}
    assert min(longitudes) < 175
    assert max(longitudes) > 195
    segments = [segment for line in coasts for segment in pairwise(line)]
    assert not any(start[0] == end[0] == 180 for start, end in segments)
    moved_coasts = outlines_within(bounds.shift(-360)).coasts
    assert sum(map(len, moved_coasts)) == sum(map(len, coasts))


def test_the_pole_is_no_coast():
    antarctica = outlines_within(Bounds(-90, -60, -180, 180))
    assert min(latitude for line in antarctica.land for _, latitude in line) == -90
    assert min(latitude for line in antarctica.coasts for _, latitude in line) > -87


@pytest.mark.parametrize("values", [(1, 1, 0, 5), (2, 1, 0, 5), (0, 1, 5, 5), (0, 1, math.nan, 5)])
def test_bounds_have_an_extent(values):
    with pytest.raises(InvalidArgument, match="south < north and west < east"):
        Bounds(*values)


# --- places --------------------------------------------------------------------------------------


def test_paris_is_the_largest_place_in_france():
    [place] = largest_places(FRANCE, 1)
    assert place.name == "Paris"
    assert math.dist((place.longitude, place.latitude), (2.35, 48.86)) < 0.1


def test_the_largest_places_of_the_united_states():
    assert names(UNITED_STATES, 4) == ["New York", "Los Angeles", "Chicago", "Miami"]


def test_places_are_spread_out():
    places = largest_places(UNITED_STATES, 40, spacing=0.1)
    scale = math.cos(math.radians(37.5))
    positions = [(place.longitude * scale, place.latitude) for place in places]
    closest = min(math.dist(a, b) for a in positions for b in positions if a != b)
    assert closest >= 0.1 * 70 * scale
    assert "Philadelphia" not in names(UNITED_STATES, 40, spacing=0.1)
    assert "Philadelphia" in names(UNITED_STATES, 40, spacing=0)


def test_places_are_within_the_bounds():
    for bounds in SOME_BOUNDS:
        places = largest_places(bounds, 50)
        assert all(bounds.contains(place.longitude, place.latitude) for place in places)
    assert largest_places(WORLD, 0) == []


def test_a_place_may_lie_beyond_the_date_line():
    [suva] = largest_places(Bounds(-20, -16, -184, -175), 1)
    assert suva.name == "Suva"
    assert suva.longitude == pytest.approx(178.44 - 360, abs=0.01)


# --- the script ----------------------------------------------------------------------------------

# Two squares side by side. The middle of their common border is on a straight line.
SQUARES = {
    "transform": {"scale": [0.1, 0.1], "translate": [0, 0]},
    "arcs": [
        [[100, 0], [0, 50], [0, 50]],
        [[100, 100], [-100, 0], [0, -100], [100, 0]],
        [[100, 0], [100, 0], [0, 100], [-100, 0]],
        [[20, 20], [20, 0], [0, 20], [-20, 0], [0, -20]],
    ],
    "objects": {
        "countries": {
            "geometries": [
                {"type": "Polygon", "arcs": [[0, 1]]},
                {"type": "MultiPolygon", "arcs": [[[2, ~0]]]},
            ]
        },
        "land": {"geometries": [{"type": "MultiPolygon", "arcs": [[[3], [2, 1]]]}]},
        "lakes": {"geometries": [{"type": "Polygon", "arcs": []}]},
        "subunits": {"geometries": []},
    },
}
TABLE = (
    "\nCOPY t (name, adm0_a3, adm0cap, scalerank, pop_max, longitude, latitude) FROM stdin;\n"
    "Suburb\tA\t0\t7\t900000\t5.1\t5\n"
    "Town\tA\t0\t1\t200000\t8\t5\n"
    "Village\tA\t0\t1\t20000\t9\t5\n"
    "City\tA\t0\t1\t800000\t5\t5\n"
    "Capital\tB\t1\t1\t10000\t15\t5\n"
    "\\.\n\n"
)


def two_states():
    """Return the two squares as states of one country."""
    topology = copy.deepcopy(SQUARES)
    topology["objects"]["subunits"] = topology["objects"]["countries"]
    topology["objects"]["countries"] = {"geometries": [{"type": "Polygon", "arcs": [[2, 1]]}]}
    return topology


def decode(content, kind):
    code = module._Code(content["alphabet"], content["last_digits"], content["steps_per_degree"])
    return [code.decode_line(text) for text in content[kind]]


def test_the_script_makes_the_expected_file():
    text = make_outlines.build(SQUARES, two_states(), TABLE)
    content = json.loads(text)
    assert content["credit"] == CREDIT
    assert decode(content, "land") == [
        ((10, 0), (20, 0), (20, 10), (10, 10), (0, 10), (0, 0), (10, 0))
    ]
    assert decode(content, "lakes") == [((2, 2), (4, 2), (4, 4), (2, 4), (2, 2))]
    assert decode(content, "borders") == [((10, 0), (10, 10))]
    assert decode(content, "states") == [((10, 0), (10, 10))]
    assert content["places"] == [["City", 500, 500], ["Town", 800, 500], ["Capital", 1500, 500]]
    assert '\n"borders":[\n"dg3!!dg3"],\n' in text
    assert text == make_outlines.build(copy.deepcopy(SQUARES), two_states(), TABLE)


def test_a_bend_in_the_border_appears_in_the_file():
    bent = copy.deepcopy(SQUARES)
    bent["arcs"][0] = [[100, 0], [10, 50], [-10, 50]]
    content = json.loads(make_outlines.build(bent, two_states(), TABLE))
    assert decode(content, "borders") == [((10, 0), (11, 5), (10, 10))]


def test_arcs_that_do_not_meet_are_refused():
    torn = copy.deepcopy(SQUARES)
    torn["arcs"][0] = [[100, 0], [0, 50], [0, 49]]
    with pytest.raises(ValueError, match="Arc 1 does not start where the one before it ends"):
        make_outlines.build(torn, two_states(), TABLE)


def test_a_ring_that_is_not_closed_is_refused():
    torn = copy.deepcopy(SQUARES)
    torn["arcs"][3][-1] = [0, -19]
    with pytest.raises(ValueError, match="starts with arc 3 is not closed"):
        make_outlines.build(torn, two_states(), TABLE)


def test_another_package_is_refused(tmp_path):
    (tmp_path / make_outlines.COUNTRY_PACKAGE).write_bytes(b"something else")
    with pytest.raises(ValueError, match="Run npm pack again"):
        make_outlines.read_package(
            tmp_path, make_outlines.COUNTRY_PACKAGE, make_outlines.COUNTRY_FILE
        )


@pytest.mark.parametrize("number", [0, 1, -1, 31, 32, -32, -33, 895, 896, 897, 18_000, -18_000])
def test_numbers_survive_the_code(number):
    text = make_outlines.encode_number(number)
    code = module._Code(make_outlines.ALPHABET, make_outlines.LAST_DIGITS, 1)
    assert list(code._decode_numbers(text)) == [number]


def test_small_numbers_need_one_character():
    assert max(len(make_outlines.encode_number(number)) for number in range(-32, 32)) == 1
    assert max(len(make_outlines.encode_number(number)) for number in range(-18_000, 18_001)) == 3


def test_the_least_important_points_go_first():
    # The two bends have triangles of 0.5 and 0.01 square degrees. Outside Europe and the United
    # States, 0.025 are needed.
    line = [(100.0, 0.0), (101.0, 0.5), (102.0, 0.0), (103.0, 0.01), (104.0, 0.0)]
    assert make_outlines.simplify(line) == [line[0], line[1], line[2], line[4]]


def test_a_small_island_stays_an_island():
    ring = [(100.0, 0.0), (100.01, 0.0), (100.01, 0.01), (100.0, 0.01), (100.0, 0.0)]
    assert len(make_outlines.simplify(ring)) == 4


def test_lines_that_meet_become_one():
    lines = [[(0, 0), (1, 0)], [(2, 0), (1, 0)], [(5, 5), (6, 6)]]
    joined_lines = make_outlines.join_lines(lines)
    assert sorted(map(sorted, joined_lines)) == [[(0, 0), (1, 0), (2, 0)], [(5, 5), (6, 6)]]


def test_a_ring_across_the_date_line_has_no_jump():
    ring = [(179.0, 0.0), (-179.0, 0.0), (-179.0, 1.0), (179.0, 1.0), (179.0, 0.0)]
    assert make_outlines.unwrap(ring) == [(179, 0), (181, 0), (181, 1), (179, 1), (179, 0)]


def test_a_ring_around_the_south_pole_gets_the_pole():
    ring = [(0.0, -70.0), (120.0, -70.0), (-120.0, -70.0), (0.0, -70.0)]
    points = make_outlines.unwrap(ring)
    assert points == [
        (-120, -70),
        (0, -70),
        (120, -70),
        (240, -70),
        (240, -90),
        (-120, -90),
        points[0],
    ]
