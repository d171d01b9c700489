"""Reports that belong to a person: a job that asks again, for whatever reason, gets the same ones.

A key names the person, F is the survey's fingerprint as 32 bytes, and a job has a secret of 32 bytes:

    block of a person   SHA-256(F ‖ key)[:16]
    words of a person   AES-256 of the block, under the job's secret

The words do not depend on rows, chunks, tasks or attempts, so a task that is run twice sends nothing new. This holds
as long as one key has one value: two values under the same words are two answers of which the difference is no longer
hidden. Whoever holds the secret and a key can try out every symbol.
"""

import hashlib

import numpy as np

from sfumato.arrays import Reports, Symbols
from sfumato.mechanisms import Mechanism
from sfumato.randomness.words import words_at

__all__ = ["block_of", "keyed_reports_from"]


def block_of(fingerprint: str, key: str | int | bytes) -> bytes:
    """Where the words of a person stand: text as it is in UTF-8, whole numbers in decimal digits, bytes as they are.

    >>> block_of("00" * 32, 7) == block_of("00" * 32, "7") == block_of("00" * 32, b"7")
    True

    That these are one person is no harm: the keys of one job are all of one kind, and another job has another secret.
    """
    plain = key if isinstance(key, bytes) else str(key).encode("utf-8")
    return hashlib.sha256(bytes.fromhex(fingerprint) + plain).digest()[:16]


def keyed_reports_from(mechanism: Mechanism, symbols: Symbols, blocks: bytes, secret: bytes) -> Reports:
    """One report per symbol, by the words of the 16 bytes that stand in ``blocks`` for each.

    >>> from sfumato import PlainResponse, Uniform
    >>> mechanism, people = PlainResponse(Uniform(5, 1)), block_of("00" * 32, "Ada") + block_of("00" * 32, "Bo")
    >>> both = keyed_reports_from(mechanism, np.array([3, 1]), people, bytes(32))
    >>> bool(both[1] == keyed_reports_from(mechanism, np.array([1]), people[16:], bytes(32))[0])
    True
    """
    words = words_at(secret, blocks)[:, : mechanism.words] >> np.uint64(64 - mechanism.word_bits)
    return mechanism.reports_from(symbols, words)
