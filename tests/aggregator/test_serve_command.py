"""`sfumato serve` as an operator meets it: what it prints, what it refuses, and how it ends."""

import os
import re
import select
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

import sfumato as sf
from sfumato.aggregator import listen
from sfumato.batches import to_json
from sfumato.cli import main
from sfumato.errors import InvalidSetting
from support.http_client import batch_of, parse_response, read_all, upload_head
from support.paths import ROOT

TOML = """name = "lunch-2026"
[domain]
kind = "labels"
labels = ["park", "café", "clinic"]
[context]
kind = "high-low"
epsilon = 1.0
sensitive = ["clinic"]
"""
TOKEN = re.compile(r"not shown again\): (\S+)")
ADDRESS = re.compile(r"Sfumato is listening on http://(127\.0\.0\.1):(\d+)\n")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lunch.toml").write_text(TOML, encoding="utf-8")
    return tmp_path


@pytest.fixture
def survey(folder):
    return sf.Survey.load(folder / "lunch.toml")


class Served:
    """A process, and what it has printed."""

    def __init__(self, process):
        self.process = process
        self.said = ""

    def read(self, until, seconds=30.0):
        """Read standard error up to a pattern."""
        deadline = time.monotonic() + seconds
        while not (found := until.search(self.said)):
            ready, _, _ = select.select(
                [self.process.stderr], [], [], max(0.0, deadline - time.monotonic())
            )
            line = self.process.stderr.readline() if ready else ""
            assert line, f"it ended, or said nothing more: {self.said}"
            self.said += line
        return found

    def ended(self, number):
        """Send a signal, and wait for the end."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self):
        """Wait for the end, and return the exit status."""
        limit = threading.Timer(30, self.process.kill)
        limit.start()
        # `communicate` would drop the lines that `readline` has buffered.
        self.said += self.process.stderr.read()
        limit.cancel()
        return self.process.wait(timeout=30)


@contextmanager
def serving(*arguments, program=("-m", "sfumato")):
    """`sfumato serve` in a process of its own, once it can be reached."""
    command = [sys.executable, *map(str, program), "serve", "--port", "0", *map(str, arguments)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
    ) as process:
        served = Served(process)
        try:
            host, port = served.read(ADDRESS).groups()
            served.address = host, int(port)
            yield served
        finally:
            if process.poll() is None:
                process.kill()


def _get(served, path, token=None):
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = Request("http://{}:{}{}".format(*served.address, path), headers=headers)  # noqa: S310
    try:
        with urlopen(request, timeout=30) as answer:  # noqa: S310
            return answer.status, answer.read()
    except HTTPError as refused:
        with refused:
            return refused.code, refused.read()


def _upload(served, survey, reports, number=1):
    request = Request(  # noqa: S310
        "http://{}:{}/v1/surveys/{}/batches".format(*served.address, survey.fingerprint),
        data=to_json(batch_of(survey, reports, number)),
        headers={"Content-Type": "application/json"},
    )
    with urlopen(request, timeout=30) as answer:  # noqa: S310
        return answer.status


def _called(monkeypatch, capfd, *arguments):
    """Run the command in this process; return exit code and standard error. It must not serve."""
    monkeypatch.setattr(
        "sfumato.aggregator.run_server", lambda *_, **__: sys.exit("it would have served")
    )
    monkeypatch.setattr(sys, "argv", ["sfumato", "serve", "--port", "0", *map(str, arguments)])
    with pytest.raises(SystemExit) as left:
        main.run()
    out, err = capfd.readouterr()
    assert out == ""
    assert "Traceback" not in err
    assert "not shown again" not in err
    return left.value.code, err


def test_workers_are_refused_where_they_cannot_run(folder, monkeypatch, capfd):
    monkeypatch.delattr(os, "memfd_create")
    code, err = _called(monkeypatch, capfd, "lunch.toml", "--workers", "2")
    assert (code, err) == (2, "sfumato: --workers needs Linux. Leave it out.\n")
    assert not (folder / "sfumato.db").exists()


@pytest.mark.parametrize("name", ["PROMETHEUS_MULTIPROC_DIR", "prometheus_multiproc_dir"])
def test_metrics_of_other_programs_are_left_alone(folder, survey, monkeypatch, name):
    monkeypatch.setenv(name, str(folder / "metrics"))
    (folder / "metrics").mkdir()
    for number in range(2):
        with serving("lunch.toml", "--new-token") as served:
            assert _upload(served, survey, [1], number) == 201
            _, metrics = _get(served, "/metrics", TOKEN.search(served.said)[1])
            assert re.search(rb"^sfumato_reports_total{.*} 1\.0$", metrics, re.MULTILINE)
            assert served.ended(signal.SIGTERM) == 0
    assert not list((folder / "metrics").iterdir())


# --- the dashboard --------------------------------------------------------------------------------

DASHBOARD = re.compile(r"Dashboard for analysts, with the token: (http://\S+)/#token=(\S+)\n")


def _messages(*arguments):
    """Run `sfumato serve` until it can be reached, stop it, and return all that it printed."""
    command = [sys.executable, "-m", "sfumato", "serve", "--port", "0", *arguments]
    with (
        Path("messages").open("w+b") as file,
        subprocess.Popen(command, stderr=file) as process,
    ):
        deadline = time.monotonic() + 30
        while b"listening" not in Path("messages").read_bytes():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
    return Path("messages").read_text()


def test_new_token_is_printed_in_a_url_for_the_dashboard(folder):
    text = _messages("lunch.toml")
    address, token = DASHBOARD.search(text).groups()
    assert address == "http://{}:{}".format(*ADDRESS.search(text).groups())
    assert token == TOKEN.search(text)[1]
    assert "token" not in _messages("lunch.toml")


def test_fields_that_people_would_miss_cause_warnings(folder):
    text = _messages("lunch.toml", "--store", "sqlite:///first.db")
    complete = 'title = "Where?"\ncontact = "me@example.org"\nminimum_reports = 100\n'
    (folder / "lunch.toml").write_text(complete + TOML, encoding="utf-8")
    text_of_complete_survey = _messages("lunch.toml", "--store", "sqlite:///second.db")
    for field in ("title", "contact", "minimum_reports"):
        assert f"Set {field} in lunch.toml." in text
        assert f"Set {field}" not in text_of_complete_survey


@pytest.mark.parametrize("is_first_run", [True, False])
def test_open_hides_the_token_from_other_processes(folder, monkeypatch, is_first_run):
    if not is_first_run:
        with serving("lunch.toml") as served:
            served.ended(signal.SIGTERM)
    script = folder / "browser"
    script.write_text(
        f"#!{sys.executable}\n"
        "import shutil, sys\n"
        "from urllib.request import urlopen\n"
        "open('argument', 'w').write(sys.argv[1])\n"
        "open('partial', 'wb').write(urlopen(sys.argv[1]).read())\n"
        "shutil.move('partial', 'page')\n"
    )
    script.chmod(0o700)
    monkeypatch.setenv("BROWSER", f"{script} %s")
    with serving("lunch.toml", "--open") as served:
        deadline = time.monotonic() + 30
        while not (folder / "page").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        url = (folder / "argument").read_text()
        assert url.startswith("file://")
        assert "token" not in url
        page = (folder / "page").read_text()
        address = "http://{}:{}/".format(*served.address)
        token = TOKEN.search(served.said)[1] if is_first_run else None
        assert f"url={address}#token={token}" in page if token else f'url={address}"' in page
        assert served.ended(signal.SIGINT) == 0
    assert not Path(url.removeprefix("file://")).exists()


def test_browser_that_fails_does_not_stop_the_aggregator(folder, monkeypatch):
    monkeypatch.setenv("BROWSER", "/absent/browser %s")
    with serving("lunch.toml", "--open") as served:
        assert _get(served, "/")[0] == 200


# --- a day in its life ----------------------------------------------------------------------------


def test_serve_shows_its_token_at_the_first_start_only(folder, survey):
    """Start, SIGTERM, start without arguments, SIGINT: in one test, as starts are slow."""
    with serving("lunch.toml", "--reports-per-upload", "3") as first:
        token = first.read(TOKEN).group(1)
        assert f"survey lunch-2026: {survey.fingerprint}\n" in first.said
        assert _get(first, f"/v1/surveys/{survey.fingerprint}") == (200, survey.resolved())
        assert _upload(first, survey, [0, 1, 2]) == 201
        status = f"/v1/surveys/{survey.fingerprint}/status"
        assert _get(first, status)[0] == 401
        assert b'"reports":3' in _get(first, status, token)[1]
        assert first.ended(signal.SIGTERM) == 0
    assert len(token) >= 43
    dashboard_url = "http://{}:{}/#token={}".format(*first.address, token)
    dashboard = f"Dashboard for analysts, with the token: {dashboard_url}"
    token_lines = [line for line in first.said.splitlines() if token in line]
    assert token_lines == [f"Analyst token (not shown again): {token}", dashboard]
    warnings = [line for line in first.said.splitlines() if line.startswith("Warning: ")]
    missing = [line.partition(" Set ")[2] for line in warnings]
    fields = ["title", "contact", "minimum_reports"]
    assert missing == [f"{field} in lunch.toml." for field in fields]
    # Besides them: survey, token, address, dashboard. No request was logged, and no address.
    assert len(first.said.splitlines()) == 4 + len(warnings)

    with serving("--reports-per-upload", "3") as second:  # the survey is in the store
        assert not TOKEN.search(second.said)
        assert _upload(second, survey, [0, 1, 2]) == 200
        assert b'"reports":3' in _get(second, status, token)[1]
        assert second.ended(signal.SIGINT) == 0
    assert not TOKEN.search(second.said)
    assert "Traceback" not in first.said + second.said

    held = b"".join(path.read_bytes() for path in folder.glob("sfumato.db*"))
    assert token.encode() not in held
    with closing(sqlite3.connect(folder / "sfumato.db")) as connection:
        ((kept,),) = connection.execute("SELECT value FROM facts WHERE name = 'token_sha256'")
    assert re.fullmatch("[0-9a-f]{64}", kept)


def test_a_new_token_replaces_the_old_one_and_a_stop_waits_for_uploads(folder, survey):
    with serving("lunch.toml") as first:
        old = first.read(TOKEN).group(1)
        body = to_json(batch_of(survey, [1]))
        with socket.create_connection(first.address, timeout=30) as line:
            head = upload_head(survey.fingerprint, Content_Length=len(body), Expect="100-continue")
            line.sendall(head)
            assert line.recv(100).startswith(b"HTTP/1.1 100")  # the upload has begun
            first.process.send_signal(signal.SIGTERM)
            _wait_until_closed(first.address)
            line.sendall(body)
            assert line.recv(1000).startswith(b"HTTP/1.1 201")
        assert first.process.wait(timeout=30) == 0
    with serving("lunch.toml", "--new-token") as second:
        new = second.read(TOKEN).group(1)
        status = f"/v1/surveys/{survey.fingerprint}/status"
        assert _get(second, status, old)[0] == 401
        assert b'"reports":1' in _get(second, status, new)[1]
        assert second.ended(signal.SIGTERM) == 0


def test_an_upload_that_outlasts_a_stop_is_503(folder, survey):
    script = ROOT / "tests" / "support" / "hasty_serve.py"
    with serving("lunch.toml", program=[script]) as served:
        with socket.create_connection(served.address, timeout=30) as line:
            head = upload_head(survey.fingerprint, Content_Length=5000, Expect="100-continue")
            line.sendall(head)
            assert line.recv(100).startswith(b"HTTP/1.1 100")  # the upload has begun
            lines_before = len(served.said.splitlines())
            served.process.send_signal(signal.SIGTERM)
            answer = parse_response(read_all(line))
        assert (answer.status, answer.problem) == (503, "stopping")
        assert int(answer.headers["retry-after"]) >= 1
        assert served.wait() == 0
    assert "Traceback" not in served.said
    new_lines = served.said.splitlines()[lines_before:]
    assert len([line for line in new_lines if not line.startswith("Dashboard")]) <= 1


def test_a_hangup_stops_it_unless_it_is_ignored(folder):
    # Children inherit whether a signal is ignored: these tests may run under nohup.
    handler = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        with serving("lunch.toml") as served:
            assert served.ended(signal.SIGHUP) == 0
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
        with serving() as served:
            served.process.send_signal(signal.SIGHUP)
            assert _get(served, "/health")[0] == 200
            assert served.ended(signal.SIGTERM) == 0
    finally:
        signal.signal(signal.SIGHUP, handler)


def _wait_until_closed(address):
    """It has heard the signal when it takes no more connections."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            socket.create_connection(address, timeout=5).close()
        except ConnectionRefusedError:
            return
        time.sleep(0.01)
    pytest.fail("it went on taking connections")


# --- refusals -------------------------------------------------------------------------------------


def _lie(path):
    """A resolved survey whose integers break its context."""
    text = sf.Survey("lie", sf.Uniform(["no", "yes"], 1)).resolved().decode()
    assert text.count('"epsilon":"1"') == 1
    path.write_text(text.replace('"epsilon":"1"', '"epsilon":"0.9"'), encoding="utf-8")


def _registered(folder):
    with closing(sqlite3.connect(folder / "sfumato.db")) as connection:
        return connection.execute("SELECT count(*) FROM surveys").fetchone()[0]


@pytest.mark.parametrize("order", [("lie.json", "lunch.toml"), ("lunch.toml", "lie.json")])
def test_serve_refuses_surveys_that_break_their_context(folder, monkeypatch, capfd, order):
    _lie(folder / "lie.json")
    code, err = _called(monkeypatch, capfd, *order)
    assert code == 1
    assert "PRIVACY VIOLATION" in err
    assert _registered(folder) == 0


def test_serve_refuses_unreadable_surveys(folder, monkeypatch, capfd):
    (folder / "broken.toml").write_text("name = ")
    for name in ("broken.toml", "absent.toml"):
        code, _ = _called(monkeypatch, capfd, "lunch.toml", name)
        assert code == 2
        assert _registered(folder) == 0


@pytest.mark.parametrize(
    ("store", "said"),
    [
        ("sqlite:///absent/reports.db", "folder"),
        ("sqlite://", "file"),
        ("sqlite:///:memory:", "file"),
        ("mysql://localhost/reports", "sqlite:///FILE"),
        ("reports.db", "sqlite:///FILE"),
        ("", "sqlite:///FILE"),
        ("sqlite:///lunch.toml", "not a database"),
    ],
)
def test_invalid_stores_are_refused(folder, monkeypatch, capfd, store, said):
    before = sorted(folder.iterdir())
    code, err = _called(monkeypatch, capfd, "lunch.toml", "--store", store)
    assert code == 2
    assert said in err
    assert sorted(folder.iterdir()) == before


def test_busy_ports_are_reported(folder, monkeypatch, capfd):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, err = _called(monkeypatch, capfd, "lunch.toml", "--port", port)
    assert code == 2
    assert f"cannot listen on 127.0.0.1:{port}" in err
    assert "address already in use" in err
    assert "--port" in err


def test_foreign_hosts_are_reported(folder, monkeypatch, capfd):
    code, err = _called(monkeypatch, capfd, "lunch.toml", "--host", "no such host")
    assert code == 2
    assert "127.0.0.1" in err


@pytest.mark.parametrize(
    "arguments", [("--port", "70000"), ("--requests-per-minute", "-1"), ("--what",)]
)
def test_invalid_options_are_refused(folder, monkeypatch, capfd, arguments):
    assert _called(monkeypatch, capfd, *arguments)[0] == 2


# --- where it listens -----------------------------------------------------------------------------


def test_the_default_address_is_local(folder, monkeypatch):
    """The default host goes to ``listen``, which binds to that address alone."""
    heard = []

    def noted(host, port):
        heard.append((host, port))
        raise InvalidSetting("stop here")

    monkeypatch.setattr("sfumato.aggregator.listen", noted)
    monkeypatch.setattr(sys, "argv", ["sfumato", "serve", "lunch.toml"])
    with pytest.raises(SystemExit):
        main.run()
    assert heard == [("127.0.0.1", 8750)]


def _own(host, family):
    """Whether this machine has the address: some have no IPv6 or only one loopback address."""
    try:
        socket.create_server((host, 0), family=family).close()
    except OSError:
        return False
    return True


HOSTS = {"127.0.0.1": socket.AF_INET, "127.0.0.2": socket.AF_INET, "::1": socket.AF_INET6}


@pytest.mark.parametrize("host", [host for host, family in HOSTS.items() if _own(host, family)])
def test_it_listens_on_one_address(host):
    with listen(host, 0) as opened:
        assert opened.getsockname()[0] == host
