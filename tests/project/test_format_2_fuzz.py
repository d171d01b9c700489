"""Format 2 is either refused with the documented error, or it is canonical.

Each target makes inputs from a seed, by a grammar or by damage to valid bytes, and checks whatever
its parser accepts: written again, it must be the same bytes. `make test` tries about 1,500 inputs,
`make test-slow` 75,000. The last tests plant faults in the parsers, and the same fuzz finds them.
"""

import base64
import json
import re
import traceback
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.batches import (
    Batch,
    TallyExport,
    UploadRules,
    arrow_format,
    parse_arrow_batch,
    parse_batch,
    parse_tally,
    tally_to_json,
    to_arrow,
    to_json,
)
from sfumato.cells import CellKey, TallyCells
from sfumato.errors import (
    InvalidBatch,
    InvalidSurvey,
    InvalidTally,
    PrivacyViolation,
    ReportRejected,
    WrongSurvey,
)
from sfumato.foundation.canonical import canonical_bytes
from sfumato.foundation.periods import PERIODS, period_name, period_start, recent_period
from sfumato.survey import promise
from sfumato.survey import survey as survey_module
from sfumato.survey.question import Question
from sfumato.tally import Tally

CANARY = "kanarienvogel"
WEEKLY = {"every": "week", "distinct": 2}
SURVEYS = (
    sf.Survey("lunch", sf.Uniform(sf.Domain(["park", "café"], other="else"), 1), edition=2),
    sf.Survey("lunch", sf.HighLow(["a", "b", "c"], ["b"], "0.1"), repeat=WEEKLY, edition=2),
    sf.Survey("lunch", sf.Blocks([0, 0, 1, 2, 2, 2], 1), title="Où ?", edition=2),
    sf.Survey("lunch", sf.PrivacyMatrix([[0, "inf"], [1, 0]]), edition=2),
    sf.Survey("lunch", Question("place", sf.Uniform(sf.GridDomain(0, 2, 0, 2, 1), 1)), edition=2),
)
RECORDS = tuple(json.loads(survey.resolved()) for survey in SURVEYS)
SURVEY = "ab" * 16 + "cd" * 16
ID = bytes(range(16))
REPORTS = np.array([0, 2, 1, 4_000_000_000], dtype=np.uint32)
RULES = tuple(UploadRules(2, SURVEY, 2**32, every) for every in ("", *PERIODS))

# Fields of format 2 that this version cannot act on, repeated here on purpose.
NEUTRAL = {
    "promise": {
        "cap": None, "cohorts": 1, "collection": "plain", "invitations": None, "learn": None,
        "public": [],
    },
    "about": {"texts": {}},
}  # fmt: skip
PROMISE_FIELDS = {
    "format", "mechanism", "mechanism_context", "name", "questions", "repeat", *NEUTRAL["promise"],
}  # fmt: skip
ABOUT_FIELDS = {
    "closes", "contact", "minimum_reports", "opens", "text", "title", "uploads", *NEUTRAL["about"],
}  # fmt: skip
RESERVED_PARTS = ("group", "cohort", "question", "pair", "sender", "key", "missing", "labels")


class Fault(Exception):
    """What the fuzz looks for: a crash, or an accepted input that is not canonical."""


class Target(NamedTuple):
    make: Callable[[Random], Any]
    parse: Callable[[Any], Any]
    errors: tuple[type[Exception], ...]
    is_canonical: Callable[[Any, Any], bool]
    fast: int  # inputs in `make test`
    slow: int  # inputs in `make test-slow`
    may_quote: bool = False  # errors may quote what a designer typed


def fuzz(target, seed, size, parse=None):
    """Try inputs; return how many were accepted. Raise ``Fault`` with the first bad input."""
    choose = Random(seed)
    parse = parse or target.parse
    accepted = 0
    for number in range(size):
        made = target.make(choose)
        try:
            found = parse(made)
        except target.errors as error:
            shown = [repr(error), repr(vars(error)), *traceback.format_exception(error)]
            if not target.may_quote and CANARY in "".join(shown):
                raise Fault(f"input {number}: the error quotes {made!r}") from error
            continue
        except Exception as error:
            raise Fault(f"input {number}: {type(error).__name__} for {made!r}") from error
        if not _holds(target.is_canonical, made, found):
            raise Fault(f"input {number}: accepted, but not canonical: {made!r}")
        accepted += 1
    return accepted


def _holds(check, made, found):
    """Whether a check passes. An object that cannot be written again fails it too."""
    try:
        return check(made, found)
    except Exception as error:
        raise Fault(f"{type(error).__name__} for {made!r}") from error


# --- values and damage ----------------------------------------------------------------------------

# Numbers between the small and the huge ones would allocate that much memory.
VALUES = (
    None, True, False, 0, 1, 2, 3, -1, 255, 2**53 - 1, 2**53, 2**63, 10**30, 0.0, 1.0, 2.0, 1e300,
    "", "0", "1", "2", "plain", "once", "week", "2026-W46", "2026-11", "inf", "1/3", "\ud800",
    "e\u0301", "\u00e9", "\0", '"', CANARY, [], {}, [[]], [None], [1], [{}], {"a": 1}, {"": None},
    {"every": "week", "distinct": 1}, {"every": ["week"], "distinct": 1}, {"period": "2026-W46"},
    {"every": "week", "distinct": 1, "of": 2}, {"every": "hour", "distinct": 1},
)  # fmt: skip


def random_value(choose):
    if choose.random() < 0.1:
        return [choose.choice(VALUES) for _ in range(choose.randrange(3))]
    return choose.choice(VALUES)


def dump_json(data, choose):
    """Write JSON, mostly in canonical form."""
    style = choose.random()
    if style < 0.8:
        text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    elif style < 0.9:
        text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    else:
        text = json.dumps(data)
    return text.encode("utf-8", "surrogatepass") + choose.choice([b""] * 8 + [b"\n", b"\n\n"])


def damage(body, choose):
    """Change, remove, insert or repeat a few bytes."""
    for _ in range(choose.randint(1, 3)):
        at = choose.randrange(len(body) + 1)
        size = choose.randint(1, 12)
        piece = choose.choice(
            [
                choose.randbytes(choose.randint(1, 4)),
                b'"',
                b",",
                b"\n",
                b"0",
                b"\xef\xbb\xbf",
                b"1e9",
            ]
        )
        body = choose.choice(
            [
                body[:at] + piece + body[at + len(piece) :],
                body[:at] + body[at + size :],
                body[:at] + piece + body[at:],
                body[: at + size] + body[at:],
                body[:at],
                body[:at] + bytes(size) + body[at + size :],
            ]
        )
    return body


def places(data, path=()):
    """Yield the path to each value in JSON data."""
    yield path
    if isinstance(data, dict):
        for name, value in data.items():
            yield from places(value, (*path, name))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from places(value, (*path, index))


def value_at(data, path):
    for step in path:
        data = data[step]
    return data


def with_value(data, path, value):
    """Return JSON data with the value at a path replaced, if an earlier change left the path."""
    if not path:
        return value
    try:
        inner = data[path[0]]
    except (LookupError, TypeError):
        return data
    changed = dict(data) if isinstance(data, dict) else list(data)
    changed[path[0]] = with_value(inner, path[1:], value)
    return changed


# --- surveys --------------------------------------------------------------------------------------


def _with_other_value(record, choose):
    return with_value(record, choose.choice(list(places(record))), random_value(choose))


def _with_other_part(record, choose):
    other = choose.choice(RECORDS)
    part = value_at(other, choose.choice(list(places(other))))
    return with_value(record, choose.choice(list(places(record))), part)


def _with_other_neutral_value(record, choose):
    side = choose.choice(list(NEUTRAL))
    name = choose.choice(list(NEUTRAL[side]))
    return with_value(record, (side, name), random_value(choose))


def _with_other_fields(record, choose):
    """Add, remove or rename a field of some object."""
    objects = [path for path in places(record) if isinstance(value_at(record, path), dict)]
    path = choose.choice(objects or [()])
    fields = dict(value_at(record, path)) if objects else {}
    name = choose.choice([*fields, *RESERVED_PARTS])
    value = fields.pop(name, random_value(choose))
    if choose.random() < 0.6:
        fields[choose.choice([*RESERVED_PARTS, *PROMISE_FIELDS, *ABOUT_FIELDS])] = value
    return with_value(record, path, fields)


def _with_other_texts(record, choose):
    """Change only what a survey may freely choose; most of these are valid."""
    name = choose.choice(["title", "text", "contact", "opens", "closes"])
    texts = ["", "Où ?", "e\u0301", "2026-11-30", "2026-11-30T18:00Z", "\u202e", "a\nb"]
    record = with_value(record, ("about", name), choose.choice(texts))
    number = choose.choice([0, 1, 100, 2**53 - 1])
    record = with_value(record, ("about", "minimum_reports"), number)
    uploads = choose.choice([None, 1, 50, 65_536, 65_537])
    record = with_value(record, ("about", "uploads"), uploads)
    repeat = choose.choice(["once", *[{"every": every, "distinct": 3} for every in PERIODS]])
    record = with_value(record, ("promise", "repeat"), repeat)
    return with_value(record, ("promise", "name"), choose.choice(["lunch", "déjeuner", " x", "b"]))


SURVEY_CHANGES = (
    _with_other_value,
    _with_other_part,
    _with_other_neutral_value,
    _with_other_fields,
    _with_other_texts,
)


def make_survey(choose):
    """Return the bytes of a survey, and sometimes the fingerprint that a client has pinned."""
    number = choose.randrange(len(SURVEYS))
    pinned = SURVEYS[number].fingerprint if choose.random() < 0.1 else None
    if choose.random() < 0.2:
        return damage(SURVEYS[number].resolved(), choose), pinned
    record = RECORDS[number]
    for _ in range(choose.randrange(3)):
        record = choose.choice(SURVEY_CHANGES)(record, choose)
    return dump_json(record, choose), pinned


def parse_survey(made):
    raw, pinned = made
    survey = sf.Survey.from_resolved(raw, fingerprint=pinned)
    survey.certify()
    return survey


def is_canonical_survey(made, survey):
    raw, pinned = made
    record = json.loads(raw)
    promised = record["promise"]
    shown = record["about"]
    if raw not in (survey.resolved(), survey.resolved() + b"\n"):
        return False
    if pinned not in (None, survey.fingerprint):
        return False
    if promised["format"] == 1:
        return set(promised).isdisjoint(NEUTRAL["promise"])
    neutral = [canonical_bytes(promised[name]) for name in NEUTRAL["promise"]]
    neutral += [canonical_bytes(shown[name]) for name in NEUTRAL["about"]]
    expected = [*NEUTRAL["promise"].values(), *NEUTRAL["about"].values()]
    return (
        survey.edition == promised["format"] == 2
        and set(record) == {"promise", "about"}
        and set(promised) == PROMISE_FIELDS
        and set(shown) == ABOUT_FIELDS
        and neutral == list(map(canonical_bytes, expected))
        and (shown["uploads"] is None or type(shown["uploads"]) is int)
        and [set(question) for question in promised["questions"]]
        == [{"context", "missing", "name"}]
    )


# --- periods --------------------------------------------------------------------------------------

PERIOD_FORM = {
    "day": re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}"),
    "week": re.compile("[0-9]{4}-W[0-9]{2}"),
    "month": re.compile("[0-9]{4}-[0-9]{2}"),
    "year": re.compile("[0-9]{4}"),
}
MAX_AGE = {"day": 8, "week": 56, "month": 248, "year": 2928}


def random_period(choose, every):
    """Return the name of a period, often a wrong one."""
    kind = every if choose.random() < 0.8 else choose.choice(PERIODS)
    moment = datetime(2026, 11, 18, tzinfo=UTC) + timedelta(days=choose.randint(-40_000, 900))
    if choose.random() < 0.1:
        moment = datetime(choose.choice([1, 2, 999, 9999]), 1, choose.randint(4, 28), tzinfo=UTC)
    name = period_name(kind, moment)
    fate = choose.random()
    if fate < 0.4:
        return name
    if fate < 0.6:
        digits = [choose.choice("0123456789") if c.isdigit() else c for c in name]
        return "".join(digits)
    if fate < 0.9:
        at = choose.randrange(len(name))
        piece = choose.choice(["", "0", "9", "-", "W", "w", "+", "_", " ", "\n", "٤", "６", '"'])
        return name[:at] + piece + name[at + choose.randint(0, 1) :]
    return "".join(choose.choices("0123456789-W٤ ", k=choose.choice([4, 7, 8, 10])))


def make_period(choose):
    every = choose.choice(PERIODS)
    now = datetime(2026, 11, 18, 12, tzinfo=UTC) + timedelta(days=choose.randint(-900, 900))
    return every, random_period(choose, every), now


def parse_period(made):
    every, name, now = made
    is_recent = recent_period(every, name, now)
    try:
        return period_start(every, name), is_recent
    except ValueError:
        if is_recent:
            raise Fault(f"a recent period without a start: {name!r}") from None
        raise


def is_canonical_period(made, found):
    every, name, now = made
    start, is_recent = found
    year, week, weekday = start.isocalendar()
    forms = {
        "day": start.isoformat(),
        "week": f"{year:04}-W{week:02}" if weekday == 1 else None,
        "month": start.isoformat()[:7] if start.day == 1 else None,
        "year": start.isoformat()[:4] if (start.month, start.day) == (1, 1) else None,
    }
    oldest = now.date() - timedelta(days=MAX_AGE[every])
    return (
        PERIOD_FORM[every].fullmatch(name) is not None
        and forms[every] == name
        and is_recent == (oldest <= start <= now.date() + timedelta(days=1))
    )


# --- keys -----------------------------------------------------------------------------------------


def make_key(choose):
    if choose.random() < 0.1:
        return random_value(choose)
    record = {}
    if choose.random() < 0.8:
        record["period"] = random_period(choose, "week")
    if choose.random() < 0.2:
        record[choose.choice(["period", "Period", "", *RESERVED_PARTS])] = random_value(choose)
    return record


def is_canonical_key(record, key):
    text = canonical_bytes(record).decode("ascii") if record else ""
    restored = CellKey.from_record(json.loads(key.text)) if key.text else CellKey()
    return set(record) <= {"period"} and (key.to_record(), key.text, restored) == (
        record,
        text,
        key,
    )


# --- batches --------------------------------------------------------------------------------------


def good_batch(choose, rules):
    reports = choose.choice([REPORTS, REPORTS[:1], np.arange(9, dtype=np.uint32)])
    period = ""
    if rules.every:
        moment = datetime(2026, 11, 18, tzinfo=UTC) - timedelta(days=choose.randint(0, 2000))
        period = period_name(rules.every, moment)
    return Batch(choose.randbytes(16), SURVEY, reports, CellKey(period), 2)


WRONG_SURVEYS = (SURVEY, SURVEY[:32].upper(), SURVEY[32:], SURVEY[:31], CANARY, SURVEY[:32] + "\n")


def make_json_batch(choose):
    rules = choose.choice(RULES)
    body = to_json(good_batch(choose, rules))
    if choose.random() < 0.3:
        return damage(body, choose), rules
    fields = json.loads(body)
    changes = {
        "batch": lambda: choose.choice([choose.randbytes(16).hex(), "AB" * 16, CANARY]),
        "format": lambda: choose.choice([1, 2, 2.0, "2", 3, True]),
        "period": lambda: random_period(choose, rules.every or "week"),
        "reports": lambda: [choose.choice([0, 1, 2**32 - 1, 2**32, -1, 1.0, True, CANARY])],
        "survey": lambda: choose.choice(WRONG_SURVEYS),
    }
    for _ in range(choose.randrange(3)):
        name = choose.choice([*changes, *RESERVED_PARTS])
        fate = choose.random()
        if fate < 0.2:
            fields.pop(name, None)
        elif fate < 0.4 or name not in changes:
            fields[name] = random_value(choose)
        else:
            fields[name] = changes[name]()
    body = dump_json(fields, choose)
    if choose.random() < 0.1:
        name = choose.choice(list(fields) or [""])
        extra = json.dumps({name: fields.get(name)}).encode()[1:]
        body = body.rstrip(b"}\n") + b"," + extra
    return body, rules


def parse_json_batch(made):
    return parse_batch(*made)


def batch_fields(rules):
    return {"batch", "format", "reports", "survey"} | ({"period"} if rules.every else set())


def is_canonical_json_batch(made, batch):
    body, rules = made
    data = json.loads(body)
    again = parse_batch(to_json(batch), rules)
    return (
        set(data) == batch_fields(rules)
        and canonical_bytes(data) == to_json(batch)
        and again.digest == batch.digest
        and data["survey"] == batch.fingerprint[:32] == SURVEY[:32]
        and is_canonical_batch_key(batch, rules)
    )


def is_canonical_batch_key(batch, rules):
    if not rules.every:
        return batch.key == CellKey()
    return PERIOD_FORM[rules.every].fullmatch(batch.key.period) is not None


def make_arrow_batch(choose):
    rules = choose.choice(RULES)
    batch = good_batch(choose, rules)
    if choose.random() < 0.4:
        return damage(to_arrow(batch), choose), rules
    metadata = {
        "sfumato.format": "2",
        "sfumato.survey": SURVEY,
        "sfumato.batch": batch.id.hex(),
        "sfumato.period": batch.key.period,
    }
    if not rules.every:
        del metadata["sfumato.period"]
    changes = {
        "sfumato.format": lambda: choose.choice(["1", "2", "02", "3", ""]),
        "sfumato.survey": lambda: choose.choice(WRONG_SURVEYS),
        "sfumato.batch": lambda: choose.choice([choose.randbytes(16).hex(), "AB" * 16, CANARY]),
        "sfumato.period": lambda: choose.choice(["", random_period(choose, rules.every or "week")]),
        "sfumato.simulated": lambda: "",
        "pandas": lambda: "{}",
        f"sfumato.{choose.choice(RESERVED_PARTS)}": lambda: choose.choice(["", "1", CANARY]),
    }
    for _ in range(choose.randrange(3)):
        name = choose.choice(list(changes))
        if choose.random() < 0.3:
            metadata.pop(name, None)
        else:
            metadata[name] = changes[name]()
    column = pa.array(batch.reports, choose.choice([pa.uint32()] * 9 + [pa.uint64()]))
    names = [choose.choice(["report"] * 9 + ["reports"])]
    pairs = list(metadata.items())
    if pairs and choose.random() < 0.1:
        name = choose.choice(pairs)[0]
        pairs.append((name, changes[name]()))
    table = pa.table([column], names=names)
    table = table.replace_schema_metadata(pa.KeyValueMetadata(pairs) if pairs else None)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=choose.choice([1, 3, 100]))
    return bytes(sink.getvalue()), rules


def parse_arrow(made):
    return parse_arrow_batch(*made)


def is_canonical_arrow_batch(made, batch):
    body, rules = made
    with pa.ipc.open_stream(body) as reader:
        table = reader.read_all()
    written = to_arrow(batch)
    with pa.ipc.open_stream(written) as reader:
        rewritten = reader.read_all()
    metadata = table.schema.metadata
    own = {name: value for name, value in metadata.items() if name.startswith(b"sfumato.")}
    return (
        own == rewritten.schema.metadata
        and {body.count(name) for name in own} == {1}
        and {name.decode().removeprefix("sfumato.") for name in own}
        == batch_fields(rules) - {"reports"}
        and table.column("report").to_pylist() == batch.reports.tolist()
        and rewritten.column("report").to_pylist() == batch.reports.tolist()
        and to_arrow(parse_arrow_batch(written, rules)) == written
        and is_canonical_batch_key(batch, rules)
    )


# --- tallies --------------------------------------------------------------------------------------


def packed(*counts):
    return base64.b64encode(np.array(counts, "<i8").tobytes()).decode()


def random_counts(choose):
    good = [packed(1, 2, 3)] * 6 + [packed(0, 0, 0), packed(2**60, 5, 1)]
    bad = [packed(1, 2), packed(2**62, 1, 0), packed(-1, 0, 0), "", "AA==", "é", CANARY, None, [1]]
    bad += [packed(1, 2, 3)[:-1] + "B", packed(1, 2, 3) + "\n", packed(2**62, 0, 0)]
    return choose.choice(good if choose.random() < 0.85 else bad)


def random_cell(choose, record):
    cell = {"counts": random_counts(choose), "key": record}
    if choose.random() < 0.04:
        cell[choose.choice(RESERVED_PARTS)] = random_value(choose)
    if choose.random() < 0.02:
        del cell[choose.choice(["counts", "key"])]
    return cell


def good_tally(choose):
    weeks = [f"2026-W{choose.randint(10, 52)}" for _ in range(choose.randint(1, 4))]
    tally = Tally(np.array([1, 0, 2**50]), SURVEY)
    cells = TallyCells({CellKey(week): tally for week in weeks})
    return TallyExport(ID, cells, (bytes(16), ID), 2)


def make_tally(choose):
    if choose.random() < 0.3:
        return damage(tally_to_json(good_tally(choose)), choose)
    size = choose.choice([0, 1, 1, 2, 3, 4])
    records = [{"period": f"2026-W{choose.randint(10, 52)}"} for _ in range(size)]
    if choose.random() < 0.3:
        records.append({})
    if choose.random() < 0.15:
        records.append(make_key(choose))
    if choose.random() < 0.8:
        records.sort(key=str)
    fields = {
        "cells": [random_cell(choose, record) for record in records],
        "covers": sorted(choose.randbytes(16).hex() for _ in range(choose.choice([0, 0, 2]))),
        "format": 2,
        "survey": SURVEY,
        "tally": ID.hex(),
    }
    if choose.random() < 0.15:
        fields[choose.choice([*fields, "counts", *RESERVED_PARTS])] = random_value(choose)
    return dump_json(fields, choose)


def is_canonical_tally(body, export):
    data = json.loads(body)
    names = [cell["key"].get("period", "") for cell in data["cells"]]
    sums = np.zeros(export.cells.outputs, dtype=np.int64)
    for cell in data["cells"]:
        sums += np.frombuffer(base64.b64decode(cell["counts"]), "<i8")
    return (
        body in (tally_to_json(export), tally_to_json(export) + b"\n")
        and set(data) == {"cells", "covers", "format", "survey", "tally"}
        and names == sorted(set(names))
        and all(set(cell) == {"counts", "key"} for cell in data["cells"])
        and all(set(cell["key"]) <= {"period"} for cell in data["cells"])
        and export.tally.counts.tolist() == sums.tolist()
        and parse_tally(tally_to_json(export)).digest == export.digest
    )


# --- the fuzz -------------------------------------------------------------------------------------

SURVEY_ERRORS = (InvalidSurvey, WrongSurvey, PrivacyViolation)
BATCH_ERRORS = (InvalidBatch, ReportRejected)
TARGETS = {
    "surveys": Target(
        make_survey, parse_survey, SURVEY_ERRORS, is_canonical_survey, 250, 12_000, may_quote=True
    ),
    "JSON batches": Target(
        make_json_batch, parse_json_batch, BATCH_ERRORS, is_canonical_json_batch, 350, 18_000
    ),
    "Arrow batches": Target(
        make_arrow_batch, parse_arrow, BATCH_ERRORS, is_canonical_arrow_batch, 250, 12_000
    ),
    "tallies": Target(make_tally, parse_tally, (InvalidTally,), is_canonical_tally, 300, 15_000),
    "keys": Target(
        make_key, CellKey.from_record, (InvalidTally,), is_canonical_key, 100, 6_000
    ),
    "periods": Target(
        make_period, parse_period, (ValueError,), is_canonical_period, 250, 12_000
    ),
}  # fmt: skip


def require_both_fates(accepted, size):
    """The inputs must be neither all right nor all wrong."""
    assert 0.1 * size <= accepted <= 0.9 * size


@pytest.mark.parametrize("name", TARGETS)
def test_inputs_are_refused_or_canonical(name):
    target = TARGETS[name]
    require_both_fates(fuzz(target, f"fast {name}", target.fast), target.fast)


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_many_inputs_are_refused_or_canonical(name):
    target = TARGETS[name]
    require_both_fates(fuzz(target, f"slow {name}", target.slow), target.slow)


def test_the_numbers_of_inputs_are_those_in_the_docstring():
    assert sum(target.fast for target in TARGETS.values()) == 1_500
    assert sum(target.slow for target in TARGETS.values()) == 75_000


# --- planted faults -------------------------------------------------------------------------------


def _neutral_values_unchecked(patched):
    """A field that this version cannot act on is accepted, and lost when written again."""
    patched.setattr(promise, "_require_neutral", lambda *_: None)
    patched.setattr(survey_module, "require_canonical", lambda *_: None)


def _metadata_unchecked(patched):
    patched.setattr(arrow_format, "_require_exact_metadata", lambda *_: None)


def _keys_of_any_type(patched):
    """A parser that forgets that a key may be a list crashes."""
    unchecked = classmethod(lambda cls, record: cls(record.get("period", "")))
    patched.setattr(CellKey, "from_record", unchecked)


def _json_with_reserved_field(made):
    """A parser that drops a field it does not know."""
    body, rules = made
    try:
        fields = json.loads(body)
        fields.pop("group", None)
    except (ValueError, AttributeError, TypeError):
        return parse_batch(body, rules)
    return parse_batch(json.dumps(fields).encode(), rules)


def _json_with_any_period(made):
    """A parser that leaves the check of the period to others."""
    body, rules = made
    try:
        fields = json.loads(body)
        period = fields["period"]
        fields["period"] = "2026-W46"
    except (ValueError, LookupError, TypeError):
        return parse_batch(body, rules)
    batch = parse_batch(json.dumps(fields).encode(), rules)
    return Batch(batch.id, batch.fingerprint, batch.reports, CellKey(period), 2)


def _tally_in_any_order(body):
    """A parser that sorts the cells itself."""
    try:
        fields = json.loads(body)
        fields["cells"].sort(key=lambda cell: cell["key"].get("period", ""))
        body = canonical_bytes(fields)
    except (ValueError, LookupError, TypeError, AttributeError):
        pass
    return parse_tally(body)


def _key_with_reserved_part(record):
    if isinstance(record, dict):
        record = {name: value for name, value in record.items() if name != "cohort"}
    return CellKey.from_record(record)


def _period_in_any_case(made):
    every, name, now = made
    return parse_period((every, name.upper().strip(), now))


def _period_by_the_calendar(made):
    """A parser that trusts the standard library, which reads other forms too."""
    every, name, now = made
    if every != "day":
        return parse_period(made)
    start = date.fromisoformat(name)
    return start, recent_period(every, start.isoformat(), now)


FAULTS = {
    "a reserved field of a survey": ("surveys", _neutral_values_unchecked, None),
    "reserved metadata": ("Arrow batches", _metadata_unchecked, None),
    "a reserved field of a batch": ("JSON batches", None, _json_with_reserved_field),
    "a period that nobody checked": ("JSON batches", None, _json_with_any_period),
    "keys out of order": ("tallies", None, _tally_in_any_order),
    "a crash": ("tallies", _keys_of_any_type, None),
    "a reserved part of a key": ("keys", None, _key_with_reserved_part),
    "a period in lower case": ("periods", None, _period_in_any_case),
    "another form of a day": ("periods", None, _period_by_the_calendar),
}


@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_found(name, monkeypatch):
    target_name, plant, parse = FAULTS[name]
    target = TARGETS[target_name]
    with monkeypatch.context() as patched, pytest.raises(Fault):
        if plant is not None:
            plant(patched)
        fuzz(target, f"fast {target_name}", 4 * target.fast, parse)
