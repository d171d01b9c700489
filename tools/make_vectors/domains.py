"""Values → symbols: where a letter, an edge or a type decides."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import nextafter
from typing import Any

from sfumato.conformance import Case
from sfumato.contexts import Uniform
from sfumato.domains import Domain, GridDomain, IntegerDomain
from sfumato.foundation.canonical import canonical_bytes, fingerprint
from sfumato.mechanisms import PlainResponse
from sfumato.survey import Survey
from tools.make_vectors.case import accept, load, refuse

__all__ = ["values"]

_LABELS = ["park", "café", "Park", " park", "東京", "𝒵oo", 7, "7", -3]
_TEXTS = [
    *_LABELS,
    "cafe\u0301",
    "PARK",
    "park ",
    "",
    "\ud835",
    8,
    -7,
    7.5,
    None,
    True,
    False,
    [],
    ["park"],
    {"park": 1},
    "__proto__",
    "constructor",
    "0",
]
_CELLS = ["872a10088ffffff", "872a10089ffffff", "872a1008affffff"]
_INDICES = [
    *_CELLS,
    "872A10088FFFFFF",
    "0x872a10088ffffff",
    "872a10088fffff",
    "872a1008bffffff",
    "",
    None,
    8,
]


def values() -> Iterator[Case]:
    """Values of each kind of domain, with and without ``other``."""
    yield from _try_values("labels", Domain(_LABELS), [*_TEXTS, "elsewhere"])
    yield from _try_values(
        "labels with other", Domain(_LABELS, other="elsewhere"), [*_TEXTS, "elsewhere"]
    )
    yield from _try_values(
        "labels, other among them",
        Domain(["a", "rest", "b"], other="rest"),
        ["a", "b", "rest", "c", None],
    )
    yield from _try_values(
        "range", IntegerDomain(5, start=-2), [-3, -2, 0, 2, 3, 0.5, "0", None, True, 2**53 - 1]
    )
    far = IntegerDomain(3, start=2**52)
    yield from _try_values("range, far out", far, [2**52 - 1, 2**52, 2**52 + 2, 2**52 + 3])
    for other in (None, "at sea"):
        named = "grid" if other is None else "grid with other"
        yield from _try_values(
            named, GridDomain(25, 50, -130, -60, "0.2", other=other), list(_positions())
        )
    yield from _try_values(
        "fine grid",
        GridDomain("-0.0000004", "0.0000004", 0, "0.0000006", "0.0000002"),
        list(_fine()),
    )
    whole = GridDomain(-90, 90, -180, 180, "22.5")
    poles = [
        (-90, -180),
        (90, 0),
        (nextafter(90, 0), 0),
        (0, 180),
        (0, nextafter(180, 0)),
        (0, 179.99999995),
        (0, 200),
    ]
    yield from _try_values(
        "the whole globe", whole, [*map(list, poles), [0, -180.00000004], [0, -180.00000006]]
    )
    yield from _h3_cells(None)
    yield from _h3_cells("elsewhere")


def _positions() -> Iterator[list[Any]]:
    """Yield corners of cells, positions a ten-millionth or one float off, and no position."""
    for degrees in (25.0, 25.2, 25.6, 30.4, 37.4, 49.8, 50.0):
        nearby = [
            degrees,
            degrees - 1e-7,
            degrees - 5e-8,
            degrees - 4e-8,
            degrees - 6e-8,
            degrees + 4e-8,
        ]
        for latitude in [*nearby, nextafter(degrees, 0), nextafter(degrees, 100)]:
            yield [latitude, -129.9]
    for degrees in (-130.0, -129.8, -100.2, -73.4, -60.2, -60.0):
        nearby = [
            degrees,
            degrees - 1e-7,
            degrees - 5e-8,
            degrees - 4e-8,
            degrees - 6e-8,
            degrees + 4e-8,
        ]
        for longitude in [*nearby, nextafter(degrees, 0), nextafter(degrees, -200)]:
            yield [25.1, longitude]
    yield from (
        [25, -130],
        [0, 0],
        [49.99, -60.01],
        [1e300, -100.0],
        [30.0, -1e300],
        [None, -100.0],
        [30.0, None],
    )


def _fine() -> Iterator[list[float]]:
    """Around zero, where rounding has a side: a half goes up, below zero too."""
    for units in (
        -4.6,
        -4.5,
        -4.4,
        -4,
        -2.5,
        -2.4,
        -2,
        -1,
        -0.5,
        -0.4,
        0,
        0.4,
        0.5,
        1.4,
        1.5,
        2,
        3.4,
        3.5,
        3.6,
        4,
    ):
        yield [units * 1e-7, 0.0]
        yield [0.0, units * 1e-7]
    yield [-0.0, -0.0]


def _h3_cells(other: str | None) -> Iterator[Case]:
    """Cells are looked up as text, so they are made of labels here: the library for them may not be installed."""
    labels = Domain(_CELLS, other=other)
    survey = Survey("values: H3 cells", Uniform(labels, 1), PlainResponse(Uniform(labels, 1)))
    data = json.loads(survey.resolved())
    data["promise"]["context"]["domain"] = {"kind": "h3", "cells": _CELLS, "other": other}
    pin = fingerprint(data["promise"])
    case = load(survey)
    request = {**case.request, "fingerprint": pin, "text": canonical_bytes(data).decode("utf-8")}
    yield replace(case, request=request, answer={"ok": {**case.answer["ok"], "fingerprint": pin}})
    yield from _look_up("H3 cells", labels, pin, [*_INDICES, "elsewhere"])


def _try_values(about: str, domain: Domain, tried: Sequence[Any]) -> Iterator[Case]:
    survey = Survey(f"values: {about}", Uniform(domain, 1), PlainResponse(Uniform(domain, 1)))
    yield load(survey)
    yield from _look_up(about, domain, survey.fingerprint, tried)


def _look_up(about: str, domain: Domain, pin: str, tried: Sequence[Any]) -> Iterator[Case]:
    for value in tried:
        symbol = domain.find(value)
        request = {"op": "symbol", "survey": pin, "value": value}
        if symbol < 0:
            yield refuse(about, request, "UnknownValue")
        else:
            yield accept(about, request, {"symbol": symbol})
