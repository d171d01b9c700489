"""Partitions of the paper's map: tiles, hexagons and the surroundings of cities."""

import json

import numpy as np
import pytest

import sfumato as sf
from experiments import partitions
from experiments.partitions import Hiding, borders, make_partitions
from sfumato.paper.experiment import RunOptions
from sfumato.paper.population import american_places, map_grid
from sfumato.paper.schemes import MapResult
from sfumato.simulation import Spread

KINDS = ["no blocks", *2 * ["tiles", "hexagons", "towns", "cities"]]


@pytest.fixture(scope="module")
def all_maps():
    return make_partitions(map_grid(), american_places())


def test_every_kind_has_two_sizes(all_maps):
    assert all(kind in each.name for kind, each in zip(KINDS, all_maps, strict=True))
    assert len({each.name for each in all_maps}) == len(all_maps)
    for each in all_maps:
        blocks = np.unique(each.block_of)
        assert each.block_of.shape == (43_750,)
        assert (blocks == np.arange(blocks.size)).all()


def test_partitions_of_a_size_have_similar_numbers_of_blocks(all_maps):
    for size in (all_maps[1:5], all_maps[5:9]):
        tiles, hexagons, apart, cities = (int(each.block_of.max()) + 1 for each in size)
        assert abs(tiles / hexagons - 1) < 0.03
        assert apart == hexagons
        assert 0.6 * hexagons < cities <= hexagons  # cities that share a cell share a block


def test_hexagons_contain_the_centres_of_their_cells(all_maps):
    import h3

    latitudes, longitudes = map_grid().centres()
    cells = range(0, 43_750, 997)
    for resolution, hexagons in ((2, all_maps[2]), (3, all_maps[6])):
        holding = [h3.latlng_to_cell(latitudes[x], longitudes[x], resolution) for x in cells]
        blocks = [int(hexagons.block_of[x]) for x in cells]
        assert len(set(zip(holding, blocks, strict=True))) == len(set(holding)) == len(set(blocks))


@pytest.mark.parametrize(("number", "kilometres"), [(230, 100), (1461, 40)])
def test_towns_keep_their_distance(number, kilometres):
    towns = american_places().largest_apart(number, kilometres)
    phi = np.radians(towns.latitudes)
    theta = np.radians(towns.longitudes)
    across = np.sin((phi[:, None] - phi) / 2) ** 2
    across += np.cos(phi[:, None]) * np.cos(phi) * np.sin((theta[:, None] - theta) / 2) ** 2
    apart = 2 * 6371.0 * np.arcsin(np.sqrt(across))
    assert towns.populations.size == number
    assert apart[~np.eye(number, dtype=bool)].min() >= kilometres
    assert (np.diff(towns.populations) <= 0).all()


def test_blocks_say_what_they_reveal(all_maps):
    words = [each.reveals for each in all_maps]
    assert words[0] == "nothing"
    assert words[1] == "the tile, about 309 km tall and 238 km wide"
    assert words[2] == "the hexagon, about 317 km across"
    assert words[3] == "the nearest of 230 towns, no two within 100 km"
    assert words[4].startswith("the nearest of 230 cities with ")


def test_hiding_counts_people():
    rng = np.random.default_rng(1)
    for _ in range(20):
        block_of = np.unique(rng.integers(0, 9, 30), return_inverse=True)[1]
        counts = rng.integers(0, 4, 30) + (np.arange(30) == 0)
        sizes = [sum(block_of == block_of[x]) for x in range(30)]
        people = sorted(sizes[x] for x in range(30) for _ in range(counts[x]))
        hiding = Hiding.measure(block_of, counts)
        assert hiding.blocks == len(set(block_of.tolist()))
        assert hiding.largest_block == max(sizes)
        assert hiding.typical_block == people[(len(people) - 1) // 2]
        assert hiding.share_alone == pytest.approx(people.count(1) / len(people))


def test_borders_separate_blocks_only():
    blocks = np.random.default_rng(2).integers(0, 3, (5, 7))
    slow = {
        ((c + 1, r), (c + 1, r + 1))
        for r in range(5)
        for c in range(6)
        if blocks[r, c] != blocks[r, c + 1]
    }
    slow |= {
        ((c, r + 1), (c + 1, r + 1))
        for r in range(4)
        for c in range(7)
        if blocks[r, c] != blocks[r + 1, c]
    }
    edges = borders(blocks)
    assert {tuple(map(tuple, edge)) for edge in edges.astype(int).tolist()} == slow
    assert len(edges) == len(slow)


# --- the table ------------------------------------------------------------------------------------


@pytest.fixture
def fast_options(monkeypatch):
    """Replace the measurement. Return the options of its calls."""
    options = []

    def fake_measurement(contexts, counts, runs, seed, **_):
        options.append((runs, seed, list(contexts.values())))
        truth = counts / counts.sum()
        return {
            name: MapResult(Spread(0.5, None), Spread(0.4, None), truth, truth) for name in contexts
        }

    monkeypatch.setattr(partitions, "measure_contexts", fake_measurement)
    return options


def test_table_shows_error_and_hiding(fast_options, all_maps, tmp_path):
    (tmp_path / "counts.csv").write_text("row,column,count\n40,50,3\n60,100,1\n")
    result = partitions.partitions(RunOptions(seed=4), grid=str(tmp_path / "counts.csv"))
    ((runs, seed, contexts),) = fast_options
    assert (runs, seed) == (16, 4)
    assert isinstance(contexts[0], sf.Uniform)
    assert all(isinstance(context, sf.Blocks) for context in contexts[1:])
    assert [row["partition"] for row in result.data] == [each.name for each in all_maps]
    for row, each, context in zip(result.data[1:], all_maps[1:], contexts[1:], strict=True):
        assert row["blocks"] == context.sizes.size
        assert row["largest_block"] == context.sizes.max()
        assert row["typical_block"] == np.count_nonzero(
            each.block_of == each.block_of[40 * 350 + 50]
        )
        assert row["reveals"] == each.reveals
    assert len(result.rows[0]) == len(result.columns) == 8
    assert any("not hidden at all" in note for note in result.notes)
    assert not any("favours such blocks" in note for note in result.notes)


@pytest.mark.slow
def test_files_are_complete(fast_options, tmp_path):
    result = partitions.partitions(RunOptions(quick=True))
    paths = result.save(tmp_path)
    assert any(
        "favours such blocks" in note for note in result.notes
    )  # made-up people live in the places of the blocks
    assert sorted(path.suffix for path in paths) == [".csv", ".json", ".pdf", ".png"]
    assert fast_options[0][0] == 1
    assert (
        json.loads((tmp_path / "partitions.json").read_text())[0]["best"]["standard_error"] is None
    )
    assert (tmp_path / "partitions.png").stat().st_size > 20_000


@pytest.mark.slow
def test_blocks_around_cities_reduce_error_and_hiding():
    rows = {row["partition"]: row for row in partitions.partitions(RunOptions(runs=1)).data}
    names = list(rows)
    for tiles, _, apart, cities in (names[1:5], names[5:9]):
        assert rows[cities]["best"]["mean"] < rows[tiles]["best"]["mean"]
        assert rows[apart]["best"]["mean"] < rows[tiles]["best"]["mean"]
        assert (
            rows[cities]["typical_block"]
            < rows[apart]["typical_block"]
            < rows[tiles]["typical_block"]
        )
        assert rows[cities]["share_alone"] > 0
        assert rows[apart]["share_alone"] == 0
    assert all(row["best"]["mean"] < row["hadamard_projection"]["mean"] for row in rows.values())
