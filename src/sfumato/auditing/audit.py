"""Audit a randomizer: draw samples, test them, and return a verdict."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from sfumato.auditing.black_box import (
    ANY_OTHER,
    BatchBox,
    Counts,
    Histogram,
    PerSymbolBox,
    Randomizer,
    ReturnedReports,
    count_reports,
    list_reports,
    make_black_box,
    split_by_symbol,
    table_of_counts,
)
from sfumato.auditing.bounds import (
    detectable_log_ratio,
    log_ratio_lower_bounds,
    poisson_mean_lower_bound,
    suspicious_log_ratio,
)
from sfumato.auditing.events import Choice, PromisedPair, choose_events, pairs_with_promise
from sfumato.auditing.sample_plan import SamplePlan, even_blocks, poisson_blocks
from sfumato.auditing.sequences import (
    LEVEL_SHARE,
    MAX_SEQUENCE_TESTS,
    SequencePlayer,
    SequenceTest,
    SuccessiveReports,
)
from sfumato.auditing.verdict import POWER, Audit, PairAudit
from sfumato.contexts import Context
from sfumato.domains import SymbolOrLabel
from sfumato.errors import InvalidArgument, InvalidSymbols, NotEnoughReports
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.foundation.correct_call import shows_call
from sfumato.mechanisms import Mechanism
from sfumato.randomness import SystemWords, WordSource
from sfumato.survey import Survey

MAX_SYMBOLS = 64
"""The maximum number of symbols in an audit, which compares every ordered pair of them."""

MIN_SAMPLES = 100
"""The minimum number of samples per symbol; fewer would reveal almost nothing."""

_MAX_EVENT_REPORTS = 8  # at most this many reports of an event are listed in a result

_SAMPLES_PER_RESTART = 10_000
_MAX_DEFAULT_RESTARTS = 100

_DRIFT_LEVEL = 1e-6  # the significance level for all symbols together; false alarms must be rare
_MIN_EXPECTED_COUNT = 5.0  # the χ² approximation is poor for smaller expected counts


@shows_call("sf.audit(mechanism, samples=20_000)")
def audit(
    randomize: Randomizer | Mechanism | Survey,
    context: Context | None = None,
    *,
    samples: int = 1_000_000,
    symbols: Sequence[SymbolOrLabel] | None = None,
    confidence: float = 0.999,
    sample_plan: SamplePlan | None = None,
    source: WordSource | None = None,
    restarts: int | None = None,
    on_progress: Callable[[int], None] = lambda samples: None,
) -> Audit:
    """Look for violations of ``P(S|x) ≤ exp(E[x, x2]) P(S|x2)`` in samples from a black box.

    ``randomize`` is a function of a symbol and a count that returns ``count`` independent reports
    of the symbol. Reports may be any hashable objects. The function is called many times, with
    counts of about a hundred. Alternatively, pass a mechanism or a survey; the audit calls only its
    ``privatize`` method.

    ``context`` is the promise to test. The audit tests its closure, which includes promises implied
    through a third symbol. ``samples`` is the approximate number of reports to draw, in random
    order. ``symbols`` are the symbols to compare, at most 64, as integers or by the text of
    their labels; the default is all of them.
    ``sample_plan`` divides the samples among the stages of the audit. ``restarts`` is how often to
    start a command again to test its first report; the default is once per 10,000 samples, at most
    100 times. ``on_progress`` is called with the number of samples drawn so far.

    **Method.** From one part of the samples, the audit chooses an event for each ordered pair with
    a finite promise, and the few pairs that look worst (*suspects*). It then draws fresh samples,
    most of them for the suspects. On the fresh samples, each event gives an exact (Clopper–Pearson)
    lower bound on its pair's log-ratio, and hence on the realized entry of E. Games then test
    successive reports, and the first reports of commands (see ``sequences.py``). Each pair and each
    game has its own significance level. The levels of all pairs add up to 0.8 (1 − confidence), and
    those of two games to the rest.

    **Guarantee.** With probability at least ``confidence``, none of the bounds is too large. So a
    randomizer that keeps its promise is falsely accused with probability at most 1 − confidence.
    This holds for every channel, every number of reports and every choice of events. It requires
    reports that are independent of each other and of earlier queries. The channel may change over
    time, as long as it satisfies the context at all times. It may change after any report if
    symbols are sent one by one (mechanisms, surveys, commands), and between blocks of calls if
    ``randomize`` is a function. If the channel does change, a bound applies to the largest value of
    the entry during the audit.

    **If no violation is found.** For each pair, ``resolution`` is the smallest log-ratio on the
    event that would have been detected with probability 0.99; the module ``bounds`` explains how it
    is computed. Such a verdict is not a proof; for mechanisms in this package, ``certify`` gives a
    proof. The verdict also covers only the time of the audit: a client that knows when it is being
    audited can cheat. ``changed_symbols`` lists the symbols whose reports changed during the audit.

    There is no seed. The black box uses its own randomness. Words from ``source`` determine only
    the order of the samples and, in the test, the Poisson-distributed sample sizes.

    >>> import sfumato as sf
    >>> result = audit(sf.mechanism_for(sf.Uniform(3, 1)), samples=20_000)
    >>> len(result.pairs), result.confidence
    (6, 0.999)
    >>> careless = lambda symbol, count: [symbol] * count
    >>> audit(careless, sf.Uniform(3, 1), samples=20_000).violates
    True
    """
    box, promise = make_black_box(randomize, context)
    selected_symbols = _select_symbols(promise, symbols)
    k = selected_symbols.size
    _require_samples(samples, k)
    if not isinstance(confidence, float) or not 0.5 <= confidence < 1:
        raise InvalidArgument(
            f"confidence must be at least 0.5 and below 1, such as 0.999; got {confidence!r}."
        )
    restart_count = _require_restarts(restarts, samples)
    plan = sample_plan or SamplePlan()
    source = source or SystemWords()
    pairs = pairs_with_promise(promise, selected_symbols)
    audited_symbols = tuple(selected_symbols.tolist())
    labels = tuple(promise.domain.labels[symbol] for symbol in audited_symbols)
    if not pairs:
        return Audit((), audited_symbols, labels, 0, confidence, 0.0, ())

    E = _promise_table(pairs, k)
    sampler = _Sampler(box, selected_symbols, E, source, on_progress)
    block_size = box.block_size(k)
    ordering_size, choosing_size = plan.ordering_and_choosing_sizes(samples, k)
    ordering_histograms = sampler.draw(even_blocks(ordering_size, k, block_size))
    choosing_histograms = sampler.draw(even_blocks(choosing_size, k, block_size))
    choice = choose_events(pairs, ordering_histograms, choosing_histograms, plan.suspect_count)

    suspect_rows: list[int] = []
    for i in choice.suspects:
        suspect_rows += pairs[i].rows
    means = plan.mean_test_sizes(samples, k, suspect_rows)
    test_histograms = sampler.draw(poisson_blocks(means, block_size, source), means)
    test_counts = table_of_counts(test_histograms, choice.reports)
    pair_level = (1 - confidence) * (1 - MAX_SEQUENCE_TESTS * LEVEL_SHARE)
    levels = plan.levels(pair_level, len(pairs), choice.suspects)
    tests = _PairTests(pairs, choice, test_counts, means, levels)
    sequences = sampler.audit_sequences((1 - confidence) * LEVEL_SHARE, int(samples), restart_count)
    return Audit(
        pairs=tests.results(plan.min_suspect_mean(samples, k)),
        symbols=audited_symbols,
        labels=labels,
        samples=sampler.report_count,
        confidence=confidence,
        rare_share=choice.rare_share,
        changed_symbols=tuple(
            audited_symbols[row] for row in rows_with_drift(choice.counts, test_counts)
        ),
        sequences=sequences,
    )


def _select_symbols(context: Context, symbols: Sequence[SymbolOrLabel] | None) -> Symbols:
    if symbols is None:
        selected_symbols = np.arange(context.size)
    else:
        selected_symbols = np.unique(context.domain.as_symbols(symbols))
        if selected_symbols.size < 2:
            raise InvalidSymbols(
                f"symbols must contain at least two different symbols; got {selected_symbols.size}."
            )
    if selected_symbols.size > MAX_SYMBOLS:
        raise InvalidSymbols(
            f"an audit compares at most {MAX_SYMBOLS} symbols; got {selected_symbols.size}. "
            "Choose the most important ones: symbols=[…], or --symbols on the command line."
        )
    return selected_symbols


def _require_samples(samples: object, symbol_count: int) -> None:
    minimum = MIN_SAMPLES * symbol_count
    if isinstance(samples, bool) or not isinstance(samples, int | np.integer) or samples < minimum:
        raise NotEnoughReports(
            f"samples must be an integer of at least {minimum}, which is {MIN_SAMPLES} for each of "
            f"{symbol_count} symbols; got {samples!r}."
        )


def _require_restarts(restarts: object, samples: int) -> int:
    if restarts is None:
        return min(samples // _SAMPLES_PER_RESTART, _MAX_DEFAULT_RESTARTS)
    is_integer = isinstance(restarts, int | np.integer) and not isinstance(restarts, bool)
    if not is_integer or restarts < 0:  # type: ignore[operator]
        raise InvalidArgument(f"restarts must be a non-negative integer; got {restarts!r}.")
    return int(restarts)  # type: ignore[call-overload]


def _promise_table(pairs: Sequence[PromisedPair], symbol_count: int) -> Floats:
    """Return the promises as a table, with inf where nothing is promised."""
    E = np.full((symbol_count, symbol_count), np.inf)
    for pair in pairs:
        E[pair.rows] = pair.promised
    return E


class _Sampler:
    """Draws reports of each symbol, block by block.

    ``E`` is the promise for these symbols. ``report_count`` is the number of reports drawn so far.
    """

    def __init__(
        self,
        box: PerSymbolBox | BatchBox,
        symbols: Symbols,
        E: Floats,
        source: WordSource,
        on_progress: Callable[[int], None],
    ) -> None:
        self._box = box
        self._symbols = symbols
        self._source = source
        self._on_progress = on_progress
        self._E = E
        self._successive = SuccessiveReports(symbols, E)
        self.report_count = 0

    def draw(self, blocks: Counts, test_means: Floats | None = None) -> list[Histogram]:
        """Return a histogram of each symbol's reports.

        ``blocks`` has a row for each block, with the number of reports to draw for each symbol. In
        the test, these numbers are Poisson-distributed; ``test_means`` are in proportion to their
        means.
        """
        histograms = {symbol: Histogram() for symbol in self._symbols.tolist()}
        for sizes in blocks:
            size_of = dict(zip(histograms, sizes.tolist(), strict=True))
            for symbol, reports in self._draw_block(sizes, test_means):
                histograms[symbol].update(count_reports(reports, size_of[symbol]))
            self._add_reports(int(sizes.sum()))
        return list(histograms.values())

    def _draw_block(
        self, sizes: Counts, test_means: Floats | None
    ) -> Iterable[tuple[int, ReturnedReports]]:
        """Return each symbol with its reports. If their order is known, play on them."""
        if not isinstance(self._box, BatchBox):
            return self._box.sample(self._symbols, sizes, self._source)
        queries, reports = self._box.sample(self._symbols, sizes, self._source)
        is_plain = isinstance(reports, np.ndarray) and reports.ndim == 1 and reports.dtype != object
        listed_reports = reports if is_plain else list_reports(reports, queries.size)
        if test_means is None:
            self._successive.learn(queries, listed_reports)
        else:
            self._successive.play(queries, listed_reports, test_means)
        return split_by_symbol(self._symbols, queries, reports)

    def audit_sequences(
        self, level: float, samples: int, restart_count: int
    ) -> tuple[SequenceTest, ...]:
        """Return the results of the tests of sequences; each has the given level."""
        player = SequencePlayer(self._symbols, self._E, level, self._source)
        if not isinstance(self._box, BatchBox):
            tests = player.play_function(self._box.randomize, samples)
            self._add_reports(sum(test.reports for test in tests))
            return tests
        successive = self._successive.result(level)
        if self._box.restart is None or not restart_count:
            return (successive,)
        first_reports = player.play_first_reports(self._box.restart, restart_count)
        self._add_reports(restart_count)
        return successive, first_reports

    def _add_reports(self, count: int) -> None:
        self.report_count += count
        self._on_progress(self.report_count)


class _PairTests:
    """The tests of all pairs, on counts that were not used to choose events or suspects.

    For each pair, ``_hits`` and ``_hits2`` are the counts of its event under x and under x2;
    ``_lambda`` and ``_lambda2`` are the expected numbers of samples, λ_x and λ_x2.
    """

    def __init__(
        self,
        pairs: Sequence[PromisedPair],
        choice: Choice,
        counts: Counts,
        means: Floats,
        levels: Floats,
    ) -> None:
        self._pairs = pairs
        self._choice = choice
        self._levels = levels
        rows = np.array([pair.rows for pair in pairs])
        self._lambda = means[rows[:, 0]]
        self._lambda2 = means[rows[:, 1]]
        hits = np.empty((len(pairs), 2), dtype=np.int64)
        for i, event in enumerate(choice.events):
            hits[i] = counts[np.ix_(rows[i], event.columns)].sum(axis=1)
        self._hits = hits[:, 0]
        self._hits2 = hits[:, 1]

    def results(self, suspect_lambda: float) -> tuple[PairAudit, ...]:
        """Return the result for every pair.

        ``suspect_lambda`` is the expected number of test samples for a symbol in a suspect pair.
        """
        size_ratio = self._lambda / self._lambda2
        bounds = log_ratio_lower_bounds(self._hits, self._hits2, size_ratio, self._levels)
        resolutions = self._resolutions(suspect_lambda)
        suspects = set(self._choice.suspects.tolist())
        reports = [*self._choice.reports, ANY_OTHER]
        results = []
        for i, pair in enumerate(self._pairs):
            columns = self._choice.events[i].columns
            result = PairAudit(
                x=pair.x,
                x2=pair.x2,
                promised=pair.promised,
                bound=float(bounds[i]),
                resolution=float(resolutions[i]),
                level=float(self._levels[i]),
                is_suspect=i in suspects,
                hits=(int(self._hits[i]), int(self._hits2[i])),
                samples=(float(self._lambda[i]), float(self._lambda2[i])),
                event_size=columns.size,
                includes_other=len(reports) - 1 in columns,
                event=tuple(reports[column] for column in columns[:_MAX_EVENT_REPORTS]),
            )
            results.append(result)
        return tuple(results)

    def _resolutions(self, suspect_lambda: float) -> Floats:
        """Return each pair's resolution: the smallest log-ratio that can be detected in either way.

        A violation may be detected directly by the pair's test. Or the pair may first become a
        suspect; then a test with ``suspect_lambda`` samples per symbol may detect the violation.
        """
        E = np.array([pair.promised for pair in self._pairs])
        choice = self._choice
        # Half of the risk of missing a violation is for the bound on the rate of the event under
        # x2, and half for the test.
        risk = (1 - POWER) / 2
        rate2 = poisson_mean_lower_bound(self._hits2, risk) / self._lambda2
        size_ratio = self._lambda / self._lambda2
        direct_resolution = detectable_log_ratio(
            E, rate2 * self._lambda2, size_ratio, self._levels, 1 - risk, self._lambda
        )
        threshold = float(choice.suspicions[choice.suspects].min())
        power = 1 - risk / 2
        sample_count = choice.samples_per_symbol
        suspicious_ratio = suspicious_log_ratio(
            E, rate2 * sample_count, threshold, power, sample_count
        )
        suspect_resolution = detectable_log_ratio(
            E, rate2 * suspect_lambda, 1.0, self._levels.max(), power, suspect_lambda
        )
        return np.minimum(direct_resolution, np.maximum(suspicious_ratio, suspect_resolution))


# --- drift ----------------------------------------------------------------------------------------

# Suppose that a randomizer is private while events are chosen, but not while they are tested. The
# violation goes undetected if no chosen event reveals it. So each symbol's reports in the test are
# compared with its earlier reports, using a chi-square test of homogeneity. This does not test a
# promise: reports may change for a good reason, such as a public cohort. But the user should know
# that they changed.


def rows_with_drift(counts_before: Counts, counts_after: Counts) -> list[int]:
    """Return the rows whose distributions differ significantly between two tables of counts.

    Each table has one row per symbol.

    >>> rows_with_drift(np.array([[500, 500], [300, 700]]), np.array([[510, 490], [700, 300]]))
    [1]
    """
    from scipy.special import chdtrc

    rows = []
    for row in range(len(counts_before)):
        counts = np.stack([counts_before[row], counts_after[row]])
        table = _pool_small_columns(counts.astype(np.float64))
        degrees_of_freedom = table.shape[1] - 1
        if degrees_of_freedom < 1:
            continue
        row_totals = table.sum(axis=1, keepdims=True)
        column_totals = table.sum(axis=0)
        expected_counts = row_totals * column_totals / table.sum()
        statistic = ((table - expected_counts) ** 2 / expected_counts).sum()
        if chdtrc(degrees_of_freedom, statistic) < _DRIFT_LEVEL / len(counts_before):
            rows.append(row)
    return rows


def _pool_small_columns(counts: Floats) -> Floats:
    """Return a 2 × m table in which the columns that are too small to compare are merged into one.

    If even their sum is too small, they are dropped.
    """
    smaller_row_share = counts.sum(axis=1).min() / counts.sum()
    min_expected_counts = counts.sum(axis=0) * smaller_row_share
    is_large = min_expected_counts >= _MIN_EXPECTED_COUNT
    large_columns = counts[:, is_large]
    if min_expected_counts[~is_large].sum() < _MIN_EXPECTED_COUNT:
        return large_columns
    pooled_column = counts[:, ~is_large].sum(axis=1)
    return np.column_stack([large_columns, pooled_column])
