"""The command, run as people run it."""

import re
import subprocess
import sys

import pytest

from sfumato.cli.demo import ANSWERS, SENSITIVE


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sfumato", *arguments]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)


def _plain(text: str) -> str:
    """One line, without the terminal's colours and line breaks."""
    return " ".join(re.sub(r"\x1b\[[0-9;]*m", "", text).split())


@pytest.fixture(scope="module")
def demo():
    return _run("demo")


def test_the_demo_succeeds_and_is_quiet_on_the_error_channel(demo):
    assert demo.returncode == 0
    assert demo.stderr == ""


def test_the_demo_prints_a_certificate(demo):
    """5 symbols make 20 ordered pairs; the ε realised is near 1 and not above it."""
    pattern = r"For the reviewer: (\d+) pairs × (\d+) reports.*ε realised at most ([\d.]+) of ([\d.]+)"
    line = re.search(pattern, _plain(demo.stdout))
    assert line is not None
    pairs, _, realised, promised = line.groups()
    assert int(pairs) == 20
    assert 0.99 < float(realised) <= float(promised) == 1.0


def test_the_demo_shows_every_place_and_marks_the_sensitive_ones(demo):
    for place in ANSWERS:
        assert place in demo.stdout
    assert demo.stdout.count("(sensitive)") == len(SENSITIVE)


def test_the_demo_estimates_near_the_truth(demo):
    """20,000 people at ε = 1: a free answer is within 0.1 of its share, far beyond ten standard errors."""
    row = re.search(r"park\s*│\s*([\d.]+)\s*│\s*([\d.]+)\s*│", demo.stdout)
    assert row is not None
    truth, found = map(float, row.groups())
    assert truth == 0.45
    assert abs(found - truth) < 0.1


@pytest.mark.parametrize("arguments", [("--help",), ("demo", "--help")])
def test_help_is_given(arguments):
    result = _run(*arguments)
    assert result.returncode == 0
    assert "Usage" in result.stdout
    assert "demo" in result.stdout


def test_the_demos_help_has_an_example():
    assert "sfumato demo" in _plain(_run("demo", "--help").stdout)


@pytest.mark.parametrize("arguments", [("nonsense",), ("demo", "--nonsense"), ("demo", "extra")])
def test_a_wrong_call_exits_with_2_and_says_so(arguments):
    result = _run(*arguments)
    assert result.returncode == 2
    assert arguments[-1] in _plain(result.stderr)
    assert "Traceback" not in result.stderr


def test_without_arguments_help_is_shown():
    assert "demo" in _plain(_run().stdout + _run().stderr)
