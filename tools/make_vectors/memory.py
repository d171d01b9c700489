"""What a device derives from its secret: words of remembered answers, tokens of values, identifiers of uploads.

Derived here step by step, as the specification says it, and not by the client's own code: two roads to one number.
"""

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import ECB

from sfumato.conformance import Case
from sfumato.contexts import Uniform
from sfumato.mechanisms import PlainResponse
from sfumato.survey import Survey
from tools.make_vectors.case import accept, load
from tools.make_vectors.catalogue import large_questions, questions

__all__ = ["derivations"]

_SECRETS = (bytes(32), bytes(range(32)), bytes([255] * 32), hashlib.sha256(b"a device").digest())
_REMEMBERED = (
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
_PERIODS = {"day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m", "year": "%Y"}


def derivations() -> Iterator[Case]:
    """Remembered answers, tokens and batch identifiers."""
    chosen = [question for question in questions() if question.name in _REMEMBERED]
    for survey in [question.survey() for question in (*chosen, large_questions()[0])]:
        yield from _answers(survey)
    yield from _answers(next(q for q in questions() if q.name == "plain, cyclic").short_survey())
    for every in ("once", *_PERIODS):
        yield from _uploads(every)


def _answers(survey: Survey) -> Iterator[Case]:
    yield load(survey)
    last = survey.mechanism.inputs - 1
    for secret in _SECRETS:
        for x in sorted({0, 1, last // 2, last}):
            yield _remember(survey, secret, x)


def _remember(survey: Survey, secret: bytes, x: int) -> Case:
    mechanism = survey.mechanism
    block = hashlib.sha256(b"sfumato/1/report" + _raw(survey) + x.to_bytes(4, "little")).digest()[
        :16
    ]
    cipher = Cipher(AES(secret), ECB()).encryptor()  # noqa: S305 - one block, that is what a permutation is for
    encrypted = cipher.update(block)
    w0, w1 = (int.from_bytes(half, "little") for half in (encrypted[:8], encrypted[8:]))
    given = [w >> (64 - mechanism.word_bits) for w in (w0, w1)][: mechanism.words]
    report = int(mechanism.reports_from([x], np.array([given], dtype=np.uint64))[0])
    request = {
        "op": "remembered",
        "survey": survey.fingerprint,
        "secret": secret.hex(),
        "symbol": x,
    }
    return accept(
        f"{survey.name}: remembered", request, {"words": f"{w0:016x}{w1:016x}", "report": report}
    )


def _uploads(every: str) -> Iterator[Case]:
    repeat = "once" if every == "once" else {"every": every, "distinct": 3}
    context = Uniform(["bus", "tram", "bicycle"], 1)
    survey = Survey(f"uploads: {every}", context, PlainResponse(context), repeat=repeat)
    yield load(survey)
    for secret in _SECRETS[1:3]:
        for x in range(3):
            token = hashlib.sha256(
                b"sfumato/1/value" + secret + _raw(survey) + x.to_bytes(4, "little")
            ).digest()[:16]
            request = {
                "op": "token",
                "survey": survey.fingerprint,
                "secret": secret.hex(),
                "symbol": x,
            }
            yield accept(f"{survey.name}: token", request, {"token": token.hex()})
    for time in _TIMES:
        period = None if every == "once" else _period(time, every)
        request = {
            "op": "batch_id",
            "survey": survey.fingerprint,
            "secret": _SECRETS[1].hex(),
            "time": time,
        }
        ok = {"batch": _batch_id(survey, _SECRETS[1], period), "period": period}
        yield accept(f"{survey.name}: identifier", request, ok)


def _batch_id(survey: Survey, secret: bytes, period: str | None) -> str:
    named = b"sfumato/1/batch" + secret + _raw(survey) + (period or "").encode("ascii")
    return hashlib.sha256(named).digest()[:16].hex()


def _period(time: str, every: str) -> str:
    return datetime.fromisoformat(time).astimezone(UTC).strftime(_PERIODS[every])


def _raw(survey: Survey) -> bytes:
    return bytes.fromhex(survey.fingerprint)
