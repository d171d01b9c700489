"""Problem documents (RFC 9457): a name for programs and an explanation for people.

No document contains a report or any other part of a request body.
"""

from collections.abc import Mapping
from typing import Any

from fastapi import Response
from pydantic import BaseModel, Field

from sfumato.errors import (
    ContextMismatch,
    EntropyUnavailable,
    InvalidArgument,
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
    UnknownSender,
    UnknownValue,
)
from sfumato.foundation.canonical import canonical_bytes

__all__ = [
    "PROBLEM_JSON",
    "Problem",
    "ProblemDocument",
    "problem_for",
    "problem_response",
    "problem_responses",
    "unknown_survey",
]

PROBLEM_JSON = "application/problem+json"
"""The media type of problem documents."""

_PROBLEMS = {
    "invalid-request": (400, "The request is not valid for this endpoint."),
    "invalid-batch": (400, "The body is not a valid batch of reports."),
    "invalid-tally": (400, "The body is not a valid tally."),
    "not-authorised": (401, "This endpoint requires the analyst token."),
    "too-many-reports": (403, "An upload with this many reports requires a sender's key."),
    "survey-not-open": (403, "The survey has not opened yet."),
    "unknown-survey": (404, "This aggregator has no such survey."),
    "unknown-sender": (404, "The survey has no such bulk sender."),
    "not-found": (404, "There is nothing at this path."),
    "method-not-allowed": (405, "This endpoint does not support this method."),
    "body-too-slow": (408, "The body did not arrive in time."),
    "batch-conflict": (409, "Different reports were already counted under this identifier."),
    "tally-conflict": (409, "This tally, or one inside it, was already counted."),
    "not-enough-reports": (409, "There are not enough reports for results."),
    "survey-state": (409, "The survey's state does not allow this."),
    "survey-closed": (410, "The survey is closed."),
    "body-too-large": (413, "The body is too large."),
    "unknown-media-type": (415, "This endpoint does not accept this media type."),
    "report-rejected": (422, "One of the reports is not an output of this survey's mechanism."),
    "invalid-question": (422, "The question is invalid."),
    "too-many-requests": (429, "This client makes too many requests."),
    "head-too-large": (431, "The request line and the headers are too large."),
    "internal-error": (500, "An unexpected error occurred."),
    "store-unavailable": (503, "The store is temporarily unavailable."),
    "stopping": (503, "The aggregator is stopping."),
    "store-full": (507, "The store has no space left."),
}
"""The status code and title of each problem."""

_QUESTION_ERRORS = (
    ContextMismatch,
    InvalidArgument,
    InvalidContext,
    InvalidSymbols,
    NothingToLearn,
    UnknownValue,
)

_ERRORS_BY_PROBLEM: dict[str, type[SfumatoError] | tuple[type[SfumatoError], ...]] = {
    "report-rejected": ReportRejected,
    "invalid-batch": InvalidBatch,
    "invalid-tally": InvalidTally,
    "store-full": StoreFull,  # before StoreUnavailable, its base class
    "store-unavailable": (StoreUnavailable, EntropyUnavailable),
    "not-enough-reports": NotEnoughReports,
    "unknown-sender": UnknownSender,
    "invalid-question": _QUESTION_ERRORS,
}
"""The errors that map to each problem; the first match wins."""

_RETRY_HEADERS = {
    "store-full": {"Retry-After": "30"},
    "store-unavailable": {"Retry-After": "1"},
}


class ProblemDocument(BaseModel):
    """A problem, as defined by RFC 9457."""

    type: str = Field(examples=["urn:sfumato:problem:unknown-survey"])
    title: str
    status: int
    detail: str
    index: int | None = Field(
        default=None, description="The position of the rejected report in its batch."
    )


class Problem(Exception):
    """An exception that is returned to the client as a problem document."""

    def __init__(
        self,
        name: str,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        index: int | None = None,
    ) -> None:
        super().__init__(name)
        self.name = name
        self.detail = detail
        self.index = index
        self.status, self.title = _PROBLEMS[name]
        self.headers = headers


def unknown_survey() -> Problem:
    """Return the problem for a request to an unknown survey."""
    return Problem("unknown-survey", "See /v1/surveys for the surveys on this aggregator.")


def problem_for(error: SfumatoError) -> Problem:
    """Return the problem that describes an error."""
    for name, classes in _ERRORS_BY_PROBLEM.items():
        if isinstance(error, classes):
            headers = _RETRY_HEADERS.get(name)
            return Problem(name, str(error), headers=headers, index=getattr(error, "index", None))
    return Problem("internal-error", f"The aggregator failed ({type(error).__name__}).")


def problem_response(problem: Problem) -> Response:
    """Return a response with the problem document."""
    document: dict[str, Any] = {
        "type": f"urn:sfumato:problem:{problem.name}",
        "title": problem.title,
        "status": problem.status,
        "detail": problem.detail,
    }
    if problem.index is not None:
        document["index"] = problem.index
    return Response(canonical_bytes(document), problem.status, problem.headers, PROBLEM_JSON)


def problem_responses(*names: str) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI description of an endpoint's problems."""
    content = {PROBLEM_JSON: {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}}
    responses: dict[int | str, dict[str, Any]] = {}
    for name in names:
        status, description = _PROBLEMS[name]
        if status in responses:
            description = f"{responses[status]['description']} Or: {description}"
        responses[status] = {"description": description, "content": content}
    return responses
