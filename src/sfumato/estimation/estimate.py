"""Estimate the distribution behind a tally, with confidence intervals."""

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, overload, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.charts import Chart
from sfumato.domains import Label
from sfumato.errors import ContextMismatch, InvalidArgument, UnknownLabel, WrongSurvey
from sfumato.estimation.decoded_chart import draw_decoded
from sfumato.estimation.decoders import get_decoder
from sfumato.estimation.decoders.decoder import Decoder
from sfumato.estimation.estimate_chart import draw_estimate
from sfumato.estimation.estimate_table import MAX_SYMBOLS_SHOWN, EstimateRow, EstimateTable
from sfumato.estimation.model_summary import summarize_models
from sfumato.estimation.top_answers import in_reading_order, most_frequent
from sfumato.estimation.uncertainty.bootstrap import Bootstrap
from sfumato.estimation.uncertainty.comparisons import Difference, TopSymbols
from sfumato.estimation.uncertainty.fit import FitResult, FitWarning, check_fit
from sfumato.estimation.uncertainty.intervals import (
    Bounds,
    score_bounds,
    share_bounds,
    tail_probability,
)
from sfumato.estimation.uncertainty.manipulation import Manipulation, ManipulationBounds
from sfumato.estimation.uncertainty.shares import (
    Shares,
    Total,
    block_shares,
    label_weights,
    shares_within,
    symbol_weights,
)
from sfumato.foundation import load_name
from sfumato.foundation.arrays import Arrow, Floats
from sfumato.foundation.correct_call import shows_call
from sfumato.foundation.decoder_table import DecoderName
from sfumato.foundation.files import write_atomically
from sfumato.foundation.frames import to_pandas, to_polars
from sfumato.mechanisms import Mechanism, ScoreMoments, require_mechanism
from sfumato.tally import Tally

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]
    import polars as pl

__all__ = ["Estimate", "SurveyLike", "estimate"]

Selection = slice | NDArray[np.intp]
"""A selection of symbols: a slice of the domain, or an array of symbols."""


class SurveyLike(Protocol):
    """A survey. It is defined in a layer above, so functions here know only what they use of it."""

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism of the survey."""
        ...

    def estimate(
        self,
        tally: Any,  # noqa: ANN401 - a tally, or any kind of reports
        *,
        decoder: DecoderName | Decoder,
        covariate: ArrayLike | None,
    ) -> "Estimate":
        """Estimate the distribution of answers."""
        ...

    def certify(self) -> Any:  # noqa: ANN401 - a certificate, which this package does not read
        """Return the certificate of the survey."""
        ...


@runtime_checkable
class ReportsWithFingerprint(Protocol):
    """Reports of a survey, as its ``privatize`` method returns them."""

    @property
    def numbers(self) -> NDArray[np.uint32]:
        """The reports."""
        ...

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the survey that they answer."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class Estimate:
    """The decoded estimate and the unbiased estimate from one tally.

    ``estimate["clinic"]`` is the row of a label, with its frequency and its interval. Iteration
    gives the rows of all labels, in domain order.

    ``frequencies``: the decoded estimate, a distribution and usually the more accurate of the two.
    ``details`` describes how the decoder arrived at it; ``bootstrap`` estimates its error.

    ``unbiased``, ``standard_errors``: the unbiased estimate and its standard errors, on which all
    intervals are based. Each entry of the estimate is correct on average, but may be negative.

    ``fingerprint``: the fingerprint of the mechanism or survey whose reports were decoded.
    ``leverage``: how many honest people one fake report can outweigh.
    """

    labels: Sequence[Label]
    frequencies: Floats
    unbiased: Floats
    standard_errors: Floats
    reports: int
    decoder: str
    leverage: float
    fingerprint: str
    details: Mapping[str, object]
    _mechanism: Mechanism
    _tally: Tally
    _decoder: Decoder
    _survey: SurveyLike | None = None

    # --- rows ------------------------------------------------------------------------------------

    def __getitem__(self, label: Label) -> EstimateRow:
        """Return the row of a label; raise ``UnknownLabel``, a ``KeyError``, if it is unknown.

        An integer is a label, too: ``estimate[18]`` is the row of the label 18, not of symbol 18.
        """
        symbol = self._mechanism.context.domain.symbol_of(label)
        low, high = self._share_bounds(tail_probability(0.95), np.array([symbol]))
        return self._row(symbol, low[0], high[0])

    def __iter__(self) -> Iterator[EstimateRow]:
        low, high = self.interval()
        for symbol in range(len(self)):
            yield self._row(symbol, low[symbol], high[symbol])

    def __len__(self) -> int:
        return len(self.labels)

    def __contains__(self, label: object) -> bool:
        try:
            self._mechanism.context.domain.symbol_of(label)  # type: ignore[arg-type]
        except UnknownLabel:
            return False
        return True

    def _row(self, symbol: int, low: float, high: float) -> EstimateRow:
        return EstimateRow(
            label=self.labels[symbol],
            frequency=float(self.frequencies[symbol]),
            unbiased=float(self.unbiased[symbol]),
            standard_error=float(self.standard_errors[symbol]),
            low=float(low),
            high=float(high),
        )

    # --- the unbiased estimate -------------------------------------------------------------------

    def interval(self, level: float = 0.95) -> Bounds:
        """Return an interval for each symbol that covers its true share with probability ``level``.

        The intervals are binomial and match three moments of the scores (see ``intervals.py``). For
        unrandomized symbols, they are the usual binomial intervals. Noisy estimates near 0 or 1 get
        Feldman–Cousins intervals, which stay within [0, 1] and are never empty.
        """
        return self._all_bounds(tail_probability(level))

    def simultaneous_interval(self, level: float = 0.95) -> Bounds:
        """Return intervals that cover all true shares simultaneously.

        The probability that all of them do is at least ``level``, because each of the k intervals
        has level ``1 − (1 − level)/k`` (Bonferroni).
        """
        return self._all_bounds(tail_probability(level, len(self.labels)))

    def total(self, labels: Iterable[Label] | Label, level: float = 0.95) -> Total:
        """Return the unbiased estimate of the combined share of some labels, with its interval.

        The labels could be those of a region or a category. The interval accounts for covariances;
        it is not the sum of the labels' intervals.
        """
        weights = label_weights(self._mechanism, labels)
        return Total.from_tally(self._mechanism, self._tally, weights, level)

    def weighted_total(
        self, weights: Mapping[Label, float] | ArrayLike, level: float = 0.95
    ) -> Total:
        """Return the unbiased estimate of a weighted sum of shares, with its interval.

        For example, if the labels stand for numbers and these are the weights, the sum is the mean.
        ``weights``: one weight for each symbol, or a mapping from label to weight. Labels that are
        missing from the mapping get weight 0.
        """
        weight_array = symbol_weights(self._mechanism, weights)
        return Total.from_tally(self._mechanism, self._tally, weight_array, level)

    def block_shares(self, level: float = 0.95) -> Shares:
        """Return each symbol's share of its block.

        Blocks are known only if they are reported without noise; otherwise, all symbols form a
        single block. Intervals marked ``exact`` are valid for any number of reports.
        """
        return block_shares(self._mechanism, self._tally, level)

    def shares_within(self, labels: Iterable[Label], level: float = 0.95) -> Shares:
        """Return each label's share of the total of ``labels``; that total may itself be noisy."""
        part_mask = label_weights(self._mechanism, labels) > 0
        return shares_within(self._mechanism, self._tally, part_mask, level)

    def difference(self, other: "Estimate", level: float = 0.95) -> Difference:
        """Return ``other`` minus this estimate, with a verdict on whether each symbol changed.

        With probability at least ``level``, no symbol is wrongly reported as changed. The two
        estimates must have the same labels and come from different people. Their mechanisms and
        numbers of reports may differ.
        """
        if not isinstance(other, Estimate):
            raise InvalidArgument(
                f"difference needs another estimate; got {type(other).__name__}. Call "
                "before.difference(after) with before = sf.estimate(survey, reports)."
            )
        if self._mechanism.context.domain != other._mechanism.context.domain:
            raise ContextMismatch(
                "a difference requires two estimates with the same labels in the same order."
            )
        tail = tail_probability(level, len(self.labels))
        return Difference.from_intervals(
            self.labels,
            self.unbiased,
            self._raw_bounds(tail),
            other.unbiased,
            other._raw_bounds(tail),
            level,
        )

    def top(self, size: int, level: float = 0.95) -> TopSymbols:
        """Return the labels that certainly or possibly belong to the ``size`` most frequent."""
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise InvalidArgument(f"size must be a positive integer; got {size!r}.")
        bounds = self.simultaneous_interval(level)
        return TopSymbols.from_intervals(self.labels, self.unbiased, bounds, size, level)

    def _all_bounds(self, tail: float) -> Bounds:
        """Return the bounds for all symbols, cached because report pages use them repeatedly."""
        if tail not in self._bounds_cache:
            low, high = self._share_bounds(tail, slice(None))
            low.flags.writeable = False
            high.flags.writeable = False
            self._bounds_cache[tail] = low, high
        return self._bounds_cache[tail]

    @cached_property
    def _bounds_cache(self) -> dict[float, Bounds]:
        return {}

    def _share_bounds(self, tail: float, symbols: Selection) -> Bounds:
        if len(self.labels) == 1:
            return np.ones(1), np.ones(1)
        if self.reports == 1:  # a single report does not reveal any spread
            selected = self.unbiased[symbols]
            return np.zeros_like(selected), np.ones_like(selected)
        return share_bounds(self._moments.select(symbols), self.reports, tail)

    def _raw_bounds(self, tail: float) -> Bounds:
        """Return bounds on the true shares, without restricting them to [0, 1]."""
        if len(self.labels) == 1:
            return self.unbiased, self.unbiased
        if self.reports == 1:
            return self.unbiased - np.inf, self.unbiased + np.inf
        return score_bounds(self._moments, self.reports, tail)

    @cached_property
    def _moments(self) -> ScoreMoments:
        f = self._tally.counts / self.reports
        return ScoreMoments.for_symbols(self._mechanism.scores, f)

    # --- the decoded estimate, and checks on the reports -----------------------------------------

    @property
    def model_summary(self) -> str:
        """The models that carried the decoded estimate, such as "90% smooth curve, 10% neighbours".

        The percentages add up to 100, and at most three models are named. For a decoder that does
        not average models, it is the decoder's title.
        """
        return summarize_models(self.decoder, self.details)

    def bootstrap(self, runs: int = 200, *, seed: int = 0, level: float = 0.95) -> Bootstrap:
        """Estimate the error of the decoded frequencies: total variation and standard errors.

        Treat the frequencies as the truth; then, ``runs`` times, draw reports, decode them and
        compare the result with the truth. See ``bootstrap.py``.
        """
        return Bootstrap.run(
            self._mechanism,
            self._decoder,
            self._tally,
            self.frequencies,
            runs=runs,
            seed=seed,
            level=level,
        )

    @cached_property
    def fit_result(self) -> FitResult:
        """The result of testing whether the reports could have come from the mechanism."""
        return check_fit(self._mechanism, self._tally)

    def check_fit(self) -> FitResult:
        """Return ``fit_result``; issue a ``FitWarning`` if the reports do not fit the mechanism."""
        if not self.fit_result.is_possible:
            warnings.warn(self.fit_result.verdict, FitWarning, stacklevel=2)
        return self.fit_result

    def manipulation(self, fake_count: int) -> Manipulation:
        """Return bounds on how far ``fake_count`` fake people could have moved the estimate.

        See ``manipulation.py`` for the derivation.
        """
        return self._manipulation_bounds.for_fake_count(fake_count)

    @cached_property
    def _manipulation_bounds(self) -> ManipulationBounds:
        return ManipulationBounds.from_tally(self._mechanism, self._tally, self._decoder)

    # --- tables ----------------------------------------------------------------------------------

    def to_arrow(self, level: float = 0.95) -> Arrow:
        """Return the estimate as a ``pyarrow.Table`` with one row per symbol.

        The columns are label, frequency, unbiased, standard_error, low and high.
        """
        return self._table(level, slice(None)).to_arrow()

    def to_pandas(self, level: float = 0.95) -> "pd.DataFrame":
        """Return the ``to_arrow`` table as a pandas data frame. Requires pandas."""
        return to_pandas(self.to_arrow(level))

    def to_polars(self, level: float = 0.95) -> "pl.DataFrame":
        """Return the ``to_arrow`` table as a polars data frame. Requires polars."""
        return to_polars(self.to_arrow(level))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the ``to_arrow`` table to any library that reads Arrow (Polars, DuckDB, …)."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    # --- display ---------------------------------------------------------------------------------

    def plot(self, *, level: float = 0.95) -> Chart:
        """Return a chart: a map if the labels are places, otherwise bars with intervals.

        A notebook shows the chart; ``plot().save("shares.svg")`` writes it to a file. A bar shows
        the unbiased estimate: it is solid up to the low end of the interval, and fades out at the
        high end. At most 30 labels are drawn: the most frequent. Numbers and ranges of numbers keep
        their order. If only some labels are protected by the context, they have the accent colour.
        A map shows the decoded estimate.
        """
        return draw_estimate(self, self._mechanism.context, self.interval(level), level)

    def plot_decoded(self, *, level: float = 0.95) -> Chart:
        """Return a chart that shows the decoded and the unbiased estimate together.

        If more than 30 labels have an order, such as ages or incomes, the chart is a curve through
        the decoded estimate, with the unbiased estimate as dots in a band. Many labels are put in
        groups of neighbours, and each dot is the mean share of a group. Otherwise, the chart shows
        the bars of ``plot``, with a ring at the decoded estimate.

        The intervals belong to the unbiased estimate, not to the curve or the rings: the decoded
        estimate has none.
        """
        return draw_decoded(self, self._mechanism.context, self.interval(level), level)

    @overload
    def to_html(self, path: None = None, *, title: str | None = None) -> str: ...
    @overload
    def to_html(self, path: str | os.PathLike[str], *, title: str | None = None) -> None: ...
    def to_html(
        self, path: str | os.PathLike[str] | None = None, *, title: str | None = None
    ) -> str | None:
        """Write the report page to a file, atomically. Without a path, return it as text.

        The page needs the survey, so the estimate must be the result of ``survey.estimate``.
        ``title`` defaults to the title of the survey.
        """
        if self._survey is None:
            raise InvalidArgument(
                "a report page describes a survey, and this estimate is that of a mechanism. Call "
                "survey.estimate(tally).to_html(path), with survey = sf.Survey(name, context)."
            )
        # Pages are in a layer above. They are loaded by name, as are the names in `sfumato`.
        report_page: Any = load_name("sfumato.pages", "report_page")
        page: str = report_page(self._survey, self, self._survey.certify(), title=title)
        if path is None:
            return page
        write_atomically(path, page.encode("utf-8"))
        return None

    def __repr__(self) -> str:
        return self._table(0.95, slice(MAX_SYMBOLS_SHOWN)).to_text()

    def _repr_html_(self) -> str:
        """Return a chart, and a table of the most frequent symbols, for notebooks.

        Numbers and ranges of numbers are in the order of the domain, as in the chart.
        """
        most_frequent_symbols = most_frequent(self, MAX_SYMBOLS_SHOWN)
        domain = self._mechanism.context.domain
        symbols = in_reading_order(self, domain, most_frequent_symbols)
        return self.plot().to_notebook() + self._table(0.95, symbols).to_html()

    def _table(self, level: float, symbols: Selection) -> EstimateTable:
        low, high = self._share_bounds(tail_probability(level), symbols)
        if isinstance(symbols, slice):
            labels = self.labels[symbols]
        else:
            labels = [self.labels[x] for x in symbols.tolist()]
        columns = {
            "frequency": self.frequencies[symbols],
            "unbiased": self.unbiased[symbols],
            "standard_error": self.standard_errors[symbols],
            "low": low,
            "high": high,
        }
        return EstimateTable(
            labels,
            columns,
            level=level,
            domain_size=len(self.labels),
            reports=self.reports,
            decoder=self.decoder,
            model_summary=self.model_summary,
            fingerprint=self.fingerprint,
        )


@shows_call("sf.estimate(survey, reports)")
def estimate(
    mechanism: Mechanism | SurveyLike,
    tally: Tally | ReportsWithFingerprint | ArrayLike,
    *,
    decoder: DecoderName | Decoder = "auto",
    covariate: ArrayLike | None = None,
) -> Estimate:
    """Estimate the distribution behind a tally.

    ``mechanism``: the mechanism, or the survey, whose reports these are.
    ``tally``: the counts of the reports, or the reports themselves.
    ``decoder``: the name of a decoder, or a decoder object from ``sfumato.estimation.decoders``.
    ``covariate``: a public number for each symbol, for decoders that use one.

    >>> from sfumato.contexts import Uniform
    >>> from sfumato.mechanisms import PlainResponse
    >>> mechanism = PlainResponse(Uniform(["a", "b", "c"], 1.0))
    >>> tally = mechanism.tally([0, 0, 0, 2, 2, 1])
    >>> estimate(mechanism, tally, decoder="projection").frequencies.round(3)
    array([0.861, 0.139, 0.   ])
    """
    if not isinstance(mechanism, Mechanism):
        return _estimate_survey(mechanism, tally, decoder=decoder, covariate=covariate)
    tally = _count(mechanism, tally)
    chosen_decoder = _with_covariate(get_decoder(decoder), covariate)
    decoded = chosen_decoder.decode(mechanism, tally)
    return Estimate(
        labels=mechanism.context.domain.labels,
        frequencies=decoded.frequencies,
        unbiased=mechanism.scores.unbiased(tally),
        standard_errors=mechanism.scores.standard_errors(tally),
        reports=tally.reports,
        decoder=chosen_decoder.name,
        leverage=mechanism.scores.leverage,
        fingerprint=tally.fingerprint,
        details=decoded.details,
        _mechanism=mechanism,
        _tally=tally,
        _decoder=chosen_decoder,
    )


def _estimate_survey(
    survey: SurveyLike,
    tally: Tally | ReportsWithFingerprint | ArrayLike,
    *,
    decoder: DecoderName | Decoder,
    covariate: ArrayLike | None,
) -> Estimate:
    """Estimate with the survey, which checks fingerprints and its minimum number of reports."""
    mechanism = require_mechanism(survey, "estimate(mechanism, tally)")
    if not callable(getattr(survey, "estimate", None)):  # a design
        return estimate(mechanism, tally, decoder=decoder, covariate=covariate)
    return survey.estimate(tally, decoder=decoder, covariate=covariate)


def _count(mechanism: Mechanism, reports: Tally | ReportsWithFingerprint | ArrayLike) -> Tally:
    """Return the tally of reports; a tally is returned unchanged."""
    if isinstance(reports, Tally):
        return reports
    if isinstance(reports, ReportsWithFingerprint):
        if reports.fingerprint != mechanism.fingerprint:
            raise WrongSurvey(
                f"these reports answer the survey {reports.fingerprint[:12]}…. Pass that survey "
                "instead of its mechanism: sf.estimate(survey, reports)."
            )
        return mechanism.tally(reports.numbers)
    is_column = hasattr(reports, "__array__") or isinstance(reports, Sequence)
    if not is_column or len(getattr(reports, "shape", ())) > 1:
        raise InvalidArgument(
            f"expected a tally or a column of reports; got {type(reports).__name__}. Call "
            "sf.estimate(survey, reports) with reports = survey.privatize(answers), or "
            "sf.estimate(mechanism, reports) with reports = mechanism.privatize(symbols)."
        )
    return mechanism.tally(reports)


def _with_covariate(decoder: Decoder, covariate: object) -> Decoder:
    if covariate is None:
        return decoder
    if "covariate" not in getattr(decoder, "__dataclass_fields__", {}):
        raise InvalidArgument(
            f"the decoder {decoder.name!r} does not use a covariate. Omit covariate=, or choose a "
            "decoder that uses one."
        )
    return replace(decoder, covariate=covariate)  # type: ignore[type-var]
