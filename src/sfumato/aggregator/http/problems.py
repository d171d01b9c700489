"""Problem documents (RFC 9457): what went wrong, by a name that programs can act on and a sentence that people can.

No document ever holds a report or any other part of a body.
"""

from collections.abc import Mapping
from typing import Any

from fastapi import Response
from pydantic import BaseModel, Field

from sfumato.errors import (
    ContextMismatch,
    EntropyUnavailable,
    InvalidBatch,
    InvalidContext,
    InvalidSymbols,
    InvalidTally,
    NotEnoughReports,
    NothingToLearn,
    ReportRejected,
    SfumatoError,
    StoreFull,
    StoreUnavailable,
    UnknownValue,
)
from sfumato.foundation.canonical import canonical_bytes

__all__ = [
    "PROBLEM",
    "Problem",
    "ProblemDocument",
    "problem_of",
    "problem_response",
    "problem_responses",
]

PROBLEM = "application/problem+json"
_RETRY = {"Retry-After": "1"}

_STATUS = {
    "invalid-request": (400, "The request is not one that this address takes."),
    "invalid-batch": (400, "The body is not a batch of reports."),
    "invalid-tally": (400, "The body is not a tally."),
    "not-authorised": (401, "This address is for analysts: it needs the token."),
    "survey-not-open": (403, "The survey has not opened yet."),
    "unknown-survey": (404, "There is no such survey here."),
    "not-found": (404, "There is nothing at this address."),
    "method-not-allowed": (405, "This address does not take this method."),
    "body-too-slow": (408, "The body did not arrive in time."),
    "batch-conflict": (409, "Other reports were counted under this identifier."),
    "tally-conflict": (409, "This tally, or one inside it, was counted already."),
    "not-enough-reports": (409, "There are fewer reports than the survey gives results for."),
    "survey-state": (409, "The survey is not in a state for this."),
    "survey-closed": (410, "The survey is closed."),
    "body-too-large": (413, "The body is larger than this address takes."),
    "unknown-media-type": (415, "The body is of a kind that this address does not read."),
    "report-rejected": (422, "A report is not one that this survey's mechanism can have sent."),
    "invalid-question": (422, "The question cannot be answered as it is put."),
    "too-many-requests": (429, "Too many requests from this client."),
    "internal-error": (500, "Something went wrong that should not have."),
    "store-unavailable": (503, "The store cannot take anything in just now."),
    "store-full": (507, "The store has no room left."),
}


_QUESTIONS = (ContextMismatch, InvalidContext, InvalidSymbols, NothingToLearn, UnknownValue)
"""What is wrong with the question, and not with the aggregator."""


class ProblemDocument(BaseModel):
    """A problem, as RFC 9457 has it."""

    type: str = Field(examples=["urn:sfumato:problem:unknown-survey"])
    title: str
    status: int
    detail: str
    index: int | None = Field(
        default=None, description="The place of the rejected report in its batch."
    )


class Problem(Exception):
    """A request that ends here."""

    def __init__(
        self,
        name: str,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        index: int | None = None,
    ) -> None:
        super().__init__(name)
        self.name, self.detail, self.index = name, detail, index
        self.status, self.title = _STATUS[name]
        self.headers = dict(headers or {})


def problem_of(error: SfumatoError) -> Problem:
    """The problem that an error of the rooms below amounts to."""
    if isinstance(error, ReportRejected):
        return Problem("report-rejected", str(error), index=error.index)
    if isinstance(error, InvalidBatch):
        return Problem("invalid-batch", str(error))
    if isinstance(error, InvalidTally):
        return Problem("invalid-tally", str(error))
    if isinstance(error, StoreFull):
        return Problem("store-full", str(error), headers={"Retry-After": "30"})
    if isinstance(error, StoreUnavailable):
        return Problem("store-unavailable", str(error), headers=_RETRY)
    if isinstance(error, NotEnoughReports):
        return Problem("not-enough-reports", str(error))
    if isinstance(error, _QUESTIONS):
        return Problem("invalid-question", str(error))
    if isinstance(error, EntropyUnavailable):
        return Problem("store-unavailable", str(error), headers=_RETRY)
    return Problem("internal-error", f"The aggregator cannot do this ({type(error).__name__}).")


def problem_response(problem: Problem) -> Response:
    """The document, ready to be sent."""
    document: dict[str, Any] = {
        "type": f"urn:sfumato:problem:{problem.name}",
        "title": problem.title,
        "status": problem.status,
        "detail": problem.detail,
    }
    if problem.index is not None:
        document["index"] = problem.index
    return Response(canonical_bytes(document), problem.status, problem.headers, PROBLEM)


def problem_responses(*names: str) -> dict[int | str, dict[str, Any]]:
    """For OpenAPI: which problems an address may answer with."""
    found: dict[int | str, dict[str, Any]] = {}
    for name in names:
        status, title = _STATUS[name]
        described = f"{found[status]['description']} Or: {title}" if status in found else title
        schema = {"$ref": "#/components/schemas/ProblemDocument"}
        found[status] = {"description": described, "content": {PROBLEM: {"schema": schema}}}
    return found
