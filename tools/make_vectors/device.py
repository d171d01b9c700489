"""What a device derives from its secret and sends: remembered answers, tokens, uploads.

Everything is derived here step by step from the specification and not by the client's own code, so
that two implementations check each other.
"""

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime

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

_SECRETS = (bytes(32), bytes(range(32)), bytes([255] * 32), hashlib.sha256(b"a device").digest())
_SURVEYS = (
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
    "2026-11-16T00:00:00Z",  # a Monday: the next week
    "2020-12-31T12:00:00Z",  # week 53
    "2021-01-03T23:59:59Z",  # still week 53 of 2020
    "2021-01-04T00:00:00Z",
    "2024-12-29T12:00:00Z",
    "2024-12-30T12:00:00Z",  # already week 1 of 2025
    "2024-02-29T00:00:00Z",
    "2027-01-01T00:00:00Z",  # week 53 of 2026
    "2026-01-05T00:00:00Z",  # week 2: two digits
    "1999-12-31T23:59:59Z",
)
_PERIODS = {"once": "", "day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m", "year": "%Y"}
"""How the period of an upload is written, by how often a survey repeats."""


def derivations() -> Iterator[Case]:
    """Yield remembered answers, tokens and batch identifiers."""
    known = surveys()
    for name in _SURVEYS:
        yield from _answers(known[name])
    yield from _answers(large_surveys()[0])
    yield from _answers(shorten(known["plain, cyclic"]))
    for every, form in _PERIODS.items():
        yield from _identifiers(every, form)


def batches() -> Iterator[Case]:
    """Yield batches of one report and of several."""
    survey = large_surveys()[0]
    yield load(survey)
    uploads = {
        "00" * 16: [0],
        "0123456789abcdef" * 2: [65_535],
        "ff" * 16: [3, 1, 4, 1, 5],
    }
    for name, reports in uploads.items():
        batch = Batch(bytes.fromhex(name), survey.fingerprint, np.array(reports, dtype=np.uint32))
        request = survey_request("batch", survey.fingerprint, batch=name, reports=reports)
        yield accept(f"{len(reports)} reports", request, body=to_json(batch).decode("ascii"))


def _answers(survey: Survey) -> Iterator[Case]:
    yield load(survey)
    last = survey.mechanism.inputs - 1
    for secret in _SECRETS:
        for x in sorted({0, 1, last // 2, last}):
            yield _remember(survey, secret, x)


def _remember(survey: Survey, secret: bytes, x: int) -> Case:
    mechanism = survey.mechanism
    block = _digest("report", _raw(survey), x.to_bytes(4, "little"))
    cipher = Cipher(AES(secret), ECB()).encryptor()  # noqa: S305 - a permutation of one block
    words = np.frombuffer(cipher.update(block), dtype="<u8").astype(np.uint64)
    short_words = words[: mechanism.words] >> np.uint64(64 - mechanism.word_bits)
    (report,) = mechanism.reports_from([x], short_words[None]).tolist()
    request = survey_request("remembered", survey.fingerprint, secret=secret.hex(), symbol=x)
    shown_words = "".join(f"{word:016x}" for word in words.tolist())
    return accept(f"{survey.name}: remembered", request, words=shown_words, report=report)


def _identifiers(every: str, form: str) -> Iterator[Case]:
    """Yield the tokens of values and the identifiers of batches for one rhythm of a survey."""
    repeat = "once" if every == "once" else {"every": every, "distinct": 3}
    context = Uniform(["bus", "tram", "bicycle"], 1)
    survey = Survey(f"uploads: {every}", context, PlainResponse(context), repeat=repeat)
    pin = survey.fingerprint
    yield load(survey)
    for secret in _SECRETS[1:3]:
        for x in range(3):
            token = _digest("value", secret, _raw(survey), x.to_bytes(4, "little"))
            request = survey_request("token", pin, secret=secret.hex(), symbol=x)
            yield accept(f"{survey.name}: token", request, token=token.hex())
    secret = _SECRETS[1]
    for time in _TIMES:
        period = datetime.fromisoformat(time).astimezone(UTC).strftime(form)
        batch = _digest("batch", secret, _raw(survey), period.encode("ascii"))
        request = survey_request("batch_id", pin, secret=secret.hex(), time=time)
        about = f"{survey.name}: identifier"
        yield accept(about, request, batch=batch.hex(), period=period or None)


def _digest(purpose: str, *parts: bytes) -> bytes:
    return hashlib.sha256(f"sfumato/1/{purpose}".encode() + b"".join(parts)).digest()[:16]


def _raw(survey: Survey) -> bytes:
    return bytes.fromhex(survey.fingerprint)
