"""Reports that belong to a person: a job that asks again, for whatever reason, gets the same ones.

A key names the person, F is the survey's fingerprint as 32 bytes, and a job has a secret of 32 bytes:

    block of a person   SHA-256(F ‖ key)[:16]
    words of an answer  AES(AES(block) ⊕ symbol), AES-256 under the job's secret

The symbol is 8 bytes, little-endian, on the first half of the block. This is CBC-MAC over two blocks, which is
pseudorandom for messages of one length: each pair of key and symbol has its own independent words. Words do not depend
on rows, chunks, tasks or attempts, so a task that runs twice sends nothing new.

This protects a person as long as one key has one value. If a key has two values, the person sends two independent
reports. Together their contents reveal at most 2E, but the bare fact that they differ *proves* that the values differ,
and no privacy matrix bounds that. So callers must rule out a second value; hashing the symbol only limits the damage.
Anybody who holds the secret and a key can try out every symbol.
"""

import hashlib

import numpy as np

from sfumato.foundation.arrays import Reports, Symbols, Words
from sfumato.mechanisms import Mechanism
from sfumato.randomness import words_at

__all__ = ["block_of", "keyed_reports_from"]


def block_of(fingerprint: str, key: str | int | bytes) -> bytes:
    """The person's block: text as it is in UTF-8, whole numbers in decimal digits, bytes as they are.

    >>> block_of("00" * 32, 7) == block_of("00" * 32, "7") == block_of("00" * 32, b"7")
    True

    These three may share a block: the keys of one job are all of one type, and another job has another secret.
    """
    plain = key if isinstance(key, bytes) else str(key).encode("utf-8")
    return hashlib.sha256(bytes.fromhex(fingerprint) + plain).digest()[:16]


def keyed_reports_from(
    mechanism: Mechanism, symbols: Symbols, blocks: bytes, secret: bytes
) -> Reports:
    """One report per symbol; ``blocks`` holds the 16 bytes of each person's block, in the same order.

    >>> from sfumato import PlainResponse, Uniform
    >>> mechanism, people = PlainResponse(Uniform(5, 1)), block_of("00" * 32, "Ada") + block_of("00" * 32, "Bo")
    >>> both = keyed_reports_from(mechanism, np.array([3, 1]), people, bytes(32))
    >>> bool(both[1] == keyed_reports_from(mechanism, np.array([1]), people[16:], bytes(32))[0])
    True
    """
    words = _words_of(symbols, blocks, secret)[:, : mechanism.words] >> np.uint64(
        64 - mechanism.word_bits
    )
    return mechanism.reports_from(symbols, words)


def _words_of(symbols: Symbols, blocks: bytes, secret: bytes) -> Words:
    """Two words for each pair of block and symbol, shape ``(people, 2)``."""
    chained = words_at(secret, blocks).astype("<u8")
    chained[:, 0] ^= symbols.astype("<u8")
    return words_at(secret, chained.tobytes())
