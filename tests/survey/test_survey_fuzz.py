"""Whatever stands in a file, only errors of ours escape, and what is read says what was written."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfumato.contexts import Blocks, HighLow, PrivacyMatrix, Uniform
from sfumato.domains import Domain, GridDomain
from sfumato.errors import SfumatoError
from sfumato.survey import Survey
from sfumato.survey.toml.file import parse_survey_toml

SURVEYS = [
    Survey("q", Uniform(Domain(["park", "café"], other="else"), 1)),
    Survey("q", HighLow(["a", "b", "c"], ["b"], "0.1")),
    Survey("q", Blocks([0, 0, 1, 2, 2, 2], 1), repeat={"every": "week", "distinct": 3}),
    Survey("q", PrivacyMatrix([[0, "inf"], [1, 0]])),
    Survey("q", Uniform(GridDomain(0, 2, 0, 2, 1), 1)),
]
# Numbers between these would allocate that much memory; other tests cover such files.
NUMBERS = st.integers(-1000, 1000) | st.integers(2**52, 2**70) | st.integers(-(2**70), -(2**52))
LEAVES = st.none() | st.booleans() | NUMBERS | st.floats() | st.text(max_size=8)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
)
FEW = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def _read(raw):
    """The survey that a file holds, or nothing; any error but ours is the test's failure."""
    try:
        survey = Survey.from_resolved(raw)
    except SfumatoError:
        return
    assert raw in (survey.resolved(), survey.resolved() + b"\n")


def _places(data, path=()):
    yield path
    pairs = (
        data.items()
        if isinstance(data, dict)
        else enumerate(data)
        if isinstance(data, list)
        else ()
    )
    for step, inside in pairs:
        yield from _places(inside, (*path, step))


def _replaced(data, path, value):
    if not path:
        return value
    changed = dict(data) if isinstance(data, dict) else list(data)
    changed[path[0]] = _replaced(data[path[0]], path[1:], value)
    return changed


@FEW
@given(st.binary(max_size=200))
def test_any_bytes(raw):
    _read(raw)


@FEW
@given(st.sampled_from(SURVEYS), st.data())
def test_changed_bytes(survey, data):
    raw = bytearray(survey.resolved())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    _read(bytes(raw))


@FEW
@given(st.sampled_from(SURVEYS), st.data())
def test_changed_values(survey, data):
    record = json.loads(survey.resolved())
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from(list(_places(record))))
        record = _replaced(record, path, data.draw(VALUES))
    _read(
        json.dumps(
            record, sort_keys=True, separators=(",", ":"), ensure_ascii=data.draw(st.booleans())
        ).encode(errors="replace")
    )


@FEW
@given(st.sampled_from(SURVEYS), st.data())
def test_parts_of_other_surveys(survey, data):
    """Every part is right, but not here."""
    record, other = (
        json.loads(each.resolved()) for each in (survey, data.draw(st.sampled_from(SURVEYS)))
    )
    path = data.draw(st.sampled_from([path for path in _places(record) if path]))
    source = data.draw(st.sampled_from(list(_places(other))))
    value = other
    for step in source:
        value = value[step]
    _read(
        json.dumps(
            _replaced(record, path, value),
            sort_keys=True,
            separators=(",", ":"),
            ensure_ascii=False,
        ).encode()
    )


# --- TOML -----------------------------------------------------------------------------------------

WORDS = st.sampled_from(
    [
        "name", "title", "text", "minimum_reports", "repeat", "domain", "context", "mechanism",
        "kind", "labels",
        "file", "other", "size", "start", "south", "north", "west", "east", "step", "resolution",
        "epsilon",
        "sensitive", "rows", "columns", "parents", "nearest", "column", "block_of", "distances",
        "matrix", "code",
        "max_bits", "uniform", "high-low", "blocks", "metric", "range", "grid", "best", "hadamard",
        "every",
        "distinct", "week", "once", "a", "b", "inf", "nan",
    ]
)  # fmt: skip
TOML_LEAVES = st.one_of(
    WORDS.map(json.dumps),
    st.integers(-50, 50).map(str),
    st.integers(2**62, 2**70).map(str),
    st.floats(-100, 100).map(repr),
    st.sampled_from(
        ["inf", "-inf", "nan", "true", "2026-01-01", "1e400", "1e99999999999999999999", '""', "''"]
    ),
    st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "Z"]), max_size=5).map(
        json.dumps
    ),
)
TOML_VALUES = st.recursive(
    TOML_LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        st.dictionaries(WORDS.filter(str.isidentifier), inner, max_size=2).map(
            lambda pairs: "{" + ", ".join(f"{key} = {value}" for key, value in pairs.items()) + "}"
        ),
    ),
    max_leaves=6,
)
LINES = st.dictionaries(WORDS.filter(str.isidentifier), TOML_VALUES, max_size=5).map(
    lambda pairs: "\n".join(f"{key} = {value}" for key, value in pairs.items())
)
DOMAINS = st.sampled_from(
    [
        'kind = "labels"\nlabels = ["a", "b"]',
        'kind = "range"\nsize = 3',
        'kind = "grid"\nsouth=0\nnorth=2\nwest=0\neast=2\nstep=1',
    ]
)
CONTEXTS = st.sampled_from(
    [f'kind = "{kind}"\nepsilon = 1' for kind in ("uniform", "high-low", "blocks", "metric")]
    + ['kind = "matrix"']
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Nothing is in it."""
    return tmp_path_factory.mktemp("surveys")


def _described(text: str | bytes, folder: Path):
    try:
        _ = parse_survey_toml(
            text.encode(errors="replace") if isinstance(text, str) else text, folder
        ).mechanism
    except SfumatoError as refused:
        assert str(refused).strip()


@FEW
@given(raw=st.binary(max_size=200))
def test_any_bytes_as_toml(raw, folder):
    _described(raw, folder)


@FEW
@given(text=st.text(max_size=200))
def test_any_text_as_toml(text, folder):
    _described(text, folder)


@settings(FEW, max_examples=400)
@given(
    head=LINES,
    domain=DOMAINS | LINES,
    more=LINES,
    context=CONTEXTS | LINES,
    last=LINES,
    mechanism=LINES,
)
def test_strange_surveys(head, domain, more, context, last, mechanism, folder):
    name = "" if "name = " in head else 'name = "q"'
    text = f"{name}\n{head}\n[domain]\n{domain}\n{more}\n[context]\n{context}\n{last}\n"
    _described(text + (f"[mechanism]\n{mechanism}\n" if mechanism else ""), folder)
