"""Survey files of edition 2: every command says what it says about edition 1."""

import json
import subprocess
import sys

import pytest

from sfumato.survey import Survey
from support.command import LUNCH, SURVEYS
from support.paths import CHECKER

MATRIX = "a,b,c\n0,1,2\n1,0,1\n2,2,0\n"
NAMED = LUNCH.replace("[domain]", '[[question]]\nname = "place"\n[question.domain]').replace(
    "[context]", "[question.context]"
)

COMMANDS = {
    "verify": ("verify", "{}.toml"),
    "verify as JSON": ("verify", "{}.toml", "--json"),
    "label": ("label", "{}.toml", "-o", "out.html"),
}
PLAN = ("plan", "{}.toml", "--error", "0.2", "--html", "out.html")
ON_ANSWERS = {
    "simulate": ("simulate", "{}.toml", "answers.csv", "--runs", "2", "--json"),
    "compare": ("compare", "answers.csv", "--survey", "{}.toml", "--runs", "2", "--json"),
}


@pytest.fixture
def outcome(folder, call):
    """Write a survey file, run a command on it, and return all that it says or writes.

    The fingerprint differs between editions, so a word stands for it.
    """

    def run(command, text):
        (folder / "survey.toml").write_text(text, encoding="utf-8")
        result = call(*(part.format("survey") for part in command))
        assert result.code == 0
        said = [result.out, result.err]
        page = folder / "out.html"
        if page.exists():
            said.append(page.read_text(encoding="utf-8"))
            page.unlink()
        survey = Survey.load(folder / "survey.toml")
        assert survey.edition == (2 if text.startswith("edition = 2") else 1)
        fingerprint = survey.fingerprint
        # Commands print the whole fingerprint or its first twelve digits.
        return [
            part.replace(fingerprint, "FINGERPRINT").replace(fingerprint[:12], "FINGER")
            for part in said
        ]

    return run


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", SURVEYS)
def test_both_editions_are_described_in_the_same_words(outcome, command, name):
    text = SURVEYS[name]
    first = outcome(COMMANDS[command], text)
    assert outcome(COMMANDS[command], f"edition = 2\n{text}") == first


@pytest.mark.parametrize("command", [*COMMANDS.values(), PLAN], ids=" ".join)
def test_a_named_question_changes_no_word(outcome, command):
    assert outcome(command, f"edition = 2\n{NAMED}") == outcome(command, LUNCH)


@pytest.mark.parametrize("command", ON_ANSWERS)
@pytest.mark.parametrize("text", [LUNCH, NAMED], ids=["one context", "a named question"])
def test_simulations_of_both_editions_have_the_same_numbers(outcome, command, text):
    arguments = (*ON_ANSWERS[command], "--column", "place", "--seed", "1")
    assert outcome(arguments, f"edition = 2\n{text}") == outcome(arguments, LUNCH)


@pytest.mark.parametrize("output", ["reports.csv", "reports.parquet", "tally.json"])
def test_reports_of_edition_2_are_estimated(folder, call, output):
    (folder / "survey.toml").write_text(f"edition = 2\n{NAMED}", encoding="utf-8")
    written = call("privatize", "survey.toml", "answers.csv", "--column", "place", "-o", output)
    assert written.code == 0
    result = call("estimate", "survey.toml", output, "--html", "out.html", "--json")
    assert result.code == 0
    found = json.loads(result.out)
    fingerprint = Survey.load(folder / "survey.toml").fingerprint
    assert (found["survey"], found["reports"]) == (fingerprint, 200)
    assert fingerprint in (folder / "out.html").read_text(encoding="utf-8")
    assert call("estimate", "lunch.toml", output).code == 2


@pytest.mark.parametrize("command", ["verify", "design"])
def test_the_lone_checker_reads_what_is_written_of_edition_2(folder, call, command):
    (folder / "survey.toml").write_text(f"edition = 2\n{NAMED}", encoding="utf-8")
    (folder / "matrix.csv").write_text(MATRIX, encoding="utf-8")
    if command == "verify":
        call("verify", "survey.toml", "-o", "certificate.json", "--resolved", "survey.json")
        written = {"certificate.json": "place", "survey.json": "place"}
    else:
        call("design", "survey.toml", "--time-limit", "1", "-o", "survey.json")
        call("design", "matrix.csv", "--time-limit", "1", "-o", "matrix.json")
        written = {"survey.json": "place", "matrix.json": "answer"}
    for name, question in written.items():
        run = subprocess.run(
            [sys.executable, "-I", CHECKER, folder / name],
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert run.returncode == 0, run.stderr
        assert f'Question:     "{question}"\n' in run.stdout
