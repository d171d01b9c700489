"""Certificates: the results of exact checks that a realised mechanism satisfies a context."""

from dataclasses import dataclass, field, replace
from fractions import Fraction
from html import escape
from math import inf

from sfumato.contexts import Context, parts_by_block
from sfumato.errors import ContextMismatch
from sfumato.foundation.canonical import Json, fingerprint
from sfumato.foundation.correct_call import shows_call
from sfumato.foundation.formatting import format_label
from sfumato.mechanisms import (
    Mechanism,
    MechanismHolder,
    RowClass,
    UnionResponse,
    context_of,
    require_mechanism,
)
from sfumato.promises.enumeration import TightestCase, UnlabelledViolation, enumerate_cases
from sfumato.promises.structure import check_structure
from sfumato.randomness import float_above, float_below

MAX_ENUMERATED_OUTPUTS = 512
"""With at most this many outputs, every pair of symbols is compared on every output."""

_MAX_UNSTRUCTURED_ENTRIES = 2**22  # channels that claim no structure are enumerated up to this size


@dataclass(frozen=True, repr=False)
class Certificate:
    """The result of a check that found no violation.

    ``mechanism`` and ``context`` are fingerprints. ``method`` is "enumerated" (every pair of
    symbols was compared on every output) or "structural" (the ``premises`` were re-checked on
    ``rows`` rows, and the mechanism's proof page shows that they imply the promise). ``inputs`` and
    ``outputs`` are the size of the channel. ``tightest`` is the case that comes closest to breaking
    the promise, or ``None`` if nothing is promised. ``tightest_pair`` names its labels; the record
    does not contain it.
    """

    mechanism: str
    context: str
    method: str
    rows: int
    inputs: int
    outputs: int
    tightest: TightestCase | None
    premises: tuple[RowClass, ...] = ()
    tightest_pair: str = field(default="", compare=False)

    @property
    def pair_count(self) -> int:
        """The number of ordered pairs of symbols that the certificate covers."""
        return self.inputs * (self.inputs - 1)

    @property
    def promised_epsilon(self) -> float:
        """The promised ε in the tightest case, rounded up; ``inf`` if nothing is promised."""
        return inf if self.tightest is None else float_above(self.tightest.promised)

    @property
    def realised_epsilon(self) -> float:
        """The realised ε in the tightest case, rounded up; 0 if nothing is promised."""
        return 0.0 if self.tightest is None else self.tightest.realised

    @property
    def slack(self) -> float:
        """The unused part of the promised ε, rounded down; ``inf`` if nothing is promised."""
        if self.tightest is None:
            return inf
        unused_epsilon = self.tightest.promised - Fraction(repr(self.realised_epsilon))
        return float_below(max(unused_epsilon, Fraction(0)))

    def to_record(self) -> Json:
        """Return the certificate as JSON-compatible data."""
        return {
            "mechanism": self.mechanism,
            "context": self.context,
            "method": self.method,
            "rows": self.rows,
            "inputs": self.inputs,
            "outputs": self.outputs,
            "tightest": None if self.tightest is None else self.tightest.to_record(),
            "premises": [premise.to_record() for premise in self.premises],
        }

    def __str__(self) -> str:
        scope = "every pair on every report"
        if self.method == "structural":
            scope = f"structure checked on {self.rows:,} of {self.inputs:,} rows, the rest by proof"
        case = self.tightest
        if case is None:
            return f"Certified ({scope}): nothing is promised, so no promise can be broken."
        pair = self.tightest_pair or f"symbol {case.x} against symbol {case.x2}"
        return (
            f"Certified ({scope}): the tightest case is {pair}, "
            f"with ε = {self.realised_epsilon!r} of {self.promised_epsilon!r} promised."
        )

    def __repr__(self) -> str:
        scope = f"{self.method}, {self.pair_count:,} ordered pairs"
        if self.tightest is None:
            return f"Certificate({scope}, nothing is promised)"
        return (
            f"Certificate({scope}, tightest ε = {self.realised_epsilon!r} of "
            f"{self.promised_epsilon!r})"
        )

    def _repr_html_(self) -> str:
        """Return the certificate as HTML, for notebooks."""
        return (
            f"<p><b>Certificate</b> for {self.pair_count:,} ordered pairs of symbols</p>"
            f"<p>{escape(str(self))}</p><p>mechanism <code>{escape(self.mechanism)}</code></p>"
        )


@shows_call("sf.certify(mechanism)")
def certify(mechanism: Mechanism | MechanismHolder, context: Context | None = None) -> Certificate:
    """Check in integer arithmetic that ``Q(y|x) ≤ exp(E[x, x2]) Q(y|x2)`` for all x, x2 and y.

    ``context`` defaults to the mechanism's own context, or to that of the survey which holds the
    mechanism; any other context must have the same domain. Every case is enumerated if there are at
    most 512 outputs, or if the mechanism claims no structure and has at most 2^22 entries.
    Otherwise, the structure that the mechanism claims is re-checked, and the promise follows from
    that structure. If the promise is broken, raises ``PrivacyViolation`` with a pair of symbols and
    an output as evidence. If the structure is not enough for a proof, raises ``NoClosedForm``.

    >>> from sfumato.contexts import Uniform
    >>> from sfumato.mechanisms import PlainResponse
    >>> certificate = certify(PlainResponse(Uniform(3, 1.0)))
    >>> certificate.pair_count, certificate.realised_epsilon <= 1.0, certificate.slack < 1e-15
    (6, True, True)
    >>> certify(PlainResponse(Uniform(1000, 1.0))).method
    'structural'
    """
    holder = mechanism
    mechanism = require_mechanism(holder, "certify(mechanism)")
    promise = context_of(holder if context is None else context, "certify(mechanism, context)")
    labels = promise.domain.labels
    try:
        certificate = _certify(mechanism, promise)
    except UnlabelledViolation as problem:
        violation = problem.with_labels(labels)
    else:
        case = certificate.tightest
        if case is None:
            return certificate
        pair = f"{format_label(labels[case.x])} against {format_label(labels[case.x2])}"
        return replace(certificate, tightest_pair=pair)
    raise violation


def _certify(mechanism: Mechanism, promise: Context) -> Certificate:
    if promise.domain != mechanism.context.domain:
        raise ContextMismatch("the context and the mechanism have different domains.")
    has_few_outputs = mechanism.outputs <= MAX_ENUMERATED_OUTPUTS
    premises = () if has_few_outputs else mechanism.row_classes()
    has_few_entries = mechanism.inputs * mechanism.outputs <= _MAX_UNSTRUCTURED_ENTRIES
    is_enumerated = has_few_outputs or (not premises and has_few_entries)
    if is_enumerated:
        tightest = enumerate_cases(mechanism, promise)
        rows = mechanism.inputs
    elif isinstance(mechanism, UnionResponse):
        tightest, rows, premises = _certify_parts(mechanism, promise)
    else:
        tightest, rows = check_structure(mechanism, promise, premises)
    return Certificate(
        mechanism=mechanism.fingerprint,
        context=fingerprint(promise.to_record()),
        method="enumerated" if is_enumerated else "structural",
        rows=rows,
        inputs=mechanism.inputs,
        outputs=mechanism.outputs,
        tightest=tightest,
        premises=premises,
    )


def _certify_parts(
    mechanism: UnionResponse, context: Context
) -> tuple[TightestCase | None, int, tuple[RowClass, ...]]:
    """Certify each part; return the tightest case, the number of rows checked, and the premises.

    A union reveals the block of the symbol. So the context must not promise anything between
    blocks, and every part must keep the promise inside its block.
    """
    promises = parts_by_block(context, mechanism.context.block_of)
    if promises is None:
        raise ContextMismatch(
            "a union response of this size can be certified only for contexts that have the same "
            "blocks or promise nothing between its blocks."
        )
    rows = 0
    tightest: TightestCase | None = None
    premises: list[RowClass] = []
    for j, (part, promise) in enumerate(zip(mechanism.parts, promises, strict=True)):
        symbols = mechanism.symbols[j]
        first_output = int(mechanism.offsets[j])
        try:
            certificate = _certify(part, promise.with_domain(part.context.domain))
        except UnlabelledViolation as violation:
            raise UnlabelledViolation(
                violation.template,
                x=int(symbols[violation.x]),
                x2=int(symbols[violation.x2]),
                output=violation.output + first_output,
            ) from None
        rows += certificate.rows
        premises.extend(certificate.premises)
        case = certificate.tightest
        if case is None or (tightest is not None and case.slack >= tightest.slack):
            continue
        x = int(symbols[case.x])
        x2 = int(symbols[case.x2])
        tightest = replace(case, x=x, x2=x2, output=case.output + first_output)
    return tightest, rows, tuple(premises)
