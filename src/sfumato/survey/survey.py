"""A survey: one question asked of many people, and its results as plain data.

A survey accepts labels; its mechanism accepts integers.
"""

import math
import os
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from sfumato.contexts import CONTEXT_KINDS, MAX_MATRIX_SIZE, Context
from sfumato.designer import mechanism_for
from sfumato.domains import Label
from sfumato.errors import (
    InvalidArgument,
    InvalidSurvey,
    NoClosedForm,
    NotEnoughReports,
    ReportRejected,
    SfumatoError,
    WrongSurvey,
)
from sfumato.estimation import Estimate, estimate
from sfumato.estimation.decoders import Decoder
from sfumato.foundation.canonical import Json, canonical_bytes, fingerprint
from sfumato.foundation.correct_call import shows_call
from sfumato.foundation.decoder_table import DecoderName
from sfumato.foundation.files import write_atomically
from sfumato.foundation.formatting import printable
from sfumato.foundation.notebook import facts_html
from sfumato.foundation.numpy_values import require_unmasked
from sfumato.mechanisms import Mechanism, UnionResponse
from sfumato.promises import Certificate, certify
from sfumato.randomness import WordSource, reject_seed, require_source, shuffle
from sfumato.survey.answer_columns import AnswerColumns
from sfumato.survey.answers import AnswerReader, ReportBatch
from sfumato.survey.content import has_resolved_name, require_resolved
from sfumato.survey.description import WORST_CASE_MARGINS, Description, disclosure_text
from sfumato.survey.promise import about_record, parse_survey_record, promise_record
from sfumato.survey.question import DEFAULT_QUESTION, Question
from sfumato.survey.resolved import (
    parse_resolved,
    read_survey_file,
    require_canonical,
    require_max_size,
    require_pinned,
)
from sfumato.survey.row_counts import OtherWarning
from sfumato.tally import Tally

RESULT_COLUMNS = ("label", "frequency", "unbiased", "standard_error", "low", "high")

FAKE_COUNTS = (1, 10, 100)
"""The numbers of fake people for which results show how far the estimate could be moved."""

_MAX_LABELS_IN_HTML = 12
_MISSING: Any = None  # a missing context gets an error that shows the right call
_COLUMN_ADVICE = (
    "To ask for the answers in a column, take its labels and choose a promise: "
    'survey = sf.Survey("vote", sf.Uniform(column.dropna().unique(), epsilon=1)). Then pass the '
    "column to survey.privatize."
)
_SEEDED_CALL = "sf.simulation.reports(survey, answers, seed=1)"
_MECHANISM_KINDS = ("binary", "table", "plain", "blocks", "high-low", "groups", "product", "union")
_NOT_SINGLE_MESSAGE = (
    "a survey must have one context and one mechanism; sums and compositions combine several."
)

# A cache of the certificates of surveys that keep their promise, oldest first.
_CERTIFICATE_CACHE: dict[tuple[type[Mechanism], str], Certificate] = {}
_CERTIFICATE_CACHE_LOCK = Lock()
_MAX_CACHED_CERTIFICATES = 256

# The errors that malformed data may cause while a survey is built.
_BUILD_ERRORS = (
    SfumatoError,
    TypeError,
    LookupError,
    AttributeError,
    ValueError,
    ArithmeticError,
    MemoryError,
)


class Survey:
    """A name, a context, a mechanism that satisfies it, and information for participants.

    ``mechanism`` defaults to the best closed-form mechanism. ``minimum_reports`` is the smallest
    number of reports for an estimate. ``opens`` and ``closes`` are dates or times. ``repeat`` is
    "once", or a mapping with ``every`` (a period) and ``distinct`` (the maximum
    number of different answers). ``reports_per_upload`` is how many reports an aggregator accepts
    in an anonymous upload; by default, the aggregator decides, and accepts one.
    ``edition`` fixes the defaults and the format of the data: surveys of edition 1 keep their
    fingerprints, and edition 2 has batches with periods (``docs/format.md``).

    The fingerprint identifies the promise. Reports, tallies and estimates carry it, and a survey
    rejects any that carry a different fingerprint. Correcting the title or the contact does not
    change the fingerprint.

    >>> from sfumato.contexts import HighLow
    >>> survey = Survey("lunch-2026", HighLow(["park", "clinic", "bar"], ["clinic", "bar"], 1))
    >>> reports = survey.privatize(["park", "bar", "park"])
    >>> survey.tally(reports).reports
    3
    """

    @shows_call('sf.Survey("vote-2026", context, title="How will you vote?")')
    def __init__(
        self,
        name: str,
        context: Context | Question = _MISSING,
        mechanism: Mechanism | None = None,
        *,
        title: str = "",
        text: str = "",
        contact: str = "",
        minimum_reports: int = 0,
        opens: str = "",
        closes: str = "",
        repeat: Literal["once"] | Mapping[str, Any] = "once",
        reports_per_upload: int | None = None,
        edition: int = 1,
    ) -> None:
        if not isinstance(name, str):
            raise InvalidSurvey(
                f"a survey's name must be text; got {type(name).__name__}. {_COLUMN_ADVICE}"
            )
        about = {
            "title": title,
            "text": text,
            "contact": contact,
            "minimum_reports": minimum_reports,
            "opens": opens,
            "closes": closes,
            "repeat": repeat,
            "reports_per_upload": reports_per_upload,
        }
        if isinstance(context, Question):
            question = context
        else:
            question = Question(DEFAULT_QUESTION, context)
        self._set_parts(Description(name, (question,), about, edition), mechanism)

    def _set_parts(self, description: Description, mechanism: Mechanism | None) -> None:
        context = description.context
        self._description = description
        # The sections of its file that cannot be derived, if the survey was read from TOML.
        self._sections: Mapping[str, Mapping[str, Any]] = {}
        if mechanism is None:
            margin = WORST_CASE_MARGINS[description.edition]
            mechanism = mechanism_for(context, worst_case_margin=margin)
        self._mechanism = mechanism
        if self._mechanism.context.domain != context.domain:
            raise InvalidSurvey("the mechanism and the context must have the same domain.")
        _require_single(self._mechanism)
        if context.kind not in CONTEXT_KINDS:
            raise InvalidSurvey(_NOT_SINGLE_MESSAGE)
        require_max_size(context.size, context.max_recorded_size)

    @classmethod
    def from_description(cls, description: Description, mechanism: Mechanism | None = None) -> Self:
        """Create a survey from a description and a mechanism that satisfies its context."""
        if not isinstance(description, Description):
            raise _not_a_source("from_description needs a survey's description", description)
        survey = cls.__new__(cls)
        # A survey file's description also has the options for choosing a mechanism; drop them.
        plain = Description(
            description.name,
            description.questions,
            description.about,
            description.edition,
            description.table,
        )
        survey._set_parts(plain, mechanism)
        return survey

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
        """The title for participants; defaults to the name."""
        return str(self._description.about["title"]) or self.name

    @property
    def text(self) -> str:
        """Further information for participants."""
        return str(self._description.about["text"])

    @property
    def contact(self) -> str:
        """The person or address to contact."""
        return str(self._description.about["contact"])

    @property
    def context(self) -> Context:
        """The privacy context: what the survey promises."""
        return self._description.context

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism that keeps the promise."""
        return self._mechanism

    def disclosure(self) -> str:
        """Return a plain-language description of what reports may reveal.

        It is empty if every pair of answers is protected.

        Show this text to participants before you allow answers that are sent as they are.

        >>> from sfumato.contexts import HighLow
        >>> Survey("lunch", HighLow(["park", "clinic", "bar"], ["clinic", "bar"], 1)).disclosure()
        'These answers are sent as they are: park.'
        """
        return disclosure_text(self.context)

    @property
    def minimum_reports(self) -> int:
        """The minimum number of reports for an estimate.

        This minimum prevents estimates that are mostly noise. It does not protect participants.
        """
        return int(self._description.about["minimum_reports"])

    # --- the promise as data -------------------------------------------------------------------

    @property
    def edition(self) -> int:
        """The edition, which fixes the survey's defaults and the format of its data."""
        return self._description.edition

    @property
    def promise(self) -> Json:
        """The data that the fingerprint identifies."""
        return promise_record(self._description, self._mechanism)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical promise."""
        return fingerprint(self.promise)

    @cached_property
    def display_fingerprint(self) -> str:
        """SHA-256 of the texts, times and limits that are shown but not promised."""
        return fingerprint(about_record(self._description))

    def resolved(self) -> bytes:
        """Return the resolved survey: canonical JSON with every integer of the mechanism."""
        return canonical_bytes({"promise": self.promise, "about": about_record(self._description)})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the survey to a file, atomically.

        If the name ends in .json, the file is the resolved survey. If it ends in .toml, the file is
        a survey file that has the same fingerprints; see the page "The survey file" in the
        documentation. Other names are rejected. Raise ``InvalidSurvey`` if TOML cannot describe the
        survey, for example because its mechanism was designed.
        """
        target = Path(path)
        if has_resolved_name(target):
            content = self.resolved() + b"\n"
        elif target.suffix.lower() == ".toml":
            content = self._to_toml()
        else:
            raise InvalidArgument(
                "the name of a survey file must end in .toml, or in .json for a resolved survey; "
                f"got {target.name!r}."
            )
        write_atomically(path, content)

    def _to_toml(self) -> bytes:
        from sfumato.survey.toml.write import write_survey_toml

        return write_survey_toml(self._description, self._mechanism, self._sections)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a survey file: a resolved survey if its name ends in .json, otherwise TOML."""
        from sfumato.survey.toml.file import read_survey_toml

        if not isinstance(path, str | os.PathLike):
            raise _not_a_source("load needs the path of a survey file", path)
        source = Path(path)
        if has_resolved_name(source):
            return cls._load_resolved(source)
        description = read_survey_toml(source)
        try:
            survey = cls.from_description(description, description.mechanism)
        except NoClosedForm as problem:
            name = printable(source.name)
            resolved = printable(source.with_suffix(".json").name)
            raise InvalidSurvey(
                f"{name}: mechanism: {problem} Run sfumato design {name} -o {resolved}, and use "
                f"{resolved} from then on."
            ) from problem
        survey._sections = description.sections
        return survey

    @classmethod
    def _load_resolved(cls, path: Path) -> Self:
        raw = read_survey_file(path)
        require_resolved(raw, path)
        try:
            return cls.from_resolved(raw)
        except InvalidSurvey as problem:
            raise InvalidSurvey(f"{printable(path.name)}: {problem}") from None

    @classmethod
    def from_resolved(cls, raw: bytes, *, fingerprint: str | None = None) -> Self:
        """Build a survey from the content of a resolved file, using exactly the integers in it.

        If you have pinned a fingerprint, pass it as ``fingerprint``. Any other survey then raises
        ``WrongSurvey`` before anything is built from it: an untrusted survey of a few hundred bytes
        can describe a domain that exhausts memory.
        """
        if not isinstance(raw, bytes | bytearray):
            raise _not_a_source("from_resolved needs the bytes of a resolved survey", raw)
        data = parse_resolved(raw)
        if fingerprint is not None:
            require_pinned(data, fingerprint)
        try:
            survey = cls.from_description(*parse_survey_record(data))
            canonical = survey.resolved()
        except InvalidSurvey:
            raise
        except _BUILD_ERRORS as problem:
            reason = str(problem) or type(problem).__name__
            raise InvalidSurvey(f"the resolved survey is malformed: {reason}") from None
        require_canonical(raw, canonical)
        return survey

    # --- reports, tallies and estimates --------------------------------------------------------

    def privatize(
        self,
        answers: Any,  # noqa: ANN401 - any column
        source: WordSource | None = None,
        *,
        missing: Label | None = None,
        seed: None = None,
    ) -> ReportBatch:
        """Draw one randomized report for each answer.

        ``answers`` is a list, a NumPy array, or an Arrow, pandas or polars column. ``source``
        supplies the random words. Only the default, the operating system, gives privacy. The survey
        certifies itself before its first report, and raises ``PrivacyViolation`` if its mechanism
        breaks its promise. There is no ``seed``: ``sf.simulation.reports`` has one, and is not
        private.

        ``missing``: what to do with missing answers: "refuse" the column, "skip" them, or count
        them as the label given. By default, they count as the domain's ``other``, if there is one,
        and are refused otherwise. If answers may be skipped, the reports are shuffled, because
        their order could show whose answer is missing. ``OtherWarning`` says that many answers are
        not among the labels; a column in which most answers are not is refused.
        """
        reject_seed(seed, _SEEDED_CALL)
        require_source(source, _SEEDED_CALL)
        self.certify()
        columns = self._description.table
        if missing is not None:
            columns = replace(columns, missing=missing)
        reader = AnswerReader(self.context.domain, columns)
        batch = reader.read(answers)
        counts = batch.counts
        if counts.rows == 1:
            # One answer is what a device has. There, nothing may depend on the value.
            reader.rules.require_no_skipping("a single person's missing report shows the answer")
        else:
            reader.rules.check_other_share(counts)
        reader.rules.check(counts)
        reader.rules.require_answers(counts)
        warning = reader.rules.warning(counts) if counts.rows > 1 else ""
        if warning:
            warnings.warn(warning, OtherWarning, stacklevel=2)
        reports = self._mechanism.privatize(batch.symbols, source)
        if reader.rules.is_skipping:
            reports = shuffle(reports, source)
        return ReportBatch(reports, self.fingerprint)

    def tally(self, reports: ReportBatch | ArrayLike | Iterable[ReportBatch]) -> Tally:
        """Count reports: one batch, an array, or any iterable of batches.

        Reports with a different fingerprint raise ``WrongSurvey``.
        """
        batches: Iterable[Any] = [reports]
        if isinstance(reports, ReportBatch):
            pass
        elif hasattr(reports, "__array__") or _is_list_of_integers(reports):
            require_unmasked(reports, "reports", ReportRejected)
            batches = [ReportBatch(np.asarray(reports), self.fingerprint)]
        elif isinstance(reports, Iterable):
            batches = reports
        tally = self._mechanism.tally(self._reports_in(batch) for batch in batches)
        return Tally(tally.counts, self.fingerprint)

    def _reports_in(self, batch: object) -> ArrayLike:
        """Return the reports in a batch; reject a batch that answers a different survey."""
        if not isinstance(batch, ReportBatch):
            raise WrongSurvey(
                "reports must carry a fingerprint: pass the result of survey.privatize(answers), "
                "or an array of integers."
            )
        if batch.fingerprint != self.fingerprint:
            raise WrongSurvey(
                f"these reports answer a different survey ({batch.fingerprint[:12]}…); this one is "
                f"{self.fingerprint[:12]}…."
            )
        return batch.numbers

    def estimate(
        self,
        tally: Tally | ReportBatch | ArrayLike,
        *,
        decoder: DecoderName | Decoder = "auto",
        covariate: ArrayLike | None = None,
    ) -> Estimate:
        """Estimate the distribution of answers from a tally, or from the reports themselves.

        ``decoder`` is a decoder from ``sf.decoders``, or its name. ``covariate`` is a public number
        for each symbol, for decoders that use one. Raise ``NotEnoughReports`` if there are fewer
        reports than the survey's minimum.
        """
        if not isinstance(tally, Tally):
            tally = self.tally(tally)
        tally.require(self.fingerprint, self._mechanism.outputs)
        if tally.reports < self.minimum_reports:
            raise NotEnoughReports(
                f"this survey needs at least {self.minimum_reports} reports; there are "
                f"{tally.reports}."
            )
        mechanism_tally = Tally(tally.counts, self._mechanism.fingerprint)
        result = estimate(self._mechanism, mechanism_tally, decoder=decoder, covariate=covariate)
        return replace(result, fingerprint=self.fingerprint, _survey=self)

    def certify(self) -> Certificate:
        """Return a certificate that the mechanism satisfies the survey's context.

        If it does not, raise ``PrivacyViolation``, which names a pair of symbols and an output for
        which the promise is broken. The fingerprint covers every integer that is checked, so a
        process checks each fingerprint only once.
        """
        # A different mechanism class may use the same integers differently.
        key = (type(self._mechanism), self.fingerprint)
        certificate = _CERTIFICATE_CACHE.get(key)
        if certificate is None:
            certificate = certify(self._mechanism, self.context)
            _cache_certificate(key, certificate)
        return certificate

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickle the resolved survey, which is small, and what only a survey file contains.
        arguments = (type(self), self.resolved(), self._description.table, self._sections)
        return _restore_survey, arguments

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Survey) and self.resolved() == other.resolved()

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        return f"Survey({self.name!r}, {self.context!r}, fingerprint={self.fingerprint[:12]}…)"

    def _repr_html_(self) -> str:
        """Return the question, the promise and the fingerprint as HTML, for notebooks."""
        labels = list(map(str, self.context.domain.labels[:_MAX_LABELS_IN_HTML]))
        if self.context.size > len(labels):
            labels.append(f"… ({self.context.size:,} in all)")
        facts = {"question": self.title, "answers": ", ".join(labels)}
        facts["promise"] = " ".join(_promise_sentences(self.context))
        if self.context.size <= MAX_MATRIX_SIZE or self.context.groups is not None:
            facts["not protected"] = self.disclosure() or "–"
        facts["mechanism"] = f"{type(self._mechanism).__name__}, {self._mechanism.bits} bits"
        facts["fingerprint"] = self.fingerprint
        return facts_html(f"Survey {self.name}", facts)


def _restore_survey(
    survey_class: type[Survey],
    resolved: bytes,
    table: AnswerColumns,
    sections: Mapping[str, Mapping[str, Any]],
) -> Survey:
    """Return a survey from its pickle."""
    survey = survey_class.from_resolved(resolved)
    survey._description = replace(survey.description, table=table)
    survey._sections = sections
    return survey


def _promise_sentences(context: Context) -> list[str]:
    """Return the promise in words. Pages are in a layer above, so they are loaded by name."""
    promise_module: Any = import_module("sfumato.pages.promise")
    sentences: list[str] = promise_module.promise_sentences(context)
    return sentences


def _cache_certificate(key: tuple[type[Mechanism], str], certificate: Certificate) -> None:
    """Cache a certificate, and evict the oldest ones if there are too many."""
    with _CERTIFICATE_CACHE_LOCK:
        _CERTIFICATE_CACHE[key] = certificate
        while len(_CERTIFICATE_CACHE) > _MAX_CACHED_CERTIFICATES:
            del _CERTIFICATE_CACHE[next(iter(_CERTIFICATE_CACHE))]


def _not_a_source(need: str, value: object) -> InvalidSurvey:
    """Return the error for something that no survey can be built from."""
    return InvalidSurvey(
        f"{need}; got {type(value).__name__}. To read a survey file, call "
        f'sf.Survey.load("survey.toml"). {_COLUMN_ADVICE}'
    )


def _is_list_of_integers(reports: object) -> bool:
    if not isinstance(reports, list | tuple):
        return False
    return all(isinstance(report, int | np.integer) for report in reports)


def _require_single(mechanism: Mechanism) -> None:
    """Reject a mechanism that answers several times, or a union that contains one."""
    if mechanism.context.kind not in CONTEXT_KINDS or mechanism.kind not in _MECHANISM_KINDS:
        raise InvalidSurvey(_NOT_SINGLE_MESSAGE)
    if isinstance(mechanism, UnionResponse):
        for part in mechanism.parts:
            _require_single(part)


# --- results as plain data, with the same names in files, on the command line and over HTTP -------


def results_as_json(survey: Survey, estimate: Estimate, level: float = 0.95) -> dict[str, Any]:
    """Return a survey's estimate as JSON data.

    ``repeated`` is true if a person may have sent several reports; the intervals assume one report
    per person. ``manipulation`` shows how far 1, 10 and 100 fake people could have moved the
    estimate.
    """
    fit = estimate.fit_result
    rows = result_rows(estimate, level)
    fake_counts = [count for count in FAKE_COUNTS if count <= estimate.reports]
    return {
        "survey": survey.fingerprint,
        "reports": estimate.reports,
        "decoder": estimate.decoder,
        "details": {name: _finite_or_null(value) for name, value in estimate.details.items()},
        "fit": {"p_value": fit.p_value, "verdict": fit.verdict},
        "repeated": bool(survey.description.every),
        "manipulation": [estimate.manipulation(count).to_dict() for count in fake_counts],
        "symbols": [
            dict(zip(RESULT_COLUMNS, map(_finite_or_null, row), strict=True)) for row in rows
        ],
    }


def result_rows(
    estimate: Estimate, level: float = 0.95
) -> list[tuple[Label, float, float, float, float, float]]:
    """Return one row for each symbol, with the columns ``RESULT_COLUMNS``.

    A row contains the symbol's label, its decoded and unbiased frequencies, the standard error of
    the unbiased one, and the endpoints of its confidence interval.
    """
    low, high = estimate.interval(level)
    frequencies = estimate.frequencies.tolist()
    unbiased = estimate.unbiased.tolist()
    errors = estimate.standard_errors.tolist()
    columns = (estimate.labels, frequencies, unbiased, errors, low.tolist(), high.tolist())
    return list(zip(*columns, strict=True))


def _finite_or_null(value: object) -> object:
    """Return ``None`` for a float that JSON cannot represent, such as an infinite likelihood."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
