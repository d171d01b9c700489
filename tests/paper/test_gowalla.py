"""The paper's table of check-ins: reading them, randomising them again and again, and what becomes of it."""

import gzip
import json

import numpy as np
import pytest

import sfumato as sf
from experiments.partitions import largest_apart
from sfumato.errors import InvalidArgument, InvalidTable
from sfumato.paper import checkins, gowalla
from sfumato.paper.checkins import MapPopulation, map_population
from sfumato.paper.experiment import RunOptions
from sfumato.paper.places import Places, american_places
from sfumato.paper.schemes import MapErrors, measure_contexts
from sfumato.simulation import Spread, experiment_words
from support.error_text import full_error_text

# --- a file of counts -------------------------------------------------------------------------------------------------

COUNTS = "row,column,count\n0,0,3\n124,349,2\n0,0,1\n1,2,0\n"


def written(path, text):
    content = text.encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return str(path)


@pytest.mark.parametrize("name", ["counts.csv", "counts.csv.gz"])
def test_counts_of_a_cell_add_up(tmp_path, name):
    crowd = map_population(grid=written(tmp_path / name, COUNTS))
    assert {x: int(crowd.counts[x]) for x in np.flatnonzero(crowd.counts)} == {
        0: 4,
        125 * 350 - 1: 2,
    }
    assert crowd.people == 6
    assert crowd.truth.sum() == pytest.approx(1)
    assert "counts.csv" in crowd.note
    assert "3,671,812" in crowd.note


def test_columns_may_stand_in_any_order(tmp_path):
    crowd = map_population(grid=written(tmp_path / "a.csv", "count,more,column,row\n5,x,1,2\n"))
    assert np.flatnonzero(crowd.counts).tolist() == [2 * 350 + 1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("row,column,count\n125,0,1\n", "row must be between 0 and 124"),
        ("row,column,count\n-1,0,1\n", "row must be between 0 and 124"),
        ("row,column,count\n0,350,1\n", "column must be between 0 and 349"),
        ("row,column,count\n0,0,-7\n", "count must be between 0"),
        ("row,column,count\n0,0,99999999999\n", "count must be between 0"),
        ("row,column,count\n0,0,99999999\n0,1,99999999\n", "between 1 and 100,000,000 people"),
        ("row,column,count\n0,0,0\n", "between 1 and"),
        ("row,column,count\n", "between 1 and"),
        ("row,column,count\n0,,1\n", "every column must be an integer"),
        ("row,column,count\n0,0,many\n", "cannot read"),
        ("row,column,count\n0,0,1.5\n", "cannot read"),
        ("row,col,count\n0,0,1\n", "no column 'column'"),
        ("0,0,1\n", "must start with a header"),
        ("", "is empty"),
    ],
)
def test_bad_counts_are_refused_and_not_repeated(tmp_path, text, said):
    with pytest.raises(InvalidTable, match=said) as refused:
        map_population(grid=written(tmp_path / "counts.csv", text))
    assert "counts.csv" in str(refused.value)
    assert not any(value in str(refused.value) for value in ("-7", "many", "1.5", "99999999999"))


def test_a_file_that_is_not_there(tmp_path):
    for named in ({"grid": str(tmp_path / "no.csv")}, {"checkins": str(tmp_path / "no.csv")}):
        with pytest.raises(InvalidTable, match=r"no\.csv"):
            map_population(**named)


def test_two_crowds_are_one_too_many():
    with pytest.raises(InvalidArgument, match="not both"):
        map_population(checkins="a", grid="b")


# --- SNAP's file ------------------------------------------------------------------------------------------------------

INSIDE = [
    (25.0, -130.0),
    (25.1999999, -129.8000001),
    (49.99, -60.01),
    (30.2691029532, -97.7493953705),
]
OUTSIDE = [(50.0, -100.0), (40.0, -60.0), (24.9999, -100.0), (-30.0, 10.0), (0.0, 0.0)]


def line(latitude, longitude):
    return f"0\t2010-10-19T23:55:27Z\t{latitude!r}\t{longitude!r}\t22847\n"


@pytest.mark.parametrize("name", ["checkins.txt", "checkins.txt.gz"])
def test_check_ins_on_the_map_are_counted_by_floor(tmp_path, name):
    text = "".join(line(*position) for position in INSIDE + OUTSIDE)
    crowd = map_population(checkins=written(tmp_path / name, text))
    expected = np.zeros(43750, dtype=int)
    for row, column in ((0, 0), (0, 0), (124, 349), (26, 161)):
        expected[row * 350 + column] += 1
    assert (crowd.counts == expected).all()
    assert f"4 of the 9 check-ins of {name}" in crowd.note
    assert "3,671,812" in crowd.note


def test_a_check_in_without_a_position_lies_nowhere(tmp_path):
    text = line(*INSIDE[0]) + "7\t2010-10-19T23:55:27Z\t\t\t1\n"
    assert map_population(checkins=written(tmp_path / "a.txt", text)).people == 1


def test_a_quotation_mark_hides_nothing(tmp_path):
    text = line(*INSIDE[0]).replace("22847", '"x') + line(*INSIDE[2])
    assert map_population(checkins=written(tmp_path / "a.txt", text)).people == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("0,2010-10-19T23:55:27Z,30.26,-97.74,22847\n", "five tab-separated columns"),
        ("0\t2010-10-19T23:55:27Z\t30.26\t-97.74\n", "five tab-separated columns"),
        ("0\t2010-10-19T23:55:27Z\tnorth\t-97.74\t22847\n", "five tab-separated columns"),
        (COUNTS, "use the grid option"),
        (
            "".join(line(*position) for position in OUTSIDE),
            "no check-in between 25N and 50N.*5 elsewhere",
        ),
    ],
)
def test_bad_check_ins_are_refused_and_not_repeated(tmp_path, text, said):
    with pytest.raises(InvalidTable, match=said) as refused:
        map_population(checkins=written(tmp_path / "checkins.txt", text))
    assert not any(
        value in full_error_text(refused.value)
        for value in ("30.26", "-97.74", "22847", "2010", "north")
    )
    assert refused.value.__cause__ is None


def test_a_file_that_is_cut_off_is_refused(tmp_path):
    path = tmp_path / "checkins.txt.gz"
    spread = [(25 + i % 97 / 4, -130 + i % 991 / 15) for i in range(20_000)]
    whole = gzip.compress("".join(line(*position) for position in spread).encode())
    path.write_bytes(whole)
    assert map_population(checkins=str(path)).people == 20_000
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InvalidTable, match=r"checkins\.txt\.gz"):
        map_population(checkins=str(path))


def test_large_files_tell_how_far_they_are(tmp_path, monkeypatch):
    monkeypatch.setattr(checkins, "_ROWS_BETWEEN_LINES", 2)
    told = []
    map_population(
        checkins=written(tmp_path / "a.txt", line(*INSIDE[0]) * 3), on_progress=told.append
    )
    assert told == ["a.txt: 3 check-ins read"]


# --- the population of places -----------------------------------------------------------------------------------------


def test_made_up_people_are_as_many_as_the_papers_and_say_so():
    crowd = map_population()
    assert crowd.people == 3_671_812
    assert "NOT the paper's data" in crowd.note
    assert "not the paper's" in str(crowd)
    assert crowd.counts.size == 43_750


def test_homes_are_in_proportion_to_population():
    places = american_places()
    grid = checkins.map_grid()
    shares = np.bincount(
        grid.symbols_at(places.latitudes, places.longitudes),
        places.population,
        minlength=grid.cells,
    )
    people = 100_000
    homes = np.bincount(places.homes(grid, people), minlength=grid.cells)
    in_cell = np.bincount(
        grid.symbols_at(places.latitudes, places.longitudes), minlength=grid.cells
    )
    assert homes.sum() == people
    assert (
        np.abs(homes - shares / shares.sum() * people) <= in_cell
    ).all()  # each place is rounded by less than one


def test_towns_apart_are_the_largest_that_have_room():
    latitudes, longitudes = (
        np.array([40.0, 40.1, 41.0, 45.0, 40.0]),
        np.array([-100.0, -100.0, -100.0, -100.0, -99.0]),
    )
    places = Places(latitudes, longitudes, np.array([5.0, 9.0, 1.0, 2.0, 3.0]))
    # One degree of latitude is 111.2 km; at 40N one of longitude is 85 km.
    assert largest_apart(places, 5, 90).population.tolist() == [9.0, 2.0, 1.0]
    assert largest_apart(places, 5, 50).population.tolist() == [9.0, 3.0, 2.0, 1.0]
    assert largest_apart(places, 2, 50).population.tolist() == [9.0, 3.0]
    assert places.largest(2).population.tolist() == [9.0, 5.0]
    with pytest.raises(InvalidArgument, match="from 1 to 5"):
        places.largest(6)


# --- the randomiser, again and again ----------------------------------------------------------------------------------

BLOCKS = sf.Blocks([0, 0, 0, 1, 1, 2], epsilon=1)
CONTEXTS = {"all": sf.Uniform(6, 1), "blocks": BLOCKS}
PEOPLE = np.array([400, 50, 0, 300, 10, 40])


def papers_scheme_slowly(reports, sizes, n):
    """The paper's estimate by its formula, one report after the other, and projection by bisection."""
    c, estimates, first = (np.e + 1) / (np.e - 1), [], 0
    for size in sizes:
        K = 1 if size == 1 else 1 << size.bit_length()
        mine = [int(y) - first for y in reports if first <= y < first + K]
        signs = [[(-1) ** ((x + 1) & y).bit_count() for y in mine] for x in range(size)]
        estimates += [len(mine) / n] if size == 1 else [c * sum(row) / n for row in signs]
        first += K
    v, low, high = np.array(estimates), -2.0, 2.0
    for _ in range(100):
        theta = (low + high) / 2
        low, high = (theta, high) if np.maximum(v - theta, 0).sum() > 1 else (low, theta)
    return np.maximum(v - low, 0)


def test_the_papers_scheme_is_the_papers():
    symbols = np.repeat(np.arange(6), PEOPLE)
    for name, context, sizes in (("all", CONTEXTS["all"], [6]), ("blocks", BLOCKS, [3, 2, 1])):
        found = measure_contexts({name: context}, PEOPLE, runs=1, seed=3, workers=1)[name]
        mechanism = sf.mechanism_for(context, code="hadamard")
        counts = mechanism.privatize_and_tally(
            symbols, experiment_words(f"map/{name}/paper", 0, 3)
        ).counts
        slow = papers_scheme_slowly(np.repeat(np.arange(counts.size), counts), sizes, symbols.size)
        assert found.paper_map == pytest.approx(slow, abs=1e-9)
        assert found.paper.mean == pytest.approx(np.abs(slow - PEOPLE / 800).sum() / 2, abs=1e-9)


@pytest.mark.slow
def test_results_do_not_depend_on_workers():
    alone, together = (
        measure_contexts(CONTEXTS, PEOPLE, runs=6, seed=1, workers=workers) for workers in (1, 2)
    )
    for name in CONTEXTS:
        assert alone[name].paper == together[name].paper
        assert alone[name].best == together[name].best
        assert (alone[name].best_map == together[name].best_map).all()


def test_runs_and_seeds_differ_and_their_order_does_not_matter():
    one, two, other = (
        measure_contexts(CONTEXTS, PEOPLE, runs=runs, seed=seed, workers=1)["all"]
        for runs, seed in ((1, 0), (2, 0), (1, 1))
    )
    assert two.paper.standard_error > 0
    assert (one.paper_map == two.paper_map).all()
    assert not (one.paper_map == other.paper_map).all()


def test_progress_is_told_to_the_end():
    told = []
    measure_contexts(CONTEXTS, PEOPLE, runs=5, seed=0, workers=1, on_progress=told.append)
    assert told[0] == "all: 4 of 5 runs (25% of all)"
    assert told[-1] == "blocks: 5 of 5 runs (100% of all)"


# --- the table --------------------------------------------------------------------------------------------------------


@pytest.fixture
def unhurried(monkeypatch):
    """The experiment without its runs: 43,750 cells take seconds to decode, and are decoded in the slow tests."""
    options = []

    def made_up(contexts, counts, runs, seed, **_):
        options.append((runs, seed, {name: _blocks(context) for name, context in contexts.items()}))
        truth = counts / counts.sum()
        error = 0.01 if runs > 1 else None
        return {
            name: MapErrors(Spread(0.5, error), Spread(0.4, error), truth, truth)
            for name in contexts
        }

    monkeypatch.setattr(gowalla, "measure_contexts", made_up)
    return options


def _blocks(context):
    return 1 if isinstance(context, sf.Uniform) else context.sizes.size


@pytest.fixture
def counts(tmp_path):
    return written(tmp_path / "counts.csv", COUNTS)


def test_the_table_has_the_papers_rows(unhurried, counts):
    result = gowalla.gowalla(RunOptions(quick=True, seed=5), grid=counts)
    assert unhurried == [(3, 5, {"LDP": 1, "(5,7)": 35, "(25,35)": 875, "(25,70)": 1750})]
    measured = {"mean": 0.5, "standard_error": 0.01}
    best = {"mean": 0.4, "standard_error": 0.01}
    papers = {"LDP": 0.591, "(5,7)": 0.298, "(25,35)": 0.108, "(25,70)": 0.082}
    assert result.data == [
        {"blocks": name, "paper": error, "hadamard_projection": measured, "best": best}
        for name, error in papers.items()
    ]
    assert [row[:2] for row in result.rows] == list(papers.items())
    assert result.columns == ("blocks", "the paper", "the paper's scheme here", "the best here")
    assert any("per check-in" in note for note in result.notes)


def test_it_runs_as_often_as_the_paper_unless_told_otherwise(unhurried, counts):
    gowalla.gowalla(RunOptions(), grid=counts)
    gowalla.gowalla(RunOptions(runs=7), grid=counts)
    assert [runs for runs, *_ in unhurried] == [100, 7]


def test_everything_is_written(unhurried, counts, tmp_path):
    folder = tmp_path / "found"
    folder.mkdir()
    paths = gowalla.gowalla(RunOptions(runs=1), grid=counts).save(folder)
    assert sorted(path.name for path in paths) == [
        "gowalla.csv",
        "gowalla.json",
        "gowalla.pdf",
        "gowalla.png",
    ]
    assert json.loads((folder / "gowalla.json").read_text())[0]["best"] == {
        "mean": 0.4,
        "standard_error": None,
    }
    assert (folder / "gowalla.png").stat().st_size > 20_000


def test_crowds_that_are_made_up_are_never_called_the_papers(unhurried):
    result = gowalla.gowalla(RunOptions(quick=True))
    assert "not the paper's" in result.summary
    assert any("NOT the paper's data" in note for note in result.notes)


@pytest.mark.slow
def test_smaller_blocks_and_better_schemes_give_smaller_errors():
    result = gowalla.gowalla(RunOptions(runs=2))
    paper, best = (
        [row[scheme]["mean"] for row in result.data] for scheme in ("hadamard_projection", "best")
    )
    assert paper == sorted(paper, reverse=True)
    assert best == sorted(best, reverse=True)
    assert all(better < 0.9 * worse for better, worse in zip(best, paper, strict=True))
    assert not np.isnan(result.data[0]["best"]["standard_error"])


def test_a_crowd_speaks_of_its_number():
    assert str(MapPopulation(np.array([1_000, 2]), "check-ins", "")) == "1,002 check-ins"
