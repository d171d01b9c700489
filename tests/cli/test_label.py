"""`sfumato label`: a page for those who are asked, or a refusal."""

import sfumato as sf
from sfumato.pages import label_page
from sfumato.survey import Survey
from support.command import read_folder

CANARY = "kanarienvogel-4711"


def test_the_label_is_written_whole(call, folder):
    before = set(read_folder(folder))
    result = call("label", "lunch.toml", "-o", "label.html")
    assert (result.code, result.err) == (0, "")
    assert "label.html written: the privacy label of lunch-2026" in result.out
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


def test_wrong_calls_are_refused(error_from):
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
