"""`design`: a mechanism for a matrix or a survey, from a search that can be interrupted."""

import gzip
import json
import os
import pty
import re
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import sfumato as sf
from sfumato.survey import Survey
from support.command import read_folder
from support.paths import ROOT

STOPS = """,park,café,clinic,bar
park,0,1,2,3
café,1,0,1,2
clinic,2,1,0,1
bar,3,2,1,0
"""
LINE = [["0", "1", "2", "3"], ["1", "0", "1", "2"], ["2", "1", "0", "1"], ["3", "2", "1", "0"]]
LABELS = ["park", "café", "clinic", "bar"]
SURVEY = """name = "stops-2026"
title = "Which stop?"
minimum_reports = 10
repeat = { every = "week", distinct = 2 }
[domain]
kind = "labels"
labels = ["park", "café", "clinic", "bar"]
[context]
kind = "metric"
epsilon = 1
distances = "stops.csv"
"""
KEYS = {
    "survey", "name", "symbols", "risk", "lower_bound", "bound_is", "gap", "rounds", "stopped",
    "outputs", "bits",
    "leverage", "seconds", "compared", "certificate",
}  # fmt: skip


@pytest.fixture(autouse=True)
def stops(folder):
    (folder / "stops.csv").write_text(STOPS, encoding="utf-8")
    (folder / "stops.toml").write_text(SURVEY, encoding="utf-8")
    (folder / "rides.csv").write_text(
        "stop\n" + "park\ncafé\nclinic\nbar\n" * 100, encoding="utf-8"
    )
    return folder


@pytest.fixture(scope="module")
def answer():
    """A finished design of the four stops."""
    return sf.design(sf.PrivacyMatrix(LINE, domain=LABELS))


@pytest.fixture
def found(monkeypatch, answer):
    """Let the search return this at once; return the arguments of the search."""
    asked = {}

    def returns(**changes):
        made = replace(answer, **changes)

        def at_once(context, **options):
            asked.update(options, context=context)
            return made

        monkeypatch.setattr("sfumato.designer.design", at_once)
        return asked

    return returns


# --- from a matrix to an estimate -----------------------------------------------------------------


def test_a_matrix_becomes_a_survey_that_works(call, folder):
    result = call("design", "stops.csv", "-o", "survey.json")
    assert (result.code, result.err) == (0, "")
    assert "Wrote survey.json" in result.out
    survey = Survey.load(folder / "survey.json")
    assert survey.context == sf.PrivacyMatrix(LINE, domain=LABELS)
    assert re.fullmatch(r"stops-[0-9a-f]{6}", survey.name)
    steps = [
        ("verify", "survey.json", "-o", "certificate.json"),
        ("privatize", "survey.json", "rides.csv", "--column", "stop", "-o", "reports.parquet"),
        ("estimate", "survey.json", "reports.parquet", "-o", "estimate.csv"),
        ("plan", "survey.json", "--people", "1000"),
        ("simulate", "survey.json", "rides.csv", "--column", "stop", "--runs", "2"),
        ("design", "survey.json", "-o", "again.json"),
    ]
    for step in steps:
        done = call(*step)
        assert done.code == 0, step
        assert all(
            line.startswith("Warning: ") or line.endswith(" counted.")
            for line in done.err.splitlines()
        ), step
    checker = ROOT / "tools" / "check_certificate.py"
    checked = subprocess.run(
        [sys.executable, checker, "certificate.json"], cwd=folder, capture_output=True, check=False
    )
    assert checked.returncode == 0, checked.stderr
    again = Survey.load(folder / "again.json")
    assert (again.name, again.context) == (survey.name, survey.context)


def test_the_same_call_gives_the_same_mechanism(call, folder):
    for name in ("one.json", "two.json"):
        call("design", "stops.csv", "--name", "stops", "--seed", "3", "-o", name)
    assert (folder / "one.json").read_bytes() == (folder / "two.json").read_bytes()


def test_what_is_printed(call):
    out = call("design", "stops.csv").out
    facts = dict(
        re.split(r"  +", line, maxsplit=1) for line in out.partition("\n\n")[0].splitlines()
    )
    assert facts["symbols"] == "4"
    assert facts["closed form"].startswith("none known")
    assert facts["lower bound"].endswith("(certified)")
    assert facts["gap"].endswith("(certified)")
    assert "rounds in" in facts["search"] or "round in" in facts["search"]
    assert "bits each" in facts["reports"]
    assert "honest people" in facts["leverage"]
    for rival in ("classical LDP, ε = 1", "exponential mechanism"):
        assert float(facts[rival].removesuffix(" times the risk")) > 1
    assert "The promise is kept. Certified (every pair on every report)" in out


def test_the_json(call):
    result = call("design", "stops.csv", "--json", "--name", "stops")
    found = json.loads(result.out)
    assert (result.code, result.err) == (0, "")
    assert set(found) >= KEYS
    assert found["name"] == "stops"
    assert found["risk"] >= found["lower_bound"] > 0
    assert found["gap"] == pytest.approx(found["risk"] / found["lower_bound"] - 1, abs=1e-9)
    assert {rival["name"] for rival in found["compared"]} == {"classical", "exponential"}
    assert found["certificate"]["method"] == "enumerated"
    assert found["bound_is"] == "certified"
    assert "estimated" not in json.dumps(found)


def test_unproved_bounds_are_called_estimated(call, found):
    found(certified=False)
    facts = call("design", "stops.csv").out.partition("The promise is kept")[0]
    assert facts.count("estimated") == 3
    assert "certified" not in facts
    printed = json.loads(call("design", "stops.csv", "--json").out)
    assert printed["bound_is"] == "estimated"
    assert "certified" not in json.dumps(
        {name: value for name, value in printed.items() if name != "certificate"}
    )


def test_what_has_a_closed_form_is_recognised(call, folder):
    (folder / "even.csv").write_text("a,b,c\n0,1,1\n1,0,1\n1,1,0\n")
    out = call("design", "even.csv", "-o", "even.json").out
    assert re.search(r"closed form +uniform", out)
    assert "round" not in out
    assert Survey.load(folder / "even.json").mechanism.kind == "plain"


def test_a_matrix_may_be_compressed(call, folder):
    (folder / "packed.csv.gz").write_bytes(gzip.compress(STOPS.encode()))
    assert json.loads(call("design", "packed.csv.gz", "--json").out)["name"].startswith("packed-")


# --- from a survey --------------------------------------------------------------------------------


def test_design_keeps_the_survey_texts(call, folder):
    assert call("design", "stops.toml", "-o", "survey.json").code == 0
    survey = Survey.load(folder / "survey.json")
    assert (survey.name, survey.title, survey.minimum_reports) == ("stops-2026", "Which stop?", 10)
    assert survey.description.about["repeat"] == {"every": "week", "distinct": 2}
    assert survey.context == sf.Metric(LINE, 1, domain=LABELS)
    call("design", "survey.json", "--name", "stops-2027", "-o", "next.json")
    again = Survey.load(folder / "next.json")
    assert (again.name, again.title) == ("stops-2027", "Which stop?")
    assert again.fingerprint != survey.fingerprint


def test_survey_without_closed_form_suggests_design(error_from):
    assert "sfumato design stops.toml -o stops.json" in error_from("verify", "stops.toml")


def test_mechanism_section_is_rejected(error_from, folder):
    (folder / "wish.toml").write_text(SURVEY + '[mechanism]\ncode = "hadamard"\n', encoding="utf-8")
    assert "[mechanism]" in error_from("design", "wish.toml", "-o", "wish.json")


# --- crowds and weights ---------------------------------------------------------------------------


def test_prior_and_weights_are_passed_on_in_domain_order(call, folder, found):
    (folder / "crowd.csv").write_text(
        "label,share\nbar,0.1\nclinic,0.2\ncafé,0.3\npark,0.4\n", encoding="utf-8"
    )
    (folder / "weights.csv").write_text(
        "label,weight\npark,1\nbar,4\nclinic,3\ncafé,2\n", encoding="utf-8"
    )
    asked = found()
    options = (
        "--prior",
        "crowd.csv",
        "--weights",
        "weights.csv",
        "--time-limit",
        "7",
        "--seed",
        "5",
    )
    assert call("design", "stops.csv", *options).code == 0
    np.testing.assert_allclose(asked["prior"], [0.4, 0.3, 0.2, 0.1])
    np.testing.assert_allclose(asked["weights"], [1, 2, 3, 4])
    assert (asked["time_limit"], asked["seed"]) == (7, 5)


def test_prior_may_be_counts(call, folder):
    (folder / "crowd.csv").write_text(
        "label,share\nbar,0.1\nclinic,0.2\ncafé,0.3\npark,0.4\n", encoding="utf-8"
    )
    (folder / "counts.csv").write_text(
        "label,count\nbar,10\nclinic,20\ncafé,30\npark,40\n", encoding="utf-8"
    )
    risks = [
        json.loads(call("design", "stops.csv", "--prior", name, "--json").out)["risk"]
        for name in ("crowd.csv", "counts.csv")
    ]
    assert risks[0] == pytest.approx(risks[1], rel=1e-9)


TABLES = {
    "absent": ("", "cannot be read"),
    "no such column": (
        "label,number\npark,1\n",
        "must have a label column and exactly one of the columns",
    ),
    "a label twice": ("label,weight,share\npark,1,1\npark,1,1\n", "twice"),
    "an unknown label": ("label,weight,share\nzoo,1,1\n", "not a label"),
    "text": ("label,weight,share\npark,much,much\n", "numbers only"),
}


@pytest.mark.parametrize("option", ["--prior", "--weights"])
@pytest.mark.parametrize(("content", "said"), TABLES.values(), ids=TABLES)
def test_a_bad_table_is_refused(error_from, folder, option, content, said):
    if content:
        (folder / "table.csv").write_text(content)
    assert said in error_from("design", "stops.csv", option, "table.csv", "-o", "survey.json")


def test_every_label_needs_a_weight_but_not_a_share(call, error_from, folder, found):
    (folder / "some.csv").write_text(
        "label,weight,share\nclinic,3,0.5\npark,1,0.5\n", encoding="utf-8"
    )
    assert "starting with 'café'" in error_from("design", "stops.csv", "--weights", "some.csv")
    asked = found()
    assert call("design", "stops.csv", "--prior", "some.csv").code == 0
    assert asked["prior"].tolist() == [0.5, 0, 0.5, 0]


@pytest.mark.parametrize("option", ["--prior", "--weights"])
@pytest.mark.parametrize("number", ["-1", "nan", "inf"])
def test_invalid_numbers_are_rejected(error_from, folder, option, number):
    text = f"label,weight,share\npark,{number},{number}\ncafé,1,1\nclinic,1,1\nbar,1,1\n"
    (folder / "table.csv").write_text(text, encoding="utf-8")
    assert option.removeprefix("--") in error_from(
        "design", "stops.csv", option, "table.csv", "-o", "survey.json"
    )


# --- wrong calls ----------------------------------------------------------------------------------

MATRICES = {
    "empty": ("", "is empty"),
    "not square": ("a,b\n0,1\n1,0,1\n", "line 3 should have 2 columns; got 3"),
    "negative": ("a,b\n0,-1\n1,0\n", "line 2, column 2"),
    "NaN": ("a,b\n0,nan\n1,0\n", "line 2, column 2"),
    "text": ("a,b\n0,x\n1,0\n", "line 2, column 2"),
    "twice the same label": ("a,a\n0,1\n1,0\n", "'a' occurs twice"),
    "semicolons": ("a;b\n0;1\n1;0\n", "Separate cells with commas"),
    "no labels": ("0,1\n1,0\n", "expected labels, got only numbers"),
    "other labels in the column": (
        ",a,b\na,0,1\nc,1,0\n",
        "expected the label 'b', got 'c'",
    ),
    "beyond 40": ("a,b,c\n0,41,1\n1,0,2\n1,2,0\n", "at most 40"),
    "not to be told apart": ("a,b,c\n0,0,1\n0,0,1\n1,1,0\n", "forbids telling"),
}


@pytest.mark.parametrize(("content", "said"), MATRICES.values(), ids=MATRICES)
def test_bad_matrix_exits_2(error_from, folder, content, said):
    (folder / "bad.csv").write_text(content)
    assert said in error_from("design", "bad.csv", "-o", "survey.json", "--html", "page.html")


def test_other_files_exit_2(error_from, folder):
    with (folder / "huge.csv").open("wb") as file:
        file.truncate(2**28 + 1)
    assert "256 MiB" in error_from("design", "huge.csv")
    (folder / "huge.csv").unlink()
    assert "cannot be read" in error_from("design", "absent.csv")
    assert "cannot be read" in error_from("design", "absent.toml")
    assert "cannot be read" in error_from("design", "-")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "MATRIX.csv"),
        (("stops.csv", "-o", "survey.toml"), "must end in .json"),
        (("stops.csv", "-o", "nowhere/survey.json"), "no folder"),
        (("stops.csv", "--plot", "stops.csv"), "must not be the same file as an input"),
        (
            ("stops.csv", "--weights", "rides.csv", "--html", "rides.csv"),
            "must not be the same file as an input",
        ),
        (("stops.csv", "--html", "a", "--plot", "a"), "another output"),
        (("stops.csv", "--name", " "), "name"),
        (("stops.csv", "--name", "x" * 101), "name"),
        (("stops.csv", "--time-limit", "-1"), "time-limit"),
        (("stops.csv", "--time-limit", "nan"), "time"),
        (("stops.csv", "--seed", "-1"), "seed"),
        (("grid.toml", "extra.toml"), "extra"),
    ],
)
def test_wrong_calls_exit_2(error_from, arguments, said):
    assert said in error_from("design", *arguments)


def test_pictures_of_too_many_symbols_are_refused_before_the_search(error_from, folder, found):
    asked = found()
    (folder / "many.toml").write_text(
        'name = "m"\n[domain]\nkind = "range"\nsize = 300\n'
        '[context]\nkind = "uniform"\nepsilon = 1\n'
    )
    for option in ("--html", "--plot"):
        assert "up to 256 symbols" in error_from("design", "many.toml", option, "picture")
    assert asked == {}


def test_missing_extra_is_reported_before_the_search(error_from, monkeypatch, found):
    asked = found()
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    assert "pip install -e '.[charts]'" in error_from(
        "design", "stops.csv", "-o", "survey.json", "--plot", "picture.png"
    )
    assert asked == {}


def test_mistakes_are_reported_before_the_search(error_from, folder, found):
    asked = found()
    (folder / "late.toml").write_text('closes = "soon"\n' + SURVEY, encoding="utf-8")
    assert "closes must be a date" in error_from("design", "late.toml", "-o", "late.json")
    assert asked == {}


def test_a_mechanism_that_breaks_its_promise_is_never_written(call, folder, found):
    loose = sf.mechanism_for(sf.Uniform(LABELS, 3))
    found(mechanism=loose)
    before = read_folder(folder)
    result = call(
        "design", "stops.csv", "-o", "survey.json", "--html", "page.html", "--plot", "picture.png"
    )
    assert result.code == 1
    assert "PRIVACY VIOLATION" in result.err
    assert result.out == ""
    assert read_folder(folder) == before


# --- pages, progress, Ctrl-C ----------------------------------------------------------------------


def test_page_and_picture(call, folder, found):
    pytest.importorskip("matplotlib")
    found()
    assert call("design", "stops.toml", "--html", "design.html", "--plot", "maps.png").code == 0
    page = (folder / "design.html").read_text(encoding="utf-8")
    assert "Which stop?" in page
    assert "(certified)" in page
    assert (folder / "maps.png").read_bytes().startswith(b"\x89PNG")


def test_nothing_is_written_by_default(call, folder, found):
    found()
    before = read_folder(folder)
    assert call("design", "stops.csv").code == 0
    assert read_folder(folder) == before


def test_a_design_that_was_interrupted_is_written_and_says_so(call, folder, found):
    found(stop_reason="interrupted", round_count=1, certified=False)
    result = call("design", "stops.csv", "-o", "survey.json")
    assert result.code == 0
    assert "stopped early" in result.out
    assert Survey.load(folder / "survey.json").certify()


def _watched(folder, *arguments):
    """The command with a terminal for its messages: what it shows there, and the process."""
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "sfumato", *arguments]
    run = subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=slave,
        env={**os.environ, "TERM": "xterm"},
    )
    os.close(slave)
    return run, master


def _read_until(master, wanted):
    shown = b""
    while wanted not in shown:
        try:
            more = os.read(master, 4096)
        except OSError:
            more = b""
        if not more:
            break
        shown += more
    return shown


def test_ctrl_c_keeps_the_best_so_far(folder):
    """Two dozen places: more than any search is done with in an hour."""
    places = np.random.default_rng(1).random((24, 2))
    distances = np.linalg.norm(places[:, None] - places[None], axis=2).round(3)
    rows = "\n".join(",".join(map(repr, row)) for row in (4 * distances).round(3).tolist())
    (folder / "places.csv").write_text(",".join(f"p{i}" for i in range(24)) + "\n" + rows)
    run, master = _watched(
        folder, "design", "places.csv", "-o", "places.json", "--time-limit", "3600"
    )
    try:
        shown = _read_until(master, b"round ")
        assert b"Ctrl-C" in shown
        assert b"risk" in _read_until(master, b"estimated)")
        run.send_signal(signal.SIGINT)
        _read_until(master, b"nothing that is ever shown")
        out = run.stdout.read().decode()
        assert run.wait() == 0
    finally:
        run.kill()
        run.stdout.close()
        os.close(master)
    assert "stopped early" in out
    assert "(estimated)" in out
    survey = Survey.load(folder / "places.json")
    assert survey.certify().inputs == 24
