"""The shelf: closed-form mechanisms, chosen by exact risk."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.codes import BestCode, CodeFamily, HadamardCode, RandomizedCode
from sfumato.codes.best import EXTRA_BITS
from sfumato.contexts import Blocks, Context, ContextUnion, GroupedContext, HighLow, Uniform
from sfumato.designer.shelf.frames import frame_families
from sfumato.designer.shelf.recognise import Structured, recognise
from sfumato.errors import ContextMismatch, InvalidContext, NothingToLearn
from sfumato.foundation.arrays import Floats
from sfumato.mechanisms import (
    BinaryResponse,
    BlockResponse,
    GroupResponse,
    HighLowResponse,
    Mechanism,
    PlainResponse,
    ProductResponse,
    UnionResponse,
)

__all__ = ["CODES", "mechanism_for"]

CODES: Mapping[str, CodeFamily] = {
    "hadamard": HadamardCode,
    "cyclic": BestCode(),
    "randomized": RandomizedCode,
}
"""The codes by name."""

_SMALLEST = 1e-15  # e^ε of a smaller ε is 1 in floats
_LARGEST_PRODUCT = (
    2**20
)  # entries of a product response, so that it is built and certified within a second


def mechanism_for(
    context: Context,
    *,
    code: str = "best",
    max_bits: int | None = None,
    sensitive_share: float | None = None,
) -> Mechanism:
    """A mechanism that keeps ``context``, from the closed forms: deterministic, and quick.

    About a second for up to some hundred thousand symbols and a few kinds of groups.

    Two symbols get the universally optimal binary response, whatever the matrix, unless a code is named. Uniform,
    high-low, tiered and block contexts, unions, and matrices that promise the same, get their frame around the
    ``code`` named ("hadamard", "cyclic", "randomized"), or around the best that is known ("best"), with reports of
    at most ``max_bits``. Where several frames fit, the one of least worst-case risk is taken; a high-low context
    can be fitted to a guess of how much of the crowd is sensitive instead (``sensitive_share``).
    Raises ``NoClosedForm`` for other matrices and ``NothingToLearn`` for zeros.

    >>> mechanism_for(Uniform(4, 3.0))
    PlainResponse(Uniform(IntegerDomain(4, start=0), epsilon=3), 4 outputs)
    """
    if code != "best" and code not in CODES:
        raise InvalidContext(f"code must be one of best, {', '.join(CODES)}; found {code!r}.")
    wishes = _Wishes(code, max_bits, sensitive_share)
    wishes.demand_possible(context)
    candidates = _candidates(context, wishes)
    richest = next(candidates)
    if max_bits is None or richest.bits <= max_bits:
        return richest
    made = [richest, *candidates]
    fitting = [mechanism for mechanism in made if mechanism.bits <= max_bits]
    if not fitting:
        least = min(mechanism.bits for mechanism in made)
        raise InvalidContext(
            f"max_bits must be at least {least} for this context; found {max_bits}."
        )
    return min(fitting, key=lambda mechanism: _risk(mechanism, sensitive_share))


@dataclass(frozen=True)
class _Wishes:
    """What the caller of ``mechanism_for`` asked for."""

    code: str
    max_bits: int | None
    sensitive_share: float | None

    def demand_possible(self, context: Context) -> None:
        """Refuse wishes that mean nothing."""
        bits, share = self.max_bits, self.sensitive_share
        if bits is not None and (isinstance(bits, bool) or not isinstance(bits, int) or bits < 0):
            raise InvalidContext(f"max_bits must be a whole number of bits; found {bits!r}.")
        if share is not None and not (isinstance(share, int | float) and 0 <= share <= 1):
            raise InvalidContext(f"sensitive_share must lie between 0 and 1; found {share!r}.")
        if 0 < context.exact_smallest < _SMALLEST:
            raise NothingToLearn(
                f"ε = {float(context.exact_smallest):g} cannot be told from 0 in floats. Use a larger ε."
            )

    @property
    def fitted(self) -> bool:
        """Whether codes are fitted to the frame; a code that was named is taken as it is."""
        return self.code in ("best", "cyclic")


def _candidates(context: Context, wishes: _Wishes) -> Iterator[Mechanism]:
    """The named code; or the best ones, with fewer and fewer bits to spare, and last randomized response."""
    if context.size == 2 and wishes.code == "best" and wishes.sensitive_share is None:
        yield BinaryResponse(context)
        return
    structured = recognise(context)
    if wishes.sensitive_share is not None and not isinstance(structured, HighLow):
        raise ContextMismatch(
            "sensitive_share is a guess for high-low contexts; this context is of another kind."
        )
    if not wishes.fitted:
        yield _framed(structured, CODES[wishes.code], wishes)
        return
    for extra_bits in range(EXTRA_BITS, -1, -1):
        yield _framed(structured, BestCode(extra_bits), wishes)
    yield _framed(structured, RandomizedCode, wishes)


def _framed(context: Structured, family: CodeFamily, wishes: _Wishes) -> Mechanism:
    """The frame for a context."""
    if isinstance(context, Uniform):
        return PlainResponse(context, family)
    if isinstance(context, ContextUnion):
        return _union(context, family, wishes)
    if isinstance(context, Blocks) and context.exact_across == np.inf:
        return BlockResponse(context, family)
    if isinstance(context, HighLow):
        return _high_low(context, family, wishes)
    assert isinstance(context, GroupedContext)  # noqa: S101 - for the type checker
    found = list(_grouped(context, family))
    fitting = [each for each in found if wishes.max_bits is None or each.bits <= wishes.max_bits]
    return min(fitting or found, key=lambda mechanism: _risk(mechanism, None))


def _union(context: ContextUnion, family: CodeFamily, wishes: _Wishes) -> Mechanism:
    parts = [
        BinaryResponse(part)
        if part.size == 2 and wishes.code == "best"
        else _framed(recognise(part), family, wishes)
        for part in context.parts
    ]
    return UnionResponse(context.with_parts([part.context for part in parts]), parts)


def _high_low(context: HighLow, family: CodeFamily, wishes: _Wishes) -> Mechanism:
    if wishes.fitted and context.sensitive.size == 1:
        return HighLowResponse(
            context, RandomizedCode
        )  # a single sensitive symbol needs no code: this is Mangat's
    candidates = [HighLowResponse(context, family)]
    if (
        isinstance(family, BestCode)
        and context.sensitive.size > 1
        and isinstance(context.exact_inside, Fraction)
    ):
        fitted = frame_families(context.groups, family.extra_bits, wishes.sensitive_share)[0]
        candidates.append(HighLowResponse(context, fitted))
    return min(candidates, key=lambda mechanism: _risk(mechanism, wishes.sensitive_share))


def _risk(mechanism: Mechanism, sensitive_share: float | None) -> float:
    context = mechanism.context
    if (
        sensitive_share is None
        or not isinstance(context, HighLow)
        or context.sensitive.size == context.size
    ):
        # Rounded, so that the last digits of a transform never choose between frames that are equally good.
        return float(f"{mechanism.scores.worst_risk():.9g}")
    p: Floats = np.full(
        context.size, (1 - sensitive_share) / (context.size - context.sensitive.size)
    )
    p[context.sensitive] = sensitive_share / max(context.sensitive.size, 1)
    return mechanism.scores.risk(p / p.sum())


def _grouped(context: GroupedContext, family: CodeFamily) -> Iterator[Mechanism]:
    """The frame of groups, the composition of two answers, and a plain response to the least promise."""
    families = (
        frame_families(context.groups, family.extra_bits)
        if isinstance(family, BestCode)
        else family
    )
    # A promise across may be too strong for the frame; then the others remain.
    with suppress(NothingToLearn):
        yield GroupResponse(context, families)
    if isinstance(context, Blocks) and _fits_product(context):
        yield ProductResponse(context, family)
    smallest = context.exact_smallest
    if smallest < np.inf:
        yield PlainResponse(Uniform(context.domain, smallest), family)


def _fits_product(context: Blocks) -> bool:
    inside = [
        epsilon
        for epsilon, size in zip(context.exact_epsilons, context.sizes.tolist(), strict=True)
        if size > 1
    ]
    outputs = (context.size << EXTRA_BITS) * (context.sizes.size << EXTRA_BITS)
    return (
        bool(inside)
        and min(inside) < context.exact_across
        and context.size * outputs <= _LARGEST_PRODUCT
    )
