"""Choose the code of a high-low response for ordinary crowds, within a limit on the worst case.

The code with the smallest worst-case risk prepares for a crowd in which everybody has a sensitive
symbol. In most crowds, few people do. They are served better by codes with larger sets, because
these let more people report a harmless symbol in clear.

An *ordinary crowd* is spread evenly over all symbols, so the sensitive symbols have their share of
the domain. Its error is the expected total variation of the unbiased estimate. Among the codes with
a worst-case risk of at most ``1 + margin`` times the smallest, choose the one with the smallest
error for that crowd.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import sqrt

import numpy as np

from sfumato.codes import (
    EXTRA_BITS,
    CodeFamily,
    CyclicDesign,
    HadamardCode,
    RandomizedCode,
    SingerDesign,
    max_outputs,
    singer_designs,
    singer_set,
)
from sfumato.contexts import HighLow
from sfumato.designer.frames import (
    MAX_SEARCHED_SIZE,
    FrameGroup,
    flattest_design,
    frame_risks,
    sizes_to_try,
)
from sfumato.mechanisms import HighLowResponse, Mechanism

__all__ = ["choose_for_ordinary_crowds", "ordinary_error"]

_MAX_BUILDS = 4  # codes to build; the first one is nearly always within the limit
_MIN_GAIN = 1e-9  # relative, so that floating-point noise never decides


def ordinary_error(mechanism: Mechanism) -> float:
    """Return the sum of the standard deviations of the unbiased estimate at the even crowd.

    Estimates are nearly normal, so with n people the expected total variation is ``1/√(2πn)`` times
    this sum.

    >>> from sfumato.codes import RandomizedCode
    >>> ordinary_error(HighLowResponse(HighLow(4, [0], 1), RandomizedCode)) < 3
    True
    """
    p = np.full(mechanism.inputs, 1 / mechanism.inputs)
    return float(np.sqrt(np.maximum(mechanism.scores.variances(p, 1), 0.0)).sum())


def choose_for_ordinary_crowds(
    context: HighLow, minimax: Mechanism, margin: float, max_bits: int | None
) -> Mechanism:
    """Return the mechanism with the smallest error for the ordinary crowd.

    Its worst-case risk is at most ``1 + margin`` times that of ``minimax``, and its reports have at
    most ``max_bits`` bits. If no code is better than that of ``minimax``, return ``minimax``.
    """
    risk_limit = (1 + margin) * minimax.scores.worst_risk()
    codes = [code for code in _codes_to_try(context) if code.worst_risk <= risk_limit]
    codes.sort(key=lambda code: (round(code.error, 9), code.outputs))
    error_limit = (1 - _MIN_GAIN) * ordinary_error(minimax)
    for code in codes[:_MAX_BUILDS]:
        family = code.build()
        if family is None:
            continue
        mechanism = HighLowResponse(context, family)
        is_short = max_bits is None or mechanism.bits <= max_bits
        # The forecast assumed a flat design. The exact numbers decide.
        is_safe = mechanism.scores.worst_risk() <= risk_limit
        if is_short and is_safe and ordinary_error(mechanism) < error_limit:
            return mechanism
    return minimax


# --- the codes to choose from ---------------------------------------------------------------------


@dataclass(frozen=True)
class _CodeForecast:
    """A code that is not built yet, with its worst-case risk and its error if it is flat.

    ``build`` returns its family, or ``None`` if there is no such code.
    """

    worst_risk: float
    error: float
    outputs: int
    build: Callable[[], CodeFamily | None]


def _codes_to_try(context: HighLow) -> Iterator[_CodeForecast]:
    """Yield the paper's code, randomized response, searched designs and Singer designs."""
    s = context.sensitive.size
    output_limit = max_outputs(s, EXTRA_BITS)
    hadamard_size = 1 << s.bit_length()
    yield _forecast(context, 1 / 2, 1 / 4, hadamard_size, lambda: HadamardCode)
    yield _forecast(context, 1 / s, 0.0, s, lambda: RandomizedCode)
    if s <= MAX_SEARCHED_SIZE:
        for w in sizes_to_try(s // 2):
            if w > 1:
                l = w * (w - 1) / (s * (s - 1))  # noqa: E741 - λ/b
                search = partial(_search_design, s, w, output_limit)
                yield _forecast(context, w / s, l, s, search)
    for design in singer_designs(s, output_limit):
        K = design.points
        build = partial(_singer_family, design)
        yield _forecast(context, design.raised / K, design.shared / K, K, build)


def _search_design(size: int, set_size: int, output_limit: int) -> CodeFamily | None:
    result = flattest_design(size, set_size, output_limit)
    return None if result is None else result[1]


def _singer_family(design: SingerDesign) -> CodeFamily:
    return CyclicDesign.from_base_blocks(design.points, singer_set(design))


def _forecast(
    context: HighLow,
    f: float,
    l: float,  # noqa: E741 - λ/b
    outputs: int,
    build: Callable[[], CodeFamily | None],
) -> _CodeForecast:
    """Return the forecast for a code with ``f = r/b`` and ``l = λ/b``."""
    k = context.size
    s = context.sensitive.size
    epsilon = float(context.exact_inside)
    group = FrameGroup(s, epsilon, epsilon, f, l)
    (sensitive_risk,), free_risk = frame_risks([group])
    beta = 1 / (1 + 1 / group.gain)
    # The largest risks of crowds with only sensitive, and only free, symbols.
    worst_risk = max(sensitive_risk - 1 / s, free_risk - 1 / (k - s))
    # People with a free symbol add 1/β to the squared scores of free symbols, and the rest of R_F
    # to those of sensitive ones.
    p = 1 / k
    sensitive_moment = p * sensitive_risk + (k - s) / s * p * (free_risk - 1 / beta)
    sensitive_deviation = sqrt(max(sensitive_moment - p**2, 0.0))
    free_deviation = sqrt(max(p / beta - p**2, 0.0))
    error = s * sensitive_deviation + (k - s) * free_deviation
    return _CodeForecast(worst_risk, error, outputs, build)
