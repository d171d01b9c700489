"""Operations over HTTP: states, exports, imports, and what a watcher reads."""

import json
import re
import shutil
import sqlite3
from contextlib import closing, contextmanager

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families
from typer.main import get_command

import sfumato as sf
from sfumato.batches import JSON_MEDIA_TYPE, TallyExport, tally_to_json
from sfumato.cli.main import app
from sfumato.tally import Tally
from support.http_client import batch_of, run_aggregator
from support.paths import ROOT

SURVEY = sf.Survey("places", sf.Uniform(["park", "café", "clinic", "bar", "office"], 1))
OTHER = sf.Survey("other", SURVEY.context)
OUTPUTS = SURVEY.mechanism.outputs
FIRST = "ab" * 16
SECOND = "cd" * 16


@pytest.fixture
def aggregator(tmp_path):
    with run_aggregator(tmp_path, SURVEY) as found:
        yield found


@pytest.fixture
def elsewhere(tmp_path):
    """Another aggregator with a store of its own."""
    (tmp_path / "elsewhere").mkdir()
    with run_aggregator(tmp_path / "elsewhere", SURVEY) as found:
        yield found


def _path(what, survey=SURVEY):
    return f"/v1/surveys/{survey.fingerprint}/{what}"


def _counts(aggregator):
    return aggregator.store.tally(SURVEY.fingerprint, OUTPUTS).counts.tolist()


def _histogram(*reports):
    return np.bincount(reports, minlength=OUTPUTS).tolist()


def _do(aggregator, what):
    return aggregator.request_with_token(_path(what), method="POST")


def _export(aggregator, name):
    return aggregator.request_with_token(_path(f"exports/{name}"), method="PUT")


def _bring(aggregator, body, **headers):
    return aggregator.request_with_token(
        _path("imports"),
        method="POST",
        body=body,
        headers={"Content-Type": JSON_MEDIA_TYPE, **headers},
    )


# --- states ---------------------------------------------------------------------------------------


def test_surveys_can_be_closed_opened_and_ended(aggregator):
    batch = batch_of(SURVEY, [1])
    assert aggregator.upload(batch).status == 201
    for what, state, upload in [
        ("close", "closed", 410),
        ("close", "closed", 410),
        ("open", "open", 200),
        ("open", "open", 200),
        ("close", "closed", 410),
        ("end", "ended", 410),
        ("end", "ended", 410),
        ("close", "ended", 410),
    ]:
        answer = _do(aggregator, what)
        assert answer.json == {"survey": SURVEY.fingerprint, "state": state}
        assert aggregator.upload(batch).status == upload
        assert aggregator.request_with_token(_path("status")).json["state"] == state
        assert aggregator.http.get("/v1/surveys").json["surveys"][0]["open"] is (state == "open")
    answer = _do(aggregator, "open")
    assert (answer.status, answer.problem) == (409, "survey-state")
    assert _counts(aggregator) == _histogram(1)
    assert aggregator.request_with_token(_path("estimate")).status == 200


def test_an_open_survey_cannot_end(aggregator):
    aggregator.upload(batch_of(SURVEY, [1]))
    before = aggregator.dump()
    answer = _do(aggregator, "end")
    assert (answer.status, answer.problem) == (409, "survey-state")
    assert aggregator.dump() == before


@pytest.mark.parametrize(
    ("method", "what"),
    [
        ("POST", "open"),
        ("POST", "close"),
        ("POST", "end"),
        ("GET", "exports"),
        ("PUT", f"exports/{FIRST}"),
        ("POST", "imports"),
        ("GET", "status"),
        ("GET", "estimate"),
        ("GET", "top"),
        ("GET", "total?label=park"),
    ],
)
def test_unknown_surveys_are_404(aggregator, method, what):
    before = aggregator.dump()
    answer = aggregator.request_with_token(_path(what, OTHER), method=method)
    assert (answer.status, answer.problem) == (404, "unknown-survey")
    assert aggregator.dump() == before


# --- exports --------------------------------------------------------------------------------------


def test_exports_do_not_overlap_and_are_repeatable(aggregator):
    aggregator.upload(batch_of(SURVEY, [1, 2], 1))
    first = _export(aggregator, FIRST)
    aggregator.upload(batch_of(SURVEY, [3], 2))
    assert _export(aggregator, FIRST).body == first.body
    second = _export(aggregator, SECOND)
    expected = {
        name: Tally(np.array(_histogram(*held)), SURVEY.fingerprint)
        for name, held in ((FIRST, (1, 2)), (SECOND, (3,)))
    }
    for answer, name in ((first, FIRST), (second, SECOND)):
        assert (answer.status, answer.headers["content-type"]) == (200, JSON_MEDIA_TYPE)
        assert answer.body == tally_to_json(
            TallyExport.from_tally(bytes.fromhex(name), expected[name])
        )
    assert aggregator.request_with_token(_path("exports")).json == {
        "exports": [{"tally": FIRST, "reports": 2}, {"tally": SECOND, "reports": 1}]
    }
    assert _counts(aggregator) == _histogram(1, 2, 3)


def test_a_batch_that_was_exported_is_still_known(aggregator):
    aggregator.upload(batch_of(SURVEY, [1, 2]))
    _export(aggregator, FIRST)
    assert aggregator.upload(batch_of(SURVEY, [1, 2])).status == 200
    assert _counts(aggregator) == _histogram(1, 2)


def test_empty_exports_are_refused(aggregator):
    before = aggregator.dump()
    answer = _export(aggregator, FIRST)
    assert (answer.status, answer.problem) == (409, "not-enough-reports")
    assert aggregator.dump() == before


@pytest.mark.parametrize("name", ["ab", "AB" * 16, "ab" * 17, "zz" * 16, "%00"])
def test_export_names_must_be_valid(aggregator, name):
    aggregator.upload(batch_of(SURVEY, [1]))
    before = aggregator.dump()
    answer = _export(aggregator, name)
    assert (answer.status, answer.problem) == (400, "invalid-request")
    assert aggregator.dump() == before


# --- imports --------------------------------------------------------------------------------------


def test_a_tally_is_imported_once(aggregator, elsewhere):
    aggregator.upload(batch_of(SURVEY, [1, 2], 1))
    elsewhere.upload(batch_of(SURVEY, [4], 2))
    sent = _export(aggregator, FIRST).body
    first = _bring(elsewhere, sent)
    again = _bring(elsewhere, sent)
    assert (first.status, again.status) == (201, 200)
    assert first.body == again.body
    assert first.json == {"tally": FIRST, "reports": "2", "survey": SURVEY.fingerprint}
    assert _counts(elsewhere) == _histogram(1, 2, 4)
    assert elsewhere.request_with_token(_path("status")).json["reports"] == 3


def test_a_tally_is_not_counted_again_by_another_route(aggregator, elsewhere):
    aggregator.upload(batch_of(SURVEY, [1, 2], 1))
    _bring(elsewhere, _export(aggregator, FIRST).body)
    elsewhere.upload(batch_of(SURVEY, [4], 2))
    covering = _export(elsewhere, SECOND).body
    assert json.loads(covering)["covers"] == [FIRST]
    before = aggregator.dump()
    answer = _bring(aggregator, covering)
    assert (answer.status, answer.problem) == (409, "tally-conflict")
    assert aggregator.dump() == before


def _sent(counts, name=FIRST, survey=SURVEY):
    return tally_to_json(
        TallyExport.from_tally(bytes.fromhex(name), Tally(np.array(counts), survey.fingerprint))
    )


def test_other_counts_under_a_known_identifier_are_refused(aggregator):
    assert _bring(aggregator, _sent(_histogram(1))).status == 201
    before = aggregator.dump()
    answer = _bring(aggregator, _sent(_histogram(2)))
    assert (answer.status, answer.problem) == (409, "tally-conflict")
    assert aggregator.dump() == before


def test_totals_above_the_limit_are_refused(aggregator):
    huge = _histogram(1)
    huge[1] = 2**62
    assert _bring(aggregator, _sent(huge, FIRST)).status == 201
    before = aggregator.dump()
    answer = _bring(aggregator, _sent(_histogram(1), SECOND))
    assert (answer.status, answer.problem) == (400, "invalid-tally")
    assert aggregator.dump() == before


def test_closed_surveys_accept_no_tally(aggregator):
    _do(aggregator, "close")
    before = aggregator.dump()
    answer = _bring(aggregator, _sent(_histogram(1)))
    assert (answer.status, answer.problem) == (410, "survey-closed")
    assert aggregator.dump() == before


GOOD = _sent(_histogram(1))
NOT_TALLIES = {
    "nothing": b"",
    "half": GOOD[:-1],
    "a list": b"[]",
    "something after it": GOOD + b"{}",
    "deep": b"[" * 500_000,
    "an unknown field": GOOD.replace(b'"format":1', b'"format":1,"more":2'),
    "a field twice": GOOD.replace(b'"format":1', b'"format":1,"format":1'),
    "spaces": GOOD.replace(b":", b": "),
    "another version": GOOD.replace(b'"format":1', b'"format":2'),
    "a version that is true": GOOD.replace(b'"format":1', b'"format":true'),
    "another survey": _sent(_histogram(1), survey=OTHER),
    "fewer outputs": _sent(_histogram(1)[:-1]),
    "more outputs": _sent([*_histogram(1), 0]),
    "negative counts": GOOD.replace(b'"counts":"AAAAAAAAAAAB', b'"counts":"//////////8B'),
    "no base64": GOOD.replace(b'"counts":"', b'"counts":"!'),
    "an odd number of bytes": GOOD.replace(b'"counts":"AAAA', b'"counts":"'),
    "no text": GOOD.replace(b'"covers":[]', b'"covers":"none"'),
    "covers nothing": GOOD.replace(b'"covers":[]', b'"covers":[""]'),
    "numbers for names": GOOD.replace(b'"covers":[]', b'"covers":[1]'),
    "UTF-16": GOOD.decode().encode("utf-16"),
}


@pytest.mark.parametrize("name", NOT_TALLIES)
def test_malformed_tallies_are_refused(aggregator, name):
    assert NOT_TALLIES[name] != GOOD
    before = aggregator.dump()
    answer = _bring(aggregator, NOT_TALLIES[name])
    assert (answer.status, answer.problem) == (400, "invalid-tally")
    assert aggregator.dump() == before


def test_tallies_are_json(aggregator):
    answer = _bring(aggregator, GOOD, **{"Content-Type": "text/plain"})
    assert (answer.status, answer.problem) == (415, "unknown-media-type")
    assert _bring(aggregator, GOOD).status == 201


# --- watching -------------------------------------------------------------------------------------


def _metrics(aggregator):
    answer = aggregator.request_with_token("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = list(text_string_to_metric_families(answer.body.decode()))
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }, {family.name for family in families}


def test_metrics_count_what_happened(aggregator):
    batch = batch_of(SURVEY, [1, 2, 3])
    for sent in (batch, batch, batch_of(SURVEY, [1])):
        aggregator.upload(sent)
    aggregator.post(SURVEY.fingerprint, b"{", {"Content-Type": JSON_MEDIA_TYPE})
    found, families = _metrics(aggregator)
    assert found["sfumato_batches_total", SURVEY.fingerprint, "counted", "places"] == 1
    assert found["sfumato_batches_total", SURVEY.fingerprint, "replayed", "places"] == 1
    assert found["sfumato_batches_total", SURVEY.fingerprint, "conflict", "places"] == 1
    assert found["sfumato_reports_total", SURVEY.fingerprint, "places"] == 3
    assert found["sfumato_problems_total", "batch-conflict"] == 1
    assert found["sfumato_problems_total", "invalid-batch"] == 1
    assert found["sfumato_commit_seconds_count",] == 3
    assert found["sfumato_commit_batches_sum",] == 3
    assert found["sfumato_waiting_batches",] == 0
    assert found["sfumato_open_connections",] == 0
    assert families == {
        "sfumato_batches",
        "sfumato_reports",
        "sfumato_problems",
        "sfumato_commit_seconds",
        "sfumato_commit_batches",
        "sfumato_waiting_batches",
        "sfumato_open_connections",
    }


def test_metrics_tell_surveys_with_one_name_apart(tmp_path):
    twin = sf.Survey(SURVEY.name, sf.Uniform(["no", "yes"], 1))
    with run_aggregator(tmp_path, SURVEY, twin) as aggregator:
        aggregator.upload(batch_of(SURVEY, [1, 2]))
        aggregator.upload(batch_of(twin, [1]))
        found, _ = _metrics(aggregator)
    assert found["sfumato_reports_total", SURVEY.fingerprint, "places"] == 2
    assert found["sfumato_reports_total", twin.fingerprint, "places"] == 1


def test_metrics_name_no_client_and_no_unknown_survey(aggregator):
    for number in range(5):
        aggregator.upload(batch_of(SURVEY, [number], number), client=f"198.51.100.{number}")
        aggregator.post(f"{number:064x}", b"{}", {"Content-Type": JSON_MEDIA_TYPE})
    text = aggregator.request_with_token("/metrics").body.decode()
    assert "198.51.100" not in text
    assert "000000" not in text
    assert _metrics(aggregator)[0]["sfumato_problems_total", "unknown-survey"] == 5


def test_the_process_is_alive_and_the_store_ready(aggregator):
    assert aggregator.http.get("/health").json == {"status": "alive"}
    before = aggregator.dump()
    assert aggregator.http.get("/ready").json == {"status": "ready"}
    assert aggregator.dump() == before


def test_a_full_disk_is_reported_as_not_ready(aggregator, monkeypatch):
    monkeypatch.setattr(aggregator.store._backend, "_reserve", 2**62)
    before = aggregator.dump()
    for answer in (aggregator.http.get("/ready"), aggregator.upload(batch_of(SURVEY, [1]))):
        assert (answer.status, answer.problem) == (507, "store-full")
        assert int(answer.headers["retry-after"]) > 0
    assert aggregator.dump() == before
    assert aggregator.http.get("/health").status == 200
    monkeypatch.undo()
    assert aggregator.upload(batch_of(SURVEY, [1])).status == 201


# --- what docs/operations.md says -----------------------------------------------------------------

PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")


def test_the_docs_list_all_metrics(aggregator):
    listed = set(re.findall(r"^\| `(sfumato_\w+?)(?:_total)?` \|", PAGE, flags=re.MULTILINE))
    assert listed == _metrics(aggregator)[1]


def test_docs_and_deployment_files_name_existing_options():
    files = [ROOT / "docs" / "deployment.md", *sorted((ROOT / "deploy").iterdir())]
    texts = [PAGE, *(path.read_text(encoding="utf-8") for path in files if path.is_file())]
    lines = [
        line
        for text in texts
        for line in text.splitlines()
        if "sfumato serve" in line or "ENTRYPOINT" in line
    ]
    used = {
        option
        for line in lines
        for option in re.findall(r"(--[a-z][a-z-]+)", line.partition("serve")[2])
    }
    known = {
        option
        for parameter in get_command(app).commands["serve"].params
        for option in parameter.opts
    }
    assert {"--store", "--port", "--new-token", "--proxy", "--host"} <= used <= known


def _backup(aggregator, to):
    """While the aggregator runs, as the page has it."""
    with closing(sqlite3.connect(aggregator.file)) as connection:
        connection.execute("VACUUM INTO ?", (str(to),))


@contextmanager
def _restored(backup, folder):
    folder.mkdir()
    shutil.copy(backup, folder / "reports.db")
    with run_aggregator(folder) as found:
        yield found


def test_a_live_backup_contains_all_counts(aggregator, tmp_path):
    aggregator.upload(batch_of(SURVEY, [1, 2], 1))
    _backup(aggregator, tmp_path / "backup.db")
    with _restored(tmp_path / "backup.db", tmp_path / "restored") as restored:
        assert restored.upload(batch_of(SURVEY, [1, 2], 1)).status == 200
        assert _counts(restored) == _histogram(1, 2)


def test_an_old_backup_lacks_later_batches(aggregator, elsewhere, tmp_path):
    aggregator.upload(batch_of(SURVEY, [1], 1))
    _backup(aggregator, tmp_path / "backup.db")
    aggregator.upload(batch_of(SURVEY, [2], 2))
    assert _bring(elsewhere, _export(aggregator, FIRST).body).status == 201
    _do(aggregator, "close")
    with _restored(tmp_path / "backup.db", tmp_path / "restored") as restored:
        assert restored.request_with_token(_path("status")).json["state"] == "open"
        assert restored.upload(batch_of(SURVEY, [2], 2)).status == 201  # it counts again
        assert _counts(restored) == _histogram(1, 2)
        restored.upload(batch_of(SURVEY, [3], 3))
        answer = _bring(elsewhere, _export(restored, FIRST).body)
        assert (answer.status, answer.problem) == (409, "tally-conflict")
    with _restored(tmp_path / "backup.db", tmp_path / "again") as restored:
        assert (
            _bring(elsewhere, _export(restored, SECOND).body).status == 201
        )  # as the page warns: twice
    assert _counts(elsewhere) == _histogram(1, 1, 2)
