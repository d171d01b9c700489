"""Parsers accept any bytes or raise a SfumatoError, and no error contains what they read.

Here every parser gets the same damage: noise, and valid bytes with a few changes.
`tests/survey/test_survey_fuzz.py` and `tests/batches` examine surveys and uploads more closely.
"""

import io
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.batches import (
    Batch,
    TallyExport,
    UploadRules,
    parse_arrow_batch,
    parse_batch,
    parse_tally,
    tally_to_json,
    to_arrow,
    to_json,
)
from sfumato.client.outbox import Outbox, write_outbox
from sfumato.errors import SfumatoError
from sfumato.survey.toml.companion_files import read_columns, read_matrix
from sfumato.tables import count_files
from sfumato.tables.answers import AnswerColumns, RowCounter, answer_batches
from support.error_text import full_error_text

FUZZ = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
CANARY = "kanarienvogel"  # occurs only among people's values
SURVEY = sf.Survey("lunch", sf.Uniform(["park", "café", "clinic"], 1))
OPEN = sf.Survey("lunch", sf.Uniform(sf.Domain(["park", "café"], other="else"), 1))
NUMBERS = np.array([0, 2, 1, 2] * 5, dtype=np.uint32)
URL = "http://127.0.0.1:1"
RULES = UploadRules.from_survey(SURVEY)
TOML = """name = "lunch"
[domain]
kind = "labels"
labels = ["park", "café", "clinic"]
[context]
kind = "high-low"
sensitive = ["clinic"]
epsilon = 1.0
"""


def _parquet(metadata=None, **columns):
    sink = io.BytesIO()
    pa.parquet.write_table(pa.table(columns).replace_schema_metadata(metadata), sink)
    return sink.getvalue()


def _outbox(folder):
    write_outbox(str(folder / "outbox"), RULES, URL, [NUMBERS], batch_size=8)
    return (folder / "outbox").read_bytes()


def _saved_tally(folder):
    SURVEY.mechanism.tally(NUMBERS).save(folder / "tally.npz")
    return (folder / "tally.npz").read_bytes()


def _read_outbox(path):
    outbox = Outbox(str(path), RULES, URL)
    try:
        return list(outbox.batches())
    finally:
        outbox.close()


def _read_places(survey, path):
    """Read a column of answers, and check the counts as commands do."""
    domain = survey.context.domain
    columns = AnswerColumns(value="place")
    counter = RowCounter(domain, columns)
    batches = list(answer_batches(str(path), columns, domain))
    for batch in batches:
        counter.add(str(path), batch.counts)
    counter.check()
    return batches


_read_answers = partial(_read_places, SURVEY)
_read_answers_with_other = partial(_read_places, OPEN)


def _read_positions(path):
    return list(
        answer_batches(str(path), AnswerColumns(None, "lat", "lon"), sf.GridDomain(0, 4, 0, 4, 1))
    )


def _read_bytes(read):
    return lambda path: read(path.read_bytes())


EXPORT = TallyExport.from_tally(bytes(16), sf.Tally(np.array([1, 0, 5]), SURVEY.fingerprint))
REPORTS = f"report@{SURVEY.fingerprint}#{bytes(16).hex()}\n" + "\n".join(map(str, NUMBERS)) + "\n"
BATCH = Batch(bytes(range(16)), SURVEY.fingerprint, NUMBERS, edition=SURVEY.edition)
PLACES = ["park", "café", CANARY, "clinic"]


def _not_utf8(value, kind):
    """Return a text column with one value that is not valid UTF-8."""
    content = value.encode() + b"\xff"
    ends = np.array([0, len(content)], np.int32 if kind == pa.string() else np.int64)
    return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(ends), pa.py_buffer(content)])


PARSERS = {
    "survey TOML": ("s.toml", lambda _: TOML.encode(), sf.Survey.load),
    "resolved survey": ("s.json", lambda _: SURVEY.resolved(), sf.Survey.load),
    "labels next to a survey": (
        "l.csv",
        lambda _: b"place,city\npark,Rome\nbar,Oslo\n",
        lambda p: read_columns(p, "labels"),
    ),
    "matrix next to a survey": (
        "m.csv",
        lambda _: b",a,b\na,0,1\nb,inf,0\n",
        lambda p: read_matrix(p, "matrix"),
    ),
    "answers in CSV": (
        "a.csv",
        lambda _: ("place\n" + "\n".join(PLACES) + "\n").encode(),
        _read_answers,
    ),
    "answers in CSV, with other": (
        "a.csv",
        lambda _: ("place\n" + "\n".join(PLACES) + "\n").encode(),
        _read_answers_with_other,
    ),
    "answers in Parquet": ("a.parquet", lambda _: _parquet(place=PLACES), _read_answers),
    "positions in CSV": ("p.csv", lambda _: b"lat,lon\n1.5,2\n0,0.25\n3.99,1e0\n", _read_positions),
    "reports in CSV": (
        "r.csv",
        lambda _: REPORTS.encode(),
        lambda path: count_files([str(path)], SURVEY),
    ),
    "reports in Parquet": (
        "r.parquet",
        lambda _: _parquet({"sfumato.survey": SURVEY.fingerprint}, report=NUMBERS),
        lambda path: count_files([str(path)], SURVEY),
    ),
    "exported tally": (
        "t.json",
        lambda _: tally_to_json(EXPORT),
        lambda path: count_files([str(path)], SURVEY),
    ),
    "saved tally": ("t.npz", _saved_tally, sf.Tally.load),
    "JSON batch": (
        "b.json",
        lambda _: to_json(BATCH),
        _read_bytes(partial(parse_batch, rules=RULES)),
    ),
    "Arrow batch": (
        "b.arrow",
        lambda _: to_arrow(BATCH),
        _read_bytes(partial(parse_arrow_batch, rules=RULES)),
    ),
    "tally in a body": ("t.json", lambda _: tally_to_json(EXPORT), _read_bytes(parse_tally)),
    "outbox": ("o.parquet", _outbox, _read_outbox),
}
# Errors may quote what a designer typed.
MAY_QUOTE = {"labels next to a survey", "matrix next to a survey", "survey TOML"}

CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["set", "flip", "delete", "insert", "repeat", "cut"]),
        st.floats(0, 1, exclude_max=True),
        st.integers(1, 16),
        st.binary(min_size=1, max_size=6)
        | st.sampled_from([b'"', b",", b"\n", b"\r", b"\x00", b"\xef\xbb\xbf", b"1e9"]),
    ),
    min_size=1,
    max_size=4,
)


def _apply(changes, body):
    for kind, where, size, piece in changes:
        i = int(where * len(body))
        pieces = {
            "set": body[:i] + piece + body[i + len(piece) :],
            "flip": body[:i] + bytes([body[i] ^ (1 << size % 8)]) + body[i + 1 :] if body else body,
            "delete": body[:i] + body[i + size :],
            "insert": body[:i] + piece + body[i:],
            "repeat": body[: i + size] + body[i:],
            "cut": body[:i],
        }
        body = pieces[kind]
    return body


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    return {name: make(tmp_path_factory.mktemp("good")) for name, (_, make, _) in PARSERS.items()}


def _read(name, body, folder: Path):
    """Parse bytes; return None if the parser raises a SfumatoError. Other errors fail the test."""
    file, _, read = PARSERS[name]
    (folder / file).write_bytes(body)
    try:
        return read(folder / file)
    except SfumatoError as error:
        if name not in MAY_QUOTE:
            assert CANARY not in full_error_text(error)
        return None


# The canary in these is not a label.
INVALID_UNCHANGED = {"answers in CSV", "answers in Parquet"}


@pytest.mark.parametrize("name", PARSERS)
def test_unchanged_bytes_are_read(name, good, folder):
    assert (_read(name, good[name], folder) is None) == (name in INVALID_UNCHANGED)


UNREADABLE = {
    "no header, not UTF-8": ("answers in CSV", f"{CANARY}\xff\n".encode("latin-1")),
    "no header, stray quotation mark": ("answers in CSV", f'"{CANARY}"x,y\n'.encode()),
    "no header": ("answers in CSV", f"{CANARY}\npark\n".encode()),
    "no header, duplicate value": ("answers in CSV", f"{CANARY},{CANARY}\n".encode()),
    "a value is not UTF-8": ("answers in CSV", f"place\n{CANARY}\xff\n".encode("latin-1")),
    "a row is too long": ("answers in CSV", f"place,age\n{CANARY},{CANARY},{CANARY}\n".encode()),
    "a position is not a number": ("positions in CSV", f"lat,lon\n1,{CANARY}\n".encode()),
    "a value in Parquet is not UTF-8": (
        "answers in Parquet",
        _parquet(place=_not_utf8(CANARY, pa.string())),
    ),
    "a large value is not UTF-8": (
        "answers in Parquet",
        _parquet(place=_not_utf8(CANARY, pa.large_string())),
    ),
    "a value is not text": ("answers in Parquet", _parquet(place=[CANARY.encode()])),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_unreadable_values_are_in_no_error(name, folder):
    """Neither the error nor the errors behind it contain the value."""
    parser, body = UNREADABLE[name]
    assert CANARY.encode() in body
    assert _read(parser, body, folder) is None


@pytest.mark.parametrize("name", PARSERS)
@FUZZ
@given(changes=CHANGES)
def test_changed_bytes_are_read_or_refused(name, changes, good, folder):
    _read(name, _apply(changes, good[name]), folder)


@pytest.mark.parametrize("name", PARSERS)
@FUZZ
@given(body=st.binary(max_size=120))
@example(body=b"")
@example(body=b"\xef\xbb\xbf")
@example(body=b"PAR1PAR1")
@example(body=b"\x1f\x8b")
@example(body=b"[" * 5000)
def test_noise_is_read_or_refused(name, body, folder):
    _read(name, body, folder)
