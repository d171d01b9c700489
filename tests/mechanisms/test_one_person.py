"""One person at a time: the same kernel on Python integers, with the same reports as in a batch."""

import os

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import EntropyUnavailable, InvalidSymbols
from sfumato.promises.exam import _all_draws, _shorten
from sfumato.randomness import KEY_BYTES, WORDS_PER_POSITION, words_from
from support.mechanism_examples import ALL_REPRESENTATIVES, EXAMPLES

ALL_EXAMPLES = [mechanism for examples in EXAMPLES.values() for mechanism in examples]
LAST_WORD = 2**64 - 1
MAX_DRAWS = 2**12
PLAIN = sf.PlainResponse(sf.Uniform(5, 1))
TWO_WORDS = PLAIN.then([[1, 0]] * 8)


class FixedWords:
    """A source that returns the given words and counts how often it is asked for some."""

    def __init__(self, words):
        self.words = words
        self.calls = 0

    def take(self, count, words=WORDS_PER_POSITION):
        self.calls += 1
        assert self.words.shape == (count, words)
        return self.words


def full_length_words(mechanism):
    """Return draws of 64-bit words: extreme ones, and 40 under a fixed key."""
    extremes = [0, 1, 2**32, 2**63 - 1, 2**63, LAST_WORD - 1, LAST_WORD]
    pairs = [[first, second] for first in extremes for second in (0, 2**63, LAST_WORD)]
    keyed = words_from(bytes(KEY_BYTES), 0, 40)
    return np.concatenate([np.array(pairs, dtype=np.uint64), keyed])[:, : mechanism.words]


@pytest.mark.parametrize("mechanism", ALL_EXAMPLES, ids=repr)
def test_one_at_a_time_and_in_a_batch_reports_are_equal(mechanism):
    draws = full_length_words(mechanism)
    for x in range(mechanism.inputs):
        batch = mechanism.privatize(np.full(len(draws), x), FixedWords(draws))
        single = [mechanism.privatize([x], FixedWords(draw[None]))[0] for draw in draws]
        assert single == batch.tolist()


@pytest.mark.parametrize("mechanism", ALL_REPRESENTATIVES, ids=repr)
def test_every_short_draw_gives_the_same_report_as_in_a_batch(mechanism):
    """Boundaries between two reports are as exact for one person as in the integers."""
    short = _shorten(mechanism)
    step = max(short.denominator // MAX_DRAWS, 1)
    draws = np.concatenate(list(_all_draws(short)))[::step]
    for x in {0, short.inputs // 2, short.inputs - 1}:
        batch = short.reports_from(np.full(len(draws), x), draws).tolist()
        assert [short._respond(x, draw) for draw in draws.tolist()] == batch


@pytest.mark.parametrize("mechanism", ALL_REPRESENTATIVES, ids=repr)
def test_a_kernel_computes_one_report_in_python_integers(mechanism):
    """A NumPy number in the kernel would be slow, and could wrap or lose precision."""
    for x in range(mechanism.inputs):
        report = mechanism._respond(x, [LAST_WORD] * mechanism.words)
        assert type(report) is int
        assert 0 <= report < mechanism.outputs


@pytest.mark.parametrize("mechanism", ALL_REPRESENTATIVES, ids=repr)
def test_a_batch_leaves_symbols_and_words_unchanged(mechanism):
    draws = full_length_words(mechanism)
    symbols = np.arange(len(draws)) % mechanism.inputs
    symbols_before = symbols.copy()
    draws_before = draws.copy()
    mechanism.reports_from(symbols, draws)
    assert np.array_equal(symbols, symbols_before)
    assert np.array_equal(draws, draws_before)


@pytest.mark.parametrize("container", [list, tuple, np.array], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("number", [3, np.int64(3), np.uint8(3), np.uint64(3), np.int32(3)])
def test_one_symbol_of_any_integer_type_is_accepted(container, number):
    words = np.array([[LAST_WORD]], dtype=np.uint64)
    report = PLAIN.privatize(container([number]), FixedWords(words))
    assert report.dtype == np.uint32
    assert report.tolist() == PLAIN.reports_from([3, 3], np.repeat(words, 2, axis=0)).tolist()[:1]


@pytest.mark.parametrize(
    "symbols",
    [3, np.int64(3), np.array(3), "3", ["3"], [3.0], [True], [None], [-1], [5], [2**64], [2**70]],
    ids=repr,
)
def test_anything_but_a_vector_of_symbols_is_rejected(symbols):
    with pytest.raises(InvalidSymbols) as caught:
        PLAIN.privatize(symbols)
    assert caught.value.__context__ is None
    assert str(2**64) not in str(caught.value)
    assert str(2**70) not in str(caught.value)


def test_a_survey_reports_one_label_as_in_a_batch():
    survey = sf.Survey("tea", sf.Uniform(["black", "green", "none"], 1))
    draws = full_length_words(survey.mechanism)
    for label in survey.context.domain.labels:
        batch = survey.privatize([label] * len(draws), FixedWords(draws))
        single = [survey.privatize([label], FixedWords(draw[None])) for draw in draws]
        assert [reports.numbers[0] for reports in single] == batch.numbers.tolist()
        assert {reports.fingerprint for reports in single} == {survey.fingerprint}


def test_a_survey_reads_single_labels_as_before():
    numbers = sf.Survey("age", sf.Uniform([18, 65], 1))
    draw = np.array([[0]], dtype=np.uint64)
    expected = numbers.privatize([65], FixedWords(draw))
    for answer in (np.int64(65), "65", 65.0, "65.0", np.str_("65")):
        assert numbers.privatize([answer], FixedWords(draw)) == expected
    for answers in ("65", 65, np.int64(65)):
        with pytest.raises(InvalidSymbols, match="a list or a column"):
            numbers.privatize(answers)
    with pytest.raises(sf.errors.UnknownValue) as caught:
        numbers.privatize(["sixty-five"])
    assert "sixty-five" not in str(caught.value)


# --- words for one person -------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", [PLAIN, TWO_WORDS], ids=["one word", "two words"])
def test_every_report_draws_fresh_bytes(monkeypatch, mechanism):
    draw = os.urandom
    sizes = []

    def record_size(count):
        sizes.append(count)
        return draw(count)

    monkeypatch.setattr(os, "urandom", record_size)
    for x in range(mechanism.inputs):
        mechanism.privatize([x])
    assert sizes == [2 * KEY_BYTES] * mechanism.inputs


@pytest.mark.parametrize("mechanism", [PLAIN, TWO_WORDS], ids=["one word", "two words"])
def test_one_report_uses_the_first_bytes_of_a_fresh_key(monkeypatch, mechanism):
    draws = [os.urandom(2 * KEY_BYTES) for _ in range(20)]
    waiting = iter(draws)
    monkeypatch.setattr(os, "urandom", lambda _count: next(waiting))
    reports = [int(mechanism.privatize([3])[0]) for _ in draws]
    expected = []
    for drawn in draws:
        words = [int.from_bytes(drawn[i : i + 8], "little") for i in (0, 8)][: mechanism.words]
        word_array = np.array([words], dtype=np.uint64)
        expected.append(int(mechanism.reports_from([3], word_array)[0]))
    assert reports == expected


def test_no_report_without_entropy(monkeypatch):
    def no_device(_count):
        raise OSError("no random device")

    monkeypatch.setattr(os, "urandom", no_device)
    with pytest.raises(EntropyUnavailable):
        PLAIN.privatize([3])


@pytest.mark.parametrize("mechanism", ALL_REPRESENTATIVES, ids=repr)
def test_every_symbol_needs_the_same_words(mechanism):
    """``FixedWords`` fails unless it is asked for exactly the mechanism's words."""
    for x in range(mechanism.inputs):
        source = FixedWords(np.zeros((1, mechanism.words), dtype=np.uint64))
        mechanism.privatize([x], source)
        assert source.calls == 1


@pytest.mark.parametrize("dtype", [np.int64, np.float64, np.uint32])
def test_words_of_another_type_are_rejected(dtype):
    for people in (1, 2):
        with pytest.raises(InvalidSymbols, match="uint64 array"):
            PLAIN.privatize([3] * people, FixedWords(np.zeros((people, 1), dtype=dtype)))
