"""Memory without values: everything that a device says about an answer is derived from one secret.

The secret has 32 bytes, F is the survey's fingerprint as 32 bytes, and a symbol is 4 bytes, little-endian:

    words of an answer   AES-256 under the secret of SHA-256("sfumato/1/report" ‖ F ‖ symbol)[:16]
    batch identifier     SHA-256("sfumato/1/batch" ‖ secret ‖ F ‖ period)[:16]
    token of a value     SHA-256("sfumato/1/value" ‖ secret ‖ F ‖ symbol)[:16]
    tag of the secret    SHA-256("sfumato/1/secret" ‖ secret)[:16]

The same answer to the same survey gives the same report for ever, and nothing has to be stored for it. The period
enters the batch identifier and never the words. Whoever holds the secret can try out every symbol and see which one
fits a report or a token: the secret is as private as the answers.
"""

import hashlib

import numpy as np

from sfumato.foundation.arrays import Words
from sfumato.mechanisms import Mechanism
from sfumato.randomness import KEY_BYTES, SystemWords, words_from

__all__ = [
    "SECRET_BYTES",
    "batch_id",
    "fresh_secret",
    "remembered_report",
    "remembered_words",
    "secret_tag",
    "token_of",
]

SECRET_BYTES = KEY_BYTES


def fresh_secret() -> bytes:
    """32 bytes that nobody else has; ``EntropyUnavailable`` where the operating system has none to give."""
    return SystemWords().take(2).astype("<u8").tobytes()


def remembered_words(secret: bytes, fingerprint: str, symbol: int) -> Words:
    """The two words of an answer, shape ``(1, 2)``.

    >>> [hex(word) for word in remembered_words(bytes(32), "00" * 32, 0)[0].tolist()]
    ['0x9b18a0d65ecad61c', '0xaf05665428b5f81f']
    """
    block = _digest(b"sfumato/1/report", bytes.fromhex(fingerprint), _u32(symbol))
    return words_from(secret, int.from_bytes(block, "big"), 1)


def remembered_report(secret: bytes, fingerprint: str, mechanism: Mechanism, symbol: int) -> int:
    """The report of an answer: the same one, however often it is asked for."""
    words = remembered_words(secret, fingerprint, symbol)[:, : mechanism.words] >> np.uint64(
        64 - mechanism.word_bits
    )
    return int(mechanism.reports_from(np.array([symbol]), words)[0])


def batch_id(secret: bytes, fingerprint: str, period: str = "") -> bytes:
    """The identifier of a device's upload; without a period there is one for all time."""
    return _digest(b"sfumato/1/batch", secret, bytes.fromhex(fingerprint), period.encode("ascii"))


def token_of(secret: bytes, fingerprint: str, symbol: int) -> str:
    """What tells a value that was answered before from a new one."""
    return _digest(b"sfumato/1/value", secret, bytes.fromhex(fingerprint), _u32(symbol)).hex()


def secret_tag(secret: bytes) -> str:
    """What tells one secret from another, and nothing else of it."""
    return _digest(b"sfumato/1/secret", secret).hex()


def _digest(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()[:16]


def _u32(symbol: int) -> bytes:
    return symbol.to_bytes(4, "little")
