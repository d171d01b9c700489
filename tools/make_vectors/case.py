"""Cases, one function for each kind of right answer."""

from collections.abc import Mapping
from typing import Any

from sfumato.conformance import Case
from sfumato.survey import Survey

__all__ = ["accept", "load", "load_request", "refuse"]

Fields = Mapping[str, Any]


def accept(about: str, request: Fields, ok: Fields) -> Case:
    """Make a request that the client must grant, with this result."""
    return Case(about, request, {"ok": ok})


def refuse(about: str, request: Fields, error: str) -> Case:
    """Make a request that the client must refuse, with this error."""
    return Case(about, request, {"error": error})


def load(survey: Survey) -> Case:
    """Load a survey that the client must accept, under its own fingerprint."""
    mechanism = survey.mechanism
    ok = {
        "fingerprint": survey.fingerprint,
        "inputs": mechanism.inputs,
        "outputs": mechanism.outputs,
        "words": mechanism.words,
        "word_bits": mechanism.word_bits,
    }
    return accept(survey.name, load_request(survey), ok)


def load_request(survey: Survey) -> dict[str, Any]:
    """Make the request that loads a survey."""
    text = survey.resolved().decode("utf-8")
    return {"op": "load", "fingerprint": survey.fingerprint, "text": text}
