"""The audit: exact bounds, levels that add up, a test that nothing was chosen on, verdicts that say what they mean."""

import itertools
import json
import math
from collections import Counter

import numpy as np
import pytest
from scipy.stats import binom, poisson

import sfumato as sf
from sfumato.auditing.allotment import Allotment, poisson_sizes
from sfumato.auditing.angle import excess
from sfumato.auditing.bounds import log_ratio_bounds, share_bound
from sfumato.auditing.choice import choose, promised_pairs
from sfumato.auditing.events import MOST_REPORTS, chosen_event, frequent_reports
from sfumato.auditing.resolution import noticed_as_suspect, noticed_by_test
from sfumato.auditing.sampling import black_box, histogram
from sfumato.auditing.verdict import Audit
from sfumato.errors import ContextMismatch, InvalidSymbols, NotEnoughReports, ReportRejected
from sfumato.simulation import SeededWords


def seeded(mechanism, seed=0):
    """The mechanism as a black box, with words of a seed."""
    source = SeededWords(seed)
    return lambda symbol, count: mechanism.privatize(np.full(count, symbol), source)


# --- bounds -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0.3, 0.01, 1e-5])
@pytest.mark.parametrize("trials", [1, 2, 7, 40])
def test_the_bound_on_a_share_is_too_large_no_more_often_than_its_level(trials, level):
    successes = np.arange(trials + 1)
    bounds = share_bound(successes, trials, level)
    for probability in np.linspace(0, 1, 201):
        too_large = binom.pmf(successes, trials, probability)[bounds > probability + 1e-12].sum()
        assert too_large <= level * (1 + 1e-9)


@pytest.mark.parametrize("level", [0.3, 0.01])
def test_the_bound_on_a_share_cannot_be_raised(level):
    """Clopper and Pearson's bound is the p at which so many successes or more have exactly that probability."""
    for trials, successes in ((1, 1), (10, 3), (40, 39), (1000, 500)):
        bound = float(share_bound(successes, trials, level))
        assert binom.sf(successes - 1, trials, bound) == pytest.approx(level, rel=1e-8)


@pytest.mark.parametrize("level", [0.1, 0.01])
@pytest.mark.parametrize(("means", "odds"), [((6.0, 2.0), 1.0), ((20.0, 7.0), 3.0), ((3.0, 12.0), 0.25), ((5, 5), 0.5)])
def test_the_bound_on_a_log_ratio_is_too_large_no_more_often_than_its_level(means, odds, level):
    """Summed over all pairs of Poisson counts that matter."""
    a, b = np.meshgrid(np.arange(90), np.arange(90), indexing="ij")
    probability = poisson.pmf(a, means[0]) * poisson.pmf(b, means[1])
    assert probability.sum() > 1 - 1e-9
    true = math.log(means[0] / means[1] / odds)
    too_large = probability[log_ratio_bounds(a, b, odds, level) > max(true, 0.0) + 1e-12].sum()
    assert 0 < too_large <= level


def test_the_bound_on_a_log_ratio_is_never_below_0_and_grows_with_the_first_count():
    bounds = log_ratio_bounds(np.arange(200), 50, 1.0, 0.01)
    assert bounds[0] == 0
    assert (bounds >= 0).all()
    assert (np.diff(bounds[100:]) > 0).all()


def test_a_report_that_one_symbol_never_sends_has_a_large_bound():
    assert log_ratio_bounds(10_000, 0, 1.0, 0.001) > math.log(1000)


# --- the allotment ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("pairs", "suspects"), [(56, [3, 7, 9]), (2, [0, 1]), (1, [0]), (4032, [1])])
def test_levels_add_up_to_alpha(pairs, suspects):
    levels = Allotment().levels(0.01, pairs, suspects)
    assert levels.size == pairs
    assert (levels > 0).all()
    assert levels.sum() == pytest.approx(0.01, rel=1e-12)


def test_the_parts_add_up_to_the_samples():
    plan = Allotment()
    ordering, choosing = plan.first_sizes(1_000_000, 8)
    means = plan.test_means(1_000_000, 8, [2, 5, 2])
    assert 8 * (ordering + choosing) + means.sum() == pytest.approx(1_000_000, abs=20)
    assert means[2] == means[5] == means.max() > 10 * means[0]
    assert len(set(np.delete(means, [2, 5]).tolist())) == 1


def test_sizes_are_poisson():
    sizes = poisson_sizes(np.full(4000, 30.0), SeededWords(5))
    assert abs(sizes.mean() - 30) < 5 * math.sqrt(30 / 4000)
    assert abs(sizes.var() / 30 - 1) < 5 * math.sqrt(2 / 4000)  # a fixed size would have variance 0
    assert (poisson_sizes(np.full(9, 30.0), SeededWords(5)) == sizes[:9]).all()


# --- events -----------------------------------------------------------------------------------------------------------


def naive_event(ordering, choosing, caution=4.0):
    """Try every upper set but the whole, one after the other."""
    order = sorted(range(len(ordering[0])), key=lambda y: -(ordering[0][y] + 0.5) / (ordering[1][y] + 0.5))
    best = None
    for size in range(1, len(order)):
        a, b = (sum(row[y] for y in order[:size]) + 0.5 for row in choosing)
        angle = math.atan(math.sqrt(a / b)) - caution / 2 / math.sqrt(a + b)
        shown = 2 * math.log(math.tan(angle)) if angle > 0 else -math.inf
        if best is None or shown > best[0] + 1e-12:
            best = shown, order[:size]
    return best[1]


@pytest.mark.parametrize("seed", range(20))
def test_the_event_is_the_upper_set_that_shows_most(seed):
    rng = np.random.default_rng(seed)
    ordering, choosing = rng.poisson(rng.gamma(1, 20, size=(2, 2, 12)))
    event = chosen_event(tuple(ordering), tuple(choosing))
    assert event.columns.tolist() == naive_event(ordering.tolist(), choosing.tolist())


def test_a_report_that_the_other_never_sends_is_found():
    rows = np.array([500, 500, 40]), np.array([500, 500, 0])
    assert chosen_event(rows, rows).columns.tolist() == [2]


def test_of_too_many_reports_the_most_frequent_are_looked_at():
    common = Counter(dict.fromkeys(range(MOST_REPORTS), 2))
    rare = Counter({-1 - y: 1 for y in range(500)})
    assert set(frequent_reports([rare, common])) == set(common)


def test_nothing_is_tested_where_nothing_is_promised():
    context = sf.PrivacyMatrix([[0, 1, "inf"], [2, 0, 0], ["inf", 0, 0]])
    pairs = promised_pairs(context, np.arange(3))
    assert [(pair.x, pair.x2, pair.promised) for pair in pairs] == [(0, 1, 1.0), (1, 0, 2.0), (1, 2, 0.0), (2, 1, 0.0)]


def test_reports_are_ordered_on_one_part_and_events_chosen_on_another():
    """What looked telling at first, by chance, is dropped when it does not show again."""
    ordering = [Counter(a=5, b=40, c=40), Counter(b=20, c=60)]
    choosing = [Counter(a=1, b=400, c=400), Counter(a=1, b=200, c=600)]
    choice = choose(promised_pairs(sf.Uniform(2, 1), np.arange(2)), ordering, choosing, 1)
    assert [choice.reports[column] for column in choice.events[0].columns] == ["a", "b"]
    assert choice.events[0].hits == (401.5, 201.5)


def test_suspects_are_measured_against_their_own_promise():
    """The pair with the larger ratio is promised more; the other one is the suspect."""
    counts = [Counter(a=800, b=200), Counter(a=200, b=800)]
    context = sf.PrivacyMatrix([[0, 3], [1, 0]])
    choice = choose(promised_pairs(context, np.arange(2)), counts, counts, 1)
    assert choice.suspects.tolist() == [1]
    assert choice.suspicions[0] < 0 < choice.suspicions[1]


# --- choosing never sees the test -------------------------------------------------------------------------------------


class Recorded:
    """A black box that hands out the reports of a seed, those of the test as a function changes them."""

    def __init__(self, mechanism, change):
        self._box, self._change = seeded(mechanism), change
        self._before = 2 * mechanism.inputs  # calls before the test: two parts, one call for each symbol
        self.asked = []

    def __call__(self, symbol, count):
        self.asked.append((symbol, count))
        reports = self._box(symbol, count)
        return reports if len(self.asked) <= self._before else self._change(reports)


@pytest.mark.parametrize("permutation", list(itertools.permutations(range(3))))
def test_events_suspects_and_sizes_do_not_depend_on_the_samples_of_the_test(permutation):
    """Whatever the reports of the test are renamed to, the same is chosen and the same is asked for."""
    mechanism = sf.PlainResponse(sf.Uniform(3, 1), sf.RandomizedCode)
    chosen = []
    for change in (lambda reports: reports, lambda reports: np.array(permutation)[reports]):
        box = Recorded(mechanism, change)
        found = sf.audit(box, mechanism.context, samples=12_000, source=SeededWords(1))
        chosen.append((box.asked, [(p.x, p.x2, p.event, p.event_size, p.suspect, p.level) for p in found.pairs]))
    assert chosen[0] == chosen[1]


def test_the_sizes_of_the_test_are_drawn_and_those_before_are_not():
    mechanism = sf.PlainResponse(sf.Uniform(3, 1), sf.RandomizedCode)
    asked = []
    for seed in (1, 2):
        box = Recorded(mechanism, lambda reports: reports)
        sf.audit(box, mechanism.context, samples=12_000, source=SeededWords(seed))
        asked.append(box.asked)
    assert asked[0][:6] == asked[1][:6] == [(x, size) for size in (400, 1600) for x in range(3)]
    assert all(one != other for one, other in zip(asked[0][6:], asked[1][6:], strict=True))


def test_the_excess_of_a_count_is_in_standard_errors():
    """Of Poisson counts at the very ratio, it has mean 0 and variance 1, whatever the ratio."""
    for mean, mean2 in ((300, 100), (40, 40), (30, 900)):
        a, b = (np.arange(int(m + 10 * math.sqrt(m)))[:, None] for m in (mean, mean2))
        weights = poisson.pmf(a, mean) * poisson.pmf(b.T, mean2)
        found = excess(a, b.T + 1e-9, math.log(mean / mean2))
        average = (weights * found).sum()
        assert abs(average) < 0.1
        assert abs((weights * found**2).sum() - average**2 - 1) < 0.1


def test_the_bounds_do_depend_on_them():
    mechanism = sf.PlainResponse(sf.Uniform(3, 1), sf.RandomizedCode)
    found = [
        sf.audit(Recorded(mechanism, change), mechanism.context, samples=12_000, source=SeededWords(1))
        for change in (lambda reports: reports, lambda reports: np.zeros_like(reports))
    ]
    assert (found[0].bounds != found[1].bounds).any()


# --- the resolution ---------------------------------------------------------------------------------------------------


def detected(promised, hits2, odds, level, log_ratio):
    """The probability that the bound lies above the promise, summed over all counts within seven standard errors."""
    mean2 = hits2 + 0.5
    mean = mean2 * odds * math.exp(log_ratio)
    a, b = (np.arange(max(int(m - 7 * math.sqrt(m)), 0), int(m + 7 * math.sqrt(m)) + 8) for m in (mean, mean2))
    above = log_ratio_bounds(a[:, None], b[None, :], odds, level) > promised
    return float(poisson.pmf(a, mean) @ above @ poisson.pmf(b, mean2))


@pytest.mark.parametrize(
    ("promised", "hits2", "odds", "level"),
    [(0.0, 3, 1.0, 0.01), (0.0, 100, 4.0, 1e-3), (1.0, 20, 0.2, 1e-4), (1.0, 100, 1.0, 1e-3), (3.0, 20, 1.0, 0.01)],
)
def test_what_is_at_the_resolution_is_seen_with_the_power_stated(promised, hits2, odds, level):
    least = float(noticed_by_test(promised, hits2, odds, level, 0.99, np.inf))
    assert least > promised
    assert 0.989 < detected(promised, hits2, odds, level, least) < 0.998
    assert detected(promised, hits2, odds, level, (least + promised) / 2) < 0.7  # half way to the promise


def test_where_an_event_would_have_to_be_more_than_certain_there_is_no_resolution():
    assert noticed_by_test(1.0, 500, 1.0, 0.001, 0.99, 1000.0) == np.inf
    assert noticed_by_test(1.0, 500, 1.0, 0.001, 0.99, 10_000.0) < 1.5


def test_suspects_need_more_to_be_noticed_where_the_others_look_worse():
    low, high = (float(noticed_as_suspect(1.0, 5000, threshold, 0.99)) for threshold in (1.0, 3.0))
    assert 1 < low < high < 1.2


def test_more_samples_show_more():
    mechanism = sf.mechanism_for(sf.Uniform(4, 1))
    worst = []
    for samples in (20_000, 200_000):
        found = sf.audit(seeded(mechanism), mechanism.context, samples=samples, source=SeededWords(2))
        worst.append(max(pair.resolution for pair in found.pairs))
    assert 1 < worst[1] < worst[0]


# --- black boxes ------------------------------------------------------------------------------------------------------


CLEAR = {
    "numbers": lambda symbol, count: np.full(count, symbol),
    "rows of bits": lambda symbol, count: np.tile(np.arange(3) == symbol, (count, 1)),
    "text": lambda symbol, count: [f"I have {symbol}"] * count,
    "bytes": lambda symbol, count: [bytes([symbol])] * count,
    "tuples": lambda symbol, count: [(symbol, "x")] * count,
    "a generator": lambda symbol, count: (symbol for _ in range(count)),
}


@pytest.mark.parametrize("kind", CLEAR)
def test_any_report_that_can_be_counted_will_do(kind):
    found = sf.audit(CLEAR[kind], sf.Uniform(3, 1), samples=3000)
    assert found.violates
    assert len(found.violations) == 6
    assert (found.bounds[~np.eye(3, dtype=bool)] > 1).all()


def test_a_function_that_gives_too_few_reports_is_refused():
    with pytest.raises(NotEnoughReports, match="returned"):
        sf.audit(lambda symbol, count: [0] * (count - 1), sf.Uniform(2, 1), samples=1000)


@pytest.mark.parametrize("returned", [None, 7, "7", b"7", np.array(7)], ids=repr)
def test_what_is_no_list_of_reports_is_refused(returned):
    with pytest.raises(ReportRejected, match="an array or a list"):
        sf.audit(lambda symbol, count: returned, sf.Uniform(2, 1), samples=1000)


def test_reports_that_cannot_be_counted_are_refused():
    with pytest.raises(ReportRejected, match="hashable"):
        sf.audit(lambda symbol, count: [[1]] * count, sf.Uniform(2, 1), samples=1000)


@pytest.mark.parametrize("audited", [3, "krr", None])
def test_what_cannot_be_called_is_refused(audited):
    with pytest.raises(InvalidSymbols, match="randomize must be"):
        sf.audit(audited, sf.Uniform(2, 1))


def test_a_function_needs_a_context():
    with pytest.raises(InvalidSymbols, match="pass the context"):
        sf.audit(lambda symbol, count: [0] * count)


def test_mechanisms_and_surveys_bring_their_context():
    survey = sf.Survey("lunch", sf.HighLow(["park", "clinic"], ["clinic"], 1))
    assert black_box(survey, None)[1] == survey.context
    assert black_box(survey.mechanism, None)[1] == survey.mechanism.context
    assert black_box(survey, sf.Uniform(["park", "clinic"], 2))[1] == sf.Uniform(["park", "clinic"], 2)


def test_a_context_of_another_size_is_refused():
    with pytest.raises(ContextMismatch, match="3 symbols"):
        sf.audit(sf.mechanism_for(sf.Uniform(4, 1)), sf.Uniform(3, 1))


@pytest.mark.parametrize("samples", [0, 799, -1, 1000.0, True, None, "many"])
def test_too_few_samples_are_refused(samples):
    with pytest.raises(NotEnoughReports, match="at least 800"):
        sf.audit(sf.mechanism_for(sf.Uniform(8, 1)), samples=samples)


@pytest.mark.parametrize("confidence", [1.0, 0.4, math.nan, "0.9", 1])
def test_a_confidence_that_is_none_is_refused(confidence):
    with pytest.raises(InvalidSymbols, match="confidence"):
        sf.audit(sf.mechanism_for(sf.Uniform(3, 1)), confidence=confidence)


def test_more_symbols_than_can_be_compared_must_be_named():
    mechanism = sf.mechanism_for(sf.Uniform(100, 1))
    with pytest.raises(InvalidSymbols, match="at most 64"):
        sf.audit(mechanism)
    found = sf.audit(mechanism, samples=3000, symbols=[99, 4, 4, 7])
    assert found.symbols == (4, 7, 99)
    assert found.bounds.shape == (3, 3)
    assert {(pair.x, pair.x2) for pair in found.pairs} == set(itertools.permutations((4, 7, 99), 2))


@pytest.mark.parametrize("symbols", [[], [3], [3, 3], [0, 100], [-1, 0], ["0", "1"]], ids=repr)
def test_symbols_that_cannot_be_compared_are_refused(symbols):
    with pytest.raises(InvalidSymbols):
        sf.audit(sf.mechanism_for(sf.Uniform(100, 1)), symbols=symbols)


def test_a_histogram_counts_all_that_it_asked_for():
    seen = []
    counted = histogram(lambda symbol, count: np.arange(count) % 3, 1, 150_000, seen.append)
    assert counted.total() == sum(seen) == 150_000
    assert set(counted) == {0, 1, 2}


# --- verdicts ---------------------------------------------------------------------------------------------------------


def test_where_nothing_is_promised_nothing_is_drawn():
    found = sf.audit(lambda symbol, count: [symbol] * count, sf.Uniform(3, "inf"))
    assert (found.violates, found.samples, found.pairs) == (False, 0, ())
    assert "Nothing is promised" in found.verdict
    assert np.isnan(found.bounds[0, 1])
    assert "Nothing is promised" in str(found) and "Nothing is promised" in found._repr_html_()


def test_each_direction_is_judged_by_its_own_promise():
    """Mangat's response: a no proves itself, a yes does not."""
    context = sf.PrivacyMatrix([[0, "inf"], [1, 0]])
    found = sf.audit(seeded(sf.BinaryResponse(context)), context, samples=50_000, source=SeededWords(3))
    assert [(pair.x, pair.x2) for pair in found.pairs] == [(1, 0)]
    assert not found.violates
    back = sf.PrivacyMatrix([[0, 1], ["inf", 0]])
    turned = sf.audit(seeded(sf.BinaryResponse(context)), back, samples=50_000, source=SeededWords(3))
    assert turned.violations[0].bound > 5  # a report of no rules a yes out


def test_an_epsilon_of_0_is_kept_by_saying_nothing_and_broken_by_little():
    context = sf.PrivacyMatrix([[0, 0], [0, 0]])
    assert not sf.audit(lambda symbol, count: np.arange(count) % 2, context, samples=10_000).violates
    leaky = sf.BinaryResponse(sf.Uniform(2, 0.2))
    assert sf.audit(seeded(leaky), context, samples=50_000, source=SeededWords(4)).violates


def test_a_violation_is_told_with_pair_bound_event_and_confidence():
    found = sf.audit(lambda symbol, count: [symbol] * count, sf.Uniform(2, 1), samples=5000, confidence=0.95)
    worst = found.violations[0]
    assert worst.violates and worst.excess > 0
    for part in ("Violates", "95 %", f"symbol {worst.x} against {worst.x2}", f"{worst.bound:.4g}", "1 report,"):
        assert part in found.verdict
    assert "2 ordered pairs" in found.verdict
    assert repr(found) == f"Audit(violates, 2 ordered pairs, {found.samples:,} samples)"


def test_a_clear_verdict_says_what_would_have_been_seen():
    mechanism = sf.mechanism_for(sf.Uniform(3, 1))
    found = sf.audit(seeded(mechanism), mechanism.context, samples=50_000, source=SeededWords(5))
    least = max(found.pairs, key=lambda pair: pair.resolution)
    assert not found.violates
    assert f"anything above ε = {least.resolution:.4g} where 1 is promised" in found.verdict
    assert "no proof" in found.verdict
    assert "no violation found" in repr(found)


def test_reports_too_rare_to_be_judged_are_told():
    rng = np.random.default_rng(1)
    found = sf.audit(lambda symbol, count: rng.integers(2**60, size=count), sf.Uniform(2, 1), samples=20_000)
    assert found.rare > 0.99
    split = sf.audit(lambda symbol, count: rng.integers(2000, size=count), sf.Uniform(2, 1), samples=20_000)
    assert split.rare > 0.5  # each is seen, but half a time for each symbol when reports are ordered
    coarse = sf.audit(lambda symbol, count: rng.integers(20, size=count), sf.Uniform(2, 1), samples=20_000)
    assert coarse.rare == 0
    assert "rare" not in coarse.verdict
    assert "too rare to be judged" in found.verdict
    assert not found.violates


def test_the_table_has_bounds_in_its_places():
    found = sf.audit(lambda symbol, count: [symbol] * count, sf.Uniform(4, 1), samples=5000, symbols=[0, 2, 3])
    bounds = found.bounds
    assert (np.diag(bounds) == 0).all()
    for pair in found.pairs:
        assert bounds[found.symbols.index(pair.x), found.symbols.index(pair.x2)] == pair.bound


def test_the_outcome_in_json_and_html():
    found = sf.audit(lambda symbol, count: ["<b>"] * count, sf.Uniform(2, 1), samples=1000)
    data = json.loads(json.dumps(found.in_json(), allow_nan=False))
    assert set(data) == {"violates", "verdict", "confidence", "samples", "symbols", "rare", "pairs"}
    assert [pair["violates"] for pair in data["pairs"]] == [False, False]
    assert isinstance(found, Audit)
    assert "<b>No violation found</b>" in found._repr_html_()
    assert found._repr_html_().count("<tr>") == 3


def test_long_tables_are_cut():
    mechanism = sf.mechanism_for(sf.Uniform(6, 1))
    text = str(sf.audit(mechanism, samples=3000))
    assert "and 20 ordered pairs" in text


def test_progress_is_told():
    seen = []
    found = sf.audit(sf.mechanism_for(sf.Uniform(2, 1)), samples=2000, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == found.samples
    assert abs(found.samples - 2000) < 300
