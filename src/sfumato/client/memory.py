"""Memory without stored values: a device derives everything about an answer from one secret.

The secret is 32 bytes long, F is the survey's fingerprint as 32 bytes, and a symbol is encoded as
4 little-endian bytes:

    words of an answer   AES-256(key = secret, SHA-256("sfumato/1/report" ‖ F ‖ symbol)[:16])
    batch identifier     SHA-256("sfumato/1/batch" ‖ secret ‖ F ‖ period)[:16]
    token of a value     SHA-256("sfumato/1/value" ‖ secret ‖ F ‖ symbol)[:16]
    tag of the secret    SHA-256("sfumato/1/secret" ‖ secret)[:16]

The same answer to the same survey always gives the same report, so no value has to be stored. The
batch identifier depends on the period, but the words do not. Anyone who has the secret can try
every symbol and see which one matches a report or a token. So the secret must be kept as private as
the answers.
"""

import hashlib

import numpy as np

from sfumato.foundation.arrays import Words
from sfumato.mechanisms import Mechanism
from sfumato.randomness import SystemWords, words_from

__all__ = ["batch_id", "derive_report", "derive_words", "fresh_secret", "secret_tag", "value_token"]


def fresh_secret() -> bytes:
    """Generate a secret. Raise ``EntropyUnavailable`` if the system cannot provide randomness."""
    return SystemWords().take(2).astype("<u8").tobytes()


def derive_words(secret: bytes, fingerprint: str, symbol: int) -> Words:
    """Derive the two random words for an answer, shape ``(1, 2)``.

    >>> [hex(word) for word in derive_words(bytes(32), "00" * 32, 0)[0].tolist()]
    ['0x9b18a0d65ecad61c', '0xaf05665428b5f81f']
    """
    block = _digest(b"sfumato/1/report", bytes.fromhex(fingerprint), _encode_symbol(symbol))
    return words_from(secret, int.from_bytes(block, "big"), 1)


def derive_report(secret: bytes, fingerprint: str, mechanism: Mechanism, symbol: int) -> int:
    """Derive the report for an answer. The same answer always gives the same report."""
    words = derive_words(secret, fingerprint, symbol)[:, : mechanism.words]
    top_bits = words >> np.uint64(64 - mechanism.word_bits)
    return int(mechanism.reports_from(np.array([symbol]), top_bits)[0])


def batch_id(secret: bytes, fingerprint: str, period: str = "") -> bytes:
    """Return the identifier of a device's batch.

    ``period`` is "" if a survey is answered only once.
    """
    return _digest(b"sfumato/1/batch", secret, bytes.fromhex(fingerprint), period.encode("ascii"))


def value_token(secret: bytes, fingerprint: str, symbol: int) -> str:
    """Return a token by which a previously used value can be recognized."""
    return _digest(
        b"sfumato/1/value", secret, bytes.fromhex(fingerprint), _encode_symbol(symbol)
    ).hex()


def secret_tag(secret: bytes) -> str:
    """Return a tag that identifies a secret but reveals nothing else about it."""
    return _digest(b"sfumato/1/secret", secret).hex()


def _digest(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()[:16]


def _encode_symbol(symbol: int) -> bytes:
    return symbol.to_bytes(4, "little")
