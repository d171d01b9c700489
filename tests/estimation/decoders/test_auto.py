"""The default decoder: what it decodes with, and what a root and a covariate change."""

from string import ascii_letters

import numpy as np
import pytest

from sfumato.contexts import Blocks, Uniform
from sfumato.domains import Domain, GridDomain, IntegerDomain
from sfumato.errors import InvalidArgument
from sfumato.estimation.decoders.auto import Auto
from sfumato.estimation.decoders.decoder import Projection
from sfumato.estimation.decoders.empirical_bayes import EmpiricalBayes
from sfumato.estimation.decoders.halves import mix_with_projection
from sfumato.mechanisms import BlockResponse, PlainResponse
from sfumato.tally import Tally

PLAIN = PlainResponse(Uniform(Domain([f"place {x}" for x in ascii_letters]), 1))
SPIKY = np.where(np.arange(52) < 6, 0.16, 0.04 / 46)
PLANE_TITLES = {"no order", "neighbours"}
ROW_TITLES = {*PLANE_TITLES, "smooth curve", "smooth curve with peaks"}
SMALL_GRID = PlainResponse(Uniform(GridDomain(0, 4, 0, 5, 1), 1))


def _draw_tally(mechanism, p, reports, seed=0):
    q = np.maximum(mechanism.forward(p), 0)
    return Tally(
        np.random.default_rng(seed).multinomial(reports, q / q.sum()), mechanism.fingerprint
    )


# --- what decodes ---------------------------------------------------------------------------------


def test_symbols_without_order_are_mixed_with_projection():
    tally = _draw_tally(PLAIN, SPIKY, 20_000)
    result = Auto().decode(PLAIN, tally)
    expected = mix_with_projection(EmpiricalBayes(), PLAIN, tally)
    assert result.details["chosen"] == "empirical-bayes"
    assert result.details == expected.details
    assert result.frequencies.tolist() == expected.frequencies.tolist()


def test_covariate_replaces_the_layout():
    tally = _draw_tally(SMALL_GRID, np.full(20, 0.05), 1_000)
    assert set(Auto().decode(SMALL_GRID, tally).details) == {"models"}
    covariate = np.arange(20)
    result = Auto(covariate).decode(SMALL_GRID, tally)
    expected = mix_with_projection(EmpiricalBayes(covariate), SMALL_GRID, tally)
    assert result.details["chosen"] == "empirical-bayes"
    assert result.frequencies.tolist() == expected.frequencies.tolist()
    with pytest.raises(InvalidArgument, match="20 symbols"):
        Auto(np.arange(19)).decode(SMALL_GRID, tally)


@pytest.mark.parametrize(
    ("domain", "titles"),
    [
        (PLAIN.context.domain, None),
        (IntegerDomain(15), None),
        (IntegerDomain(16), ROW_TITLES),
        (Domain(range(40)), ROW_TITLES),
        (GridDomain(0, 3, 0, 5, 1), None),
        (GridDomain(0, 4, 0, 4, 1), PLANE_TITLES),
        (GridDomain(0, 4, 0, 4, 1, other="elsewhere"), PLANE_TITLES),
    ],
    ids=["words", "15 integers", "16 integers", "numbers", "15 cells", "16 cells", "other"],
)
def test_models_depend_on_the_layout(domain, titles):
    """Domains with fewer than 16 cells, or without a layout, have no models."""
    mechanism = PlainResponse(Uniform(domain, 1))
    p = np.full(mechanism.inputs, 1 / mechanism.inputs)
    details = Auto().decode(mechanism, _draw_tally(mechanism, p, 5_000)).details
    if titles is None:
        assert set(details) == {"chosen", "share", "strata"}
    else:
        assert set(details) == {"models"}
        assert set(details["models"]) <= titles
        assert sum(details["models"].values()) == pytest.approx(1, abs=0.002)


@pytest.mark.parametrize("context", [PLAIN.context, Uniform(IntegerDomain(300), 1)])
def test_one_report_is_projected(context):
    mechanism = PlainResponse(context)
    tally = mechanism.tally([7])
    result = Auto().decode(mechanism, tally)
    assert result.details == {"chosen": "projection"}
    projected = Projection().decode(mechanism, tally).frequencies
    assert result.frequencies.tolist() == projected.tolist()


def test_one_symbol_has_all_reports():
    single = PlainResponse(Uniform(1, 1))
    result = Auto().decode(single, single.tally([0, 0, 0]))
    assert result.frequencies.tolist() == [1.0]
    assert result.details == {"chosen": "projection"}


# --- maps -----------------------------------------------------------------------------------------

GRID = GridDomain(0, 40, 0, 50, 1)
MAP = PlainResponse(Uniform(GRID, 1))


def _smooth_map():
    y, x = np.mgrid[:40, :50]
    towns = [(8, 10, 3.0, 3.0), (25, 35, 5.0, 5.0), (33, 8, 2.0, 1.0)]
    density = 0.05 + sum(
        height * np.exp(-((y - row) ** 2 + (x - column) ** 2) / (2 * width**2))
        for row, column, width, height in towns
    )
    return (density / density.sum()).ravel()


def _errors(p, reports):
    """Return the total variation of the default and of empirical Bayes."""
    tally = _draw_tally(MAP, p, reports)
    results = [decoder.decode(MAP, tally) for decoder in (Auto(), EmpiricalBayes())]
    return [np.abs(result.frequencies - p).sum() / 2 for result in results]


def test_neighbours_help_on_smooth_maps():
    ours, plain = _errors(_smooth_map(), 1_000_000)
    assert ours < 0.7 * plain


def test_shuffled_maps_are_decoded_as_without_order():
    p = np.random.default_rng(7).permutation(_smooth_map())
    ours, plain = _errors(p, 1_000_000)
    assert ours < 1.05 * plain


@pytest.mark.parametrize("reports", [1, 2, 50])
def test_sparse_maps_decode_to_a_distribution(reports):
    blocks = BlockResponse(Blocks(np.arange(2_000) // 7, 2.0, domain=GRID))
    for mechanism in (MAP, blocks):
        tally = _draw_tally(mechanism, _smooth_map(), reports)
        result = Auto().decode(mechanism, tally).frequencies
        groups, shares = mechanism.scores.observed_shares(tally)
        assert (result >= 0).all()
        totals = np.bincount(groups, result, minlength=shares.size)
        assert totals == pytest.approx(shares, abs=1e-9)


# --- roots ----------------------------------------------------------------------------------------

AGES = PlainResponse(Uniform(IntegerDomain(90), 1))


def _bell(centre, size=90):
    p = 0.1 + np.exp(-0.5 * ((np.arange(size) - centre) / 6) ** 2)
    return p / p.sum()


def _distance(p, p2):
    return float(np.abs(p - p2).sum() / 2)


def _far_from_root(mechanism, p, root, reports):
    """Return the distance of the estimate from the root, without and with that root."""
    tally = _draw_tally(mechanism, p, reports)
    plain = Auto().decode(mechanism, tally).frequencies
    rooted = Auto(root=root).decode(mechanism, tally).frequencies
    return _distance(plain, root), _distance(rooted, root)


@pytest.mark.parametrize(
    ("mechanism", "reports"), [(AGES, 3_000), (PLAIN, 300)], ids=["line", "no layout"]
)
def test_few_reports_move_the_estimate_towards_the_root(mechanism, reports):
    root = _bell(20, mechanism.inputs)
    plain, rooted = _far_from_root(mechanism, root, root, reports)
    assert rooted < 0.5 * plain


@pytest.mark.parametrize("mechanism", [AGES, PLAIN], ids=["line", "no layout"])
def test_many_reports_overrule_the_root(mechanism):
    p = _bell(30, mechanism.inputs)
    tally = _draw_tally(mechanism, p, 2_000_000)
    wrong_root = Auto(root=_bell(10, mechanism.inputs)).decode(mechanism, tally).frequencies
    plain = Auto().decode(mechanism, tally).frequencies
    assert _distance(wrong_root, p) < 1.5 * _distance(plain, p) + 0.002


def test_root_helps_where_it_is_nearly_right():
    p = _bell(30)
    root = p * np.random.default_rng(0).gamma(20, 1 / 20, 90)
    errors = []
    for decoder in (Auto(), Auto(root=root)):
        results = [
            decoder.decode(AGES, _draw_tally(AGES, p, 3_000, seed)).frequencies for seed in range(3)
        ]
        errors.append(np.mean([_distance(each, p) for each in results]))
    assert errors[1] < 0.8 * errors[0]


def test_root_is_named_in_the_details():
    root = _bell(30)
    tally = _draw_tally(AGES, root, 3_000)
    assert Auto(root=root).decode(AGES, tally).details["models"]["like the root"] > 0.3
    scaled = Auto(root=(1e6 * root).tolist()).decode(AGES, tally)
    assert scaled.frequencies == pytest.approx(Auto(root=root).decode(AGES, tally).frequencies)


def test_symbols_without_order_have_no_neighbours():
    """Below a root, they are on trees, but these pair symbols at random."""
    p = 1 / np.arange(1, PLAIN.inputs + 1)
    p /= p.sum()
    details = Auto(root=p[::-1]).decode(PLAIN, _draw_tally(PLAIN, p, 20_000)).details
    assert details["models"]["no order"] > 0.5
    assert set(details["models"]) <= {"no order", "like the root"}


@pytest.mark.parametrize(
    ("root", "said"),
    [
        (np.ones(89), "root must contain one finite number for each of the 90 symbols"),
        (np.full(90, np.nan), "one finite number"),
        (np.append(np.ones(89), -1), "no entry below 0"),
        (np.zeros(90), "not all 0"),
    ],
    ids=["short", "nan", "negative", "zero"],
)
def test_invalid_roots_are_rejected(root, said):
    with pytest.raises(InvalidArgument, match=said):
        Auto(root=root).decode(AGES, _draw_tally(AGES, _bell(30), 100))


def test_root_and_covariate_are_alternatives():
    with pytest.raises(InvalidArgument, match="either a covariate or a root"):
        Auto(np.arange(90), np.ones(90)).decode(AGES, _draw_tally(AGES, _bell(30), 100))
