"""The common exam: every mechanism, built in or not, shows that it does what it says.

A finite channel is a matrix, so nearly everything is checked exactly. The mechanism is realised over
words so short that its production kernel can be fed every word for every symbol, and the counts are
compared with the claimed integers without tolerance. A statistical test over full words is kept as a
second, weaker net.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import lcm

import numpy as np

from sfumato.errors import ExamFailed, InvalidContext, NothingToLearn, PrivacyViolation, WrongSurvey
from sfumato.foundation.arrays import Floats, Words
from sfumato.foundation.canonical import canonical_bytes
from sfumato.mechanisms import Mechanism
from sfumato.promises.certificate import LARGEST_ENUMERATION, certify
from sfumato.promises.structure import tightest_by_structure
from sfumato.randomness import KEY_BYTES, WORDS_PER_POSITION, words_from
from sfumato.tally import Tally

__all__ = ["ALPHA", "ExamReport", "check_mechanism"]

ALPHA = 1e-6
"""The chance that a correct mechanism fails the statistical part."""

_LARGEST_WRITTEN_OUT = 2**19  # entries of a channel that has no structure to argue from
_CHUNK = 2**16  # draws that are tried together
_PEOPLE = 2**19
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class ExamReport:
    """The names of the checks that were passed, and the short word at which every word was tried."""

    passed: tuple[str, ...]
    word_bits: int


def check_mechanism(mechanism: Mechanism, *, seed: int = 0) -> ExamReport:
    """Put a mechanism through every check; ``ExamFailed`` names the first it fails.

    It may have 512 outputs; a channel that is written out, and has no structure, may have 2^19 entries.

    >>> from sfumato.contexts import Blocks
    >>> from sfumato.mechanisms import BlockResponse
    >>> check_mechanism(BlockResponse(Blocks([0, 0, 1], epsilon=1))).word_bits
    12
    """
    written_out = (
        not mechanism.row_classes() and mechanism.inputs * mechanism.outputs <= _LARGEST_WRITTEN_OUT
    )
    if mechanism.outputs > LARGEST_ENUMERATION and not written_out:
        raise InvalidContext(
            f"the exam is for at most {LARGEST_ENUMERATION} outputs, or {_LARGEST_WRITTEN_OUT} entries of a channel "
            "without structure; examine a smaller instance."
        )
    short = _shortened(mechanism)
    exams: list[tuple[Callable[[Mechanism], None], tuple[Mechanism, ...]]] = [
        (rows_sum_to_one, (short, mechanism)),
        (kernel_matches_integers, (short,)),
        (keeps_its_context, (short, mechanism)),
        (structure_is_as_claimed, (short, mechanism)),
        (formula_is_met, (mechanism,)),
        (transforms_match_the_matrix, (short, mechanism)),
        (scores_undo_the_channel, (short, mechanism)),
        (fast_scores_match_exact_ones, (short, mechanism)),
        (moments_match_the_scores, (short, mechanism)),
        (reports_are_a_pure_function, (short, mechanism)),
        (words_do_not_depend_on_the_symbol, (mechanism,)),
        (tallies_add_up, (mechanism,)),
        (records_are_canonical, (short, mechanism)),
    ]
    for exam, candidates in exams:
        for candidate in candidates:
            exam(candidate)
    sampler_matches_its_matrix(mechanism, seed)
    names = [exam.__name__ for exam, _ in exams] + [sampler_matches_its_matrix.__name__]
    return ExamReport(tuple(names), short.word_bits)


# --- sampling ---------------------------------------------------------------------------------------


def kernel_matches_integers(mechanism: Mechanism) -> None:
    """Every word and every symbol through the production kernel gives ``integer_row``, as integers."""
    for x in range(mechanism.inputs):
        counts = np.zeros(mechanism.outputs, dtype=np.int64)
        for words in _every_word(mechanism):
            reports = mechanism.reports_from(np.full(len(words), x), words)
            counts += np.bincount(reports, minlength=mechanism.outputs)
        _demand(
            counts.tolist() == mechanism.integer_row(x),
            "kernel_matches_integers",
            f"row {x} is not what the kernel sends.",
        )


def reports_are_a_pure_function(mechanism: Mechanism) -> None:
    """A report depends on its own symbol and words alone: not on neighbours, order or earlier calls."""
    symbols = np.arange(4 * mechanism.inputs) % mechanism.inputs
    words = words_from(bytes(KEY_BYTES), 0, symbols.size)[:, : mechanism.words] >> np.uint64(
        64 - mechanism.word_bits
    )
    together = mechanism.reports_from(symbols, words)
    backwards = mechanism.reports_from(symbols[::-1], words[::-1])[::-1]
    alone = [
        int(mechanism.reports_from(symbols[i : i + 1], words[i : i + 1])[0])
        for i in range(symbols.size)
    ]
    same = bool((together == backwards).all()) and together.tolist() == alone
    _demand(
        same, "reports_are_a_pure_function", "a report depends on more than its symbol and words."
    )


def words_do_not_depend_on_the_symbol(mechanism: Mechanism) -> None:
    """Privatising reads the same number of words whatever the symbols are."""
    reads = set()
    for x in range(mechanism.inputs):
        source = _CountingWords()
        mechanism.privatize(np.full(10, x), source)
        reads.add(tuple(source.taken))
    _demand(
        reads == {(10 * mechanism.words,)},
        "words_do_not_depend_on_the_symbol",
        "the number of words read differs.",
    )


def sampler_matches_its_matrix(mechanism: Mechanism, seed: int = 0) -> None:
    """A χ² test of full-length words against the matrix, at level 1e-6 over all symbols together."""
    from scipy.stats import chi2

    people = _PEOPLE // mechanism.inputs
    for x in range(mechanism.inputs):
        source = _KeyedWords(seed, x)
        counts = np.bincount(
            mechanism.privatize(np.full(people, x), source), minlength=mechanism.outputs
        )
        expected = people * _row(mechanism, x)
        impossible = counts[expected == 0].sum()
        _demand(
            impossible == 0,
            "sampler_matches_its_matrix",
            f"symbol {x} sends a report of probability 0.",
        )
        statistic, degrees = _chi_square(counts, expected)
        bound = chi2.isf(ALPHA / mechanism.inputs, degrees) if degrees else 0.0
        _demand(
            statistic <= bound or degrees == 0,
            "sampler_matches_its_matrix",
            f"symbol {x}: χ² = {statistic:.1f} over {bound:.1f} (seed {seed}, n = {people}).",
        )


# --- the channel ------------------------------------------------------------------------------------


def rows_sum_to_one(mechanism: Mechanism) -> None:
    """Every row has one entry per output, none negative, and adds up to exactly 1."""
    for x in range(mechanism.inputs):
        row = mechanism.integer_row(x)
        whole = (
            len(row) == mechanism.outputs and min(row) >= 0 and sum(row) == mechanism.denominator
        )
        _demand(
            whole and sum(mechanism.exact_row(x)) == 1,
            "rows_sum_to_one",
            f"row {x} does not sum to 1.",
        )


def keeps_its_context(mechanism: Mechanism) -> None:
    """Every pair of symbols and every output keep E, decided in integers."""
    try:
        certify(mechanism)
    except PrivacyViolation as violation:
        raise ExamFailed("keeps_its_context", str(violation)) from violation


def structure_is_as_claimed(mechanism: Mechanism) -> None:
    """What ``row_classes`` says of the rows is true, and argues for the same promise as enumeration."""
    classes = mechanism.row_classes()
    try:
        if classes:
            tightest_by_structure(mechanism, mechanism.context, classes)
    except PrivacyViolation as violation:
        raise ExamFailed("structure_is_as_claimed", str(violation)) from violation


def formula_is_met(mechanism: Mechanism) -> None:
    """The integers are the published formula to 1e-9."""
    for x in range(mechanism.inputs):
        _close(_row(mechanism, x), mechanism.ideal_row(x), 1.0, "formula_is_met", f"row {x}")


def transforms_match_the_matrix(mechanism: Mechanism) -> None:
    """``forward`` and ``adjoint`` are products with the matrix, for every unit vector and a mixed one."""
    Q = np.array([_row(mechanism, x) for x in range(mechanism.inputs)])
    _close(mechanism.matrix(), Q, 1.0, "transforms_match_the_matrix", "matrix")
    for p in (*np.eye(mechanism.inputs), _ramp(mechanism.inputs)):
        _close(mechanism.forward(p), p @ Q, 1.0, "transforms_match_the_matrix", "forward")
    for v in (*np.eye(mechanism.outputs), _ramp(mechanism.outputs)):
        _close(mechanism.adjoint(v), Q @ v, 1.0, "transforms_match_the_matrix", "adjoint")


# --- undoing it -------------------------------------------------------------------------------------


def scores_undo_the_channel(mechanism: Mechanism) -> None:
    """``Σ_y Q(y|x2) A[x, y] = [x = x2]``, as an identity between integers over one denominator."""
    k = mechanism.inputs
    rows = np.array([mechanism.integer_row(x) for x in range(k)], dtype=object)
    sums, common = np.zeros((k, k), dtype=object), 1
    for y in range(mechanism.outputs):
        scores = mechanism.scores.exact(y)
        wider = lcm(common, *(score.denominator for score in scores))
        if wider != common:  # rare: scores of different reports have much in common
            sums, common = sums * (wider // common), wider
        parts = [score.numerator * (common // score.denominator) for score in scores]
        sums += np.outer(rows[:, y], np.array(parts, dtype=object))
    biased = np.flatnonzero(
        (sums != np.eye(k, dtype=object) * (common * mechanism.denominator)).any(axis=1)
    )
    _demand(
        biased.size == 0,
        "scores_undo_the_channel",
        f"the estimate is biased for symbols {biased.tolist()}.",
    )


def fast_scores_match_exact_ones(mechanism: Mechanism) -> None:
    """``mean_scores``, ``total_scores``, ``squared_scores``, ``leverage`` and ``reach`` agree with ``exact_scores``."""
    name = "fast_scores_match_exact_ones"
    A = _score_table(mechanism)
    scale = float(np.abs(A).max())
    for f in (*np.eye(mechanism.outputs), _ramp(mechanism.outputs)):
        _close(mechanism.scores.mean(f), A @ f, scale, name, "mean_scores")
    for w in (*np.eye(mechanism.inputs), _ramp(mechanism.inputs)):
        _close(mechanism.scores.totals(w), w @ A, scale, name, "total_scores")
    _close(
        mechanism.scores.squares(),
        (A**2).sum(axis=0),
        mechanism.inputs * scale**2,
        name,
        "squared_scores",
    )
    _demand(
        scale * (1 - 1e-9) <= mechanism.scores.leverage <= scale * 1.01,
        name,
        "leverage is not the largest score.",
    )
    reach = mechanism.scores.reach
    _close(reach.highest, A.max(axis=1), scale, name, "the highest score in reach")
    _close(reach.lowest, A.min(axis=1), scale, name, "the lowest score in reach")
    heaviest = float(np.abs(A).sum(axis=0).max())
    _demand(
        heaviest * (1 - 1e-9) <= reach.heaviest,
        name,
        "a report weighs more than the heaviest one in reach.",
    )


def moments_match_the_scores(mechanism: Mechanism) -> None:
    """Variances, covariances and risks are those of the scores under the matrix."""
    name = "moments_match_the_scores"
    Q = np.array([_row(mechanism, x) for x in range(mechanism.inputs)])
    A = _score_table(mechanism)
    scale = float((A**2).max())
    for p in (np.full(mechanism.inputs, 1 / mechanism.inputs), _ramp(mechanism.inputs)):
        covariance = (A * (p @ Q)) @ A.T - np.outer(p, p)
        _close(
            mechanism.scores.variances(p, 5) * 5, covariance.diagonal(), scale, name, "variances"
        )
        _close(mechanism.scores.covariances(p, 5) * 5, covariance, scale, name, "covariances")
        _demand(
            mechanism.scores.risk(p)
            <= mechanism.scores.worst_risk() + _TOLERANCE * scale * mechanism.inputs,
            name,
            "a risk exceeds worst_risk.",
        )


def tallies_add_up(mechanism: Mechanism) -> None:
    """A tally of everything is the sum of tallies of its parts, in any order; strangers are refused."""
    name = "tallies_add_up"
    reports = np.arange(3 * mechanism.outputs) % mechanism.outputs
    whole = mechanism.tally(reports)
    parts = [mechanism.tally(part) for part in np.array_split(reports, 3)]
    _demand(
        whole == sum(parts) == sum(parts[::-1]),
        name,
        "tallies of parts do not add up to the whole.",
    )
    _demand(
        whole == mechanism.tally(iter(np.array_split(reports, 2))),
        name,
        "a stream counts differently.",
    )
    _close(
        mechanism.scores.unbiased(whole),
        mechanism.scores.mean(whole.counts / whole.reports),
        1.0,
        name,
        "unbiased",
    )
    try:
        mechanism.scores.unbiased(Tally(whole.counts, "another"))
    except WrongSurvey:
        return
    raise ExamFailed(name, "a tally with another fingerprint is accepted.")


def records_are_canonical(mechanism: Mechanism) -> None:
    """The record is canonical JSON, and another realisation has another fingerprint."""
    canonical_bytes(mechanism.record())
    twin = mechanism.at_word(mechanism.word_bits)
    _demand(
        twin.fingerprint == mechanism.fingerprint,
        "records_are_canonical",
        "a twin has another fingerprint.",
    )
    other = mechanism.at_word(mechanism.word_bits + (1 if mechanism.word_bits < 64 else -1))
    same_channel = all(
        mechanism.exact_row(x) == other.exact_row(x) for x in range(mechanism.inputs)
    )
    _demand(
        same_channel or other.fingerprint != mechanism.fingerprint,
        "records_are_canonical",
        "two different channels share a fingerprint.",
    )


# --- tools ------------------------------------------------------------------------------------------


class _CountingWords:
    """Words of a fixed key that remember how many were asked for."""

    def __init__(self) -> None:
        self.taken: list[int] = []

    def take(self, count: int, words: int = WORDS_PER_POSITION) -> Words:
        self.taken.append(count * words)
        return words_from(bytes(KEY_BYTES), 0, count)[:, :words]


class _KeyedWords:
    """Words from a key that is derived from a seed: repeatable, for the exam only."""

    def __init__(self, seed: int, symbol: int) -> None:
        self._key = hashlib.sha256(f"sfumato/exam/{seed}/{symbol}".encode()).digest()
        self._position = 0

    def take(self, count: int, words: int = WORDS_PER_POSITION) -> Words:
        drawn = words_from(self._key, self._position, count)[:, :words]
        self._position += count
        return drawn


def _shortened(mechanism: Mechanism) -> Mechanism:
    """The mechanism over the shortest word, or pair of words, of 12 bits or more that can hold it."""
    for word_bits in _short_words(mechanism):
        try:
            return mechanism.at_word(word_bits)
        except NothingToLearn:
            continue
    raise ExamFailed(
        "kernel_matches_integers",
        "no word that can be tried completely holds this mechanism; examine it at a larger ε.",
    )


def _short_words(mechanism: Mechanism) -> range:
    """Lengths that leave at most 2^20 draws to be tried; or 2^22 for a table, in which a report has some 16 of them."""
    if mechanism.words == 2:
        return range(6, 11)
    return (
        range(12, 19)
        if mechanism.row_classes()
        else range(max(12, (16 * mechanism.outputs).bit_length()), 23)
    )


def _every_word(mechanism: Mechanism) -> Iterator[Words]:
    """All draws there are, in chunks: the words of a draw are the digits of its number."""
    shifts = np.arange(mechanism.words, dtype=np.uint64)[::-1] * np.uint64(mechanism.word_bits)
    last = np.uint64((1 << mechanism.word_bits) - 1)
    for start in range(0, mechanism.denominator, _CHUNK):
        draws = np.arange(start, min(start + _CHUNK, mechanism.denominator), dtype=np.uint64)
        yield draws[:, None] >> shifts & last


def _row(mechanism: Mechanism, x: int) -> Floats:
    return np.array([float(q) for q in mechanism.exact_row(x)])


@lru_cache(maxsize=2)  # two checks ask for it, of the short and the full mechanism
def _score_table(mechanism: Mechanism) -> Floats:
    columns = [[float(a) for a in mechanism.scores.exact(y)] for y in range(mechanism.outputs)]
    return np.array(columns).T


def _chi_square(counts: np.typing.NDArray[np.int64], expected: Floats) -> tuple[float, int]:
    """Pearson's statistic over the cells that can occur, rare ones merged into one."""
    rare = expected < 10
    seen = np.append(counts[~rare], counts[rare].sum())
    wanted = np.append(expected[~rare], expected[rare].sum())
    kept = wanted > 0
    return float(((seen[kept] - wanted[kept]) ** 2 / wanted[kept]).sum()), int(kept.sum()) - 1


def _ramp(size: int) -> Floats:
    weights = np.arange(1.0, size + 1)
    return weights / weights.sum()


def _close(found: Floats, wanted: Floats, scale: float, check: str, what: str) -> None:
    worst = float(np.abs(found - wanted).max(initial=0.0))
    _demand(worst <= _TOLERANCE * max(scale, 1.0), check, f"{what} is off by {worst:.3g}.")


def _demand(condition: bool, check: str, message: str) -> None:
    if not condition:
        raise ExamFailed(check, message)
