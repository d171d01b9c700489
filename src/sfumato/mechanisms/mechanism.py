"""The base class of all mechanisms, which randomize symbols and describe their channels exactly.

A channel is ``Q(y|x)``, the probability that symbol x produces report y. The scores in
``mechanism.scores`` undo the channel on average.

A mechanism never stores a person's value or a source of randomness: both are passed as arguments.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.codes import MAX_OUTPUTS
from sfumato.contexts import Context
from sfumato.domains import SymbolOrLabel, require_symbols
from sfumato.errors import InvalidArgument, InvalidContext, InvalidSymbols, NothingToLearn
from sfumato.foundation.arrays import Floats, KernelWords, PerPerson, Reports, Symbols, Words
from sfumato.foundation.canonical import Json, canonical_bytes, fingerprint
from sfumato.foundation.files import write_atomically
from sfumato.foundation.notebook import facts_html
from sfumato.mechanisms.channel import format_rows
from sfumato.mechanisms.row_class import RowClass
from sfumato.mechanisms.scores import Scores, require_matrix_size
from sfumato.randomness import WordSource, reject_seed, require_source
from sfumato.tally import Tally, tally_batches

__all__ = ["CompactRow", "Mechanism", "require_max_outputs"]

CompactRow = tuple[list[int], NDArray[np.intp]]
"""A row of a channel: a list of integers (levels), and the index of each report's level."""

_PEOPLE_PER_KEY = 2**16  # the number of people whose words are drawn in one call
_CHUNK_SIZE = 2**15  # people per chunk, so that their words and reports fit in the CPU cache
_SEEDED_CALL = "sf.simulation.reports(mechanism, symbols, seed=1)"


class Mechanism(ABC):
    """A channel with exact probabilities, designed to keep a context's promise.

    ``certify`` checks that the channel keeps the promise.

    A report is a pure function of the symbol and of ``words`` random words, each of ``word_bits``
    bits. There is no rejection sampling, and every symbol needs the same number of words.

    ``context`` is the promise, ``inputs`` is the number k of symbols and ``outputs`` is the number
    of distinct reports.
    """

    kind: ClassVar[str]
    context: Context
    inputs: int
    outputs: int
    words: int = 1
    word_bits: int

    def __init__(self, context: Context) -> None:
        self.context = context
        self.inputs = context.size

    # --- identity --------------------------------------------------------------------------------

    @property
    def bits(self) -> int:
        """The number of bits in a report."""
        return (self.outputs - 1).bit_length()

    @cached_property
    def fingerprint(self) -> str:
        """A hash that identifies the promise and the exact channel."""
        return fingerprint({"context": self.context.to_record(), "mechanism": self.to_record()})

    @abstractmethod
    def to_record(self) -> Json:
        """Return the channel's integers as JSON-compatible data, for fingerprints and files."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the context and the mechanism, with all their integers, as canonical JSON.

        Check the file with ``sfumato check``, or with ``tools/check_certificate.py``, which needs
        only Python.
        """
        content: Json = {
            "format": 1,
            "context": self.context.to_record(),
            "mechanism": self._file_record(),
        }
        write_atomically(path, canonical_bytes(content) + b"\n")

    def _file_record(self) -> Json:
        """Return the mechanism's record, or that of an equivalent table if ``words`` is above 1."""
        if self.words == 1:
            return self.to_record()
        rows = format_rows(map(self.integer_row, range(self.inputs)))
        return {"kind": "table", "word_bits": self.word_bits * self.words, "rows": rows}

    @abstractmethod
    def with_word_bits(self, word_bits: int) -> Self:
        """Return the same mechanism with words of ``word_bits`` bits.

        Tests use short words, because they can enumerate all of them.
        """

    # --- randomizing -----------------------------------------------------------------------------

    def privatize(
        self, symbols: object, source: WordSource | None = None, *, seed: None = None
    ) -> Reports:
        """Return one report per symbol. To randomize labels, use a survey.

        ``source`` supplies the random words. Only the default source, the operating system,
        provides privacy. There is no ``seed``: ``sf.simulation.reports`` has one, and is not
        private.
        """
        reject_seed(seed, _SEEDED_CALL)
        word_source = require_source(source, _SEEDED_CALL)
        symbol_array = self._check_symbols(symbols)
        if symbol_array.size == 0:
            raise InvalidSymbols("symbols must contain at least one symbol; got none.")
        reports = np.empty(symbol_array.size, dtype=np.uint32)
        start = 0
        for chunk in self._report_chunks(symbol_array, word_source):
            reports[start : start + chunk.size] = chunk
            start += chunk.size
        return reports

    def privatize_and_tally(self, symbols: object, source: WordSource | None = None) -> Tally:
        """Privatize the symbols and return the tally of their reports, without storing the reports.

        ``symbols`` is one batch, or an iterable of batches; batches may be empty. Memory use does
        not grow with the number of batches.

        >>> from sfumato import PlainResponse, Uniform
        >>> PlainResponse(Uniform(1000, 1)).privatize_and_tally(np.arange(1000)).reports
        1000
        """
        word_source = require_source(source, _SEEDED_CALL)
        counts = np.zeros(require_max_outputs(self.outputs), dtype=np.int64)
        for batch in _batches(symbols):
            for chunk in self._report_chunks(self._check_symbols(batch), word_source):
                np.add.at(counts, chunk.astype(np.intp, copy=False), 1)
        return Tally(counts, self.fingerprint)

    def _check_symbols(self, symbols: object) -> Symbols:
        """Return the symbols as a vector, one entry per person.

        Raise ``InvalidSymbols`` if they are invalid, and ``InvalidContext`` if there are too many
        distinct reports.
        """
        require_max_outputs(self.outputs)
        if hasattr(symbols, "random") and not hasattr(symbols, "__len__"):
            raise InvalidArgument(
                "the first argument must be the symbols; got a random generator "
                f"({type(symbols).__name__}). For reproducible reports, which are NOT PRIVATE, "
                f"call {_SEEDED_CALL}."
            )
        return _symbol_vector(symbols, self.inputs)

    def _report_chunks(self, symbols: Symbols, source: WordSource) -> Iterator[Words]:
        """Yield one report per symbol, in chunks."""
        shift = 64 - self.word_bits
        for first in range(0, symbols.size, _PEOPLE_PER_KEY):
            key_batch = symbols[first : first + _PEOPLE_PER_KEY]
            words = source.take(key_batch.size, self.words)
            if words.shape != (key_batch.size, self.words) or words.dtype != np.uint64:
                raise InvalidSymbols(
                    "a word source's take(count, words) must return a uint64 array of shape "
                    "(count, words)."
                )
            if shift:
                words = words >> np.uint64(shift)
            for start in range(0, key_batch.size, _CHUNK_SIZE):
                chunk = slice(start, start + _CHUNK_SIZE)
                yield self._respond_to(key_batch[chunk], words[chunk])

    def reports_from(self, symbols: object, words: object) -> Reports:
        """Return the report determined by each symbol and its words.

        ``words`` is an array of ``uint64`` with one row per symbol and ``self.words`` columns. Its
        entries must be below ``2^word_bits``.
        """
        symbol_array = _symbol_vector(symbols, self.inputs)
        word_array = np.asarray(words)
        shape = (symbol_array.size, self.words)
        if word_array.dtype != np.uint64 or word_array.shape != shape:
            raise InvalidSymbols(f"words must be a uint64 array of shape {shape}.")
        if self.word_bits < 64 and (word_array >> np.uint64(self.word_bits)).any():
            raise InvalidSymbols(f"words must be below 2^{self.word_bits}.")
        return self._respond_to(symbol_array, word_array).astype(np.uint32)

    def _respond_to(self, symbols: Symbols, words: Words) -> Words:
        """Return one report per symbol; ``words`` has one row per symbol."""
        if symbols.size == 1:
            # Python integers are several times as fast as arrays with one entry.
            report = self._respond(symbols.item(), words[0].tolist())
            return np.array([report], dtype=np.uint64)
        return self._respond(symbols.view(np.uint64), words.T)

    @abstractmethod
    def _respond(self, symbols: PerPerson, words: KernelWords) -> PerPerson:
        """Return one report per symbol, from valid symbols and words of ``word_bits`` bits.

        For one person, ``symbols`` is an integer and ``words`` a list of integers. For many people,
        ``symbols`` is an array of uint64, and ``words`` has a row for each word. The code must be
        the same for both: use operators, and the functions in ``foundation/elementwise.py``.
        """

    def tally(self, reports: ArrayLike | Iterable[ArrayLike]) -> Tally:
        """Return the tally of reports, given as an array or list of integers, or as batches."""
        return tally_batches(_batches(reports), outputs=self.outputs, fingerprint=self.fingerprint)

    # --- the channel -----------------------------------------------------------------------------

    @property
    def denominator(self) -> int:
        """The number of equally likely draws; every probability is an integer divided by it."""
        return 1 << (self.word_bits * self.words)

    @abstractmethod
    def compact_row(self, x: int) -> CompactRow:
        """Return the row of x as a list of levels, and the index of each report's level."""

    def integer_row(self, x: int) -> list[int]:
        """Return, for each report, how many of ``denominator`` draws make symbol x produce it."""
        levels, level_indices = self.compact_row(x)
        return [levels[i] for i in level_indices.tolist()]

    def exact_row(self, x: SymbolOrLabel) -> list[Fraction]:
        """Return ``Q(·|x)`` exactly, from the integers that the sampler uses.

        ``x`` is a symbol, or the text of its label.
        """
        symbol = int(self.context.domain.as_symbols(x))
        return [Fraction(count, self.denominator) for count in self.integer_row(symbol)]

    @abstractmethod
    def ideal_row(self, x: int) -> Floats:
        """Return the row of x from the formula that the integers approximate."""

    def matrix(self) -> Floats:
        """Return Q as a matrix, one row per symbol; raise ``InvalidContext`` if it is too large."""
        require_matrix_size(self)
        rows = []
        for x in range(self.inputs):
            rows.append([count / self.denominator for count in self.integer_row(x)])
        return np.array(rows)

    def row_classes(self) -> tuple[RowClass, ...]:
        """Return claims that describe all rows, to certify a channel too large to enumerate.

        The result is empty if the mechanism makes no such claims.
        """
        return ()

    def then(self, W: Sequence[Sequence[object]]) -> "Mechanism":
        """Return this mechanism followed by a channel W, which randomizes the report again.

        ``W[y][z]`` is the probability, as a fraction or decimal, that report y is replaced by z.
        Each row must add up to exactly 1. W never sees the symbol, so Q followed by W keeps the
        promise of Q (Proposition 1 of Acharya et al., 2020).
        """
        from sfumato.mechanisms.composition import ProcessedResponse

        return ProcessedResponse(self, W)

    @abstractmethod
    def forward(self, p: ArrayLike) -> Floats:
        """Return the distribution of reports, ``q(y) = Σ_x p_x Q(y|x)``."""

    @abstractmethod
    def adjoint(self, v: ArrayLike) -> Floats:
        """Return ``Σ_y Q(y|x) v_y`` for every x: the mean of v over the reports of symbol x."""

    @property
    @abstractmethod
    def scores(self) -> Scores:
        """The scores that undo the channel on average.

        They are computed on first use, because a client never needs them.
        """

    # --- display ---------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.context!r}, {self.outputs} outputs)"

    def _repr_html_(self) -> str:
        """Return an HTML table that summarizes the mechanism in notebooks."""
        leverage = "the reports determine no estimate"
        with suppress(NothingToLearn):
            count = f"{self.scores.leverage:,.3g}"
            leverage = f"one forged report outweighs up to {count} honest people"
        facts = {
            "context": repr(self.context),
            "reports": f"{self.outputs:,} distinct reports of {self.bits} bits each",
            "leverage": leverage,
            "fingerprint": self.fingerprint,
        }
        return facts_html(type(self).__name__, facts)


def require_max_outputs(outputs: int) -> int:
    """Return ``outputs``; raise ``InvalidContext`` if it exceeds 2^31."""
    if outputs > MAX_OUTPUTS:
        raise InvalidContext(
            f"a mechanism can have at most 2^31 distinct reports; this one would have {outputs}."
        )
    return outputs


def _batches(values: object) -> Iterable[ArrayLike]:
    """Return the batches in ``values``: an array, column or list of integers is one batch."""
    if hasattr(values, "__array__") or not isinstance(values, Iterable):
        return [values]  # type: ignore[list-item]
    if isinstance(values, Sequence) and all(isinstance(v, int | np.integer) for v in values):
        return [values]
    return values


def _symbol_vector(symbols: object, size: int) -> Symbols:
    """Return symbols below ``size`` as a vector; raise ``InvalidSymbols`` if they are invalid."""
    vector = require_symbols(symbols, size)
    if vector.ndim != 1:
        raise InvalidSymbols(
            f"symbols must be a vector, one entry per person; got {vector.ndim} dimensions."
        )
    return vector
