"""Shuffling: the words decide the order, and nothing else does."""

from collections import Counter
from importlib import import_module
from itertools import permutations

import numpy as np
import pytest

import sfumato as sf
from sfumato.engines import local, privatize_files
from sfumato.randomness import shuffle
from sfumato.simulation import SeededWords
from sfumato.survey import survey as survey_module
from sfumato.tables import AnswerColumns, table

shuffle_module = import_module("sfumato.randomness.shuffle")

PLACES = [f"place {number}" for number in range(40)]
IN_CLEAR = sf.Survey("in-clear", sf.Uniform(PLACES, "inf"))
PRIVATE = sf.Survey("private", sf.Uniform(PLACES, 1))
ANSWERS = [place if number % 5 else None for number, place in enumerate(PLACES)]
SYMBOLS = [number for number in range(40) if number % 5]


class FixedWords:
    """A source whose words are known."""

    def __init__(self, words):
        self.words = words

    def take(self, count, words=2):
        assert (count, words) == (len(self.words), 1)
        return np.array(self.words, dtype=np.uint64).reshape(count, 1)


def test_every_order_of_words_gives_its_own_order_of_items():
    items = np.array([7, 8, 9, 10])
    orders = Counter()
    for words in permutations([0, 2**63 - 1, 2**63, 2**64 - 1]):
        order = shuffle(items, FixedWords(words)).tolist()
        assert order == [item for _, item in sorted(zip(words, items.tolist(), strict=True))]
        orders[tuple(order)] += 1
    assert orders == dict.fromkeys(permutations([7, 8, 9, 10]), 1)


def test_items_are_unchanged_and_may_be_equal():
    items = np.array([3, 3, 5], dtype=np.uint32)
    assert shuffle(items, FixedWords([9, 1, 4])).tolist() == [3, 5, 3]
    assert items.tolist() == [3, 3, 5]
    assert shuffle(items, FixedWords([1, 1, 0])).dtype == np.uint32
    assert shuffle(items[:0], FixedWords([])).size == 0


def _check_privatize():
    """Check the order of the reports for a column with missing answers."""
    source = SeededWords(1)
    reports = PRIVATE.mechanism.privatize(SYMBOLS, source)
    words = source.take(len(SYMBOLS), 1)[:, 0]
    batch = PRIVATE.privatize(ANSWERS, SeededWords(1), missing="skip")
    assert batch.numbers.tolist() == reports[np.argsort(words)].tolist()


def _check_files(folder, monkeypatch):
    """Check the order of the reports for files with missing answers, over several batches."""
    monkeypatch.setattr(table, "BATCH_ROWS", 7)
    monkeypatch.setattr(local, "_BATCH_SIZE", 9)
    monkeypatch.setattr(shuffle_module, "SystemWords", lambda: SeededWords(2))
    paths = []
    for name, answers in (("a.csv", ANSWERS[:15]), ("b.csv", ANSWERS[15:])):
        rows = "".join(f"1,{answer or ''}\n" for answer in answers)
        (folder / name).write_text(f"id,place\n{rows}")
        paths.append(str(folder / name))
    columns = AnswerColumns("place", missing="skip")
    batches = list(privatize_files(IN_CLEAR, paths, columns))
    reports = IN_CLEAR.mechanism.privatize(SYMBOLS)  # without noise
    words = SeededWords(2).take(len(SYMBOLS), 1)[:, 0]
    assert np.concatenate(batches).tolist() == reports[np.argsort(words)].tolist()


def test_privatize_shuffles_if_it_skips():
    _check_privatize()


def test_privatize_files_shuffles_all_files_if_it_skips(tmp_path, monkeypatch):
    _check_files(tmp_path, monkeypatch)


def test_reports_that_keep_their_order_are_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(survey_module, "shuffle", lambda items, source: items)
    with pytest.raises(AssertionError):
        _check_privatize()
    monkeypatch.setattr(local, "shuffle", lambda items: items)
    with pytest.raises(AssertionError):
        _check_files(tmp_path, monkeypatch)


def test_each_file_shuffled_alone_is_noticed(tmp_path, monkeypatch):
    def shuffle_batches(batches):
        for batch in batches:
            yield shuffle(batch)

    monkeypatch.setattr(local, "_shuffle_all", shuffle_batches)
    with pytest.raises(AssertionError):
        _check_files(tmp_path, monkeypatch)


def test_nothing_is_shuffled_without_skipping():
    answers = [place for place in PLACES if place != "place 3"]
    numbers = PRIVATE.privatize(answers, SeededWords(1)).numbers
    symbols = [symbol for symbol in range(40) if symbol != 3]
    assert numbers.tolist() == PRIVATE.mechanism.privatize(symbols, SeededWords(1)).tolist()
