"""Audits: exact bounds, levels that add up, an untouched test, clear verdicts."""

import itertools
import json
import math
from collections import Counter

import numpy as np
import pytest
from scipy.stats import binom, poisson

import sfumato as sf
from sfumato.auditing import SamplePlan
from sfumato.auditing.audit import rows_with_drift
from sfumato.auditing.black_box import (
    BatchBox,
    PerSymbolBox,
    count_reports,
    make_black_box,
    split_by_symbol,
    table_of_counts,
)
from sfumato.auditing.bounds import (
    detectable_log_ratio,
    log_ratio_lower_bounds,
    poisson_mean_lower_bound,
    probability_lower_bound,
    standard_errors_above,
    suspicious_log_ratio,
)
from sfumato.auditing.events import (
    MAX_REPORTS,
    choose_event,
    choose_events,
    frequent_reports,
    pairs_with_promise,
)
from sfumato.auditing.sample_plan import even_blocks, poisson_blocks
from sfumato.auditing.verdict import Audit
from sfumato.errors import (
    ContextMismatch,
    InvalidArgument,
    InvalidSymbols,
    NotEnoughReports,
    ReportRejected,
)
from sfumato.simulation import SeededWords
from support.slow import slow_except


def seeded(mechanism, seed=0):
    """The mechanism as a black box, with words of a seed."""
    source = SeededWords(seed)
    return lambda symbol, count: mechanism.privatize(np.full(count, symbol), source)


# --- bounds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0.3, 0.01, 1e-5])
@pytest.mark.parametrize("trials", [1, 2, 7, 40])
def test_share_bound_keeps_its_level(trials, level):
    successes = np.arange(trials + 1)
    bounds = probability_lower_bound(successes, trials, level)
    for probability in np.linspace(0, 1, 201):
        too_large = binom.pmf(successes, trials, probability)[bounds > probability + 1e-12].sum()
        assert too_large <= level * (1 + 1e-9)


@pytest.mark.parametrize("level", [0.3, 0.01])
def test_share_bound_is_tight(level):
    """Clopper and Pearson's bound is the p whose upper tail has exactly that probability."""
    for trials, successes in ((1, 1), (10, 3), (40, 39), (1000, 500)):
        bound = float(probability_lower_bound(successes, trials, level))
        assert binom.sf(successes - 1, trials, bound) == pytest.approx(level, rel=1e-8)


@pytest.mark.parametrize("level", [0.1, 0.01])
@pytest.mark.parametrize(
    ("means", "odds"), [((6.0, 2.0), 1.0), ((20.0, 7.0), 3.0), ((3.0, 12.0), 0.25), ((5, 5), 0.5)]
)
def test_log_ratio_bound_keeps_its_level(means, odds, level):
    """Summed over all pairs of Poisson counts that matter."""
    a, b = np.meshgrid(np.arange(90), np.arange(90), indexing="ij")
    probability = poisson.pmf(a, means[0]) * poisson.pmf(b, means[1])
    assert probability.sum() > 1 - 1e-9
    true = math.log(means[0] / means[1] / odds)
    too_large = probability[
        log_ratio_lower_bounds(a, b, odds, level) > max(true, 0.0) + 1e-12
    ].sum()
    assert 0 < too_large <= level


def test_log_ratio_bound_is_non_negative_and_increasing():
    bounds = log_ratio_lower_bounds(np.arange(200), 50, 1.0, 0.01)
    assert bounds[0] == 0
    assert (bounds >= 0).all()
    assert (np.diff(bounds[100:]) > 0).all()


@pytest.mark.parametrize("level", [0.3, 0.005])
def test_mean_bound_keeps_its_level_and_is_tight(level):
    counts = np.arange(200)
    bounds = poisson_mean_lower_bound(counts, level)
    for mean in np.linspace(0.01, 60, 400):
        assert poisson.pmf(counts, mean)[bounds > mean].sum() <= level * (1 + 1e-9)
    assert bounds[0] == 0
    assert poisson.sf(counts[1:] - 1, bounds[1:]) == pytest.approx(level, rel=1e-8)


def test_changing_channels_keep_the_level():
    """Sum over all queries and reports; the channel differs at each query, within E."""
    E = 1.0
    level = 0.05
    P = np.array(
        [
            [0.9, 0.9 / math.e],
            [math.e * 0.02, 0.02],
            [0.3, 0.3],
            [0.999, 1.0],
            [0.01, 0.01 / math.e],
        ]
        * 8
    )
    chances = np.zeros((P.shape[0] + 1,) * 2)  # of a hits of x and b of x2, so far
    chances[0, 0] = 1
    for first, second in P / 2:  # each ask is for x or for x2, with equal odds
        after = chances * (1 - first - second)
        after[1:] += first * chances[:-1]
        after[:, 1:] += second * chances[:, :-1]
        chances = after
    a, b = np.indices(chances.shape)
    assert chances.sum() == pytest.approx(1)
    assert 0 < chances[log_ratio_lower_bounds(a, b, 1.0, level) > E].sum() <= level


def test_report_of_one_symbol_only_gives_a_large_bound():
    assert log_ratio_lower_bounds(10_000, 0, 1.0, 0.001) > math.log(1000)


# --- the sample plan ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pairs", "suspects"), [(56, [3, 7, 9]), (2, [0, 1]), (1, [0]), (4032, [1])]
)
def test_levels_add_up_to_alpha(pairs, suspects):
    levels = SamplePlan().levels(0.01, pairs, suspects)
    assert levels.size == pairs
    assert (levels > 0).all()
    assert levels.sum() == pytest.approx(0.01, rel=1e-12)


def test_the_parts_add_up_to_the_samples():
    plan = SamplePlan()
    ordering, choosing = plan.ordering_and_choosing_sizes(1_000_000, 8)
    means = plan.mean_test_sizes(1_000_000, 8, [2, 5, 2])
    assert 8 * (ordering + choosing) + means.sum() == pytest.approx(1_000_000, abs=20)
    assert means[2] == means[5] == means.max() > 10 * means[0]
    assert len(set(np.delete(means, [2, 5]).tolist())) == 1


@pytest.mark.parametrize("block", [4000 * 10, 10**9])
def test_sizes_are_poisson(block):
    sizes = poisson_blocks(np.full(4000, 30.0), block, SeededWords(5))
    assert sizes.shape == (3 if block < 10**9 else 1, 4000)
    total = sizes.sum(axis=0)
    assert abs(total.mean() - 30) < 5 * math.sqrt(30 / 4000)
    assert abs(total.var() / 30 - 1) < 5 * math.sqrt(2 / 4000)  # a fixed size would have variance 0
    assert (poisson_blocks(np.full(4000, 30.0), block, SeededWords(5)) == sizes).all()


@pytest.mark.parametrize(
    ("size", "symbols", "block"), [(1000, 3, 100), (1, 64, 10), (17, 2, 8), (5, 2, 1000)]
)
def test_even_blocks_add_up_and_are_alike(size, symbols, block):
    sizes = even_blocks(size, symbols, block)
    assert (sizes.sum(axis=0) == size).all()
    assert np.ptp(sizes) <= 1
    assert sizes.sum(axis=1).max() <= block + symbols


@pytest.mark.parametrize(
    "shares",
    [
        *(
            {"ordering_share": 0.0},
            {"choosing_share": 1.0},
            {"uniform_share": math.nan},
            {"uniform_share": "0.3"},
            {"ordering_share": 0.6},
        ),
        *({"suspect_count": 0}, {"suspect_count": 1.5}, {"suspect_count": True}),
    ],
    ids=repr,
)
def test_invalid_sample_plans_are_rejected(shares):
    with pytest.raises(InvalidArgument, match=next(iter(shares))):
        SamplePlan(**shares)


def test_audit_accepts_a_sample_plan():
    found = sf.audit(
        sf.mechanism_for(sf.Uniform(3, 1)), samples=3000, sample_plan=SamplePlan(suspect_count=1)
    )
    assert sum(pair.is_suspect for pair in found.pairs) == 1


# --- events ---------------------------------------------------------------------------------------


def naive_event(ordering, choosing, caution=4.0):
    """Try every upper set of what was sent, but the whole, one after the other."""
    sent = [y for y in range(len(ordering[0])) if any(row[y] for row in (*ordering, *choosing))]
    order = sorted(sent, key=lambda y: -(ordering[0][y] + 0.5) / (ordering[1][y] + 0.5))
    best = None
    for size in range(1, len(order)):
        a, b = (sum(row[y] for y in order[:size]) + 0.5 for row in choosing)
        angle = math.atan(math.sqrt(a / b)) - caution / 2 / math.sqrt(a + b)
        shown = 2 * math.log(math.tan(angle)) if angle > 0 else -math.inf
        if best is None or shown > best[0] + 1e-12:
            best = shown, order[:size]
    return best[1]


@pytest.mark.parametrize("seed", range(20))
def test_event_is_the_most_telling_upper_set(seed):
    rng = np.random.default_rng(seed)
    ordering, choosing = rng.poisson(rng.gamma(1, 20, size=(2, 2, 12)) * (rng.random(12) < 0.8))
    event = choose_event(tuple(ordering), tuple(choosing))
    assert event.columns.tolist() == naive_event(ordering.tolist(), choosing.tolist())


def test_event_includes_reports_that_x2_never_sends():
    rows = np.array([500, 500, 40]), np.array([500, 500, 0])
    assert choose_event(rows, rows).columns.tolist() == [2]


def test_only_the_most_frequent_reports_are_judged_one_by_one():
    common = Counter(dict.fromkeys(range(MAX_REPORTS), 3))
    rare = Counter({-1 - y: 2 for y in range(500)})
    assert set(frequent_reports([rare, common])) == set(common)


def test_reports_seen_once_are_pooled():
    assert frequent_reports([Counter(a=1, b=1, c=5), Counter(a=1, d=1)]) == ["c", "a"]


def test_a_table_has_a_column_for_any_other_report():
    counts = table_of_counts([Counter(a=5, b=2, c=1), Counter(b=1, d=7)], ["b", "a"])
    assert counts.tolist() == [[2, 5, 1], [1, 0, 7]]
    assert table_of_counts([Counter(a=5), Counter(b=1)], []).tolist() == [[5], [1]]


def test_pairs_without_a_promise_are_not_tested():
    context = sf.PrivacyMatrix([[0, 1, "inf"], [2, 0, "inf"], ["inf", 0.5, 0]])
    pairs = pairs_with_promise(context, np.arange(3))
    assert [(pair.x, pair.x2, pair.promised) for pair in pairs] == [
        (0, 1, 1.0),
        (1, 0, 2.0),
        (2, 0, 2.5),
        (2, 1, 0.5),
    ]


@pytest.mark.parametrize("direct", ["inf", 9])
def test_implied_promises_are_tested(direct):
    context = sf.PrivacyMatrix([[0, 1, direct], [1, 0, 1], [direct, 1, 0]])
    pairs = pairs_with_promise(context, np.array([0, 2]))
    assert [(pair.x, pair.x2, pair.promised) for pair in pairs] == [(0, 2, 2.0), (2, 0, 2.0)]
    found = sf.audit(lambda symbol, count: [symbol] * count, context, samples=2000, symbols=[0, 2])
    assert len(found.violations) == 2


def test_contexts_too_large_for_closure_are_tested_as_they_are():
    """Its second term is not closed: two steps across cost less than one inside."""
    context = sf.Uniform(5000, 1) + sf.Blocks([x // 2500 for x in range(5000)], 5, across=1)
    assert [pair.promised for pair in pairs_with_promise(context, np.array([0, 1]))] == [6.0, 6.0]


def test_reports_are_ordered_on_one_part_and_events_chosen_on_another():
    """What looked telling at first, by chance, is dropped when it does not show again."""
    ordering = [Counter(a=5, b=40, c=40), Counter(b=20, c=60)]
    choosing = [Counter(a=1, b=400, c=400), Counter(a=1, b=200, c=600)]
    choice = choose_events(
        pairs_with_promise(sf.Uniform(2, 1), np.arange(2)), ordering, choosing, 1
    )
    assert set(choice.reports) == {"a", "b", "c"}
    assert [choice.reports[column] for column in choice.events[0].columns] == ["a", "b"]
    assert choice.events[0].hits == (401.5, 201.5)


def test_suspects_are_measured_against_their_own_promise():
    """The pair with the larger ratio is promised more; the other one is the suspect."""
    counts = [Counter(a=800, b=200), Counter(a=200, b=800)]
    context = sf.PrivacyMatrix([[0, 3], [1, 0]])
    choice = choose_events(pairs_with_promise(context, np.arange(2)), counts, counts, 1)
    assert choice.suspects.tolist() == [1]
    assert choice.suspicions[0] < 0 < choice.suspicions[1]


# --- choosing never sees the test -----------------------------------------------------------------


BEFORE = 6000
"""Samples of an audit with 12,000 that are drawn before its test."""


class Recorded:
    """A black box with seeded reports; a function changes those of the test."""

    def __init__(self, mechanism, change):
        self._box = seeded(mechanism)
        self._change = change
        self.asked = []

    def __call__(self, symbol, count):
        tested = sum(size for _, size in self.asked) >= BEFORE
        self.asked.append((symbol, count))
        reports = self._box(symbol, count)
        return self._change(reports) if tested else reports

    def sizes(self):
        """How many reports of each of three symbols were asked for before the test, and in it."""
        starts = np.cumsum([0, *(size for _, size in self.asked)])[:-1]
        parts = [
            [
                call
                for call, start in zip(self.asked, starts, strict=True)
                if (start < BEFORE) == first
            ]
            for first in (True, False)
        ]
        return [
            [sum(size for symbol, size in part if symbol == x) for x in range(3)] for part in parts
        ]


@pytest.mark.parametrize("permutation", list(itertools.permutations(range(3))))
def test_events_suspects_and_sizes_do_not_depend_on_the_samples_of_the_test(permutation):
    """Renaming the reports of the test changes neither the choice nor the queries."""
    mechanism = sf.PlainResponse(sf.Uniform(3, 1), sf.RandomizedCode)
    chosen = []
    for change in (lambda reports: reports, lambda reports: np.array(permutation)[reports]):
        box = Recorded(mechanism, change)
        found = sf.audit(box, mechanism.context, samples=12_000, source=SeededWords(1))
        chosen.append(
            (
                box.asked,
                [(p.x, p.x2, p.event, p.event_size, p.is_suspect, p.level) for p in found.pairs],
            )
        )
    assert chosen[0] == chosen[1]


def test_the_sizes_of_the_test_are_drawn_and_those_before_are_not():
    mechanism = sf.PlainResponse(sf.Uniform(3, 1), sf.RandomizedCode)
    sizes = []
    for seed in (1, 2):
        box = Recorded(mechanism, lambda reports: reports)
        sf.audit(box, mechanism.context, samples=12_000, source=SeededWords(seed))
        sizes.append(box.sizes())
    assert sizes[0][0] == sizes[1][0] == [2000] * 3
    assert all(one != other for one, other in zip(sizes[0][1], sizes[1][1], strict=True))


def test_errors_above_measures_standard_errors():
    """Of Poisson counts at the very ratio, it has mean 0 and variance 1, whatever the ratio."""
    for mean, mean2 in ((300, 100), (40, 40), (30, 900)):
        a, b = (np.arange(int(m + 10 * math.sqrt(m)))[:, None] for m in (mean, mean2))
        weights = poisson.pmf(a, mean) * poisson.pmf(b.T, mean2)
        found = standard_errors_above(a, b.T + 1e-9, math.log(mean / mean2))
        average = (weights * found).sum()
        assert abs(average) < 0.1
        assert abs((weights * found**2).sum() - average**2 - 1) < 0.1


def test_bounds_depend_on_the_test_samples():
    mechanism = sf.PlainResponse(sf.Uniform(3, 1), sf.RandomizedCode)
    found = [
        sf.audit(
            Recorded(mechanism, change), mechanism.context, samples=12_000, source=SeededWords(1)
        )
        for change in (lambda reports: reports, lambda reports: np.zeros_like(reports))
    ]
    assert (found[0].bounds != found[1].bounds).any()


# --- the resolution -------------------------------------------------------------------------------


def detected(promised, mean2, odds, level, log_ratio, most=math.inf):
    """Probability that the bound exceeds the promise, over counts within 7 standard errors."""
    mean = min(mean2 * odds * math.exp(log_ratio), most)
    mean2 = mean / odds / math.exp(log_ratio)
    a, b = (
        np.arange(max(int(m - 7 * math.sqrt(m)), 0), int(m + 7 * math.sqrt(m)) + 8)
        for m in (mean, mean2)
    )
    above = log_ratio_lower_bounds(a[:, None], b[None, :], odds, level) > promised
    return float(poisson.pmf(a, mean) @ above @ poisson.pmf(b, mean2))


@pytest.mark.parametrize(
    ("promised", "mean2", "odds", "level", "most"),
    [
        (0.0, 3.5, 1.0, 0.01, math.inf),
        (0.0, 100.5, 4.0, 1e-3, math.inf),
        (1.0, 20.5, 0.2, 1e-4, math.inf),
        (1.0, 100.5, 1.0, 1e-3, math.inf),
        (3.0, 20.5, 1.0, 0.01, math.inf),
        (1.0, 500.0, 1.0, 1e-3, 1000.0),  # x sends the event almost always as it is
        (1.0, 367.0, 1.0, 1e-4, 1000.0),
        (2.0, 60.0, 0.5, 1e-4, 200.0),
    ],
)
def test_ratios_at_the_resolution_are_detected_with_the_stated_power(
    promised, mean2, odds, level, most
):
    least = float(detectable_log_ratio(promised, mean2, odds, level, 0.99, most))
    assert least > promised
    assert 0.989 < detected(promised, mean2, odds, level, least, most) < 0.998
    assert (
        detected(promised, mean2, odds, level, (least + promised) / 2, most) < 0.7
    )  # half way to the promise


def test_an_event_that_is_almost_certain_has_a_resolution():
    """x cannot send it more often, but x2 can send it less often."""
    assert 1.2 < detectable_log_ratio(1.0, 500, 1.0, 0.001, 0.99, 1000.0) < 1.4
    assert 1 < suspicious_log_ratio(1.0, 500, 2.0, 0.99, 1000.0) < 1.3
    context = sf.HighLow(["park", "clinic"], ["clinic"], 1)
    found = sf.audit(
        seeded(sf.mechanism_for(context)), context, samples=100_000, source=SeededWords(6)
    )
    assert [pair.hits[0] > 0.99 * pair.samples[0] for pair in found.pairs] == [True]
    assert 1 < found.pairs[0].resolution < 1.1
    assert "no excess could" not in found.verdict


def test_undetectable_pairs_have_infinite_resolution():
    assert (
        detectable_log_ratio(1.0, 0.0, 1.0, 0.001, 0.99, 1000.0) == np.inf
    )  # x2 may never send it, nor x
    assert (
        detectable_log_ratio(1.0, 3.0, 1.0, 0.001, 0.99, 4.0) == np.inf
    )  # four samples show nothing
    assert (
        detectable_log_ratio(800.0, 500.0, 1.0, 0.001, 0.99, 1000.0) == np.inf
    )  # nor do a thousand, of so much
    assert suspicious_log_ratio(1.0, 0.0, 1.0, 0.99, 1000.0) == np.inf


@pytest.mark.parametrize(
    ("promised", "level", "mean2"),
    [
        (0.5, 1e-5, 2.0),
        (0.5, 1e-5, 10.0),
        pytest.param(0.5, 1e-5, 30.0, marks=pytest.mark.slow),
        (1.0, 1e-3, 2.0),
        (1.0, 1e-3, 10.0),
    ],
)
def test_ratios_at_the_resolution_of_a_count_are_detected_with_probability_99(
    promised, level, mean2
):
    """On average over the count. Using the count as its own mean would fail."""
    counts = np.arange(int(mean2 + 6 * math.sqrt(mean2)) + 4)

    def seen(means, power):
        least = detectable_log_ratio(promised, means, 1.0, level, power, np.inf).tolist()
        powers = [
            1.0 if r > promised + 4 else detected(promised, mean2, 1.0, level, r) for r in least
        ]
        return poisson.pmf(counts, mean2) @ powers

    assert seen(poisson_mean_lower_bound(counts, 0.005), 0.995) >= 0.99
    assert seen(counts + 0.5, 0.99) < 0.99


def test_suspects_need_larger_ratios_among_worse_pairs():
    low, high = (
        float(suspicious_log_ratio(1.0, 5000, threshold, 0.99, np.inf)) for threshold in (1.0, 3.0)
    )
    assert 1 < low < high < 1.2


def test_more_samples_improve_the_resolution():
    mechanism = sf.mechanism_for(sf.Uniform(4, 1))
    worst = []
    for samples in (20_000, 200_000):
        found = sf.audit(
            seeded(mechanism), mechanism.context, samples=samples, source=SeededWords(2)
        )
        worst.append(max(pair.resolution for pair in found.pairs))
    assert 1 < worst[1] < worst[0]


# --- black boxes ----------------------------------------------------------------------------------


CLEAR = {
    "numbers": lambda symbol, count: np.full(count, symbol),
    "rows of bits": lambda symbol, count: np.tile(np.arange(3) == symbol, (count, 1)),
    "text": lambda symbol, count: [f"I have {symbol}"] * count,
    "bytes": lambda symbol, count: [bytes([symbol])] * count,
    "tuples": lambda symbol, count: [(symbol, "x")] * count,
    "a generator": lambda symbol, count: (symbol for _ in range(count)),
}


@pytest.mark.parametrize("kind", CLEAR)
def test_any_hashable_report_is_accepted(kind):
    found = sf.audit(CLEAR[kind], sf.Uniform(3, 1), samples=3000)
    assert found.violates
    assert len(found.violations) == 6
    assert (found.bounds[~np.eye(3, dtype=bool)] > 1).all()


def test_too_few_reports_are_rejected():
    with pytest.raises(NotEnoughReports, match="returned"):
        sf.audit(lambda symbol, count: [0] * (count - 1), sf.Uniform(2, 1), samples=1000)


@pytest.mark.parametrize("returned", [None, 7, "7", b"7", np.array(7)], ids=repr)
def test_randomize_must_return_a_list(returned):
    with pytest.raises(ReportRejected, match="an array or a list"):
        sf.audit(lambda symbol, count: returned, sf.Uniform(2, 1), samples=1000)


def test_unhashable_reports_are_rejected():
    with pytest.raises(ReportRejected, match="hashable"):
        sf.audit(lambda symbol, count: [[1]] * count, sf.Uniform(2, 1), samples=1000)


@pytest.mark.parametrize("audited", [3, "krr", None])
def test_randomize_must_be_callable(audited):
    with pytest.raises(InvalidArgument, match="randomizer must be"):
        sf.audit(audited, sf.Uniform(2, 1))


def test_a_function_needs_a_context():
    with pytest.raises(InvalidArgument, match="Pass context="):
        sf.audit(lambda symbol, count: [0] * count)


def test_mechanisms_and_surveys_bring_their_context():
    survey = sf.Survey("lunch", sf.HighLow(["park", "clinic"], ["clinic"], 1))
    assert make_black_box(survey, None)[1] == survey.context
    assert make_black_box(survey.mechanism, None)[1] == survey.mechanism.context
    assert make_black_box(survey, sf.Uniform(["park", "clinic"], 2))[1] == sf.Uniform(
        ["park", "clinic"], 2
    )


def test_context_of_another_size_is_rejected():
    with pytest.raises(ContextMismatch, match="3 symbols"):
        sf.audit(sf.mechanism_for(sf.Uniform(4, 1)), sf.Uniform(3, 1))


@pytest.mark.parametrize("samples", [0, 799, -1, 1000.0, True, None, "many"])
def test_too_few_samples_are_rejected(samples):
    with pytest.raises(NotEnoughReports, match="at least 800"):
        sf.audit(sf.mechanism_for(sf.Uniform(8, 1)), samples=samples)


@pytest.mark.parametrize("confidence", [1.0, 0.4, math.nan, "0.9", 1])
def test_invalid_confidence_is_rejected(confidence):
    with pytest.raises(InvalidArgument, match="confidence"):
        sf.audit(sf.mechanism_for(sf.Uniform(3, 1)), confidence=confidence)


def test_large_domains_need_a_choice_of_symbols():
    mechanism = sf.mechanism_for(sf.Uniform(100, 1))
    with pytest.raises(InvalidSymbols, match="at most 64"):
        sf.audit(mechanism)
    found = sf.audit(mechanism, samples=3000, symbols=[99, 4, 4, 7])
    assert found.symbols == (4, 7, 99)
    assert found.bounds.shape == (3, 3)
    assert {(pair.x, pair.x2) for pair in found.pairs} == set(itertools.permutations((4, 7, 99), 2))


@pytest.mark.parametrize("symbols", [[], [3], [3, 3], [0, 100], [-1, 0], ["0", "x"]], ids=repr)
def test_invalid_symbols_are_rejected(symbols):
    with pytest.raises(InvalidSymbols):
        sf.audit(sf.mechanism_for(sf.Uniform(100, 1)), symbols=symbols)


@pytest.mark.parametrize(
    ("reports", "expected"),
    [
        (np.array([2, 0, 2]), {2: 2, 0: 1}),
        (np.array([[1, 0], [1, 0], [0, 1]]), {(1, 0): 2, (0, 1): 1}),
        (np.array([["a", 1], ["a", 1], ["b", 1]], dtype=object), {("a", 1): 2, ("b", 1): 1}),
        (np.array([[[1], [0]]] * 3), {(1, 0): 3}),
        (np.array(["x", "y", "x"]), {"x": 2, "y": 1}),
        ([True, 1, 1.0], {1: 3}),
        (iter("aab"), {"a": 2, "b": 1}),
    ],
    ids=["numbers", "rows", "objects", "tables", "text", "alike", "iterator"],
)
def test_reports_are_counted_by_what_they_are(reports, expected):
    assert count_reports(reports, 3) == expected


@pytest.mark.parametrize(
    "reports",
    [
        lambda: [float("nan"), float("nan")],
        lambda: np.array([np.nan, np.nan]),
        lambda: np.array([np.nan, np.nan], dtype=object),
        lambda: [np.float32("nan"), -np.float64("nan")],
    ],
)
def test_nans_are_one_report(reports):
    total = count_reports(reports(), 2) + count_reports(reports(), 2)
    assert list(total.values()) == [4]


def test_rows_with_nans_are_compared_as_rows():
    total = count_reports(np.array([[np.nan, 1.0]] * 2), 2) + count_reports(
        [(float("nan"), 1.0)] * 2, 2
    )
    assert list(total.values()) == [4]


def test_nans_can_violate_a_promise():
    found = sf.audit(
        lambda symbol, count: np.full(count, [np.nan, 1.0][symbol]), sf.Uniform(2, 1), samples=3000
    )
    assert len(found.violations) == 2


def test_unique_reports_can_violate_a_promise():
    """One symbol sends fresh numbers now and then, the others never do."""
    rng = np.random.default_rng(1)

    def stamped(symbol, count):
        fresh = (symbol == 0) & (rng.random(count) < 0.05)
        return np.where(fresh, rng.integers(2**40, 2**60, size=count), rng.integers(8, size=count))

    found = sf.audit(stamped, sf.Uniform(3, 1), samples=30_000, source=SeededWords(1))
    assert {(pair.x, pair.x2) for pair in found.violations} == {(0, 1), (0, 2)}
    worst = found.violations[0]
    assert worst.includes_other and worst.event_size == 1
    assert worst.to_dict()["event"] == ["(any other)"]
    assert "(any other)" in found.verdict
    assert 0.03 < found.rare_share < 0.07  # of the symbol that has most, not of all together


# --- the order in which symbols are asked for -----------------------------------------------------


class Drifting:
    """Randomised response with a public stamp that changes with time: private at every moment."""

    def __init__(self, period, seed):
        self._period = period
        self._rng = np.random.default_rng(seed)
        self._asked = 0

    def reports(self, symbols):
        stamps = (self._asked + np.arange(symbols.size)) // self._period % 2
        self._asked += symbols.size
        kept = self._rng.random(symbols.size) < math.e / (math.e + 1)
        return 2 * stamps + np.where(kept, symbols, 1 - symbols)

    def in_runs(self, symbol, count):
        return self.reports(np.full(count, symbol))


@pytest.mark.parametrize("seed", slow_except({0, 1}, range(5)))
@pytest.mark.parametrize("period", [3_000, 30_000])
def test_changes_with_time_are_not_violations(period, seed):
    for box in (Drifting(period, seed).in_runs, BatchBox(Drifting(period, seed).reports)):
        found = sf.audit(box, sf.Uniform(2, 1), samples=200_000, source=SeededWords(seed))
        assert not found.violates
        assert max(pair.bound for pair in found.pairs) > 0.9  # it would not pass with much more


@pytest.mark.parametrize("stamps", [2, 2**13])
def test_changes_inside_a_block_are_not_violations_for_batch_boxes(stamps):
    """One symbol first and the other one then would meet different stamps."""

    def reports(symbols):
        kept = rng.random(symbols.size) < math.e / (math.e + 1)
        return 2 * (np.arange(symbols.size) * stamps // symbols.size) + np.where(
            kept, symbols, 1 - symbols
        )

    rng = np.random.default_rng(1)
    assert not sf.audit(
        BatchBox(reports), sf.Uniform(2, 1), samples=100_000, source=SeededWords(1)
    ).violates


@pytest.mark.parametrize("kind", [PerSymbolBox, BatchBox])
def test_blocks_are_queried_in_random_order(kind):
    calls = []

    def in_runs(symbol, count):
        calls.append((symbol, count))
        return [symbol] * count

    def one_by_one(symbols):
        calls.extend((symbol, 1) for symbol in symbols.tolist())
        return symbols.tolist()

    box = kind(in_runs if kind is PerSymbolBox else one_by_one)
    symbols = np.array([3, 5, 8])
    sizes = np.array([40, 0, 60])
    source = SeededWords(1)
    orders = []
    for _ in range(20):
        calls.clear()
        block = box.sample(symbols, sizes, source)
        answers = dict(split_by_symbol(symbols, *block) if kind is BatchBox else block)
        assert {symbol: len(reports) for symbol, reports in answers.items() if len(reports)} == {
            3: 40,
            8: 60,
        }
        assert all(set(reports) <= {symbol} for symbol, reports in answers.items())
        orders.append(tuple(calls))
    assert len(set(orders)) == (2 if kind is PerSymbolBox else 20)


def test_functions_are_queried_for_few_reports_at_a_time():
    counts = []

    def noted(symbol, count):
        counts.append(count)
        return [0] * count

    sf.audit(noted, sf.Uniform(2, 1), samples=20_000)
    assert len(counts) > 120
    assert max(counts) < 300


def test_drift_is_reported():
    """In the second half of the samples, a new report reveals symbol 0."""
    rng = np.random.default_rng(1)
    asked = []

    def late(symbol, count):
        asked.append(count)
        noise = rng.integers(8, size=count)
        return (
            np.where(rng.random(count) < 0.5, 9, noise)
            if symbol == 0 and sum(asked) > 20_000
            else noise
        )

    found = sf.audit(late, sf.Uniform(4, 1), samples=40_000, source=SeededWords(1))
    assert found.changed_symbols == (0,)
    assert "The reports of symbol 0 changed during the audit" in found.verdict
    assert found.to_dict()["changed"] == [0]


def test_drift_is_a_change_of_shares():
    rng = np.random.default_rng(2)
    Q = rng.dirichlet(
        np.full(30, 0.3), size=200
    )  # many cells are too small to be compared by themselves
    before, after = (np.array([rng.multinomial(n, row) for row in Q]) for n in (4000, 900))
    assert rows_with_drift(before, after) == []
    after[7] = rng.multinomial(900, np.roll(Q[7], 1))
    assert rows_with_drift(before, after) == [7]
    assert rows_with_drift(np.array([[50, 0]]), np.array([[40, 0]])) == []
    assert rows_with_drift(np.array([[50, 0]]), np.array([[10, 30]])) == [0]


# --- verdicts -------------------------------------------------------------------------------------


def test_nothing_is_drawn_without_a_promise():
    found = sf.audit(lambda symbol, count: [symbol] * count, sf.Uniform(3, "inf"))
    assert (found.violates, found.samples, found.pairs) == (False, 0, ())
    assert "Nothing is promised" in found.verdict
    assert np.isnan(found.bounds[0, 1])
    assert "Nothing is promised" in str(found) and "Nothing is promised" in found._repr_html_()


def test_each_direction_is_judged_by_its_own_promise():
    """Mangat's response: a no proves itself, a yes does not."""
    context = sf.PrivacyMatrix([[0, "inf"], [1, 0]])
    found = sf.audit(
        seeded(sf.BinaryResponse(context)), context, samples=50_000, source=SeededWords(3)
    )
    assert [(pair.x, pair.x2) for pair in found.pairs] == [(1, 0)]
    assert not found.violates
    back = sf.PrivacyMatrix([[0, 1], ["inf", 0]])
    turned = sf.audit(
        seeded(sf.BinaryResponse(context)), back, samples=50_000, source=SeededWords(3)
    )
    assert turned.violations[0].bound > 5  # a report of no rules a yes out


def test_epsilon_0_is_broken_by_small_differences():
    context = sf.PrivacyMatrix([[0, 0], [0, 0]])
    assert not sf.audit(
        lambda symbol, count: np.arange(count) % 2, context, samples=10_000
    ).violates
    leaky = sf.BinaryResponse(sf.Uniform(2, 0.2))
    assert sf.audit(seeded(leaky), context, samples=50_000, source=SeededWords(4)).violates


def test_violation_names_pair_bound_event_and_confidence():
    found = sf.audit(
        lambda symbol, count: [symbol] * count, sf.Uniform(2, 1), samples=5000, confidence=0.95
    )
    worst = found.violations[0]
    assert worst.violates and worst.excess > 0
    for part in (
        "Violates",
        "95%",
        f"symbol {worst.x} against {worst.x2}",
        f"{worst.bound:.4g}",
        "(1 report)",
    ):
        assert part in found.verdict
    assert "2 ordered pairs" in found.verdict
    assert repr(found) == f"Audit(violates, 2 ordered pairs, {found.samples:,} samples)"


def test_a_clear_verdict_says_what_would_have_been_seen():
    mechanism = sf.mechanism_for(sf.Uniform(3, 1))
    found = sf.audit(seeded(mechanism), mechanism.context, samples=20_000, source=SeededWords(5))
    least = max(found.pairs, key=lambda pair: pair.resolution)
    assert not found.violates
    assert f"anything above ε = {least.resolution:.4g} where 1 is promised" in found.verdict
    assert "not a proof" in found.verdict
    assert "no violation found" in repr(found)


def test_rare_reports_are_mentioned():
    rng = np.random.default_rng(1)
    found = sf.audit(
        lambda symbol, count: rng.integers(2**60, size=count), sf.Uniform(2, 1), samples=20_000
    )
    assert found.rare_share > 0.99
    split = sf.audit(
        lambda symbol, count: rng.integers(2000, size=count), sf.Uniform(2, 1), samples=20_000
    )
    assert (
        split.rare_share > 0.5
    )  # each is seen, but half a time for each symbol when reports are ordered
    assert not split.violates
    coarse = sf.audit(
        lambda symbol, count: rng.integers(20, size=count), sf.Uniform(2, 1), samples=20_000
    )
    assert coarse.rare_share == 0
    assert "rare" not in coarse.verdict
    assert "too rare to be judged" in found.verdict
    assert not found.violates


def test_bounds_matrix_matches_the_pairs():
    found = sf.audit(
        lambda symbol, count: [symbol] * count, sf.Uniform(4, 1), samples=5000, symbols=[0, 2, 3]
    )
    bounds = found.bounds
    assert (np.diag(bounds) == 0).all()
    for pair in found.pairs:
        assert bounds[found.symbols.index(pair.x), found.symbols.index(pair.x2)] == pair.bound


def test_the_outcome_in_json_and_html():
    found = sf.audit(lambda symbol, count: ["<b>"] * count, sf.Uniform(2, 1), samples=1000)
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert set(data) == {
        *(
            "violates",
            "verdict",
            "confidence",
            "samples",
            "symbols",
            "labels",
            "rare",
            "changed",
            "sequences",
            "pairs",
        )
    }
    assert [pair["violates"] for pair in data["pairs"]] == [False, False]
    assert isinstance(found, Audit)
    assert "<b>No violation found</b>" in found._repr_html_()
    assert found._repr_html_().count("<tr>") == 3


def test_labels_are_shown_unless_they_are_the_symbols():
    context = sf.Uniform(["park", "a place with a name that is much too long"], 1)
    found = sf.audit(lambda symbol, count: [symbol] * count, context, samples=1000)
    assert found.labels == ("park", "a place with a name that is much too long")
    for shown in (found.verdict, str(found), found._repr_html_()):
        assert "0 (park)" in shown
        assert "1 (a place with a name tha…)" in shown
    numbered = sf.audit(lambda symbol, count: [symbol] * count, sf.Uniform(2, 1), samples=1000)
    assert "(0)" not in str(numbered)


def test_confidence_is_shown_with_all_digits():
    found = sf.audit(
        lambda symbol, count: [symbol] * count, sf.Uniform(2, 1), samples=1000, confidence=0.9999
    )
    assert "confidence 99.99%" in found.verdict


def test_the_share_of_rare_reports_is_rounded_down():
    told = Audit((), (), (), 0, 0.999, 0.99996, ())._rare_text()
    assert "99.9%" in told


def test_long_tables_are_truncated():
    mechanism = sf.mechanism_for(sf.Uniform(6, 1))
    text = str(sf.audit(mechanism, samples=3000))
    assert "and 20 ordered pairs" in text


def test_progress_is_reported():
    seen = []
    found = sf.audit(sf.mechanism_for(sf.Uniform(2, 1)), samples=2000, on_progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == found.samples
    assert abs(found.samples - 2000) < 300
