"""A survey: one question put to many people. It speaks labels; its mechanism speaks integers."""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from sfumato.contexts import CONTEXT_KINDS, Context, context_of_record
from sfumato.designer import mechanism_for
from sfumato.errors import InvalidSurvey, NoClosedForm, NotEnoughReports, SfumatoError, WrongSurvey
from sfumato.estimation import Estimate, estimate
from sfumato.estimation.decoders import Decoder
from sfumato.foundation.canonical import Json, canonical_bytes, fingerprint
from sfumato.foundation.files import write_atomically
from sfumato.foundation.records import require_fields
from sfumato.mechanisms import Mechanism, UnionResponse, mechanism_of_record
from sfumato.promises import Certificate, certify
from sfumato.randomness import WordSource
from sfumato.survey.answers import symbols_of
from sfumato.survey.description import Description
from sfumato.survey.disclosure import disclosure_of
from sfumato.survey.report_batch import ReportBatch
from sfumato.survey.resolved import (
    FORMAT,
    require_buildable_codes,
    require_buildable_context,
    require_size,
)
from sfumato.tally import Tally

__all__ = ["Survey", "survey_bytes"]

_KINDS = ("binary", "table", "plain", "blocks", "high-low", "groups", "product", "union")
_SPANS_SEVERAL = (
    "a survey promises one context through one mechanism; sums and compositions span several."
)
_ABOUT = ("title", "text", "contact", "minimum_reports", "opens", "closes")
_NOT_CANONICAL = "the resolved survey is not in its canonical form. Resolve it again."
_LARGEST_FILE = 2**28
_MOST_CERTIFICATES = 256
_CERTIFICATES: dict[
    tuple[type[Mechanism], str], Certificate
] = {}  # of surveys that keep their promise
_REMEMBERING = Lock()
_UNMEANT = (
    SfumatoError,
    TypeError,
    LookupError,
    AttributeError,
    ValueError,
    ArithmeticError,
    MemoryError,
)


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
        texts = {"title": title, "text": text, "contact": contact, "opens": opens, "closes": closes}
        self._description = Description(
            name, context, {**texts, "minimum_reports": minimum_reports, "repeat": repeat}
        )
        self._mechanism = mechanism_for(context) if mechanism is None else mechanism
        if self._mechanism.context.domain != context.domain:
            raise InvalidSurvey("the mechanism must be for the survey's domain.")
        _demand_single(self._mechanism)
        if context.kind not in CONTEXT_KINDS:
            raise InvalidSurvey(_SPANS_SEVERAL)
        require_size(context.size, context.max_recorded_size)

    @classmethod
    def of(cls, description: Description, mechanism: Mechanism | None = None) -> Self:
        """The survey of a description, with a mechanism that keeps its context."""
        return cls(description.name, description.context, mechanism, **description.about)

    @property
    def description(self) -> Description:
        """The survey without its mechanism."""
        return self._description

    @property
    def name(self) -> str:
        """The name, unique per question."""
        return self._description.name

    @property
    def title(self) -> str:
        """What people read."""
        return str(self._description.about["title"]) or self.name

    @property
    def text(self) -> str:
        """What else people should know."""
        return str(self._description.about["text"])

    @property
    def contact(self) -> str:
        """Whom to ask."""
        return str(self._description.about["contact"])

    @property
    def context(self) -> Context:
        """What is promised."""
        return self._description.context

    @property
    def mechanism(self) -> Mechanism:
        """What keeps the promise."""
        return self._mechanism

    def disclosure(self) -> str:
        """What reports may show, in plain words: show it to the person before you allow answers in the clear.

        Empty where every pair of answers has a promise.

        >>> from sfumato.contexts import HighLow
        >>> Survey("lunch", HighLow(["park", "clinic", "bar"], ["clinic", "bar"], 1)).disclosure()
        'These answers are sent as they are: park.'
        """
        return disclosure_of(self.context)

    @property
    def minimum_reports(self) -> int:
        """Below it there is no estimate. It protects the reader from noise, not the person."""
        return int(self._description.about["minimum_reports"])

    # --- the promise as data ------------------------------------------------------------------------

    @property
    def promise(self) -> Json:
        """What the fingerprint names."""
        return {
            "format": FORMAT,
            "name": self.name,
            "context": self.context.record(),
            "mechanism": self._mechanism.record(),
            "mechanism_context": None if self._own_context else self._mechanism.context.record(),
            "repeat": self._description.about["repeat"],
        }

    @cached_property
    def _own_context(self) -> bool:
        return self._mechanism.context == self.context

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical promise."""
        return fingerprint(self.promise)

    def resolved(self) -> bytes:
        """The resolved survey: canonical JSON with every integer of the mechanism."""
        about = {name: self._description.about[name] for name in _ABOUT}
        return canonical_bytes({"promise": self.promise, "about": about})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the resolved survey, whole or not at all."""
        write_atomically(path, self.resolved() + b"\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a survey: a TOML file that describes one, or a resolved survey (JSON)."""
        from sfumato.survey.toml.file import read_toml

        source = Path(path)
        raw = survey_bytes(source)
        if source.suffix == ".json":
            return cls.of_resolved(raw)
        described = read_toml(raw, source.parent)
        try:
            return cls.of(described, described.mechanism)
        except NoClosedForm as problem:
            resolved = source.with_suffix(".json").name
            raise InvalidSurvey(
                f"mechanism: {problem} For this file: sfumato design {source.name} -o {resolved}, and use {resolved} "
                "from then on."
            ) from problem

    @classmethod
    def of_resolved(cls, raw: bytes, *, fingerprint: str | None = None) -> Self:
        """Build the survey of a resolved file, with the integers that it holds.

        Pass the ``fingerprint`` that you have pinned: any other survey is a ``WrongSurvey``, before anything is built
        from it. A stranger's survey of a few hundred bytes can describe a domain that fills the memory.
        """
        data = _canonical_json(raw)
        if fingerprint is not None:
            _require_pinned(data, fingerprint)
        try:
            made = cls._rebuilt(data)
            canonical = made.resolved()
            whole = raw in (canonical, canonical + b"\n")
        except InvalidSurvey:
            raise
        except _UNMEANT as problem:
            raise InvalidSurvey(
                f"the resolved survey is malformed: {problem or type(problem).__name__}"
            ) from None
        if not whole:
            raise InvalidSurvey(_NOT_CANONICAL)
        return made

    @classmethod
    def _rebuilt(cls, data: object) -> Self:
        parts = require_fields(data, "a resolved survey", ("promise", "about"))
        version = parts["promise"].get("format") if isinstance(parts["promise"], Mapping) else None
        if version != FORMAT or not isinstance(version, int):
            raise InvalidSurvey(f"promise.format must be {FORMAT}; this version reads no other.")
        names = ("format", "name", "context", "mechanism", "mechanism_context", "repeat")
        promise = require_fields(parts["promise"], "promise", names)
        about = require_fields(parts["about"], "about", _ABOUT)
        own = promise["mechanism_context"]
        require_buildable_context(promise["context"])
        require_buildable_context(own)
        require_buildable_codes(promise["mechanism"], promise["context"])
        context = context_of_record(promise["context"])
        mechanism = mechanism_of_record(
            promise["mechanism"], context if own is None else context_of_record(own)
        )
        return cls(promise["name"], context, mechanism, repeat=promise["repeat"], **about)

    # --- what people, servers and analysts do -------------------------------------------------------

    def privatize(self, answers: Any, source: WordSource | None = None) -> ReportBatch:  # noqa: ANN401 - any column
        """Randomise one report per answer: a list, NumPy, or a column of Arrow, pandas or polars.

        The survey certifies itself first, once: ``PrivacyViolation`` if its mechanism breaks its promise.
        """
        self.certify()
        symbols = symbols_of(self.context.domain, answers)
        return ReportBatch(self._mechanism.privatize(symbols, source), self.fingerprint)

    def tally(self, reports: ReportBatch | ArrayLike | Iterable[ReportBatch]) -> Tally:
        """Count reports: one batch, or any iterable of batches. Reports of another survey are refused."""
        if isinstance(reports, ReportBatch):
            batches: Iterable[Any] = [reports]
        elif isinstance(reports, np.ndarray):
            batches = [ReportBatch(reports, self.fingerprint)]
        else:
            batches = reports if isinstance(reports, Iterable) else [reports]
        counted = self._mechanism.tally(self._numbers(batch) for batch in batches)
        return Tally(counted.counts, self.fingerprint)

    def _numbers(self, batch: object) -> ArrayLike:
        if not isinstance(batch, ReportBatch):
            raise WrongSurvey(
                "reports must carry a fingerprint: pass what privatize returned, or an array."
            )
        if batch.fingerprint != self.fingerprint:
            found, own = batch.fingerprint[:12], self.fingerprint[:12]
            raise WrongSurvey(
                f"these reports answer another survey ({found}…); this one is {own}…."
            )
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
        """Check that the mechanism keeps the survey's context; ``PrivacyViolation`` names pair and output.

        The fingerprint names every integer that is checked, so a process checks each fingerprint once.
        """
        key = (
            type(self._mechanism),
            self.fingerprint,
        )  # another class may do another thing with the same integers
        certificate = _CERTIFICATES.get(key)
        if certificate is None:
            certificate = certify(self._mechanism, self.context)
            _remember_certificate(key, certificate)
        return certificate

    def __reduce__(self) -> tuple[Any, ...]:
        # A worker gets the resolved form: it is small, and says all that there is to say.
        return type(self).of_resolved, (self.resolved(),)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Survey) and self.resolved() == other.resolved()

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        return f"Survey({self.name!r}, {self.context!r}, fingerprint={self.fingerprint[:12]}…)"


def _canonical_json(raw: bytes) -> Json:
    """Parse the canonical JSON of a resolved survey; no other spelling of the same data is accepted."""
    try:
        data: Json = json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError):
        raise InvalidSurvey("a resolved survey must be JSON in UTF-8.") from None
    try:
        canonical = canonical_bytes(data)
    except (ValueError, TypeError, RecursionError):
        raise InvalidSurvey(_NOT_CANONICAL) from None
    if raw not in (canonical, canonical + b"\n"):
        raise InvalidSurvey(_NOT_CANONICAL)
    return data


def _require_pinned(data: Json, pinned: str) -> None:
    """Refuse every survey but the pinned one."""
    promise = data.get("promise") if isinstance(data, Mapping) else None
    own = fingerprint(promise)
    if own != pinned:
        raise WrongSurvey(
            f"survey {own[:12]}… is not the pinned one ({pinned[:12]}…): it promises something else. Do not answer it; "
            "tell the survey's author."
        )


def _remember_certificate(key: tuple[type[Mechanism], str], certificate: Certificate) -> None:
    """Keep the newest certificates of this process."""
    with _REMEMBERING:
        _CERTIFICATES[key] = certificate
        while len(_CERTIFICATES) > _MOST_CERTIFICATES:
            del _CERTIFICATES[next(iter(_CERTIFICATES))]


def _demand_single(mechanism: Mechanism) -> None:
    """Refuse what answers several times, inside the parts of a union too."""
    if mechanism.context.kind not in CONTEXT_KINDS or mechanism.kind not in _KINDS:
        raise InvalidSurvey(_SPANS_SEVERAL)
    if isinstance(mechanism, UnionResponse):
        for part in mechanism.parts:
            _demand_single(part)


def survey_bytes(path: Path) -> bytes:
    """What stands in a survey file, TOML or JSON; refused where it is too large to be one."""
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise InvalidSurvey(f"{path.name} is larger than 256 MiB and is no survey.")
        return path.read_bytes()
    except OSError as problem:
        raise InvalidSurvey(f"{path.name} cannot be read: {problem.strerror}.") from None
