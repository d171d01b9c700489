"""Estimates: the distribution that the reports speak for, with honest error bars."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.domains import Label
from sfumato.errors import ContextMismatch, InvalidContext, MissingExtra
from sfumato.estimation.decoders import get_decoder
from sfumato.estimation.decoders.decoder import Decoder
from sfumato.estimation.readings import SHOWN, Readings, arrow_table, html_table, text_table
from sfumato.estimation.uncertainty.bootstrap import Bootstrap, bootstrap_of
from sfumato.estimation.uncertainty.differences import Difference, difference_of
from sfumato.estimation.uncertainty.fit import Fit, FitWarning, fit_of
from sfumato.estimation.uncertainty.intervals import score_bounds, share_bounds, tail_of
from sfumato.estimation.uncertainty.manipulation import Forgeries, Manipulation
from sfumato.estimation.uncertainty.ranking import Top, top_of
from sfumato.estimation.uncertainty.shares import Shares, block_shares, shares_within
from sfumato.estimation.uncertainty.totals import Total, label_weights, symbol_weights, total_of
from sfumato.foundation.arrays import Arrow, Floats
from sfumato.mechanisms import Mechanism, ScoreMoments
from sfumato.tally import Tally

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]

__all__ = ["Estimate", "Origin", "estimate"]

Chosen = slice | NDArray[np.intp]
"""Some of the symbols."""


@dataclass(frozen=True)
class Origin:
    """What an estimate was made from; its further answers are worked out from it when they are asked for."""

    mechanism: Mechanism
    tally: Tally
    decoder: Decoder


@dataclass(frozen=True, eq=False, repr=False)
class Estimate:
    """Two readings of one tally, not to be confused.

    ``frequencies`` is the decoded picture: a distribution, shaped by the decoder, the better guess. ``details`` is
    what the decoder says of how it found it, ``bootstrap`` how far it may be off.
    ``unbiased`` with ``standard_errors`` is what all intervals come from: right on average, entry by entry, even
    where it is negative. ``fingerprint`` names the mechanism or survey whose reports were read.
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
    _origin: Origin = field(repr=False)

    # --- the unbiased reading -----------------------------------------------------------------------

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """For each symbol on its own, an interval that covers its frequency with probability ``level``.

        A binomial interval after matching three moments of the scores (``intervals.py``). For symbols in clear it
        is that of their count. Beside 0 it is that of Feldman and Cousins (``boundary.py``): it lies in [0, 1] and
        has a width even where the estimate is below 0.
        """
        return self._all_bounds(tail_of(level))

    def simultaneous_interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Wider intervals, which with probability at least ``level`` cover the frequencies of all symbols at once.

        Each of the k intervals is at ``1 − (1 − level)/k`` (Bonferroni).
        """
        return self._all_bounds(tail_of(level, len(self.labels)))

    def total(self, labels: Iterable[Label] | Label, level: float = 0.95) -> Total:
        """The share of several labels together (a region, a category), with its own interval.

        The interval knows the covariances: it is not the sum of the labels' intervals.
        """
        origin = self._origin
        return total_of(
            origin.mechanism, origin.tally, label_weights(origin.mechanism, labels), level
        )

    def weighted_total(
        self, weights: Mapping[Label, float] | ArrayLike, level: float = 0.95
    ) -> Total:
        """Any weighted sum of the frequencies, a mean for instance: one weight per symbol, or a mapping from labels."""
        origin = self._origin
        return total_of(
            origin.mechanism, origin.tally, symbol_weights(origin.mechanism, weights), level
        )

    def block_shares(self, level: float = 0.95) -> Shares:
        """Each symbol's share of its own block, where blocks are sent in clear: exact intervals at any size.

        Where nothing is sent in clear, everybody is one block.
        """
        return block_shares(self._origin.mechanism, self._origin.tally, level)

    def shares_within(self, labels: Iterable[Label], level: float = 0.95) -> Shares:
        """The share of each of these labels in their total, whether or not the total is seen without noise."""
        origin = self._origin
        part = label_weights(origin.mechanism, labels) > 0
        return shares_within(origin.mechanism, origin.tally, part, level)

    def difference(self, other: "Estimate", level: float = 0.95) -> Difference:
        """What ``other`` is above this estimate: changed up, changed down or cannot tell, symbol by symbol.

        With probability at least ``level`` nothing is called changed that is not. The two estimates must be of
        the same labels and of different people; mechanisms and numbers of reports may differ.
        """
        if self._origin.mechanism.context.domain != other._origin.mechanism.context.domain:
            raise ContextMismatch(
                "a difference needs two estimates over the same labels in the same order."
            )
        tail = tail_of(level, len(self.labels))
        return difference_of(
            self.labels,
            self.unbiased,
            self._free_bounds(tail),
            other.unbiased,
            other._free_bounds(tail),
            level,
        )

    def top(self, size: int, level: float = 0.95) -> Top:
        """The labels that are certainly, and those that are possibly, among the ``size`` most frequent."""
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise InvalidContext(f"size must be a whole number of at least 1; found {size!r}.")
        low, high = self.simultaneous_interval(level)
        return top_of(self.labels, self.unbiased, low, high, size, level)

    def _all_bounds(self, tail: float) -> tuple[Floats, Floats]:
        """Bounds of all symbols, worked out once: pages ask for them again and again."""
        if tail not in self._known_bounds:
            low, high = self._share_bounds(tail)
            low.flags.writeable = high.flags.writeable = False
            self._known_bounds[tail] = low, high
        return self._known_bounds[tail]

    @cached_property
    def _known_bounds(self) -> dict[float, tuple[Floats, Floats]]:
        return {}

    def _share_bounds(self, tail: float, symbols: Chosen = slice(None)) -> tuple[Floats, Floats]:
        chosen = self.unbiased[symbols]
        if len(self.labels) == 1:
            return np.ones(1), np.ones(1)
        if self.reports == 1:  # one report has no spread to judge it by
            return np.zeros_like(chosen), np.ones_like(chosen)
        return share_bounds(self._moments.of(symbols), self.reports, tail)

    def _free_bounds(self, tail: float) -> tuple[Floats, Floats]:
        """Bounds that may lie outside [0, 1], around the unbiased estimate, for differences."""
        if len(self.labels) == 1:
            return self.unbiased, self.unbiased
        if self.reports == 1:
            return self.unbiased - np.inf, self.unbiased + np.inf
        return score_bounds(self._moments, self.reports, tail)

    @cached_property
    def _moments(self) -> ScoreMoments:
        return ScoreMoments.of_symbols(
            self._origin.mechanism.scores, self._origin.tally.counts / self.reports
        )

    # --- the decoded picture, and the reports as such -------------------------------------------------

    def bootstrap(self, runs: int = 200, *, seed: int = 0, level: float = 0.95) -> Bootstrap:
        """How far the decoded picture may be off: an interval for its total variation error, and standard errors.

        As if the picture were the truth, ``runs`` times: draw reports, decode, compare (``bootstrap.py``).
        """
        origin = self._origin
        return bootstrap_of(
            origin.mechanism,
            origin.decoder,
            origin.tally,
            self.frequencies,
            runs=runs,
            seed=seed,
            level=level,
        )

    @cached_property
    def fit(self) -> Fit:
        """Whether the reports can have come from the mechanism at all; warns (``FitWarning``) where they cannot."""
        if not self.quiet_fit.possible:
            warnings.warn(self.quiet_fit.verdict, FitWarning, stacklevel=3)
        return self.quiet_fit

    @cached_property
    def quiet_fit(self) -> Fit:
        """The same without a warning, for those who show the verdict in a way of their own."""
        return fit_of(self._origin.mechanism, self._origin.tally)

    def manipulation(self, fakes: int) -> Manipulation:
        """How far so many fake people among the reports could have moved the estimate (``manipulation.py``)."""
        return self._forgeries.by(fakes)

    @cached_property
    def _forgeries(self) -> Forgeries:
        return Forgeries.of(self._origin.mechanism, self._origin.tally, self._origin.decoder)

    # --- to be looked at and handed on --------------------------------------------------------------

    def _readings(self, level: float, symbols: Chosen = slice(None)) -> Readings:
        low, high = self._share_bounds(tail_of(level), symbols)
        return Readings(
            labels=self.labels[symbols]
            if isinstance(symbols, slice)
            else [self.labels[int(x)] for x in symbols],
            frequency=self.frequencies[symbols],
            unbiased=self.unbiased[symbols],
            standard_error=self.standard_errors[symbols],
            low=low,
            high=high,
            level=level,
            reports=self.reports,
            decoder=self.decoder,
            fingerprint=self.fingerprint,
        )

    def to_arrow(self, level: float = 0.95) -> Arrow:
        """A ``pyarrow.Table`` with columns label, frequency, unbiased, standard_error, low and high."""
        return arrow_table(self._readings(level))

    def to_pandas(self, level: float = 0.95) -> "pd.DataFrame":
        """The same table as a data frame; pandas is not installed with Sfumato."""
        try:
            import pandas  # noqa: F401 - only to see that it is there: pyarrow makes the frame
        except ImportError:
            raise MissingExtra("a data frame needs pandas: pip install pandas") from None
        return self.to_arrow(level).to_pandas()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The same table for anything that speaks Arrow (polars, DuckDB, …)."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return text_table(self._readings(0.95, slice(SHOWN)), len(self.labels))

    def _repr_html_(self) -> str:
        """What notebooks show: the most frequent symbols, both readings side by side."""
        most_frequent = np.lexsort((-self.unbiased, -self.frequencies))[:SHOWN]
        return html_table(self._readings(0.95, most_frequent), len(self.labels))


def estimate(
    mechanism: Mechanism, tally: Tally, *, decoder: str | Decoder = "auto", covariate: object = None
) -> Estimate:
    """The distribution that a tally speaks for.

    ``decoder`` is a name or an object from ``sfumato.estimation.decoders``. ``covariate`` is something known of the
    symbols, for decoders that can use it.

    >>> from sfumato.contexts import Uniform
    >>> from sfumato.mechanisms import PlainResponse
    >>> mechanism = PlainResponse(Uniform(["a", "b", "c"], 1.0))
    >>> tally = mechanism.tally([0, 0, 0, 2, 2, 1])
    >>> estimate(mechanism, tally, decoder="projection").frequencies.round(3)
    array([0.861, 0.139, 0.   ])
    """
    chosen = _with_covariate(get_decoder(decoder), covariate)
    decoded = chosen.decode(mechanism, tally)
    return Estimate(
        labels=mechanism.context.domain.labels,
        frequencies=decoded.frequencies,
        unbiased=mechanism.scores.unbiased(tally),
        standard_errors=mechanism.scores.standard_errors(tally),
        reports=tally.reports,
        decoder=chosen.name,
        leverage=mechanism.scores.leverage,
        fingerprint=tally.fingerprint,
        details=decoded.details,
        _origin=Origin(mechanism, tally, chosen),
    )


def _with_covariate(decoder: Decoder, covariate: object) -> Decoder:
    """The decoder, told what is known of the symbols."""
    if covariate is None:
        return decoder
    if "covariate" not in getattr(decoder, "__dataclass_fields__", {}):
        raise InvalidContext(
            f"the decoder {decoder.name!r} uses no covariate. Leave it out, or choose one that does."
        )
    return replace(decoder, covariate=covariate)  # type: ignore[type-var]
