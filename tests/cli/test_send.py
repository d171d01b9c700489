"""`sfumato send`: randomised once, counted once, whatever happens on the way."""

import hashlib
import json
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.batches import UploadRules, parse_arrow_batch
from sfumato.client import AggregatorClient
from sfumato.client.outbox import Outbox, write_outbox
from sfumato.errors import DamagedState, InvalidSetting
from support.command import PLACES, call, error_from, folder, read_folder  # noqa: F401 - fixtures
from support.fake_aggregator import DROP_REQUEST, DROP_RESPONSE, FakeAggregator

SEND = ("send", "lunch.toml", "answers.csv", "--column", "place")
BUSY = (503, {"Retry-After": "0"}, b"")
DOWN = (503, {"Retry-After": "3600"}, b"")

RULES = UploadRules(1, "ab" * 32, 2**32)


@pytest.fixture
def lunch(folder):  # noqa: F811
    return sf.Survey.load(folder / "lunch.toml")


class Served(FakeAggregator):
    """Serve the survey before failing: nothing is randomised for an aggregator without it."""

    def next_fault(self):
        return super().next_fault() if self.bodies else None


@pytest.fixture
def served(lunch):
    with Served(lunch) as running:
        yield running


@pytest.fixture
def outbox(folder, lunch):  # noqa: F811
    return folder / f"answers.csv.{lunch.fingerprint[:12]}.outbox"


def reports_in(outbox):
    return pq.read_table(outbox).column("report").to_pylist()


def counted(served):
    return sorted(report for reports in served.batches.values() for report in reports)


def test_every_answer_is_counted_once(call, served, lunch, outbox):  # noqa: F811
    result = call(*SEND, "--to", served.url)
    assert (result.code, result.err) == (0, "200 rows: 200 counted.\n")
    assert "200 reports" in result.out
    assert served.reports == 200
    assert json.loads(outbox.read_bytes()) == {
        "batches": 1,
        "reports": 200,
        "sent": lunch.fingerprint,
        "to": served.url,
    }
    tally = lunch.mechanism.tally([np.array(counted(served), dtype=np.uint32)])
    assert lunch.estimate(sf.Tally(tally.counts, lunch.fingerprint)).reports == 200


def test_json_says_what_was_done(call, served, lunch):  # noqa: F811
    result = call(*SEND, "--to", served.url + "/", "--batch-size", "30", "--json")
    assert json.loads(result.out) == {
        "survey": lunch.fingerprint,
        "to": served.url,
        "reports": 200,
        "batches": 7,
    }
    assert sorted(len(reports) for reports in served.batches.values()) == [
        20,
        30,
        30,
        30,
        30,
        30,
        30,
    ]


def test_sent_answers_are_not_sent_again(call, error_from, served, outbox):  # noqa: F811
    call(*SEND, "--to", served.url)
    said = error_from(*SEND, "--to", served.url)
    assert "were already sent" in said
    assert "delete" in said
    assert served.reports == 200
    outbox.unlink()
    assert call(*SEND, "--to", served.url).code == 0
    assert served.reports == 400


@pytest.mark.parametrize(
    "faults",
    [[DROP_REQUEST] * 3, [DROP_RESPONSE] * 5, [BUSY] * 3, [DROP_RESPONSE, DROP_REQUEST, BUSY] * 2],
)
def test_network_faults_count_nothing_twice(call, served, outbox, faults, monkeypatch):  # noqa: F811
    monkeypatch.setattr("sfumato.client.http._FIRST_PAUSE", 0.001)
    served.faults = list(faults)
    assert call(*SEND, "--to", served.url, "--batch-size", "20").code == 0
    assert served.faults == []
    assert len(served.batches) == 10
    assert served.reports == 200
    assert len(served.bodies) == 10 + len(faults)


def test_failed_run_resumes(call, served, outbox, monkeypatch):  # noqa: F811
    served.faults = [None, DROP_RESPONSE, None, DOWN]
    served.default_fault = DOWN
    result = call(*SEND, "--to", served.url, "--batch-size", "10")
    assert result.code == 2
    assert str(outbox.name) in result.err
    assert "again" in result.err
    assert 10 <= served.reports < 200
    waiting = reports_in(outbox)
    assert len(waiting) == 200
    served.faults = []
    served.default_fault = None
    # Nothing may be randomised a second time, nor the answers be read.
    monkeypatch.setattr("sfumato.mechanisms.Mechanism.privatize", None)
    outbox.with_name("answers.csv").unlink()
    assert call(*SEND, "--to", served.url, "--batch-size", "77").code == 0
    assert counted(served) == sorted(waiting)


def test_batches_are_named_by_nonce_and_number(call, served, outbox, lunch):  # noqa: F811
    served.default_fault = DOWN
    call(*SEND, "--to", served.url, "--batch-size", "30")
    nonce = bytes.fromhex(pq.read_schema(outbox).metadata[b"sfumato.nonce"].decode())
    expected = [
        hashlib.sha256(b"sfumato/1/send" + nonce + number.to_bytes(8, "little")).digest()[:16]
        for number in range(7)
    ]
    batches = list(Outbox(str(outbox), UploadRules.from_survey(lunch), served.url).batches())
    assert [batch.id for batch in batches] == expected
    assert [report for batch in batches for report in batch.reports.tolist()] == reports_in(outbox)
    rules = UploadRules.from_survey(lunch)
    assert {parse_arrow_batch(body, rules).id for body in served.bodies} <= set(expected)


def test_an_outbox_is_a_report_file_too(call, served, outbox):  # noqa: F811
    served.default_fault = DOWN
    call(*SEND, "--to", served.url)
    result = call("estimate", "lunch.toml", outbox, "--json")
    assert json.loads(result.out)["reports"] == 200


def test_an_outbox_goes_to_one_aggregator_with_one_survey(call, error_from, served, outbox):  # noqa: F811
    served.default_fault = DOWN
    call(*SEND, "--to", served.url)
    said = error_from(*SEND, "--to", "http://127.0.0.1:9")
    assert "another aggregator" in said
    assert "a second ε" in said
    other = ("send", "other.toml", *SEND[2:], "--to", served.url, "--outbox", outbox)
    assert "another survey" in error_from(*other)
    assert len(served.bodies) <= 4


@pytest.mark.parametrize("left", [0, 3, 4, 200, -1])
def test_damaged_outbox_is_rejected(call, error_from, served, outbox, left):  # noqa: F811
    served.default_fault = DOWN
    call(*SEND, "--to", served.url)
    served.default_fault = None
    sent = len(served.bodies)
    outbox.write_bytes(outbox.read_bytes()[:left])
    said = error_from(*SEND, "--to", served.url)
    assert "damaged" in said or "not an outbox" in said or "empty" in said
    assert len(served.bodies) == sent


def test_a_changed_report_is_noticed(call, error_from, served, outbox):  # noqa: F811
    served.default_fault = DOWN
    call(*SEND, "--to", served.url)
    served.default_fault = None
    raw = bytearray(outbox.read_bytes())
    raw[60] ^= 1  # among the first pages
    outbox.write_bytes(raw)
    error_from(*SEND, "--to", served.url)
    assert served.reports == 0


@pytest.mark.parametrize("content", [b"place\npark\n", b"{}", b'{"sent":1}'])
def test_other_files_are_not_overwritten(folder, error_from, served, content):  # noqa: F811
    (folder / "mine.txt").write_bytes(content)
    assert "not an outbox" in error_from(*SEND, "--to", served.url, "--outbox", "mine.txt")
    assert served.bodies == []


@pytest.mark.parametrize("nonce", [b"z" * 32, b"\xff" * 32, b"ab " * 10 + b"ab"])
def test_an_outbox_whose_nonce_is_no_number_is_damaged(tmp_path, nonce):
    """Of 32 bytes, as it must be; but not digits."""
    path = str(tmp_path / "o.outbox")
    held = {b"sfumato.survey": b"ab" * 32, b"sfumato.nonce": nonce, b"sfumato.url": b"http://first"}
    schema = pa.schema([pa.field("report", pa.uint32(), nullable=False)], metadata=held)
    pq.write_table(pa.table([pa.array([1, 2], pa.uint32())], schema=schema), path)
    with pytest.raises(DamagedState, match="damaged"):
        Outbox(path, RULES, "http://first")


def test_report_file_is_not_an_outbox(folder, call, error_from, served):  # noqa: F811
    call("privatize", *SEND[1:], "-o", "reports.parquet")
    assert "not an outbox" in error_from(*SEND, "--to", served.url, "--outbox", "reports.parquet")


def test_a_pipe_needs_an_outbox(folder, call, error_from, served):  # noqa: F811
    piped = ("send", "lunch.toml", "-", "--column", "place", "--to", served.url)
    assert "--outbox" in error_from(*piped, stdin=b"place\npark\n")
    answers = (folder / "answers.csv").read_bytes()
    assert call(*piped, "--outbox", "piped.outbox", stdin=answers).code == 0
    assert served.reports == 200


def test_positions_are_sent(folder, call):  # noqa: F811
    survey = sf.Survey.load(folder / "grid.toml")
    (folder / "p.csv").write_text("lat,lon\n" + "1.5,2.5\n" * 30)
    with FakeAggregator(survey) as served:
        columns = ("--latitude", "lat", "--longitude", "lon")
        assert call("send", "grid.toml", "p.csv", *columns, "--to", served.url).code == 0
        assert served.reports == 30


def test_bad_answers_leave_no_outbox(folder, error_from, served):  # noqa: F811
    (folder / "bad.csv").write_text("place\npark\nkanarienvogel-4711\n")
    error_from(
        "send", "lunch.toml", "bad.csv", "--column", "place", "--to", served.url, never=["4711"]
    )
    error_from("send", "lunch.toml", "answers.csv", "--to", served.url)
    error_from(*SEND, "--to", "ftp://example.org")
    error_from(*SEND, "--to", served.url, "--outbox", "answers.csv")
    error_from(*SEND, "--to", served.url, "--batch-size", "65537")
    assert served.bodies == []


def test_survey_that_breaks_its_promise_exits_1(folder, call, served):  # noqa: F811
    text = (
        sf.Survey("lie", sf.Uniform(["no", "yes"], 1))
        .resolved()
        .replace(b'"epsilon":"1"', b'"epsilon":"0.9"')
    )
    (folder / "lie.json").write_bytes(text)
    (folder / "yes.csv").write_text("answer\nyes\n")
    before = read_folder(folder)
    assert call("send", "lie.json", "yes.csv", "--column", "answer", "--to", served.url).code == 1
    assert (read_folder(folder), served.bodies) == (before, [])


def test_closed_survey_is_reported(call, served, lunch, outbox):  # noqa: F811
    served.closed.add(lunch.fingerprint)
    result = call(*SEND, "--to", served.url)
    assert result.code == 2
    assert "closed" in result.err
    assert f"kept in {outbox.name}" in result.err
    assert len(reports_in(outbox)) == 200


@pytest.mark.parametrize("status", [400, 404, 409, 413, 422])
def test_errors_say_that_reports_are_kept(call, served, outbox, status):  # noqa: F811
    body = json.dumps({"type": "urn:sfumato:problem:batch-conflict", "index": 3}).encode()
    served.default_fault = (status, {}, body)
    result = call(*SEND, "--to", served.url)
    assert result.code == 2
    assert f"kept in {outbox.name}" in result.err
    assert len(reports_in(outbox)) == 200


@pytest.mark.parametrize("wrong", ["other aggregator", "other path", "nobody", "web site"])
def test_wrong_url_randomises_nothing(folder, error_from, served, wrong, monkeypatch):  # noqa: F811
    monkeypatch.setattr("sfumato.mechanisms.Mechanism.privatize", None)
    monkeypatch.setattr("sfumato.client.http._backoff", lambda tries: 1000.0)
    before = read_folder(folder)
    with FakeAggregator(sf.Survey("another", sf.Uniform(3, 1))) as other:
        url = {
            "other aggregator": other.url,
            "other path": served.url + "/elsewhere",
            "nobody": "http://127.0.0.1:9",
            "web site": other.url,
        }[wrong]
        served.surveys = {} if wrong == "other path" else served.surveys
        other.default_fault = (200, {}, b"<html>Welcome</html>") if wrong == "web site" else None
        said = error_from(*SEND, "--to", url)
        assert "Nothing was randomized" in said
        assert url in said
        assert other.bodies == served.bodies == []
    assert read_folder(folder) == before


def test_the_survey_is_asked_for_before_the_answers_are_read_and_once(call, served, lunch, outbox):  # noqa: F811
    served.default_fault = DOWN
    call(*SEND, "--to", served.url)
    served.default_fault = None
    assert call(*SEND, "--to", served.url).code == 0
    assert served.paths[0] == f"/v1/surveys/{lunch.fingerprint}"
    assert set(served.paths[1:]) == {f"/v1/surveys/{lunch.fingerprint}/batches"}


def test_concurrent_runs_send_one_outbox(tmp_path):
    path = str(tmp_path / "o.outbox")

    def reports():
        write_outbox(
            path, RULES, "http://first", iter([np.arange(5, dtype=np.uint32)]), batch_size=2
        )
        yield np.arange(9, dtype=np.uint32)

    with pytest.raises(InvalidSetting, match="another run"):
        write_outbox(path, RULES, "http://second", reports(), batch_size=2)
    assert Outbox(path, RULES, "http://first").report_count == 5
    assert [child.name for child in tmp_path.iterdir()] == ["o.outbox"]


def test_failed_write_leaves_no_outbox(tmp_path):
    def reports():
        yield np.arange(5, dtype=np.uint32)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_outbox(str(tmp_path / "o.outbox"), RULES, "http://first", reports(), batch_size=2)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size", [1, 3, 7, 8, 100])
def test_batches_are_cut_to_size_whatever_the_chunks(tmp_path, size):
    path = str(tmp_path / "o.outbox")
    chunks = np.split(np.arange(40, dtype=np.uint32), [0, 1, 9, 9, 30])
    write_outbox(path, RULES, "http://first", iter(chunks), batch_size=size)
    batches = [batch.reports.tolist() for batch in Outbox(path, RULES, "http://first").batches()]
    assert batches == [list(range(start, min(start + size, 40))) for start in range(0, 40, size)]


def test_ctrl_c_leaves_an_outbox_that_can_be_sent(folder, call, served, outbox):  # noqa: F811
    served.faults = [None, None]
    served.default_fault = (503, {"Retry-After": "50"}, b"")
    command = [sys.executable, "-m", "sfumato", *SEND, "--to", served.url, "--batch-size", "10"]
    with subprocess.Popen(
        command, cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.PIPE
    ) as run:
        while len(served.bodies) < 6 and run.poll() is None:
            time.sleep(0.02)  # two are counted, four wait until they may try again
        run.send_signal(signal.SIGINT)
        out, message = run.communicate(
            timeout=45
        )  # and not the 50 seconds that the others were told to wait
    assert run.returncode == 130
    assert out == b""
    assert b"Traceback" not in message
    assert outbox.name.encode() in message
    assert served.reports == 20
    waiting = reports_in(outbox)
    served.default_fault = None
    assert call(*SEND, "--to", served.url).code == 0
    assert counted(served) == sorted(waiting)


def test_all_answers_of_a_crowd_arrive(folder, call):  # noqa: F811
    """With no promise at all a report is the answer: counts are then exact."""
    survey = sf.Survey("clear", sf.Uniform(7, "inf"))
    survey.save(folder / "clear.json")
    values = np.random.default_rng(5).integers(0, 7, 30_000)
    (folder / "crowd.csv").write_text("x\n" + "\n".join(map(str, values)) + "\n")
    with FakeAggregator(survey) as served:
        served.faults = [DROP_RESPONSE, None, None, DROP_RESPONSE, DROP_REQUEST] * 3
        command = (
            "send",
            "clear.json",
            "crowd.csv",
            "--column",
            "x",
            "--batch-size",
            "1000",
            "--to",
            served.url,
        )
        assert call(*command).code == 0
        tally = survey.tally(np.array(counted(served), dtype=np.uint32))
        assert survey.estimate(tally, decoder="unbiased").frequencies * 30_000 == pytest.approx(
            np.bincount(values)
        )
        assert len(served.batches) == 30


def test_places_are_those_of_the_fixture(lunch):
    assert set(PLACES) == set(lunch.context.domain.labels)
    assert AggregatorClient("http://127.0.0.1:9/").url == "http://127.0.0.1:9"
