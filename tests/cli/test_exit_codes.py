"""Exit codes: 0 done, 1 the answer is no, 2 the call or the input is wrong. Never a traceback."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

import sfumato as sf
from sfumato.cli.main import app
from sfumato.survey import Survey
from support.command import LUNCH, read_folder, run_process

COMMANDS = (
    "help",
    "init",
    "design",
    "plan",
    "verify",
    "check",
    "audit",
    "label",
    "privatize",
    "estimate",
    "simulate",
    "compare",
    "send",
    "serve",
    "demo",
    "conformance",
)


def _broken(path):
    """A consistent, canonical survey whose integers break its context."""
    survey = Survey("lie", sf.Uniform(["no", "yes"], 1))
    text = survey.resolved().decode()
    assert text.count('"epsilon":"1"') == 1
    path.write_text(text.replace('"epsilon":"1"', '"epsilon":"0.9"') + "\n", encoding="utf-8")
    assert Survey.load(path).name == "lie"


@pytest.mark.parametrize(
    "arguments",
    [
        ("verify", "lie.json", "-o", "certificate.json"),
        ("verify", "lie.json", "--json"),
        ("privatize", "lie.json", "yes.csv", "--column", "answer", "-o", "reports.csv"),
    ],
)
def test_survey_that_breaks_its_promise_exits_1(call, folder, arguments):
    _broken(folder / "lie.json")
    (folder / "yes.csv").write_text("answer\nyes\nno\n")
    before = read_folder(folder)
    result = call(*arguments)
    assert result.code == 1
    assert "PRIVACY VIOLATION" in result.err
    assert "Traceback" not in result.err
    assert result.out == ""
    assert read_folder(folder) == before


def test_large_survey_that_breaks_its_promise_exits_1(call, folder):
    survey = Survey("lie", sf.Uniform(5, 1))
    data = json.loads(survey.resolved())
    data["promise"]["context"]["epsilon"] = "0.5"
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    (folder / "lie.json").write_text(text, encoding="utf-8")
    assert call("verify", "lie.json").code == 1


def test_process_exits_with_the_same_codes(folder):
    _broken(folder / "lie.json")
    codes = [
        run_process("verify", name, cwd=folder).returncode
        for name in ("lunch.toml", "lie.json", "absent.toml")
    ]
    assert codes == [0, 1, 2]


def test_success_exits_0(call, folder):
    steps = [
        ("verify", "lunch.toml", "-o", "certificate.json"),
        ("privatize", "lunch.toml", "answers.csv", "--column", "place", "-o", "reports.parquet"),
        ("estimate", "lunch.toml", "reports.parquet", "-o", "estimate.csv"),
        ("simulate", "lunch.toml", "answers.csv", "--column", "place", "--runs", "2"),
        ("init", "--template", "yes-no", "new.toml"),
    ]
    for step in steps:
        result = call(*step)
        assert result.code == 0, step
        assert all(
            line.startswith("Warning: ") or line.endswith(" counted.")
            for line in result.err.splitlines()
        ), step
    assert {"certificate.json", "reports.parquet", "estimate.csv", "new.toml"} <= set(
        os.listdir(folder)
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("verify",),
        ("verify", "--nonsense"),
        ("verify", "lunch.toml", "extra"),
        ("privatize", "lunch.toml", "answers.csv"),
        ("privatize", "lunch.toml", "answers.csv", "-o", "r.csv"),
        (
            "privatize",
            "lunch.toml",
            "answers.csv",
            "--column",
            "place",
            "-o",
            "r.csv",
            "--seed",
            "1",
        ),
        ("simulate", "lunch.toml", "answers.csv", "--column", "place", "--runs", "0"),
        ("simulate", "lunch.toml", "answers.csv", "--column", "place", "--runs", "many"),
        ("simulate", "lunch.toml", "answers.csv", "--column", "place", "--seed", "-1"),
        ("simulate", "lunch.toml", "answers.csv", "--column", "place", "--seed", str(2**63)),
        ("simulate", "lunch.toml", "answers.csv", "--column", "place", "--workers", "-1"),
        ("estimate", "lunch.toml"),
        ("init",),
        ("init", "--template", "nonsense"),
        ("init", "--template", "grid", "--from", "answers.csv"),
        ("init", "--from", "answers.csv"),
    ],
)
def test_wrong_calls_exit_2(error_from, arguments):
    error_from(*arguments)


def test_out_of_memory_exits_2(error_from):
    message = error_from(
        "simulate", "lunch.toml", "answers.csv", "--column", "place", "--runs", str(10**15)
    )
    assert "memory" in message


def test_there_is_no_seed_for_privatize(call):
    assert "--seed" not in call("privatize", "--help").out


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_every_command_has_an_example(call, command):
    result = call(command, "--help")
    assert result.code == 0
    _, _, examples = result.out.partition("Example")
    assert f"sfumato {command}" in examples


def test_every_command_is_in_the_help(call):
    shown = call("--help").out
    assert {command.name for command in app.registered_commands} == set(COMMANDS)
    assert {group.name for group in app.registered_groups} == {"paper", "store"}
    assert all(command in shown for command in COMMANDS)


def test_closed_pipe_is_not_an_error(folder):
    (folder / "many.csv").write_text("place\n" + "park\n" * 300_000)
    command = [
        sys.executable,
        "-m",
        "sfumato",
        "privatize",
        "lunch.toml",
        "many.csv",
        "--column",
        "place",
        "-o",
        "-",
    ]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as run:
        assert b"report@" in run.stdout.readline()
        run.stdout.close()
        assert run.stderr.read() == b""
        assert run.wait() == 0


def test_interrupted_command_writes_nothing(folder):
    before = read_folder(folder)
    command = [
        sys.executable,
        "-m",
        "sfumato",
        "privatize",
        "lunch.toml",
        "-",
        "--column",
        "place",
        "-o",
        "r.csv",
    ]
    with subprocess.Popen(
        command, cwd=folder, stdin=subprocess.PIPE, stderr=subprocess.PIPE
    ) as run:
        run.stdin.write(b"place\npark\n")
        run.stdin.flush()
        while read_folder(folder) == before and run.poll() is None:
            time.sleep(0.02)  # until the temporary file is there
        run.send_signal(signal.SIGINT)
        message = run.stderr.read()
        run.wait()
    assert run.returncode == 130
    assert b"Traceback" not in message
    assert read_folder(folder) == before


def test_closed_standard_input_exits_2(folder):
    command = f"{sys.executable} -m sfumato privatize lunch.toml - --column place -o r.csv <&-"
    run = subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, check=False)  # noqa: S607
    assert run.returncode == 2
    assert b"standard input is closed" in run.stderr


def test_a_terminal_without_unicode_still_gets_its_labels_in_json(folder):
    run_process(
        "privatize", "lunch.toml", "answers.csv", "--column", "place", "-o", "r.csv", cwd=folder
    )
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    run = run_process("estimate", "lunch.toml", "r.csv", "--json", cwd=folder, env=ascii_only)
    assert run.returncode == 0
    assert json.loads(run.stdout)["symbols"][1]["label"] == "café"
    assert run_process("verify", "lunch.toml", cwd=folder, env=ascii_only).returncode == 0


def test_closed_standard_output_gives_no_traceback(folder):
    (folder / "s.toml").write_text(LUNCH, encoding="utf-8")
    command = f"{sys.executable} -m sfumato verify s.toml | true"
    run = subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, check=False)  # noqa: S607
    assert b"Traceback" not in run.stderr
