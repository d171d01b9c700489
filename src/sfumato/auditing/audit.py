"""The audit: samples in, a verdict out."""

from collections.abc import Callable, Hashable, Sequence

import numpy as np

from sfumato.auditing.black_box import BlackBox, Randomizer, black_box
from sfumato.auditing.bounds import log_ratio_bounds, mean_bound
from sfumato.auditing.choice import Choice, PromisedPair, choose, promised_pairs
from sfumato.auditing.drift import changed_rows
from sfumato.auditing.resolution import noticed_as_suspect, noticed_by_test
from sfumato.auditing.sample_plan import Allotment, even_blocks, poisson_blocks
from sfumato.auditing.sampling import ANY_OTHER, Histogram, counted, table
from sfumato.auditing.verdict import POWER, Audit, PairAudit
from sfumato.contexts import Context
from sfumato.domains.symbols import checked_symbols
from sfumato.errors import InvalidContext, InvalidSymbols, NotEnoughReports
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.mechanisms import Mechanism
from sfumato.randomness import SystemWords, WordSource
from sfumato.survey import Survey

__all__ = ["FEWEST_SAMPLES", "MOST_SYMBOLS", "audit"]

MOST_SYMBOLS = 64
"""Every ordered pair of so many symbols is compared, at most."""

FEWEST_SAMPLES = 100
"""An audit takes at least so many samples of each symbol; fewer could hardly show anything."""

_SHOWN = 8  # reports of an event that a result names


def audit(
    randomize: Randomizer | Mechanism | Survey,
    context: Context | None = None,
    *,
    samples: int = 1_000_000,
    symbols: Sequence[int] | None = None,
    confidence: float = 0.999,
    allotment: Allotment | None = None,
    source: WordSource | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> Audit:
    """Look for a breach of ``P(S|x) ≤ exp(E[x, x2]) P(S|x2)`` in samples of a black box.

    ``randomize`` is a function of a symbol and a count that returns so many independent reports of the symbol, of any
    kind that can be counted; or a mechanism or a survey, of which ``privatize`` alone is called. About ``samples``
    reports are drawn in all, of the ``symbols`` given, or of all of them up to 64, in random order. A function is
    called many times, with counts of about a hundred. ``E`` is the closure of the context: what it promises by way of
    third symbols, too.

    **What is done.** On one part of the samples, events are chosen for all ordered pairs with a finite promise, and
    the few pairs that look worst (*suspects*). On another, with fresh samples and most of them from the suspects, each
    event gives an exact lower bound on its pair's log-ratio, hence on the realised entry of E: Clopper–Pearson at a
    level of its own. The levels add up to 1 − confidence.

    **Guarantee.** With probability ``confidence``, none of the bounds is too large. A randomiser that keeps its context
    is therefore called a violator with probability at most 1 − confidence. That holds for every channel, every number
    of reports and every choice of events. It needs reports that are independent of each other and of what was asked
    before. The channel may change with time, if it keeps the context at every time: between one report and the next
    where symbols are handed over one by one (mechanisms, surveys, commands), and from one block of calls to the next
    where ``randomize`` is a function. If it does, a bound is one on the largest entry of all times.

    **What a clear verdict means.** Nothing was found. ``resolution`` says for each pair how large its log-ratio on the
    event would have had to be to be seen with probability 0.99; the module ``resolution`` says how that is worked out.
    It is no proof: for mechanisms of this package ``certify`` is one. And it is about the time of the audit: a client
    that knows when it is audited is not found out. ``changed`` names symbols whose reports changed meanwhile.

    There is no seed. Samples come from the black box with whatever randomness it has; ``source`` gives words only for
    the sizes of the samples, which are drawn from a Poisson law, and for their order.

    >>> import sfumato as sf
    >>> found = audit(sf.mechanism_for(sf.Uniform(3, 1)), samples=20_000)
    >>> len(found.pairs), found.confidence
    (6, 0.999)
    >>> careless = lambda symbol, count: [symbol] * count
    >>> audit(careless, sf.Uniform(3, 1), samples=20_000).violates
    True
    """
    box, promise = black_box(randomize, context)
    audited = _audited_symbols(promise, symbols)
    _demand_samples(samples, audited.size)
    _demand_confidence(confidence)
    plan, source = allotment or Allotment(), source or SystemWords()
    pairs, k = promised_pairs(promise, audited), audited.size
    names = tuple(audited.tolist())
    labels = tuple(promise.domain.labels[symbol] for symbol in names)
    if not pairs:
        return Audit((), names, labels, 0, confidence, 0.0, ())
    draw, block = _Sampler(box, audited, source, on_progress), box.block(k)
    ordering, choosing = (
        draw(even_blocks(size, k, block)) for size in plan.first_sizes(samples, k)
    )
    choice = choose(pairs, ordering, choosing, plan.suspects)
    means = plan.test_means(samples, k, (row for i in choice.suspects for row in pairs[i].rows))
    tested = table(draw(poisson_blocks(means, block, source)), choice.reports)
    levels = plan.levels(1 - confidence, len(pairs), choice.suspects)
    resolutions = _resolutions(pairs, choice, tested, means, levels, plan.least_focus(samples, k))
    found = _judged(pairs, choice, tested, means, levels, resolutions)
    changed = tuple(names[row] for row in changed_rows(choice.counts, tested))
    return Audit(found, names, labels, draw.drawn, confidence, choice.rare, changed)


# --- what is asked for ------------------------------------------------------------------------------------------------


def _audited_symbols(context: Context, symbols: Sequence[int] | None) -> Symbols:
    audited = (
        np.arange(context.size)
        if symbols is None
        else np.unique(checked_symbols(symbols, context.size))
    )
    if symbols is not None and audited.size < 2:
        raise InvalidSymbols(
            f"symbols must name at least two different symbols to compare; found {audited.size}."
        )
    if audited.size > MOST_SYMBOLS:
        raise InvalidSymbols(
            f"an audit compares every pair of at most {MOST_SYMBOLS} symbols; here there are {audited.size}. "
            "Name those that matter most: symbols=[…], on the command line --symbols."
        )
    return audited


def _demand_samples(samples: object, symbols: int) -> None:
    least = FEWEST_SAMPLES * symbols
    if isinstance(samples, bool) or not isinstance(samples, int | np.integer) or samples < least:
        raise NotEnoughReports(
            f"samples must be a whole number of at least {least}, {FEWEST_SAMPLES} for each of {symbols} symbols; "
            f"found {samples!r}."
        )


def _demand_confidence(confidence: object) -> None:
    if not isinstance(confidence, float) or not 0.5 <= confidence < 1:
        raise InvalidContext(
            f"confidence must be a number from 0.5 to below 1, such as 0.999; found {confidence!r}."
        )


# --- what is drawn, and what it says ----------------------------------------------------------------------------------


class _Sampler:
    """Draws so many reports of each symbol, block after block, and remembers how many there were in all."""

    def __init__(
        self,
        box: BlackBox,
        symbols: Symbols,
        source: WordSource,
        on_progress: Callable[[int], None] | None,
    ) -> None:
        self._box, self._symbols, self._source, self._on_progress = (
            box,
            symbols,
            source,
            on_progress,
        )
        self.drawn = 0

    def __call__(self, blocks: Symbols) -> list[Histogram]:
        found = {symbol: Histogram() for symbol in self._symbols.tolist()}
        for sizes in blocks:
            wanted = dict(zip(found, sizes.tolist(), strict=True))
            for symbol, reports in self._box.answers(self._symbols, sizes, self._source):
                found[symbol].update(counted(reports, wanted[symbol]))
            self._tick(int(sizes.sum()))
        return list(found.values())

    def _tick(self, more: int) -> None:
        self.drawn += more
        if self._on_progress is not None:
            self._on_progress(self.drawn)


def _judged(
    pairs: Sequence[PromisedPair],
    choice: Choice,
    tested: Symbols,
    means: Floats,
    levels: Floats,
    resolutions: Floats,
) -> tuple[PairAudit, ...]:
    """The bound of every pair. ``tested`` holds the counts of the test, which nothing was chosen on."""
    suspects = set(choice.suspects.tolist())
    hits, hits2 = _hits(pairs, choice, tested)
    first, second = _means(pairs, means)
    bounds = log_ratio_bounds(hits, hits2, first / second, levels)
    return tuple(
        PairAudit(
            x=pair.x,
            x2=pair.x2,
            promised=pair.promised,
            bound=float(bounds[i]),
            resolution=float(resolutions[i]),
            level=float(levels[i]),
            suspect=i in suspects,
            hits=(int(hits[i]), int(hits2[i])),
            samples=(float(first[i]), float(second[i])),
            event_size=choice.events[i].columns.size,
            any_other=len(choice.reports) in choice.events[i].columns,
            event=_shown(choice, i),
        )
        for i, pair in enumerate(pairs)
    )


def _shown(choice: Choice, i: int) -> tuple[Hashable, ...]:
    """The most telling reports of an event."""
    named = [*choice.reports, ANY_OTHER]
    return tuple(named[column] for column in choice.events[i].columns[:_SHOWN])


def _resolutions(
    pairs: Sequence[PromisedPair],
    choice: Choice,
    tested: Symbols,
    means: Floats,
    levels: Floats,
    focus: float,
) -> Floats:
    """By the better of two ways: each pair's own test; or becoming a suspect, and a test with ``focus`` samples."""
    E = np.array([pair.promised for pair in pairs])
    first, second = _means(pairs, means)
    risk = (1 - POWER) / 2  # for the frequency that was seen, and as much for what is not noticed
    rate2 = mean_bound(_hits(pairs, choice, tested)[1], risk) / second
    own = noticed_by_test(E, rate2 * second, first / second, levels, 1 - risk, first)
    threshold = float(choice.suspicions[choice.suspects].min())
    chosen = noticed_as_suspect(E, rate2 * choice.size, threshold, 1 - risk / 2, choice.size)
    then = noticed_by_test(E, rate2 * focus, 1.0, levels.max(), 1 - risk / 2, focus)
    return np.minimum(own, np.maximum(chosen, then))


def _hits(
    pairs: Sequence[PromisedPair], choice: Choice, tested: Symbols
) -> tuple[Symbols, Symbols]:
    """How often each pair's event came up in the test, under x and under x2."""
    events = list(zip(pairs, choice.events, strict=True))
    hits, hits2 = (
        np.array([tested[pair.rows[side], event.columns].sum() for pair, event in events])
        for side in (0, 1)
    )
    return hits, hits2


def _means(pairs: Sequence[PromisedPair], means: Floats) -> tuple[Floats, Floats]:
    """λ_x and λ_x2 of each pair."""
    first, second = (means[[pair.rows[side] for pair in pairs]] for side in (0, 1))
    return first, second
