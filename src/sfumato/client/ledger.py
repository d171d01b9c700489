"""The ledger: what a device has promised, entry by entry. No entry is ever removed, and time refills nothing.

An entry is a survey that the device answered under one secret, with its cost: the number of distinct values that the
person may answer with, times the survey's largest finite ε. The device charges it in full before it reads the value.
Later answers to the same survey cost nothing, because they are derived from the same secret. After the device forgets
its secret, answering again is a new entry.

A device has one account. Entries of format 1 had an account for their domain or subject, and a context in place of the
cost. They all count towards the one account now.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self

from sfumato.client.budget import cost_of
from sfumato.errors import BudgetExceeded
from sfumato.foundation.canonical import Json, decimal_text
from sfumato.survey import Survey
from sfumato.survey.resolved import context_of

__all__ = ["LEDGER_FORMATS", "Entry", "Ledger", "distinct_values", "require_consent"]

LEDGER_FORMATS = (1, 2)
"""The formats that this version reads; it writes the last."""


@dataclass(frozen=True)
class Entry:
    """A survey's fingerprint, the tag of the secret that answered it, and what it costs."""

    survey: str
    secret: str
    cost: Fraction

    @classmethod
    def of_survey(cls, survey: Survey, secret: str) -> Self:
        """The entry of a survey that is answered under the secret with this tag."""
        return cls(survey.fingerprint, secret, cost_of(survey.context, distinct_values(survey)))

    @property
    def name(self) -> tuple[str, str]:
        """What a device charges once: a survey under a secret."""
        return self.survey, self.secret

    def record(self) -> Json:
        """Return the entry as plain data."""
        return {"survey": self.survey, "secret": self.secret, "cost": decimal_text(self.cost)}

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Self:
        """Read an entry of either format."""
        if "cost" in record:
            cost = Fraction(record["cost"])
        else:
            cost = cost_of(context_of(record["context"]), int(record["times"]))
        return cls(str(record["survey"]), str(record["secret"]), cost)


@dataclass(frozen=True)
class Ledger:
    """All entries of a device, oldest first, and the tag of its present secret.

    The tag tells the device's secret from one that a broken disk has changed. Under a changed secret the device would
    answer the same questions a second time.
    """

    entries: tuple[Entry, ...] = ()
    secret: str = ""

    def holds(self, entry: Entry) -> bool:
        """Whether this survey was charged before, under this secret."""
        return any(held.name == entry.name for held in self.entries)

    @property
    def spent(self) -> Fraction:
        """What the device has given away so far, at most."""
        return sum((entry.cost for entry in self.entries), start=Fraction(0))

    def charge(self, entry: Entry, budget: Fraction | None) -> "Ledger":
        """Return the ledger with one more entry; ``BudgetExceeded`` if that exceeds the budget.

        A survey that was charged before costs nothing, and is never refused.
        """
        if self.holds(entry):
            return self
        charged = replace(self, entries=(*self.entries, entry))
        if budget is not None and charged.spent > budget:
            raise BudgetExceeded(
                f"survey {entry.survey[:12]}… would exceed this device's budget of {decimal_text(budget)}: it has "
                f"spent {decimal_text(self.spent)}, and would have spent {decimal_text(charged.spent)}. Nothing was "
                "sent. Time does not refill a budget. If the person agrees to more, pass a larger budget."
            )
        return charged

    def record(self) -> dict[str, Json]:
        """Return the ledger as plain data."""
        return {"entries": [entry.record() for entry in self.entries], "secret": self.secret}

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Self:
        """Read a ledger of either format."""
        entries = [Entry.of_record(entry) for entry in record["entries"]]
        return cls(_first_of_each_name(entries), str(record["secret"]))


def require_consent(survey: Survey, allow_clear: bool) -> None:
    """Refuse a survey that leaves pairs open unless the caller allows it: its reports may give answers away."""
    if survey.context.leaves_open and not allow_clear:
        raise BudgetExceeded(
            f"survey {survey.fingerprint[:12]}… leaves some answers unprotected: a report may give them away, whatever "
            "the budget. Nothing was sent. Show the person survey.disclosure(), then pass allow_clear=True."
        )


def distinct_values(survey: Survey) -> int:
    """How many distinct values of one person a survey may be answered with."""
    repeat: Any = survey.description.about["repeat"]
    return 1 if repeat == "once" else int(repeat["distinct"])


def _first_of_each_name(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Drop copies: format 1 listed a survey twice if it was charged to two accounts, though it was answered once."""
    by_name: dict[tuple[str, str], Entry] = {}
    for entry in entries:
        by_name.setdefault(entry.name, entry)
    return tuple(by_name.values())
