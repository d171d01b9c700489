"""The answer log: what a device answered to one survey, and what still waits to be sent.

It holds reports and tokens, never a value.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from sfumato.foundation.canonical import Json

__all__ = ["Answer", "AnswerLog"]


@dataclass(frozen=True, repr=False)
class Answer:
    """A report, the identifier of its upload and its period ("" for a survey answered once)."""

    period: str
    batch: bytes
    report: int

    def record(self) -> Json:
        """Return the answer as plain data."""
        return {"period": self.period, "batch": self.batch.hex(), "report": self.report}

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Self:
        """Read an answer from its record."""
        return cls(str(record["period"]), bytes.fromhex(record["batch"]), int(record["report"]))

    def __repr__(self) -> str:
        return f"Answer(batch={self.batch.hex()[:8]}…)"


@dataclass(frozen=True, repr=False)
class AnswerLog:
    """The last answer, the tokens of all values used so far, and the answers that wait.

    ``secret`` is the tag of the secret that all of it was derived from.
    """

    secret: str
    last: Answer | None = None
    tokens: tuple[str, ...] = ()
    waiting: tuple[Answer, ...] = ()

    def current(self, period: str) -> Answer | None:
        """Return the answer that stands for a period, or ``None`` if a new one is due.

        An answer for a later period stands too: clocks can be set back.
        """
        if self.last is not None and period <= self.last.period:
            return self.last
        return None

    def waits(self, answer: Answer) -> bool:
        """Whether this answer is still to be sent."""
        return any(other.batch == answer.batch for other in self.waiting)

    def add(self, answer: Answer, tokens: tuple[str, ...]) -> "AnswerLog":
        """Return the log with one more answer, which waits."""
        return replace(self, last=answer, tokens=tokens, waiting=(*self.waiting, answer))

    def mark_delivered(self, answer: Answer) -> "AnswerLog":
        """Return the log without this answer among those that wait."""
        waiting = tuple(other for other in self.waiting if other.batch != answer.batch)
        return replace(self, waiting=waiting)

    def record(self) -> dict[str, Json]:
        """Return the log as plain data."""
        return {
            "secret": self.secret,
            "last": None if self.last is None else self.last.record(),
            "tokens": list(self.tokens),
            "waiting": [answer.record() for answer in self.waiting],
        }

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Self:
        """Read a log from its record."""
        last = None if record["last"] is None else Answer.of_record(record["last"])
        tokens = tuple(map(str, record["tokens"]))
        waiting = tuple(map(Answer.of_record, record["waiting"]))
        return cls(str(record["secret"]), last, tokens, waiting)

    def __repr__(self) -> str:
        return f"AnswerLog({len(self.waiting)} waiting)"
