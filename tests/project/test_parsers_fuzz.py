"""Whatever a file or a body holds, a parser reads it or raises an error of ours, and no error holds what it read.

One target for each parser. Surveys and uploads have closer looks of their own in ``test_survey_fuzz.py`` and
``aggregator/test_batches.py``; here every parser meets the same kinds of damage: noise, and good bytes of which a few
were changed, taken out, put in or repeated.
"""

import io
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
from sfumato.tables.answers import AnswerColumns, answer_batches
from support.error_text import full_error_text

FUZZ = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
CANARY = "kanarienvogel"  # stands only where people's values stand
SURVEY = sf.Survey("lunch", sf.Uniform(["park", "café", "clinic"], 1))
OPEN = sf.Survey("lunch", sf.Uniform(sf.Domain(["park", "café"], other="else"), 1))
NUMBERS = np.array([0, 2, 1, 2] * 5, dtype=np.uint32)
URL = "http://127.0.0.1:1"
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
    write_outbox(str(folder / "outbox"), SURVEY.fingerprint, URL, [NUMBERS], batch_size=8)
    return (folder / "outbox").read_bytes()


def _saved_tally(folder):
    SURVEY.mechanism.tally(NUMBERS).save(folder / "tally.npz")
    return (folder / "tally.npz").read_bytes()


def _sent_outbox(path):
    outbox = Outbox(str(path), SURVEY.fingerprint, URL)
    try:
        return list(outbox.batches())
    finally:
        outbox.close()


def _answers(path):
    return list(answer_batches(str(path), AnswerColumns(value="place"), SURVEY.context.domain))


def _open_answers(path):
    return list(answer_batches(str(path), AnswerColumns(value="place"), OPEN.context.domain))


def _positions(path):
    return list(
        answer_batches(str(path), AnswerColumns(None, "lat", "lon"), sf.GridDomain(0, 4, 0, 4, 1))
    )


def _in_bytes(read):
    return lambda path: read(path.read_bytes())


SENT = TallyExport(bytes(16), sf.Tally(np.array([1, 0, 5]), SURVEY.fingerprint))
REPORTS = f"report@{SURVEY.fingerprint}#{bytes(16).hex()}\n" + "\n".join(map(str, NUMBERS)) + "\n"
BATCH = Batch(bytes(range(16)), SURVEY.fingerprint, NUMBERS)
PLACES = ["park", "café", CANARY, "clinic"]


def _not_utf8(value, kind):
    """A column of one value that no codec can read, in a file that says it is text."""
    held = value.encode() + b"\xff"
    ends = np.array([0, len(held)], np.int32 if kind == pa.string() else np.int64)
    return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(ends), pa.py_buffer(held)])


PARSERS = {
    "survey TOML": ("s.toml", lambda _: TOML.encode(), sf.Survey.load),
    "resolved survey": ("s.json", lambda _: SURVEY.resolved(), sf.Survey.load),
    "labels beside a survey": (
        "l.csv",
        lambda _: b"place,city\npark,Rome\nbar,Oslo\n",
        lambda p: read_columns(p, "labels"),
    ),
    "matrix beside a survey": (
        "m.csv",
        lambda _: b",a,b\na,0,1\nb,inf,0\n",
        lambda p: read_matrix(p, "matrix"),
    ),
    "answers in CSV": (
        "a.csv",
        lambda _: ("place\n" + "\n".join(PLACES) + "\n").encode(),
        _answers,
    ),
    "answers in CSV, with other": (
        "a.csv",
        lambda _: ("place\n" + "\n".join(PLACES) + "\n").encode(),
        _open_answers,
    ),
    "answers in Parquet": ("a.parquet", lambda _: _parquet(place=PLACES), _answers),
    "positions in CSV": ("p.csv", lambda _: b"lat,lon\n1.5,2\n0,0.25\n3.99,1e0\n", _positions),
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
        lambda _: tally_to_json(SENT),
        lambda path: count_files([str(path)], SURVEY),
    ),
    "saved tally": ("t.npz", _saved_tally, sf.Tally.load),
    "JSON batch": ("b.json", lambda _: to_json(BATCH), _in_bytes(parse_batch)),
    "Arrow batch": ("b.arrow", lambda _: to_arrow(BATCH), _in_bytes(parse_arrow_batch)),
    "tally in a body": ("t.json", lambda _: tally_to_json(SENT), _in_bytes(parse_tally)),
    "outbox": ("o.parquet", _outbox, _sent_outbox),
}
SHOWING = {
    "labels beside a survey",
    "matrix beside a survey",
    "survey TOML",
}  # what a designer typed may be named

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


def _changed(body, changes):
    for how, where, size, piece in changes:
        i = int(where * len(body))
        pieces = {
            "set": body[:i] + piece + body[i + len(piece) :],
            "flip": body[:i] + bytes([body[i] ^ (1 << size % 8)]) + body[i + 1 :] if body else body,
            "delete": body[:i] + body[i + size :],
            "insert": body[:i] + piece + body[i:],
            "repeat": body[: i + size] + body[i:],
            "cut": body[:i],
        }
        body = pieces[how]
    return body


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    return {name: make(tmp_path_factory.mktemp("good")) for name, (_, make, _) in PARSERS.items()}


def _read(name, body, folder: Path):
    """What a parser makes of these bytes: ``None`` if it refuses. Any error but ours is the test's failure."""
    file, _, read = PARSERS[name]
    (folder / file).write_bytes(body)
    try:
        return read(folder / file)
    except SfumatoError as error:
        if name not in SHOWING:
            assert CANARY not in full_error_text(error)
        return None


REFUSED_AS_THEY_ARE = {
    "answers in CSV",
    "answers in Parquet",
}  # they hold the canary, which is no label


@pytest.mark.parametrize("name", PARSERS)
def test_the_good_bytes_are_read(name, good, folder):
    """The twin: what is changed below would be read if nothing were changed."""
    assert (_read(name, good[name], folder) is None) == (name in REFUSED_AS_THEY_ARE)


UNREADABLE = {
    "no header, and not UTF-8": ("answers in CSV", f"{CANARY}\xff\n".encode("latin-1")),
    "no header, and a stray quotation mark": ("answers in CSV", f'"{CANARY}"x,y\n'.encode()),
    "no header": ("answers in CSV", f"{CANARY}\npark\n".encode()),
    "no header, and its value twice": ("answers in CSV", f"{CANARY},{CANARY}\n".encode()),
    "a value is not UTF-8": ("answers in CSV", f"place\n{CANARY}\xff\n".encode("latin-1")),
    "a row is too long": ("answers in CSV", f"place,age\n{CANARY},{CANARY},{CANARY}\n".encode()),
    "a position is no number": ("positions in CSV", f"lat,lon\n1,{CANARY}\n".encode()),
    "a value in Parquet is not UTF-8": (
        "answers in Parquet",
        _parquet(place=_not_utf8(CANARY, pa.string())),
    ),
    "a large value is not UTF-8": (
        "answers in Parquet",
        _parquet(place=_not_utf8(CANARY, pa.large_string())),
    ),
    "a value is no text": ("answers in Parquet", _parquet(place=[CANARY.encode()])),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_values_that_cannot_be_read_are_in_no_error(name, folder):
    """Neither in ours nor in one that ours was raised in the handling of."""
    parser, body = UNREADABLE[name]
    assert CANARY.encode() in body
    assert _read(parser, body, folder) is None


@pytest.mark.parametrize("name", PARSERS)
@FUZZ
@given(changes=CHANGES)
def test_changed_bytes_are_read_or_refused(name, changes, good, folder):
    _read(name, _changed(good[name], changes), folder)


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
