"""Every constructor reads a number in the same way, whatever type and container it comes in."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import InvalidArgument, InvalidContext, SfumatoError

FIFTH = Fraction(1, 5)

# Ways to write one fifth. As a double, the narrow floats would be 0.20000000298… and 0.1999….
FIFTHS = [
    0.2,
    "0.2",
    "1/5",
    Decimal("0.2"),
    FIFTH,
    np.float64(0.2),
    np.float32(0.2),
    np.float16(0.2),
    np.longdouble("0.2"),
    np.array(0.2),
    np.array(0.2, dtype=np.float32),
    np.array(0.2, dtype=np.float16),
    np.array("0.2"),
    np.array(FIFTH, dtype=object),
]

# Constructors with one number, which is the promise from symbol 0 to symbol 1.
CONSTRUCTORS = {
    "uniform": lambda number: sf.Uniform(2, number),
    "high-low": lambda number: sf.HighLow(2, [0], number),
    "blocks": lambda number: sf.Blocks([0, 0, 1], number),
    "blocks in order": lambda number: sf.Blocks([0, 0, 1, 1], [number, 3]),
    "blocks by name": lambda number: sf.Blocks([0, 0, 1, 1], {0: number, 1: "inf"}),
    "across": lambda number: sf.Blocks([0, 1], 1, across=number),
    "tiers in order": lambda number: sf.Tiers([0, 1], [number, "inf"]),
    "tiers by name": lambda number: sf.Tiers(["a", "b"], {"a": number, "b": 2}),
    "metric": lambda number: sf.Metric([[0, 1], [1, 0]], number),
    "metric of points": lambda number: sf.Metric.from_points([[0], [1]], number),
    "distances": lambda number: sf.Metric([[0, number], [number, 0]]),
    "distances with text": lambda number: sf.Metric(
        [[0, number, "inf"], [number, 0, "inf"], ["inf", "inf", 0]]
    ),
    "matrix": lambda number: sf.PrivacyMatrix([[0, number], [3, 0]]),
    "matrix with text": lambda number: sf.PrivacyMatrix([[0, number], ["inf", 0]]),
    "matrix with floats": lambda number: sf.PrivacyMatrix([[0, number], [0.75, 0]]),
    "matrix with fractions": lambda number: sf.PrivacyMatrix([[0, number], [Fraction(1, 3), 0]]),
    "matrix of tuples": lambda number: sf.PrivacyMatrix(((0, number), (math.inf, 0))),
    "matrix of objects": lambda number: sf.PrivacyMatrix(_objects([[0, number], ["inf", 0]])),
    "union": lambda number: sf.union([sf.Uniform(2, number), sf.Uniform(2, 1)]),
}


def _objects(rows):
    """Return an array of objects; NumPy unpacks arrays without dimensions if they are listed."""
    array = np.empty((2, 2), dtype=object)
    for x, row in enumerate(rows):
        for x2, entry in enumerate(row):
            array[x, x2] = entry
    return array


@pytest.mark.parametrize("build", CONSTRUCTORS.values(), ids=CONSTRUCTORS)
@pytest.mark.parametrize("number", FIFTHS, ids=lambda number: f"{type(number).__name__}")
def test_every_constructor_reads_a_scalar_as_it_prints(build, number):
    assert build(number).exact_epsilon(0, 1) == FIFTH


def test_sum_of_narrow_floats_is_exact():
    total = sf.Uniform(2, np.float32(0.1)) + sf.PrivacyMatrix([[0, np.float32(0.2)], ["inf", 0]])
    assert total.exact_epsilon(0, 1) == Fraction(3, 10)
    assert total.exact_epsilon(1, 0) == math.inf


def test_narrow_float_is_one_number_everywhere():
    number = np.float32(2.0824973)
    printed = Fraction("2.0824974")
    assert str(number) == "2.0824974"
    assert sf.PrivacyMatrix([[0, number], ["inf", 0]]).exact_epsilon(0, 1) == printed
    assert sf.PrivacyMatrix([[0, number], [0.5, 0]]).exact_epsilon(0, 1) == printed
    assert sf.Uniform(2, number).uniform_epsilon == printed
    assert sf.Uniform(2, np.float32(0.1)).uniform_epsilon == Fraction(1, 10)


COORDINATES = [number for number in FIFTHS if not isinstance(number, str)]


@pytest.mark.parametrize("number", COORDINATES, ids=lambda number: type(number).__name__)
def test_points_are_read_as_they_print(number):
    for points in ([[0], [number]], [np.array([0.0]), np.array([number])], ((0,), (number,))):
        assert sf.Metric.from_points(points).exact_epsilon(0, 1) == FIFTH


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
def test_arrays_of_floats_are_read_as_they_print(dtype):
    entries = np.array([[0, 0.2], [0.3, 0]], dtype=dtype)
    texts = [[str(entry) for entry in row] for row in entries]
    expected = sf.PrivacyMatrix(texts)
    if dtype is not np.longdouble:
        assert texts == [["0.0", "0.2"], ["0.3", "0.0"]]
    assert sf.PrivacyMatrix(entries) == expected
    assert sf.PrivacyMatrix(list(entries)) == expected  # rows are arrays
    mixed_rows = [entries[0], ["0.3", 0]]
    assert sf.PrivacyMatrix(mixed_rows).exact_epsilon(0, 1) == expected.exact_epsilon(0, 1)


def test_rows_of_several_widths_are_read_as_they_print():
    rows = [np.array([0, 0.2], dtype=np.float32), np.array([0.2, 0])]
    assert sf.Metric(rows).exact_epsilon(0, 1) == FIFTH
    assert sf.Metric.from_points([rows[0], np.array([0.0, 0.0])]).exact_epsilon(0, 1) == FIFTH


def test_random_narrow_floats_are_read_as_they_print():
    """No entry may exceed the decimal that it prints as."""
    rng = np.random.default_rng(3)
    entries = rng.uniform(0, 8, (20, 20)).astype(np.float32)
    np.fill_diagonal(entries, 0)
    from_array = sf.PrivacyMatrix(entries)
    from_list = sf.PrivacyMatrix([list(row) for row in entries])
    from_mixed_list = sf.PrivacyMatrix(
        [["0", *row[1:]] if x == 0 else list(row) for x, row in enumerate(entries)]
    )
    for x in range(20):
        for x2 in range(20):
            printed = Fraction(str(entries[x, x2]))
            for E in (from_array, from_list, from_mixed_list):
                assert E.exact_epsilon(x, x2) == printed


# --- arrays without dimensions --------------------------------------------------------------------


ARRAY_WITHOUT_DIMENSIONS = np.array(1)
MISUSES = [
    lambda scalar: sf.Uniform(scalar, 1),
    lambda scalar: sf.HighLow(2, scalar, 1),
    lambda scalar: sf.Blocks(scalar, 1),
    lambda scalar: sf.Tiers(scalar, [1]),
    lambda scalar: sf.Tiers([0, 1], scalar),
    lambda scalar: sf.Metric(scalar),
    lambda scalar: sf.Metric.from_points(scalar),
    lambda scalar: sf.PrivacyMatrix(scalar),
    lambda scalar: sf.PrivacyMatrix([scalar, scalar]),
    lambda scalar: sf.Domain(scalar),
    lambda scalar: sf.TableResponse(sf.Uniform(2, 1), scalar),
    lambda scalar: sf.TableResponse.from_fractions(sf.Uniform(2, 1), scalar),
]


@pytest.mark.parametrize("build", MISUSES)
def test_array_without_dimensions_is_no_sequence(build):
    with pytest.raises((InvalidContext, InvalidArgument)):
        build(ARRAY_WITHOUT_DIMENSIONS)


LABELS = sf.Domain(["a", "b"])
LABEL_ESTIMATE = sf.estimate(sf.mechanism_for(sf.Uniform(LABELS, 1)), np.array([0, 1] * 500))
COLUMNS = {
    "labels": lambda: LABELS.symbols(np.array("a")),
    "integers": lambda: sf.IntegerDomain(2).symbols(np.array(1)),
    "positions": lambda: sf.GridDomain(0, 1, 0, 1, step=0.5).symbols(np.array(0.1)),
    "total": lambda: LABEL_ESTIMATE.total(np.array("a")),
    "shares": lambda: LABEL_ESTIMATE.shares_within(np.array("a")),
    "plan": lambda: sf.plan(
        sf.Uniform(LABELS, 1), people=1000, measure="total", labels=np.array("a")
    ),
}


@pytest.mark.parametrize("call", COLUMNS.values(), ids=COLUMNS)
def test_array_without_dimensions_is_no_column(call):
    with pytest.raises(SfumatoError):
        call()


@pytest.mark.parametrize("number", FIFTHS, ids=lambda number: f"{type(number).__name__}")
@pytest.mark.parametrize("option", ["sensitive_share", "worst_case_margin"])
def test_options_of_a_mechanism_are_read_as_they_print_or_refused(option, number):
    context = sf.HighLow(30, range(9), 1)
    expected = sf.mechanism_for(context, **{option: 0.2}).fingerprint
    is_text_or_exact = isinstance(number, str | Decimal | Fraction)
    if is_text_or_exact or (isinstance(number, np.ndarray) and number.dtype.kind != "f"):
        with pytest.raises(InvalidArgument, match=f"{option} must be"):
            sf.mechanism_for(context, **{option: number})
    else:
        assert sf.mechanism_for(context, **{option: number}).fingerprint == expected


# --- masked arrays --------------------------------------------------------------------------------


def _mask(values):
    mask = np.zeros(np.shape(values), dtype=np.bool_)
    mask[(-1,) * mask.ndim] = True
    return np.ma.array(values, mask=mask)


UNIFORM = sf.Uniform(2, 1)
GRID = sf.GridDomain(0, 1, 0, 1, step=0.5)
MECHANISM = sf.mechanism_for(UNIFORM)
UNION = sf.mechanism_for(sf.union([UNIFORM, UNIFORM]))
SURVEY = sf.Survey("two", UNIFORM)
ESTIMATE = sf.estimate(MECHANISM, MECHANISM.tally([0, 1] * 500))
SHARES = _mask([0.5, 0.5])
MASKED = {
    "scalar": lambda: sf.Uniform(2, np.ma.masked),
    "labels": lambda: sf.Uniform(_mask(["a", "b"]), 1),
    "sensitive": lambda: sf.HighLow(3, _mask([0, 1]), 1),
    "blocks": lambda: sf.Blocks(_mask([0, 0, 1]), 1),
    "promises of blocks": lambda: sf.Blocks([0, 0, 1], _mask([1.0, 2.0])),
    "promise of a block": lambda: sf.Blocks([0, 0, 1], {0: 1, 1: np.ma.masked}),
    "across": lambda: sf.Blocks([0, 0, 1], 1, across=np.ma.masked),
    "tiers": lambda: sf.Tiers(_mask([0, 1]), [1, 2]),
    "promises of tiers": lambda: sf.Tiers([0, 1], _mask([1.0, 2.0])),
    "matrix": lambda: sf.PrivacyMatrix(_mask([[0, 1.0], [1.0, 0]])),
    "row": lambda: sf.PrivacyMatrix([_mask([0, 1.0]), [1.0, 0]]),
    "entry": lambda: sf.PrivacyMatrix([[0, np.ma.masked], [1.0, 0]]),
    "entry next to text": lambda: sf.PrivacyMatrix([[0, np.ma.masked], ["inf", 0]]),
    "distances": lambda: sf.Metric(_mask([[0, 1.0], [1.0, 0]])),
    "points": lambda: sf.Metric.from_points(_mask([[0, 1.0], [1.0, 0]])),
    "row of points": lambda: sf.Metric.from_points([_mask([0, 1.0]), [1.0, 0]]),
    "coordinate": lambda: sf.Metric.from_points([[0, np.ma.masked], [1.0, 0]]),
    "metric": lambda: sf.Metric([[0, 1], [1, 0]], np.ma.masked),
    "union": lambda: sf.union([UNIFORM, UNIFORM], block_of=_mask([0, 0, 1, 1])),
    "table": lambda: sf.TableResponse(UNIFORM, _mask([[2**63, 2**63]] * 2)),
    "table of fractions": lambda: sf.TableResponse.from_fractions(UNIFORM, _mask([[0.5] * 2] * 2)),
    "table of floats": lambda: sf.TableResponse.from_floats(UNIFORM, _mask([[0.5] * 2] * 2)),
    "symbols": lambda: MECHANISM.privatize(_mask([0, 1])),
    "values": lambda: sf.IntegerDomain(2).symbols(_mask([0, 1])),
    "positions": lambda: GRID.symbols(_mask([[0.0, 0.1]])),
    "reports": lambda: MECHANISM.tally(_mask([0, 1])),
    "tally": lambda: sf.Tally(_mask([5, 6]), MECHANISM.fingerprint),
    "reports of a survey": lambda: SURVEY.estimate(_mask([0, 1])),
    "distribution": lambda: sf.plan(UNIFORM, people=1000, distribution=SHARES),
    "shares of symbols": lambda: MECHANISM.forward(SHARES),
    "shares of a union": lambda: UNION.forward(_mask([0.25] * 4)),
    "values of reports": lambda: MECHANISM.adjoint(SHARES),
    "shares for variances": lambda: MECHANISM.scores.variances(SHARES, 10),
    "weights": lambda: ESTIMATE.weighted_total(SHARES),
    "covariate": lambda: sf.estimate(
        MECHANISM, MECHANISM.tally([0, 1]), decoder="empirical-bayes", covariate=SHARES
    ),
    "prior of a design": lambda: sf.design(UNIFORM, prior=SHARES),
    "weights of a design": lambda: sf.design(UNIFORM, weights=SHARES),
    "prior of odds": lambda: sf.posterior_odds(UNIFORM, SHARES),
    "counts": lambda: sf.simulation.compare(UNIFORM, _mask([500, 500])),
}


@pytest.mark.parametrize("call", MASKED.values(), ids=MASKED)
def test_masked_arrays_are_refused(call):
    with pytest.raises(SfumatoError, match=r"must not be masked: .*compressed\(\).*filled"):
        call()


def test_masked_answers_of_a_survey_are_missing():
    survey = sf.Survey("ages", sf.Uniform(3, 1))
    with pytest.raises(sf.errors.UnknownValue, match="1 of 3 rows has no answer"):
        survey.privatize(_mask([0, 1, 2]))
