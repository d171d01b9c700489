"""The diary: what a device has answered to one survey, and what of it still waits to be sent. It holds no value."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from sfumato.foundation.canonical import Json

__all__ = ["Answer", "Diary"]


@dataclass(frozen=True, repr=False)
class Answer:
    """A report, the identifier of its upload and the period that it stands for ("" if one is for all time)."""

    period: str
    batch: bytes
    report: int

    def record(self) -> Json:
        """The answer as plain data."""
        return {"period": self.period, "batch": self.batch.hex(), "report": self.report}

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Self:
        """The answer that a record describes."""
        return cls(str(record["period"]), bytes.fromhex(record["batch"]), int(record["report"]))

    def __repr__(self) -> str:
        return f"Answer(batch={self.batch.hex()[:8]}…)"


@dataclass(frozen=True, repr=False)
class Diary:
    """The last answer, the tokens of the values that were answered with, and the answers that wait.

    ``secret`` is the tag of the secret that all of it was derived from.
    """

    secret: str
    last: Answer | None = None
    tokens: tuple[str, ...] = ()
    waiting: tuple[Answer, ...] = ()

    def standing(self, period: str) -> Answer | None:
        """The answer that stands for a period. One that was given for a later period stands too: clocks run back."""
        return self.last if self.last is not None and period <= self.last.period else None

    def answered(self, answer: Answer, tokens: tuple[str, ...]) -> "Diary":
        """The diary with one more answer, which waits."""
        return replace(self, last=answer, tokens=tokens, waiting=(*self.waiting, answer))

    def delivered(self, answer: Answer) -> "Diary":
        """The diary when an answer waits no longer."""
        return replace(
            self, waiting=tuple(held for held in self.waiting if held.batch != answer.batch)
        )

    def record(self) -> dict[str, Json]:
        """The diary as plain data."""
        return {
            "secret": self.secret,
            "last": None if self.last is None else self.last.record(),
            "tokens": list(self.tokens),
            "waiting": [answer.record() for answer in self.waiting],
        }

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Self:
        """The diary that a record describes."""
        last = None if record["last"] is None else Answer.of_record(record["last"])
        waiting = tuple(Answer.of_record(answer) for answer in record["waiting"])
        return cls(str(record["secret"]), last, tuple(map(str, record["tokens"])), waiting)

    def __repr__(self) -> str:
        return f"Diary({len(self.waiting)} waiting)"
