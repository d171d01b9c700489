"""The derivations from a secret follow the specification step by step."""

import hashlib
import json
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import ECB

import sfumato as sf
from sfumato.client.memory import (
    batch_id,
    derive_report,
    derive_words,
    fresh_secret,
    secret_tag,
    value_token,
)
from sfumato.foundation.periods import period_name
from support.paths import ROOT

SECRET = bytes(range(32))
F = "ab" * 32


def _block(*parts):
    return hashlib.sha256(b"".join(parts)).digest()[:16]


@pytest.mark.parametrize("symbol", [0, 1, 258, 2**31 - 1])
def test_words_tokens_and_identifiers_are_as_specified(symbol):
    u32 = bytes([symbol & 255, symbol >> 8 & 255, symbol >> 16 & 255, symbol >> 24])
    block = (
        Cipher(AES(SECRET), ECB())
        .encryptor()
        .update(_block(b"sfumato/1/report", bytes.fromhex(F), u32))
    )
    expected = [int.from_bytes(block[:8], "little"), int.from_bytes(block[8:], "little")]
    assert derive_words(SECRET, F, symbol)[0].tolist() == expected
    assert (
        value_token(SECRET, F, symbol)
        == _block(b"sfumato/1/value", SECRET, bytes.fromhex(F), u32).hex()
    )


def test_batch_identifiers_are_as_specified():
    assert batch_id(SECRET, F) == _block(b"sfumato/1/batch", SECRET, bytes.fromhex(F))
    assert batch_id(SECRET, F, "2026-W46") == _block(
        b"sfumato/1/batch", SECRET, bytes.fromhex(F), b"2026-W46"
    )


MECHANISMS = {
    "one word": sf.mechanism_for(sf.Uniform(40, 1)),
    "two words": sf.ProductResponse(sf.Blocks([0] * 4 + [1] * 4, 2, across=3)),
    "short words": sf.mechanism_for(sf.Uniform(40, 1)).with_word_bits(14),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_derived_reports_use_the_top_bits_of_their_words(name):
    mechanism = MECHANISMS[name]
    for symbol in range(mechanism.inputs):
        words = [
            int(word) >> (64 - mechanism.word_bits) for word in derive_words(SECRET, F, symbol)[0]
        ]
        given = np.array([words[: mechanism.words]], dtype=np.uint64)
        report = derive_report(SECRET, F, mechanism, symbol)
        assert report == mechanism.reports_from([symbol], given)[0]
        assert report == derive_report(SECRET, F, mechanism, symbol)


def test_words_depend_on_secret_survey_and_symbol():
    words = [
        tuple(derive_words(secret, f, symbol)[0].tolist())
        for secret in (SECRET, bytes(32))
        for f in (F, "00" * 32)
        for symbol in range(3)
    ]
    assert len(set(words)) == 12


def test_secrets_are_fresh_and_have_distinct_tags():
    secrets = {fresh_secret() for _ in range(20)}
    assert len(secrets) == len({secret_tag(secret) for secret in secrets}) == 20
    assert {len(secret) for secret in secrets} == {32}


def test_periods_are_in_utc():
    late = datetime(
        2026, 11, 15, 23, 30, tzinfo=timezone(-timedelta(hours=3))
    )  # already the 16th in UTC, a Monday
    assert [period_name(every, late) for every in ("day", "week", "month", "year")] == [
        "2026-11-16",
        "2026-W47",
        "2026-11",
        "2026",
    ]
    assert period_name("week", datetime(2024, 12, 30, tzinfo=UTC)) == "2025-W01"


@pytest.mark.parametrize("every", ["day", "week", "month", "year"])
def test_later_periods_sort_later(every):
    start = datetime(2019, 12, 20, tzinfo=UTC)
    names = [period_name(every, start + timedelta(days=day)) for day in range(3000)]
    assert names == sorted(names)
    assert len(set(names)) == {"day": 3000, "week": 430, "month": 100, "year": 10}[every]


def test_shared_vectors_pass():
    cases = json.loads((ROOT / "test-vectors" / "memory.json").read_text(encoding="utf-8"))
    surveys = {}
    met = {"remembered": 0, "token": 0, "batch_id": 0}
    for case in cases:
        asked = case["request"]
        answer = case["answer"].get("ok")
        if asked["op"] == "load":
            surveys[asked["fingerprint"]] = sf.Survey.from_resolved(asked["text"].encode("utf-8"))
            continue
        survey = surveys[asked["survey"]]
        secret = bytes.fromhex(asked["secret"])
        if asked["op"] == "remembered":
            report = derive_report(secret, survey.fingerprint, survey.mechanism, asked["symbol"])
            words = derive_words(secret, survey.fingerprint, asked["symbol"])[0].tolist()
            assert {"report": report, "words": "".join(f"{word:016x}" for word in words)} == answer
        elif asked["op"] == "token":
            assert value_token(secret, survey.fingerprint, asked["symbol"]) == answer["token"]
        else:
            repeat = survey.description.about["repeat"]
            period = (
                ""
                if repeat == "once"
                else period_name(repeat["every"], datetime.fromisoformat(asked["time"]))
            )
            assert (period or None) == answer["period"]
            assert batch_id(secret, survey.fingerprint, period).hex() == answer["batch"]
        met[asked["op"]] += 1
    assert min(met.values()) >= 10
