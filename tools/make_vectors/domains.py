"""Values → symbols: cases where a single letter, a cell border or a type matters."""

import json
from collections.abc import Iterator
from dataclasses import replace
from math import inf, nextafter
from typing import Any

from sfumato.conformance import Case
from sfumato.contexts import Uniform
from sfumato.domains import Domain, GridDomain, IntegerDomain, Label
from sfumato.foundation.canonical import canonical_bytes, fingerprint
from sfumato.mechanisms import PlainResponse
from sfumato.survey import Survey
from tools.make_vectors.case import accept, load, load_request, reject, survey_request

_LABELS: list[Label] = ["park", "café", "Park", " park", "東京", "𝒵oo", 7, "7", -3]
_NEAR_LABELS = ["cafe\u0301", "PARK", "park ", "", "\ud835", 8, -7, 7.5, None, True, False]
_UNKNOWN_LABELS = [[], ["park"], {"park": 1}, "__proto__", "constructor", "0", "elsewhere"]
_CELLS = ["872a10088ffffff", "872a10089ffffff", "872a1008affffff"]
_UNKNOWN_CELLS = ["872A10088FFFFFF", "0x872a10088ffffff", "872a10088fffff", "872a1008bffffff"]


def values() -> Iterator[Case]:
    """Yield values for each kind of domain, with and without ``other``."""
    texts = [*_LABELS, *_NEAR_LABELS, *_UNKNOWN_LABELS]
    yield from _try_values("labels", Domain(_LABELS), texts)
    yield from _try_values("labels with other", Domain(_LABELS, other="elsewhere"), texts)
    rest = Domain(["a", "rest", "b"], other="rest")
    yield from _try_values("labels, other among them", rest, ["a", "b", "rest", "c", None])
    numbers = [-3, -2, 0, 2, 3, 0.5, "0", None, True, 2**53 - 1]
    yield from _try_values("range", IntegerDomain(5, start=-2), numbers)
    far = IntegerDomain(3, start=2**52)
    yield from _try_values("range, far out", far, [2**52 - 1, 2**52, 2**52 + 2, 2**52 + 3])
    yield from _grids()
    yield from _edges_of_the_globe()
    yield from _h3_cells(None)
    yield from _h3_cells("elsewhere")


def _grids() -> Iterator[Case]:
    positions = list(_positions())
    for about, other in {"grid": None, "grid with other": "at sea"}.items():
        grid = GridDomain(25, 50, -130, -60, "0.2", other=other)
        yield from _try_values(about, grid, positions)
    fine = GridDomain("-0.0000004", "0.0000004", 0, "0.0000006", "0.0000002")
    yield from _try_values("fine grid", fine, list(_fine_positions()))
    globe = GridDomain(-90, 90, -180, 180, "22.5")
    latitudes = [[-90, -180], [90, 0], [nextafter(90, 0), 0]]
    longitudes = (180, nextafter(180, 0), 179.99999995, 200, -180.00000004, -180.00000006)
    equator = [[0, longitude] for longitude in longitudes]
    yield from _try_values("the whole globe", globe, latitudes + equator)


def _edges_of_the_globe() -> Iterator[Case]:
    """Yield positions at 90 and ±180 degrees, which format 2 reads in another way than format 1."""
    latitudes = [90, nextafter(90, 0), nextafter(90, 180), 89.9999999, 90.0000001, -90, -90.0000001]
    longitudes = [180, nextafter(180, 0), 179.99999994, 179.99999996, 180.00000004, 180.00000006]
    positions: list[Any] = [[latitude, 0] for latitude in latitudes]
    for longitude in longitudes:
        positions += [[0, longitude], [0, -longitude]]
    positions += [[90, 180], [90, -180], [-90, 180], [90, 200], [200, 180], [None, 180], [90, None]]
    grids = {
        "the whole globe": GridDomain(-90, 90, -180, 180, "22.5"),
        "the whole globe with other": GridDomain(-90, 90, -180, 180, 45, other="nowhere"),
        "the east": GridDomain(0, 90, 0, 180, 30, other="elsewhere"),
        "the west": GridDomain(-90, 0, -180, 0, 30, other="elsewhere"),
        "around Greenwich": GridDomain(-45, 45, -90, 90, 45, other="elsewhere"),
    }
    for about, grid in grids.items():
        for edition in (1, 2):
            name = f"{about}, format {edition}"
            yield from _try_values(name, grid, positions, edition)


def _positions() -> Iterator[list[Any]]:
    """Yield cell borders, positions a ten-millionth or one float away, and invalid positions."""
    for degrees in (25.0, 25.2, 25.6, 30.4, 37.4, 49.8, 50.0):
        for latitude in _nearby(degrees, inf):
            yield [latitude, -129.9]
    for degrees in (-130.0, -129.8, -100.2, -73.4, -60.2, -60.0):
        for longitude in _nearby(degrees, -inf):
            yield [25.1, longitude]
    yield from ([25, -130], [0, 0], [49.99, -60.01], [1e300, -100.0], [30.0, -1e300])
    yield from ([None, -100.0], [30.0, None])


def _nearby(degrees: float, outwards: float) -> Iterator[float]:
    for offset in (0.0, -1e-7, -5e-8, -4e-8, -6e-8, 4e-8):
        yield degrees + offset
    yield nextafter(degrees, 0)
    yield nextafter(degrees, outwards)


def _fine_positions() -> Iterator[list[float]]:
    """Yield positions near zero: halves are rounded up, even negative ones."""
    below = (-4.6, -4.5, -4.4, -4, -2.5, -2.4, -2, -1, -0.5, -0.4)
    above = (0.4, 0.5, 1.4, 1.5, 2, 3.4, 3.5, 3.6, 4)
    for units in (*below, 0, *above):
        yield [units * 1e-7, 0.0]
        yield [0.0, units * 1e-7]
    yield [-0.0, -0.0]


def _h3_cells(other: str | None) -> Iterator[Case]:
    """Yield H3 cells, which are looked up as text.

    The survey is built from plain labels, since the H3 library may not be installed.
    """
    labels = Domain(_CELLS, other=other)
    survey = _survey("H3 cells", labels)
    data = json.loads(survey.resolved())
    data["promise"]["context"]["domain"] = {"kind": "h3", "cells": _CELLS, "other": other}
    pin = fingerprint(data["promise"])
    case = load(survey)
    request = load_request(canonical_bytes(data).decode("utf-8"), pin)
    yield replace(case, request=request, answer={"ok": {**case.answer["ok"], "fingerprint": pin}})
    yield from _look_up(
        "H3 cells", labels, pin, [*_CELLS, *_UNKNOWN_CELLS, "", None, 8, "elsewhere"]
    )


def _try_values(
    about: str, domain: Domain, candidates: list[Any], edition: int = 1
) -> Iterator[Case]:
    survey = _survey(about, domain, edition)
    yield load(survey)
    yield from _look_up(about, survey.context.domain, survey.fingerprint, candidates)


def _survey(about: str, domain: Domain, edition: int = 1) -> Survey:
    context = Uniform(domain, 1)
    return Survey(f"values: {about}", context, PlainResponse(context), edition=edition)


def _look_up(about: str, domain: Domain, pin: str, candidates: list[Any]) -> Iterator[Case]:
    for value in candidates:
        symbol = domain.find(value)
        request = survey_request("symbol", pin, value=value)
        if symbol < 0:
            yield reject(about, request, "UnknownValue")
        else:
            yield accept(about, request, symbol=symbol)
