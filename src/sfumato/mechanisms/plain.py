"""Plain response: one code over the whole domain, for classical local differential privacy."""

from typing import ClassVar

import numpy as np

from sfumato.codes import CodeFamily, HadamardCode
from sfumato.contexts import Uniform
from sfumato.errors import ContextMismatch
from sfumato.mechanisms.blocks import BlockResponse

__all__ = ["PlainResponse"]


class PlainResponse(BlockResponse):
    """A code over the whole domain: the block-structured response of a single block.

    With ``HadamardCode`` it is Hadamard response, with ``RandomizedCode`` k-ary randomized response::

        Q(y|x) = e/Z  if y ∈ S_x,   1/Z  otherwise,   Z = r e + K − r

    Guarantees: for any x, x2, y the log-ratio is at most ε; every row sums to 1; one symbol, or ε = inf,
    is sent as it is.
    Cost per report: one word. Error: that of the code. Reference: Acharya, Sun, Zhang (2019).
    Proof: docs/proofs/plain.md.

    >>> mechanism = PlainResponse(Uniform(3, 1.0))
    >>> mechanism.matrix().round(3)
    array([[0.366, 0.134, 0.366, 0.134],
           [0.366, 0.366, 0.134, 0.134],
           [0.366, 0.134, 0.134, 0.366]])
    """

    kind: ClassVar[str] = "plain"

    def __init__(
        self, context: Uniform, code: CodeFamily = HadamardCode, *, word_bits: int = 64
    ) -> None:
        if not isinstance(context, Uniform):
            raise ContextMismatch(
                "a plain response keeps a Uniform context; mechanism_for picks the frame that fits."
            )
        k = context.size
        one_block = np.zeros(k, dtype=np.int64)
        self._frame(
            context, one_block, np.arange(k), np.array([k]), [context.exact_inside], code, word_bits
        )
