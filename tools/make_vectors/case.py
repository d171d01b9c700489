"""Build cases: a request and the expected answer of a client."""

from collections.abc import Mapping
from typing import Any

from sfumato.conformance import Case
from sfumato.survey import Survey

Fields = Mapping[str, Any]


def accept(about: str, request: Fields, **result: object) -> Case:
    """Build a case in which the client must return ``result``."""
    return Case(about, request, {"ok": result})


def reject(about: str, request: Fields, error: str) -> Case:
    """Build a case in which the client must fail with ``error``."""
    return Case(about, request, {"error": error})


def load(survey: Survey) -> Case:
    """Build a case in which the client must load a survey, pinned by its fingerprint."""
    mechanism = survey.mechanism
    return accept(
        survey.name,
        load_request(survey.resolved().decode("utf-8"), survey.fingerprint),
        fingerprint=survey.fingerprint,
        inputs=mechanism.inputs,
        outputs=mechanism.outputs,
        words=mechanism.words,
        word_bits=mechanism.word_bits,
    )


def load_request(text: str, fingerprint: str) -> Fields:
    """Build a request to load the survey in ``text`` if it has this fingerprint."""
    return {"op": "load", "fingerprint": fingerprint, "text": text}


def survey_request(operation: str, fingerprint: str, **fields: object) -> Fields:
    """Build a request about a survey that the client has already loaded."""
    return {"op": operation, "survey": fingerprint, **fields}
