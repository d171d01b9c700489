"""`sfumato conformance`: correct clients pass, others get a report, and none can block it."""

import gc
import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from sfumato.conformance import FILES, examine
from support import plain_client

PLAIN = [sys.executable, str(Path(plain_client.__file__))]
OWN = [sys.executable, "-m", "sfumato.conformance.reference_client"]


def conformance(*arguments, **options):
    options = {"capture_output": True, "check": False, "text": True, "timeout": 120, **options}
    return subprocess.run(
        [sys.executable, "-m", "sfumato", "conformance", *map(str, arguments)], **options
    )


def script(folder, text):
    path = folder / "client.py"
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return [sys.executable, str(path)]


# --- right and wrong ------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_packages_own_client_conforms(tmp_path):
    """From any folder: the vectors come with the package."""
    result = conformance("--", *OWN, cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.endswith("The client conforms: every answer is correct.\n")
    assert all(file in result.stdout for file in FILES)


def test_one_file_can_be_asked_alone(tmp_path):
    result = conformance(
        "--file", "canonical.json", "--file", "batches.json", "--json", "--", *OWN, cwd=tmp_path
    )
    assert result.returncode == 0, result.stdout + result.stderr
    found = json.loads(result.stdout)
    assert found["conforms"] is True
    assert [one["file"] for one in found["files"]] == ["canonical.json", "batches.json"]
    assert all(
        one["passed"] == one["cases"] > 0 and one["failures"] == [] for one in found["files"]
    )


@pytest.mark.parametrize(
    ("fault", "file", "where"),
    [
        ("one bit", "samples.json", "at ok.reports["),
        ("threshold", "samples.json", "at ok.reports["),
        ("endian", "memory.json", "at ok.words"),
        ("order", "canonical.json", "at ok.text"),
    ],
)
def test_planted_fault_is_reported(fault, file, where):
    result = conformance("--file", file, "--", *PLAIN, fault)
    assert result.returncode == 1, result.stdout + result.stderr
    assert where in result.stdout
    assert "  expected  " in result.stdout
    assert "  got       " in result.stdout
    assert result.stdout.endswith("The client does not conform.\n")


def test_client_that_accepts_everything_does_not_conform():
    """It answers all that can be answered, and refuses nothing."""
    result = conformance("--file", "bad_surveys.json", "--json", "--", *PLAIN)
    found = json.loads(result.stdout)
    assert result.returncode == 1
    assert found["conforms"] is False
    assert found["files"][0]["failures"] or found["files"][0]["ended"]


def test_client_error_messages_are_shown(tmp_path):
    answer = '{"error": "InvalidSurvey", "message": "why"}'
    refusing = f"import sys\nfor line in sys.stdin: print('{answer}', flush=True)"
    result = conformance("--file", "batches.json", "--", *script(tmp_path, refusing))
    assert result.returncode == 1
    assert '  got       {"error": "InvalidSurvey", "message": "why"}' in result.stdout


def test_nothing_is_left_open():
    """Warnings are errors here, and one would say so."""
    (result,) = examine([*PLAIN, "week"], files=["memory.json"])
    assert result.passed == result.cases - 3
    assert [failure.place for failure in result.failures] == ["ok.batch"] * 3
    (result,) = examine(
        [sys.executable, "-c", "while True: print(1)"], patience=1, files=["batches.json"]
    )
    assert result.passed == 0
    gc.collect()


# --- clients that do not play along ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import time; time.sleep(600)", "timed out after 0.5 seconds"),
        ("import sys; sys.exit(3)", "the client exited with exit code 3"),
        (
            "import sys\nfor line in sys.stdin: print(line[:1], flush=True)",
            'an object with "ok" or "error"',
        ),
        (
            "import sys\nfor line in sys.stdin: print('[]', flush=True)",
            'an object with "ok" or "error"',
        ),
        ("while True: print('{\"ok\": {}}')", "at ok.text"),
        (
            'import sys\nfor line in sys.stdin: print(\'{"ok": 1, "error": "x"}\', flush=True)',
            "does not conform",
        ),
    ],
    ids=["hangs", "ends", "no JSON", "no object", "babbles", "both"],
)
def test_misbehaving_client_is_killed_and_does_not_conform(tmp_path, text, said):
    client = script(tmp_path, text)
    result = conformance("--patience", 0.5, "--file", "canonical.json", "--", *client)
    assert result.returncode == 1, result.stdout + result.stderr
    assert said in result.stdout


def test_client_that_does_not_read_is_killed(tmp_path):
    """Requests beyond what a pipe holds, unread, must not hold anybody up."""
    client = script(
        tmp_path, "import time\nprint('{\"ok\": {}}\\n' * 500, flush=True)\ntime.sleep(600)"
    )
    result = conformance("--patience", 2, "--file", "samples.json", "--", *client)
    assert result.returncode == 1
    assert "not read within 2 seconds" in result.stdout


def test_child_processes_of_a_client_are_killed(tmp_path):
    """A wrapper's child keeps its output open; it must go, too."""
    mark = tmp_path / "child.pid"
    client = script(
        tmp_path,
        f"""
        import pathlib, subprocess, sys, time
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        pathlib.Path({str(mark)!r}).write_text(str(child.pid))
        time.sleep(600)
        """,
    )
    result = conformance("--patience", 2, "--file", "canonical.json", "--", *client)
    assert result.returncode == 1
    assert not _runs(int(mark.read_text()))


def _runs(number):
    try:
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"  # ended, and only waiting to be noticed


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--file", "nothing.json", "--", *OWN],
        ["./no-such-client"],
    ],
    ids=["nothing", "no such file", "no such client"],
)
def test_wrong_calls_are_refused(tmp_path, arguments):
    result = conformance(*arguments, cwd=tmp_path)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    assert list(tmp_path.iterdir()) == []
