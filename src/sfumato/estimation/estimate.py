"""Estimates: the distribution that the reports support, with honest error bars."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.domains import Label
from sfumato.errors import ContextMismatch, InvalidArgument, MissingExtra
from sfumato.estimation.decoders import get_decoder
from sfumato.estimation.decoders.decoder import Decoder
from sfumato.estimation.readings import MAX_SHOWN, Readings, arrow_table, html_table, text_table
from sfumato.estimation.uncertainty.bootstrap import Bootstrap
from sfumato.estimation.uncertainty.differences import Bounds, Difference
from sfumato.estimation.uncertainty.fit import FitResult, FitWarning, check_fit
from sfumato.estimation.uncertainty.intervals import score_bounds, share_bounds, tail_probability
from sfumato.estimation.uncertainty.manipulation import Manipulation, ManipulationBounds
from sfumato.estimation.uncertainty.ranking import Top
from sfumato.estimation.uncertainty.shares import Shares, block_shares, shares_within
from sfumato.estimation.uncertainty.totals import Total, label_weights, symbol_weights
from sfumato.foundation.arrays import Arrow, Floats
from sfumato.mechanisms import Mechanism, ScoreMoments
from sfumato.tally import Tally

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]

__all__ = ["Estimate", "Origin", "estimate"]

Selection = slice | NDArray[np.intp]
"""Some of the symbols."""

_ALL = slice(None)


@dataclass(frozen=True)
class Origin:
    """What an estimate was made from. Its further answers are computed from this on demand."""

    mechanism: Mechanism
    tally: Tally
    decoder: Decoder


@dataclass(frozen=True, eq=False, repr=False)
class Estimate:
    """Two readings of one tally, not to be confused.

    ``frequencies`` is the decoded one: a distribution, shaped by the decoder, and the better guess.
    ``details`` is what the decoder reports on how it arrived there; ``bootstrap`` says how far it
    may be off.

    ``unbiased`` with ``standard_errors`` is what all intervals come from: right on average, entry
    by entry, even where it is negative.

    ``fingerprint`` names the mechanism or survey whose reports were read, ``reports`` counts them.
    ``leverage`` is how many honest people one fake report can outweigh.
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

    # --- the unbiased reading --------------------------------------------------------------------

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return for each symbol an interval that covers its frequency with probability ``level``.

        It is a binomial interval after matching three moments of the scores (``intervals.py``). For
        symbols in clear it is that of their count. Near 0 it is that of Feldman and Cousins
        (``boundary.py``): it lies in [0, 1] and has a width even where the estimate is below 0.
        """
        return self._all_bounds(tail_probability(level))

    def simultaneous_interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return wider intervals, which cover all symbols at once with probability ``level``.

        Each of the k intervals is at ``1 − (1 − level)/k`` (Bonferroni).
        """
        return self._all_bounds(tail_probability(level, len(self.labels)))

    def total(self, labels: Iterable[Label] | Label, level: float = 0.95) -> Total:
        """Return the share of several labels together (a region, a category), with its interval.

        The interval knows the covariances: it is not the sum of the labels' intervals.
        """
        origin = self._origin
        weights = label_weights(origin.mechanism, labels)
        return Total.from_tally(origin.mechanism, origin.tally, weights, level)

    def weighted_total(
        self, weights: Mapping[Label, float] | ArrayLike, level: float = 0.95
    ) -> Total:
        """Return any weighted sum of the frequencies, such as a mean.

        ``weights``: one for each symbol, or a mapping from labels.
        """
        origin = self._origin
        by_symbol = symbol_weights(origin.mechanism, weights)
        return Total.from_tally(origin.mechanism, origin.tally, by_symbol, level)

    def block_shares(self, level: float = 0.95) -> Shares:
        """Return each symbol's share of its own block, if blocks are sent in clear.

        The intervals are exact at any size. If nothing is sent in clear, all symbols are one block.
        """
        return block_shares(self._origin.mechanism, self._origin.tally, level)

    def shares_within(self, labels: Iterable[Label], level: float = 0.95) -> Shares:
        """Return the share of each of these labels in their total, which may be noisy itself."""
        origin = self._origin
        part = label_weights(origin.mechanism, labels) > 0
        return shares_within(origin.mechanism, origin.tally, part, level)

    def difference(self, other: "Estimate", level: float = 0.95) -> Difference:
        """Return ``other`` less this estimate: changed up, changed down or cannot tell, by symbol.

        With probability at least ``level`` nothing is called changed that is not. The two estimates
        must have the same labels and different people; mechanisms and numbers of reports may
        differ.
        """
        if self._origin.mechanism.context.domain != other._origin.mechanism.context.domain:
            raise ContextMismatch(
                "a difference needs two estimates over the same labels in the same order."
            )
        tail = tail_probability(level, len(self.labels))
        return Difference.from_intervals(
            self.labels,
            self.unbiased,
            self._uncut_bounds(tail),
            other.unbiased,
            other._uncut_bounds(tail),
            level,
        )

    def top(self, size: int, level: float = 0.95) -> Top:
        """Return the labels that are certainly, or possibly, among the ``size`` most frequent."""
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise InvalidArgument(f"size must be a positive integer; got {size!r}.")
        low, high = self.simultaneous_interval(level)
        return Top.from_intervals(self.labels, self.unbiased, low, high, size, level)

    def _all_bounds(self, tail: float) -> Bounds:
        """Return the bounds of all symbols; pages read them again and again."""
        if tail not in self._bounds_cache:
            low, high = self._share_bounds(tail)
            low.flags.writeable = False
            high.flags.writeable = False
            self._bounds_cache[tail] = low, high
        return self._bounds_cache[tail]

    @cached_property
    def _bounds_cache(self) -> dict[float, Bounds]:
        return {}

    def _share_bounds(self, tail: float, symbols: Selection = _ALL) -> Bounds:
        if len(self.labels) == 1:
            return np.ones(1), np.ones(1)
        if self.reports == 1:  # one report has no spread to judge it by
            unknown = self.unbiased[symbols]
            return np.zeros_like(unknown), np.ones_like(unknown)
        return share_bounds(self._moments.of(symbols), self.reports, tail)

    def _uncut_bounds(self, tail: float) -> Bounds:
        """Return bounds around the unbiased estimate that may lie outside [0, 1]."""
        if len(self.labels) == 1:
            return self.unbiased, self.unbiased
        if self.reports == 1:
            return self.unbiased - np.inf, self.unbiased + np.inf
        return score_bounds(self._moments, self.reports, tail)

    @cached_property
    def _moments(self) -> ScoreMoments:
        frequencies = self._origin.tally.counts / self.reports
        return ScoreMoments.of_symbols(self._origin.mechanism.scores, frequencies)

    # --- the decoded reading, and the reports as such --------------------------------------------

    def bootstrap(self, runs: int = 200, *, seed: int = 0, level: float = 0.95) -> Bootstrap:
        """Return how far the decoded frequencies may be off: total variation and standard errors.

        As if they were the truth, ``runs`` times: draw reports, decode, compare (``bootstrap.py``).
        """
        origin = self._origin
        return Bootstrap.run(
            origin.mechanism,
            origin.decoder,
            origin.tally,
            self.frequencies,
            runs=runs,
            seed=seed,
            level=level,
        )

    @cached_property
    def fit_result(self) -> FitResult:
        """Whether the reports can have come from the mechanism at all (``fit.py``)."""
        return check_fit(self._origin.mechanism, self._origin.tally)

    def check_fit(self) -> FitResult:
        """Return ``fit_result``, and warn (``FitWarning``) if the reports cannot fit."""
        if not self.fit_result.possible:
            warnings.warn(self.fit_result.verdict, FitWarning, stacklevel=2)
        return self.fit_result

    def manipulation(self, fakes: int) -> Manipulation:
        """Return how far ``fakes`` fake people could have moved the estimate.

        The bounds are those of ``manipulation.py``.
        """
        return self._manipulation_bounds.for_fakes(fakes)

    @cached_property
    def _manipulation_bounds(self) -> ManipulationBounds:
        origin = self._origin
        return ManipulationBounds.from_tally(origin.mechanism, origin.tally, origin.decoder)

    # --- tables ----------------------------------------------------------------------------------

    def to_arrow(self, level: float = 0.95) -> Arrow:
        """Return a ``pyarrow.Table``: label, frequency, unbiased, standard_error, low and high."""
        return arrow_table(self._readings(level))

    def to_pandas(self, level: float = 0.95) -> "pd.DataFrame":
        """Return the same table as a data frame. Sfumato does not install pandas."""
        try:
            import pandas  # noqa: F401 - only to see that it is there: pyarrow makes the frame
        except ImportError:
            raise MissingExtra("a data frame needs pandas: pip install pandas") from None
        return self.to_arrow(level).to_pandas()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the same table to anything that reads Arrow (polars, DuckDB, …)."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return text_table(self._readings(0.95, slice(MAX_SHOWN)), len(self.labels))

    def _repr_html_(self) -> str:
        """Return what notebooks show: the most frequent symbols, both readings side by side."""
        most_frequent = np.lexsort((-self.unbiased, -self.frequencies))[:MAX_SHOWN]
        return html_table(self._readings(0.95, most_frequent), len(self.labels))

    def _readings(self, level: float, symbols: Selection = _ALL) -> Readings:
        low, high = self._share_bounds(tail_probability(level), symbols)
        labels = self.labels[symbols] if isinstance(symbols, slice) else self._labels_of(symbols)
        return Readings(
            labels=labels,
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

    def _labels_of(self, symbols: NDArray[np.intp]) -> list[Label]:
        return [self.labels[x] for x in symbols.tolist()]


def estimate(
    mechanism: Mechanism, tally: Tally, *, decoder: str | Decoder = "auto", covariate: object = None
) -> Estimate:
    """Estimate the distribution behind a tally.

    ``decoder``: a name, or an object from ``sfumato.estimation.decoders``.
    ``covariate``: something known about the symbols, for decoders that can use it.

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
    if covariate is None:
        return decoder
    if "covariate" not in getattr(decoder, "__dataclass_fields__", {}):
        raise InvalidArgument(
            f"the decoder {decoder.name!r} uses no covariate. Leave it out, or choose one that "
            "does."
        )
    return replace(decoder, covariate=covariate)  # type: ignore[type-var]
