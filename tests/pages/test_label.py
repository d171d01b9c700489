"""The privacy label: its words and numbers never promise too much, for any kind of context."""

import math
import re
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.cli.survey_text import About, fill_template
from sfumato.contexts import ContextUnion
from sfumato.designer.exponential import exponential_response
from sfumato.errors import PrivacyViolation
from sfumato.mechanisms import TableResponse
from sfumato.pages import label_page
from sfumato.pages.label.protection import opening_text, protection_levels
from sfumato.pages.label.text import (
    CERTAINTY,
    belief,
    dates_text,
    domain_text,
    everyday_text,
    factor_text,
    max_different_answers,
    odds_text,
    repeat_text,
)
from sfumato.survey.toml.file import parse_survey_toml
from support.survey_results import HOSTILE

INF = math.inf
PLACES = ["park", "café", "clinic", "bar", "office"]
CHAIN = sf.PrivacyMatrix([[0, 1, INF], [1, 0, "0.5"], [INF, 1, 0]], domain=["low", "mid", "high"])
UNION = sf.union(
    [
        sf.Uniform(["bus", "tram"], 1),
        sf.HighLow(["home", "clinic", "pub"], ["clinic"], 2),
        sf.Uniform(["zoo"], 1),
    ]
)
CONTEXTS = [
    sf.Uniform(["no", "yes"], 1),
    sf.Uniform(3, INF),
    sf.HighLow(PLACES, ["clinic", "bar"], 1),
    sf.HighLow(PLACES, PLACES, 1),
    sf.HighLow(PLACES, [], 1),
    sf.Tiers([0, 1, 2, 1], [INF, 2, "0.5"]),
    sf.Tiers([0, 1], [1, 2]),
    sf.Blocks([0, 0, 1, 1], 1),
    sf.Blocks([0, 0, 1, 1, 2], [1, 2, 3]),
    sf.Blocks([0, 0, 1, 1, 2], [1, INF, 3]),
    sf.Blocks([0, 0, 1, 1], 1, across=3),
    sf.Blocks([0, 0, 1], 9, across=1),
    sf.Blocks([0, 0, 0], 1, across=2),
    UNION,
    sf.union([UNION, sf.Tiers([0, 1], [1, 3])]),
    sf.union([CHAIN, sf.Blocks([0, 0, 1], 1, across=2)]),
    CHAIN,
    sf.PrivacyMatrix([[0, "0.5"], [2, 0]], domain=["no", "yes"]),
    sf.PrivacyMatrix([[0, 1, INF], [1, 0, INF], [0, 1, 0]]),
    sf.Metric([[0, 1, 3], [1, 0, 1], [3, 1, 0]], "0.5"),
    sf.Metric([[0, 1], [1, 0]], INF),
]


def text_of(page):
    """Return the text of a page."""
    body = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", body).replace("\xa0", " "))


def label_of(context, mechanism=None, **about):
    return text_of(label_page(sf.Survey("question", context, mechanism, **about)))


# --- numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "epsilon", ["1e-18", "0.001", "0.25", "0.5", "1", "1.0986", "2", "3", "5", "6.9", "6.9067"]
)
def test_belief_is_the_exact_share_rounded_up(epsilon):
    with localcontext() as precise:
        precise.prec = 60
        e = Decimal(epsilon).exp()
        share = (1000 * e / (1 + e)).to_integral_value(ROUND_CEILING)
    assert belief(Fraction(epsilon)) == share < CERTAINTY


@pytest.mark.parametrize("epsilon", [Fraction("6.9068"), Fraction(7), Fraction(400_000), INF])
def test_large_epsilons_count_as_certain(epsilon):
    assert belief(epsilon) == CERTAINTY


@pytest.mark.parametrize("context", [sf.Uniform(2, "0.3"), sf.PrivacyMatrix([[0, 2], ["0.1", 0]])])
def test_belief_matches_posterior_odds(context):
    for x, x2 in ((0, 1), (1, 0)):
        odds = sf.posterior_odds(context).bound(x, x2)
        exact = 1000 * odds / (1 + odds)
        rounded = belief(context.exact_epsilon(x, x2))
        assert exact <= rounded < exact + 1


@pytest.mark.parametrize(
    ("epsilon", "moved", "everyday"),
    [
        (Fraction(0), "not at all: they stay at 50 : 50", "cannot be told apart"),
        (Fraction(1, 1000), "from 50 : 50 to at most 50.1 : 49.9", "at least 49 times in 100"),
        (Fraction(1), "from 50 : 50 to at most 73.2 : 26.8", "at least 26 times in 100"),
        (Fraction(3), "from 50 : 50 to at most 95.3 : 4.7", "at least 47 times in 1,000"),
        (Fraction("6.9"), "from 50 : 50 to at most 99.9 : 0.1", "at least once in 1,000"),
        (Fraction(40), "from 50 : 50 to beyond 99.9 : 0.1: practically certain", "hardly ever"),
        (INF, "from 50 : 50 to certainty: nothing is promised", "may prove"),
    ],
)
def test_odds_in_words(epsilon, moved, everyday):
    assert odds_text(epsilon).replace("\xa0", " ") == moved
    assert everyday in everyday_text(epsilon)


def test_size_for_reviewers_rounds_up():
    assert factor_text(Fraction(2, 3)) == "ε ≈ 0.6667, odds × 1.95"
    assert factor_text(Fraction(40)) == "ε = 40"  # no factor where the belief is as good as certain


# --- classes of answers ---------------------------------------------------------------------------


@pytest.mark.parametrize("context", CONTEXTS, ids=repr)
def test_rows_match_the_entries_of_the_closed_matrix(context):
    closed = context.closure()
    symbols = range(context.size)
    entries = {closed.exact_epsilon(x, x2) for x in symbols for x2 in symbols if x != x2}
    levels = protection_levels(context)
    assert {level.epsilon for level in levels} == entries
    finite = [level.epsilon for level in levels if level.epsilon != INF]
    assert [
        level.epsilon for level in levels[: len(finite)]
    ] == finite  # what is not promised comes last
    assert all(bool(level.disclosure) == (level.epsilon == INF) for level in levels)


@pytest.mark.parametrize("context", CONTEXTS, ids=repr)
def test_rows_name_answers_with_their_entry(context):
    """Each name in a row belongs to an answer that has this entry against some other answer."""
    closed = context.closure()
    labels = [str(label) for label in context.domain.labels]
    for level in protection_levels(context):
        for name in re.findall(r"<bdi>(.*?)</bdi>", level.answers):
            x = labels.index(name)
            assert level.epsilon in {
                closed.exact_epsilon(x, x2) for x2 in range(context.size) if x2 != x
            }


def test_many_levels_are_summed_up():
    for context in (sf.Tiers(range(10), range(1, 11)), sf.Blocks(np.arange(20) // 2, range(1, 11))):
        levels = [level for level in protection_levels(context) if level.epsilon != INF]
        assert [level.epsilon for level in levels] == [1, 9, 10]
        assert levels[1].answers == "8 more levels in between"
    line = sf.Metric(abs(np.subtract.outer(np.arange(12), np.arange(12))), "0.5")
    levels = protection_levels(line)
    assert [level.epsilon for level in levels] == [Fraction(1, 2), 5, Fraction(11, 2)]
    assert "“<bdi>11</bdi>”" in levels[2].against or "“<bdi>11</bdi>”" in levels[2].answers


def test_union_of_many_blocks_stays_short():
    context = sf.union([sf.HighLow(3, [0], 1 + i % 9) for i in range(400)])
    levels = protection_levels(context)
    assert len(levels) <= 7
    assert [level.epsilon for level in levels] == [1, 8, 9, INF, INF, INF, INF]
    assert levels[0].against.endswith("; and 44 more classes with the same promise")
    assert levels[1].answers == "7 more levels in between"
    assert "398 more classes" in " ".join(level.disclosure for level in levels)


def test_high_low_label():
    words = label_of(sf.HighLow(PLACES, ["clinic", "bar"], 1))
    assert "2 of 5 answers are sensitive. Nothing is promised for the others." in words
    assert "“clinic”, “bar”against any other answerfrom 50 : 50 to at most 73.2 : 26.8" in words
    assert (
        "That your answer is one of these: “park”, “café”, “office”; and therefore not one of the "
        "sensitive ones." in words
    )


def test_blocks_label():
    streets = {"Rue A": "Paris", "Rue B": "Paris", "Via C": "Rome"}
    words = label_of(sf.Blocks(streets, 1))
    assert "The 3 answers are in 2 blocks of 1 to 2: “Rue A”, “Rue B”; “Via C”." in words
    disclosure = "Which block your answer is in. A report may reveal it."
    assert f"{disclosure} For the one answer that is alone" in words
    hidden = label_of(sf.Blocks(streets, 1, across=3))
    assert "against an answer in another blockfrom 50 : 50 to at most 95.3 : 4.7" in hidden
    assert "Which block" not in hidden


def test_union_label():
    words = label_of(UNION)
    assert "“bus”, “tram”against any other answer in the blockfrom 50 : 50 to at most 73.2" in words
    assert "“clinic”against any other answer in the blockfrom 50 : 50 to at most 88.1" in words
    assert "That your answer is one of these: “home”, “pub”" in words
    assert "Which block your answer is in" in words


def test_matrix_label_keeps_the_direction_of_pairs():
    words = label_of(sf.PrivacyMatrix([[0, "0.5"], [2, 0]], domain=["no", "yes"]))
    assert "“no”against “yes”from 50 : 50 to at most 62.3 : 37.7" in words
    assert "“yes”against “no”from 50 : 50 to at most 88.1 : 11.9" in words
    one_way = label_of(sf.PrivacyMatrix([[0, INF], [1, 0]], domain=["no", "yes"]))
    assert "Whether your answer is “no” and not “yes”: a report may prove it." in one_way


def test_derived_promises_count_as_promised():
    words = label_of(CHAIN, exponential_response(CHAIN))
    assert "nothing is promised" not in words
    assert "to at most 88.1 : 11.9" in words  # high against low, by way of mid: ε = 2


def test_labels_of_metrics_clear_answers_and_single_answers():
    assert "The closer two answers are" in opening_text(sf.Metric([[0, 1], [1, 0]]))
    words = label_of(sf.Uniform(["no", "yes"], INF))
    assert "Nothing is promised in this survey." in words
    assert "Your answer itself. A report may reveal it." in words
    assert "Nothing is promised, so nothing can be broken." in words
    single = label_of(sf.Uniform(["yes"], 1))
    assert "There is only one possible answer" in single
    assert "50 : 50" not in single


def test_enormous_epsilons_do_not_overflow():
    assert "practically certain" in label_of(sf.Metric([[0, 1000], [1000, 0]]))


# --- the rest of the page -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("about", "often", "different"),
    [
        ({}, "once: the first answer counts", 1),
        ({"repeat": {"every": "day", "distinct": 1}}, "every day: the first answer counts", 1),
        (
            {"repeat": {"every": "week", "distinct": 3}},
            "every week, at most 3 different answers",
            3,
        ),
    ],
)
def test_repeat_text(about, often, different):
    survey = sf.Survey("question", sf.Uniform(2, 1), **about)
    assert (repeat_text(survey), max_different_answers(survey)) == (often, different)


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ({}, "no dates are set"),
        ({"opens": "2026-11-01"}, "from 1 November 2026, 00:00 UTC on"),
        ({"closes": "2026-11-30T18:00Z"}, "until 30 November 2026, 18:00 UTC"),
        (
            {"opens": "0001-01-01T00:00+14:00", "closes": "9999-12-31T23:59-12:00"},
            "from 1 January 1, 00:00 UTC+14:00 to 31 December 9999, 23:59 UTC-12:00",
        ),
    ],
)
def test_dates_text(about, words):
    assert dates_text(sf.Survey("question", sf.Uniform(2, 1), **about)) == words


def test_repeated_answers_multiply_the_odds():
    once, thrice = (
        label_of(sf.Uniform(2, 1), repeat=r) for r in ("once", {"every": "week", "distinct": 3})
    )
    assert "95.3 : 4.7" not in once
    assert (
        "from 50 : 50 to at most 73.2 : 26.8ε = 1, odds × 2.72from 50 : 50 to at most 95.3 : 4.7"
        in thrice
    )
    assert "at least 47 times in 1,000" in thrice  # the everyday words are about all of them
    assert "When your answer changes" in thrice
    assert "When your answer changes" not in once


def test_domain_text():
    grid = sf.GridDomain(25, 50, -130, -60, "0.2", other="abroad")
    assert "43,750 cells of a map, each 0.2°" in domain_text(grid)
    assert "longitudes −130° to −60°" in domain_text(grid)
    assert "counts as “<bdi>abroad</bdi>”" in domain_text(grid)
    assert domain_text(sf.Uniform(["a"], 1).domain) == "One answer: “<bdi>a</bdi>”."
    many = domain_text(sf.Domain([f"label {x}" for x in range(100)]))
    assert "“<bdi>label 11</bdi>” and 88 more." in many


def test_contact_storage_and_reviewer_facts():
    context = sf.HighLow(PLACES, ["clinic", "bar"], 1)
    survey = sf.Survey(
        "lunch", context, title="Lunch?", text="A word.", contact="ask@here", minimum_reports=500
    )
    words = text_of(label_page(survey))
    for text in (
        "Lunch?",
        "A word.",
        "ask@here",
        survey.fingerprint,
        "HighLow, kept by HighLowResponse",
    ):
        assert text in words
    assert "a whole number below 5 (3 bits)" in words
    assert "No results are shown for fewer than 500 reports." in words
    assert "Kept: every pair of answers was compared for every report" in words
    error = 100 * math.sqrt(survey.mechanism.scores.variances(np.full(5, 0.2), 10_000).max())
    assert f"up to {error:#.2g} percentage points" in words


def test_broken_promises_have_no_label():
    context = sf.Uniform(["no", "yes"], "0.5")
    loud = TableResponse(context, [[3 * 2**62, 2**62], [2**62, 3 * 2**62]])
    with pytest.raises(PrivacyViolation):
        label_page(sf.Survey("loud", context, loud))


def test_label_of_the_paper_grid(checkins):
    words = text_of(label_page(checkins.survey))
    blocks = "The 43,750 answers are in 1,750 blocks of 25"
    assert f"{blocks}; for example, “25,-130” and “25,-129.8” share a block." in words
    assert "1,000 of 43,750 answers, chosen at random, were compared" in words


@pytest.mark.parametrize("kind", ["high-low", "blocks", "union"])
def test_resolved_surveys_have_the_same_label(kind):
    context = {
        "high-low": sf.HighLow(PLACES, ["clinic"], 1),
        "blocks": sf.Blocks(
            {"Rue A": "Paris", "Rue B": "Paris", "Via C": "Rome"}, {"Paris": 1, "Rome": 2}
        ),
        "union": UNION,
    }[kind]
    survey = sf.Survey("question", context, repeat={"every": "day", "distinct": 2})
    assert label_page(sf.Survey.from_resolved(survey.resolved())) == label_page(survey)


def test_labels_and_titles_are_escaped():
    names = [HOSTILE, "<b>bold</b>", "\u202egnorts", "x" * 500]
    contexts = [
        sf.HighLow(names, names[:2], 1),
        sf.Blocks([0, 0, 1, 1], 1, domain=names),
        sf.Uniform(names, 1),
    ]
    for context in contexts:
        page = label_page(sf.Survey("h", context, title=HOSTILE, text=HOSTILE, contact=HOSTILE))
        assert not re.search(r"<(script|img|b|a)\b", page)
        assert "x" * 40 not in page
        assert page.count("\u202e") == page.count("<bdi>\u202egnorts</bdi>") > 0


def test_page_links_nowhere():
    page = label_page(sf.Survey("question", UNION, contact="https://example.org/"))
    assert "default-src 'none'" in page
    # The icon is in the page itself, and the mark refers to its own gradient.
    body = re.sub(r'href="data:[^"]*"|url\(#sfumato-mark\)', "", page)
    assert not re.search(r"""(?:src|href|url|@import)\s*[=(]""", body)
    assert page.count("https://") == 1  # the contact, as text


# --- in a browser ---------------------------------------------------------------------------------


@pytest.fixture
def lunch_page(tmp_path):
    text = fill_template("labels", "1", About("lunch"))
    described = parse_survey_toml(text.encode(), tmp_path)
    file = tmp_path / "label.html"
    file.write_text(
        label_page(sf.Survey.from_description(described, described.mechanism)), encoding="utf-8"
    )
    return file


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1000])
def test_page_in_a_browser(chromium, lunch_page, scheme, width):
    context = chromium.new_context(color_scheme=scheme, viewport={"width": width, "height": 800})
    page = context.new_page()
    complaints = []
    requests = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(lunch_page.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert page.get_by_role("heading", level=2).count() == 4
    assert page.get_by_role("rowheader", name="clinic").is_visible()
    bars = [bar.bounding_box()["width"] for bar in page.locator(".belief > span").all()]
    assert bars[0] / bars[1] == pytest.approx(0.732, abs=0.001)
    assert complaints == []
    assert requests == [lunch_page.as_uri()]
    context.close()


def test_label_prints_on_one_page_in_black_on_white(chromium, lunch_page):
    context = chromium.new_context(color_scheme="dark")
    page = context.new_page()
    page.goto(lunch_page.as_uri())
    assert len(re.findall(rb"/Type\s*/Page\b", page.pdf(prefer_css_page_size=True))) == 1
    page.emulate_media(media="print")
    ink, paper = (
        page.evaluate(f"getComputedStyle(document.body).{name}")
        for name in ("color", "backgroundColor")
    )
    assert (ink, paper) == ("rgb(0, 0, 0)", "rgb(255, 255, 255)")
    assert (
        page.evaluate("getComputedStyle(document.querySelector('.open th')).color")
        == "rgb(0, 0, 0)"
    )
    context.close()


def test_label_states_the_cost_in_budget():
    thrice = label_of(sf.Uniform(2, "0.5"), repeat={"every": "week", "distinct": 3})
    assert "This survey uses up to 1.5 of it." in thrice
    nothing = label_of(sf.Uniform(2, "inf"))
    assert "a budget of 4, unless" in nothing
    assert "uses up to" not in nothing
    assert "looks like a new device" in nothing


def test_union_of_one_part_without_open_pairs_has_one_level():
    context = ContextUnion([sf.Tiers([0, 0], [1])], [0, 0])
    assert [level.epsilon for level in protection_levels(context)] == [1]
