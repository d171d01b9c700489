"""Certificates: a finite, exact check that a realised mechanism keeps a context."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from html import escape

from sfumato.contexts import Context, parts_inside
from sfumato.errors import ContextMismatch
from sfumato.foundation.canonical import Json, fingerprint
from sfumato.mechanisms import Mechanism, UnionResponse
from sfumato.mechanisms.row_class import RowClass
from sfumato.promises.enumeration import tightest_of_all
from sfumato.promises.structure import tightest_by_structure
from sfumato.promises.tightest import Tightest
from sfumato.randomness import float_above, float_below

__all__ = ["LARGEST_ENUMERATION", "Certificate", "certify"]

LARGEST_ENUMERATION = 512
"""Up to this many outputs every pair of symbols is compared on every output."""

_LARGEST_UNSTRUCTURED = 2**22  # entries of a channel that has no structure to argue from


@dataclass(frozen=True)
class Certificate:
    """The outcome of a check that found no violation.

    ``method`` is "enumerated" (every pair of symbols on every output) or "structural" (the ``premises``,
    re-checked on ``rows`` rows, and the argument of the mechanism's proof page). ``tightest`` is the place
    where the promise is closest to being broken, or ``None`` where nothing is promised.
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
        """What the context promises at the tightest place, rounded up; ``inf`` where nothing is promised."""
        return float("inf") if self.tightest is None else float_above(self.tightest.promised)

    @property
    def realised_epsilon(self) -> float:
        """What the mechanism realises there, rounded up."""
        return 0.0 if self.tightest is None else self.tightest.realised

    @property
    def slack(self) -> float:
        """``promised − realised``, rounded down: how much of ε is left unused."""
        if self.tightest is None:
            return float("inf")
        return float_below(
            max(self.tightest.promised - Fraction(repr(self.realised_epsilon)), Fraction(0))
        )

    def record(self) -> Json:
        """The certificate as plain data."""
        return {
            "mechanism": self.mechanism,
            "context": self.context,
            "method": self.method,
            "rows": self.rows,
            "inputs": self.inputs,
            "outputs": self.outputs,
            "tightest": None if self.tightest is None else self.tightest.record(),
            "premises": [premise.record() for premise in self.premises],
        }

    def __str__(self) -> str:
        how = (
            "every pair on every report"
            if self.method == "enumerated"
            else f"{self.rows} rows against their structure"
        )
        if self.tightest is None:
            return f"Certified ({how}): nothing is promised, so nothing can be broken."
        place = self.tightest
        return (
            f"Certified ({how}): symbols {place.x} and {place.x2} on report {place.output} come closest, with "
            f"ε = {self.realised_epsilon!r} of {self.promised_epsilon!r} promised."
        )

    def _repr_html_(self) -> str:
        """What notebooks show: the verdict in words, with the tightest place."""
        return (
            f"<p><b>Certificate</b> for {self.pairs:,} ordered pairs of symbols</p><p>{escape(str(self))}</p>"
            f"<p>mechanism <code>{escape(self.mechanism)}</code></p>"
        )


def certify(mechanism: Mechanism, context: Context | None = None) -> Certificate:
    """Check in integers that ``Q(y|x) ≤ exp(E[x, x2]) Q(y|x2)`` for every x, x2 and y.

    The context is the mechanism's own unless another over the same domain is given. Up to 512 outputs
    everything is enumerated; above, the structure that the mechanism claims is re-checked and argued from.
    Raises ``PrivacyViolation`` with the pair and the output that show a violation.

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
        raise ContextMismatch("the context and the mechanism speak of different domains.")
    premises = () if mechanism.outputs <= LARGEST_ENUMERATION else mechanism.row_classes()
    small = mechanism.inputs * mechanism.outputs <= _LARGEST_UNSTRUCTURED
    enumerated = mechanism.outputs <= LARGEST_ENUMERATION or (not premises and small)
    if enumerated:
        tightest, rows = tightest_of_all(mechanism, promise), mechanism.inputs
    elif isinstance(mechanism, UnionResponse):
        tightest, rows, premises = _by_parts(mechanism, _parts_of(promise, mechanism))
    else:
        tightest, rows = tightest_by_structure(mechanism, promise, premises)
    return Certificate(
        mechanism=mechanism.fingerprint,
        context=fingerprint(promise.record()),
        method="enumerated" if enumerated else "structural",
        rows=rows,
        inputs=mechanism.inputs,
        outputs=mechanism.outputs,
        tightest=tightest,
        premises=premises,
    )


def _parts_of(promise: Context, mechanism: UnionResponse) -> Sequence[Context]:
    """What is promised inside each block that the mechanism shows; nothing must be promised across them."""
    parts = parts_inside(promise, mechanism.context.block_of)
    if parts is not None:
        return parts
    raise ContextMismatch(
        "a union response can be certified at this size for contexts of the same blocks only, or for such that promise "
        "nothing across its blocks."
    )


def _by_parts(
    mechanism: UnionResponse, parts: Sequence[Context]
) -> tuple[Tightest | None, int, tuple[RowClass, ...]]:
    """A union shows the block and promises nothing across: it is kept if every part keeps its own."""
    certificates = [
        certify(part, context.relabelled(part.context.domain))
        for part, context in zip(mechanism.parts, parts, strict=True)
    ]
    places = []
    for j, place in enumerate(certificate.tightest for certificate in certificates):
        if place is not None:
            x, x2 = (int(mechanism.symbols[j][symbol]) for symbol in (place.x, place.x2))
            places.append(
                replace(place, x=x, x2=x2, output=place.output + int(mechanism.offsets[j]))
            )
    tightest = min(places, key=lambda place: float(place.promised) - place.realised, default=None)
    premises = tuple(premise for certificate in certificates for premise in certificate.premises)
    return tightest, sum(certificate.rows for certificate in certificates), premises
