"""Audit a randomizer: draw samples, test them, and return a verdict."""

from collections.abc import Callable, Sequence

import numpy as np

from sfumato.auditing.black_box import (
    ANY_OTHER,
    BlackBox,
    Histogram,
    Randomizer,
    black_box,
    count_reports,
    count_table,
)
from sfumato.auditing.bounds import (
    detectable_as_suspect,
    detectable_by_test,
    log_ratio_bounds,
    mean_bound,
)
from sfumato.auditing.events import Choice, PromisedPair, choose, pairs_with_promise
from sfumato.auditing.sample_plan import SamplePlan, even_blocks, poisson_blocks
from sfumato.auditing.verdict import POWER, Audit, PairAudit
from sfumato.contexts import Context
from sfumato.domains import require_symbols
from sfumato.errors import InvalidArgument, InvalidSymbols, NotEnoughReports
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.mechanisms import Mechanism
from sfumato.randomness import SystemWords, WordSource
from sfumato.survey import Survey

MAX_SYMBOLS = 64
"""The most symbols that an audit accepts, since it compares every ordered pair."""

MIN_SAMPLES = 100
"""The fewest samples per symbol that an audit accepts; fewer would show hardly anything."""

_MAX_EVENT_REPORTS = 8  # reports of an event that a result names

_DRIFT_LEVEL = 1e-6  # of all symbols together: false alarms must be rare
_MIN_EXPECTED = 5.0  # below this expected count, the law of the statistic is not known well


def audit(
    randomize: Randomizer | Mechanism | Survey,
    context: Context | None = None,
    *,
    samples: int = 1_000_000,
    symbols: Sequence[int] | None = None,
    confidence: float = 0.999,
    sample_plan: SamplePlan | None = None,
    source: WordSource | None = None,
    on_progress: Callable[[int], None] = lambda samples: None,
) -> Audit:
    """Look for a breach of ``P(S|x) ≤ exp(E[x, x2]) P(S|x2)`` in samples of a black box.

    ``randomize`` is a function of a symbol and a count that returns ``count`` independent reports
    of the symbol, as any hashable objects. It is called many times, with counts of about a hundred.
    Or pass a mechanism or a survey; the audit calls only its ``privatize``.

    ``context`` is the promise to test. Its closure is tested: also what it promises by way of third
    symbols. ``samples`` is about how many reports are drawn in all, in random order. ``symbols``
    are the symbols to compare: all of them, unless there are more than 64. ``sample_plan`` says
    what the samples are spent on. ``on_progress`` is called with the number of samples so far.

    **Method.** On one part of the samples, events are chosen for all ordered pairs with a finite
    promise, and the few pairs that look worst (*suspects*). On another, with fresh samples and most
    of them from the suspects, each event gives an exact lower bound on its pair's log-ratio, hence
    on the realised entry of E: Clopper–Pearson at a level of its own. The levels add up to
    1 − confidence.

    **Guarantee.** With probability ``confidence``, none of the bounds is too large. A randomizer
    that keeps its context is therefore accused with probability at most 1 − confidence. That holds
    for every channel, every number of reports and every choice of events. It requires reports that
    are independent of each other and of earlier queries. The channel may change with time, as long
    as it keeps the context at every time: between one report and the next if it takes symbols one
    by one (mechanisms, surveys, commands), and from one block of calls to the next if ``randomize``
    is a function. If it does change, a bound holds for the largest entry of all times.

    **What a clear verdict means.** Nothing was found. ``resolution`` says for each pair how large
    its log-ratio on the event would have had to be to be seen with probability 0.99; the module
    ``bounds`` says how that is computed. It is not a proof: for mechanisms of this package,
    ``certify`` is. And it only covers the time of the audit: a client that knows when it is audited
    can cheat. ``changed`` names symbols whose reports changed in the meantime.

    There is no seed. The black box uses its own randomness; words of ``source`` only decide the
    numbers of samples, which follow a Poisson law, and their order.

    >>> import sfumato as sf
    >>> result = audit(sf.mechanism_for(sf.Uniform(3, 1)), samples=20_000)
    >>> len(result.pairs), result.confidence
    (6, 0.999)
    >>> careless = lambda symbol, count: [symbol] * count
    >>> audit(careless, sf.Uniform(3, 1), samples=20_000).violates
    True
    """
    box, promise = black_box(randomize, context)
    audited = _select_symbols(promise, symbols)
    k = audited.size
    _require_samples(samples, k)
    if not isinstance(confidence, float) or not 0.5 <= confidence < 1:
        raise InvalidArgument(
            f"confidence must be at least 0.5 and below 1, such as 0.999; got {confidence!r}."
        )
    plan = sample_plan or SamplePlan()
    source = source or SystemWords()
    pairs = pairs_with_promise(promise, audited)
    names = tuple(audited.tolist())
    labels = tuple(promise.domain.labels[symbol] for symbol in names)
    if not pairs:
        return Audit((), names, labels, 0, confidence, 0.0, ())

    sampler = _Sampler(box, audited, source, on_progress)
    block = box.block_size(k)
    ordering_size, choosing_size = plan.first_sizes(samples, k)
    ordering = sampler.draw(even_blocks(ordering_size, k, block))
    choosing = sampler.draw(even_blocks(choosing_size, k, block))
    choice = choose(pairs, ordering, choosing, plan.suspects)

    suspect_rows: list[int] = []
    for i in choice.suspects:
        suspect_rows += pairs[i].rows
    means = plan.test_means(samples, k, suspect_rows)
    test = sampler.draw(poisson_blocks(means, block, source))
    counts = count_table(test, choice.reports)
    levels = plan.levels(1 - confidence, len(pairs), choice.suspects)
    tests = _PairTests(pairs, choice, counts, means, levels)
    results = tests.results(plan.least_focus(samples, k))
    changed = tuple(names[row] for row in rows_with_drift(choice.counts, counts))
    return Audit(results, names, labels, sampler.total, confidence, choice.rare, changed)


def _select_symbols(context: Context, symbols: Sequence[int] | None) -> Symbols:
    if symbols is None:
        audited = np.arange(context.size)
    else:
        audited = np.unique(require_symbols(symbols, context.size))
        if audited.size < 2:
            raise InvalidSymbols(
                f"symbols must name at least two different symbols; got {audited.size}."
            )
    if audited.size > MAX_SYMBOLS:
        raise InvalidSymbols(
            f"an audit compares at most {MAX_SYMBOLS} symbols; got {audited.size}. "
            "Choose the most important ones: symbols=[…], or --symbols on the command line."
        )
    return audited


def _require_samples(samples: object, symbols: int) -> None:
    least = MIN_SAMPLES * symbols
    if isinstance(samples, bool) or not isinstance(samples, int | np.integer) or samples < least:
        raise NotEnoughReports(
            f"samples must be an integer of at least {least}, {MIN_SAMPLES} for each of {symbols} "
            f"symbols; got {samples!r}."
        )


class _Sampler:
    """Draws reports of each symbol, block after block, and counts them in ``total``."""

    def __init__(
        self,
        box: BlackBox,
        symbols: Symbols,
        source: WordSource,
        on_progress: Callable[[int], None],
    ) -> None:
        self._box = box
        self._symbols = symbols
        self._source = source
        self._on_progress = on_progress
        self.total = 0

    def draw(self, blocks: Symbols) -> list[Histogram]:
        """Return a histogram of the reports of each symbol; ``blocks`` has a row per block."""
        histograms = {symbol: Histogram() for symbol in self._symbols.tolist()}
        for sizes in blocks:
            size_of = dict(zip(histograms, sizes.tolist(), strict=True))
            for symbol, reports in self._box.sample(self._symbols, sizes, self._source):
                histograms[symbol].update(count_reports(reports, size_of[symbol]))
            self.total += int(sizes.sum())
            self._on_progress(self.total)
        return list(histograms.values())


class _PairTests:
    """The test of every pair, on counts that played no part in choosing events or suspects.

    ``hits`` and ``hits2`` are how often the event of each pair came up under x and under x2;
    ``mean`` and ``mean2`` are the expected numbers of samples, λ_x and λ_x2.
    """

    def __init__(
        self,
        pairs: Sequence[PromisedPair],
        choice: Choice,
        counts: Symbols,
        means: Floats,
        levels: Floats,
    ) -> None:
        self._pairs = pairs
        self._choice = choice
        self._levels = levels
        rows = np.array([pair.rows for pair in pairs])
        self._mean = means[rows[:, 0]]
        self._mean2 = means[rows[:, 1]]
        hits = np.empty((len(pairs), 2), dtype=np.int64)
        for i, event in enumerate(choice.events):
            hits[i] = counts[np.ix_(rows[i], event.columns)].sum(axis=1)
        self._hits = hits[:, 0]
        self._hits2 = hits[:, 1]

    def results(self, focus: float) -> tuple[PairAudit, ...]:
        """Return the bound and the resolution of every pair; suspects have ``focus`` samples."""
        odds = self._mean / self._mean2
        bounds = log_ratio_bounds(self._hits, self._hits2, odds, self._levels)
        resolutions = self._resolutions(focus)
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
                suspect=i in suspects,
                hits=(int(self._hits[i]), int(self._hits2[i])),
                samples=(float(self._mean[i]), float(self._mean2[i])),
                event_size=columns.size,
                any_other=len(reports) - 1 in columns,
                event=tuple(reports[column] for column in columns[:_MAX_EVENT_REPORTS]),
            )
            results.append(result)
        return tuple(results)

    def _resolutions(self, focus: float) -> Floats:
        """Return the better of two ways to be detected, for each pair.

        Either by its own test; or by becoming a suspect, and then by a test with ``focus`` samples.
        """
        E = np.array([pair.promised for pair in self._pairs])
        choice = self._choice
        risk = (1 - POWER) / 2  # for the frequency of the event, and as much for the test
        rate2 = mean_bound(self._hits2, risk) / self._mean2
        odds = self._mean / self._mean2
        by_test = detectable_by_test(
            E, rate2 * self._mean2, odds, self._levels, 1 - risk, self._mean
        )
        threshold = float(choice.suspicions[choice.suspects].min())
        power = 1 - risk / 2
        as_suspect = detectable_as_suspect(E, rate2 * choice.size, threshold, power, choice.size)
        then_tested = detectable_by_test(E, rate2 * focus, 1.0, self._levels.max(), power, focus)
        return np.minimum(by_test, np.maximum(as_suspect, then_tested))


# --- drift ----------------------------------------------------------------------------------------

# A test only covers its own duration. A randomizer that is private while events are chosen, and not
# while they are tested, breaks its promise unseen if no event was chosen for it; one that changes
# back is even harder to catch. So each symbol's reports in the test are compared with those before
# it, by a chi-square test of homogeneity. This does not test a promise: reports may change for a
# good reason, such as a public cohort. But the reader should know.


def rows_with_drift(before: Symbols, after: Symbols) -> list[int]:
    """Return the rows, one for each symbol, in which two tables of counts have different shares.

    >>> rows_with_drift(np.array([[500, 500], [300, 700]]), np.array([[510, 490], [700, 300]]))
    [1]
    """
    from scipy.special import chdtrc

    rows = []
    for row in range(len(before)):
        counts = np.stack([before[row], after[row]])
        cells = _pool_small_cells(counts.astype(np.float64))
        degrees = cells.shape[1] - 1
        if degrees < 1:
            continue
        by_time = cells.sum(axis=1, keepdims=True)
        by_report = cells.sum(axis=0)
        expected = by_time * by_report / cells.sum()
        statistic = ((cells - expected) ** 2 / expected).sum()
        if chdtrc(degrees, statistic) < _DRIFT_LEVEL / len(before):
            rows.append(row)
    return rows


def _pool_small_cells(counts: Floats) -> Floats:
    """Merge the cells of a 2 × m table that are too small to compare on their own.

    If even their sum is too small, drop them.
    """
    smaller_share = counts.sum(axis=1).min() / counts.sum()
    smaller_expected = counts.sum(axis=0) * smaller_share
    is_large = smaller_expected >= _MIN_EXPECTED
    large = counts[:, is_large]
    if smaller_expected[~is_large].sum() < _MIN_EXPECTED:
        return large
    rest = counts[:, ~is_large].sum(axis=1)
    return np.column_stack([large, rest])
