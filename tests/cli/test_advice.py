"""Warnings about valid surveys: on standard error, without changing anything else."""

import json

import pytest

from sfumato.survey import Survey

SECTIONS = """
[domain]
kind = "labels"
labels = ["a", "b", "c"]
[context]
kind = "uniform"
epsilon = 1.0
"""
COMPLETE = 'title = "Where?"\ncontact = "me@example.org"\nminimum_reports = 100\n'
WARNINGS = {
    "title": "Warning: people will read the survey's name instead of a question. Set title in",
    "contact": "Warning: people will read 'Who asks: not stated'. Set contact in",
    "minimum_reports": "Warning: results are shown from the first report, when they are mostly "
    "noise. Set minimum_reports in",
}


def _write(folder, head, sections=SECTIONS):
    (folder / "q.toml").write_text('name = "q"\n' + head + sections, encoding="utf-8")


def test_complete_surveys_cause_no_warning(call, folder):
    _write(folder, COMPLETE)
    assert call("verify", "q.toml").err == ""
    assert call("label", "q.toml", "-o", "q.html").err == ""


@pytest.mark.parametrize("field", WARNINGS)
@pytest.mark.parametrize("command", [("verify",), ("label", "-o", "q.html")])
def test_a_missing_field_causes_one_warning(call, folder, field, command):
    lines = [line for line in COMPLETE.splitlines() if not line.startswith(field)]
    _write(folder, "\n".join(lines))
    name, *options = command
    result = call(name, "q.toml", *options)
    assert (result.code, result.err) == (0, f"{WARNINGS[field]} q.toml.\n")


def test_json_output_does_not_change(call, folder):
    _write(folder, "")
    result = call("verify", "q.toml", "--json")
    assert result.code == 0
    assert json.loads(result.out)["survey"] == Survey.load(folder / "q.toml").fingerprint
    assert len(result.err.splitlines()) == 3


def test_a_resolved_survey_has_to_be_resolved_again(call, folder):
    _write(folder, COMPLETE.replace("contact", "text"))
    call("verify", "q.toml", "--resolved", "q.json")
    assert call("verify", "q.json").err == (
        f"{WARNINGS['contact']} the survey, and resolve it again.\n"
    )


@pytest.mark.parametrize(
    ("labels", "context", "said"),
    [
        ('["a"]', 'kind = "uniform"\nepsilon = 1.0\n', "there is only one possible answer"),
        (
            '["a", "b"]',
            'kind = "blocks"\nepsilon = 1.0\nblock_of = [1, 2]\n',
            "no two answers have a finite ε",
        ),
        ('["a", "b"]', 'kind = "uniform"\nepsilon = "inf"\n', "no two answers have a finite ε"),
        (
            '["a", "b"]',
            'kind = "high-low"\nepsilon = 1\nsensitive = []\n',
            "no two answers have a finite ε",
        ),
    ],
)
def test_an_empty_promise_causes_a_warning(call, folder, labels, context, said):
    _write(folder, COMPLETE, f'[domain]\nkind = "labels"\nlabels = {labels}\n[context]\n{context}')
    result = call("verify", "q.toml")
    assert result.code == 0
    assert result.err.startswith(f"Warning: the promise protects nothing, because {said}")
    assert result.err.count("\n") == 1


def test_a_promise_for_one_pair_is_not_empty(call, folder):
    context = 'kind = "blocks"\nepsilon = 1.0\nblock_of = [1, 2, 2]\n'
    _write(folder, COMPLETE, SECTIONS.partition("[context]")[0] + "[context]\n" + context)
    assert call("verify", "q.toml").err == ""


# --- swapped arguments, and names of outputs ------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "options"),
    [("estimate", []), ("privatize", ["-o", "reports.csv"]), ("simulate", ["--column", "place"])],
)
def test_swapped_arguments_are_recognised(call, folder, command, options):
    result = call(command, "answers.csv", "lunch.toml", *options)
    assert result.code == 2
    assert "answers.csv is not a survey file: it is a .csv file" in result.err
    assert "the survey comes first" in result.err


def test_a_resolved_survey_must_be_named_json(call, folder):
    result = call("verify", "lunch.toml", "--resolved", "resolved.toml")
    assert result.code == 2
    assert "the name of a resolved survey must end in .json; got resolved.toml." in result.err
    assert not (folder / "resolved.toml").exists()
