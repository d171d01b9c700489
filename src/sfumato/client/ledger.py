"""The ledger: what a device has promised, entry by entry. Entries are never removed or refilled.

An entry is a survey that the device answered under one secret, with its cost: the number of
distinct values that the person may answer with, times the survey's largest finite ε. The device
charges the full cost before it reads the value. Later answers to the same survey cost nothing,
because they are derived from the same secret. After the device forgets its secret, answering again
adds a new entry.

The budget limits the total. Answers under E1 and E2 together keep E1 + E2 (Proposition 2 of the
paper), if both are about the same value. A device cannot know that: two surveys over the same
labels may ask about lunch and about dinner, and an author could put all questions into one list of
labels and protect a different part of it in each survey. So each survey counts with the largest
entry of its matrix, and all surveys add up, even if their labels differ.

An infinite entry of the matrix is not a cost. It promises nothing for its pair, and a device
answers such a survey only if its caller passes ``allow_clear``.

A device has one budget. In format 1, entries had an account for their domain or subject, and a
context instead of a cost. They all count towards the one budget now.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self

from sfumato.contexts import Context, context_from_record
from sfumato.errors import BudgetExceeded, InvalidArgument, InvalidContext
from sfumato.foundation.canonical import Json, decimal_text
from sfumato.randomness import exact_number
from sfumato.survey import Survey

__all__ = [
    "DEFAULT_BUDGET",
    "LEDGER_FORMATS",
    "Entry",
    "Ledger",
    "cost_of",
    "distinct_values",
    "parse_budget",
    "require_consent",
]

DEFAULT_BUDGET = Fraction(4)
"""Reports then change the odds between any two answers by a factor of at most e^4 ≈ 55: a 50 : 50
guess becomes at most 98 : 2. Four surveys at ε = 1 fit. Beyond that, little is deniable."""

LEDGER_FORMATS = (1, 2)
"""The formats that this version reads. It writes the last one."""


@dataclass(frozen=True)
class Entry:
    """A survey's fingerprint, the tag of the secret it is answered under, and its cost."""

    survey: str
    secret: str
    cost: Fraction

    @classmethod
    def from_survey(cls, survey: Survey, secret: str) -> Self:
        """Return the entry of a survey that is answered under the secret with this tag."""
        return cls(survey.fingerprint, secret, cost_of(survey.context, distinct_values(survey)))

    @property
    def key(self) -> tuple[str, str]:
        """The survey and the secret: a device charges each pair once."""
        return self.survey, self.secret

    def to_record(self) -> Json:
        """Return the entry as plain data."""
        return {"survey": self.survey, "secret": self.secret, "cost": decimal_text(self.cost)}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Read an entry of either format."""
        if "cost" in record:
            cost = Fraction(record["cost"])
        else:
            cost = cost_of(context_from_record(record["context"]), int(record["times"]))
        return cls(str(record["survey"]), str(record["secret"]), cost)


@dataclass(frozen=True)
class Ledger:
    """All entries of a device, oldest first, and the tag of its current secret.

    The tag shows whether a broken disk has changed the secret. Under a changed secret the device
    would answer the same questions a second time.
    """

    entries: tuple[Entry, ...] = ()
    secret: str = ""

    @property
    def spent(self) -> Fraction:
        """The total cost of all entries: an upper bound on what the device has given away."""
        return sum((entry.cost for entry in self.entries), start=Fraction(0))

    def charge(self, entry: Entry, budget: Fraction | None) -> "Ledger":
        """Return the ledger with one more entry; ``BudgetExceeded`` if that exceeds the budget.

        Return the ledger itself if the survey was charged before under this secret.
        """
        if any(other.key == entry.key for other in self.entries):
            return self
        charged = replace(self, entries=(*self.entries, entry))
        if budget is not None and charged.spent > budget:
            raise BudgetExceeded(
                f"survey {entry.survey[:12]}… would exceed this device's budget of "
                f"{decimal_text(budget)}: it has spent {decimal_text(self.spent)}, and would have "
                f"spent {decimal_text(charged.spent)}. Nothing was sent. Time does not refill a "
                "budget. If the person agrees to more, pass a larger budget."
            )
        return charged

    def to_record(self) -> dict[str, Json]:
        """Return the ledger as plain data."""
        return {"entries": [entry.to_record() for entry in self.entries], "secret": self.secret}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Read a ledger of either format."""
        entries = [Entry.from_record(entry) for entry in record["entries"]]
        return cls(_without_duplicates(entries), str(record["secret"]))


def parse_budget(budget: object) -> Fraction | None:
    """Return a budget as an exact number; ``None`` means no budget.

    >>> parse_budget("2.5")
    Fraction(5, 2)
    """
    if budget is None:
        return None
    try:
        exact = exact_number(budget, "budget")
    except InvalidContext:
        exact = Fraction(0)
    if not isinstance(exact, Fraction) or exact <= 0:
        raise InvalidArgument(
            "budget must be a positive number such as 4. Pass budget=None to have no budget."
        )
    return exact


def require_consent(survey: Survey, allow_clear: bool) -> None:
    """Refuse a survey that leaves pairs of answers unprotected unless the caller allows it."""
    if survey.context.has_unprotected_pairs and not allow_clear:
        raise BudgetExceeded(
            f"survey {survey.fingerprint[:12]}… leaves some answers unprotected: a report may give "
            "them away, and no budget measures that. Nothing was sent. Show the person "
            "survey.disclosure(), then pass allow_clear=True."
        )


def distinct_values(survey: Survey) -> int:
    """Return the number of distinct values that a person may answer a survey with."""
    repeat: Any = survey.description.about["repeat"]
    return 1 if repeat == "once" else int(repeat["distinct"])


def cost_of(context: Context, distinct: int) -> Fraction:
    """Return the cost of answering with ``distinct`` values: ``distinct`` times the largest finite ε.

    >>> from sfumato.contexts import HighLow
    >>> cost_of(HighLow(["park", "clinic"], ["clinic"], "0.5"), 3)
    Fraction(3, 2)
    """
    return distinct * context.largest_finite


def _without_duplicates(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Keep the first entry of each key: format 1 listed a survey once per account."""
    by_key: dict[tuple[str, str], Entry] = {}
    for entry in entries:
        by_key.setdefault(entry.key, entry)
    return tuple(by_key.values())
