"""`sfumato audit`: the package's own clients pass, others are told what they do wrong."""

import json
import shutil
import sys
import textwrap
from pathlib import Path

import pytest

from cli.conftest import process

JAVASCRIPT = Path(__file__).parents[2] / "clients" / "javascript" / "audit.js"
SMALL = ("--samples", "20000", "--confidence", "0.999999")
"""A right client is blamed once in a million runs."""


def client(folder, text):
    (folder / "client.py").write_text(textwrap.dedent(text), encoding="utf-8")
    return ["--", sys.executable, "client.py"]


@pytest.fixture
def resolved(call, folder):
    call("verify", "lunch.toml", "--resolved", "lunch.json")
    return folder / "lunch.json"


# --- right ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("survey", ["lunch.toml", "ages.toml", "grid.toml"])
def test_the_surveys_own_mechanism_passes(call, survey):
    result = call("audit", survey, *SMALL)
    assert (result.code, result.err) == (0, "")
    assert "No violation found; this is no proof." in result.out


def test_the_packages_own_client_passes_as_a_process(call, resolved):
    result = call(
        "audit", "lunch.json", *SMALL, "--json", "--", sys.executable, "-m", "sfumato.auditing.own_client", "lunch.json"
    )
    assert (result.code, result.err) == (0, "")
    found = json.loads(result.out)
    assert found["violates"] is False
    assert max(pair["bound"] for pair in found["pairs"]) > 0.5  # it does say something


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node")
@pytest.mark.parametrize("survey", ["lunch", "ages", "grid"])
def test_the_javascript_client_passes(call, folder, survey):
    call("verify", f"{survey}.toml", "--resolved", "survey.json")
    result = call("audit", f"{survey}.toml", *SMALL, "--json", "--", "node", JAVASCRIPT, "survey.json")
    assert (result.code, result.err) == (0, "")
    assert max(pair["bound"] for pair in json.loads(result.out)["pairs"]) > 0.2


# --- wrong ------------------------------------------------------------------------------------------------------------


def test_a_client_that_sends_answers_in_clear_is_a_no(call, folder):
    echo = client(folder, "import sys\nfor line in sys.stdin:\n    print(line.strip(), flush=True)")
    result = call("audit", "lunch.toml", *SMALL, *echo)
    assert result.code == 1
    assert "Violates its promise" in result.out
    assert result.err == ""


def test_the_same_codes_leave_the_process(folder):
    echo = client(folder, "import sys\nfor line in sys.stdin:\n    print(line.strip(), flush=True)")
    calls = [("audit", "lunch.toml", *SMALL), ("audit", "lunch.toml", *SMALL, *echo), ("audit", "absent.toml")]
    assert [process(*arguments, cwd=folder).returncode for arguments in calls] == [0, 1, 2]


def test_the_json_of_an_audit(call, folder):
    constant = client(folder, "import sys\nfor line in sys.stdin:\n    print('same', flush=True)")
    found = json.loads(call("audit", "lunch.toml", *SMALL, "--json", *constant).out)
    assert set(found) == {"survey", "violates", "verdict", "confidence", "samples", "symbols", "rare", "pairs"}
    assert len(found["pairs"]) == 8  # two sensitive places against four others each
    assert all(pair["event"] == ["same"] for pair in found["pairs"])


# --- clients that do not play along -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("import sys; sys.exit(3)", "exit code 3"),
        ("import sys\nfor i, line in zip(range(5), sys.stdin): print(1, flush=True)", "before it had answered"),
        ("import time; time.sleep(60)", "within 0.5 seconds"),
        ("import sys\nfor line in sys.stdin: pass", "before it had answered|within 0.5 seconds"),
    ],
)
def test_a_client_that_gives_no_reports_is_2(refused, folder, text, told):
    command = client(folder, text)
    message = refused("audit", "lunch.toml", *SMALL, "--patience", "0.5", *command)
    assert any(part in message for part in told.split("|"))


def test_a_client_that_says_more_than_it_was_asked_is_2(refused, folder):
    talker = "import sys\nprint('ready', flush=True)\nfor line in sys.stdin: print(1, flush=True)"
    assert "more lines" in refused("audit", "lunch.toml", *SMALL, *client(folder, talker))


def test_a_client_that_is_not_there_is_2(refused):
    assert "no-such-client" in refused("audit", "lunch.toml", *SMALL, "--", "./no-such-client")


# --- calls ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        ("--samples", "0"),
        ("--samples", "499"),
        ("--samples", "many"),
        ("--confidence", "1"),
        ("--confidence", "nan"),
        ("--symbols", "1,x"),
        ("--symbols", ""),
        ("--symbols", "7"),
        ("--symbols", "0-999999999"),
        ("--patience", "0"),
    ],
)
def test_a_wrong_call_is_2(refused, options):
    refused("audit", "lunch.toml", *options)


def test_some_symbols_can_be_audited_alone(call):
    found = json.loads(call("audit", "lunch.toml", *SMALL, "--symbols", "0,2-3", "--json").out)
    assert found["symbols"] == [0, 2, 3]
    assert {(pair["x"], pair["x2"]) for pair in found["pairs"]} == {(2, 0), (2, 3), (3, 0), (3, 2)}
