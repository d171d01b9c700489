"""Choose among closed-form mechanisms by their exact risk."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from math import inf, isfinite
from typing import Literal

import numpy as np

from sfumato.codes import EXTRA_BITS, BestCode, CodeFamily, HadamardCode, RandomizedCode
from sfumato.contexts import Blocks, Context, ContextUnion, GroupedContext, HighLow, Uniform
from sfumato.designer.frames import frame_families
from sfumato.designer.ordinary import choose_for_ordinary_crowds
from sfumato.designer.recognise import recognise
from sfumato.errors import ContextMismatch, InvalidArgument, NoClosedForm, NothingToLearn
from sfumato.foundation.correct_call import shows_call
from sfumato.foundation.numpy_values import read_number
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

__all__ = ["CODES", "CodeName", "mechanism_for"]

CodeName = Literal["best", "hadamard", "cyclic", "randomized"]
"""The names that ``mechanism_for`` accepts as its code."""

CODES: Mapping[str, CodeFamily] = {
    "hadamard": HadamardCode,
    "cyclic": BestCode(),
    "randomized": RandomizedCode,
}
"""The code families, by name."""

_MIN_EPSILON = 1e-15  # below this, e^ε rounds to 1 in floating point
_MAX_PRODUCT_ENTRIES = 2**20  # in the channel; more would take over a second to build and certify


@shows_call("sf.mechanism_for(context)")
def mechanism_for(
    context: Context,
    *,
    code: CodeName = "best",
    max_bits: int | None = None,
    sensitive_share: float | None = None,
    worst_case_margin: float = 0.0,
) -> Mechanism:
    """Return a closed-form mechanism that satisfies ``context``. The choice is deterministic.

    This takes about a second for up to a few hundred thousand symbols and a few kinds of groups.

    For two symbols, the result is the universally optimal binary response, whatever the matrix,
    unless you name a code or pass ``sensitive_share``. For uniform, high-low, tiered and block
    contexts, for unions, and for equivalent matrices, it is a frame, that is, a mechanism for that
    structure. The frame is built around the ``code`` you name ("hadamard", "cyclic", "randomized")
    or the best known code ("best"). Reports have at most ``max_bits`` bits. If several frames fit,
    the one with the smallest worst-case risk is chosen. For a high-low context, you can instead
    minimise the risk at ``sensitive_share``, a guess at the share of people with a sensitive value.

    Without such a guess, ``worst_case_margin`` lets the worst-case risk of a high-low mechanism
    exceed the smallest one, by 0.1 = 10%, say. Among the mechanisms that it allows, the one with
    the smallest error for a crowd spread evenly over all symbols is chosen. It does not affect
    other contexts, and cannot be combined with a named ``code``. Surveys of edition 2 use 0.1.

    Raise ``NoClosedForm`` for other matrices, ``NothingToLearn`` if some promise is 0 or too close
    to 0, and ``InvalidArgument`` if no mechanism has reports as short as ``max_bits``.

    >>> mechanism_for(Uniform(4, 3.0))
    PlainResponse(Uniform(IntegerDomain(4, start=0), epsilon=3), 4 outputs)
    """
    if not isinstance(context, Context):
        raise InvalidArgument(
            f"mechanism_for needs a context; got {type(context).__name__}. Pass e.g. "
            "sf.Uniform(labels, 1), or sf.HighLow(labels, sensitive=labels[:1], epsilon=1). A "
            "survey already has a mechanism: survey.mechanism."
        )
    if code != "best" and code not in CODES:
        raise InvalidArgument(f"code must be one of best, {', '.join(CODES)}; got {code!r}.")
    options = _Options.parse(code, max_bits, sensitive_share, worst_case_margin)
    if 0 < context.exact_minimum < _MIN_EPSILON:
        raise NothingToLearn(
            f"ε = {float(context.exact_minimum):g} is indistinguishable from 0 in floating point. "
            "Use a larger ε."
        )
    minimax = _choose(context, options)
    high_low = minimax.context.as_high_low
    if options.worst_case_margin == 0 or high_low is None or not _has_choice_of_codes(high_low):
        return minimax
    return choose_for_ordinary_crowds(high_low, minimax, options.worst_case_margin, max_bits)


def _choose(context: Context, options: "_Options") -> Mechanism:
    """Return the mechanism with the smallest risk."""
    max_bits = options.max_bits
    candidates = _candidates(context, options)
    first_choice = next(candidates)
    if max_bits is None or first_choice.bits <= max_bits:
        return first_choice
    mechanisms = [first_choice, *candidates]
    allowed_mechanisms = [mechanism for mechanism in mechanisms if mechanism.bits <= max_bits]
    if not allowed_mechanisms:
        fewest_bits = min(mechanism.bits for mechanism in mechanisms)
        raise InvalidArgument(
            f"max_bits must be at least {fewest_bits} for this context; got {max_bits}."
        )
    share = options.sensitive_share
    return min(allowed_mechanisms, key=lambda mechanism: _risk(mechanism, share))


def _has_choice_of_codes(context: HighLow) -> bool:
    """Return whether there is more than one code for the sensitive symbols, and a free symbol."""
    has_free_symbols = context.sensitive.size < context.size
    has_finite_epsilon = isinstance(context.exact_inside, Fraction)
    return context.sensitive.size > 1 and has_free_symbols and has_finite_epsilon


@dataclass(frozen=True)
class _Options:
    """The arguments of ``mechanism_for``."""

    code: str
    max_bits: int | None
    sensitive_share: float | None
    worst_case_margin: float

    @classmethod
    def parse(
        cls, code: str, max_bits: int | None, sensitive_share: object, worst_case_margin: object
    ) -> "_Options":
        """Return the options; raise ``InvalidArgument`` if one is invalid."""
        bits = max_bits
        if bits is not None and (isinstance(bits, bool) or not isinstance(bits, int) or bits < 0):
            raise InvalidArgument(f"max_bits must be a non-negative integer; got {bits!r}.")
        share = read_number(sensitive_share)
        if sensitive_share is not None and (share is None or not 0 <= share <= 1):
            raise InvalidArgument(
                f"sensitive_share must be a number between 0 and 1; got {sensitive_share!r}."
            )
        margin = read_number(worst_case_margin)
        if margin is None or not isfinite(margin) or margin < 0:
            raise InvalidArgument(
                f"worst_case_margin must be a number of at least 0; got {worst_case_margin!r}."
            )
        if margin > 0 and (code != "best" or share is not None):
            raise InvalidArgument(
                "worst_case_margin chooses among all codes, for an unknown share of sensitive "
                "values. Drop it, or drop code and sensitive_share."
            )
        return cls(code, bits, share, margin)

    @property
    def uses_fitted_codes(self) -> bool:
        """Whether codes are fitted to the frame, rather than used as is."""
        return self.code in ("best", "cyclic")


def _candidates(context: Context, options: _Options) -> Iterator[Mechanism]:
    """Yield the mechanisms to choose from, the first choice first.

    With fitted codes, each mechanism may use fewer extra bits than the one before, and the last one
    uses randomized response. Otherwise, and for a binary response, there is only one mechanism.
    """
    if context.size == 2 and options.code == "best" and options.sensitive_share is None:
        yield BinaryResponse(context)
        return
    structured_context = recognise(context)
    if options.sensitive_share is not None and structured_context.as_high_low is None:
        raise ContextMismatch(
            "sensitive_share applies only to high-low contexts, and this is not one."
        )
    if not options.uses_fitted_codes:
        yield _frame(structured_context, CODES[options.code], options)
        return
    for extra_bits in range(EXTRA_BITS, -1, -1):
        yield _frame(structured_context, BestCode(extra_bits), options)
    yield _frame(structured_context, RandomizedCode, options)


def _risk(mechanism: Mechanism, sensitive_share: float | None) -> float:
    """Return the risk to minimise: the worst risk, or the risk at ``sensitive_share``."""
    context = mechanism.context.as_high_low
    if sensitive_share is None or context is None or len(context.inside) < 2:
        # Round, so floating-point noise never decides between equal frames.
        return float(f"{mechanism.scores.worst_risk():.9g}")
    sensitive_count = context.sensitive.size
    free_count = context.size - sensitive_count
    p_sensitive = sensitive_share / sensitive_count
    p_free = (1 - sensitive_share) / free_count
    p = np.where(context.is_sensitive, p_sensitive, p_free)
    return mechanism.scores.risk(p / p.sum())


# --- frames --------------------------------------------------------------------------------------


def _frame(context: Context, family: CodeFamily, options: _Options) -> Mechanism:
    """Return the best frame for a structured context, with codes from ``family``."""
    if context.as_union is not None:
        return _union_frame(context.as_union, family, options)
    if context.uniform_epsilon is not None:
        return PlainResponse(context, family)
    if context.as_high_low is not None:
        return _high_low_frame(context.as_high_low, family, options)
    blocks = context.as_blocks
    if blocks is not None and blocks.may_reveal_groups:
        return BlockResponse(blocks, family)
    groups = context.groups
    if groups is None:
        raise NoClosedForm(f"no frame is known for {type(context).__name__}.")
    candidates = _group_frames(groups, family)
    if blocks is not None and _should_try_product(blocks):
        candidates.append(ProductResponse(blocks, family))
    return _choose_best([*candidates, *_uniform_frames(groups, family)], options)


def _union_frame(context: ContextUnion, family: CodeFamily, options: _Options) -> Mechanism:
    parts: list[Mechanism] = []
    for part in context.parts:
        if part.size == 2 and options.code == "best":
            parts.append(BinaryResponse(part))
        else:
            parts.append(_frame(recognise(part), family, options))
    return UnionResponse(context.with_parts([part.context for part in parts]), parts)


def _high_low_frame(context: HighLow, family: CodeFamily, options: _Options) -> Mechanism:
    sensitive_count = context.sensitive.size
    if options.uses_fitted_codes and sensitive_count == 1:
        # For a single sensitive symbol, this is Mangat's response.
        return HighLowResponse(context, RandomizedCode)
    candidates = [HighLowResponse(context, family)]
    has_finite_epsilon = isinstance(context.exact_inside, Fraction)
    if isinstance(family, BestCode) and sensitive_count > 1 and has_finite_epsilon:
        fitted_family = frame_families(context, family.extra_bits, options.sensitive_share)[0]
        candidates.append(HighLowResponse(context, fitted_family))
    return min(candidates, key=lambda mechanism: _risk(mechanism, options.sensitive_share))


def _group_frames(context: GroupedContext, family: CodeFamily) -> list[Mechanism]:
    """Return a list with the group frame, or an empty list if a promise is too strong for it."""
    families: CodeFamily | list[CodeFamily] = family
    if isinstance(family, BestCode):
        families = frame_families(context, family.extra_bits)
    with suppress(NothingToLearn):
        return [GroupResponse(context, families)]
    return []


def _uniform_frames(context: Context, family: CodeFamily) -> list[Mechanism]:
    """Return a list with the plain response for the smallest ε, or an empty list if it is inf."""
    epsilon = context.exact_minimum
    if epsilon == inf:
        return []
    return [PlainResponse(Uniform(context.domain, epsilon), family)]


def _choose_best(candidates: list[Mechanism], options: _Options) -> Mechanism:
    """Return the candidate with the smallest risk, within ``max_bits`` bits if possible."""
    allowed_mechanisms = []
    for mechanism in candidates:
        if options.max_bits is None or mechanism.bits <= options.max_bits:
            allowed_mechanisms.append(mechanism)
    return min(allowed_mechanisms or candidates, key=lambda mechanism: _risk(mechanism, None))


def _should_try_product(context: Blocks) -> bool:
    """Return whether a product response is small enough, and some block's ε is below ``across``."""
    inside_epsilons = [context.inside[b] for b in np.flatnonzero(context.sizes > 1).tolist()]
    max_outputs = (context.size << EXTRA_BITS) * (context.sizes.size << EXTRA_BITS)
    is_small = context.size * max_outputs <= _MAX_PRODUCT_ENTRIES
    return is_small and min(inside_epsilons, default=inf) < context.exact_across
