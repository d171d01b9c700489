"""The command, run as people run it."""

import re
import subprocess
import sys

import pytest


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sfumato", *arguments]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)


def _plain(text: str) -> str:
    """One line, without the terminal's colours and line breaks."""
    return " ".join(re.sub(r"\x1b\[[0-9;]*m", "", text).split())


@pytest.mark.parametrize(
    ("arguments", "named"), [(("--help",), "demo"), (("demo", "--help"), "sfumato demo")]
)
def test_help_is_printed(arguments, named):
    result = _run(*arguments)
    assert result.returncode == 0
    assert "Usage" in result.stdout
    assert named in _plain(result.stdout)


@pytest.mark.parametrize("arguments", [("nonsense",), ("demo", "--nonsense"), ("demo", "extra")])
def test_a_wrong_call_exits_with_2_and_says_so(arguments):
    result = _run(*arguments)
    assert result.returncode == 2
    assert arguments[-1] in _plain(result.stderr)
    assert "Traceback" not in result.stderr


def test_without_arguments_help_is_shown():
    result = _run()
    assert "demo" in _plain(result.stdout + result.stderr)
