"""The surveys that an aggregator serves: what the store holds, rebuilt once and remembered."""

import hashlib
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

from sfumato.aggregator.store.store import Store
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
        """Changes when a title is corrected, not only when the promise is another."""
        return f'"{hashlib.sha256(self.resolved).hexdigest()[:32]}"'

    @property
    def outputs(self) -> int:
        """The number of different reports there can be."""
        return self.survey.mechanism.outputs

    def opens_later(self, now: datetime) -> bool:
        """Whether the survey says that it opens after ``now``."""
        opens, _ = self._times
        return opens is not None and now < opens

    def has_closed(self, now: datetime) -> bool:
        """Whether the survey says that it closed before ``now``."""
        _, closes = self._times
        return closes is not None and now >= closes

    @cached_property
    def _times(self) -> tuple[datetime | None, datetime | None]:
        """When it opens and closes; read once, for every upload asks."""
        opens, closes = (self._time(name) for name in ("opens", "closes"))
        return opens, closes

    def _time(self, name: str) -> datetime | None:
        text = str(self.survey.description.about[name])
        if not text:
            return None
        time = datetime.fromisoformat(text)
        return time if time.tzinfo else time.replace(tzinfo=UTC)


class Catalogue:
    """Surveys by fingerprint. One that another aggregator put into the store is found when it is first asked for."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._served: dict[str, Served] = {}
        self._loading = threading.Lock()

    def known(self, fingerprint: str) -> Served | None:
        """A survey that was asked for before; no waiting."""
        return self._served.get(fingerprint)

    def find(self, fingerprint: str) -> Served | None:
        """A survey, from the store if need be."""
        if not is_fingerprint(fingerprint):  # there are texts that a database chokes on
            return None
        with self._loading:
            if fingerprint not in self._served:
                resolved = self._store.resolved(fingerprint)
                if resolved is None:
                    return None
                self._served[fingerprint] = Served(Survey.of_resolved(resolved), resolved)
            return self._served[fingerprint]
