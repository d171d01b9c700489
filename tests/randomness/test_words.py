"""Words: AES-256 by position, fresh keys, and errors without entropy."""

import ast
import copy
import os
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import ECB

import sfumato
from sfumato.contexts import Uniform
from sfumato.errors import EntropyUnavailable, SfumatoError
from sfumato.mechanisms import PlainResponse
from sfumato.randomness import (
    KEY_BYTES,
    WORDS_PER_POSITION,
    SystemWords,
    words_at,
    words_from,
)
from support.child_process import run_in_child

KEY = bytes(range(KEY_BYTES))
SOURCES = sorted(Path(sfumato.__file__).parent.rglob("*.py"))


def _naive_words(key: bytes, position: int) -> list[int]:
    """Return one AES block as two little-endian integers, without counter mode or NumPy."""
    block = Cipher(AES(key), ECB()).encryptor().update(position.to_bytes(16, "big"))
    return [int.from_bytes(block[:8], "little"), int.from_bytes(block[8:], "little")]


# --- words by position ----------------------------------------------------------------------------


def test_words_match_a_published_aes_256_vector():
    """FIPS 197, appendix C.3."""
    position = 0x00112233445566778899AABBCCDDEEFF
    expected = bytes.fromhex("8ea2b7ca516745bfeafc49904b496089")
    assert words_from(KEY, position, 1).astype("<u8").tobytes() == expected


@pytest.mark.parametrize(
    "first", [0, 1, 255, 2**32 - 2, 2**63 - 1, 2**64 - 2, 2**96 - 3, 2**127, 2**128 - 5]
)
@pytest.mark.parametrize(
    "key", [bytes(KEY_BYTES), KEY, b"\xff" * KEY_BYTES], ids=["zeros", "ramp", "ones"]
)
def test_words_are_aes_of_their_position(key, first):
    words = words_from(key, first, 5)
    assert words.tolist() == [_naive_words(key, first + i) for i in range(5)]


def test_words_have_type_uint64_and_two_per_position():
    words = words_from(KEY, 7, 3)
    assert words.dtype == np.uint64
    assert words.shape == (3, WORDS_PER_POSITION)


@pytest.mark.parametrize("cut", [0, 1, 2, 499, 500, 999, 1000])
def test_chunks_agree_with_the_whole(cut):
    first = 2**64 - 500
    complete = words_from(KEY, first, 1000)
    parts = np.concatenate([words_from(KEY, first, cut), words_from(KEY, first + cut, 1000 - cut)])
    assert np.array_equal(complete, parts)


def test_taking_no_words_returns_an_empty_array():
    assert words_from(KEY, 0, 0).shape == (0, WORDS_PER_POSITION)
    assert SystemWords().take(0).shape == (0, WORDS_PER_POSITION)


def test_different_keys_give_different_words():
    assert not np.array_equal(words_from(KEY, 0, 4), words_from(KEY[::-1], 0, 4))


@pytest.mark.parametrize("length", [0, 16, 24, 31, 33, 64])
def test_keys_of_the_wrong_length_raise(length):
    with pytest.raises(ValueError, match="32 bytes"):
        words_from(bytes(length), 0, 1)


@pytest.mark.parametrize(("first", "count"), [(-1, 1), (0, -1), (2**128, 1), (2**128 - 1, 2)])
def test_positions_beyond_128_bits_raise_instead_of_wrapping(first, count):
    with pytest.raises(ValueError, match="positions"):
        words_from(KEY, first, count)


def test_last_position_is_allowed():
    assert words_from(KEY, 2**128 - 1, 1).tolist() == [_naive_words(KEY, 2**128 - 1)]


def test_words_at_matches_words_from():
    positions = [7, 0, 2**128 - 1, 7, 2**64]
    words = words_at(KEY, b"".join(position.to_bytes(16, "big") for position in positions))
    assert words.tolist() == [_naive_words(KEY, position) for position in positions]
    assert words.dtype == np.uint64


def test_words_at_no_positions_is_empty():
    assert words_at(KEY, b"").shape == (0, WORDS_PER_POSITION)


def test_words_at_rejects_wrong_lengths():
    with pytest.raises(ValueError, match="32 bytes"):
        words_at(KEY[:-1], bytes(16))
    with pytest.raises(ValueError, match="16 bytes each; got 17"):
        words_at(KEY, bytes(17))


# --- without entropy, nothing goes out ------------------------------------------------------------


def _no_device(count: int) -> bytes:
    raise OSError("no random device")


def _no_source(count: int) -> bytes:
    raise NotImplementedError("no randomness source found")


BROKEN = {
    "os error": _no_device,
    "not implemented": _no_source,
    "stuck at zero": bytes,
    "stuck at one byte": lambda count: b"\x5a" * count,
    "gives nothing": lambda count: b"",
    "gives too little": lambda count: os.getpid().to_bytes(KEY_BYTES, "big"),
}


@pytest.mark.parametrize("urandom", BROKEN.values(), ids=BROKEN.keys())
def test_missing_entropy_raises(monkeypatch, urandom):
    monkeypatch.setattr(os, "urandom", urandom)
    with pytest.raises(EntropyUnavailable, match="nothing was privatised"):
        SystemWords().take(3)


@pytest.mark.parametrize("urandom", BROKEN.values(), ids=BROKEN.keys())
def test_missing_entropy_stops_privatising(monkeypatch, urandom):
    mechanism = PlainResponse(Uniform(3, 1.0))
    monkeypatch.setattr(os, "urandom", urandom)
    with pytest.raises(SfumatoError):
        mechanism.privatize([0, 1, 2])


def test_entropy_failing_midway_releases_no_report(monkeypatch):
    """The first chunk has words, a later one has none: not even the first reports appear."""
    mechanism = PlainResponse(Uniform(3, 1.0))
    draw = os.urandom
    calls = []

    def draw_once(count):
        calls.append(count)
        return draw(count) if len(calls) == 1 else _no_device(count)

    monkeypatch.setattr(os, "urandom", draw_once)
    with pytest.raises(EntropyUnavailable):
        mechanism.privatize(np.zeros(200_000, dtype=np.int64))
    assert len(calls) == 2


def test_missing_entropy_keeps_its_cause(monkeypatch):
    monkeypatch.setattr(os, "urandom", _no_device)
    with pytest.raises(EntropyUnavailable) as caught:
        SystemWords().take(1)
    assert isinstance(caught.value.__cause__, OSError)


# --- the source has no state to share -------------------------------------------------------------


def test_takes_and_sources_differ():
    source = SystemWords()
    same_source = [source.take(8).tobytes() for _ in range(20)]
    new_sources = [SystemWords().take(8).tobytes() for _ in range(20)]
    assert len({*same_source, *new_sources}) == 40


def test_every_take_draws_a_new_key(monkeypatch):
    keys = []
    draw = os.urandom

    def record_key(count):
        key = draw(count)
        keys.append(key)
        return key

    monkeypatch.setattr(os, "urandom", record_key)
    source = SystemWords()
    takes = [source.take(2).tolist(), source.take(2).tolist()]
    assert [words_from(key[:KEY_BYTES], 0, 2).tolist() for key in keys] == takes


@pytest.mark.parametrize(
    "duplicate", [pickle.dumps, copy.copy, copy.deepcopy], ids=["pickle", "copy", "deepcopy"]
)
def test_sources_cannot_be_copied_or_pickled(duplicate):
    with pytest.raises(TypeError, match="Create a new one"):
        duplicate(SystemWords())


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_sources_refuse_every_pickle_protocol(protocol):
    with pytest.raises(TypeError, match="Create a new one"):
        pickle.dumps([SystemWords()], protocol=protocol)


def test_keys_are_neither_kept_nor_shown(monkeypatch):
    key = b"correct horse battery staple 32."
    monkeypatch.setattr(os, "urandom", lambda count: key + bytes(KEY_BYTES))
    source = SystemWords()
    source.take(4)
    shown = repr(source) + str(source) + repr(vars(source))
    assert vars(source) == {}
    assert "correct" not in shown
    assert key.hex() not in shown


def test_stuck_source_error_does_not_contain_the_key(monkeypatch):
    key = b"correct horse battery staple 32."
    monkeypatch.setattr(os, "urandom", lambda count: key + key)
    with pytest.raises(EntropyUnavailable) as caught:
        SystemWords().take(4)
    shown = str(caught.value) + repr(caught.value.args) + repr(caught.value.__context__)
    assert "correct" not in shown
    assert key.hex() not in shown


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.slow
def test_forked_child_shares_no_keystream_with_its_parent():
    """One source, used before the fork and on both sides of it, never repeats a word."""
    source = SystemWords()
    words = source.take(4).ravel().tolist()
    for _ in range(100):
        words += _words_from_child(source)
        words += source.take(4).ravel().tolist()
    assert len(words) == 8 + 100 * 16
    assert len(set(words)) == len(words)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_draws_its_own_single_words():
    source = SystemWords()
    words = [int(source.take(1, 1)[0, 0])]
    for _ in range(5):
        words += np.frombuffer(run_in_child(lambda: source.take(1).tobytes()), np.uint64).tolist()
        words.append(int(source.take(1, 1)[0, 0]))
    assert len(words) == 16
    assert len(set(words)) == len(words)


@pytest.mark.parametrize(("count", "words"), [(1, 1), (1, 2), (2, 1)])
def test_few_words_are_the_first_bytes_of_the_key(monkeypatch, count, words):
    drawn = os.urandom(2 * KEY_BYTES)
    monkeypatch.setattr(os, "urandom", lambda _count: drawn)
    taken = SystemWords().take(count, words)
    expected = np.frombuffer(drawn, "<u8", count * words).reshape(count, words)
    assert taken.dtype == np.uint64
    assert taken.tolist() == expected.tolist()


@pytest.mark.parametrize("urandom", BROKEN.values(), ids=BROKEN.keys())
def test_missing_entropy_raises_for_a_single_word(monkeypatch, urandom):
    monkeypatch.setattr(os, "urandom", urandom)
    with pytest.raises(EntropyUnavailable, match="nothing was privatised"):
        SystemWords().take(1, 1)


def _words_from_child(source: SystemWords) -> list[int]:
    output = run_in_child(lambda: source.take(4).tobytes())
    return np.frombuffer(output, dtype=np.uint64).tolist()


# --- no other generator in the package ------------------------------------------------------------


def _weak_generators(source: str) -> list[str]:
    """Return the imports of `random` and uses of `numpy.random` in a module."""
    weak = []
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""] + [f"{node.module}.{alias.name}" for alias in node.names]
        elif (
            isinstance(node, ast.Attribute)
            and node.attr == "random"
            and isinstance(node.value, ast.Name)
        ):
            names = ["numpy.random"] if node.value.id in {"np", "numpy"} else []
        weak += [
            name
            for name in names
            if name == "random" or name.startswith(("random.", "numpy.random"))
        ]
    return weak


def test_modules_use_no_weak_generator():
    for path in SOURCES:
        source = path.read_text(encoding="utf-8")
        if re.search(r"\brandom\b", source):  # every weak generator has this word in its name
            assert _weak_generators(source) == [], path


@pytest.mark.parametrize(
    "planted",
    [
        "import random",
        "from random import choice",
        "import numpy.random as r",
        "from numpy import random",
        "from numpy.random import default_rng",
        "import numpy as np\nx = np.random.default_rng()",
        "def f():\n    import random",
    ],
)
def test_weak_generator_search_finds_planted_ones(planted):
    assert _weak_generators(planted)


def test_weak_generator_search_covers_the_package():
    assert len(SOURCES) > 20
    assert {"words.py", "mechanism.py", "demo.py"} <= {path.name for path in SOURCES}
