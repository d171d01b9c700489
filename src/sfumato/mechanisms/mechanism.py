"""What every mechanism does: randomise symbols, describe its channel exactly, undo it on average.

The channel is ``Q(y|x)``, x a symbol and y a report. Its *scores* ``A[x, y]`` undo it: a report y adds
``A[x, y]`` to the estimate of symbol x, and ``Σ_y Q(y|x2) A[x, y] = [x = x2]`` exactly, so that the mean
score over n reports is an unbiased estimate of the distribution:

    p̂_x = Σ_y f(y) A[x, y],   f(y) = the share of reports that are y
    n Var(p̂_x) = Σ_y q(y) A[x, y]² − p_x²,   q(y) = Σ_x p_x Q(y|x)

A mechanism never keeps a person's value or a source of randomness: both come in as arguments.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from html import escape
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.contexts import Context
from sfumato.domains.symbols import checked_symbols
from sfumato.errors import InvalidContext, InvalidSymbols, NotEnoughReports
from sfumato.foundation.arrays import Floats, Reports, Symbols, Words
from sfumato.foundation.canonical import Json, canonical_bytes, fingerprint
from sfumato.foundation.files import write_atomically
from sfumato.foundation.simplex import project
from sfumato.mechanisms.reach import Reach
from sfumato.mechanisms.row_class import RowClass
from sfumato.randomness.words import SystemWords, WordSource
from sfumato.tally import Tally, tally_of_batches

__all__ = [
    "LARGEST_OUTPUTS",
    "LARGEST_TABLE",
    "Mechanism",
    "checked_vector",
    "demand_outputs",
    "people_count",
]

LARGEST_TABLE = 2**24
"""A channel is written out up to this many entries (128 MiB)."""

LARGEST_OUTPUTS = 2**31
"""A report is a 32-bit integer on every wire."""

_DRAWN = 2**16  # people whose words are drawn under one key
_CHUNK = 2**15  # people whose words, symbols and reports fit the cache together


class Mechanism(ABC):
    """A channel over integers that keeps a context's promise.

    A report is a pure function of the symbol and of ``words`` words of ``word_bits`` bits: no
    rejection, no loop, the same number of words whatever the symbol.
    """

    kind: ClassVar[str]
    words: int = 1
    word_bits: int
    outputs: int

    def __init__(self, context: Context) -> None:
        self._context = context

    # --- what it is ---------------------------------------------------------------------------------

    @property
    def context(self) -> Context:
        """The promise that the mechanism keeps."""
        return self._context

    @property
    def inputs(self) -> int:
        """The number of symbols, k."""
        return self._context.size

    @property
    def bits(self) -> int:
        """The length of a report in bits."""
        return (self.outputs - 1).bit_length()

    @cached_property
    def fingerprint(self) -> str:
        """The name of the promise and of the exact channel that keeps it."""
        return fingerprint({"context": self._context.record(), "mechanism": self.record()})

    @abstractmethod
    def record(self) -> Json:
        """The integers of the channel as plain data, for fingerprints and files."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write context and mechanism, with all their integers, as canonical JSON.

        ``sfumato check`` reads the file, and so does ``tools/check_certificate.py``, which needs Python alone.
        """
        saved: Json = {
            "format": 1,
            "context": self._context.record(),
            "mechanism": self._saved_record(),
        }
        write_atomically(path, canonical_bytes(saved) + b"\n")

    def _saved_record(self) -> Json:
        """The record; a mechanism of several words is saved as the table that it amounts to."""
        if self.words == 1:
            return self.record()
        rows = [[str(count) for count in self.integer_row(x)] for x in range(self.inputs)]
        return {"kind": "table", "word_bits": self.word_bits * self.words, "rows": rows}

    @abstractmethod
    def at_word(self, word_bits: int) -> Self:
        """The same mechanism realised over shorter words, so that every word can be tried."""

    # --- what people do -----------------------------------------------------------------------------

    def privatize(self, symbols: object, source: WordSource | None = None) -> Reports:
        """One report per symbol. The default source is the operating system's, and the only private one."""
        people = self._checked(symbols)
        if people.size == 0:
            raise InvalidSymbols("symbols must hold at least one person's symbol; found none.")
        reports = np.empty(people.size, dtype=np.uint32)
        done = 0
        for chunk in self._responses(people, SystemWords() if source is None else source):
            reports[done : done + chunk.size] = chunk
            done += chunk.size
        return reports

    def privatize_and_tally(self, symbols: object, source: WordSource | None = None) -> Tally:
        """The tally of one report per symbol; the reports themselves are never kept.

        ``symbols`` is one batch, or any iterable of batches, of which some may be empty. Memory: the counts and a chunk
        of people.

        >>> from sfumato import HadamardCode, PlainResponse, Uniform
        >>> PlainResponse(Uniform(1000, 1)).privatize_and_tally(np.arange(1000)).reports
        1000
        """
        source = SystemWords() if source is None else source
        counts = np.zeros(demand_outputs(self.outputs), dtype=np.int64)
        for batch in _batches(symbols):
            for chunk in self._responses(self._checked(batch), source):
                np.add.at(counts, chunk.astype(np.intp, copy=False), 1)
        return Tally(counts, self.fingerprint)

    def _checked(self, symbols: object) -> Symbols:
        demand_outputs(self.outputs)
        return _row(checked_symbols(symbols, self.inputs), "symbols")

    def _responses(self, people: Symbols, source: WordSource) -> Iterator[Words | Reports]:
        """The reports of people, chunk by chunk."""
        shift = np.uint64(64 - self.word_bits)
        for first in range(0, people.size, _DRAWN):
            drawing = people[first : first + _DRAWN]
            drawn = source.take(drawing.size, self.words)
            if drawn.shape != (drawing.size, self.words):
                raise InvalidSymbols(
                    "a source must hand out the words that were asked for: take(count, words)."
                )
            words = drawn >> shift if shift else drawn
            for start in range(0, drawing.size, _CHUNK):
                yield self._respond(drawing[start : start + _CHUNK], words[start : start + _CHUNK])

    def reports_from(self, symbols: object, words: object) -> Reports:
        """The report of each symbol for given words, shape ``(people, words)``: a pure function."""
        people = _row(checked_symbols(symbols, self.inputs), "symbols")
        given = np.asarray(words)
        if given.dtype != np.uint64 or given.shape != (people.size, self.words):
            raise InvalidSymbols(
                f"words must be 64-bit unsigned integers of shape ({people.size}, {self.words})."
            )
        if self.word_bits < 64 and (given >> np.uint64(self.word_bits)).any():
            raise InvalidSymbols(f"words must lie below 2^{self.word_bits}.")
        return self._respond(people, given).astype(np.uint32)

    @abstractmethod
    def _respond(self, symbols: Symbols, words: Words) -> Words | Reports:
        """The kernel: checked symbols and words of ``word_bits`` bits in, reports out, elementwise."""

    def tally(self, reports: ArrayLike | Iterable[ArrayLike]) -> Tally:
        """Count reports: one batch (an array, a list of integers), or any iterable of batches."""
        return tally_of_batches(
            _batches(reports), outputs=self.outputs, fingerprint=self.fingerprint
        )

    # --- the channel --------------------------------------------------------------------------------

    @property
    def denominator(self) -> int:
        """The number of different draws: every probability is an integer over it."""
        return 1 << (self.word_bits * self.words)

    @abstractmethod
    def levels(self, x: int) -> tuple[list[int], NDArray[np.intp]]:
        """The row of x in compact form: its distinct integers, and which of them each report has."""

    def integer_row(self, x: int) -> list[int]:
        """For each report, on how many of the ``denominator`` draws symbol x sends it."""
        levels, which = self.levels(x)
        return [levels[i] for i in which.tolist()]

    @abstractmethod
    def ideal_row(self, x: int) -> Floats:
        """The row of x by the published formula, in floats: what the integers approximate."""

    def exact_row(self, x: int) -> list[Fraction]:
        """``Q(·|x)`` exactly, from the integers that the sampler uses."""
        return [Fraction(count, self.denominator) for count in self.integer_row(x)]

    def matrix(self) -> Floats:
        """Q written out, a row per symbol; refused where it would not fit."""
        self._refuse_large()
        rows = [
            [count / self.denominator for count in self.integer_row(x)] for x in range(self.inputs)
        ]
        return np.array(rows)

    def row_classes(self) -> tuple[RowClass, ...]:
        """What can be said of all rows at once, for certificates of channels too large to enumerate.

        Empty where a mechanism has no such structure.
        """
        return ()

    def then(self, W: Sequence[Sequence[object]]) -> "Mechanism":
        """The mechanism with its report randomised once more, by a channel W that never sees the symbol.

        ``W[y][z]`` is the probability, as a fraction or decimal, that report y becomes z; rows add up to
        exactly 1. What Q promises, Q followed by W promises too (Proposition 1 of the paper).
        """
        from sfumato.mechanisms.processed import ProcessedResponse

        return ProcessedResponse(self, W)

    @abstractmethod
    def forward(self, p: ArrayLike) -> Floats:
        """``q(y) = Σ_x p_x Q(y|x)``: how reports are distributed when symbols are."""

    @abstractmethod
    def adjoint(self, v: ArrayLike) -> Floats:
        """``Σ_y Q(y|x) v_y`` for every x: what a function of the report is worth on average."""

    # --- undoing it ---------------------------------------------------------------------------------

    @abstractmethod
    def exact_scores(self, y: int) -> list[Fraction]:
        """``A[·, y]`` exactly: what one report y adds to the estimate of each symbol."""

    @abstractmethod
    def mean_scores(self, frequencies: ArrayLike) -> Floats:
        """``Σ_y f(y) A[x, y]`` for every x: the unbiased estimate, by a fast transform."""

    @abstractmethod
    def total_scores(self, weights: ArrayLike) -> Floats:
        """``Σ_x weights_x A[x, y]`` for every y: what one report adds to a weighted total."""

    @abstractmethod
    def second_moments(self, frequencies: ArrayLike) -> Floats:
        """``Σ_y f(y) A[x, y]²`` for every x."""

    @abstractmethod
    def squared_scores(self) -> Floats:
        """``Σ_x A[x, y]²`` for every y."""

    @property
    @abstractmethod
    def leverage(self) -> float:
        """How many honest people one fake report outweighs: the largest ``|A[x, y]|``.

        An honest report adds 1 on average to its own symbol and 0 to the others; a forged one can add this many
        to a symbol, or take this many from it. So m forged reports among n move an estimate by at most
        ``m (leverage + 1)/n`` from where m honest ones would have left it on average.
        """

    @cached_property
    def reach(self) -> Reach:
        """How far one forged report moves each symbol up and down, and the whole: the extremes of the scores.

        From all scores written out, unless a mechanism knows a shorter way.
        """
        return Reach.of_table(self.scores())

    def observed_shares(self, tally: Tally) -> tuple[Symbols, Floats]:
        """Groups of symbols whose total is seen without noise: the group of each symbol, and the totals.

        Unless a mechanism says otherwise there is one group, with total 1.
        """
        return np.zeros(self.inputs, dtype=np.int64), np.ones(1)

    def unbiased(self, tally: Tally) -> Floats:
        """The unbiased estimate ``p̂`` of the distribution; entries may be negative."""
        return self.mean_scores(self._frequencies(tally))

    def standard_errors(self, tally: Tally) -> Floats:
        """The standard error of each entry of ``unbiased``; ``inf`` for a single report.

        ``(Σ_y f A² − p̂²)/(n − 1)`` is an exactly unbiased estimate of the variance.
        """
        f = self._frequencies(tally)
        if tally.reports == 1:
            return np.full(self.inputs, np.inf)
        spread = self.second_moments(f) - self.mean_scores(f) ** 2
        return np.sqrt(np.maximum(spread, 0.0) / (tally.reports - 1))

    def variances(self, p: ArrayLike, n: int) -> Floats:
        """The exact variance of each entry of ``unbiased`` for ``n`` independent people drawn from p."""
        q = self.forward(p)
        return (self.second_moments(q) - np.asarray(p, dtype=np.float64) ** 2) / people_count(n)

    def covariances(self, p: ArrayLike, n: int) -> Floats:
        """The exact covariance matrix of ``unbiased``, ``(A diag(q) Aᵀ − p pᵀ)/n``; for small domains."""
        distribution = np.asarray(p, dtype=np.float64)
        A = self.scores()
        return ((A * self.forward(p)) @ A.T - np.outer(distribution, distribution)) / people_count(
            n
        )

    def scores(self) -> Floats:
        """A written out, a row per symbol; refused where it would not fit."""
        self._refuse_large()
        columns = [self.total_scores(unit) for unit in np.eye(self.inputs)]
        return np.array(columns)

    def risk(self, p: ArrayLike) -> float:
        """``n · E‖p̂ − p‖²`` for people drawn from p."""
        return float(self.variances(p, 1).sum())

    def worst_risk(self) -> float:
        """The largest ``risk(p)`` over all distributions.

        ``risk(p) = ρ·p − ‖p‖²`` with ``ρ_x = Σ_y Q(y|x) Σ_x2 A[x2, y]²``; the maximiser over the simplex
        is the point of the simplex nearest to ``ρ/2``.
        """
        rho = self.adjoint(self.squared_scores())
        p = project(rho / 2)
        return float(rho @ p - p @ p)

    def _frequencies(self, tally: Tally) -> Floats:
        tally.require(self.fingerprint, self.outputs)
        if tally.reports == 0:
            raise NotEnoughReports("an estimate needs at least one report; this tally has none.")
        return tally.counts / tally.reports

    def _refuse_large(self) -> None:
        if self.inputs * self.outputs > LARGEST_TABLE:
            raise InvalidContext(
                f"a channel is written out up to {LARGEST_TABLE} entries; this one has {self.inputs} × "
                f"{self.outputs}. Use forward, adjoint, exact_row or mean_scores."
            )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._context!r}, {self.outputs} outputs)"

    def _repr_html_(self) -> str:
        """What notebooks show: the facts that a survey's designer weighs."""
        facts = (
            ("context", repr(self._context)),
            ("reports", f"{self.outputs:,} different ones, {self.bits} bits each"),
            ("leverage", f"one fake report outweighs up to {self.leverage:,.3g} honest people"),
            ("fingerprint", self.fingerprint),
        )
        left = 'style="text-align:left"'
        rows = "".join(
            f'<tr><th scope="row" {left}>{name}</th><td {left}>{escape(fact)}</td></tr>'
            for name, fact in facts
        )
        return f"<p><b>{escape(type(self).__name__)}</b></p><table><tbody>{rows}</tbody></table>"


def demand_outputs(outputs: int) -> int:
    """Refuse a mechanism whose reports would not fit 32 bits on the wire."""
    if outputs > LARGEST_OUTPUTS:
        raise InvalidContext(
            f"a mechanism has at most 2^31 reports; this one would have {outputs}."
        )
    return outputs


def people_count(n: int) -> int:
    """The number of people, at least 1."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise NotEnoughReports(f"n must be a whole number of at least 1; found {n!r}.")
    return int(n)


def checked_vector(values: ArrayLike, size: int, name: str) -> Floats:
    """``values`` as a row of ``size`` floats."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (size,):
        raise InvalidSymbols(f"{name} must have {size} entries; found shape {array.shape}.")
    return array


def _batches(given: object) -> Iterable[ArrayLike]:
    """One batch (an array or column, a list of integers) as the only one; any other iterable holds batches itself."""
    whole = hasattr(given, "__array__") or (
        isinstance(given, Sequence)
        and all(isinstance(number, int | np.integer) for number in given)
    )
    return [given] if whole or not isinstance(given, Iterable) else given  # type: ignore[list-item]


def _row(symbols: Symbols, name: str) -> NDArray[np.int64]:
    if symbols.ndim != 1:
        raise InvalidSymbols(
            f"{name} must be a row, one entry per person; found {symbols.ndim} dimensions."
        )
    return symbols
