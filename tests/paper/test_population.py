"""People on the paper's map: check-ins, a table of counts, and the population of places."""

import gzip

import numpy as np
import pytest

from sfumato.errors import InvalidArgument, InvalidTable
from sfumato.paper import population
from sfumato.paper.population import (
    MapPopulation,
    Places,
    american_places,
    map_grid,
    map_population,
)
from support.error_text import full_error_text


def write(path, text):
    content = text.encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return str(path)


def test_population_as_text():
    assert str(MapPopulation(np.array([1_000, 2]), "check-ins", "")) == "1,002 check-ins"


def test_two_sources_are_rejected():
    with pytest.raises(InvalidArgument, match="not both"):
        map_population(checkins="a", grid="b")


@pytest.mark.parametrize("option", ["grid", "checkins"])
def test_missing_files_are_named(tmp_path, option):
    with pytest.raises(InvalidTable, match=r"no\.csv"):
        map_population(**{option: str(tmp_path / "no.csv")})


# --- a file of counts -----------------------------------------------------------------------------

COUNTS = "row,column,count\n0,0,3\n124,349,2\n0,0,1\n1,2,0\n"


@pytest.mark.parametrize("name", ["counts.csv", "counts.csv.gz"])
def test_counts_of_a_cell_add_up(tmp_path, name):
    people = map_population(grid=write(tmp_path / name, COUNTS))
    nonempty = {x: int(people.counts[x]) for x in np.flatnonzero(people.counts)}
    assert nonempty == {0: 4, 125 * 350 - 1: 2}
    assert people.people == 6
    assert people.true_shares.sum() == pytest.approx(1)
    assert "counts.csv" in people.note
    assert "3,671,812" in people.note


def test_columns_may_come_in_any_order(tmp_path):
    people = map_population(grid=write(tmp_path / "a.csv", "count,more,column,row\n5,x,1,2\n"))
    assert np.flatnonzero(people.counts).tolist() == [2 * 350 + 1]


@pytest.mark.parametrize(
    ("text", "message"),
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
        ("row,column,count\n0,0,many\n", "line 2: column .count. must contain integers"),
        ("row,column,count\n0,0,1.5\n", "line 2: column .count. must contain integers"),
        ("row,col,count\n0,0,1\n", "no column 'column'"),
        ("0,0,1\n", "first line must be a header"),
        ("", "is empty"),
    ],
)
def test_bad_count_errors_do_not_echo_values(tmp_path, text, message):
    with pytest.raises(InvalidTable, match=message) as failure:
        map_population(grid=write(tmp_path / "counts.csv", text))
    assert "counts.csv" in str(failure.value)
    assert not any(value in str(failure.value) for value in ("-7", "many", "1.5", "99999999999"))


# --- SNAP's file ----------------------------------------------------------------------------------

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
def test_check_ins_count_in_the_cell_that_contains_them(tmp_path, name):
    text = "".join(line(*position) for position in INSIDE + OUTSIDE)
    people = map_population(checkins=write(tmp_path / name, text))
    expected = np.zeros(43750, dtype=int)
    for row, column in ((0, 0), (0, 0), (124, 349), (26, 161)):
        expected[row * 350 + column] += 1
    assert (people.counts == expected).all()
    assert f"4 of the 9 check-ins in {name}" in people.note
    assert "3,671,812" in people.note


def test_check_ins_without_a_position_are_off_the_map(tmp_path):
    text = line(*INSIDE[0]) + "7\t2010-10-19T23:55:27Z\t\t\t1\n"
    assert map_population(checkins=write(tmp_path / "a.txt", text)).people == 1


def test_quotation_marks_are_plain_characters(tmp_path):
    text = line(*INSIDE[0]).replace("22847", '"x') + line(*INSIDE[2])
    assert map_population(checkins=write(tmp_path / "a.txt", text)).people == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("0,2010-10-19T23:55:27Z,30.26,-97.74,22847\n", "five tab-separated columns"),
        ("0\t2010-10-19T23:55:27Z\t30.26\t-97.74\n", "five tab-separated columns"),
        ("0\t2010-10-19T23:55:27Z\tnorth\t-97.74\t22847\n", "five tab-separated columns"),
        (COUNTS, "use the grid option"),
        (
            "".join(line(*position) for position in OUTSIDE),
            "no check-ins between 25N and 50N.*all 5 are elsewhere",
        ),
    ],
)
def test_bad_check_in_errors_do_not_echo_values(tmp_path, text, message):
    with pytest.raises(InvalidTable, match=message) as failure:
        map_population(checkins=write(tmp_path / "checkins.txt", text))
    everything = full_error_text(failure.value)
    assert not any(value in everything for value in ("30.26", "-97.74", "22847", "2010", "north"))
    assert failure.value.__cause__ is None


def test_truncated_files_are_rejected(tmp_path):
    path = tmp_path / "checkins.txt.gz"
    positions = [(25 + i % 97 / 4, -130 + i % 991 / 15) for i in range(20_000)]
    content = gzip.compress("".join(line(*position) for position in positions).encode())
    path.write_bytes(content)
    assert map_population(checkins=str(path)).people == 20_000
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(InvalidTable, match=r"checkins\.txt\.gz"):
        map_population(checkins=str(path))


def test_large_files_report_progress(tmp_path, monkeypatch):
    monkeypatch.setattr(population, "_ROWS_PER_PROGRESS_LINE", 2)
    messages = []
    path = write(tmp_path / "a.txt", line(*INSIDE[0]) * 3)
    map_population(checkins=path, on_progress=messages.append)
    assert messages == ["a.txt: 3 check-ins read"]


# --- the population of places ---------------------------------------------------------------------


def test_made_up_people_are_as_many_as_the_papers_and_say_so():
    people = map_population()
    assert people.people == 3_671_812
    assert "NOT the paper's data" in people.note
    assert "not the paper's" in str(people)
    assert people.counts.size == 43_750


def test_homes_are_in_proportion_to_population():
    places = american_places()
    grid = map_grid()
    cells = grid.symbols_at(places.latitudes, places.longitudes)
    shares = np.bincount(cells, places.populations, minlength=grid.cell_count)
    people = 100_000
    homes = np.bincount(places.assign_cells(grid, people), minlength=grid.cell_count)
    places_in_cell = np.bincount(cells, minlength=grid.cell_count)
    assert homes.sum() == people
    errors = np.abs(homes - shares / shares.sum() * people)
    assert (errors <= places_in_cell).all()  # each place is rounded by less than one


def test_towns_apart_are_the_largest_that_have_room():
    latitudes = np.array([40.0, 40.1, 41.0, 45.0, 40.0])
    longitudes = np.array([-100.0, -100.0, -100.0, -100.0, -99.0])
    places = Places(latitudes, longitudes, np.array([5.0, 9.0, 1.0, 2.0, 3.0]))
    # One degree of latitude is 111.2 km; at 40N one of longitude is 85 km.
    assert places.largest_apart(5, 90).populations.tolist() == [9.0, 2.0, 1.0]
    assert places.largest_apart(5, 50).populations.tolist() == [9.0, 3.0, 2.0, 1.0]
    assert places.largest_apart(2, 50).populations.tolist() == [9.0, 3.0]
    assert places.largest(2).populations.tolist() == [9.0, 5.0]
    with pytest.raises(InvalidArgument, match="from 1 to 5"):
        places.largest(6)
