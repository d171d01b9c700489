"""Reports under a key: a job that computes a person's report again gets the same report.

A key names the person, F is the survey's fingerprint as 32 bytes, and each job has a secret of
32 bytes:

    block of a person   SHA-256(F ‖ key)[:16]
    words of an answer  AES(AES(block) ⊕ symbol), AES-256 under the job's secret

The symbol is 8 bytes, little-endian, on the first half of the block. This is CBC-MAC over two
blocks, which is pseudorandom for messages of one length: each pair of key and symbol has its own
independent words. Words do not depend on rows, chunks, tasks or attempts, so a task that runs
twice sends nothing new.

This protects a person as long as each key has a single value. If a key has two values, the person
sends two independent reports. Together their contents reveal at most 2E, but the bare fact that
they differ *proves* that the values differ, and no privacy matrix bounds that. Callers must
therefore rule out a second value; hashing the symbol only limits the damage. Anyone with both the
secret and a key can try out every symbol.
"""

import hashlib

import numpy as np

from sfumato.foundation.arrays import Reports, Symbols, Words
from sfumato.mechanisms import Mechanism
from sfumato.randomness import words_at

__all__ = ["block_of", "reports_under_keys"]


def block_of(fingerprint: str, key: str | int | bytes) -> bytes:
    """Return the person's block: hash text as UTF-8, integers as decimal digits, bytes unchanged.

    >>> block_of("00" * 32, 7) == block_of("00" * 32, "7") == block_of("00" * 32, b"7")
    True

    These three may share a block: all keys of a job have the same type, and each job has its own
    secret.
    """
    plain = key if isinstance(key, bytes) else str(key).encode("utf-8")
    return hashlib.sha256(bytes.fromhex(fingerprint) + plain).digest()[:16]


def reports_under_keys(
    mechanism: Mechanism, symbols: Symbols, blocks: bytes, secret: bytes
) -> Reports:
    """Return one report per symbol.

    ``blocks`` is the 16 bytes of each person's block, in the order of the symbols.

    >>> from sfumato import PlainResponse, Uniform
    >>> mechanism = PlainResponse(Uniform(5, 1))
    >>> people = block_of("00" * 32, "Ada") + block_of("00" * 32, "Bo")
    >>> both = reports_under_keys(mechanism, np.array([3, 1]), people, bytes(32))
    >>> bo = reports_under_keys(mechanism, np.array([1]), people[16:], bytes(32))
    >>> bool(both[1] == bo[0])
    True
    """
    unused_bits = np.uint64(64 - mechanism.word_bits)
    words = _words_of(symbols, blocks, secret)[:, : mechanism.words]
    return mechanism.reports_from(symbols, words >> unused_bits)


def _words_of(symbols: Symbols, blocks: bytes, secret: bytes) -> Words:
    """Return two words for each pair of block and symbol, shape ``(people, 2)``."""
    chain = words_at(secret, blocks).astype("<u8")
    chain[:, 0] ^= symbols.astype("<u8")
    return words_at(secret, chain.tobytes())
