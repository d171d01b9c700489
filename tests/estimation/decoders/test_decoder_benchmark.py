"""`benchmarks/decoders.py`: its cases, its rivals, its records and its limits."""

import numpy as np
import pytest

import sfumato as sf
from support.decoder_benchmark import (
    LIMITS,
    CaseResult,
    DecoderCase,
    DecoderFigures,
    HeldOutCase,
    Ratios,
    cases_in_order,
    cell_cases,
    counts_digest,
    decode,
    load_held_out,
    tally_checksum,
)

COUNTS = np.array([3, 0, 1])


def _held_out(digest):
    return HeldOutCase("three", lambda: (sf.Uniform(3, 1), COUNTS), 1_000, digest)


def _case(people=1_000):
    return DecoderCase("group", "name", sf.Uniform(8, 1), np.arange(8) / 28, people)


def _result(name, error, **rivals):
    return CaseResult(name, error, {rival.replace("_", " "): e for rival, e in rivals.items()})


def _is_good(group, results):
    verdicts = list(LIMITS[group](results))
    assert verdicts
    return all(verdict.is_met for verdict in verdicts)


def test_held_out_case_is_loaded_with_its_digest():
    case = load_held_out(_held_out(counts_digest(COUNTS)))
    assert case.shares.tolist() == [0.75, 0, 0.25]
    assert case.people == 1_000


def test_held_out_case_with_other_counts_is_refused():
    digest = counts_digest(np.array([3, 1, 0]))
    with pytest.raises(ValueError, match="three: the SHA-256 of the counts is"):
        load_held_out(_held_out(digest))


def test_digest_is_that_of_little_endian_64_bit_integers():
    assert counts_digest(COUNTS.astype(">i4")) == counts_digest(COUNTS)
    eight_zero_bytes = "af5570f5a1810b7af78caf4bc70a660f0df51e42baf91d4de5b2328de0e83dfc"
    assert counts_digest(np.zeros(1, dtype=np.int64)) == eight_zero_bytes


def test_tallies_depend_only_on_name_and_number():
    assert np.array_equal(_case().tally(3).counts, _case().tally(3).counts)
    assert not np.array_equal(_case().tally(3).counts, _case().tally(4).counts)


def test_there_are_42_ordered_cases_and_80_cells():
    for cases, count in ((cases_in_order(), 42), (cell_cases(), 80)):
        listed = list(cases)
        assert len({case.name for case in listed}) == len(listed) == count
        for case in listed:
            assert case.shares.min() >= 0
            assert case.shares.sum() == pytest.approx(1)
            assert case.shares.size == case.context.domain.size


def test_ems_follows_the_published_steps():
    case = _case(100_000)
    tally = case.tally(0)
    Q = case.mechanism.matrix()
    smoothing = np.eye(8) / 2 + np.eye(8, k=1) / 4 + np.eye(8, k=-1) / 4
    smoothing /= smoothing.sum(axis=1, keepdims=True)
    p = np.full(8, 1 / 8)
    log_likelihood = -np.inf
    while True:
        p = p * (Q @ (tally.counts / (p @ Q)))
        p = smoothing @ (p / p.sum())
        p /= p.sum()
        previous = log_likelihood
        log_likelihood = tally.counts @ np.log(p @ Q)
        if abs(log_likelihood - previous) < 1e-3:
            break
    assert decode("EMS", case.mechanism, tally) == pytest.approx(p, abs=1e-9)


def test_global_projection_ignores_blocks():
    context = sf.Blocks([0, 0, 1, 1], 1)
    case = DecoderCase("group", "blocks", context, np.array([0.7, 0, 0.1, 0.2]), 50)
    projected = decode("global projection", case.mechanism, case.tally(0))
    assert projected.min() >= 0
    assert projected.sum() == pytest.approx(1)
    unprojected = case.mechanism.scores.unbiased(case.tally(0))
    shift = np.unique((projected - unprojected)[projected > 0].round(12))
    assert shift.size == 1


def test_errors_on_record_belong_to_their_tallies(tmp_path):
    path = tmp_path / "figures.json"
    checksums = [tally_checksum(_case().tally(number)) for number in range(3)]
    figures = DecoderFigures(path)
    figures.record("case", "rival", checksums, [0.5, 0.25, 0.125])
    figures.save()
    saved = DecoderFigures(path)
    assert saved.errors("case", "rival", checksums) == [0.5, 0.25, 0.125]
    assert saved.errors("case", "rival", checksums[:2]) == [0.5, 0.25]
    assert saved.errors("case", "rival", [checksums[1]]) == []
    assert saved.errors("case", "other", checksums) == []


def test_other_tallies_replace_errors_on_record(tmp_path):
    figures = DecoderFigures(tmp_path / "figures.json")
    figures.record("case", "first", [1, 2], [0.5, 0.25])
    figures.record("case", "second", [1], [0.5])
    assert figures.errors("case", "first", [1, 2]) == [0.5, 0.25]
    figures.record("case", "second", [3], [0.5])
    assert figures.errors("case", "first", [1]) == []


def test_ratios_have_geometric_mean_and_worst():
    results = [_result("a", 0.1, EMS=0.2), _result("b", 0.4, EMS=0.2), _result("c", 0.3)]
    ratios = Ratios.over("EMS", results)
    assert ratios.mean == pytest.approx(1)
    assert (ratios.worst, ratios.worst_name) == (2, "b")
    assert ratios.above(1) == 1


@pytest.mark.parametrize(
    ("group", "limit", "rivals"),
    [
        ("held-out", 1.05, ["previous_default"]),
        ("ordered", 0.45, ["previous_default"]),
        ("cells", 0.36, ["global_projection"]),
        ("few-large", 1.02, ["projection"]),
        ("shuffled", 1.02, ["previous_default"]),
    ],
)
def test_limits_are_met_just_below_and_missed_just_above(group, limit, rivals):
    errors = dict.fromkeys(rivals, 0.5)
    assert _is_good(group, [_result("a", 0.5 * limit * 0.999, **errors)])
    assert not _is_good(group, [_result("a", 0.5 * limit * 1.001, **errors)])


def test_maps_have_limits_for_check_ins_and_for_cities():
    name = "check-ins 643,148, LDP"
    assert _is_good("maps", [_result(name, 0.205)])
    assert not _is_good("maps", [_result(name, 0.206)])
    assert not _is_good("maps", [_result("cities of Europe, LDP", 0.61, prototype_trees=0.6)])


def test_at_most_four_ordered_cases_may_lose_to_the_best_rival():
    rivals = {"previous_default": 0.5, "prototype_trees": 0.3, "prototype_splines": 0.4}
    near = _result("near", 0.109, **rivals, EMS=0.1)
    far = _result("far", 0.112, **rivals, EMS=0.1)
    small = _result("small", 0.012, **rivals, EMS=0.003)
    assert _is_good("ordered", [near] * 5 + [far] * 4 + [small] * 5)
    assert not _is_good("ordered", [near] * 5 + [far] * 5)
