"""Hadamard response, the code of Acharya et al. (2020): points are rows of a Hadamard matrix."""

from fractions import Fraction
from functools import lru_cache
from math import gcd
from typing import ClassVar, Self

import numpy as np

from sfumato.codes.code import Code
from sfumato.errors import InvalidContext, NothingToLearn
from sfumato.foundation.arrays import Booleans, Floats, PerPerson, Words
from sfumato.foundation.canonical import Fields
from sfumato.foundation.elementwise import as_bit, bit_count
from sfumato.randomness import Epsilon, TwoLevels, coin_threshold

__all__ = ["HadamardCode", "walsh_hadamard"]


class HadamardCode(Code):
    """``Q(y|x) = 2e/(K(e+1))`` where ``H_K(x+1, y) = +1``, and ``2/(K(e+1))`` elsewhere.

    Here e stands for e^ε, ``K`` is the smallest power of two above the number of points and
    ``H_K(i, y) = (−1)^popcount(i & y)``. Row 0 is all ones and is not used. Any two of the other
    rows agree in K/2 positions.
    Guarantee: odds of at most e^ε between any two points, for every output.
    Reference: Acharya, Sun, Zhang (2019); Acharya et al. (2020), sections 5.1 and 6.1, but always
    with row x+1.
    Cost per report: one word and about a dozen bit operations. Error: ``n·Var = c² − p_x²`` with
    ``c = (e+1)/(e−1)``, before the total correction.

    >>> code = HadamardCode(3, Fraction(1), word_bits=12)
    >>> code.outputs, code.raised, code.shared, code.high, code.low
    (4, 2, Fraction(1, 1), 1496, 552)
    """

    kind: ClassVar[str] = "hadamard"

    def __init__(self, points: int, epsilon: Epsilon, word_bits: int = 64) -> None:
        if points < 1 or not isinstance(epsilon, Fraction):
            raise InvalidContext(
                "Hadamard response needs at least one point and a finite ε. For infinite ε, use "
                "ClearCode."
            )
        self._log_outputs = points.bit_length()
        if self._log_outputs >= word_bits:
            raise NothingToLearn(f"{points} points do not fit in a word of {word_bits} bits.")
        # The low bits of a word are a uniform y; the high bits are the coin flip for its sign.
        coin_outcomes = 1 << (word_bits - self._log_outputs)
        self._set_integers(
            coin_outcomes, coin_threshold(coin_outcomes, epsilon), epsilon, word_bits
        )

    def _set_integers(
        self, coin_outcomes: int, threshold: int, epsilon: Epsilon, word_bits: int
    ) -> None:
        """Set the channel's integers: ``threshold`` of the coin outcomes give sign +1."""
        K = 1 << self._log_outputs
        self._threshold = threshold
        self.points = K - 1
        self.outputs = K
        self.raised = K // 2
        self.shared = Fraction(K, 4)
        # Two of the K draws can become y: y itself, and the one that differs in the flipped bit.
        levels = TwoLevels(2 * threshold, 2 * (coin_outcomes - threshold), 0)
        self._set_levels(levels, epsilon, word_bits)

    @classmethod
    def from_record(cls, record: Fields, epsilon: Epsilon) -> Self:
        """Return the code stored in a record."""
        fields, levels = cls._read_fields(record)
        outputs = fields["outputs"]
        word_bits = fields["word_bits"]
        code = cls.__new__(cls)
        code._log_outputs = outputs.bit_length() - 1
        coin_outcomes = 1 << max(word_bits - code._log_outputs, 0)
        code._set_integers(coin_outcomes, levels.high // 2, epsilon, word_bits)
        if code.outputs != outputs or levels != TwoLevels(code.high, code.low, code.leftover):
            raise InvalidContext(
                "a Hadamard code's number of outputs must be a power of two, and its counts must "
                "be even and add up to the number of words."
            )
        return code

    def output_at(self, point: PerPerson, index: PerPerson) -> PerPerson:
        """Return the output at each index: those with sign +1 in row x+1, then those with sign −1.

        Half of the outputs have each sign. The index sets all bits except the lowest set bit of
        x+1, which determines the sign.
        """
        row = point + 1
        half = self.outputs // 2
        lowest_bit = _lowest_set_bit(row)
        free_bits = index & (half - 1)
        y = ~(lowest_bit - 1)
        y &= free_bits
        y += free_bits  # shift the bits at and above the lowest set bit of x+1 to make room for it
        return _with_sign(y, row, lowest_bit, index >= half)

    def encode(self, point: PerPerson, word: PerPerson) -> PerPerson:
        """Return a uniform y, with one bit flipped if its sign in row x+1 differs from the coin.

        The flipped bit of y is the lowest set bit of x+1. Flipping it changes the parity of
        ``(x+1) & y``, and so the sign.
        """
        row = point + 1
        y = word & (self.outputs - 1)
        is_minus = word >= self._threshold << self._log_outputs
        return _with_sign(y, row, _lowest_set_bit(row), is_minus)

    def contains(self, point: Words | np.uint64, output: Words | np.uint64) -> Booleans:
        """Return whether ``H_K(x+1, y) = +1``: x+1 and y have an even number of bits in common."""
        return (np.bitwise_count((point + np.uint64(1)) & output) & np.uint8(1)) == 0

    def gather(self, weights: Floats) -> Floats:
        """Return the sums, from one transform: ``[y ∈ S_x] = (1 + H(x+1, y))/2``."""
        transform = walsh_hadamard(weights)
        return (transform[..., :1] + transform[..., 1:]) / 2

    def spread(self, weights: Floats) -> Floats:
        """Return the sums, from the same transform with a weight of 0 for row 0."""
        rows = np.concatenate([np.zeros((*weights.shape[:-1], 1)), weights], axis=-1)
        return (weights.sum(axis=-1, keepdims=True) + walsh_hadamard(rows)) / 2


def _lowest_set_bit(row: PerPerson) -> PerPerson:
    bit = -row
    bit &= row
    return bit


def _with_sign(
    y: PerPerson, row: PerPerson, lowest_bit: PerPerson, is_minus: bool | Booleans
) -> PerPerson:
    """Return y with the row's lowest set bit flipped if its sign is wrong.

    The arrays ``y`` and ``lowest_bit`` are overwritten.
    """
    flip = bit_count(row & y)  # its parity gives the sign of y
    flip ^= as_bit(is_minus)
    flip &= 1
    lowest_bit *= flip
    y ^= lowest_bit
    return y


def walsh_hadamard(values: Floats) -> Floats:
    """Return ``Σ_y (−1)^popcount(i & y) · values[…, y]`` for every i, along the last axis.

    This takes O(K log K) time. ``H_K`` is a Kronecker power of ``H_2``. It is applied six factors
    at a time, as products with ``H_64``, which needs fewer passes over memory than one factor at a
    time. BLAS does not split 64 × 64 products across threads; doing so would cost more time than it
    saves.

    >>> walsh_hadamard(np.array([1.0, 2.0, 3.0, 4.0]))
    array([10., -2., -4.,  0.])
    """
    K = values.shape[-1]
    result = np.asarray(values, dtype=np.float64)
    stride = min(64, K)  # the length of the blocks that are already transformed
    row_count = gcd(64, result.size // stride)
    result = np.matmul(result.reshape(-1, row_count, stride), _hadamard_matrix(stride))
    while stride < K:
        factor = min(64, K // stride)
        transformed = np.empty((result.size // (factor * stride), factor, stride // 64, 64))
        blocks = result.reshape(transformed.shape).swapaxes(1, 2)
        np.matmul(_hadamard_matrix(factor), blocks, out=transformed.swapaxes(1, 2))
        result = transformed
        stride *= factor
    return result.reshape(values.shape)


@lru_cache(maxsize=8)
def _hadamard_matrix(size: int) -> Floats:
    """Return Sylvester's Hadamard matrix."""
    index = np.arange(size, dtype=np.uint64)
    parity = np.bitwise_count(index[:, None] & index[None, :]) & np.uint8(1)
    return 1.0 - 2.0 * parity
