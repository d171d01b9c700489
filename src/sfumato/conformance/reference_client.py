"""A client that answers the line protocol: ``python -m sfumato.conformance.reference_client``.

Each line of standard input is a request, and the same line of standard output is the answer. Both
are JSON objects. To write a client in another language, read this file along with the specification
(docs/client-spec.md).
"""

import hashlib
import json
import sys
from collections.abc import Callable
from datetime import datetime
from typing import Any

import numpy as np

from sfumato.batches import UploadRules, to_json
from sfumato.client.ledger import Entry, Ledger, require_consent
from sfumato.client.memory import batch_id, derive_report, derive_words, value_token
from sfumato.errors import InvalidSurvey, SfumatoError, WrongSurvey
from sfumato.foundation.arrays import Words
from sfumato.foundation.canonical import Fields, canonical_bytes
from sfumato.foundation.periods import period_name
from sfumato.mechanisms import Mechanism
from sfumato.survey import Survey


class ReferenceClient:
    """Answers line-protocol requests. Its only state is the set of loaded surveys.

    >>> ReferenceClient().answer({"op": "canonical", "text": '{"b": 1, "a": 2}'})["ok"]["text"]
    '{"a":2,"b":1}'
    """

    def __init__(self) -> None:
        self._surveys: dict[str, Survey] = {}
        self._operations: dict[str, Callable[[Fields], Fields]] = {
            "load": self._load,
            "symbol": self._symbol,
            "reports": self._reports,
            "enumerate": self._enumerate,
            "canonical": self._canonical,
            "remembered": self._remember,
            "token": self._token,
            "batch_id": self._batch_id,
            "batch": self._batch,
            "charge": self._charge,
        }

    def answer(self, request: Fields) -> dict[str, Any]:
        """Return ``{"ok": …}``, or ``{"error": …}`` with the name of the error."""
        operation = self._operations.get(request["op"])
        if operation is None:
            return {"error": "UnknownOperation"}
        try:
            return {"ok": operation(request)}
        except SfumatoError as problem:
            return {"error": type(problem).__name__}

    # --- surveys and values ----------------------------------------------------------------------

    def _load(self, request: Fields) -> Fields:
        survey = Survey.from_resolved(
            request["text"].encode("utf-8"), fingerprint=request["fingerprint"]
        )
        survey.certify()
        self._surveys[survey.fingerprint] = survey
        mechanism = survey.mechanism
        return {
            "fingerprint": survey.fingerprint,
            "inputs": mechanism.inputs,
            "outputs": mechanism.outputs,
            "words": mechanism.words,
            "word_bits": mechanism.word_bits,
        }

    def _symbol(self, request: Fields) -> Fields:
        domain = self._survey(request).context.domain
        return {"symbol": int(domain.symbols([request["value"]])[0])}

    @staticmethod
    def _canonical(request: Fields) -> Fields:
        try:
            canonical = canonical_bytes(json.loads(request["text"]))
        except (ValueError, TypeError):
            raise InvalidSurvey("this text has no canonical form.") from None
        digest = hashlib.sha256(canonical).hexdigest()
        return {"text": canonical.decode("utf-8"), "sha256": digest}

    # --- reports ---------------------------------------------------------------------------------

    def _reports(self, request: Fields) -> Fields:
        mechanism = self._survey(request).mechanism
        word_pairs = [(int(digits[:16], 16), int(digits[16:], 16)) for digits in request["words"]]
        words = np.array(word_pairs, dtype=np.uint64)[:, : mechanism.words]
        words >>= np.uint64(64 - mechanism.word_bits)
        return {"reports": mechanism.reports_from(request["symbols"], words).tolist()}

    def _enumerate(self, request: Fields) -> Fields:
        mechanism = self._survey(request).mechanism
        words = _all_words(mechanism)
        reports = mechanism.reports_from(np.full(len(words), request["symbol"]), words)
        counts = np.bincount(reports, minlength=mechanism.outputs).tolist()
        digest = hashlib.sha256(reports.astype("<u4").tobytes()).hexdigest()
        return {"counts": counts, "sha256": digest}

    # --- memory and uploads ----------------------------------------------------------------------

    def _remember(self, request: Fields) -> Fields:
        survey = self._survey(request)
        secret = bytes.fromhex(request["secret"])
        x = request["symbol"]
        w0, w1 = derive_words(secret, survey.fingerprint, x)[0].tolist()
        report = derive_report(secret, survey.fingerprint, survey.mechanism, x)
        return {"words": f"{w0:016x}{w1:016x}", "report": report}

    def _token(self, request: Fields) -> Fields:
        secret = bytes.fromhex(request["secret"])
        return {"token": value_token(secret, self._survey(request).fingerprint, request["symbol"])}

    def _batch_id(self, request: Fields) -> Fields:
        survey = self._survey(request)
        secret = bytes.fromhex(request["secret"])
        every = survey.description.every
        period = None
        if every:
            period = period_name(every, datetime.fromisoformat(request["time"]))
        return {"batch": batch_id(secret, survey.fingerprint, period or "").hex(), "period": period}

    def _batch(self, request: Fields) -> Fields:
        survey = self._survey(request)
        reports = np.array(request["reports"], dtype=np.uint32)
        rules = UploadRules.from_survey(survey)
        key = rules.parse_key(request.get("period"))
        batch = rules.make_batch(bytes.fromhex(request["batch"]), reports, key)
        return {"body": to_json(batch).decode("ascii")}

    def _charge(self, request: Fields) -> Fields:
        survey = self._survey(request)
        require_consent(survey, request["allow_clear"])
        record = {name: request[name] for name in ("budget", "entries", "secret")}
        ledger = Ledger.from_record(record)
        entry = Entry.from_survey(survey, request["secret"])
        ledger = ledger.charge(entry)
        return {"spent": str(ledger.spent), "entries": len(ledger.entries)}

    def _survey(self, request: Fields) -> Survey:
        if request["survey"] not in self._surveys:
            raise WrongSurvey("this survey was not loaded, or was rejected.")
        return self._surveys[request["survey"]]


def _all_words(mechanism: Mechanism) -> Words:
    """Return every combination of the mechanism's words, one per row."""
    values = np.arange(1 << mechanism.word_bits, dtype=np.uint64)
    grids = np.meshgrid(*[values] * mechanism.words, indexing="ij")
    return np.stack(grids, axis=-1).reshape(-1, mechanism.words)


def main() -> None:
    """Answer requests until standard input ends."""
    client = ReferenceClient()
    for line in sys.stdin:
        print(json.dumps(client.answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
