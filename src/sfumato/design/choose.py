"""The shelf: closed-form mechanisms, chosen by exact risk."""

from collections.abc import Mapping

from sfumato.codes import CodeFamily, HadamardCode, RandomizedCode
from sfumato.contexts import Blocks, Context, HighLow, Uniform
from sfumato.design.recognise import recognise
from sfumato.errors import InvalidContext
from sfumato.mechanisms import BinaryResponse, BlockResponse, HighLowResponse, Mechanism, PlainResponse

__all__ = ["CODES", "mechanism_for"]

CODES: Mapping[str, CodeFamily] = {"hadamard": HadamardCode, "randomized": RandomizedCode}
"""The codes by name."""


def mechanism_for(context: Context, *, code: str = "best", max_bits: int | None = None) -> Mechanism:
    """A mechanism that keeps ``context``, from the closed forms: deterministic, in well under a second.

    Two symbols get the universally optimal binary response, whatever the matrix, unless a code is named.
    Uniform, high-low and block contexts, and matrices that promise the same, get their frame around the
    ``code`` named ("hadamard", "randomized"), or around the one of least worst-case risk ("best") whose
    reports fit in ``max_bits``. Raises ``NoClosedForm`` for other matrices and ``NothingToLearn`` for zeros.

    >>> mechanism_for(Uniform(4, 3.0))
    PlainResponse(Uniform(IntegerDomain(4, start=0), epsilon=3), 4 outputs)
    """
    if code != "best" and code not in CODES:
        raise InvalidContext(f"code must be one of best, {', '.join(CODES)}; found {code!r}.")
    candidates = _candidates(context, code)
    fitting = [mechanism for mechanism in candidates if max_bits is None or mechanism.bits <= max_bits]
    if not fitting:
        least = min(mechanism.bits for mechanism in candidates)
        raise InvalidContext(f"max_bits must be at least {least} for this context; found {max_bits}.")
    return min(fitting, key=lambda mechanism: (mechanism.worst_risk(), mechanism.outputs))


def _candidates(context: Context, code: str) -> list[Mechanism]:
    if context.size == 2 and code == "best":
        return [BinaryResponse(context)]
    structured = recognise(context)
    families = CODES.values() if code == "best" else [CODES[code]]
    return [_framed(structured, family) for family in families]


def _framed(context: Uniform | HighLow | Blocks, family: CodeFamily) -> Mechanism:
    if isinstance(context, Uniform):
        return PlainResponse(context, family)
    if isinstance(context, HighLow):
        return HighLowResponse(context, family)
    return BlockResponse(context, family)
