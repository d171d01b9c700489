"""Symbol and words → report: short words completely, 64-bit words at their edges and elsewhere."""

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, product
from typing import Any

import numpy as np

from sfumato.conformance import Case
from sfumato.foundation.arrays import Words
from sfumato.mechanisms import Mechanism
from sfumato.survey import Survey
from tools.make_vectors.case import accept, load, survey_request
from tools.make_vectors.catalogue import large_surveys, shorten, surveys

_SAMPLES = 180
_SHORT_SAMPLES = 12
_MANY = 64  # symbols and words that are combined with each other
_GOLDEN = 0x9E3779B1  # a prime: its multiples visit every symbol

Trial = tuple[int, int, int]
"""A symbol, and two words of 64 bits."""
Record = Mapping[str, Any]


def enumerations() -> Iterator[Case]:
    """Yield every word and every symbol of the surveys with short words."""
    for survey in map(shorten, surveys().values()):
        yield load(survey)
        yield _sample_words(survey, _SHORT_SAMPLES)
        for x in range(survey.mechanism.inputs):
            yield _enumerate_words(survey, x)


def samples() -> Iterator[Case]:
    """Yield some hundred 64-bit words for each survey."""
    for survey in (*surveys().values(), *large_surveys()):
        yield load(survey)
        yield _sample_words(survey, _SAMPLES)


def _enumerate_words(survey: Survey, x: int) -> Case:
    mechanism = survey.mechanism
    words = _all_words(mechanism)
    reports = mechanism.reports_from(np.full(len(words), x), words)
    counts = np.bincount(reports, minlength=mechanism.outputs).tolist()
    digest = hashlib.sha256(reports.astype("<u4").tobytes()).hexdigest()
    request = survey_request("enumerate", survey.fingerprint, symbol=x)
    return accept(f"{survey.name}: symbol {x}", request, counts=counts, sha256=digest)


def _all_words(mechanism: Mechanism) -> Words:
    """Return every word; of two words every pair, the second one running faster."""
    word = np.arange(1 << mechanism.word_bits, dtype=np.uint64)
    grid = np.meshgrid(*[word] * mechanism.words, indexing="ij")
    return np.stack(grid, axis=-1).reshape(-1, mechanism.words)


def _sample_words(survey: Survey, count: int) -> Case:
    mechanism = survey.mechanism
    trials = np.array(
        [*_edge_trials(mechanism, count), *_other_trials(survey, count // 2)], dtype=np.uint64
    )
    symbols = trials[:, 0].tolist()
    words = trials[:, 1 : 1 + mechanism.words] >> np.uint64(64 - mechanism.word_bits)
    reports = mechanism.reports_from(symbols, words).tolist()
    shown_words = [f"{first:016x}{second:016x}" for _, first, second in trials.tolist()]
    request = survey_request("reports", survey.fingerprint, symbols=symbols, words=shown_words)
    return accept(f"{survey.name}: given words", request, reports=reports)


def _other_trials(survey: Survey, count: int) -> Iterator[Trial]:
    """Yield words that look random and never change."""
    for i in range(count):
        digest = hashlib.sha256(f"{survey.name}, {i}".encode()).digest()
        first = int.from_bytes(digest[:8], "little")
        second = int.from_bytes(digest[8:16], "little")
        yield i * _GOLDEN % survey.mechanism.inputs, first, second


# --- the words at which a report changes: an error of one shows there -----------------------------


def _edge_trials(mechanism: Mechanism, count: int) -> list[Trial]:
    """Return words on both sides of thresholds, the first and the last word among them.

    Where there are too many, return some.
    """
    record: Any = mechanism.to_record()
    first_words = _sides(_thresholds(record, 0), mechanism.word_bits)
    second_words = _sides(_thresholds(record, 1), mechanism.word_bits)
    if mechanism.words == 1:
        second_words = second_words[-1:]
    trials = list(product(_thin_out(range(mechanism.inputs)), first_words, second_words))
    trials.sort(key=lambda trial: hashlib.sha256(repr(trial).encode()).digest())
    return trials[:count]


def _sides(thresholds: Sequence[int], word_bits: int) -> list[int]:
    """Return the words at thresholds and just below them, as words of 64 bits."""
    sides = set()
    for threshold in (0, *thresholds, 1 << word_bits):
        sides |= {threshold - 1, threshold}
    inside = sorted(side for side in sides if 0 <= side < 1 << word_bits)
    below = 64 - word_bits
    # The bits below a short word must not matter.
    return [(side << below) | (side * _GOLDEN) % (1 << below) for side in _thin_out(inside)]


def _thin_out(numbers: Sequence[int]) -> Sequence[int]:
    """Return all numbers, or some evenly spaced ones with the first and the last."""
    if len(numbers) <= _MANY:
        return numbers
    return [numbers[i * (len(numbers) - 1) // (_MANY - 1)] for i in range(_MANY)]


def _thresholds(mechanism: Record, word: int) -> list[int]:
    """Return what a mechanism compares its first (0) or second (1) word with."""
    kind = mechanism["kind"]
    thresholds: list[int] = []
    if kind == "union":
        for part in mechanism["parts"]:
            thresholds += _thresholds(part, word)
    elif kind == "product":
        thresholds += _code_thresholds(mechanism["codes"][word])
    elif word == 1:
        pass
    elif "rows" in mechanism:
        for row in mechanism["rows"]:
            thresholds += accumulate(map(int, row))
    elif kind == "groups":
        thresholds += _group_thresholds(mechanism)
    else:
        for code in mechanism["codes"]:
            thresholds += _code_thresholds(code)
    return thresholds


def _code_thresholds(code: Record) -> list[int]:
    if code["kind"] == "hadamard":
        # A coin from the high bits; the low bits are the output.
        return [code["outputs"] // 2 * int(code["high"])]
    return _output_thresholds(code, code)


def _output_thresholds(code: Record, level: Record) -> list[int]:
    """Return where each output of a code ends, with the words of ``level``."""
    outputs = code["outputs"]
    raised = {"hadamard": outputs // 2, "randomized": 1, "clear": 1}.get(code["kind"])
    if raised is None:
        raised = len(base64.b64decode(code["base"])) // 4
    words = [int(level["high"])] * raised + [int(level["low"])] * (outputs - raised)
    return list(accumulate(words))


def _group_thresholds(mechanism: Record) -> list[int]:
    """Return the cover of group after group, then the words that are sent as they are.

    Members read the words of their own group and the latter.
    """
    codes = [mechanism["codes"][number] for number in mechanism["code_of_group"]]
    levels = [mechanism["levels"][number] for number in mechanism["code_of_group"]]
    all_cover = sum(
        code["outputs"] * int(level["cover"]) for code, level in zip(codes, levels, strict=True)
    )
    thresholds = [all_cover, all_cover + int(mechanism["clear"])]
    start = 0
    for code, level in zip(codes, levels, strict=True):
        cover = int(level["cover"])
        end = start + code["outputs"] * cover
        thresholds += range(start, end + 1, cover)
        for edge in _output_thresholds(code, level):
            word = start + edge
            thresholds.append(word if word < end else all_cover + word - end)
        start = end
    return thresholds
