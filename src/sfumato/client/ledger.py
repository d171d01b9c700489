"""The ledger: the cost of every survey that a device has answered. Entries are never removed.

An entry records a survey that the device answered under one secret, and its cost: the number of
distinct values that the person may answer with, times the survey's largest finite ε. The device
charges the full cost before it reads the value. Later answers to the same survey cost nothing,
because they are derived from the same secret. After the device forgets its secret, answering again
adds a new entry.

The budget limits the total cost. Answers under E1 and E2 together satisfy E1 + E2 if both are about
the same value (Acharya et al., 2020, Proposition 2). A device cannot know whether they are: two
surveys over the same labels may ask about lunch and about dinner. An author could also put all
questions into one list of labels and protect a different part of the list in each survey. So each
survey costs the largest finite entry of its matrix, and the costs of all surveys are added, even if
their labels differ.

An infinite entry costs nothing, because it promises nothing about its pair of answers. A device
answers a survey with infinite entries only if the caller passes ``allow_clear``.

A device has one budget. In format 1, entries had an account for their domain or subject, and a
context instead of a cost. All of them now count towards the single budget.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
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
    "BudgetChoice",
    "Entry",
    "Ledger",
    "count_distinct_values",
    "parse_budget",
    "require_consent",
    "survey_cost",
]

DEFAULT_BUDGET = Fraction(4)
"""Within this budget, reports change the odds between any two answers by a factor of at most
e^4 ≈ 55: a 50:50 guess becomes at most 98:2. It allows four surveys at ε = 1. A larger budget would
leave little deniability."""


class BudgetChoice(Enum):
    """Which budget applies if the caller does not pass one."""

    STORED = "stored"  # the budget in the device's ledger


LEDGER_FORMATS = (1, 2)
"""The formats that this version can read. It writes the last of them."""


@dataclass(frozen=True)
class Entry:
    """A survey's fingerprint, the tag of the secret it is answered under, and its cost."""

    survey: str
    secret: str
    cost: Fraction

    @classmethod
    def from_survey(cls, survey: Survey, secret: str) -> Self:
        """Return the entry for a survey that is answered under the secret with this tag."""
        return cls(
            survey.fingerprint, secret, survey_cost(survey.context, count_distinct_values(survey))
        )

    @property
    def key(self) -> tuple[str, str]:
        """The survey and the secret. A device charges each such pair once."""
        return self.survey, self.secret

    def to_record(self) -> Json:
        """Return the entry as plain data."""
        return {"survey": self.survey, "secret": self.secret, "cost": decimal_text(self.cost)}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Build an entry from a record in either format."""
        if "cost" in record:
            cost = Fraction(record["cost"])
        else:
            cost = survey_cost(context_from_record(record["context"]), int(record["times"]))
        return cls(str(record["survey"]), str(record["secret"]), cost)


@dataclass(frozen=True)
class Ledger:
    """All entries of a device, oldest first, the tag of its current secret, and its budget.

    The budget is part of the ledger because it belongs to the device: a survey never sets it. The
    tag shows whether the secret file is damaged. With a different secret, the device would produce
    new reports for the same questions.
    """

    entries: tuple[Entry, ...] = ()
    secret: str = ""
    budget: Fraction | None = DEFAULT_BUDGET

    @property
    def spent(self) -> Fraction:
        """The total cost of all entries: an upper bound on what the device has revealed."""
        return sum((entry.cost for entry in self.entries), start=Fraction(0))

    def charge(self, entry: Entry) -> "Ledger":
        """Return the ledger with a new entry. Raise ``BudgetExceeded`` if it exceeds the budget.

        Return the ledger itself if the survey was already charged under this secret.
        """
        if any(existing.key == entry.key for existing in self.entries):
            return self
        charged = replace(self, entries=(*self.entries, entry))
        if self.budget is not None and charged.spent > self.budget:
            raise BudgetExceeded(
                f"survey {entry.survey[:12]}… would exceed this device's budget of "
                f"{decimal_text(self.budget)}: it has spent {decimal_text(self.spent)}, and would "
                f"have spent {decimal_text(charged.spent)}. Nothing was sent. A budget is not "
                "refilled over time. If the person agrees to more, pass a larger budget."
            )
        return charged

    def to_record(self) -> dict[str, Json]:
        """Return the ledger as plain data."""
        return {
            "budget": None if self.budget is None else decimal_text(self.budget),
            "entries": [entry.to_record() for entry in self.entries],
            "secret": self.secret,
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Build a ledger from a record in either format. Older records have no budget."""
        entries = [Entry.from_record(entry) for entry in record["entries"]]
        budget = parse_budget(record.get("budget", DEFAULT_BUDGET))
        return cls(_without_duplicates(entries), str(record["secret"]), budget)


def parse_budget(budget: object) -> Fraction | None:
    """Return a budget as an exact number; ``None`` means no limit.

    >>> parse_budget("2.5")
    Fraction(5, 2)
    """
    if budget is None:
        return None
    try:
        exact_budget = exact_number(budget, "budget")
    except InvalidContext:
        exact_budget = Fraction(0)
    if not isinstance(exact_budget, Fraction) or exact_budget <= 0:
        raise InvalidArgument(
            "budget must be a positive number such as 4. Pass budget=None for no limit."
        )
    return exact_budget


def require_consent(survey: Survey, allow_clear: bool) -> None:
    """Reject a survey that leaves pairs of answers unprotected, unless the caller allows it."""
    if survey.context.has_unprotected_pairs and not allow_clear:
        raise BudgetExceeded(
            f"survey {survey.fingerprint[:12]}… leaves some answers unprotected: a report may "
            "reveal them, and the budget does not cover that. Nothing was sent. Show the person "
            "survey.disclosure(), then pass allow_clear=True."
        )


def count_distinct_values(survey: Survey) -> int:
    """Return how many distinct values a person may answer a survey with."""
    repeat: Any = survey.description.about["repeat"]
    return 1 if repeat == "once" else int(repeat["distinct"])


def survey_cost(context: Context, distinct: int) -> Fraction:
    """Return the cost of answering with ``distinct`` values: the largest finite ε for each.

    >>> from sfumato.contexts import HighLow
    >>> survey_cost(HighLow(["park", "clinic"], ["clinic"], "0.5"), 3)
    Fraction(3, 2)
    """
    return distinct * context.largest_finite_epsilon


def _without_duplicates(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Keep the first entry for each key: format 1 listed a survey once per account."""
    by_key: dict[tuple[str, str], Entry] = {}
    for entry in entries:
        by_key.setdefault(entry.key, entry)
    return tuple(by_key.values())
