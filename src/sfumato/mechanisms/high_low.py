"""High-low response: a code for the sensitive symbols, in which the others take cover for them."""

from typing import ClassVar

import numpy as np

from sfumato.codes import ClearCode, Code, CodeFamily, HadamardCode
from sfumato.contexts import HighLow
from sfumato.errors import ContextMismatch
from sfumato.foundation.canonical import Json
from sfumato.mechanisms.group_levels import GroupLevels
from sfumato.mechanisms.groups import GroupResponse

__all__ = ["HighLowResponse"]


class HighLowResponse(GroupResponse):
    """Sensitive symbols answer through a code; the others answer in clear, or vanish in the code's range.

    With the code's K outputs, sets S_x of r outputs, ``Z = r e + K − r`` and ``β = r(e−1)/Z``::

        x sensitive:      Q(y|x) = e/Z  if y ∈ S_x,   1/Z  otherwise,   y < K
        x not sensitive:  Q(y|x) = 1/Z  for y < K,    β  on x's own report,   0 elsewhere

    (Hadamard: ``2e/(K(e+1))``, ``2/(K(e+1))`` and ``β = (e−1)/(e+1)``.) Reports 0..K−1 are the code's,
    then one for each symbol that is not sensitive, in domain order.

    Guarantees: for sensitive x, any x2 and any y the log-ratio is at most ε; every row sums to 1; without
    sensitive symbols it is the identity, with nothing else it is the plain response; at most 2k outputs
    with the Hadamard code.
    Cost per report: one word. Error (Hadamard, the paper's own estimator): for sensitive x
    ``n·Var = c²(p_A + 2p_B/(e+1)) − p_x²``, for the others ``c p_x − p_x²``, ``c = (e+1)/(e−1)``.
    It is the group response of one group with ε_in = ε_out.
    Reference: Acharya et al. (2020), section 5.1, with row x+1 of the Hadamard matrix.
    Proof: docs/proofs/high-low.md.

    >>> mechanism = HighLowResponse(HighLow(["park", "clinic"], ["clinic"], epsilon=1))
    >>> mechanism.matrix().round(3)
    array([[0.269, 0.269, 0.462],
           [0.731, 0.269, 0.   ]])
    """

    kind: ClassVar[str] = "high-low"

    def __init__(
        self, context: HighLow, code: CodeFamily = HadamardCode, *, word_bits: int = 64
    ) -> None:
        if not isinstance(context, HighLow):
            raise ContextMismatch(
                "a high-low response keeps a HighLow context; mechanism_for picks the frame that fits."
            )
        self._families = code
        s, epsilon = context.sensitive.size, context.exact_inside
        in_clear = s == 0 or isinstance(epsilon, float)
        self._code: Code = (
            ClearCode(s, word_bits=word_bits) if in_clear else code(s, epsilon, word_bits)
        )
        # The code's own odds fit: its other outputs are exactly as likely as the cover that everybody else takes.
        high, low = self._code.high, self._code.low
        codes, levels = ([self._code], [GroupLevels(high, low, low)]) if s else ([], [])
        group_of = np.where(context.is_sensitive, 0, -1)
        clear = self._code.raised * (high - low)
        self._frame(
            context, group_of, codes, levels, np.zeros(len(codes), dtype=np.int64), clear, word_bits
        )

    def record(self) -> Json:
        """The integers of the channel as plain data."""
        return {"kind": self.kind, "codes": [self._code.record()]}

    @property
    def _ideal(self) -> tuple[float, list[tuple[float, float, float]]]:
        """The paper's formula."""
        high, low = self._code.ideal_levels()
        return self._code.raised * (high - low), [(high, low, low)] * len(self._codes)
