"""A case: a request of the line protocol, and the one right answer to it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.survey import Survey

__all__ = ["Case", "loading", "refused"]


@dataclass(frozen=True)
class Case:
    """``request`` as a client reads it, ``answer`` as it must be; ``about`` says to people what is tried."""

    about: str
    request: Mapping[str, Any]
    answer: Mapping[str, Any]

    @classmethod
    def answered(cls, about: str, request: Mapping[str, Any], answer: Mapping[str, Any]) -> "Case":
        """A request that can be granted."""
        return cls(about, request, {"ok": answer})

    def line(self) -> str:
        """The case as a line of a vector file."""
        listed = {"about": self.about, "request": self.request, "answer": self.answer}
        return json.dumps(listed, ensure_ascii=True, separators=(",", ":"), allow_nan=False)


def loading(survey: Survey) -> Case:
    """Load a survey that must be taken, under its own fingerprint."""
    mechanism = survey.mechanism
    found = {
        "fingerprint": survey.fingerprint,
        "inputs": mechanism.inputs,
        "outputs": mechanism.outputs,
        "words": mechanism.words,
        "word_bits": mechanism.word_bits,
    }
    request = {
        "op": "load",
        "fingerprint": survey.fingerprint,
        "text": survey.resolved().decode("utf-8"),
    }
    return Case.answered(survey.name, request, found)


def refused(about: str, request: Mapping[str, Any], error: str | Sequence[str]) -> Case:
    """A request that must be refused, by this error."""
    return Case(about, request, {"error": error})
