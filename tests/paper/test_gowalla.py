"""The paper's table of check-ins: its rows, its files and its picture."""

import json

import numpy as np
import pytest

import sfumato as sf
from sfumato.paper import gowalla
from sfumato.paper.experiment import RunOptions
from sfumato.paper.schemes import MapResult
from sfumato.simulation import Spread

COUNTS = "row,column,count\n0,0,3\n124,349,2\n0,0,1\n1,2,0\n"


@pytest.fixture
def quick_runs(monkeypatch):
    """Replace the runs by fixed errors: to decode 43,750 cells takes seconds (see slow tests)."""
    options = []

    def fixed_errors(contexts, counts, runs, seed, **_):
        blocks = {name: _count_blocks(context) for name, context in contexts.items()}
        options.append((runs, seed, blocks))
        truth = counts / counts.sum()
        error = 0.01 if runs > 1 else None
        errors = MapResult(Spread(0.5, error), Spread(0.4, error), truth, truth)
        return dict.fromkeys(contexts, errors)

    monkeypatch.setattr(gowalla, "measure_contexts", fixed_errors)
    return options


def _count_blocks(context):
    return 1 if isinstance(context, sf.Uniform) else context.sizes.size


@pytest.fixture
def counts(tmp_path):
    path = tmp_path / "counts.csv"
    path.write_text(COUNTS)
    return str(path)


def test_table_has_the_rows_of_the_paper(quick_runs, counts):
    result = gowalla.gowalla(RunOptions(quick=True, seed=5), grid=counts)
    assert quick_runs == [(3, 5, {"LDP": 1, "(5,7)": 35, "(25,35)": 875, "(25,70)": 1750})]
    paper = {"mean": 0.5, "standard_error": 0.01}
    best = {"mean": 0.4, "standard_error": 0.01}
    paper_errors = {"LDP": 0.591, "(5,7)": 0.298, "(25,35)": 0.108, "(25,70)": 0.082}
    assert result.data == [
        {"blocks": name, "paper": error, "hadamard_projection": paper, "best": best}
        for name, error in paper_errors.items()
    ]
    assert [row[:2] for row in result.rows] == list(paper_errors.items())
    assert result.columns == ("blocks", "the paper", "the paper's scheme here", "the best here")
    assert any("per check-in" in note for note in result.notes)


def test_number_of_runs_defaults_to_the_papers(quick_runs, counts):
    gowalla.gowalla(RunOptions(), grid=counts)
    gowalla.gowalla(RunOptions(runs=7), grid=counts)
    assert [runs for runs, *_ in quick_runs] == [100, 7]


def test_result_is_saved_in_four_formats(quick_runs, counts, tmp_path):
    folder = tmp_path / "results"
    folder.mkdir()
    paths = gowalla.gowalla(RunOptions(runs=1), grid=counts).save(folder)
    names = sorted(path.name for path in paths)
    assert names == ["gowalla.csv", "gowalla.json", "gowalla.pdf", "gowalla.png"]
    data = json.loads((folder / "gowalla.json").read_text())
    assert data[0]["best"] == {"mean": 0.4, "standard_error": None}
    assert (folder / "gowalla.png").stat().st_size > 20_000


def test_made_up_people_are_never_called_the_papers(quick_runs):
    result = gowalla.gowalla(RunOptions(quick=True))
    assert "not the paper's" in result.summary
    assert any("NOT the paper's data" in note for note in result.notes)


@pytest.mark.slow
def test_smaller_blocks_and_better_schemes_give_smaller_errors():
    result = gowalla.gowalla(RunOptions(runs=2))
    paper = [row["hadamard_projection"]["mean"] for row in result.data]
    best = [row["best"]["mean"] for row in result.data]
    assert paper == sorted(paper, reverse=True)
    assert best == sorted(best, reverse=True)
    assert all(better < 0.9 * worse for better, worse in zip(best, paper, strict=True))
    assert not np.isnan(result.data[0]["best"]["standard_error"])
