"""Symbol and words → report: all short words, and 64-bit words at thresholds and elsewhere."""

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

_SAMPLE_COUNT = 180
_SHORT_SAMPLE_COUNT = 12
_MAX_COMBINED = 64  # the largest number of symbols or words to combine
_GOLDEN_PRIME = 0x9E3779B1  # its multiples visit every symbol

Trial = tuple[int, int, int]
"""A symbol and two 64-bit words."""
Record = Mapping[str, Any]


def enumerations() -> Iterator[Case]:
    """Yield every word for every symbol, for the surveys with short words."""
    for survey in map(shorten, surveys().values()):
        yield load(survey)
        yield _sample_words(survey, _SHORT_SAMPLE_COUNT)
        for x in range(survey.mechanism.inputs):
            yield _enumerate_words(survey, x)


def samples() -> Iterator[Case]:
    """Yield a few hundred 64-bit words for each survey."""
    for survey in (*surveys().values(), *large_surveys()):
        yield load(survey)
        yield _sample_words(survey, _SAMPLE_COUNT)


def _enumerate_words(survey: Survey, x: int) -> Case:
    mechanism = survey.mechanism
    words = _all_words(mechanism)
    reports = mechanism.reports_from(np.full(len(words), x), words)
    counts = np.bincount(reports, minlength=mechanism.outputs).tolist()
    digest = hashlib.sha256(reports.astype("<u4").tobytes()).hexdigest()
    request = survey_request("enumerate", survey.fingerprint, symbol=x)
    return accept(f"{survey.name}: symbol {x}", request, counts=counts, sha256=digest)


def _all_words(mechanism: Mechanism) -> Words:
    """Return every word, or every pair of words with the second one varying fastest."""
    word = np.arange(1 << mechanism.word_bits, dtype=np.uint64)
    grid = np.meshgrid(*[word] * mechanism.words, indexing="ij")
    return np.stack(grid, axis=-1).reshape(-1, mechanism.words)


def _sample_words(survey: Survey, count: int) -> Case:
    mechanism = survey.mechanism
    trials = np.array(
        [*_edge_trials(mechanism, count), *_pseudorandom_trials(survey, count // 2)],
        dtype=np.uint64,
    )
    symbols = trials[:, 0].tolist()
    words = trials[:, 1 : 1 + mechanism.words] >> np.uint64(64 - mechanism.word_bits)
    reports = mechanism.reports_from(symbols, words).tolist()
    words_hex = [f"{first:016x}{second:016x}" for _, first, second in trials.tolist()]
    request = survey_request("reports", survey.fingerprint, symbols=symbols, words=words_hex)
    return accept(f"{survey.name}: given words", request, reports=reports)


def _pseudorandom_trials(survey: Survey, count: int) -> Iterator[Trial]:
    """Yield pseudo-random words that are always the same."""
    for i in range(count):
        digest = hashlib.sha256(f"{survey.name}, {i}".encode()).digest()
        first = int.from_bytes(digest[:8], "little")
        second = int.from_bytes(digest[8:16], "little")
        yield i * _GOLDEN_PRIME % survey.mechanism.inputs, first, second


# --- words at which a report changes, which reveal off-by-one errors ------------------------------


def _edge_trials(mechanism: Mechanism, count: int) -> list[Trial]:
    """Return words on both sides of thresholds, including the first and the last word.

    If there are more than ``count``, return a pseudo-random selection.
    """
    record: Any = mechanism.to_record()
    first_words = _words_at_edges(_thresholds(record, 0), mechanism.word_bits)
    second_words = _words_at_edges(_thresholds(record, 1), mechanism.word_bits)
    if mechanism.words == 1:
        second_words = second_words[-1:]
    trials = list(product(_thin_out(range(mechanism.inputs)), first_words, second_words))
    trials.sort(key=lambda trial: hashlib.sha256(repr(trial).encode()).digest())
    return trials[:count]


def _words_at_edges(thresholds: Sequence[int], word_bits: int) -> list[int]:
    """Return the words at thresholds and just below them, as 64-bit words."""
    edges = set()
    for threshold in (0, *thresholds, 1 << word_bits):
        edges |= {threshold - 1, threshold}
    valid = sorted(edge for edge in edges if 0 <= edge < 1 << word_bits)
    shift = 64 - word_bits
    # The low bits, which a short word does not use, must not matter.
    return [(edge << shift) | (edge * _GOLDEN_PRIME) % (1 << shift) for edge in _thin_out(valid)]


def _thin_out(numbers: Sequence[int]) -> Sequence[int]:
    """Return all numbers, or an evenly spaced selection that includes the first and the last."""
    if len(numbers) <= _MAX_COMBINED:
        return numbers
    return [numbers[i * (len(numbers) - 1) // (_MAX_COMBINED - 1)] for i in range(_MAX_COMBINED)]


def _thresholds(mechanism: Record, word: int) -> list[int]:
    """Return the thresholds with which a mechanism compares its first (0) or second (1) word."""
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
        # The high bits decide a coin flip; the low bits are the output.
        return [code["outputs"] // 2 * int(code["high"])]
    return _output_thresholds(code, code)


def _output_thresholds(code: Record, level: Record) -> list[int]:
    """Return the end of each output's range of words, for the word counts in ``level``."""
    outputs = code["outputs"]
    raised = {"hadamard": outputs // 2, "randomized": 1, "clear": 1}.get(code["kind"])
    if raised is None:
        raised = len(base64.b64decode(code["base"])) // 4
    words = [int(level["high"])] * raised + [int(level["low"])] * (outputs - raised)
    return list(accumulate(words))


def _group_thresholds(mechanism: Record) -> list[int]:
    """Return the thresholds of all groups: their cover words first, then the clear words.

    Members of a group read the group's own words instead of its cover, and then the clear words.
    """
    codes = [mechanism["codes"][index] for index in mechanism["code_of_group"]]
    levels = [mechanism["levels"][index] for index in mechanism["code_of_group"]]
    total_cover = sum(
        code["outputs"] * int(level["cover"]) for code, level in zip(codes, levels, strict=True)
    )
    thresholds = [total_cover, total_cover + int(mechanism["clear"])]
    start = 0
    for code, level in zip(codes, levels, strict=True):
        cover = int(level["cover"])
        end = start + code["outputs"] * cover
        thresholds += range(start, end + 1, cover)
        for edge in _output_thresholds(code, level):
            word = start + edge
            thresholds.append(word if word < end else total_cover + word - end)
        start = end
    return thresholds
