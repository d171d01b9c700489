"""Memory without values: a device derives everything about an answer from one secret.

The secret has 32 bytes, F is the survey's fingerprint as 32 bytes, and a symbol is 4 bytes,
little-endian:

    words of an answer   AES-256 under the secret of SHA-256("sfumato/1/report" ‖ F ‖ symbol)[:16]
    batch identifier     SHA-256("sfumato/1/batch" ‖ secret ‖ F ‖ period)[:16]
    token of a value     SHA-256("sfumato/1/value" ‖ secret ‖ F ‖ symbol)[:16]
    tag of the secret    SHA-256("sfumato/1/secret" ‖ secret)[:16]

The same answer to the same survey always gives the same report, without storing anything. The
period enters the batch identifier, never the words. Anyone who has the secret can try every symbol
and see which one fits a report or a token: the secret is as private as the answers.
"""

import hashlib

import numpy as np

from sfumato.foundation.arrays import Words
from sfumato.mechanisms import Mechanism
from sfumato.randomness import SystemWords, words_from

__all__ = ["batch_id", "derive_report", "derive_words", "fresh_secret", "secret_tag", "token_of"]


def fresh_secret() -> bytes:
    """Draw a new secret; ``EntropyUnavailable`` if the operating system has no randomness."""
    return SystemWords().take(2).astype("<u8").tobytes()


def derive_words(secret: bytes, fingerprint: str, symbol: int) -> Words:
    """Derive the two words of an answer, shape ``(1, 2)``.

    >>> [hex(word) for word in derive_words(bytes(32), "00" * 32, 0)[0].tolist()]
    ['0x9b18a0d65ecad61c', '0xaf05665428b5f81f']
    """
    block = _digest(b"sfumato/1/report", bytes.fromhex(fingerprint), _u32(symbol))
    return words_from(secret, int.from_bytes(block, "big"), 1)


def derive_report(secret: bytes, fingerprint: str, mechanism: Mechanism, symbol: int) -> int:
    """Derive the report of an answer: always the same one."""
    words = derive_words(secret, fingerprint, symbol)[:, : mechanism.words]
    top_bits = words >> np.uint64(64 - mechanism.word_bits)
    return int(mechanism.reports_from(np.array([symbol]), top_bits)[0])


def batch_id(secret: bytes, fingerprint: str, period: str = "") -> bytes:
    """Return a device's batch identifier; ``period`` is "" for a survey answered once."""
    return _digest(b"sfumato/1/batch", secret, bytes.fromhex(fingerprint), period.encode("ascii"))


def token_of(secret: bytes, fingerprint: str, symbol: int) -> str:
    """Return a token that tells a value used before from a new one."""
    return _digest(b"sfumato/1/value", secret, bytes.fromhex(fingerprint), _u32(symbol)).hex()


def secret_tag(secret: bytes) -> str:
    """Return a tag that distinguishes secrets and reveals nothing else about them."""
    return _digest(b"sfumato/1/secret", secret).hex()


def _digest(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()[:16]


def _u32(symbol: int) -> bytes:
    return symbol.to_bytes(4, "little")
