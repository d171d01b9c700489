"""High-low response: a code for the sensitive symbols, for which the others cover."""

from typing import ClassVar, Self

import numpy as np

from sfumato.codes import ClearCode, Code, CodeFamily, HadamardCode, RecordedCodes
from sfumato.contexts import Context
from sfumato.errors import ContextMismatch, InvalidSurvey
from sfumato.foundation.canonical import Fields, Json, require_fields
from sfumato.mechanisms.group_levels import GroupLevels
from sfumato.mechanisms.groups import GroupResponse
from sfumato.mechanisms.mechanism import Mechanism

__all__ = ["HighLowResponse"]


class HighLowResponse(GroupResponse):
    """Sensitive symbols answer through a code; the others answer in clear, or cover for them.

    With the code's K outputs, sets S_x of r outputs, ``Z = r e + K − r`` and ``β = r(e−1)/Z``::

        x sensitive:      Q(y|x) = e/Z  if y ∈ S_x,   1/Z  otherwise,   y < K
        x not sensitive:  Q(y|x) = 1/Z  for y < K,    β  on x's own report,   0 elsewhere

    (Hadamard: ``2e/(K(e+1))``, ``2/(K(e+1))`` and ``β = (e−1)/(e+1)``.) Reports 0..K−1 are the
    code's. Then comes one for each symbol that is not sensitive, in domain order.

    Guarantees: for sensitive x, any x2 and any y the log-ratio is at most ε; every row sums to 1;
    without sensitive symbols it is the identity, with only sensitive ones it is the plain
    response; at most 2k outputs with the Hadamard code.
    Cost per report: one word. Error (Hadamard, the paper's own estimator): for sensitive x
    ``n·Var = c²(p_A + 2p_B/(e+1)) − p_x²``, for the others ``c p_x − p_x²``, ``c = (e+1)/(e−1)``.
    It is the group response of one group with ε_in = ε_out.
    Reference: Acharya et al. (2020), section 5.1, with row x+1 of the Hadamard matrix.
    Proof: docs/proofs/high-low.md.

    >>> from sfumato.contexts import HighLow
    >>> mechanism = HighLowResponse(HighLow(["park", "clinic"], ["clinic"], epsilon=1))
    >>> mechanism.matrix().round(3)
    array([[0.269, 0.269, 0.462],
           [0.731, 0.269, 0.   ]])
    """

    kind: ClassVar[str] = "high-low"

    def __init__(
        self, context: Context, code: CodeFamily = HadamardCode, *, word_bits: int = 64
    ) -> None:
        high_low = context.as_high_low
        if high_low is None:
            raise ContextMismatch(
                "a high-low response keeps a HighLow context; "
                "mechanism_for picks the frame that fits."
            )
        self._families = code
        s = high_low.sensitive.size
        epsilon = high_low.exact_inside
        if s == 0 or isinstance(epsilon, float):
            self._code: Code = ClearCode(s, word_bits=word_bits)
        else:
            self._code = code(s, epsilon, word_bits)
        # The code's own odds fit: its other outputs are exactly as likely as the cover.
        high = self._code.high
        low = self._code.low
        codes = [self._code] if s else []
        levels = [GroupLevels(high, low, low)] if s else []
        Mechanism.__init__(self, context)
        group_of = np.where(high_low.is_sensitive, 0, -1)
        clear = self._code.raised * (high - low)
        self._set_integers(group_of, codes, levels, [0] * len(codes), clear, word_bits)

    def record(self) -> Json:
        """Return the integers of the channel as plain data."""
        return {"kind": self.kind, "codes": [self._code.record()]}

    @classmethod
    def of_record(cls, record: Fields, context: Context) -> Self:
        """Return the mechanism with the integers of its record."""
        fields = require_fields(record, "mechanism", ("kind", "codes"))
        high_low = context.as_high_low
        if high_low is None:
            raise InvalidSurvey("a mechanism of kind 'high-low' must keep a high-low context.")
        if not fields["codes"]:
            raise InvalidSurvey("mechanism.codes must contain at least one code.")
        codes = RecordedCodes()
        codes.read(fields["codes"][0], int(high_low.sensitive.size), high_low.exact_inside)
        if not codes.fit:
            raise InvalidSurvey("mechanism of kind 'high-low' does not fit the context.")
        return cls(context, codes, word_bits=codes.word_bits)

    def _ideal_levels(self) -> tuple[float, list[tuple[float, float, float]]]:
        """The paper's formula."""
        high, low = self._code.ideal_levels()
        return self._code.raised * (high - low), [(high, low, low)] * len(self._codes)
