"""The ledger: what a device has promised, entry by entry. Nothing is ever taken out, and no passage of time refills it.

An entry is a survey that was answered under one secret. It costs ``times · E``: E is the survey's context and ``times``
how many distinct values it may be answered with. It is charged whole, before the value is read, and later answers to
the same survey cost nothing: they are derived from the same secret. After the secret was forgotten, answering again is
a new entry beside the old one.
"""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from sfumato.canonical import Json, fingerprint
from sfumato.client.budget import Cost, within
from sfumato.contexts import Context
from sfumato.domains import Domain
from sfumato.errors import BudgetExceeded
from sfumato.survey.wire import context_of

__all__ = ["Entry", "Ledger", "account_of"]


@dataclass(frozen=True)
class Entry:
    """A survey, the secret under which it was answered, and its cost."""

    account: str
    survey: str
    secret: str
    cost: Cost

    def record(self) -> Json:
        """The entry as plain data."""
        return {
            "account": self.account,
            "survey": self.survey,
            "secret": self.secret,
            "times": self.cost.times,
            "context": self.cost.context.record(),
        }

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Self:
        """The entry that a record describes."""
        cost = Cost(int(record["times"]), context_of(record["context"]))
        return cls(str(record["account"]), str(record["survey"]), str(record["secret"]), cost)


@dataclass(frozen=True)
class Ledger:
    """All entries of a device, oldest first, and the tag of the secret that it answers with now.

    The tag tells a secret that was changed by a broken disk from the device's own: under a changed one the device would
    answer anew, as somebody else.
    """

    entries: tuple[Entry, ...] = ()
    secret: str = ""

    def holds(self, entry: Entry) -> bool:
        """Whether the survey was charged to this account before, under this secret."""
        return any(
            (held.account, held.survey, held.secret) == (entry.account, entry.survey, entry.secret)
            for held in self.entries
        )

    def charged(self, entry: Entry, cap: Context | None) -> "Ledger":
        """The ledger with one more entry; ``BudgetExceeded`` if the account then passes the cap for any pair."""
        costs = [held.cost for held in self.entries if held.account == entry.account]
        if cap is not None and not within([*costs, entry.cost], cap):
            raise BudgetExceeded(
                f"survey {entry.survey[:12]}… would bring this device above its cap: {len(costs)} surveys were charged "
                "to the same account before. Nothing was sent. Time does not refill the account; only a higher cap "
                "lets it answer."
            )
        return replace(self, entries=(*self.entries, entry))

    def record(self) -> dict[str, Json]:
        """The ledger as plain data."""
        return {"entries": [entry.record() for entry in self.entries], "secret": self.secret}

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Self:
        """The ledger that a record describes."""
        return cls(tuple(Entry.of_record(entry) for entry in record["entries"]), str(record["secret"]))


def account_of(domain: Domain, subject: str | None) -> str:
    """The account of a survey: that of the subject its author names, or of its domain.

    A subject is normalised to NFC, as all text in records is: the account that is read is the one that was written.
    """
    if subject is None:
        return f"domain {fingerprint(domain.record())}"
    return f"subject {unicodedata.normalize('NFC', subject)}"
