"""The outlines of land, countries and states, and the names of large places, for maps.

The data ships with the package, so that a map needs no network. ``tools/make_outlines.py`` made it
from Natural Earth.
"""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import groupby, pairwise

from sfumato.errors import InvalidArgument

__all__ = [
    "CREDIT",
    "Bounds",
    "Outlines",
    "Place",
    "largest_places",
    "nearest_place",
    "outlines_within",
]

CREDIT = "Natural Earth, public domain"
"""Where the outlines and the names come from."""

Point = tuple[float, float]
Line = tuple[Point, ...]

_TURN = 360.0
_EXTENT = 191.0  # the world is less wide than twice this: some land crosses the date line
_SOUTH_POLE = -90.0


@dataclass(frozen=True)
class Bounds:
    """A rectangle of a map, in degrees. It may cross the date line: from 170 to 190, say."""

    south: float
    north: float
    west: float
    east: float

    def __post_init__(self) -> None:
        if not (self.south < self.north and self.west < self.east):
            raise InvalidArgument(
                "A map needs south < north and west < east, "
                f"got {self.south:g} to {self.north:g} and {self.west:g} to {self.east:g}."
            )

    def contains(self, longitude: float, latitude: float) -> bool:
        """Return whether a position is within the rectangle or on its edge."""
        return self.south <= latitude <= self.north and self.west <= longitude <= self.east

    def shift(self, degrees: float) -> "Bounds":
        """Return the rectangle as many degrees further east."""
        return Bounds(self.south, self.north, self.west + degrees, self.east + degrees)


@dataclass(frozen=True)
class Place:
    """A city or town."""

    name: str
    latitude: float
    longitude: float


@dataclass(frozen=True)
class Outlines:
    """Lines on a map. Every point is a (longitude, latitude).

    ``land`` and ``lakes`` are areas to fill, ``land`` first; the last point is not repeated, and
    their edges include parts of the edge of the map. ``coasts`` are the lines around both,
    ``borders`` are those between countries, and ``states`` those between the states of the United
    States, Canada, Brazil and Australia.
    """

    land: tuple[Line, ...]
    lakes: tuple[Line, ...]
    coasts: tuple[Line, ...]
    borders: tuple[Line, ...]
    states: tuple[Line, ...]


@lru_cache(maxsize=8)  # a page lays out each map twice
def outlines_within(bounds: Bounds) -> Outlines:
    """Return the outlines within a rectangle. A line that leaves it ends at its edge."""
    world = _world().outlines
    return Outlines(
        land=_clip_areas(world.land, bounds),
        lakes=_clip_areas(world.lakes, bounds),
        coasts=_clip_lines(world.coasts, bounds),
        borders=_clip_lines(world.borders, bounds),
        states=_clip_lines(world.states, bounds),
    )


def largest_places(bounds: Bounds, count: int, spacing: float = 0.08) -> list[Place]:
    """Return at most ``count`` places within a rectangle, the largest one first.

    A place is left out if it is too close to a larger one: closer than ``spacing``, as a fraction
    of the width of the map.
    """
    degree_width = math.cos(math.radians((bounds.south + bounds.north) / 2))
    min_distance = spacing * (bounds.east - bounds.west) * degree_width
    chosen: list[Place] = []
    positions: list[Point] = []
    for place in _places_within(bounds):
        if len(chosen) >= count:
            break
        position = (place.longitude * degree_width, place.latitude)
        if all(math.dist(position, other) >= min_distance for other in positions):
            chosen.append(place)
            positions.append(position)
    return chosen


def nearest_place(longitude: float, latitude: float, max_distance: float) -> Place | None:
    """Return the nearest place within ``max_distance`` degrees of latitude, or ``None``.

    Distances are measured as if the earth were flat there.
    """
    degree_width = math.cos(math.radians(latitude))
    nearest = None
    for place in _world().places:
        east = (place.longitude - longitude) * degree_width
        distance = math.hypot(east, place.latitude - latitude)
        if distance <= max_distance:
            max_distance = distance
            nearest = place
    return nearest


def _places_within(bounds: Bounds) -> Iterator[Place]:
    turns = _turns(bounds)
    for place in _world().places:
        for turn in turns:
            if bounds.contains(place.longitude + turn, place.latitude):
                yield Place(place.name, place.latitude, place.longitude + turn)


# --- clipping ------------------------------------------------------------------------------------


def _turns(bounds: Bounds) -> list[float]:
    """Return by how many degrees to move the world east, so that it covers the rectangle."""
    return [
        turn
        for turn in (-_TURN, 0.0, _TURN)
        if bounds.west < turn + _EXTENT and bounds.east > turn - _EXTENT
    ]


def _move(points: Iterable[Point], degrees: float) -> Line:
    return tuple((longitude + degrees, latitude) for longitude, latitude in points)


def _clip_lines(lines: Iterable[Line], bounds: Bounds) -> tuple[Line, ...]:
    pieces: list[Line] = []
    for turn in _turns(bounds):
        near_bounds = bounds.shift(-turn)
        for line in lines:
            pieces += [_move(piece, turn) for piece in _clip_line(line, near_bounds)]
    return tuple(pieces)


def _clip_line(line: Line, bounds: Bounds) -> Iterator[list[Point]]:
    """Yield the pieces of a line that are within a rectangle."""
    piece: list[Point] = []
    for start, end in pairwise(line):
        segment = _clip_segment(start, end, bounds)
        if segment is None:
            continue
        if piece and piece[-1] != segment[0]:
            yield piece
            piece = []
        if not piece:
            piece.append(segment[0])
        piece.append(segment[1])
    if piece:
        yield piece


def _clip_segment(start: Point, end: Point, bounds: Bounds) -> tuple[Point, Point] | None:
    """Return the part of a segment that is within a rectangle (Liang and Barsky)."""
    x, y = start
    width = end[0] - x
    height = end[1] - y
    first = 0.0  # the part of the segment that is within, as fractions of its length
    last = 1.0
    for step, distance in (
        (-width, x - bounds.west),
        (width, bounds.east - x),
        (-height, y - bounds.south),
        (height, bounds.north - y),
    ):
        if step < 0:
            first = max(first, distance / step)
        elif step > 0:
            last = min(last, distance / step)
        elif distance < 0:
            return None
    if first >= last:
        return None
    new_start = start if first == 0 else _clamp(x + first * width, y + first * height, bounds)
    new_end = end if last == 1 else _clamp(x + last * width, y + last * height, bounds)
    return new_start, new_end


def _clamp(x: float, y: float, bounds: Bounds) -> Point:
    """Undo the rounding that moved a point off the edge."""
    return min(max(x, bounds.west), bounds.east), min(max(y, bounds.south), bounds.north)


def _clip_areas(areas: Iterable[Line], bounds: Bounds) -> tuple[Line, ...]:
    pieces: list[Line] = []
    for turn in _turns(bounds):
        near_bounds = bounds.shift(-turn)
        for area in areas:
            piece = _clip_area(area, near_bounds)
            if piece:
                pieces.append(_move(piece, turn))
    return tuple(pieces)


def _clip_area(area: Line, bounds: Bounds) -> Sequence[Point]:
    """Return the part of an area that is within a rectangle (Sutherland and Hodgman)."""
    points: Sequence[Point] = area
    for axis, sign, limit in (
        (0, 1, bounds.west),
        (0, -1, bounds.east),
        (1, 1, bounds.south),
        (1, -1, bounds.north),
    ):
        points = _cut_area(points, axis, sign, limit)
    return points


def _cut_area(points: Sequence[Point], axis: int, sign: int, limit: float) -> list[Point]:
    """Return the part of an area on one side of a line."""
    result: list[Point] = []
    for index, point in enumerate(points):
        last_point = points[index - 1]
        is_within = sign * (point[axis] - limit) >= 0
        if is_within != (sign * (last_point[axis] - limit) >= 0):
            result.append(_crossing(last_point, point, axis, limit))
        if is_within:
            result.append(point)
    return result


def _crossing(start: Point, end: Point, axis: int, limit: float) -> Point:
    """Return where a segment crosses a line."""
    other = 1 - axis
    fraction = (limit - start[axis]) / (end[axis] - start[axis])
    value = start[other] + fraction * (end[other] - start[other])
    return (limit, value) if axis == 0 else (value, limit)


# --- the data file -------------------------------------------------------------------------------


@dataclass(frozen=True)
class _World:
    outlines: Outlines
    places: tuple[Place, ...]  # the largest one first


@cache
def _world() -> _World:
    """Read the data file."""
    content = json.loads(files("sfumato.charts").joinpath("outlines.json").read_text("utf-8"))
    code = _Code(content["alphabet"], content["last_digits"], content["steps_per_degree"])
    land = [code.decode_line(text) for text in content["land"]]
    lakes = [code.decode_line(text) for text in content["lakes"]]
    coasts = [coast for ring in (*land, *lakes) for coast in _coasts_of(ring)]
    outlines = Outlines(
        land=tuple(ring[:-1] for ring in land),
        lakes=tuple(ring[:-1] for ring in lakes),
        coasts=tuple(coasts),
        borders=tuple(code.decode_line(text) for text in content["borders"]),
        states=tuple(code.decode_line(text) for text in content["states"]),
    )
    places = [
        Place(name, y / code.steps_per_degree, x / code.steps_per_degree)
        for name, x, y in content["places"]
    ]
    return _World(outlines, tuple(places))


def _coasts_of(ring: Line) -> Iterator[Line]:
    """Yield a closed line, but not its way to the South Pole and back, which is no coast."""
    for is_coast, group in groupby(ring, key=lambda point: point[1] > _SOUTH_POLE):
        points = tuple(group)
        if is_coast and len(points) > 1:
            yield points


@dataclass(frozen=True)
class _Code:
    """How the data file writes lines: as the differences between points, in whole steps.

    The last digit of a number is one of the first characters of the alphabet. The others are digits
    before it. The codes 0, 2, 4 stand for 0, 1, 2, and the codes 1, 3, 5 for −1, −2, −3.
    """

    alphabet: str
    last_digits: int
    steps_per_degree: int

    def decode_line(self, text: str) -> Line:
        """Return the points of a line."""
        steps = list(self._decode_numbers(text))
        points: list[Point] = []
        x = 0
        y = 0
        for step_x, step_y in zip(steps[::2], steps[1::2], strict=True):
            x += step_x
            y += step_y
            points.append((x / self.steps_per_degree, y / self.steps_per_degree))
        return tuple(points)

    def _decode_numbers(self, text: str) -> Iterator[int]:
        digits = {character: digit for digit, character in enumerate(self.alphabet)}
        base = len(self.alphabet) - self.last_digits
        rest = 0
        for character in text:
            digit = digits[character]
            if digit >= self.last_digits:
                rest = rest * base + digit - self.last_digits + 1
                continue
            code = rest * self.last_digits + digit
            yield code // 2 if code % 2 == 0 else -(code + 1) // 2
            rest = 0
