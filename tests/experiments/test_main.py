"""`python -m experiments`: the command finds every experiment and passes its options on."""

import importlib
import inspect
import json

import pytest
from typer.testing import CliRunner

from experiments.__main__ import EXPERIMENTS, app
from sfumato.paper.experiment import ExperimentResult, RunOptions


def _draw():
    from matplotlib.figure import Figure

    return Figure(figsize=(1, 1))


def _result(name, data):
    return ExperimentResult(name, "Title", "Summary.", ("a",), ((1,),), data, _draw)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_has_its_module(name):
    word = name.replace("-", "_")
    experiment = getattr(importlib.import_module(f"experiments.{word}"), word)
    inspect.signature(experiment).bind(RunOptions())


def test_options_reach_the_experiment(tmp_path, monkeypatch):
    def experiment(options, grid, checkins):
        data = {"runs": options.runs, "seed": options.seed, "quick": options.quick, "grid": grid}
        return _result("partitions", data)

    monkeypatch.setattr("experiments.partitions.partitions", experiment)
    call = ["partitions", "--runs", "3", "--seed", "5", "--quick", "--json", "--grid", "g.csv"]
    result = CliRunner().invoke(app, [*call, "-o", str(tmp_path)])
    expected = {"runs": 3, "seed": 5, "quick": True, "grid": "g.csv"}
    assert json.loads(result.output) == expected
    assert json.loads((tmp_path / "partitions.json").read_text("utf-8")) == expected


@pytest.mark.parametrize("call", [["nonsense"], ["bounds", "--grid", "g.csv"], []])
def test_wrong_calls_are_refused(call):
    assert CliRunner().invoke(app, call).exit_code == 2
