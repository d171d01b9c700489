"""A survey: one question put to many people. It speaks labels; its mechanism speaks integers."""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from sfumato.canonical import Json, canonical_bytes, fingerprint
from sfumato.contexts import Context, ContextSum
from sfumato.designer import mechanism_for
from sfumato.domains.domain import checked_label
from sfumato.errors import InvalidContext, InvalidSurvey, NotEnoughReports, SfumatoError, WrongSurvey
from sfumato.estimation import Estimate, estimate
from sfumato.estimation.decoders import Decoder
from sfumato.files import write_whole
from sfumato.mechanisms import Mechanism
from sfumato.promises import Certificate, certify
from sfumato.randomness.words import WordSource
from sfumato.survey.answers import symbols_of
from sfumato.survey.reports import Reports
from sfumato.survey.wire import FORMAT, context_of, fields_of, mechanism_of
from sfumato.tally import Tally

__all__ = ["Survey"]

_PERIODS = ("day", "week", "month", "year")
_KINDS = ("binary", "table", "plain", "blocks", "high-low", "groups", "product", "union")
_ABOUT = ("title", "text", "contact", "minimum_reports", "opens", "closes")
_LARGEST_FILE = 2**28
_UNMEANT = (SfumatoError, TypeError, LookupError, AttributeError, ValueError, ArithmeticError, MemoryError)


class Survey:
    """A name, a context and a mechanism that keeps it; and what people should know about the question.

    The fingerprint names the promise everywhere: reports, tallies and estimates carry it, and anything with
    another is refused. A title or a contact may be corrected without changing it.

    >>> from sfumato.contexts import HighLow
    >>> survey = Survey("lunch-2026", HighLow(["park", "clinic", "bar"], ["clinic", "bar"], 1))
    >>> reports = survey.privatize(["park", "bar", "park"])
    >>> survey.tally(reports).reports
    3
    """

    def __init__(
        self,
        name: str,
        context: Context,
        mechanism: Mechanism | None = None,
        *,
        title: str = "",
        text: str = "",
        contact: str = "",
        minimum_reports: int = 0,
        opens: str = "",
        closes: str = "",
        repeat: str | Mapping[str, Any] = "once",
    ) -> None:
        self._name = _checked_name(name)
        self._context = context
        self._mechanism = mechanism_for(context) if mechanism is None else mechanism
        if self._mechanism.context.domain != context.domain:
            raise InvalidSurvey("the mechanism must be for the survey's domain.")
        if (
            isinstance(minimum_reports, bool)
            or not isinstance(minimum_reports, int)
            or not 0 <= minimum_reports < 2**53
        ):
            raise InvalidSurvey("minimum_reports must be a whole number of at least 0, below 2^53.")
        if isinstance(context, ContextSum) or self._mechanism.kind not in _KINDS:
            raise InvalidSurvey(
                "a survey promises one context through one mechanism; sums and compositions span several."
            )
        texts = {"title": title, "text": text, "contact": contact, "opens": opens, "closes": closes}
        if any(not isinstance(value, str) or not _is_utf8(value) for value in texts.values()):
            raise InvalidSurvey("title, text, contact, opens and closes must be text that UTF-8 can hold.")
        for name in ("opens", "closes"):
            _check_time(texts[name], name)
        self._about: dict[str, Json] = {**texts, "minimum_reports": minimum_reports}
        self._repeat = _checked_repeat(repeat)

    @property
    def name(self) -> str:
        """The name, unique per question."""
        return self._name

    @property
    def title(self) -> str:
        """What people read."""
        return str(self._about["title"]) or self._name

    @property
    def text(self) -> str:
        """What else people should know."""
        return str(self._about["text"])

    @property
    def contact(self) -> str:
        """Whom to ask."""
        return str(self._about["contact"])

    @property
    def context(self) -> Context:
        """What is promised."""
        return self._context

    @property
    def mechanism(self) -> Mechanism:
        """What keeps the promise."""
        return self._mechanism

    @property
    def minimum_reports(self) -> int:
        """Below it there is no estimate. It protects the reader from noise, not the person."""
        return int(str(self._about["minimum_reports"]))

    # --- the promise as data ------------------------------------------------------------------------

    @property
    def promise(self) -> Json:
        """What the fingerprint names."""
        return {
            "format": FORMAT,
            "name": self._name,
            "context": self._context.record(),
            "mechanism": self._mechanism.record(),
            "mechanism_context": None if self._own_context else self._mechanism.context.record(),
            "repeat": self._repeat,
        }

    @cached_property
    def _own_context(self) -> bool:
        return self._mechanism.context == self._context

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical promise."""
        return fingerprint(self.promise)

    def resolved(self) -> bytes:
        """The resolved survey: canonical JSON with every integer of the mechanism."""
        return canonical_bytes({"promise": self.promise, "about": self._about})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the resolved survey, whole or not at all."""
        write_whole(path, self.resolved() + b"\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a survey: a TOML file that describes one, or a resolved survey (JSON)."""
        from sfumato.survey.file import read_toml

        source = Path(path)
        try:
            if source.stat().st_size > _LARGEST_FILE:
                raise InvalidSurvey(f"{source.name} is larger than 256 MiB and is no survey.")
            raw = source.read_bytes()
        except OSError as problem:
            raise InvalidSurvey(f"{source.name} cannot be read: {problem.strerror}.") from None
        if source.suffix == ".json":
            return cls.of_resolved(raw)
        described = read_toml(raw, source.parent)
        return cls(described.name, described.context, described.mechanism, **described.about)

    @classmethod
    def of_resolved(cls, raw: bytes) -> Self:
        """The survey of a resolved file, with the integers that it holds."""
        try:
            data = json.loads(raw.decode("utf-8"))
        except (ValueError, RecursionError):
            raise InvalidSurvey("a resolved survey must be JSON in UTF-8.") from None
        try:
            made = cls._rebuilt(data)
            whole = raw in (made.resolved(), made.resolved() + b"\n")
        except InvalidSurvey:
            raise
        except _UNMEANT as problem:
            raise InvalidSurvey(f"the resolved survey cannot be meant: {problem or type(problem).__name__}") from None
        if not whole:
            raise InvalidSurvey("the resolved survey is not in its canonical form. Resolve it again.")
        return made

    @classmethod
    def _rebuilt(cls, data: object) -> Self:
        parts = fields_of(data, "a resolved survey", ("promise", "about"))
        version = parts["promise"].get("format") if isinstance(parts["promise"], Mapping) else None
        if version != FORMAT or not isinstance(version, int):
            raise InvalidSurvey(f"promise.format must be {FORMAT}; this version reads no other.")
        names = ("format", "name", "context", "mechanism", "mechanism_context", "repeat")
        promise = fields_of(parts["promise"], "promise", names)
        about = fields_of(parts["about"], "about", _ABOUT)
        context = context_of(promise["context"])
        own = promise["mechanism_context"]
        mechanism = mechanism_of(promise["mechanism"], context if own is None else context_of(own))
        return cls(promise["name"], context, mechanism, repeat=promise["repeat"], **about)

    # --- what people, servers and analysts do -------------------------------------------------------

    def privatize(self, answers: Any, source: WordSource | None = None) -> Reports:  # noqa: ANN401 - any column
        """One report per answer: a list, NumPy, or a column of Arrow, pandas or polars."""
        symbols = symbols_of(self._context.domain, answers)
        return Reports(self._mechanism.privatize(symbols, source), self.fingerprint)

    def tally(self, reports: Reports | ArrayLike | Iterable[Reports]) -> Tally:
        """Count reports: one batch, or any iterable of batches. Reports of another survey are refused."""
        if isinstance(reports, Reports):
            batches: Iterable[Any] = [reports]
        elif isinstance(reports, np.ndarray):
            batches = [Reports(reports, self.fingerprint)]
        else:
            batches = reports if isinstance(reports, Iterable) else [reports]
        counted = self._mechanism.tally(self._numbers(batch) for batch in batches)
        return Tally(counted.counts, self.fingerprint)

    def _numbers(self, batch: object) -> ArrayLike:
        if not isinstance(batch, Reports):
            raise WrongSurvey("reports must carry a fingerprint: pass what privatize returned, or an array.")
        if batch.fingerprint != self.fingerprint:
            found, own = batch.fingerprint[:12], self.fingerprint[:12]
            raise WrongSurvey(f"these reports answer another survey ({found}…); this one is {own}….")
        return batch.numbers

    def estimate(
        self, tally: Tally, *, decoder: str | Decoder = "auto", covariate: ArrayLike | None = None
    ) -> Estimate:
        """The distribution that a tally speaks for; refused below the survey's minimum number of reports.

        ``decoder`` is a name or an object from ``sf.decoders``. ``covariate`` is a public number for each symbol, for
        decoders that can use it.
        """
        tally.require(self.fingerprint, self._mechanism.outputs)
        if tally.reports < self.minimum_reports:
            raise NotEnoughReports(
                f"this survey gives results from {self.minimum_reports} reports on; there are {tally.reports}."
            )
        own = Tally(tally.counts, self._mechanism.fingerprint)
        found = estimate(self._mechanism, own, decoder=decoder, covariate=covariate)
        return replace(found, fingerprint=self.fingerprint)

    def certify(self) -> Certificate:
        """Check that the mechanism keeps the survey's context; ``PrivacyViolation`` names pair and output."""
        return certify(self._mechanism, self._context)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Survey) and self.resolved() == other.resolved()

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        return f"Survey({self._name!r}, {self._context!r}, fingerprint={self.fingerprint[:12]}…)"


def _checked_name(name: object) -> str:
    try:
        label = checked_label(name, "name")
    except InvalidContext as problem:
        raise InvalidSurvey(str(problem)) from None
    if not isinstance(label, str) or len(label) > 100 or not label.isprintable() or label != label.strip():
        raise InvalidSurvey("name must be a line of at most 100 printable characters, unique per question.")
    return label


def _check_time(text: str, name: str) -> None:
    try:
        datetime.fromisoformat(text or "2000-01-01")
    except ValueError:
        raise InvalidSurvey(f"{name} must be a date or time such as 2026-11-30 or 2026-11-30T18:00Z.") from None


def _is_utf8(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _checked_repeat(repeat: object) -> Json:
    if repeat == "once":
        return "once"
    if isinstance(repeat, Mapping) and set(repeat) == {"every", "distinct"} and repeat["every"] in _PERIODS:
        distinct = repeat["distinct"]
        if isinstance(distinct, int) and not isinstance(distinct, bool) and 1 <= distinct <= 10_000:
            return {"every": str(repeat["every"]), "distinct": distinct}
    raise InvalidSurvey(
        f'repeat must be "once", or {{ every = one of {", ".join(_PERIODS)}, distinct = a whole number from 1 on }}.'
    )
