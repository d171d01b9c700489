"""What a promise does not cover, and what becomes of a report: the sentences that a label must not leave out."""

from collections.abc import Sequence

from sfumato.client import DEFAULT_BUDGET
from sfumato.foundation.canonical import decimal_text
from sfumato.foundation.formatting import format_count
from sfumato.pages.label.protection import Shade
from sfumato.pages.label.schedule import different_answers
from sfumato.survey import Survey

__all__ = ["kept_sentences", "open_sentences"]


def open_sentences(survey: Survey, shades: Sequence[Shade]) -> list[str]:
    """What is not protected, as HTML: what reports may show, and what no report can hide."""
    changed = []
    if different_answers(survey) > 1:
        changed = [
            "When your answer changes: whoever can tell that two reports are yours sees that they differ."
        ]
    return [
        *(shade.shown for shade in shades if shade.shown),
        "That you took part or did not, when, and from which address: the network sees that.",
        *changed,
        _other_surveys(survey),
        "What a browser forgets: if a website's data are deleted, its account and its memory of your answers are gone, "
        "and nobody can tell that from a new device.",
        "What is true of people like you: results are about the crowd, whether or not you are in it.",
        "Your answer before it is blurred: whoever controls the device or the software that asks can see it.",
    ]


def _other_surveys(survey: Survey) -> str:
    """What surveys add up to, and what bounds it."""
    cost = different_answers(survey) * survey.context.largest_finite
    price = f"This survey takes up to {decimal_text(cost)} of it. " if cost else ""
    return (
        "Other surveys: each gives away some more, and the odds multiply. Your device bounds the sum by a budget, "
        f"{decimal_text(DEFAULT_BUDGET)} unless the software that asks sets another. {price}In a browser each website "
        "has a budget of its own."
    )


def kept_sentences(survey: Survey) -> list[str]:
    """What is sent, and what an aggregator stores, as HTML."""
    outputs, bits = survey.mechanism.outputs, survey.mechanism.bits
    number = f"a whole number below {format_count(outputs)} ({bits} bit{'s' * (bits != 1)})"
    return [
        f"Your device turns your answer into a report, {number}. It is drawn by chance, with odds that depend on your "
        "answer, before anything is sent.",
        "Only the report is sent, with the fingerprint below and an identifier, so that nothing counts twice.",
        "An aggregator of Sfumato keeps how often each number came, how many reports each hour brought, and of each "
        "upload the identifier and a checksum; no name, no address, no finer time.",
        "The promise rests on none of this: it holds against whoever reads every report.",
    ]
