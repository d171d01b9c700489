"""The client of one device: it privatises, remembers, keeps the ledger and sends."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from sfumato.batches import Batch
from sfumato.client.answer_log import Answer, Diary
from sfumato.client.budget import DEFAULT_BUDGET, exact_budget
from sfumato.client.device_folder import Home
from sfumato.client.http import Conflict, Courier, Receipt
from sfumato.client.ledger import LEDGER_FORMATS, Entry, Ledger, distinct_values, require_consent
from sfumato.client.memory import batch_id, fresh_secret, remembered_report, secret_tag, token_of
from sfumato.client.period import period_of
from sfumato.domains import Domain, H3Domain
from sfumato.errors import (
    BudgetExceeded,
    InvalidContext,
    InvalidSymbols,
    NotDelivered,
    UnknownValue,
)
from sfumato.randomness import float_above
from sfumato.survey import Survey

__all__ = ["Client", "Queued"]

_PATIENCE = 10.0
_SECRET, _LEDGER, _DIARY = "secret", "ledger", "answers-"
_DIARY_FORMAT = 1


@dataclass(frozen=True)
class Queued:
    """An answer that waits on the device: durable, and sent by the next ``flush`` or ``answer``."""

    survey: str
    batch: str
    waiting: int


class _Forgotten(NotDelivered):
    """What was to be sent is gone: the device was told to forget it meanwhile."""


class Client:
    """Answers one survey on behalf of one device, and never says more than was charged.

    What ``answer`` guarantees, in this order:

    - the survey's whole cost, ``distinct · E``, is in the ledger, durably, before the value is read; if that exceeds
      the device's ``budget``, it raises ``BudgetExceeded`` and sends nothing;
    - the report is derived from the device's secret: the same answer gives the same report, after a crash, from two
      processes or a year later, so that 365 equal answers say what one says;
    - whether and when something is sent does not depend on the value;
    - the report is durable before it leaves, and counted once however often it must be sent.

    With ``repeat = "once"`` the first answer stands, and later values are not even read. With ``{every, distinct}``
    there is one upload per period, and after ``distinct`` different values the last report is sent on whatever the
    value is. A clock that is set back gives at most a replay.

    ``survey`` is a survey or the path of one: its fingerprint is pinned by being here. A survey whose mechanism breaks
    its context is refused. ``home`` is a folder, made for its owner alone, that all surveys of one device share: it has
    one secret and one account. ``url`` may be a ``Courier``.

    ``budget`` is the most that all answers of this device together may give away, over all surveys: see
    ``sfumato.client.budget``. Pass a larger one where the person agrees to more, and ``None`` for no budget at all.
    ``allow_clear`` must be ``True`` for a survey that leaves some pair of answers open, such as the answers of a
    high-low survey that are not sensitive: a report may then give an answer away, which no budget measures. Show the
    person ``survey.disclosure()``, or the privacy label, before you pass it.

    Reference: Erlingsson, Pihur and Korolova (2014), "RAPPOR", on answers that are remembered.

    >>> import tempfile
    >>> from sfumato.contexts import HighLow
    >>> survey = Survey("lunch", HighLow(["park", "clinic"], ["clinic"], 1))
    >>> nobody = Courier("http://127.0.0.1:9", patience=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     client = Client(survey, nobody, home=f"{folder}/device", allow_clear=True)
    ...     client.answer("clinic").waiting, client.answer("park").waiting
    (1, 1)
    """

    def __init__(
        self,
        survey: Survey | str | os.PathLike[str],
        url: str | Courier,
        *,
        home: str | os.PathLike[str],
        budget: object = DEFAULT_BUDGET,
        allow_clear: bool = False,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._survey = survey if isinstance(survey, Survey) else Survey.load(survey)
        self._survey.certify()
        self._budget = exact_budget(budget)
        if not isinstance(allow_clear, bool):
            raise InvalidContext(
                f"allow_clear must be True or False; got {type(allow_clear).__name__}."
            )
        self._allow_clear = allow_clear
        self._clock = clock
        repeat: Any = self._survey.description.about["repeat"]
        self._every: str | None = None if repeat == "once" else repeat["every"]
        self._distinct = distinct_values(self._survey)
        self._courier = url if isinstance(url, Courier) else Courier(url, patience=_PATIENCE)
        self._home = Home(home)
        with self._home.locked():
            self._ledger()  # a lost secret is an error later: a client must be there to forget it

    # --- what people do -----------------------------------------------------------------------------

    def answer(self, value: object) -> Receipt | Queued:
        """Answer with a value; for a grid, and if one likes for H3 cells, a pair (latitude, longitude).

        A receipt if the aggregator has counted it; else it waits. Raises ``UnknownValue`` for a value outside the
        domain, after the charge, unless all ``distinct`` values are used up: give the domain an ``other`` label if
        people may have such values. What an aggregator refuses for good (``WrongSurvey`` from one that has closed the
        survey) is raised too, and the report is kept. ``NotDelivered`` if another thread told the device to forget.
        """
        require_consent(self._survey, self._allow_clear)
        with self._home.locked():
            secret = self._charged()
            diary = self._diary(secret)
            period = "" if self._every is None else period_of(self._every, self._clock())
            answer = diary.standing(period)
            if answer is None:
                report, tokens = self._report(secret, diary, value)
                answer = Answer(period, batch_id(secret, self._survey.fingerprint, period), report)
                diary = diary.answered(answer, tokens)
                self._keep_diary(diary)
        waits = {held.batch for held in diary.waiting}
        try:
            for receipt in self._deliveries(diary):
                waits.remove(bytes.fromhex(receipt.batch))
        except _Forgotten:
            raise
        except NotDelivered:
            pass
        if answer.batch in waits:
            return Queued(self._survey.fingerprint, answer.batch.hex(), len(waits))
        return Receipt.of(self._batch(answer))

    def flush(self) -> tuple[Receipt, ...]:
        """Send what waits, oldest first; ``NotDelivered`` if something must go on waiting."""
        with self._home.locked():
            secret, _ = self._opened()
            record = self._home.record_of(self._diary_name, [_DIARY_FORMAT])
            diary = Diary(secret_tag(secret)) if record is None else Diary.of_record(record)
        return tuple(self._deliveries(diary)) if diary.secret == secret_tag(secret) else ()

    def forget(self) -> None:
        """Delete the device's secret, and with it the memory of every answer to every survey of this home.

        What waits is dropped. The ledger stays: what was promised was promised, and answering again costs again. This
        is also the way out when the secret was lost or damaged.
        """
        with self._home.locked():
            self._ledger()  # where it is lost, secret and diaries are all that shows it
            self._home.drop(_SECRET)  # first: without it, nothing else says anything
            for name in self._home.names(_DIARY):
                self._home.drop(name)

    def spent(self) -> float:
        """What this device has given away so far, over all surveys: an upper bound, rounded up."""
        with self._home.locked():
            return float_above(self._ledger().spent)

    # --- the home -----------------------------------------------------------------------------------

    def _ledger(self) -> Ledger:
        """The ledger of the home; an empty one if the home is new."""
        record = self._home.record_of(_LEDGER, LEDGER_FORMATS)
        if record is not None:
            return Ledger.of_record(record)
        if self._home.bytes_of(_SECRET) is not None or self._home.names(_DIARY):
            raise BudgetExceeded(
                f"the ledger of {self._home!r} is lost, so nobody can say what this device has promised. Nothing "
                "was sent. Put the ledger back, or give up this home for good."
            )
        return Ledger()

    def _opened(self) -> tuple[bytes, Ledger]:
        """The secret and the ledger of the home, made if it is new. The ledger is there before the secret is."""
        ledger, secret = self._ledger(), self._home.bytes_of(_SECRET)
        if secret is not None and secret_tag(secret) == ledger.secret:
            return secret, ledger
        if secret is not None or self._home.names(_DIARY):  # who forgets drops the diaries, too
            what = "lost" if secret is None else "damaged"
            raise BudgetExceeded(
                f"the secret of {self._home!r} is {what}, and what this device answered cannot be repeated. Nothing "
                "was sent. Put the file back; or call forget(), and answering costs anew."
            )
        secret = fresh_secret()
        ledger = replace(ledger, secret=secret_tag(secret))
        self._keep_ledger(ledger)
        self._home.keep_bytes(_SECRET, secret)
        return secret, ledger

    def _charged(self) -> bytes:
        """The secret, once the survey is charged to the account. The diary is there before the charge is."""
        secret, ledger = self._opened()
        entry = Entry.of_survey(self._survey, secret_tag(secret))
        if not ledger.holds(entry):
            charged = ledger.charge(entry, self._budget)
            self._begin_diary(entry.secret)
            self._keep_ledger(charged)
        return secret

    def _keep_ledger(self, ledger: Ledger) -> None:
        self._home.keep_record(_LEDGER, ledger.record(), LEDGER_FORMATS[-1])

    def _keep_diary(self, diary: Diary) -> None:
        self._home.keep_record(self._diary_name, diary.record(), _DIARY_FORMAT)

    def _begin_diary(self, tag: str) -> None:
        """Start an empty diary for a survey that was never charged under this secret, unless there is one."""
        record = self._home.record_of(self._diary_name, [_DIARY_FORMAT])
        if record is None or record["secret"] != tag:
            self._keep_diary(Diary(tag))

    def _diary(self, secret: bytes) -> Diary:
        """What was answered to a survey that is charged."""
        record = self._home.record_of(self._diary_name, [_DIARY_FORMAT])
        diary = None if record is None else Diary.of_record(record)
        if diary is None or diary.secret != secret_tag(secret):
            raise BudgetExceeded(
                f"the file {self._diary_name} of {self._home!r} is lost, so nobody can say what was answered. Nothing "
                "was sent. Put the file back; or forget this device's secret, and answering costs anew."
            )
        return diary

    @property
    def _diary_name(self) -> str:
        return _DIARY + self._survey.fingerprint

    # --- from value to report -----------------------------------------------------------------------

    def _report(self, secret: bytes, diary: Diary, value: object) -> tuple[int, tuple[str, ...]]:
        """The report of a new period, and the tokens of all values so far; at most ``distinct`` values are told."""
        if self._distinct == 1 and diary.last is not None:
            return diary.last.report, ()
        fingerprint, tokens = self._survey.fingerprint, diary.tokens
        used_up = (
            diary.last if len(tokens) == self._distinct else None
        )  # the answer that goes on for new values
        try:
            symbol = _symbol(self._survey.context.domain, value)
        except (UnknownValue, InvalidSymbols):
            if used_up is None:
                raise
            return used_up.report, tokens
        if self._distinct > 1:
            token = token_of(secret, fingerprint, symbol)
            if token not in tokens:
                if used_up is not None:
                    return used_up.report, tokens
                tokens = (*tokens, token)
        return remembered_report(secret, fingerprint, self._survey.mechanism, symbol), tokens

    # --- sending ------------------------------------------------------------------------------------

    def _batch(self, answer: Answer) -> Batch:
        return Batch(
            answer.batch, self._survey.fingerprint, np.array([answer.report], dtype=np.uint32)
        )

    def _deliveries(self, diary: Diary) -> Iterator[Receipt]:
        """Send what waits, one after another. The home is not locked meanwhile: what two send is counted once."""
        for answer in diary.waiting:
            batch = self._batch(answer)
            if self._still_waits(answer, diary.secret):
                with suppress(
                    Conflict
                ):  # an answer of this device stands there already: an older copy of this home's
                    self._courier.deliver(batch)
                self._strike_out(answer)
            yield Receipt.of(batch)

    def _still_waits(self, answer: Answer, secret: str) -> bool:
        """Whether nobody else delivered it since the diary was read; ``NotDelivered`` if it was forgotten since."""
        with self._home.locked():
            record = self._home.record_of(self._diary_name, [_DIARY_FORMAT])
        if record is None or record["secret"] != secret:
            raise _Forgotten("this device was told to forget what waited, and it is not sent.")
        return any(held.batch == answer.batch for held in Diary.of_record(record).waiting)

    def _strike_out(self, answer: Answer) -> None:
        with self._home.locked():
            record = self._home.record_of(self._diary_name, [_DIARY_FORMAT])
            if record is not None:  # else the device was told to forget meanwhile
                self._keep_diary(Diary.of_record(record).delivered(answer))

    def __repr__(self) -> str:
        return f"Client({self._survey.name!r}, {self._courier.url!r}, fingerprint={self._survey.fingerprint[:12]}…)"


def _symbol(domain: Domain, value: object) -> int:
    """The symbol of one value; a pair is a position where the domain has positions."""
    if (
        not isinstance(domain, H3Domain)
        or isinstance(value, str)
        or not isinstance(value, Iterable)
    ):
        return int(domain.symbols([value])[0])
    position = list(value)
    if len(position) != 2:
        raise InvalidSymbols("a position must be a pair (latitude, longitude).")
    return int(domain.symbols_at(position[:1], position[1:])[0])
