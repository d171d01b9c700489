"""`sfumato audit`: the package's own clients pass, others are told what they do wrong."""

import json
import shutil
import sys
import textwrap
from itertools import pairwise

import pytest

import sfumato as sf
from support.command import run_process
from support.paths import ROOT

JAVASCRIPT = ROOT / "clients" / "javascript" / "audit.js"
SMALL = ("--samples", "20000", "--confidence", "0.999999")
"""A right client is blamed once in a million runs."""


def client(folder, text):
    (folder / "client.py").write_text(textwrap.dedent(text), encoding="utf-8")
    return ["--", sys.executable, "client.py"]


@pytest.fixture
def resolved(call, folder):
    call("verify", "lunch.toml", "--resolved", "lunch.json")
    return folder / "lunch.json"


# --- right ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("survey", ["lunch.toml", "ages.toml", "grid.toml"])
def test_the_surveys_own_mechanism_passes(call, survey):
    result = call("audit", survey, *SMALL)
    assert (result.code, result.err) == (0, "")
    assert "No violation found; this is not a proof." in result.out


def test_the_packages_own_client_passes_as_a_process(call, resolved):
    result = call(
        "audit",
        "lunch.json",
        *SMALL,
        "--json",
        "--",
        sys.executable,
        str(ROOT / "tests" / "support" / "audit_client.py"),
        "lunch.json",
    )
    assert (result.code, result.err) == (0, "")
    found = json.loads(result.out)
    assert found["violates"] is False
    assert max(pair["bound"] for pair in found["pairs"]) > 0.5  # it does say something


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node")
@pytest.mark.parametrize("survey", ["lunch", "ages", "grid"])
def test_the_javascript_client_passes(call, folder, survey):
    call("verify", f"{survey}.toml", "--resolved", "survey.json")
    result = call(
        "audit", f"{survey}.toml", *SMALL, "--json", "--", "node", JAVASCRIPT, "survey.json"
    )
    assert (result.code, result.err) == (0, "")
    assert max(pair["bound"] for pair in json.loads(result.out)["pairs"]) > 0.2


# --- wrong ----------------------------------------------------------------------------------------


def test_unrandomised_client_exits_1(call, folder):
    echo = client(folder, "import sys\nfor line in sys.stdin:\n    print(line.strip(), flush=True)")
    result = call("audit", "lunch.toml", *SMALL, *echo)
    assert result.code == 1
    assert "Violates its promise" in result.out
    assert result.err == ""


def test_spaces_in_reports_count(call, folder):
    padded = client(
        folder, "import sys\nfor line in sys.stdin:\n    print('0' + ' ' * int(line), flush=True)"
    )
    result = call("audit", "lunch.toml", *SMALL, *padded)
    assert (result.code, result.err) == (1, "")


def test_lines_may_end_as_they_do_on_any_system(call, folder):
    mixed = (
        "import random, sys\nfor line in sys.stdin:\n"
        "    sys.stdout.buffer.write(random.choice([b'1\\n', b'1\\r\\n']))\n    sys.stdout.flush()"
    )
    found = json.loads(call("audit", "lunch.toml", *SMALL, "--json", *client(folder, mixed)).out)
    assert all(pair["event"] == ["1"] for pair in found["pairs"])


def test_labels_are_shown(call, folder):
    echo = client(folder, "import sys\nfor line in sys.stdin:\n    print(line.strip(), flush=True)")
    out = call("audit", "lunch.toml", *SMALL, *echo).out
    assert "2 (clinic)" in out and "0 (park)" in out


def test_client_symbols_are_queried_in_random_order(call, folder):
    noted = (
        "import sys\nfile = open('asked.txt', 'w')\n"
        "for line in sys.stdin:\n    file.write(line)\n    print(1, flush=True)\nfile.close()"
    )
    call("audit", "lunch.toml", *SMALL, "--restarts", "0", *client(folder, noted))
    asked = (folder / "asked.txt").read_text().split()
    same = sum(one == other for one, other in pairwise(asked[:10_000]))
    assert (
        abs(same / 10_000 - 0.2) < 0.03
    )  # of five symbols in equal numbers; in runs all would be the same


@pytest.mark.slow
def test_process_exits_with_the_same_codes(folder):
    echo = client(folder, "import sys\nfor line in sys.stdin:\n    print(line.strip(), flush=True)")
    calls = [
        ("audit", "lunch.toml", *SMALL),
        ("audit", "lunch.toml", *SMALL, *echo),
        ("audit", "absent.toml"),
    ]
    assert [run_process(*arguments, cwd=folder).returncode for arguments in calls] == [0, 1, 2]


def test_the_json_of_an_audit(call, folder):
    constant = client(folder, "import sys\nfor line in sys.stdin:\n    print('same', flush=True)")
    found = json.loads(call("audit", "lunch.toml", *SMALL, "--json", *constant).out)
    assert set(found) == {
        *(
            "survey",
            "violates",
            "verdict",
            "confidence",
            "samples",
            "symbols",
            "labels",
            "rare",
            "changed",
            "sequences",
            "pairs",
        )
    }
    assert found["labels"] == ["park", "café", "clinic", "bar", "office"]
    assert len(found["pairs"]) == 8  # two sensitive places against four others each
    assert all(pair["event"] == ["same"] for pair in found["pairs"])


# --- clients that do not play along ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("import sys; sys.exit(3)", "exit code 3"),
        (
            "import sys\nfor i, line in zip(range(5), sys.stdin): print(1, flush=True)",
            "before it had answered",
        ),
        ("import time; time.sleep(60)", "timed out after 0.5 seconds"),
        (
            "import sys\nfor line in sys.stdin: pass",
            "before it had answered|timed out after 0.5 seconds",
        ),
    ],
)
def test_silent_client_exits_2(error_from, folder, text, told):
    command = client(folder, text)
    message = error_from("audit", "lunch.toml", *SMALL, "--patience", "0.5", *command)
    assert any(part in message for part in told.split("|"))


def test_extra_lines_exit_2(error_from, folder):
    talker = "import sys\nprint('ready', flush=True)\nfor line in sys.stdin: print(1, flush=True)"
    assert "more lines" in error_from("audit", "lunch.toml", *SMALL, *client(folder, talker))


def test_one_extra_line_at_the_end_exits_2(error_from, folder):
    """An unnoticed greeting shifts every report to the next symbol, and leaves one over."""
    farewell = "import sys\nfor line in sys.stdin: print(1, flush=True)\nprint(1)"
    assert "more lines" in error_from("audit", "lunch.toml", *SMALL, *client(folder, farewell))
    late = "import sys\nline = sys.stdin.readline()\nprint('ready')\nprint(1, flush=True)\n"
    late += "for line in sys.stdin: print(1, flush=True)"
    assert "more lines" in error_from("audit", "lunch.toml", *SMALL, *client(folder, late))


def test_endless_line_exits_2(error_from, folder):
    endless = "import sys\nfor line in sys.stdin: print('1' * 70_000, flush=True)"
    assert "a line of 65,536 bytes or more" in error_from(
        "audit", "lunch.toml", *SMALL, *client(folder, endless)
    )


def test_client_that_does_not_end_is_killed(call, folder, monkeypatch):
    monkeypatch.setattr("sfumato.auditing.command._EXIT_TIMEOUT", 0.2)
    lingering = "import sys, time\nfor line in sys.stdin: print(1, flush=True)\ntime.sleep(600)"
    assert call("audit", "lunch.toml", *SMALL, *client(folder, lingering)).code == 0


def test_missing_client_exits_2(error_from):
    assert "no-such-client" in error_from("audit", "lunch.toml", *SMALL, "--", "./no-such-client")


# --- calls ----------------------------------------------------------------------------------------


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
def test_wrong_calls_exit_2(error_from, options):
    error_from("audit", "lunch.toml", *options)


def test_audit_of_chosen_symbols(call):
    found = json.loads(call("audit", "lunch.toml", *SMALL, "--symbols", "0,2-3", "--json").out)
    assert found["symbols"] == [0, 2, 3]
    assert {(pair["x"], pair["x2"]) for pair in found["pairs"]} == {(2, 0), (2, 3), (3, 0), (3, 2)}


def test_audit_of_chosen_labels(call, error_from):
    options = ("audit", "lunch.toml", *SMALL, "--json", "--symbols")
    assert json.loads(call(*options, "park, clinic,3").out)["symbols"] == [0, 2, 3]
    assert "Did you mean 'clinic'" in error_from(*options, "park,clinik")


# --- faults that single reports do not show -------------------------------------------------------


WARNER = """
    import math, random, sys
    KEEP = math.e / (1 + math.e)
    previous = None
    for number, line in enumerate(sys.stdin):
        symbol = int(line)
        uniform = random.SystemRandom().random()
        {fault}
        print(symbol if uniform < KEEP else 1 - symbol, flush=True)
"""
FAULTS = {
    "none": ("pass", []),
    # The second report of two uses the first one's randomness, turned around.
    "antithetic": (
        "uniform, previous = (uniform, uniform) if number % 2 == 0 else (1 - previous, None)",
        ["successive reports"],
    ),
    "first report": ("uniform *= number > 0", ["first reports after a restart"]),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_of_several_reports_are_detected(call, folder, fault):
    statement, subjects = FAULTS[fault]
    sf.Survey("warner", sf.Uniform(["no", "yes"], 1)).save("warner.json")
    command = client(folder, WARNER.replace("{fault}", statement))
    result = call("audit", "warner.json", *SMALL, "--restarts", "120", "--json", *command)
    assert result.err == ""
    assert result.code == bool(subjects)
    audit = json.loads(result.out)
    assert not any(pair["violates"] for pair in audit["pairs"])
    violations = [test["subject"] for test in audit["sequences"] if test["violates"]]
    assert violations == subjects
    assert [test["subject"] for test in audit["sequences"]] == [
        "successive reports",
        "first reports after a restart",
    ]
