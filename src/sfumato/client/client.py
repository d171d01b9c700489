"""The client for one device: it charges the ledger, then derives, stores and sends the report."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from sfumato.batches import Batch, UploadRules
from sfumato.client.answer_log import Answer, AnswerLog
from sfumato.client.device import Device
from sfumato.client.http import AggregatorClient, BatchConflict, Receipt
from sfumato.client.ledger import (
    BudgetChoice,
    count_distinct_values,
    parse_budget,
    require_consent,
)
from sfumato.client.memory import batch_id, derive_report, value_token
from sfumato.domains import Domain, H3Domain
from sfumato.errors import InvalidArgument, InvalidSymbols, NotDelivered, UnknownValue
from sfumato.foundation.correct_call import shows_call
from sfumato.foundation.notebook import FieldsView, facts_html
from sfumato.foundation.periods import period_name
from sfumato.randomness import float_above
from sfumato.survey import Survey

__all__ = ["Client", "QueuedAnswer"]

_DEFAULT_PATIENCE = 10.0  # seconds


@dataclass(frozen=True)
class QueuedAnswer(FieldsView):
    """An answer that is stored on the device. The next ``flush`` or ``answer`` sends it.

    ``survey``: the survey's fingerprint. ``batch``: the identifier of the answer's batch.
    ``waiting``: the number of answers in the queue, including this one.
    """

    survey: str
    batch: str
    waiting: int


class _AnswerForgotten(NotDelivered):
    """The device forgot an answer before it was sent."""


class Client:
    """Answers one survey on behalf of one device, and reveals no more than the ledger records.

    ``answer`` guarantees, in this order:

    - The survey's full cost, ``distinct`` times its largest finite ε, is recorded in the ledger on
      disk before the value is read. If the total would exceed the device's ``budget``, ``answer``
      raises ``BudgetExceeded`` and sends nothing.
    - The report is derived from the device's secret. The same answer gives the same report after a
      crash, in another process or a year later, so 365 equal answers reveal no more than one.
    - Whether and when a report is sent does not depend on the value.
    - The report is on disk before it is sent, and is counted once, no matter how often it is sent.

    With ``repeat = "once"`` the first answer is final, and later values are not even read. With
    ``{every, distinct}`` there is one upload per period. After ``distinct`` different values, any
    new value repeats the last report. If the clock is set back, the last report is also repeated.

    ``survey``: a survey, or the path to a survey file. The client sends reports only under this
    survey's fingerprint, and rejects a survey whose mechanism does not satisfy its context.

    ``url``: the aggregator's URL, or an ``AggregatorClient``.

    ``home``: the device's folder, with one secret and one ledger for all its surveys. The folder is
    created if necessary, and only its owner has access.

    ``budget``: the maximum total cost of all surveys on this device (see
    ``sfumato.client.ledger``). Pass a larger budget if the person agrees to it, or ``None`` for
    no limit. The ledger stores the budget, and clients that pass none use the stored one: 4 on a
    new device.

    ``allow_clear``: must be ``True`` for a survey that leaves some pair of answers unprotected,
    such as the non-sensitive answers in a high-low survey. A report may then reveal an answer, and
    the budget does not cover that. First show the person ``survey.disclosure()`` or the privacy
    label.

    Reference: Erlingsson, Pihur and Korolova (2014), "RAPPOR", on memoised answers.

    >>> import tempfile
    >>> from sfumato.contexts import HighLow
    >>> survey = Survey("lunch", HighLow(["park", "clinic"], ["clinic"], 1))
    >>> offline = AggregatorClient("http://127.0.0.1:9", patience=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     client = Client(survey, offline, home=f"{folder}/device", allow_clear=True)
    ...     client.answer("clinic").waiting, client.answer("park").waiting
    (1, 1)
    """

    @shows_call('sf.Client(survey, "https://example.org", home="device")')
    def __init__(
        self,
        survey: Survey | str | os.PathLike[str],
        url: str | AggregatorClient,
        *,
        home: str | os.PathLike[str],
        budget: object = BudgetChoice.STORED,
        allow_clear: bool = False,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._survey = survey if isinstance(survey, Survey) else Survey.load(survey)
        self._survey.certify()
        self._budget = budget if isinstance(budget, BudgetChoice) else parse_budget(budget)
        if not isinstance(allow_clear, bool):
            raise InvalidArgument(
                f"allow_clear must be True or False; got {type(allow_clear).__name__}."
            )
        self._allow_clear = allow_clear
        self._clock = clock
        self._max_distinct = count_distinct_values(self._survey)
        if isinstance(url, str):
            url = AggregatorClient(url, patience=_DEFAULT_PATIENCE)
        self._aggregator = url
        self._device = Device(home)

    # --- the interface ----------------------------------------------------------------------------

    def answer(self, value: object) -> Receipt | QueuedAnswer:
        """Answer with a value. For a grid, and optionally for H3 cells, pass (latitude, longitude).

        Return a receipt if the aggregator has counted the report, or a ``QueuedAnswer`` if it is
        still waiting.

        A value outside the domain raises ``UnknownValue`` after the ledger has been charged, unless
        all ``distinct`` values are used up. Give the domain an ``other`` label if people may have
        such values. If the aggregator permanently rejects the report, the report stays in the
        queue, and an error is raised, such as ``WrongSurvey`` for a closed survey. If the device
        forgets the answer before it is sent, ``NotDelivered`` is raised.
        """
        require_consent(self._survey, self._allow_clear)
        with self._device.lock():
            secret, log = self._device.charge(self._survey, self._budget)
            period = self._current_period()
            answer = log.current(period)
            if answer is None:
                report, tokens = self._derive_report(secret, log, value)
                answer = Answer(period, batch_id(secret, self._survey.fingerprint, period), report)
                log = log.add(answer, tokens)
                self._device.write_log(self._survey.fingerprint, log)
        waiting = {queued.batch.hex() for queued in log.waiting}
        try:
            for receipt in self._send_queue(log):
                waiting.remove(receipt.batch)
        except _AnswerForgotten:
            raise
        except NotDelivered:
            pass
        batch = answer.batch.hex()
        if batch in waiting:
            return QueuedAnswer(self._survey.fingerprint, batch, len(waiting))
        return Receipt(self._survey.fingerprint, batch, 1)

    def flush(self) -> tuple[Receipt, ...]:
        """Send all queued answers, oldest first, and return their receipts.

        Raise ``NotDelivered`` if an answer cannot be delivered now. It stays in the queue.
        """
        with self._device.lock():
            log = self._device.read_current_log(self._survey.fingerprint)
        return () if log is None else tuple(self._send_queue(log))

    def forget(self) -> None:
        """Delete the device's secret and its record of all answers to all surveys.

        Answers in the queue are dropped. The ledger is kept, because spent budget cannot be
        recovered: answering again is charged again. Also call this if the secret was lost or
        damaged.
        """
        with self._device.lock():
            self._device.forget()

    def spent(self) -> float:
        """Return the budget that this device has spent on all surveys so far, rounded up."""
        with self._device.lock():
            return float_above(self._device.read_ledger().spent)

    # --- from value to report ---------------------------------------------------------------------

    def _current_period(self) -> str:
        """Return the current period, or "" for a survey answered only once."""
        every = self._survey.description.every
        return period_name(every, self._clock()) if every else ""

    def _derive_report(
        self, secret: bytes, log: AnswerLog, value: object
    ) -> tuple[int, tuple[str, ...]]:
        """Return the report for a new period, and the tokens of all values used so far."""
        if self._max_distinct == 1 and log.last is not None:
            return log.last.require_report(), ()
        fingerprint = self._survey.fingerprint
        tokens = log.tokens
        # Once all `distinct` values are used up, every new value repeats the last report.
        fallback = log.last if len(tokens) == self._max_distinct else None
        try:
            symbol = _find_symbol(self._survey.context.domain, value)
        except (UnknownValue, InvalidSymbols):
            if fallback is None:
                raise
            return fallback.require_report(), tokens
        if self._max_distinct > 1:
            token = value_token(secret, fingerprint, symbol)
            if token not in tokens:
                if fallback is not None:
                    return fallback.require_report(), tokens
                tokens = (*tokens, token)
        return derive_report(secret, fingerprint, self._survey.mechanism, symbol), tokens

    # --- sending ----------------------------------------------------------------------------------

    def _make_batch(self, answer: Answer) -> Batch:
        reports = np.array([answer.require_report()], dtype=np.uint32)
        rules = UploadRules.from_survey(self._survey)
        return rules.make_batch(answer.batch, reports, rules.parse_key(answer.period))

    def _send_queue(self, log: AnswerLog) -> Iterator[Receipt]:
        """Send the queue, oldest first, and yield the receipts.

        No lock is held while sending: an answer that is sent twice is counted once. The log is read
        again before each answer. If the device forgot its answers, raise ``_AnswerForgotten``.
        """
        fingerprint = self._survey.fingerprint
        for answer in log.waiting:
            batch = self._make_batch(answer)
            with self._device.lock():
                latest_log = self._device.read_log(fingerprint, log.secret)
            if latest_log is None:
                raise _AnswerForgotten("the device has forgotten this answer. It was not sent.")
            if latest_log.is_waiting(answer):
                # A conflict means that this device already answered, and that its folder was then
                # replaced by an older copy. The first answer remains valid.
                with suppress(BatchConflict):
                    self._aggregator.deliver(batch)
                with self._device.lock():
                    self._device.mark_delivered(fingerprint, log.secret, answer)
            yield Receipt.for_batch(batch)

    def __repr__(self) -> str:
        fingerprint = self._survey.fingerprint[:12]
        return (
            f"Client({self._survey.name!r}, {self._aggregator.url!r}, fingerprint={fingerprint}…)"
        )

    def _repr_html_(self) -> str:
        """Return the survey and the aggregator as HTML, for notebooks: never an answer."""
        facts = {
            "survey": self._survey.title,
            "aggregator": self._aggregator.url,
            "fingerprint": self._survey.fingerprint,
        }
        return facts_html("Client", facts)


def _find_symbol(domain: Domain, value: object) -> int:
    """Return the symbol for a value. An H3 domain also accepts a (latitude, longitude) pair."""
    if isinstance(domain, H3Domain) and isinstance(value, Iterable) and not isinstance(value, str):
        position = list(value)
        if len(position) != 2:
            raise InvalidSymbols("a position must be a pair (latitude, longitude).")
        return int(domain.symbols_at(position[:1], position[1:])[0])
    return int(domain.symbols([value])[0])
