"""Words: uniform 64-bit integers, addressed rather than streamed.

Position ``i`` under a 256-bit key holds the AES-256 encryption of the 128-bit big-endian integer
``i``: one block, read as two little-endian 64-bit words. Where words are seeded or remembered, one
person reads one position, so a report depends on the key and on the person's own position, never on
how many people came before in the same chunk, worker or file; ``SystemWords``, whose keys are used
once, lets people who need one word share positions. Consecutive positions are AES in counter mode:
about 8 GB/s on one core.
"""

import os
from typing import NoReturn, Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR, ECB

from sfumato.errors import EntropyUnavailable
from sfumato.foundation.arrays import Words

__all__ = [
    "KEY_BYTES",
    "WORDS_PER_POSITION",
    "SystemWords",
    "WordSource",
    "fresh_key",
    "words_at",
    "words_from",
]

KEY_BYTES = 32
WORDS_PER_POSITION = 2
_BLOCK_BYTES = 16
_ZEROS = memoryview(bytes(2**18))  # what is enciphered: counter mode adds its keystream to nothing


class WordSource(Protocol):
    """Hands out words that were never handed out before."""

    def take(self, count: int, words: int = WORDS_PER_POSITION) -> Words:
        """The first ``words`` words of ``count`` further people, as an array of shape ``(count, words)``."""
        ...


class SystemWords:
    """The source that privacy rests on: AES-256 under a fresh key from the operating system.

    Every ``take`` draws a new key and forgets it, so there is no state: nothing that a forked child
    could share with its parent, that two threads could read twice or that a pickle could carry away.
    A key costs about a microsecond, once per chunk of people. Without entropy it raises
    ``EntropyUnavailable`` and hands out nothing.
    """

    def take(self, count: int, words: int = WORDS_PER_POSITION) -> Words:
        """The words of ``count`` people, shape ``(count, words)``.

        Under a key that is used once nobody need be found again: people who take one word share positions, which
        halves what is drawn.
        """
        positions = -(-count * words // WORDS_PER_POSITION)
        drawn = words_from(fresh_key(), 0, positions).reshape(-1)
        return drawn[: count * words].reshape(count, words)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a source of private randomness is not pickled or copied: make a new one there."
        )

    def __repr__(self) -> str:
        return "SystemWords()"


def words_from(key: bytes, first: int, count: int) -> Words:
    """The words at positions ``first … first + count − 1`` under ``key``, shape ``(count, 2)``.

    >>> words = words_from(bytes(32), 0, 4)
    >>> bool((words[2:] == words_from(bytes(32), 2, 2)).all())
    True
    """
    _check_key(key)
    if first < 0 or count < 0 or first + count > 2 ** (8 * _BLOCK_BYTES):
        raise ValueError("positions lie in 0 … 2^128 − 1.")
    keystream = Cipher(AES(key), CTR(first.to_bytes(_BLOCK_BYTES, "big"))).encryptor()
    blocks = np.empty(_BLOCK_BYTES * count, dtype=np.uint8)
    for start in range(0, blocks.size, len(_ZEROS)):
        part = blocks[start : start + len(_ZEROS)]
        keystream.update_into(_ZEROS[: part.size], part.data)
    words: Words = blocks.view("<u8").reshape(count, WORDS_PER_POSITION)
    return words.astype(np.uint64, copy=False)


def words_at(key: bytes, blocks: bytes) -> Words:
    """The words at any positions under ``key``: 16 bytes of ``blocks`` for each, big-endian; shape ``(positions, 2)``.

    Positions must differ: equal ones give two people the same words, which is for the caller to rule out.

    >>> positions = b"".join(position.to_bytes(16, "big") for position in (5, 6, 7))
    >>> bool((words_at(bytes(32), positions) == words_from(bytes(32), 5, 3)).all())
    True
    """
    _check_key(key)
    if len(blocks) % _BLOCK_BYTES:
        raise ValueError(f"positions have {_BLOCK_BYTES} bytes each; found {len(blocks)} bytes.")
    # Block by block is what addresses are: nothing is hidden here, distinct blocks are turned into words.
    enciphered = Cipher(AES(key), ECB()).encryptor().update(blocks)  # noqa: S305
    words: Words = np.frombuffer(enciphered, dtype="<u8").reshape(-1, WORDS_PER_POSITION)
    return words.astype(np.uint64, copy=False)


def _check_key(key: bytes) -> None:
    if len(key) != KEY_BYTES:
        raise ValueError(f"a key has {KEY_BYTES} bytes; found {len(key)}.")


_last_check: list[bytes] = []  # the half of the last draw that was not used as a key


def fresh_key() -> bytes:
    """32 bytes that nobody can guess, for keys, identifiers and tokens; ``EntropyUnavailable`` where there are none."""
    try:
        drawn = os.urandom(2 * KEY_BYTES)
    except (OSError, NotImplementedError) as problem:
        raise EntropyUnavailable(
            "the operating system gave no randomness; nothing was privatised. "
            "Give this process access to the system's random source and try again."
        ) from problem
    key, check = drawn[:KEY_BYTES], drawn[KEY_BYTES:]
    # A stuck source repeats itself, within a draw or from one to the next; a working one once in 2^256 draws.
    stuck = len(check) != KEY_BYTES or check in (key, *_last_check)
    _last_check[:] = [check]
    if stuck:
        raise EntropyUnavailable(
            "the operating system's random source repeats itself; nothing was privatised. "
            "Repair the source and try again."
        )
    return key
