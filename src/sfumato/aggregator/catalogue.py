"""The surveys that an aggregator serves: read from the store once and kept in memory."""

import hashlib
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

from sfumato.aggregator.store import Store
from sfumato.batches import is_fingerprint
from sfumato.survey import Survey

__all__ = ["Catalogue", "Served"]


@dataclass(frozen=True)
class Served:
    """A survey, with the bytes that clients get."""

    survey: Survey
    resolved: bytes

    @cached_property
    def etag(self) -> str:
        """Changes with every byte: also when a title is corrected, which keeps the fingerprint."""
        return f'"{hashlib.sha256(self.resolved).hexdigest()[:32]}"'

    @property
    def fingerprint(self) -> str:
        """The survey's fingerprint."""
        return self.survey.fingerprint

    @property
    def outputs(self) -> int:
        """The number of possible reports."""
        return self.survey.mechanism.outputs

    def opens_later(self, now: datetime) -> bool:
        """Whether the survey's description says that it opens after ``now``."""
        return self._opens is not None and now < self._opens

    def has_closed(self, now: datetime) -> bool:
        """Whether the survey's description says that it closed before ``now``."""
        return self._closes is not None and now >= self._closes

    def is_open(self, now: datetime) -> bool:
        """Whether the survey's description says that it is open."""
        return not self.opens_later(now) and not self.has_closed(now)

    # Parsed once, because every upload asks.

    @cached_property
    def _opens(self) -> datetime | None:
        return self._time("opens")

    @cached_property
    def _closes(self) -> datetime | None:
        return self._time("closes")

    def _time(self, name: str) -> datetime | None:
        text = str(self.survey.description.about[name])
        if not text:
            return None
        time = datetime.fromisoformat(text)
        return time if time.tzinfo else time.replace(tzinfo=UTC)


class Catalogue:
    """Surveys by fingerprint.

    A survey that another aggregator put into the store is found at the first request for it.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._served: dict[str, Served] = {}
        self._loading = threading.Lock()

    def get(self, fingerprint: str) -> Served | None:
        """Return a survey that is in memory, without waiting."""
        return self._served.get(fingerprint)

    def find(self, fingerprint: str) -> Served | None:
        """Return a survey, from the store if necessary."""
        if not is_fingerprint(fingerprint):  # some texts make a database fail
            return None
        with self._loading:
            if fingerprint not in self._served:
                resolved = self._store.read_resolved(fingerprint)
                if resolved is None:
                    return None
                self._served[fingerprint] = Served(Survey.of_resolved(resolved), resolved)
            return self._served[fingerprint]
