"""Endpoints for operators whose survey was flooded: bulk senders, and what results leave out."""

from datetime import date
from typing import Annotated

from fastapi import APIRouter, Depends, Path
from pydantic import BaseModel, Field

from sfumato.aggregator.catalogue import CatalogueEntry
from sfumato.aggregator.http.aggregator import Aggregator, CurrentAggregator, RequestedSurvey
from sfumato.aggregator.http.problems import problem_responses
from sfumato.aggregator.http.token import require_token
from sfumato.aggregator.store import Omissions

__all__ = ["LeftOutBody", "router"]

_PROBLEMS = problem_responses(
    "invalid-request",
    "not-authorised",
    "too-many-requests",
    "unknown-survey",
    "method-not-allowed",
    "invalid-question",
    "store-unavailable",
    "store-full",
)
_SENDER_PROBLEMS = {**_PROBLEMS, **problem_responses("unknown-survey", "unknown-sender")}

Day = Annotated[date, Path(description="A day of arrival, in UTC, such as 2026-11-15.")]
SenderName = Annotated[str, Path(max_length=64, description="The name of a bulk sender.")]

router = APIRouter(tags=["operators"], dependencies=[Depends(require_token)])


class LeftOutBody(BaseModel):
    """The days of arrival and the bulk senders that results leave out."""

    days: list[str]
    senders: list[str]

    @classmethod
    def from_omissions(cls, omissions: Omissions) -> "LeftOutBody":
        """Return the body that describes omissions."""
        return cls(days=list(omissions.days), senders=list(omissions.senders))


class SenderEntry(BaseModel):
    """A bulk sender."""

    name: str
    revoked: bool


class SenderList(BaseModel):
    """A survey's bulk senders."""

    senders: list[SenderEntry]


class NewKey(BaseModel):
    """A bulk sender's new key. It is shown once, because only its hash is stored."""

    name: str
    key: str = Field(description="Send it with uploads, as Authorization: Bearer ….")


class DayEntry(BaseModel):
    """The reports of a sender on a day, and whether they look like honest ones."""

    day: str = Field(description="The day of arrival, in UTC.")
    sender: str = Field(description="A bulk sender, or empty for anonymous uploads.")
    reports: int
    left_out: bool
    fit: float | None = Field(
        description="The p-value of the test whether these reports can come from honest devices. "
        "Null if there are fewer than the survey's minimum."
    )
    largest_shift: float = Field(
        description="How far a share in the results could have moved if all of these reports were "
        "fake. 0 if they are left out."
    )


class DayList(BaseModel):
    """The reports of each day and sender, the latest first."""

    days: list[DayEntry]


@router.get("/v1/surveys/{fingerprint}/days", responses=_PROBLEMS)
async def list_days(entry: RequestedSurvey, aggregator: CurrentAggregator) -> DayList:
    """List the reports of each day and sender, with a test of each, so that a flood is seen."""
    summaries = await aggregator.estimates.summarize_days(entry)
    days = []
    for summary in summaries:
        day = DayEntry(
            day=summary.day,
            sender=summary.sender,
            reports=summary.reports,
            left_out=summary.is_left_out,
            fit=summary.p_value,
            largest_shift=summary.largest_shift,
        )
        days.append(day)
    return DayList(days=days)


@router.put("/v1/surveys/{fingerprint}/omissions/days/{day}", responses=_PROBLEMS)
async def leave_out_day(
    day: Day, entry: RequestedSurvey, aggregator: CurrentAggregator
) -> LeftOutBody:
    """Leave out of the results what arrived on a day. Nothing is deleted."""
    await aggregator.store_threads.run(aggregator.store.leave_out_day, entry.fingerprint, day)
    return await _read_omissions(entry, aggregator)


@router.delete("/v1/surveys/{fingerprint}/omissions/days/{day}", responses=_PROBLEMS)
async def include_day(
    day: Day, entry: RequestedSurvey, aggregator: CurrentAggregator
) -> LeftOutBody:
    """Include a day in the results again."""
    await aggregator.store_threads.run(aggregator.store.include_day, entry.fingerprint, day)
    return await _read_omissions(entry, aggregator)


@router.put("/v1/surveys/{fingerprint}/omissions/senders/{sender}", responses=_SENDER_PROBLEMS)
async def leave_out_sender(
    sender: SenderName, entry: RequestedSurvey, aggregator: CurrentAggregator
) -> LeftOutBody:
    """Leave out of the results what a bulk sender uploaded. Nothing is deleted."""
    await aggregator.store_threads.run(aggregator.store.leave_out_sender, entry.fingerprint, sender)
    return await _read_omissions(entry, aggregator)


@router.delete("/v1/surveys/{fingerprint}/omissions/senders/{sender}", responses=_SENDER_PROBLEMS)
async def include_sender(
    sender: SenderName, entry: RequestedSurvey, aggregator: CurrentAggregator
) -> LeftOutBody:
    """Include a bulk sender in the results again."""
    await aggregator.store_threads.run(aggregator.store.include_sender, entry.fingerprint, sender)
    return await _read_omissions(entry, aggregator)


async def _read_omissions(entry: CatalogueEntry, aggregator: Aggregator) -> LeftOutBody:
    omissions = await aggregator.store_threads.run(
        aggregator.store.read_omissions, entry.fingerprint
    )
    return LeftOutBody.from_omissions(omissions)


@router.get("/v1/surveys/{fingerprint}/senders", responses=_PROBLEMS)
async def list_senders(entry: RequestedSurvey, aggregator: CurrentAggregator) -> SenderList:
    """List the bulk senders."""
    senders = await aggregator.store_threads.run(aggregator.store.list_senders, entry.fingerprint)
    entries = [SenderEntry(name=sender.name, revoked=sender.is_revoked) for sender in senders]
    return SenderList(senders=entries)


@router.put("/v1/surveys/{fingerprint}/senders/{sender}", responses=_PROBLEMS)
async def add_sender(
    sender: SenderName, entry: RequestedSurvey, aggregator: CurrentAggregator
) -> NewKey:
    """Add a bulk sender, or replace its key. The old key stops working."""
    key = await aggregator.store_threads.run(aggregator.store.add_sender, entry.fingerprint, sender)
    return NewKey(name=sender, key=key)


@router.delete("/v1/surveys/{fingerprint}/senders/{sender}", responses=_SENDER_PROBLEMS)
async def revoke_sender(
    sender: SenderName, entry: RequestedSurvey, aggregator: CurrentAggregator
) -> SenderList:
    """Revoke a bulk sender's key. What it uploaded stays in the results."""
    await aggregator.store_threads.run(aggregator.store.revoke_sender, entry.fingerprint, sender)
    return await list_senders(entry, aggregator)
