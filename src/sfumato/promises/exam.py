"""The exam that every mechanism, built-in or custom, must pass: all of its claims must be true.

A finite channel is a matrix, so nearly everything is checked exactly. The mechanism is realized
over words so short that its production kernel can be run on every word for every symbol. The counts
of its reports must equal the claimed integers exactly. A statistical test over full-length words is
a second, weaker check.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import lcm

import numpy as np

from sfumato.errors import (
    ExamFailed,
    InvalidArgument,
    NothingToLearn,
    PrivacyViolation,
    WrongSurvey,
)
from sfumato.foundation.arrays import Floats, Words
from sfumato.foundation.canonical import canonical_bytes
from sfumato.foundation.correct_call import shows_call
from sfumato.foundation.notebook import FieldsView
from sfumato.mechanisms import Mechanism, MechanismHolder, require_mechanism
from sfumato.promises.certificate import MAX_ENUMERATED_OUTPUTS, certify
from sfumato.promises.structure import check_structure
from sfumato.randomness import KEY_BYTES, WORDS_PER_POSITION, words_from
from sfumato.tally import Tally

ALPHA = 1e-6
"""The maximum probability that a correct mechanism fails the statistical check."""

_MAX_UNSTRUCTURED_ENTRIES = 2**19  # channels that claim no structure are examined up to this size
_CHUNK_SIZE = 2**16  # draws per kernel call
_REPORT_COUNT = 2**19  # reports in the statistical check
_TOLERANCE = 1e-9  # the largest float error, relative to the scale of the values


@dataclass(frozen=True)
class ExamReport(FieldsView):
    """The names of the checks that passed, and the length in bits of the short words."""

    passed: tuple[str, ...]
    word_bits: int


@shows_call("sf.check_mechanism(mechanism)")
def check_mechanism(mechanism: Mechanism | MechanismHolder, *, seed: int = 0) -> ExamReport:
    """Run every check on a mechanism, or a survey's; raise ``ExamFailed`` at the first failure.

    The mechanism may have up to 512 outputs, or up to 2^19 entries in its matrix if it claims no
    structure. ``seed`` selects the words for the statistical check.

    >>> from sfumato.contexts import Blocks
    >>> from sfumato.mechanisms import BlockResponse
    >>> check_mechanism(BlockResponse(Blocks([0, 0, 1], epsilon=1))).word_bits
    12
    """
    mechanism = require_mechanism(mechanism, "check_mechanism(mechanism)")
    entry_count = mechanism.inputs * mechanism.outputs
    is_small_table = not mechanism.row_classes() and entry_count <= _MAX_UNSTRUCTURED_ENTRIES
    if mechanism.outputs > MAX_ENUMERATED_OUTPUTS and not is_small_table:
        raise InvalidArgument(
            f"the exam accepts at most {MAX_ENUMERATED_OUTPUTS} outputs, or "
            f"{_MAX_UNSTRUCTURED_ENTRIES} entries if the channel claims no structure. Check a "
            "smaller instance."
        )
    short_version = _shorten(mechanism)
    both_versions = (short_version, mechanism)
    checks: list[tuple[Callable[[Mechanism], None], tuple[Mechanism, ...]]] = [
        (rows_sum_to_one, both_versions),
        (kernel_matches_integers, (short_version,)),
        (keeps_its_context, both_versions),
        (structure_is_as_claimed, both_versions),
        (formula_is_met, (mechanism,)),
        (transforms_match_the_matrix, both_versions),
        (scores_undo_the_channel, both_versions),
        (fast_scores_match_exact_ones, both_versions),
        (moments_match_the_scores, both_versions),
        (reports_are_a_pure_function, both_versions),
        (words_do_not_depend_on_the_symbol, (mechanism,)),
        (tallies_add_up, (mechanism,)),
        (records_are_canonical, both_versions),
    ]
    passed = []
    for check, instances in checks:
        for instance in instances:
            check(instance)
        passed.append(check.__name__)
    sampler_matches_its_matrix(mechanism, seed)
    passed.append(sampler_matches_its_matrix.__name__)
    return ExamReport(tuple(passed), short_version.word_bits)


# --- sampling -------------------------------------------------------------------------------------


def kernel_matches_integers(mechanism: Mechanism) -> None:
    """Check that the production kernel, run on every word, matches ``integer_row``."""
    for x in range(mechanism.inputs):
        counts = np.zeros(mechanism.outputs, dtype=np.int64)
        for words in _all_draws(mechanism):
            reports = mechanism.reports_from(np.full(len(words), x), words)
            counts += np.bincount(reports, minlength=mechanism.outputs)
        matches = counts.tolist() == mechanism.integer_row(x)
        _require(
            matches, "kernel_matches_integers", f"row {x} does not match the kernel's reports."
        )


def reports_are_a_pure_function(mechanism: Mechanism) -> None:
    """Check that a report depends only on its symbol and words, not on other reports or calls.

    In particular, one person's report, which is computed from Python integers, is the same as in a
    batch.
    """
    symbols = np.arange(4 * mechanism.inputs) % mechanism.inputs
    words = words_from(bytes(KEY_BYTES), 0, symbols.size)[:, : mechanism.words]
    words = words >> np.uint64(64 - mechanism.word_bits)
    reports = mechanism.reports_from(symbols, words).tolist()
    reversed_reports = mechanism.reports_from(symbols[::-1], words[::-1]).tolist()
    single_reports = []
    for i in range(symbols.size):
        report = mechanism.reports_from(symbols[i : i + 1], words[i : i + 1])
        single_reports.append(int(report[0]))
    is_pure = reports == reversed_reports[::-1] == single_reports
    _require(
        is_pure,
        "reports_are_a_pure_function",
        "a report depends on more than its symbol and words.",
    )


def words_do_not_depend_on_the_symbol(mechanism: Mechanism) -> None:
    """Check that ``privatize`` reads the same number of words for every symbol, in one call."""
    read_counts = set()
    for x in range(mechanism.inputs):
        source = _CountingWords()
        mechanism.privatize(np.full(10, x), source)
        read_counts.add(tuple(source.counts))
    _require(
        read_counts == {(10 * mechanism.words,)},
        "words_do_not_depend_on_the_symbol",
        f"privatize must read {10 * mechanism.words} words for 10 symbols, in one call, whatever "
        "the symbols are.",
    )


def sampler_matches_its_matrix(mechanism: Mechanism, seed: int = 0) -> None:
    """Test reports from full-length words against the matrix, using χ² tests.

    The significance levels of the tests, one per symbol, add up to 1e-6.
    """
    from scipy.stats import chi2

    name = "sampler_matches_its_matrix"
    sample_size = _REPORT_COUNT // mechanism.inputs
    for x in range(mechanism.inputs):
        reports = mechanism.privatize(np.full(sample_size, x), _KeyedWords(seed, x))
        counts = np.bincount(reports, minlength=mechanism.outputs)
        expected_counts = sample_size * _float_row(mechanism, x)
        impossible_count = counts[expected_counts == 0].sum()
        _require(
            impossible_count == 0, name, f"symbol {x} produces a report that has probability 0."
        )
        statistic, degrees_of_freedom = _chi_square(counts, expected_counts)
        if degrees_of_freedom == 0:
            continue
        critical_value = chi2.isf(ALPHA / mechanism.inputs, degrees_of_freedom)
        _require(
            statistic <= critical_value,
            name,
            f"symbol {x}: χ² = {statistic:.1f} exceeds {critical_value:.1f} (seed {seed}, "
            f"n = {sample_size}).",
        )


# --- the channel ----------------------------------------------------------------------------------


def rows_sum_to_one(mechanism: Mechanism) -> None:
    """Check that each row has one non-negative entry per output, and sums to exactly 1."""
    for x in range(mechanism.inputs):
        row = mechanism.integer_row(x)
        is_well_formed = len(row) == mechanism.outputs and min(row) >= 0
        sums_to_one = sum(row) == mechanism.denominator and sum(mechanism.exact_row(x)) == 1
        is_valid = is_well_formed and sums_to_one
        _require(
            is_valid,
            "rows_sum_to_one",
            f"row {x} is not a probability distribution over the outputs.",
        )


def keeps_its_context(mechanism: Mechanism) -> None:
    """Check the promise in integer arithmetic.

    For every pair of symbols, the probabilities of every output must satisfy the bound E of the
    context.
    """
    try:
        certify(mechanism)
    except PrivacyViolation as violation:
        raise ExamFailed("keeps_its_context", str(violation)) from violation


def structure_is_as_claimed(mechanism: Mechanism) -> None:
    """Check that the claims of ``row_classes`` are true and imply the promise."""
    classes = mechanism.row_classes()
    try:
        if classes:
            check_structure(mechanism, mechanism.context, classes)
    except PrivacyViolation as violation:
        raise ExamFailed("structure_is_as_claimed", str(violation)) from violation


def formula_is_met(mechanism: Mechanism) -> None:
    """Check that the integers match the published formula to within 1e-9."""
    for x in range(mechanism.inputs):
        row = _float_row(mechanism, x)
        _require_close(row, mechanism.ideal_row(x), 1.0, "formula_is_met", f"row {x}")


def transforms_match_the_matrix(mechanism: Mechanism) -> None:
    """Check that ``forward`` and ``adjoint`` multiply by the matrix, on unit vectors and a ramp."""
    name = "transforms_match_the_matrix"
    Q = _float_matrix(mechanism)
    _require_close(mechanism.matrix(), Q, 1.0, name, "matrix")
    for p in (*np.eye(mechanism.inputs), _ramp(mechanism.inputs)):
        _require_close(mechanism.forward(p), p @ Q, 1.0, name, "forward")
    for v in (*np.eye(mechanism.outputs), _ramp(mechanism.outputs)):
        _require_close(mechanism.adjoint(v), Q @ v, 1.0, name, "adjoint")


# --- scores ---------------------------------------------------------------------------------------


def scores_undo_the_channel(mechanism: Mechanism) -> None:
    """Check in exact arithmetic that ``Σ_y Q(y|x2) A[x, y]`` is 1 if x = x2, and 0 otherwise."""
    k = mechanism.inputs
    rows = np.array(list(map(mechanism.integer_row, range(k))), dtype=object)
    sums = np.zeros((k, k), dtype=object)
    denominator = 1  # the common denominator of all scores so far
    for y in range(mechanism.outputs):
        scores = mechanism.scores.exact_column(y)
        new_denominator = lcm(denominator, *(score.denominator for score in scores))
        if new_denominator != denominator:  # rare: most reports have the same denominators
            sums = sums * (new_denominator // denominator)
            denominator = new_denominator
        numerators = [score.numerator * (denominator // score.denominator) for score in scores]
        column = rows[:, y]
        sums += np.outer(column, np.array(numerators, dtype=object))
    identity = np.eye(k, dtype=object) * (denominator * mechanism.denominator)
    biased_symbols = np.flatnonzero((sums != identity).any(axis=1))
    _require(
        biased_symbols.size == 0,
        "scores_undo_the_channel",
        f"the estimate is biased for reports of symbols {biased_symbols.tolist()}.",
    )


def fast_scores_match_exact_ones(mechanism: Mechanism) -> None:
    """Check the mean, totals, squares, leverage and reach against the exact scores."""
    name = "fast_scores_match_exact_ones"
    scores = mechanism.scores
    A = _score_table(mechanism)
    scale = float(np.abs(A).max())
    for f in (*np.eye(mechanism.outputs), _ramp(mechanism.outputs)):
        _require_close(scores.mean(f), A @ f, scale, name, "mean")
    for w in (*np.eye(mechanism.inputs), _ramp(mechanism.inputs)):
        _require_close(scores.totals(w), w @ A, scale, name, "totals")
    squares = (A**2).sum(axis=0)
    _require_close(scores.squares(), squares, mechanism.inputs * scale**2, name, "squares")
    _require(
        scale * (1 - 1e-9) <= scores.leverage <= scale * 1.01,
        name,
        "leverage is not the largest absolute score.",
    )
    reach = scores.reach
    _require_close(reach.highest, A.max(axis=1), scale, name, "reach.highest")
    _require_close(reach.lowest, A.min(axis=1), scale, name, "reach.lowest")
    max_absolute_sum = float(np.abs(A).sum(axis=0).max())
    _require(
        max_absolute_sum * (1 - 1e-9) <= reach.max_absolute_sum,
        name,
        "reach.max_absolute_sum is too small.",
    )


def moments_match_the_scores(mechanism: Mechanism) -> None:
    """Check the variances, covariances and risks against the scores and the matrix."""
    name = "moments_match_the_scores"
    scores = mechanism.scores
    Q = _float_matrix(mechanism)
    A = _score_table(mechanism)
    scale = float((A**2).max())
    uniform = np.full(mechanism.inputs, 1 / mechanism.inputs)
    for p in (uniform, _ramp(mechanism.inputs)):
        q = p @ Q
        covariances = (A * q) @ A.T - np.outer(p, p)
        variances = covariances.diagonal()
        _require_close(scores.variances(p, 5) * 5, variances, scale, name, "variances")
        _require_close(scores.covariances(p, 5) * 5, covariances, scale, name, "covariances")
        max_risk = scores.worst_risk() + _TOLERANCE * scale * mechanism.inputs
        _require(scores.risk(p) <= max_risk, name, "a risk exceeds worst_risk.")


def tallies_add_up(mechanism: Mechanism) -> None:
    """Check that tallies add up in any order, and that a different fingerprint is rejected."""
    name = "tallies_add_up"
    reports = np.arange(3 * mechanism.outputs) % mechanism.outputs
    total = mechanism.tally(reports)
    parts = [mechanism.tally(part) for part in np.array_split(reports, 3)]
    parts_match = total == sum(parts) == sum(parts[::-1])
    _require(parts_match, name, "the tallies of the parts do not add up to the total.")
    streamed = mechanism.tally(iter(np.array_split(reports, 2)))
    _require(total == streamed, name, "a stream of the same reports has a different tally.")
    expected = mechanism.scores.mean(total.counts / total.reports)
    _require_close(mechanism.scores.unbiased(total), expected, 1.0, name, "unbiased")
    try:
        mechanism.scores.unbiased(Tally(total.counts, "another"))
    except WrongSurvey:
        return
    raise ExamFailed(name, "a tally with a different fingerprint was accepted.")


def records_are_canonical(mechanism: Mechanism) -> None:
    """Check that the record has a canonical form, and that the fingerprint identifies the channel.

    An identical copy must have the same fingerprint, and a different channel must have a different
    one.
    """
    name = "records_are_canonical"
    canonical_bytes(mechanism.to_record())
    word_bits = mechanism.word_bits
    copy = mechanism.with_word_bits(word_bits)
    has_same_fingerprint = copy.fingerprint == mechanism.fingerprint
    _require(has_same_fingerprint, name, "an identical mechanism has a different fingerprint.")
    other_word_bits = word_bits + 1 if word_bits < 64 else word_bits - 1
    other_mechanism = mechanism.with_word_bits(other_word_bits)
    is_same_channel = all(
        mechanism.exact_row(x) == other_mechanism.exact_row(x) for x in range(mechanism.inputs)
    )
    _require(
        is_same_channel or other_mechanism.fingerprint != mechanism.fingerprint,
        name,
        "two different channels share a fingerprint.",
    )


# --- helpers --------------------------------------------------------------------------------------


class _CountingWords:
    """Words from a fixed key; ``counts`` lists how many words each call has read."""

    def __init__(self) -> None:
        self.counts: list[int] = []

    def take(self, count: int, words_per_position: int = WORDS_PER_POSITION) -> Words:
        self.counts.append(count * words_per_position)
        return words_from(bytes(KEY_BYTES), 0, count)[:, :words_per_position]


class _KeyedWords:
    """Reproducible words from a key derived from a seed and a symbol. For the exam only."""

    def __init__(self, seed: int, symbol: int) -> None:
        self._key = hashlib.sha256(f"sfumato/exam/{seed}/{symbol}".encode()).digest()
        self._position = 0

    def take(self, count: int, words_per_position: int = WORDS_PER_POSITION) -> Words:
        drawn = words_from(self._key, self._position, count)[:, :words_per_position]
        self._position += count
        return drawn


def _shorten(mechanism: Mechanism) -> Mechanism:
    """Return the mechanism over the shortest words, among those to try, that can realize it."""
    for word_bits in _word_lengths_to_try(mechanism):
        try:
            return mechanism.with_word_bits(word_bits)
        except NothingToLearn:
            continue
    raise ExamFailed(
        "kernel_matches_integers",
        "this mechanism cannot be realized with words short enough for all of them to be tried. "
        "Check it with a larger ε.",
    )


def _word_lengths_to_try(mechanism: Mechanism) -> range:
    """Return the word lengths to try, in bits.

    There are at most 2^20 different draws, or 2^22 for a mechanism that claims no structure; such a
    mechanism needs about 16 draws per output.
    """
    if mechanism.words == 2:
        return range(6, 11)
    if mechanism.row_classes():
        return range(12, 19)
    return range(max(12, (16 * mechanism.outputs).bit_length()), 23)


def _all_draws(mechanism: Mechanism) -> Iterator[Words]:
    """Yield all possible draws in chunks; the words of a draw are the digits of its index."""
    digit_positions = np.arange(mechanism.words, dtype=np.uint64)[::-1]
    shifts = digit_positions * np.uint64(mechanism.word_bits)
    mask = np.uint64((1 << mechanism.word_bits) - 1)
    for start in range(0, mechanism.denominator, _CHUNK_SIZE):
        stop = min(start + _CHUNK_SIZE, mechanism.denominator)
        draws = np.arange(start, stop, dtype=np.uint64)
        yield draws[:, None] >> shifts & mask


def _float_row(mechanism: Mechanism, x: int) -> Floats:
    return np.array([float(q) for q in mechanism.exact_row(x)])


def _float_matrix(mechanism: Mechanism) -> Floats:
    return np.array([_float_row(mechanism, x) for x in range(mechanism.inputs)])


@lru_cache(maxsize=2)  # two checks use it, each for short and full-length words
def _score_table(mechanism: Mechanism) -> Floats:
    columns = []
    for y in range(mechanism.outputs):
        columns.append([float(a) for a in mechanism.scores.exact_column(y)])
    return np.array(columns).T


def _chi_square(counts: np.typing.NDArray[np.int64], expected_counts: Floats) -> tuple[float, int]:
    """Return Pearson's statistic and its degrees of freedom.

    ``expected_counts`` has an entry for each report. Rare reports are merged into one, which
    is left out if it cannot occur.
    """
    is_rare = expected_counts < 10
    merged_counts = np.append(counts[~is_rare], counts[is_rare].sum())
    merged_expected = np.append(expected_counts[~is_rare], expected_counts[is_rare].sum())
    can_occur = merged_expected > 0
    merged_expected = merged_expected[can_occur]
    terms = (merged_counts[can_occur] - merged_expected) ** 2 / merged_expected
    return float(terms.sum()), merged_expected.size - 1


def _ramp(size: int) -> Floats:
    """Return a distribution whose probabilities increase linearly."""
    weights = np.arange(1.0, size + 1)
    return weights / weights.sum()


def _require_close(
    actual: Floats, expected: Floats, scale: float, check: str, quantity: str
) -> None:
    error = float(np.abs(actual - expected).max(initial=0.0))
    _require(error <= _TOLERANCE * max(scale, 1.0), check, f"{quantity} is off by {error:.3g}.")


def _require(condition: bool, check: str, message: str) -> None:
    if not condition:
        raise ExamFailed(check, message)
