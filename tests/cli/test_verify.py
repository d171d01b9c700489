"""`verify` and `label`: certificates for an independent checker, pages for participants."""

import json
import re
import subprocess
import sys

import pytest

import sfumato as sf
from sfumato.pages import label_page
from sfumato.survey import Survey
from support.command import SURVEYS, read_folder
from support.paths import CHECKER

CANARY = "kanarienvogel-4711"


def _checked(path):
    return subprocess.run(
        [sys.executable, CHECKER, path], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("name", SURVEYS)
def test_the_checker_accepts_certificates_and_resolved_surveys(folder, call, name):
    result = call("verify", f"{name}.toml", "-o", "certificate.json", "--resolved", "survey.json")
    assert result.code == 0
    for file in ("certificate.json", "survey.json"):
        run = _checked(folder / file)
        assert run.returncode == 0, run.stdout + run.stderr


def test_the_checker_refuses_a_certificate_for_less(folder, call):
    call("verify", "lunch.toml", "-o", "certificate.json")
    text = (folder / "certificate.json").read_text(encoding="utf-8")
    (folder / "lie.json").write_text(
        text.replace('"epsilon":"1"', '"epsilon":"0.5"'), encoding="utf-8"
    )
    assert text != (folder / "lie.json").read_text(encoding="utf-8")
    assert _checked(folder / "lie.json").returncode == 1


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("absent.json", None, "cannot be read: No such file or directory"),
        ("half.json", b'{"format":', "cannot be read: not JSON in UTF-8"),
        ("bytes.json", b"\xff", "cannot be read: not JSON in UTF-8"),
        ("other.json", b"{}", "cannot be read: a saved mechanism must have exactly these fields"),
        ("survey.toml", SURVEYS["lunch"].encode(), "cannot be read: not JSON in UTF-8"),
        ("new\nline.json", b"{", "cannot be read: not JSON in UTF-8"),
    ],
)
def test_check_names_the_file_that_it_cannot_read(folder, error_from, name, content, problem):
    if content is not None:
        (folder / name).write_bytes(content)
    message = error_from("check", name)
    assert message.startswith(f"{name.replace(chr(10), chr(92) + 'u000a')}: {problem}")
    assert message.count("\n") == 1


@pytest.mark.parametrize("name", SURVEYS)
def test_a_resolved_survey_is_the_same_survey(folder, call, name):
    call("verify", f"{name}.toml", "--resolved", "survey.json")
    assert (
        Survey.load(folder / "survey.json").fingerprint
        == Survey.load(folder / f"{name}.toml").fingerprint
    )
    assert (
        call("verify", "survey.json", "--json").out == call("verify", f"{name}.toml", "--json").out
    )


def test_the_json_of_verify(folder, call):
    found = json.loads(call("verify", "lunch.toml", "--json").out)
    assert set(found) == {"survey", "kept", "certificate"}
    survey = Survey.load(folder / "lunch.toml")
    assert found["survey"] == survey.fingerprint
    assert found["kept"] is True
    assert found["certificate"] == survey.certify().to_record()


def test_verify_prints_the_result(folder, call):
    shown = call("verify", "lunch.toml").out
    mechanism = Survey.load(folder / "lunch.toml").mechanism
    assert "lunch-2026" in shown
    assert "the tightest case is “clinic” against “park”, with ε" in shown
    assert "Next: sfumato privatize lunch.toml ANSWERS --column COLUMN -o" in shown
    assert (
        f"Reports have {mechanism.bits} bits; replacing an average honest report with a forged one "
        in shown
    )
    weight = float(re.search(r"moves a count by up to ([\d.,]+) people\.", shown)[1])
    assert mechanism.scores.reach.max_shift <= weight <= 1.01 * mechanism.scores.reach.max_shift


def test_one_person_is_singular(folder, call):
    labels = 'edition = 2\n[domain]\nkind = "labels"\nlabels = ["a", "b"]\n'
    context = '[context]\nkind = "uniform"\nepsilon = "inf"\n'
    (folder / "clear.toml").write_text(f'name = "clear"\n{labels}{context}', encoding="utf-8")
    assert "moves a count by up to 1 person." in call("verify", "clear.toml").out


def test_one_bit_is_singular(folder, call):
    Survey("coin", sf.Uniform(["no", "yes"], 1)).save(folder / "coin.json")
    assert "Reports have 1 bit; " in call("verify", "coin.json").out


def test_nothing_is_written_unless_asked(folder, call):
    before = sorted(folder.iterdir())
    call("verify", "lunch.toml")
    assert sorted(folder.iterdir()) == before


# --- label ----------------------------------------------------------------------------------------


def test_the_label_is_complete(call, folder):
    before = set(read_folder(folder))
    result = call("label", "lunch.toml", "-o", "label.html")
    assert result.code == 0
    assert "Wrote label.html, the privacy label for lunch-2026" in result.out
    assert {str(path) for path in set(read_folder(folder)) - before} == {"label.html"}
    assert (folder / "label.html").read_text(encoding="utf-8") == label_page(
        Survey.load(folder / "lunch.toml")
    )


def test_a_resolved_survey_has_the_same_label(call, folder):
    call("verify", "grid.toml", "--resolved", "grid.json")
    for name in ("grid.toml", "grid.json"):
        assert call("label", name, "-o", f"{name}.html").code == 0
    assert (folder / "grid.toml.html").read_bytes() == (folder / "grid.json.html").read_bytes()


def test_a_survey_that_breaks_its_promise_gets_no_label(call, folder):
    text = Survey("lie", sf.Uniform(["no", "yes"], 1)).resolved().decode()
    (folder / "lie.json").write_text(
        text.replace('"epsilon":"1"', '"epsilon":"0.9"'), encoding="utf-8"
    )
    before = read_folder(folder)
    result = call("label", "lie.json", "-o", "label.html")
    assert result.code == 1
    assert "PRIVACY VIOLATION" in result.err
    assert read_folder(folder) == before


def test_wrong_label_calls_are_refused(error_from):
    error_from("label")
    error_from("label", "lunch.toml")
    error_from("label", "absent.toml", "-o", "label.html")
    error_from("label", "lunch.toml", "-o", "lunch.toml")
    error_from("label", "lunch.toml", "-o", "nowhere/label.html")


def test_answers_given_for_a_survey_are_not_shown(error_from, folder):
    (folder / "a.csv").write_text(f"place\n{CANARY}\n")
    (folder / "a.json").write_text(f'{{"place": "{CANARY}"}}')
    for name in ("a.csv", "a.json"):
        error_from("label", name, "-o", "label.html", never=[CANARY, CANARY[:6]])
