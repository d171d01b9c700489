"""Surveys of edition 2 over HTTP: each report is counted in the cell of its period."""

import base64
import json
from contextlib import ExitStack
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.aggregator.http.operations import _max_import_size
from sfumato.batches import (
    ARROW_MEDIA_TYPE,
    JSON_MEDIA_TYPE,
    TallyExport,
    UploadRules,
    tally_to_json,
    to_arrow,
    to_json,
)
from sfumato.cells import CellKey, TallyCells
from sfumato.tally import Tally
from support.http_client import batch_of, run_aggregator
from support.store_tables import dump
from support.unrandomized import unrandomized_survey

CONTEXT = sf.Uniform(["park", "café", "clinic", "bar", "office"], 1)
REPEAT = {"every": "week", "distinct": 1}
ONCE = sf.Survey("places", CONTEXT, edition=2)
WEEKLY = sf.Survey("places", CONTEXT, repeat=REPEAT, edition=2)
OLD = sf.Survey("places", CONTEXT)
OLD_WEEKLY = sf.Survey("places", CONTEXT, repeat=REPEAT)
SURVEYS = (ONCE, WEEKLY, OLD, OLD_WEEKLY)
OUTPUTS = CONTEXT.size
NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)
WEEK = "2026-W47"
LAST_WEEK = "2026-W46"
FIRST = "ab" * 16
SECOND = "cd" * 16
FORMS = (JSON_MEDIA_TYPE, ARROW_MEDIA_TYPE)
CANARY = "kanarienvogel"


class Running:
    """An aggregator with the URL of its store."""

    def __init__(self, aggregator, url):
        self.aggregator = aggregator
        self.url = url

    def upload(self, batch, form=JSON_MEDIA_TYPE):
        return self.aggregator.upload(batch, form=form)

    def post(self, survey, body, form=JSON_MEDIA_TYPE):
        return self.aggregator.post(survey.fingerprint, body, {"Content-Type": form})

    def get(self, survey, what):
        return self.aggregator.request_with_token(_path(survey, what))

    def export(self, survey, id_):
        return self.aggregator.request_with_token(_path(survey, f"exports/{id_}"), method="PUT")

    def bring(self, survey, body):
        headers = {"Content-Type": JSON_MEDIA_TYPE}
        path = _path(survey, "imports")
        return self.aggregator.request_with_token(path, method="POST", body=body, headers=headers)

    def dump(self):
        return dump(self.url)

    def cells(self, survey):
        """Return the counts in the store by the text of the cell's key."""
        tables = self.dump()
        surveys = {row[1]: row[0] for row in tables["surveys"][1]}
        columns, rows = tables["cell_pages"]
        sums = {}
        for values in rows:
            row = dict(zip(columns, values, strict=True))
            if row["survey"] == surveys[survey.fingerprint]:
                width = len(row["counts"]) // 4096  # the store saves space where counts are small
                counts = np.frombuffer(row["counts"], f"<i{width}")[:OUTPUTS]
                sums[row["key"]] = sums.get(row["key"], 0) + counts
        return {key: counts.tolist() for key, counts in sums.items()}


def _path(survey, what):
    return f"/v1/surveys/{survey.fingerprint}/{what}"


def _histogram(*reports):
    return np.bincount(reports, minlength=OUTPUTS).tolist()


def _key(period):
    return f'{{"period":"{period}"}}'


@pytest.fixture
def start(new_url, tmp_path):
    """Start an aggregator with a store of its own on each call; tests run on both kinds."""
    with ExitStack() as stack:

        def start_one():
            url = new_url()
            settings = {"url": url, "now": lambda: NOON}
            found = stack.enter_context(run_aggregator(tmp_path, *SURVEYS, **settings))
            return Running(found, url)

        yield start_one


@pytest.fixture
def running(start):
    return start()


# --- uploads --------------------------------------------------------------------------------------


def test_reports_are_counted_in_the_cell_of_their_period(running):
    sent = [
        (batch_of(WEEKLY, [1, 0], 1, WEEK), JSON_MEDIA_TYPE),
        (batch_of(WEEKLY, [4], 2, WEEK), ARROW_MEDIA_TYPE),
        (batch_of(WEEKLY, [2, 2], 3, LAST_WEEK), ARROW_MEDIA_TYPE),
        (batch_of(WEEKLY, [3], 4, LAST_WEEK), JSON_MEDIA_TYPE),
        (batch_of(ONCE, [3], 1), JSON_MEDIA_TYPE),
        (batch_of(ONCE, [3, 4], 2), ARROW_MEDIA_TYPE),
    ]
    for batch, form in sent:
        answer = running.upload(batch, form)
        assert answer.status == 201
        assert answer.json == {
            "batch": batch.id.hex(),
            "reports": batch.reports.size,
            "survey": batch.fingerprint,
        }
    assert running.cells(WEEKLY) == {
        _key(WEEK): _histogram(1, 0, 4),
        _key(LAST_WEEK): _histogram(2, 2, 3),
    }
    assert running.cells(ONCE) == {"": _histogram(3, 3, 4)}
    assert running.cells(OLD_WEEKLY) == {}
    assert running.get(WEEKLY, "status").json["reports"] == 6


def test_replays_count_once_in_either_form(running):
    for number, form in enumerate(FORMS):
        for batch in (batch_of(ONCE, [1, 0], number), batch_of(WEEKLY, [1, 0], number, WEEK)):
            assert running.upload(batch, form).status == 201
            before = running.dump()
            for again in FORMS:
                assert running.upload(batch, again).status == 200
            assert running.dump() == before


def test_another_period_or_report_under_an_identifier_is_a_conflict(running):
    running.upload(batch_of(WEEKLY, [1, 0, 1], period=WEEK))
    before = running.dump()
    for reports, period in (([1, 0, 1], LAST_WEEK), ([1, 0], WEEK), ([0, 1, 1], WEEK)):
        for form in FORMS:
            answer = running.upload(batch_of(WEEKLY, reports, period=period), form)
            assert (answer.status, answer.problem) == (409, "batch-conflict")
    assert running.dump() == before


def test_fifty_uploads_at_once_all_count_in_their_cells(running):
    path = _path(WEEKLY, "batches")
    requests = []
    for number in range(50):
        period = (WEEK, LAST_WEEK)[number % 2]
        body = to_json(batch_of(WEEKLY, [number % 5], number, period))
        options = {"body": body, "headers": {"Content-Type": JSON_MEDIA_TYPE}}
        requests.append((("POST", path), options))
    answers = running.aggregator.http.request_all(*requests)
    assert {answer.status for answer in answers} == {201}
    assert running.cells(WEEKLY) == {
        _key(WEEK): _histogram(*[number % 5 for number in range(0, 50, 2)]),
        _key(LAST_WEEK): _histogram(*[number % 5 for number in range(1, 50, 2)]),
    }


# --- what is refused ------------------------------------------------------------------------------

PERIOD_DETAIL = "period must be the name of the week of the answer"
WRONG_PERIODS = {
    "empty": "",
    "a month": "2026-11",
    "no such week": "2026-W54",
    "lower case": "2026-w47",
    "a canary": CANARY,
}
UNBELIEVED_PERIODS = ("2026-W48", "9999-W52", "2026-W39", "0001-W01")


def _with_period(survey, period, form):
    if form == ARROW_MEDIA_TYPE:
        return to_arrow_with(batch_of(survey, [1], period=WEEK), period)
    fields = json.loads(to_json(batch_of(survey, [1], period=WEEK)))
    return json.dumps(fields | {"period": period}).encode()


def to_arrow_with(batch, period):
    """Return a batch in Arrow with another period in its metadata."""
    with pa.ipc.open_stream(to_arrow(batch)) as reader:
        table = reader.read_all()
    metadata = table.schema.metadata | {b"sfumato.period": period.encode()}
    table = table.replace_schema_metadata(metadata)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _require_refused(answer, detail):
    assert (answer.status, answer.problem) == (400, "invalid-batch"), answer
    assert detail in answer.json["detail"]
    assert CANARY not in answer.body.decode()


@pytest.mark.parametrize("form", FORMS)
def test_malformed_periods_are_refused(running, form):
    before = running.dump()
    for period in WRONG_PERIODS.values():
        answer = running.post(WEEKLY, _with_period(WEEKLY, period, form), form)
        _require_refused(answer, PERIOD_DETAIL)
    assert running.dump() == before


def test_future_and_old_periods_are_counted_without_a_period(running):
    """A device with a wrong clock loses nothing, and nobody can invent cells."""
    for number, period in enumerate(UNBELIEVED_PERIODS):
        batch = batch_of(WEEKLY, [1], number, period=period)
        assert running.upload(batch).status == 201
        assert running.upload(batch).status == 200  # a retry is still recognised
    other = batch_of(WEEKLY, [1], 0, period=WEEK)
    assert running.upload(other).status == 409  # another period under the same identifier
    oldest = batch_of(WEEKLY, [2], 9, period="2026-W40")
    assert running.upload(oldest).status == 201
    assert running.cells(WEEKLY) == {
        "": _histogram(*[1] * len(UNBELIEVED_PERIODS)),
        _key("2026-W40"): _histogram(2),
    }


@pytest.mark.parametrize("form", FORMS)
def test_batches_of_other_formats_are_refused(running, form):
    write = to_json if form == JSON_MEDIA_TYPE else to_arrow
    fields = "exactly these fields"
    of_format_2 = "must be 2 for this survey"
    of_format_1 = "must be 1 for this survey"
    cases = [
        (WEEKLY, batch_of(OLD_WEEKLY, [1]), fields if form == JSON_MEDIA_TYPE else of_format_2),
        (ONCE, batch_of(OLD, [1]), of_format_2),
        (OLD, batch_of(ONCE, [1]), of_format_1),
        (WEEKLY, batch_of(WEEKLY, [1]), fields),  # no period
        (ONCE, batch_of(ONCE, [1], period=WEEK), fields),
        (OLD_WEEKLY, batch_of(WEEKLY, [1], period=WEEK), fields),
    ]
    if form == ARROW_MEDIA_TYPE:
        cases[-1] = (*cases[-1][:2], of_format_1)
    before = running.dump()
    for survey, batch, detail in cases:
        _require_refused(running.post(survey, write(batch), form), detail)
    assert running.dump() == before


def test_another_survey_is_refused(running):
    other = sf.Survey("other", CONTEXT, edition=2)
    before = running.dump()
    for form, write in ((JSON_MEDIA_TYPE, to_json), (ARROW_MEDIA_TYPE, to_arrow)):
        body = write(batch_of(other, [1]))
        _require_refused(running.post(ONCE, body, form), "different surveys")
    assert running.dump() == before


def test_reports_outside_the_survey_are_refused(running):
    before = running.dump()
    answer = running.upload(batch_of(WEEKLY, [1, OUTPUTS], period=WEEK))
    assert (answer.status, answer.problem) == (422, "report-rejected")
    assert answer.json["index"] == 1
    assert running.dump() == before


# --- exports and imports --------------------------------------------------------------------------


def _tally(survey, id_, cells, covers=(), edition=2):
    """Return a tally as another aggregator would send it: counts by period."""
    tallies = {}
    for period, counts in cells.items():
        tallies[CellKey(period)] = Tally(np.array(counts), survey.fingerprint)
    export = TallyExport(bytes.fromhex(id_), TallyCells(tallies), covers, edition)
    return tally_to_json(export)


def test_tallies_with_several_cells_go_from_one_aggregator_to_another(start):
    sender = start()
    receiver = start()
    sender.upload(batch_of(WEEKLY, [1, 0], 1, WEEK))
    sender.upload(batch_of(WEEKLY, [4], 2, LAST_WEEK))
    receiver.upload(batch_of(WEEKLY, [3], 3, WEEK))
    exported = sender.export(WEEKLY, FIRST)
    assert exported.status == 200
    cells = {LAST_WEEK: _histogram(4), WEEK: _histogram(1, 0)}
    assert exported.body == _tally(WEEKLY, FIRST, cells)
    assert sender.export(WEEKLY, FIRST).body == exported.body
    first = receiver.bring(WEEKLY, exported.body)
    again = receiver.bring(WEEKLY, exported.body + b"\n")
    assert (first.status, again.status) == (201, 200)
    assert first.json == {"tally": FIRST, "reports": "3", "survey": WEEKLY.fingerprint}
    assert receiver.cells(WEEKLY) == {
        _key(WEEK): _histogram(1, 0, 3),
        _key(LAST_WEEK): _histogram(4),
    }
    assert receiver.get(WEEKLY, "status").json["reports"] == 4
    onward = receiver.export(WEEKLY, SECOND)
    assert json.loads(onward.body)["covers"] == [FIRST]
    assert [cell["key"] for cell in onward.json["cells"]] == [
        {"period": LAST_WEEK},
        {"period": WEEK},
    ]
    overlap = sender.bring(WEEKLY, onward.body)
    assert (overlap.status, overlap.problem) == (409, "tally-conflict")


def test_exports_contain_only_the_cells_of_their_own_part(running):
    running.upload(batch_of(WEEKLY, [1], 1, WEEK))
    running.export(WEEKLY, FIRST)
    running.upload(batch_of(WEEKLY, [2], 2, LAST_WEEK))
    assert running.export(WEEKLY, SECOND).body == _tally(WEEKLY, SECOND, {LAST_WEEK: _histogram(2)})
    exports = running.get(WEEKLY, "exports").json["exports"]
    assert exports == [{"tally": FIRST, "reports": 1}, {"tally": SECOND, "reports": 1}]


def test_a_survey_answered_once_exports_one_cell_without_a_key(start):
    sender = start()
    receiver = start()
    sender.upload(batch_of(ONCE, [1, 0]))
    exported = sender.export(ONCE, FIRST)
    counts = base64.b64encode(np.array(_histogram(1, 0), "<i8").tobytes()).decode()
    assert exported.json["cells"] == [{"counts": counts, "key": {}}]
    assert receiver.bring(ONCE, exported.body).status == 201
    assert receiver.cells(ONCE) == {"": _histogram(1, 0)}


def test_cells_without_a_period_may_be_imported(running):
    """They hold reports from tables, whose periods are unknown."""
    body = _tally(WEEKLY, FIRST, {"": _histogram(1), WEEK: _histogram(2)})
    assert running.bring(WEEKLY, body).status == 201
    assert running.cells(WEEKLY) == {"": _histogram(1), _key(WEEK): _histogram(2)}
    assert running.export(WEEKLY, SECOND).json["cells"][0]["key"] == {}


def test_wrong_tallies_are_refused(running):
    good = {WEEK: _histogram(1)}
    single = {"": _histogram(1)}
    format_1 = "format must be 2 for this survey"
    periods = "not one of this survey's periods"
    cases = [
        (WEEKLY, _tally(WEEKLY, FIRST, single, edition=1), format_1),
        (ONCE, _tally(ONCE, FIRST, single, edition=1), format_1),
        (OLD, _tally(OLD, FIRST, single), "format must be 1 for this survey"),
        (OLD, _tally(OLD, FIRST, good), "format must be 1 for this survey"),
        (ONCE, _tally(ONCE, FIRST, good), periods),
        (WEEKLY, _tally(WEEKLY, FIRST, {"2026-11": _histogram(1)}), periods),
        (WEEKLY, _tally(WEEKLY, FIRST, {CANARY: _histogram(1)}), periods),
        (WEEKLY, _tally(ONCE, FIRST, single), "different surveys"),
        (WEEKLY, _tally(WEEKLY, FIRST, {WEEK: [1, 2]}), "different surveys"),
        (WEEKLY, _tally(WEEKLY, FIRST, good).replace(b'"key"', b'"kez"'), "counts, key"),
        (WEEKLY, _tally(WEEKLY, FIRST, good).replace(b'"period"', b'"cohort"'), "only have"),
        (
            WEEKLY,
            _tally(WEEKLY, FIRST, {LAST_WEEK: [2**62, 0, 0, 0, 0], WEEK: [0, 1, 0, 0, 0]}),
            "2^62",
        ),
    ]
    before = running.dump()
    for survey, body, detail in cases:
        answer = running.bring(survey, body)
        assert (answer.status, answer.problem) == (400, "invalid-tally"), (detail, answer)
        assert detail in answer.json["detail"]
        assert CANARY not in answer.body.decode()
    assert running.dump() == before


def test_other_cells_under_a_known_identifier_are_a_conflict(running):
    assert running.bring(WEEKLY, _tally(WEEKLY, FIRST, {WEEK: _histogram(1)})).status == 201
    before = running.dump()
    answer = running.bring(WEEKLY, _tally(WEEKLY, FIRST, {LAST_WEEK: _histogram(1)}))
    assert (answer.status, answer.problem) == (409, "tally-conflict")
    assert running.dump() == before


def test_totals_over_all_cells_are_at_most_2_to_the_62(running):
    largest = {LAST_WEEK: [2**61, 0, 0, 0, 0], WEEK: [2**61, 0, 0, 0, 0]}
    assert running.bring(WEEKLY, _tally(WEEKLY, FIRST, largest)).status == 201
    before = running.dump()
    answer = running.bring(WEEKLY, _tally(WEEKLY, SECOND, {WEEK: _histogram(1)}))
    assert (answer.status, answer.problem) == (400, "invalid-tally")
    assert running.dump() == before


def test_the_largest_import_has_many_cells_or_one_of_any_size():
    outputs = 20_000
    one = 11 * outputs + 2**20
    assert _max_import_size(UploadRules(1, WEEKLY.fingerprint, outputs)) == one
    assert _max_import_size(UploadRules(2, WEEKLY.fingerprint, outputs)) == one
    many = 400 * 11 * outputs + 2**20
    assert _max_import_size(UploadRules(2, WEEKLY.fingerprint, outputs, "week")) == many
    largest = 2**26  # the largest uniform context
    for every in ("", "week"):
        rules = UploadRules(2, WEEKLY.fingerprint, largest, every)
        assert _max_import_size(rules) == 11 * largest + 2**20
    middle = UploadRules(2, WEEKLY.fingerprint, 2**20, "week")
    assert _max_import_size(middle) == 2**28 + 2**20


def test_tallies_with_a_hundred_large_cells_are_imported(new_url, tmp_path):
    wide = unrandomized_survey("wide", 2_000, repeat=REPEAT, edition=2)
    cells = {f"{year}-W{week:02}": [1] * 2_000 for year in (2025, 2026) for week in range(1, 51)}
    body = _tally(wide, FIRST, cells)
    assert len(body) > 2 * 2**20
    with run_aggregator(tmp_path, wide, url=new_url()) as found:
        running = Running(found, None)
        assert running.bring(wide, body).json["reports"] == "200000"
        assert running.export(wide, SECOND).json["cells"] == json.loads(body)["cells"]


# --- results --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("old", "new"), [(OLD, ONCE), (OLD_WEEKLY, WEEKLY)])
def test_estimates_are_those_of_edition_1(running, old, new):
    choose = np.random.default_rng(7)
    for number in range(6):
        reports = choose.integers(0, OUTPUTS, 400)
        period = f"2026-W{42 + number}" if new is WEEKLY else ""
        assert running.upload(batch_of(old, reports, number)).status == 201
        form = FORMS[number % 2]
        assert running.upload(batch_of(new, reports, number, period), form).status == 201
    assert len(running.cells(new)) == (6 if new is WEEKLY else 1)
    for what in ("estimate", "top", "total?label=park", "estimate?decoder=unbiased"):
        expected = running.get(old, what)
        found = running.get(new, what)
        assert expected.status == found.status == 200, (what, expected, found)
        assert _without_survey(found.json) == _without_survey(expected.json)
    status = running.get(new, "status").json
    assert status["reports"] == running.get(old, "status").json["reports"] == 2400


def _without_survey(result):
    """Return a result without the fingerprint, which must differ."""
    assert result["survey"]
    return {name: value for name, value in result.items() if name != "survey"}
