"""The text of a privacy label: answers, odds and dates, and what a promise does not cover."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np

from sfumato.client import DEFAULT_BUDGET
from sfumato.domains import Domain, GridDomain, IntegerDomain, Label
from sfumato.foundation.arrays import Symbols
from sfumato.foundation.canonical import decimal_text
from sfumato.foundation.formatting import format_count, format_odds_factor
from sfumato.pages.markup import Html, fill, join
from sfumato.pages.promise import epsilon_text, plural, round_up, shorten_label
from sfumato.randomness import Epsilon, exp_bounds
from sfumato.survey import Survey

# --- lists of answers -----------------------------------------------------------------------------

MAX_LISTED_ANSWERS = 12
"""The largest number of answers that ``list_answers`` lists by name."""


def list_answers(domain: Domain, symbols: Symbols) -> Html:
    """List answers by name. If there are many, list only the first ones and count the others."""
    names = join((quote(domain.labels[x]) for x in symbols[:MAX_LISTED_ANSWERS].tolist()), ", ")
    unlisted_count = symbols.size - MAX_LISTED_ANSWERS
    if unlisted_count <= 0:
        return names
    return fill("$names and $unlisted more", names=names, unlisted=format_count(unlisted_count))


def quote(label: Label) -> Html:
    """Put a label in quotation marks, and isolate its writing direction with ``<bdi>``."""
    return fill("“<bdi>$label</bdi>”", label=shorten_label(label))


def domain_text(domain: Domain) -> Html:
    r"""State what the survey asks for.

    >>> domain_text(Domain(["yes", "no"]))
    'One of 2 answers: “<bdi>yes</bdi>”, “<bdi>no</bdi>”.'
    >>> domain_text(IntegerDomain(100, start=18))
    'A whole number from 18 to 117.'
    """
    if isinstance(domain, IntegerDomain):
        first = domain.labels[0]
        last = domain.labels[-1]
        return Html(f"A whole number from {first} to {last}.")
    if isinstance(domain, GridDomain):
        text = Html(_grid_text(domain))
    elif domain.size == 1:
        return fill("One answer: $name.", name=quote(domain.labels[0]))
    else:
        names = list_answers(domain, np.arange(domain.size))
        text = fill("One of $size answers: $names.", size=format_count(domain.size), names=names)
    if domain.other is None:
        return text
    return fill("$text Any other answer counts as $other.", text=text, other=quote(domain.other))


def _grid_text(grid: GridDomain) -> str:
    fields = {name: str(value).replace("-", "−") for name, value in grid.to_record().items()}
    return (
        f"One of {format_count(grid.cell_count)} cells of a map, each {fields['step']}° wide and "
        f"high and named by its south-western corner: latitudes {fields['south']}° to "
        f"{fields['north']}°, longitudes {fields['west']}° to {fields['east']}°."
    )


# --- odds, exact and rounded up -------------------------------------------------------------------

CERTAINTY = 1000
"""A belief of 100%, in the unit of ``belief``: tenths of a percent."""

_CERTAIN_EPSILON = 7  # e^7 exceeds 1,000, so the belief rounds up to 100%


def belief(epsilon: Epsilon) -> int:
    """Return ``e^ε/(1 + e^ε)`` in tenths of a percent, rounded up.

    A report can raise a belief of 50% to at most this value. By Proposition 3 of Acharya et al.
    (2020), a report changes odds of 1:1 between x and x2 to at most ``e^{E[x, x2]}`` to 1. A
    rational upper bound on e^ε ensures that the result is never too small.

    >>> from fractions import Fraction
    >>> belief(Fraction(1)), belief(Fraction(0)), belief(math.inf)
    (732, 500, 1000)
    """
    if epsilon == 0:
        return CERTAINTY // 2
    if isinstance(epsilon, float) or epsilon >= _CERTAIN_EPSILON:
        return CERTAINTY
    _, upper_bound = exp_bounds(epsilon)
    return math.ceil(CERTAINTY * upper_bound / (1 + upper_bound))


def odds_text(epsilon: Epsilon) -> str:
    r"""State how far the odds of one answer against another can move.

    >>> from fractions import Fraction
    >>> odds_text(Fraction(1)).replace("\xa0", " ")
    'from 50 : 50 to at most 73.2 : 26.8'
    """
    start = _ratio_text(CERTAINTY // 2)
    end_belief = belief(epsilon)
    if epsilon == 0:
        return f"not at all: they stay at {start}"
    if end_belief < CERTAINTY:
        return f"from {start} to at most {_ratio_text(end_belief)}"
    if epsilon != math.inf:
        return f"from {start} to beyond {_ratio_text(CERTAINTY - 1)}: practically certain"
    return f"from {start} to certainty: nothing is promised"


def everyday_text(epsilon: Epsilon) -> str:
    """State in everyday words how often a guess based on a report is wrong, rounded down.

    >>> from fractions import Fraction
    >>> everyday_text(Fraction(1))
    'A guess that it is this answer is then wrong at least 26 times in 100.'
    """
    if epsilon == 0:
        return "The two cannot be told apart."
    if epsilon == math.inf:
        return "The report may prove that it is this answer and not the other."
    doubt = CERTAINTY - belief(epsilon)
    guess = "A guess that it is this answer is then"
    if doubt >= CERTAINTY // 10:
        return f"{guess} wrong at least {doubt // 10} times in 100."
    if doubt > 1:
        return f"{guess} wrong at least {doubt} times in 1,000."
    if doubt == 1:
        return f"{guess} wrong at least once in 1,000."
    return f"{guess} hardly ever wrong."


def factor_text(epsilon: Epsilon) -> str:
    """State the ε, and the largest factor by which a report multiplies odds, for reviewers.

    >>> from fractions import Fraction
    >>> factor_text(Fraction(1)), factor_text(math.inf)
    ('ε = 1, odds × 2.72', 'ε = ∞')
    """
    rounded_epsilon = round_up(epsilon)
    text = epsilon_text(rounded_epsilon)
    if belief(epsilon) == CERTAINTY:
        return text
    return f"{text}, odds × {format_odds_factor(rounded_epsilon)}"


def _ratio_text(tenths: int) -> str:
    """Return a belief and its complement as a ratio of percentages, with non-breaking spaces."""
    return f"{tenths / 10:g}\u00a0:\u00a0{(CERTAINTY - tenths) / 10:g}"


# --- dates and repetition -------------------------------------------------------------------------

_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)


def dates_text(survey: Survey) -> str:
    """State when the survey opens and closes."""
    opening_time = _time_text(str(survey.description.about["opens"]))
    closing_time = _time_text(str(survey.description.about["closes"]))
    if opening_time and closing_time:
        return f"from {opening_time} to {closing_time}"
    if opening_time:
        return f"from {opening_time} on"
    return f"until {closing_time}" if closing_time else "no dates are set"


def repeat_text(survey: Survey) -> str:
    """State how often a device may answer, and which answers count."""
    repeat = survey.description.about["repeat"]
    if repeat == "once":
        return "once: the first answer counts"
    distinct_count = max_different_answers(survey)
    if distinct_count == 1:
        return f"every {repeat['every']}: the first answer counts"
    return f"every {repeat['every']}, at most {format_count(distinct_count)} different answers"


def max_different_answers(survey: Survey) -> int:
    """Return how many different answers one person can give. Each adds the same ε."""
    repeat = survey.description.about["repeat"]
    return 1 if repeat == "once" else int(repeat["distinct"])


def _time_text(text: str) -> str:
    """Spell out a date or time. Times without a zone are UTC, and dates start at midnight.

    >>> _time_text("2026-11-30T18:00+01:00"), _time_text("2026-11-30")
    ('30 November 2026, 18:00 UTC+01:00', '30 November 2026, 00:00 UTC')
    """
    if not text:
        return ""
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return f"{time.day} {_MONTHS[time.month - 1]} {time.year}, {time:%H:%M} {time.tzname()}"


# --- what the promise does not cover, and what is stored ------------------------------------------


def disclosure_sentences(survey: Survey, disclosures: Sequence[Html]) -> list[str]:
    """List what is not protected: what reports may reveal, then what no report can hide."""
    sentences = [
        *disclosures,
        "Whether you took part, when, and from which address: the network can see that.",
    ]
    if max_different_answers(survey) > 1:
        sentences.append(
            "When your answer changes: anyone who can tell that two reports are yours can see "
            "that they differ."
        )
    return [
        *sentences,
        budget_text(survey),
        "What a browser forgets: if a website's data is deleted, its record of your budget and "
        "of your answers is gone, and your browser looks like a new device.",
        "What is true of people like you: results are about everyone, whether or not you take "
        "part.",
        "Your answer before it is blurred: the device and the software that asks for it can see "
        "it, and so can those who control them.",
    ]


def budget_text(survey: Survey) -> str:
    """State that the costs of surveys add up, and how a budget limits the total."""
    cost = max_different_answers(survey) * survey.context.largest_finite_epsilon
    cost_text = f"This survey uses up to {decimal_text(cost)} of it. " if cost else ""
    return (
        "Other surveys: each one reveals a little more, and the odds multiply. Your device limits "
        f"the total with a budget of {decimal_text(DEFAULT_BUDGET)}, unless the software sets a "
        f"different one. {cost_text}In a browser, each website has its own budget."
    )


def storage_sentences(survey: Survey) -> list[str]:
    """State what a device sends, and what an aggregator stores."""
    outputs = format_count(survey.mechanism.outputs)
    bits = plural(survey.mechanism.bits, "bit")
    return [
        f"Your device turns your answer into a report, a whole number below {outputs} ({bits}). It "
        "is drawn at random, with odds that depend on your answer, before anything is sent.",
        "Only the report is sent, with the fingerprint below and an identifier that prevents "
        "it from being counted twice.",
        "A Sfumato aggregator stores how often each number arrived, how many reports arrived each "
        "hour, and the identifier and checksum of each upload; no names, no addresses, and no "
        "more precise times.",
        "The promise depends on none of this: it holds against anyone who reads every report.",
    ]
