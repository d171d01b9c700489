"""Blocks: hide the street, not the city."""

import unicodedata
from collections.abc import Hashable, Iterable, Mapping
from fractions import Fraction

import numpy as np

from sfumato.arrays import Floats, Symbols
from sfumato.canonical import Json, decimal_text, packed_u32
from sfumato.contexts.context import Context
from sfumato.contexts.exact import ExactMatrix
from sfumato.domains import Domain, as_domain
from sfumato.errors import ContextMismatch, InvalidContext
from sfumato.randomness.odds import Epsilon, positive_epsilon

__all__ = ["Blocks"]


class Blocks(Context):
    """``E[x, x2] = ε`` inside a block, ``inf`` across blocks (Definition 4 of the paper).

    ``block_of`` gives each symbol its block: a sequence in domain order (integers or names), or a
    mapping from label to block. Blocks are numbered in the order of their first label.

    >>> Blocks({"Rue A": "Paris", "Rue B": "Paris", "Via C": "Rome"}, epsilon=1).matrix()
    array([[ 0.,  1., inf],
           [ 1.,  0., inf],
           [inf, inf,  0.]])
    """

    def __init__(self, block_of: object, epsilon: object, *, domain: object = None) -> None:
        names, found = _names_and_domain(block_of, domain)
        super().__init__(found)
        self._exact = positive_epsilon(epsilon)
        self._block_of, self._block_names = _numbered(names)
        self._sizes = np.bincount(self._block_of)
        order = np.argsort(self._block_of, kind="stable")
        self._rank = np.empty(self.size, dtype=np.int64)
        self._rank[order] = np.arange(self.size) - (np.cumsum(self._sizes) - self._sizes)[self._block_of[order]]
        for array in (self._block_of, self._sizes, self._rank):
            array.flags.writeable = False

    @property
    def block_of(self) -> Symbols:
        """The block of each symbol, numbered in the order of first labels."""
        return self._block_of

    @property
    def block_names(self) -> tuple[Hashable, ...]:
        """The names of the blocks as they were given."""
        return self._block_names

    @property
    def sizes(self) -> Symbols:
        """The number of symbols in each block (k_j)."""
        return self._sizes

    @property
    def rank(self) -> Symbols:
        """The place of each symbol inside its block, in domain order, from 0."""
        return self._rank

    @property
    def exact_inside(self) -> Epsilon:
        """The ε inside blocks, exactly."""
        return self._exact

    @property
    def exact_smallest(self) -> Epsilon:
        """ε; ``inf`` if every block holds a single symbol."""
        return self._exact if self._sizes.max() > 1 else np.inf

    def exact_epsilon(self, x: int, x2: int) -> Epsilon:
        """ε inside a block, ``inf`` across, 0 on the diagonal."""
        if x == x2:
            return Fraction(0)
        return self._exact if self._block_of[x] == self._block_of[x2] else np.inf

    def exact_matrix(self) -> ExactMatrix:
        """E written out exactly; refused above 4096 symbols."""
        return self._one_epsilon_matrix(self._exact)

    def closure(self) -> "Blocks":
        """Itself: no finite way leaves a block."""
        return self

    def record(self) -> Json:
        """The context as plain data."""
        return {
            "kind": "blocks",
            "domain": self.domain.record(),
            "epsilon": decimal_text(self._exact),
            "block_of": packed_u32(self._block_of),
        }

    def _epsilon(self, x: Symbols, x2: Symbols) -> Floats:
        return np.where(self._block_of[x] == self._block_of[x2], float(self._exact), np.inf)

    def __repr__(self) -> str:
        return f"Blocks({self._sizes.size} blocks of {self.domain!r}, epsilon={decimal_text(self._exact)})"


def _names_and_domain(block_of: object, domain: object) -> tuple[list[Hashable], Domain]:
    if isinstance(block_of, Mapping):
        found = as_domain(list(block_of) if domain is None else domain)
        symbols = found.label_symbols(block_of, "block_of")
        if len(block_of) != found.size or np.unique(symbols).size != found.size:
            raise ContextMismatch(
                f"block_of must give each of the {found.size} labels of the domain one block; it names "
                f"{np.unique(symbols).size} of them in {len(block_of)} entries."
            )
        by_symbol = dict(zip(symbols.tolist(), block_of.values(), strict=True))
        return [_name(by_symbol[x]) for x in range(found.size)], found
    if isinstance(block_of, str | bytes) or not isinstance(block_of, Iterable):
        raise InvalidContext("block_of must be a sequence in domain order, or a mapping from label to block.")
    names = [_name(name) for name in block_of]
    found = as_domain(len(names) if domain is None else domain)
    if found.size != len(names):
        raise ContextMismatch(f"block_of has {len(names)} entries; the domain has {found.size} labels.")
    return names, found


def _name(name: object) -> Hashable:
    if isinstance(name, np.integer):
        return int(name)
    if isinstance(name, bool) or not isinstance(name, int | str):
        raise InvalidContext(f"a block is named by text or an integer; found {type(name).__name__}.")
    # Two spellings of one name must not become two blocks, which nothing would hide from each other.
    return unicodedata.normalize("NFC", name) if isinstance(name, str) else name


def _numbered(names: list[Hashable]) -> tuple[Symbols, tuple[Hashable, ...]]:
    number: dict[Hashable, int] = {}
    block_of = np.fromiter((number.setdefault(name, len(number)) for name in names), np.int64, len(names))
    return block_of, tuple(number)
