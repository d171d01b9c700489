"""Estimates: unbiased frequencies with intervals, and decoded frequencies from the same tally."""

import math
import sys
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.codes import HadamardCode, RandomizedCode
from sfumato.contexts import Blocks, HighLow, PrivacyMatrix, Uniform
from sfumato.errors import (
    InvalidArgument,
    MissingExtra,
    NotEnoughReports,
    WrongSurvey,
)
from sfumato.estimation import estimate
from sfumato.estimation.decoders.decoder import DecoderResult
from sfumato.mechanisms import (
    BinaryResponse,
    BlockResponse,
    HighLowResponse,
    Mechanism,
    PlainResponse,
)
from sfumato.tally import Tally

BLOCKS = Blocks([0, 1, 0, 2, 1, 0, 3], 1.0, domain=list("abcdefg"))
MECHANISMS = {
    "binary": BinaryResponse(PrivacyMatrix([[0, "inf"], [1, 0]], domain=["no", "yes"])),
    "plain": PlainResponse(Uniform(["a", "b", "c"], 1.0)),
    "plain, randomized": PlainResponse(Uniform(5, 2.0), RandomizedCode),
    "one symbol": PlainResponse(Uniform(1, 1.0)),
    "blocks": BlockResponse(BLOCKS),
    "blocks, randomized": BlockResponse(BLOCKS, RandomizedCode),
    "high-low": HighLowResponse(HighLow(["park", "café", "clinic"], ["clinic"], 1.0)),
    "high-low, three sensitive": HighLowResponse(HighLow(6, [0, 2, 5], 0.5), HadamardCode),
    "in clear": HighLowResponse(HighLow(4, [], 1.0)),
}
each_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS.keys())


def _tally(mechanism: Mechanism, seed: int = 0, reports: int = 500) -> Tally:
    """Return a tally of random reports, likely or not: the tests hold for every tally."""
    random = np.random.default_rng(seed)
    return mechanism.tally(random.integers(0, mechanism.outputs, reports))


def _naive_readings(mechanism: Mechanism, tally: Tally) -> tuple[list[Fraction], list[Fraction]]:
    """Return the mean scores and the unbiased estimates of their variances, in fractions."""
    n = tally.reports
    columns = [mechanism.scores.exact_column(y) for y in range(mechanism.outputs)]
    counts = tally.counts.tolist()
    means = [
        sum(c * column[x] for c, column in zip(counts, columns, strict=True)) / n
        for x in range(mechanism.inputs)
    ]
    squares = [
        sum(c * column[x] ** 2 for c, column in zip(counts, columns, strict=True)) / n
        for x in range(mechanism.inputs)
    ]
    return means, [
        (square - mean**2) / (n - 1) for square, mean in zip(squares, means, strict=True)
    ]


# --- the two readings -----------------------------------------------------------------------------


@each_mechanism
def test_unbiased_estimate_is_the_mean_score(mechanism):
    tally = _tally(mechanism)
    means, variances = _naive_readings(mechanism, tally)
    result = estimate(mechanism, tally)
    assert result.unbiased.tolist() == pytest.approx([float(mean) for mean in means], abs=1e-12)
    errors = [math.sqrt(variance) for variance in variances]
    assert result.standard_errors.tolist() == pytest.approx(errors, rel=1e-9, abs=1e-9)


@each_mechanism
def test_estimate_names_its_decoder_and_reports(mechanism):
    result = estimate(mechanism, _tally(mechanism, reports=123), decoder="unbiased")
    assert list(result.labels) == list(mechanism.context.domain.labels)
    assert (result.reports, result.decoder) == (123, "unbiased")


@each_mechanism
def test_unbiased_decoder_changes_nothing(mechanism):
    result = estimate(mechanism, _tally(mechanism), decoder="unbiased")
    assert result.frequencies.tolist() == result.unbiased.tolist()


@each_mechanism
def test_intervals_do_not_depend_on_the_decoder(mechanism):
    tally = _tally(mechanism)
    projected, plain = (
        estimate(mechanism, tally, decoder=name) for name in ("projection", "unbiased")
    )
    assert projected.unbiased.tolist() == plain.unbiased.tolist()
    assert np.array_equal(projected.interval(0.9), plain.interval(0.9))


@each_mechanism
@pytest.mark.parametrize("seed", range(5))
def test_projected_frequencies_are_a_distribution(mechanism, seed):
    p = estimate(mechanism, _tally(mechanism, seed, reports=40), decoder="projection").frequencies
    assert (p >= 0).all()
    assert p.sum() == pytest.approx(1.0, abs=1e-12)


@each_mechanism
def test_projection_is_nearer_to_every_distribution(mechanism):
    """Projection onto a convex set that contains the truth can only help."""
    result = estimate(mechanism, _tally(mechanism, 3, reports=40), decoder="projection")
    groups, shares = mechanism.scores.observed_shares(_tally(mechanism, 3, reports=40))
    for x in range(mechanism.inputs):
        if groups.max() == 0 and shares.tolist() == [1.0]:
            truth = np.eye(mechanism.inputs)[x]
            assert ((result.frequencies - truth) ** 2).sum() <= (
                (result.unbiased - truth) ** 2
            ).sum() + 1e-9


@pytest.mark.parametrize("code", [HadamardCode, RandomizedCode])
@pytest.mark.parametrize("seed", range(5))
def test_blocks_are_projected_onto_observed_shares(code, seed):
    mechanism = BlockResponse(BLOCKS, code)
    tally = _tally(mechanism, seed, reports=37)
    p = estimate(mechanism, tally, decoder="projection").frequencies
    for block in range(4):
        members = np.flatnonzero(BLOCKS.block_of == block)
        own = [y for y, count in enumerate(mechanism.integer_row(int(members[0]))) if count]
        observed = Fraction(int(tally.counts[own].sum()), 37)
        assert p[members].sum() == pytest.approx(float(observed), abs=1e-14)


def test_unreported_block_has_no_share():
    mechanism = BlockResponse(BLOCKS)
    own = [y for y, count in enumerate(mechanism.integer_row(0)) if count]
    result = estimate(mechanism, mechanism.tally(own * 3))
    assert result.frequencies[BLOCKS.block_of != 0].tolist() == [0.0] * 4
    assert result.frequencies[BLOCKS.block_of == 0].sum() == pytest.approx(1.0, abs=1e-14)


def test_unrandomized_answers_are_decoded_exactly():
    mechanism = MECHANISMS["in clear"]
    result = estimate(mechanism, mechanism.tally([0, 0, 0, 3]))
    assert result.frequencies.tolist() == result.unbiased.tolist() == [0.75, 0, 0, 0.25]


@each_mechanism
def test_exact_channel_output_is_decoded_exactly(mechanism):
    """Counts in proportion to Q(·|x) mean that everyone has x."""
    for x in range(mechanism.inputs):
        row = mechanism.with_word_bits(16).integer_row(x)
        short = mechanism.with_word_bits(16)
        result = estimate(short, Tally(row, short.fingerprint), decoder="unbiased")
        assert result.frequencies.tolist() == pytest.approx(
            np.eye(mechanism.inputs)[x].tolist(), abs=1e-9
        )


# --- intervals (more in test_intervals.py) --------------------------------------------------------


def test_default_level_is_95_percent():
    result = estimate(MECHANISMS["plain"], _tally(MECHANISMS["plain"]))
    assert np.array_equal(result.interval(), result.interval(0.95))
    assert np.array_equal(result.simultaneous_interval(), result.simultaneous_interval(0.95))


def test_negative_estimate_has_an_interval_with_a_width():
    mechanism = PlainResponse(Uniform(["a", "b", "c"], 1.0))
    result = estimate(mechanism, Tally([500, 0, 500, 500], mechanism.fingerprint))
    low, high = result.interval()
    below = result.unbiased < -5 * result.standard_errors
    assert below.any()
    assert (low[below] == 0).all()
    assert ((high[below] > 0) & (high[below] < result.standard_errors[below])).all()


def test_unreported_symbol_has_an_exact_interval():
    """100 people report "a" unrandomized: up to 1 − 0.025^(1/100) of people may still have "b"."""
    mechanism = sf.PlainResponse(sf.Uniform(["a", "b"], "inf"))
    low, high = sf.estimate(mechanism, mechanism.tally([0] * 100)).interval(0.95)
    bound = 1 - 0.025 ** (1 / 100)
    assert low.tolist() == pytest.approx([1 - bound, 0])
    assert high.tolist() == pytest.approx([1, bound])


# --- few reports ----------------------------------------------------------------------------------


@each_mechanism
@pytest.mark.parametrize("decoder", ["projection", "unbiased"])
def test_empty_tallies_raise(mechanism, decoder):
    with pytest.raises(NotEnoughReports, match="at least one report"):
        estimate(mechanism, mechanism.tally([]), decoder=decoder)


@each_mechanism
def test_single_report_has_infinite_errors(mechanism):
    result = estimate(mechanism, mechanism.tally([0]))
    assert result.standard_errors.tolist() == [math.inf] * mechanism.inputs
    if mechanism.inputs > 1:
        for low, high in (result.interval(0.5), result.simultaneous_interval(0.5)):
            assert low.tolist() == [0.0] * mechanism.inputs
            assert high.tolist() == [1.0] * mechanism.inputs
    assert result.frequencies.sum() == pytest.approx(1.0, abs=1e-12)


@each_mechanism
def test_two_reports_have_finite_errors(mechanism):
    assert np.isfinite(
        estimate(mechanism, mechanism.tally([0, mechanism.outputs - 1])).standard_errors
    ).all()


# --- invalid input --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["nonsense", "", "Projection"], ids=repr)
def test_unknown_decoder_error_lists_the_names(name):
    mechanism = MECHANISMS["plain"]
    with pytest.raises(InvalidArgument, match="projection"):
        estimate(mechanism, mechanism.tally([0]), decoder=name)


@pytest.mark.parametrize("decoder", [None, 3], ids=repr)
def test_invalid_decoder_is_rejected(decoder):
    mechanism = MECHANISMS["plain"]
    with pytest.raises(InvalidArgument, match="a name or a decoder"):
        estimate(mechanism, mechanism.tally([0]), decoder=decoder)


@dataclass(frozen=True)
class _Leaning:
    """A decoder that returns its covariate."""

    covariate: object = None
    name: str = "leaning"

    def decode(self, mechanism, tally):
        return DecoderResult(np.asarray(self.covariate, dtype=float), {"asked": True})


def test_decoder_objects_receive_the_covariate():
    mechanism = MECHANISMS["plain"]
    result = estimate(
        mechanism, mechanism.tally([0, 1]), decoder=_Leaning(), covariate=[0.5, 0.25, 0.25]
    )
    assert result.frequencies.tolist() == [0.5, 0.25, 0.25]
    assert result.decoder == "leaning"
    assert result.details == {"asked": True}


def test_unused_covariate_is_rejected():
    mechanism = MECHANISMS["plain"]
    with pytest.raises(InvalidArgument, match="'unbiased' does not use a covariate"):
        estimate(mechanism, mechanism.tally([0, 1]), decoder="unbiased", covariate=[1, 2, 3])


@each_mechanism
def test_tally_of_another_mechanism_is_rejected(mechanism):
    with pytest.raises(WrongSurvey):
        estimate(mechanism, Tally(np.ones(mechanism.outputs, dtype=np.int64), "another"))
    with pytest.raises(WrongSurvey):
        estimate(
            mechanism, Tally(np.ones(mechanism.outputs + 1, dtype=np.int64), mechanism.fingerprint)
        )


# --- as a table -----------------------------------------------------------------------------------


def test_estimate_prints_as_a_table():
    mechanism = MECHANISMS["high-low"]
    lines = repr(
        estimate(mechanism, mechanism.tally([0, 1, 2, 3]), decoder="projection")
    ).splitlines()
    assert (
        "4 reports; frequency: projection; low and high: 95% interval of the unbiased estimate"
        in lines[0]
    )
    assert lines[0].split()[:5] == ["label", "frequency", "unbiased", "low", "high"]
    assert [line.split()[0] for line in lines[1:]] == ["park", "café", "clinic"]


def test_text_rows_follow_the_header():
    mechanism = MECHANISMS["plain"]
    result = estimate(mechanism, _tally(mechanism), decoder="projection")
    low, high = result.interval()
    for x, line in enumerate(repr(result).splitlines()[1:]):
        figures = [result.frequencies[x], result.unbiased[x], low[x], high[x]]
        assert line.split() == [result.labels[x], *(f"{value:.4f}" for value in figures)]


def test_notebook_table_separates_the_two_readings():
    context = Uniform([f"<{i}>" for i in range(30)], 1.0)
    mechanism = PlainResponse(context)
    result = estimate(mechanism, _tally(mechanism), decoder="projection")
    page = result._repr_html_()
    assert "decoded estimate (projection)" in page
    assert "unbiased, with 95% interval" in page
    assert "the 20 most frequent of 30" in page
    assert page.count("<tr>") == 22
    first = int(np.argmax(result.frequencies))
    assert page.index(f"&lt;{first}&gt;") < page.index("<td>")
    assert "<0>" not in page


@each_mechanism
def test_arrow_table_has_every_column(mechanism):
    result = estimate(mechanism, _tally(mechanism))
    table = result.to_arrow(0.9)
    low, high = result.interval(0.9)
    columns = {
        "label": list(result.labels),
        "frequency": result.frequencies.tolist(),
        "unbiased": result.unbiased.tolist(),
        "standard_error": result.standard_errors.tolist(),
        "low": low.tolist(),
        "high": high.tolist(),
    }
    assert table.to_pydict() == columns
    assert list(table.column_names) == list(columns)
    metadata = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
    assert metadata["decoder"] == result.decoder
    assert metadata["level"] == "0.9"
    assert metadata["reports"] == "500"
    assert metadata["fingerprint"] == mechanism.fingerprint


def test_mixed_labels_become_text_in_arrow():
    mechanism = PlainResponse(Uniform(["a", 1], 1.0))
    assert estimate(mechanism, mechanism.tally([0, 1])).to_arrow()["label"].to_pylist() == [
        "a",
        "1",
    ]


def test_pandas_and_polars_read_an_estimate():
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    result = estimate(MECHANISMS["high-low"], _tally(MECHANISMS["high-low"]))
    frame = result.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["unbiased"].tolist() == result.unbiased.tolist()
    assert polars.DataFrame(result)["low"].to_list() == result.interval()[0].tolist()


def test_missing_pandas_error_says_what_to_install(monkeypatch):
    result = estimate(MECHANISMS["plain"], _tally(MECHANISMS["plain"]))
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match="pip install pandas"):
        result.to_pandas()


def test_origin_is_not_in_the_repr():
    result = estimate(MECHANISMS["plain"], _tally(MECHANISMS["plain"]))
    assert "Origin" not in repr(result)
    other = replace(result, fingerprint="a survey")
    assert other.fingerprint == "a survey"
    assert np.array_equal(other.interval(), result.interval())


def test_long_tables_are_truncated():
    mechanism = PlainResponse(Uniform(1000, 1.0))
    lines = repr(estimate(mechanism, mechanism.tally([0, 1]))).splitlines()
    assert len(lines) == 22
    assert lines[-1] == "… 980 more"
