"""Certificates: a finite, exact check that a realised mechanism keeps a context."""

from dataclasses import dataclass, replace
from fractions import Fraction
from html import escape
from math import inf

from sfumato.contexts import Context, parts_by_block
from sfumato.errors import ContextMismatch
from sfumato.foundation.canonical import Json, fingerprint
from sfumato.mechanisms import Mechanism, RowClass, UnionResponse
from sfumato.promises.enumeration import Tightest, tightest_of_all
from sfumato.promises.structure import tightest_by_structure
from sfumato.randomness import float_above, float_below

MAX_ENUMERATED_OUTPUTS = 512
"""Up to this many outputs every pair of symbols is compared on every output."""

_MAX_UNSTRUCTURED_ENTRIES = 2**22  # of a channel that claims no structure


@dataclass(frozen=True)
class Certificate:
    """The outcome of a check that found no violation.

    ``mechanism`` and ``context`` are fingerprints. ``method`` is "enumerated" (every pair of
    symbols on every output) or "structural" (the ``premises``, re-checked on ``rows`` rows, and the
    argument of the mechanism's proof page). ``tightest`` is the place where the promise is closest
    to being broken, or ``None`` where nothing is promised.
    """

    mechanism: str
    context: str
    method: str
    rows: int
    inputs: int
    outputs: int
    tightest: Tightest | None
    premises: tuple[RowClass, ...] = ()

    @property
    def pairs(self) -> int:
        """The number of ordered pairs of symbols that the verdict covers."""
        return self.inputs * (self.inputs - 1)

    @property
    def promised_epsilon(self) -> float:
        """The promised ε at the tightest place, rounded up; ``inf`` where nothing is promised."""
        return inf if self.tightest is None else float_above(self.tightest.promised)

    @property
    def realised_epsilon(self) -> float:
        """The realised ε at the tightest place, rounded up."""
        return 0.0 if self.tightest is None else self.tightest.realised

    @property
    def slack(self) -> float:
        """``promised − realised``, rounded down: how much of ε is left unused."""
        if self.tightest is None:
            return inf
        unused = self.tightest.promised - Fraction(repr(self.realised_epsilon))
        return float_below(max(unused, Fraction(0)))

    def to_record(self) -> Json:
        """Return the certificate as plain data."""
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
        how = "every pair on every report"
        if self.method == "structural":
            how = f"{self.rows} rows against their structure"
        place = self.tightest
        if place is None:
            return f"Certified ({how}): nothing is promised, so nothing can be broken."
        return (
            f"Certified ({how}): symbols {place.x} and {place.x2} on report {place.output} come "
            f"closest, with ε = {self.realised_epsilon!r} of {self.promised_epsilon!r} promised."
        )

    def _repr_html_(self) -> str:
        """Return what notebooks show: the verdict in words, with the tightest place."""
        return (
            f"<p><b>Certificate</b> for {self.pairs:,} ordered pairs of symbols</p>"
            f"<p>{escape(str(self))}</p><p>mechanism <code>{escape(self.mechanism)}</code></p>"
        )


def certify(mechanism: Mechanism, context: Context | None = None) -> Certificate:
    """Check in integers that ``Q(y|x) ≤ exp(E[x, x2]) Q(y|x2)`` for every x, x2 and y.

    The context is the mechanism's own unless you pass another over the same domain. Up to 512
    outputs everything is enumerated; above, the structure that the mechanism claims is re-checked
    and argued from. Raises ``PrivacyViolation`` with the pair and the output that show a violation.

    >>> from sfumato.contexts import Uniform
    >>> from sfumato.mechanisms import PlainResponse
    >>> certificate = certify(PlainResponse(Uniform(3, 1.0)))
    >>> certificate.pairs, certificate.realised_epsilon <= 1.0, certificate.slack < 1e-15
    (6, True, True)
    >>> certify(PlainResponse(Uniform(1000, 1.0))).method
    'structural'
    """
    promise = mechanism.context if context is None else context
    if promise.domain != mechanism.context.domain:
        raise ContextMismatch("the context and the mechanism have different domains.")
    few_outputs = mechanism.outputs <= MAX_ENUMERATED_OUTPUTS
    premises = () if few_outputs else mechanism.row_classes()
    few_entries = mechanism.inputs * mechanism.outputs <= _MAX_UNSTRUCTURED_ENTRIES
    enumerated = few_outputs or (not premises and few_entries)
    if enumerated:
        tightest = tightest_of_all(mechanism, promise)
        rows = mechanism.inputs
    elif isinstance(mechanism, UnionResponse):
        tightest, rows, premises = _certify_parts(mechanism, promise)
    else:
        tightest, rows = tightest_by_structure(mechanism, promise, premises)
    return Certificate(
        mechanism=mechanism.fingerprint,
        context=fingerprint(promise.to_record()),
        method="enumerated" if enumerated else "structural",
        rows=rows,
        inputs=mechanism.inputs,
        outputs=mechanism.outputs,
        tightest=tightest,
        premises=premises,
    )


def _certify_parts(
    mechanism: UnionResponse, context: Context
) -> tuple[Tightest | None, int, tuple[RowClass, ...]]:
    """Certify each part: a union shows the block, so every part must keep its own promise.

    Nothing may be promised across blocks.
    """
    promises = parts_by_block(context, mechanism.context.block_of)
    if promises is None:
        raise ContextMismatch(
            "a union response of this size can be certified only for contexts with the same "
            "blocks, or that promise nothing across its blocks."
        )
    rows = 0
    tightest: Tightest | None = None
    premises: list[RowClass] = []
    for j, (part, promise) in enumerate(zip(mechanism.parts, promises, strict=True)):
        certificate = certify(part, promise.with_domain(part.context.domain))
        rows += certificate.rows
        premises.extend(certificate.premises)
        place = certificate.tightest
        if place is None or (tightest is not None and place.slack >= tightest.slack):
            continue
        symbols = mechanism.symbols[j]
        x = int(symbols[place.x])
        x2 = int(symbols[place.x2])
        output = place.output + int(mechanism.offsets[j])
        tightest = replace(place, x=x, x2=x2, output=output)
    return tightest, rows, tuple(premises)
