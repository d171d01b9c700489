"""Words: uniform 64-bit integers, accessed by position rather than streamed.

Position ``i`` under a 256-bit key contains the AES-256 encryption of the 128-bit big-endian integer
``i``: one block, read as two little-endian 64-bit words. When words come from a seed or a stored
key, each person uses one position. So a report depends only on the key and on the person's
position, not on how people are divided into chunks, workers or files. ``SystemWords`` uses each key
only once, so two people who need a single word each can share a position, and a single person needs
no AES. Consecutive positions are computed by AES in counter mode, at about 8 GB/s on one core.
"""

import os
from typing import NoReturn, Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR, ECB

from sfumato.errors import EntropyUnavailable, InvalidArgument
from sfumato.foundation.arrays import Words

__all__ = [
    "KEY_BYTES",
    "WORDS_PER_POSITION",
    "SystemWords",
    "WordSource",
    "fresh_key",
    "reject_seed",
    "require_source",
    "words_at",
    "words_from",
]

KEY_BYTES = 32
WORDS_PER_POSITION = 2
_WORD_TYPE = np.dtype("<u8")
_BLOCK_BYTES = 16
_ZEROS = memoryview(bytes(2**18))  # the plaintext: encrypting zeros yields the bare keystream


class WordSource(Protocol):
    """A source of random words that never reuses any of them."""

    def take(self, count: int, words: int = WORDS_PER_POSITION) -> Words:
        """Return words for the next ``count`` people, as an array of shape ``(count, words)``."""
        ...


class SystemWords:
    """The source to use for privacy: AES-256 under a fresh key from the operating system.

    Every ``take`` draws a new key and discards it, so there is no state that a forked process could
    inherit, two threads could both read, or a pickle could leak. Drawing a key takes about a
    microsecond, once per call. One or two words, which is what one person needs, are the first
    bytes of the fresh key itself: they are as random, and setting up the cipher takes longer than
    all the rest. Raises ``EntropyUnavailable`` if the system's random source fails or repeats
    itself.
    """

    def take(self, count: int, words: int = WORDS_PER_POSITION) -> Words:
        """Return words for ``count`` people, as an array of shape ``(count, words)``.

        The key is used only once, so people need no positions of their own. If each person needs a
        single word, two people share a position, which halves the work.
        """
        word_count = count * words
        if 0 < word_count <= WORDS_PER_POSITION:
            key_words: Words = np.frombuffer(fresh_key(), _WORD_TYPE, word_count)
            return key_words.reshape(count, words).astype(np.uint64, copy=False)
        position_count = -(-word_count // WORDS_PER_POSITION)
        drawn_words = words_from(fresh_key(), 0, position_count).reshape(-1)
        return drawn_words[:word_count].reshape(count, words)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a source of private randomness cannot be pickled or copied. Create a new one instead."
        )

    def __repr__(self) -> str:
        return "SystemWords()"


def require_source(source: WordSource | None, seeded_call: str) -> WordSource:
    """Return the source, which defaults to the operating system.

    Raise ``InvalidArgument`` for anything else, such as a random generator of NumPy.
    ``seeded_call`` is the call that draws reports from a seed.
    """
    if source is None:
        return SystemWords()
    if not callable(getattr(source, "take", None)):
        raise InvalidArgument(
            "source must have a method take(count, words) that returns random words; got "
            f"{type(source).__name__}. Omit it. {_seed_advice(seeded_call)}"
        )
    return source


def reject_seed(seed: object, seeded_call: str) -> None:
    """Raise ``InvalidArgument`` if there is a seed: private reports cannot be reproduced.

    ``seeded_call`` is the call that draws reports from a seed.
    """
    if seed is not None:
        raise InvalidArgument(
            "privatize has no seed, because a seed would reveal all answers. "
            f"{_seed_advice(seeded_call)}"
        )


def _seed_advice(seeded_call: str) -> str:
    return f"For reproducible reports, which are NOT PRIVATE, call {seeded_call}."


def words_from(key: bytes, first: int, count: int) -> Words:
    """Return the words at positions ``first … first + count − 1``, in shape ``(count, 2)``.

    >>> words = words_from(bytes(32), 0, 4)
    >>> bool((words[2:] == words_from(bytes(32), 2, 2)).all())
    True
    """
    _check_key(key)
    if first < 0 or count < 0 or first + count > 2 ** (8 * _BLOCK_BYTES):
        raise ValueError("positions must be in 0 … 2^128 − 1.")
    keystream = Cipher(AES(key), CTR(first.to_bytes(_BLOCK_BYTES, "big"))).encryptor()
    blocks = np.empty(_BLOCK_BYTES * count, dtype=np.uint8)
    for start in range(0, blocks.size, len(_ZEROS)):
        chunk = blocks[start : start + len(_ZEROS)]
        keystream.update_into(_ZEROS[: chunk.size], chunk.data)
    words: Words = blocks.view("<u8").reshape(count, WORDS_PER_POSITION)
    return words.astype(np.uint64, copy=False)


def words_at(key: bytes, blocks: bytes) -> Words:
    """Return the words at arbitrary positions, in shape ``(positions, 2)``.

    ``blocks`` contains each position as 16 big-endian bytes. The caller must ensure that positions
    are distinct; otherwise two people would get the same words.

    >>> positions = b"".join(position.to_bytes(16, "big") for position in (5, 6, 7))
    >>> bool((words_at(bytes(32), positions) == words_from(bytes(32), 5, 3)).all())
    True
    """
    _check_key(key)
    if len(blocks) % _BLOCK_BYTES:
        raise ValueError(f"positions must have {_BLOCK_BYTES} bytes each; got {len(blocks)} bytes.")
    # ECB is safe here: every block is a distinct position, so no ciphertext block repeats.
    enciphered = Cipher(AES(key), ECB()).encryptor().update(blocks)  # noqa: S305
    words: Words = np.frombuffer(enciphered, dtype="<u8").reshape(-1, WORDS_PER_POSITION)
    return words.astype(np.uint64, copy=False)


def _check_key(key: bytes) -> None:
    if len(key) != KEY_BYTES:
        raise ValueError(f"a key must have {KEY_BYTES} bytes; got {len(key)}.")


_last_check: list[bytes] = []  # the half of the previous draw that was not used as a key


def fresh_key() -> bytes:
    """Return 32 unpredictable bytes, for keys, identifiers and tokens.

    Raises ``EntropyUnavailable`` if the operating system's random source fails or repeats itself.
    """
    try:
        drawn = os.urandom(2 * KEY_BYTES)
    except (OSError, NotImplementedError) as error:
        raise EntropyUnavailable(
            "the operating system provided no randomness; nothing was privatised. "
            "Give this process access to the system's random source and try again."
        ) from error
    key = drawn[:KEY_BYTES]
    check = drawn[KEY_BYTES:]
    # A stuck source repeats itself within a draw or between draws. For a working source, a repeat
    # has a probability of about 2^−256.
    is_faulty = len(check) != KEY_BYTES or check in (key, *_last_check)
    _last_check[:] = [check]
    if is_faulty:
        raise EntropyUnavailable(
            "the operating system's random source repeats itself or returns too few bytes; nothing "
            "was privatised. Repair the source and try again."
        )
    return key
