"""The values that a device derives from its secret: remembered answers, tokens, batch identifiers.

Everything is derived here from the specification, without the client's own code, so that two
implementations check each other.
"""

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import ECB

from sfumato.batches import Batch, to_json
from sfumato.conformance import Case
from sfumato.contexts import Uniform
from sfumato.mechanisms import PlainResponse
from sfumato.survey import Survey
from tools.make_vectors.case import accept, load, survey_request
from tools.make_vectors.catalogue import large_surveys, shorten, surveys

SECRETS = (bytes(32), bytes(range(32)), bytes([255] * 32), hashlib.sha256(b"a device").digest())
SURVEY_NAMES = (
    "binary, uneven",
    "table",
    "plain, hadamard",
    "plain, cyclic, Singer",
    "blocks, own epsilons",
    "high-low, cyclic",
    "groups, two levels",
    "product, best",
    "union, of one and two words",
)
_TIMES = (
    "2026-11-15T10:00:00Z",
    "2026-11-15T23:59:59Z",
    "2026-11-16T00:00:00Z",  # a Monday, so a new week
    "2020-12-31T12:00:00Z",  # week 53
    "2021-01-03T23:59:59Z",  # still week 53 of 2020
    "2021-01-04T00:00:00Z",
    "2024-12-29T12:00:00Z",
    "2024-12-30T12:00:00Z",  # already week 1 of 2025
    "2024-02-29T00:00:00Z",
    "2027-01-01T00:00:00Z",  # week 53 of 2026
    "2026-01-05T00:00:00Z",  # week 2, written with two digits
    "1999-12-31T23:59:59Z",
)
PERIOD_FORMATS = {
    "once": "",
    "day": "%Y-%m-%d",
    "week": "%G-W%V",
    "month": "%Y-%m",
    "year": "%Y",
}
"""The format of an upload's period, by how often the survey repeats."""


def derivations() -> Iterator[Case]:
    """Yield remembered answers, tokens and batch identifiers."""
    known = surveys()
    for name in SURVEY_NAMES:
        yield from answers(known[name])
    yield from answers(large_surveys()[0])
    yield from answers(shorten(known["plain, cyclic"]))
    for interval in PERIOD_FORMATS:
        repeat: Any = "once" if interval == "once" else {"every": interval, "distinct": 3}
        context = Uniform(["bus", "tram", "bicycle"], 1)
        survey = Survey(f"uploads: {interval}", context, PlainResponse(context), repeat=repeat)
        yield from identifiers(survey, interval)


def batches() -> Iterator[Case]:
    """Yield batches with one report and with several."""
    survey = large_surveys()[0]
    yield load(survey)
    uploads = {
        "00" * 16: [0],
        "0123456789abcdef" * 2: [65_535],
        "ff" * 16: [3, 1, 4, 1, 5],
    }
    for batch_id, reports in uploads.items():
        report_array = np.array(reports, dtype=np.uint32)
        batch = Batch(bytes.fromhex(batch_id), survey.fingerprint, report_array)
        request = survey_request("batch", survey.fingerprint, batch=batch_id, reports=reports)
        yield accept(f"{len(reports)} reports", request, body=to_json(batch).decode("ascii"))


def answers(survey: Survey) -> Iterator[Case]:
    """Yield remembered answers to a survey."""
    yield load(survey)
    last = survey.mechanism.inputs - 1
    for secret in SECRETS:
        for x in sorted({0, 1, last // 2, last}):
            yield _answer_case(survey, secret, x)


def _answer_case(survey: Survey, secret: bytes, x: int) -> Case:
    mechanism = survey.mechanism
    block = _digest("report", _fingerprint_bytes(survey), x.to_bytes(4, "little"))
    cipher = Cipher(AES(secret), ECB()).encryptor()  # noqa: S305 - encrypts a single block
    words = np.frombuffer(cipher.update(block), dtype="<u8").astype(np.uint64)
    short_words = words[: mechanism.words] >> np.uint64(64 - mechanism.word_bits)
    (report,) = mechanism.reports_from([x], short_words[None]).tolist()
    request = survey_request("remembered", survey.fingerprint, secret=secret.hex(), symbol=x)
    words_hex = "".join(f"{word:016x}" for word in words.tolist())
    return accept(f"{survey.name}: remembered", request, words=words_hex, report=report)


def identifiers(survey: Survey, interval: str) -> Iterator[Case]:
    """Yield value tokens and batch identifiers for a survey that repeats at this interval."""
    period_format = PERIOD_FORMATS[interval]
    pin = survey.fingerprint
    yield load(survey)
    for secret in SECRETS[1:3]:
        for x in range(3):
            token = _digest("value", secret, _fingerprint_bytes(survey), x.to_bytes(4, "little"))
            request = survey_request("token", pin, secret=secret.hex(), symbol=x)
            yield accept(f"{survey.name}: token", request, token=token.hex())
    secret = SECRETS[1]
    for time in _TIMES:
        period = datetime.fromisoformat(time).astimezone(UTC).strftime(period_format)
        batch = _digest("batch", secret, _fingerprint_bytes(survey), period.encode("ascii"))
        request = survey_request("batch_id", pin, secret=secret.hex(), time=time)
        about = f"{survey.name}: identifier"
        yield accept(about, request, batch=batch.hex(), period=period or None)


def _digest(purpose: str, *parts: bytes) -> bytes:
    return hashlib.sha256(f"sfumato/1/{purpose}".encode() + b"".join(parts)).digest()[:16]


def _fingerprint_bytes(survey: Survey) -> bytes:
    return bytes.fromhex(survey.fingerprint)
