"""The answer log: a device's record of its answers to one survey, and its queue of unsent ones.

It contains reports and tokens, never a value. If a survey is answered only once, the report is
deleted when it is counted, because it is not needed again: the log is then the same for all values.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from sfumato.errors import DamagedState
from sfumato.foundation.canonical import Json

__all__ = ["Answer", "AnswerLog"]


@dataclass(frozen=True, repr=False)
class Answer:
    """A report, its batch identifier, and its period ("" for a survey answered only once).

    ``report`` is ``None`` after it was deleted.
    """

    period: str
    batch: bytes
    report: int | None

    def require_report(self) -> int:
        """Return the report of an answer that is not delivered, or that may be repeated."""
        if self.report is None:
            raise DamagedState("the device's memory of its answers is damaged. Call forget().")
        return self.report

    def to_record(self) -> Json:
        """Return the answer as plain data."""
        return {"period": self.period, "batch": self.batch.hex(), "report": self.report}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Build an answer from its record."""
        report = record["report"]
        return cls(
            str(record["period"]),
            bytes.fromhex(record["batch"]),
            None if report is None else int(report),
        )

    def __repr__(self) -> str:
        return f"Answer(batch={self.batch.hex()[:8]}…)"


@dataclass(frozen=True, repr=False)
class AnswerLog:
    """The last answer, the tokens of all values used so far, and the queue of unsent answers.

    ``secret``: the tag of the secret from which the answers and tokens were derived.
    """

    secret: str
    last: Answer | None = None
    tokens: tuple[str, ...] = ()
    waiting: tuple[Answer, ...] = ()

    def current(self, period: str) -> Answer | None:
        """Return the answer for a period, or ``None`` if a new one is due.

        An answer for a later period also counts, because the clock may have been set back.
        """
        if self.last is not None and period <= self.last.period:
            return self.last
        return None

    def is_waiting(self, answer: Answer) -> bool:
        """Whether this answer is in the queue."""
        return any(other.batch == answer.batch for other in self.waiting)

    def add(self, answer: Answer, tokens: tuple[str, ...]) -> "AnswerLog":
        """Return the log with a new answer, which is also added to the queue."""
        return replace(self, last=answer, tokens=tokens, waiting=(*self.waiting, answer))

    def mark_delivered(self, answer: Answer) -> "AnswerLog":
        """Return the log with this answer removed from the queue."""
        waiting = tuple(other for other in self.waiting if other.batch != answer.batch)
        last = self.last
        if last is not None and last.batch == answer.batch and not last.period:
            last = replace(last, report=None)
        return replace(self, last=last, waiting=waiting)

    def to_record(self) -> dict[str, Json]:
        """Return the log as plain data."""
        return {
            "secret": self.secret,
            "last": None if self.last is None else self.last.to_record(),
            "tokens": list(self.tokens),
            "waiting": [answer.to_record() for answer in self.waiting],
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Build a log from its record."""
        last = None if record["last"] is None else Answer.from_record(record["last"])
        tokens = tuple(map(str, record["tokens"]))
        waiting = tuple(map(Answer.from_record, record["waiting"]))
        return cls(str(record["secret"]), last, tokens, waiting)

    def __repr__(self) -> str:
        return f"AnswerLog({len(self.waiting)} waiting)"
