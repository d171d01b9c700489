"""The surveys that an aggregator serves and their estimates, kept in memory.

An estimate is recomputed only when the counts change. Only one estimate is computed at a time, so
uploads are not starved.
"""

import asyncio
import hashlib
import threading
from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property

from sfumato.aggregator.store import DayCounts, LeftOut, Store
from sfumato.aggregator.threads import StoreThreads, run_in_thread
from sfumato.batches import SingleReportReader, UploadRules, is_fingerprint
from sfumato.errors import NotEnoughReports
from sfumato.estimation import Difference, Estimate
from sfumato.estimation.decoders import get_decoder
from sfumato.survey import Survey
from sfumato.tally import Tally

__all__ = ["Catalogue", "CatalogueEntry", "CurrentEstimate", "DaySummary", "Estimates"]

_MAX_CACHED_ESTIMATES = 8
_MAX_DAYS = 100
_MAX_CACHED_FITS = 1000


@dataclass(frozen=True)
class CatalogueEntry:
    """A survey, and its resolved form as sent to clients."""

    survey: Survey
    resolved: bytes

    @cached_property
    def etag(self) -> str:
        """A hash of the resolved form. A new title changes the ETag, but not the fingerprint."""
        return f'"{hashlib.sha256(self.resolved).hexdigest()[:32]}"'

    @property
    def fingerprint(self) -> str:
        """The survey's fingerprint."""
        return self.survey.fingerprint

    @property
    def outputs(self) -> int:
        """The number of possible reports."""
        return self.survey.mechanism.outputs

    @cached_property
    def rules(self) -> UploadRules:
        """What uploads to the survey must look like."""
        return UploadRules.from_survey(self.survey)

    @cached_property
    def single_reports(self) -> SingleReportReader:
        """Reads the uploads of devices, which contain one report."""
        return SingleReportReader(self.rules)

    def opens_later(self, now: datetime) -> bool:
        """Whether the survey is scheduled to open after ``now``."""
        return self._opens_at is not None and now < self._opens_at

    def has_closed(self, now: datetime) -> bool:
        """Whether the survey's scheduled closing time has passed."""
        return self._closes_at is not None and now >= self._closes_at

    def is_open(self, now: datetime) -> bool:
        """Whether ``now`` is within the survey's scheduled period."""
        return not self.opens_later(now) and not self.has_closed(now)

    # Cached, because every upload needs these times.

    @cached_property
    def _opens_at(self) -> datetime | None:
        return self._parse_time("opens")

    @cached_property
    def _closes_at(self) -> datetime | None:
        return self._parse_time("closes")

    def _parse_time(self, field: str) -> datetime | None:
        text = str(self.survey.description.about[field])
        if not text:
            return None
        time = datetime.fromisoformat(text)
        return time if time.tzinfo else time.replace(tzinfo=UTC)


class Catalogue:
    """The surveys in a store, by fingerprint.

    A survey that another aggregator adds to the store is loaded on the first request for it.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._entries: dict[str, CatalogueEntry] = {}
        self._load_lock = threading.Lock()

    def get(self, fingerprint: str) -> CatalogueEntry | None:
        """Return a survey if it is in memory, without accessing the store."""
        return self._entries.get(fingerprint)

    def find(self, fingerprint: str) -> CatalogueEntry | None:
        """Return a survey, loading it from the store if necessary."""
        if not is_fingerprint(fingerprint):  # the database may reject other strings
            return None
        with self._load_lock:
            if fingerprint not in self._entries:
                resolved = self._store.read_resolved(fingerprint)
                if resolved is None:
                    return None
                survey = Survey.from_resolved(resolved)
                self._entries[fingerprint] = CatalogueEntry(survey, resolved)
            return self._entries[fingerprint]


@dataclass(frozen=True)
class CurrentEstimate:
    """An estimate from all reports so far, and what operators left out of it."""

    estimate: Estimate
    left_out: LeftOut


@dataclass(frozen=True)
class DaySummary:
    """The reports of one day and one sender, and whether they look like honest ones.

    ``p_value``: of the test whether honest devices can have sent them; ``None`` if there are too
    few. ``largest_shift``: how far a share could have moved if all of them were fake.
    """

    day: str
    sender: str
    reports: int
    is_left_out: bool
    p_value: float | None
    largest_shift: float


class Estimates:
    """Computes estimates and caches them.

    Counts only grow, so an estimate is current as long as the number of reports is unchanged and
    the same days and senders are left out.
    """

    def __init__(self, store: Store, store_threads: StoreThreads) -> None:
        self._store = store
        self._store_threads = store_threads
        self._cache: OrderedDict[tuple[str, str], CurrentEstimate] = OrderedDict()
        self._fits: OrderedDict[tuple[str, str, str, int], float | None] = OrderedDict()
        self._lock = asyncio.Lock()  # only one estimate at a time is read and computed

    async def estimate(self, entry: CatalogueEntry, decoder: str) -> CurrentEstimate:
        """Return the estimate from all reports so far, except those that are left out.

        Raise ``NotEnoughReports`` if there are fewer than the survey's minimum.
        """
        async with self._lock:
            tally, left_out = await self._store_threads.run(
                self._store.tally_and_omissions, entry.fingerprint, entry.outputs
            )
            return await run_in_thread(lambda: self._estimate(entry, decoder, tally, left_out))

    async def compare_periods(
        self, entry: CatalogueEntry, days: int, today: date
    ) -> Difference | None:
        """Compare the ``days`` days up to ``today`` with the ``days`` days before them.

        Return ``None`` if either period has too few reports.
        """
        async with self._lock:
            earlier = await self._tally_days(entry, days, today - timedelta(days=days))
            later = await self._tally_days(entry, days, today)
            return await run_in_thread(lambda: _compare(entry.survey, earlier, later))

    async def summarize_days(self, entry: CatalogueEntry) -> list[DaySummary]:
        """Return a summary of each day and sender, the latest first."""
        async with self._lock:
            days, report_count = await self._store_threads.run(_read_days, self._store, entry)
            return await run_in_thread(lambda: self._summarize(entry, days, report_count))

    def summarize_days_now(self, entry: CatalogueEntry) -> list[DaySummary]:
        """Return a summary of each day and sender, outside an event loop."""
        days, report_count = _read_days(self._store, entry)
        return self._summarize(entry, days, report_count)

    def _estimate(
        self, entry: CatalogueEntry, decoder: str, tally: Tally, left_out: LeftOut
    ) -> CurrentEstimate:
        survey = entry.survey
        key = (survey.fingerprint, decoder)
        current = self._cache.get(key)
        is_current = (
            current is not None
            and current.estimate.reports == tally.reports
            and current.left_out == left_out
        )
        if current is None or not is_current:
            estimate = survey.estimate(tally, decoder=get_decoder(decoder))
            current = CurrentEstimate(estimate, left_out)
            self._cache[key] = current
        self._cache.move_to_end(key)
        if len(self._cache) > _MAX_CACHED_ESTIMATES:
            self._cache.popitem(last=False)
        return current

    async def _tally_days(self, entry: CatalogueEntry, days: int, last_day: date) -> Tally:
        """Return the counts of the ``days`` days up to ``last_day``."""
        first_day = last_day - timedelta(days=days - 1)
        return await self._store_threads.run(
            self._store.tally_between, entry.fingerprint, entry.outputs, first_day, last_day
        )

    def _summarize(
        self, entry: CatalogueEntry, days: list[DayCounts], report_count: int
    ) -> list[DaySummary]:
        return [self._summarize_day(entry, counts, report_count) for counts in days]

    def _summarize_day(
        self, entry: CatalogueEntry, counts: DayCounts, report_count: int
    ) -> DaySummary:
        """Summarize a day. ``report_count``: the number of reports in the results."""
        day_reports = counts.tally.reports
        largest_shift = 0.0
        if not counts.is_left_out:
            # The day may have been left out after it was read: then the results may be empty.
            fake_share = day_reports / max(report_count, day_reports)
            largest_shift = min(1.0, fake_share * entry.survey.mechanism.scores.reach.max_shift)
        return DaySummary(
            day=counts.day,
            sender=counts.sender,
            reports=day_reports,
            is_left_out=counts.is_left_out,
            p_value=self._fit_day(entry, counts),
            largest_shift=largest_shift,
        )

    def _fit_day(self, entry: CatalogueEntry, counts: DayCounts) -> float | None:
        """Test a day's reports. Return the p-value, or ``None`` if there are too few reports."""
        key = (entry.fingerprint, counts.day, counts.sender, counts.tally.reports)
        if key not in self._fits:
            try:
                estimate = entry.survey.estimate(counts.tally, decoder="unbiased")
            except NotEnoughReports:
                self._fits[key] = None
            else:
                self._fits[key] = estimate.fit_result.p_value
            if len(self._fits) > _MAX_CACHED_FITS:
                self._fits.popitem(last=False)
        return self._fits[key]


def _read_days(store: Store, entry: CatalogueEntry) -> tuple[list[DayCounts], int]:
    """Return the counts of each day and sender, and the number of reports in the results."""
    days = store.count_days(entry.fingerprint, entry.outputs, _MAX_DAYS)
    return days, store.tally(entry.fingerprint, entry.outputs).reports


def _compare(survey: Survey, earlier: Tally, later: Tally) -> Difference | None:
    try:
        earlier_estimate = survey.estimate(earlier, decoder="unbiased")
        later_estimate = survey.estimate(later, decoder="unbiased")
    except NotEnoughReports:
        return None
    return earlier_estimate.difference(later_estimate)
