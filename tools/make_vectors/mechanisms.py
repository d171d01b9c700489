"""Symbol and words → report: short words completely, words of 64 bits at their edges and at random places."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from sfumato.conformance import Case
from sfumato.foundation.arrays import Words
from sfumato.mechanisms import Mechanism
from sfumato.survey import Survey
from tools.make_vectors.case import accept, load
from tools.make_vectors.catalogue import large_questions, questions
from tools.make_vectors.thresholds import edges_of

__all__ = ["enumerations", "samples"]

_SAMPLES = 180
_FEW = 64  # symbols and words that are combined with each other
_GOLDEN = 0x9E3779B1  # a prime: its multiples visit every symbol

Trial = tuple[int, int, int]
"""A symbol, and two words of 64 bits."""


def enumerations() -> Iterator[Case]:
    """Every word and every symbol of the short surveys."""
    for question in questions():
        survey = question.short_survey()
        yield load(survey)
        yield _sample_words(survey, _SAMPLES // 15)
        for x in range(survey.mechanism.inputs):
            yield _enumerate_words(survey, x)


def samples() -> Iterator[Case]:
    """Some hundred words of 64 bits for each survey."""
    for question in (*questions(), *large_questions()):
        survey = question.survey()
        yield load(survey)
        yield _sample_words(survey, _SAMPLES)


def _enumerate_words(survey: Survey, x: int) -> Case:
    mechanism = survey.mechanism
    words = _all_words(mechanism)
    reports = mechanism.reports_from(np.full(len(words), x), words)
    counts = np.bincount(reports, minlength=mechanism.outputs).tolist()
    digest = hashlib.sha256(reports.astype("<u4").tobytes()).hexdigest()
    request = {"op": "enumerate", "survey": survey.fingerprint, "symbol": x}
    return accept(f"{survey.name}: symbol {x}", request, {"counts": counts, "sha256": digest})


def _all_words(mechanism: Mechanism) -> Words:
    """Every word; of two words every pair, the second one running faster."""
    one = np.arange(1 << mechanism.word_bits, dtype=np.uint64)
    if mechanism.words == 1:
        return one[:, None]
    return np.stack([np.repeat(one, one.size), np.tile(one, one.size)], axis=1)


def _sample_words(survey: Survey, count: int) -> Case:
    mechanism = survey.mechanism
    tried = [*_at_the_edges(survey, count), *_anywhere(survey, count // 2)]
    symbols = [x for x, _, _ in tried]
    words = np.array([pair for _, *pair in tried], dtype=np.uint64)
    reports = mechanism.reports_from(
        symbols, words[:, : mechanism.words] >> np.uint64(64 - mechanism.word_bits)
    )
    request = {
        "op": "reports",
        "survey": survey.fingerprint,
        "symbols": symbols,
        "words": [f"{w0:016x}{w1:016x}" for _, w0, w1 in tried],
    }
    return accept(f"{survey.name}: given words", request, {"reports": reports.tolist()})


def _at_the_edges(survey: Survey, count: int) -> list[Trial]:
    """Both sides of thresholds, the first and the last word among them; some where there are too many."""
    mechanism = survey.mechanism
    record = _mechanism_record(survey)
    firsts = _sides(edges_of(record, 0), mechanism.word_bits)
    seconds = _sides(edges_of(record, 1), mechanism.word_bits)
    if mechanism.words == 1:
        seconds = seconds[-1:]
    symbols = _some(range(mechanism.inputs))
    trials = list(product(symbols, firsts, seconds))
    trials.sort(key=lambda trial: hashlib.sha256(repr(trial).encode()).digest())
    return trials[:count]


def _mechanism_record(survey: Survey) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(survey.resolved())
    return dict(data["promise"]["mechanism"])


def _sides(edges: Sequence[int], word_bits: int) -> list[int]:
    """The words at edges and just below them, as words of 64 bits."""
    sides = {side for edge in (0, *edges, 1 << word_bits) for side in (edge - 1, edge)}
    inside = sorted(side for side in sides if 0 <= side < 1 << word_bits)
    below = 64 - word_bits
    # The bits below a short word must not matter.
    return [(side << below) | (side * _GOLDEN) % (1 << below) for side in _some(inside)]


def _some(numbers: Sequence[int]) -> Sequence[int]:
    """All of them, or some evenly spread ones with the first and the last."""
    if len(numbers) <= _FEW:
        return numbers
    return [numbers[i * (len(numbers) - 1) // (_FEW - 1)] for i in range(_FEW)]


def _anywhere(survey: Survey, count: int) -> list[Trial]:
    """Words that look random and never change."""
    digests = [hashlib.sha256(f"{survey.name}, {i}".encode()).digest() for i in range(count)]
    symbols = [i * _GOLDEN % survey.mechanism.inputs for i in range(count)]
    return [
        (x, _word(digest[:8]), _word(digest[8:16]))
        for x, digest in zip(symbols, digests, strict=True)
    ]


def _word(raw: bytes) -> int:
    return int.from_bytes(raw, "little")
