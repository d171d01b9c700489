"""Product response: one answer about the block, another about the symbol, for two small promises."""

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from sfumato.codes import Code, CodeFamily, RandomizedCode
from sfumato.contexts import Blocks
from sfumato.errors import ContextMismatch, InvalidContext
from sfumato.foundation.arrays import Floats, Symbols, Words
from sfumato.foundation.canonical import Json
from sfumato.mechanisms.dense import TabledMechanism
from sfumato.mechanisms.mechanism import LARGEST_TABLE
from sfumato.mechanisms.scores import corrected_scores, exact_group_scores, leftover_share

__all__ = ["ProductResponse"]

_SHORT = 10**6  # denominators of weights, which may be anything: short ones keep exact scores short


class ProductResponse(TabledMechanism):
    """``Q(J, T|x) = Q1(J|block of x) · Q2(T|x)``: two levels of blocks by composition (Proposition 2 of the paper).

    Q1 is a code on the blocks at ``ε_across − ε_in``, Q2 one on all symbols at ``ε_in``, the least ε inside a block.
    Report ``J · K2 + T`` stands for the pair (J, T).

    Guarantees: two symbols of a block share Q1, so the log-ratio is at most ε_in; any others at most
    ``(ε_across − ε_in) + ε_in``; every row sums to 1.
    Cost per report: two words. Error: below the group response's where both promises are small (ε_in < 1).
    Estimates: each answer about the symbol, weighted by what the answer about the block says of it; block totals mix
    both answers; then totals are corrected, in each block and to 1.
    Reference: Acharya et al. (2020), Proposition 2.
    Proof: docs/proofs/product.md.

    >>> mechanism = ProductResponse(Blocks([0, 0, 0, 1, 1, 1], 0.5, across=1))
    >>> mechanism.outputs, mechanism.words
    (12, 2)
    """

    kind: ClassVar[str] = "product"
    words = 2

    def __init__(
        self, context: Blocks, code: CodeFamily = RandomizedCode, *, word_bits: int = 64
    ) -> None:
        about_block, about_symbol = self.promised(context)
        super().__init__(context)
        self._family, self.word_bits = code, word_bits
        self._outer = code(int(context.sizes.size), about_block, word_bits)
        self._inner = code(context.size, about_symbol, word_bits)
        self.outputs = self._outer.outputs * self._inner.outputs
        if self.outputs * self.inputs > LARGEST_TABLE:
            raise InvalidContext(
                f"a product response is written out, up to {LARGEST_TABLE} entries; this one would have "
                f"{self.inputs} × {self.outputs}. Use a GroupResponse."
            )
        self._block_of = context.block_of
        self._members = [np.flatnonzero(context.block_of == j) for j in range(context.sizes.size)]

    @staticmethod
    def promised(context: Blocks) -> tuple[Fraction, Fraction]:
        """The ε of the answer about the block, and of the one about the symbol."""
        if (
            not isinstance(context, Blocks)
            or context.sizes.size < 2
            or not isinstance(context.exact_across, Fraction)
        ):
            raise ContextMismatch(
                "a product response keeps Blocks with a finite ε across; see mechanism_for."
            )
        pairs = zip(context.exact_epsilons, context.sizes.tolist(), strict=True)
        inside = min((epsilon for epsilon, size in pairs if size > 1), default=context.exact_across)
        if not isinstance(inside, Fraction) or inside >= context.exact_across:
            raise ContextMismatch(
                "a product response needs a promise inside blocks that is below the one across."
            )
        return context.exact_across - inside, inside

    def record(self) -> Json:
        """The two codes as plain data."""
        return {"kind": self.kind, "codes": [self._outer.record(), self._inner.record()]}

    def at_word(self, word_bits: int) -> Self:
        """The same mechanism over shorter words."""
        return type(self)(self.context, self._family, word_bits=word_bits)  # type: ignore[arg-type]

    def _respond(self, symbols: Symbols, words: Words) -> Words:
        J = self._outer.encode(self._block_of[symbols].astype(np.uint64), words[:, 0])
        T = self._inner.encode(symbols.astype(np.uint64), words[:, 1])
        return J * np.uint64(self._inner.outputs) + T

    def _integers(self, x: int) -> list[int]:
        outer, inner = _row(self._outer, int(self._block_of[x])), _row(self._inner, x)
        return [a * b for a in outer for b in inner]

    def ideal_row(self, x: int) -> Floats:
        """The product of the two codes' formulas."""
        rows = []
        for code, point in ((self._outer, int(self._block_of[x])), (self._inner, x)):
            rows.append(np.where(code.favoured(point), *code.ideal_levels()))
        return np.outer(*rows).ravel()

    # --- undoing it ---------------------------------------------------------------------------------

    def exact_scores(self, y: int) -> list[Fraction]:
        """``w_j(J) A2[x, T]``, moved evenly inside each block so that its sum is the block's mixed total."""
        J, T = divmod(y, self._inner.outputs)
        A1, A2 = (
            _exact_scores(self._outer, len(self._members), J),
            _exact_scores(self._inner, self.inputs, T),
        )
        weights = [
            w[int(favoured)]
            for w, favoured in zip(self._weights, self._blocks_favoured[:, J], strict=True)
        ]
        sums = [
            w * sum(A2[x] for x in block.tolist())
            for w, block in zip(weights, self._members, strict=True)
        ]
        totals = [mu * s + (1 - mu) * a for mu, s, a in zip(self._mixing, sums, A1, strict=True)]
        to_one = (1 - sum(totals, Fraction(0))) / len(totals)
        column = [Fraction(0)] * self.inputs
        for w, block, total, found in zip(weights, self._members, totals, sums, strict=True):
            for x in block.tolist():
                column[x] = w * A2[x] + (total + to_one - found) / block.size
        return column

    @cached_property
    def _table(self) -> Floats:
        """The same for all reports at once, in floats."""
        weighted, sums, A1 = self._pieces
        mu = np.array([float(each) for each in self._mixing])[:, None, None]
        totals = mu * sums + (1 - mu) * A1[:, :, None]
        totals += (1 - totals.sum(axis=0)) / len(self._members)
        sizes = np.array([block.size for block in self._members])[:, None, None]
        table = weighted + ((totals - sums) / sizes)[self._block_of]
        return table.reshape(self.inputs, self.outputs)

    @cached_property
    def _pieces(self) -> tuple[Floats, Floats, Floats]:
        """``w_j(J) A2[x, T]`` by (x, J, T), its sums over blocks by (j, J, T), and ``A1[j, J]``."""
        A1, A2 = _scores(self._outer, len(self._members)), _scores(self._inner, self.inputs)
        low, high = np.array([[float(w) for w in pair] for pair in self._weights]).T
        w = np.where(self._blocks_favoured, high[:, None], low[:, None])
        weighted = w[self._block_of][:, :, None] * A2[:, None, :]
        sums = (
            w[:, :, None] * np.array([A2[block].sum(axis=0) for block in self._members])[:, None, :]
        )
        return weighted, sums, A1

    @cached_property
    def _blocks_favoured(self) -> np.typing.NDArray[np.bool_]:
        """``[J ∈ S_j]`` by (j, J)."""
        return np.array([self._outer.favoured(j) for j in range(len(self._members))])

    @cached_property
    def _weights(self) -> Sequence[tuple[Fraction, Fraction]]:
        """``w_j`` for J outside S_j and in it: of mean 1 for members of j, least noise if symbols are equally likely.

        With h the chance of a member and P that of anybody to have J ∈ S_j, the best weights are as h/P to
        (1 − h)/(1 − P).
        """
        q = float(self._outer.overlap)
        found = []
        for j, block in enumerate(self._members):
            h = sum(
                _row(self._outer, j)[J] for J in np.flatnonzero(self._blocks_favoured[j]).tolist()
            )
            h_exact = Fraction(h, self._outer.total)
            P = q + block.size / self.inputs * float(self._outer.contrast)
            inside, outside = float(h_exact) / P, (1 - float(h_exact)) / (1 - P)
            norm = float(h_exact) * inside + (1 - float(h_exact)) * outside
            high = Fraction(inside / norm).limit_denominator(_SHORT)
            found.append(((1 - high * h_exact) / (1 - h_exact), high))
        return found

    @cached_property
    def _mixing(self) -> list[Fraction]:
        """μ_j: the weight of the symbols' sum in a block's total, of least variance if symbols are equally likely."""
        _, sums, A1 = self._pieces
        q = self.forward(np.full(self.inputs, 1 / self.inputs)).reshape(sums.shape[1:])
        found = []
        for by_symbols, by_block in zip(sums, A1, strict=True):
            a, b = by_symbols, np.broadcast_to(by_block[:, None], by_symbols.shape)
            a, b = a - (q * a).sum(), b - (q * b).sum()
            spread = float((q * (a - b) ** 2).sum())
            mu = float((q * b * (b - a)).sum()) / spread if spread > 0 else 0.0
            found.append(Fraction(mu).limit_denominator(_SHORT))
        return found


def _row(code: Code, point: int) -> list[int]:
    row = [code.high if favoured else code.low for favoured in code.favoured(point).tolist()]
    row[0] += code.leftover
    return row


def _exact_scores(code: Code, size: int, output: int) -> list[Fraction]:
    return exact_group_scores(
        code, size, output, rise=code.rise, leftover=leftover_share(code), total=Fraction(1)
    )


def _scores(code: Code, size: int) -> Floats:
    """``A[x, y]`` of a code by itself."""
    scores = corrected_scores(code, [size], rise=code.rise, leftover=leftover_share(code))
    return np.array([scores.totals(unit[None, :])[0] for unit in np.eye(size, code.points)])
