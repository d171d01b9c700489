"""Grouped contexts: one promise inside each group, and one from each group to all others."""

import copy
from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from heapq import nsmallest
from math import inf, lcm
from typing import Self

import numpy as np

from sfumato.contexts.assignment import Assignment
from sfumato.contexts.context import Context
from sfumato.contexts.exact import ExactMatrix
from sfumato.domains import Domain, DomainLike, Label, as_domain
from sfumato.errors import ContextMismatch, InvalidContext
from sfumato.foundation.arrays import Booleans, Floats, Symbols
from sfumato.foundation.canonical import Fields, Json, decimal_text, pack_u32, unpack_u32
from sfumato.foundation.correct_call import shows_call
from sfumato.foundation.inputs import ClassesLike, NumberLike, NumbersByClass
from sfumato.foundation.numpy_values import is_collection, require_unmasked
from sfumato.randomness import LARGEST_EPSILON, Epsilon, positive_epsilon

__all__ = [
    "Blocks",
    "GroupedContext",
    "HighLow",
    "Tiers",
    "Uniform",
    "ranks_within",
    "symbols_by_group",
]

_MAX_SHOWN_TIERS = 4  # tiers listed in a repr
_MAX_INT64_NUMERATOR = 2**62  # from this on, numerators are stored as Python integers


class GroupedContext(Context):
    """A privacy matrix with one promise inside each group and one from each group to all others.

        E[x, x2] = inside[g]     for x ≠ x2 in the same group g
                   outward[g]    for x in g and x2 in another group

    Groups are numbered in order of first appearance. ``inside[g]`` is meaningless if group g has a
    single symbol, and ``outward`` is meaningless if there is only one group.
    """

    inside: tuple[Epsilon, ...]
    """For each group, the promise between two of its symbols."""
    outward: tuple[Epsilon, ...]
    """For each group, the promise for one of its symbols against any symbol of another group."""

    def __init__(
        self,
        domain: Domain,
        group_of: Symbols | None,
        inside: tuple[Epsilon, ...],
        outward: tuple[Epsilon, ...],
    ) -> None:
        super().__init__(domain)
        if group_of is not None:
            group_of.flags.writeable = False
        self._group_of = group_of  # None: all symbols are in one group
        self.inside = inside
        self.outward = outward

    # --- groups ----------------------------------------------------------------------------------

    @property
    def groups(self) -> "GroupedContext":
        """The context itself."""
        return self

    @property
    def group_of(self) -> Symbols:
        """The index of each symbol's group."""
        if self._group_of is None:
            return np.broadcast_to(np.int64(0), (self.size,))
        return self._group_of

    @cached_property
    def sizes(self) -> Symbols:
        """The number of symbols in each group."""
        sizes = np.array([self.size])
        if self._group_of is not None:
            sizes = np.bincount(self._group_of)
        sizes.flags.writeable = False
        return sizes

    @cached_property
    def rank(self) -> Symbols:
        """The position of each symbol inside its group, in domain order, from 0."""
        rank = ranks_within(self.group_of)
        rank.flags.writeable = False
        return rank

    def members(self) -> list[Symbols]:
        """Return the symbols of each group, in domain order."""
        return symbols_by_group(self.group_of)

    @property
    def may_reveal_groups(self) -> bool:
        """Whether a report may reveal the group, because nothing is promised between groups."""
        return all(epsilon == inf for epsilon in self.outward)

    @property
    def protected_groups(self) -> list[int]:
        """The indices of the groups with a finite promise against other groups."""
        return [g for g, outward in enumerate(self.outward) if isinstance(outward, Fraction)]

    def effective_promises(self, g: int) -> tuple[Fraction, Fraction]:
        """Return the effective promises of a protected group: inside it, and outward.

        A group with a single symbol has no promise inside, so its outward promise is returned for
        both. In a larger group, a detour through another group limits the promise inside to
        2·outward.
        """
        outward = Fraction(self.outward[g])
        if self.sizes[g] == 1:
            return outward, outward
        return Fraction(min(self.inside[g], 2 * outward)), outward

    # --- the matrix E ----------------------------------------------------------------------------

    @property
    def _promises(self) -> list[Epsilon]:
        """The promises that apply to at least one pair, including duplicates."""
        promises = [self.inside[g] for g in np.flatnonzero(self.sizes > 1).tolist()]
        if len(self.outward) > 1:
            promises.extend(self.outward)
        return promises

    @cached_property
    def exact_minimum(self) -> Epsilon:
        """The smallest promise for any pair; ``inf`` if no pair has a promise."""
        return min(self._promises, default=inf)

    @property
    def largest_finite_epsilon(self) -> Fraction:
        """The largest finite promise for any pair; 0 if no pair has a finite promise."""
        finite_epsilons = [epsilon for epsilon in self._promises if isinstance(epsilon, Fraction)]
        return max(finite_epsilons, default=Fraction(0))

    @property
    def has_unprotected_pairs(self) -> bool:
        """Whether some pair has no promise."""
        return self.has_partly_protected_symbols or bool(self._is_unprotected_group.any())

    def unprotected_symbols(self) -> Symbols:
        """Return the symbols with no promise against any other symbol."""
        if self._is_unprotected_group.all():
            return np.arange(self.size)
        if not self._is_unprotected_group.any():
            return np.arange(0)
        return np.flatnonzero(self._is_unprotected_group[self.group_of])

    @property
    def _is_unprotected_group(self) -> Booleans:
        """For each group, whether its symbols have no promise against any other symbol."""
        if len(self.outward) == 1:
            return (self._inside_floats == inf) & (self.sizes > 1)
        is_unprotected_inside = (self._inside_floats == inf) | (self.sizes == 1)
        return is_unprotected_inside & (self._outward_floats == inf)

    @property
    def has_partly_protected_symbols(self) -> bool:
        """Whether some symbol has a promise against one symbol but not against another."""
        if len(self.outward) == 1:
            return False
        is_partly_protected = (self._inside_floats == inf) != (self._outward_floats == inf)
        return bool((is_partly_protected & (self.sizes > 1)).any())

    def exact_epsilon(self, x: int, x2: int) -> Epsilon:
        """Return the exact ``E[x, x2]``."""
        if x == x2:
            return Fraction(0)
        g = int(self.group_of[x])
        return self.inside[g] if g == self.group_of[x2] else self.outward[g]

    def exact_matrix(self) -> ExactMatrix:
        """Return E with exact entries; raise ``InvalidContext`` above 4096 symbols."""
        self._require_matrix_size()
        denominator = 1
        for epsilon in (*self.inside, *self.outward):
            if isinstance(epsilon, Fraction):
                denominator = lcm(denominator, epsilon.denominator)
        inside = _numerators(self.inside, denominator)[self.group_of, None]
        outward = _numerators(self.outward, denominator)[self.group_of, None]
        is_same_group = np.equal.outer(self.group_of, self.group_of)
        numerators = np.where(is_same_group, inside, outward)
        np.fill_diagonal(numerators, 0)
        finite_mask = numerators >= 0
        return ExactMatrix.from_finite(numerators[finite_mask], denominator, finite_mask)

    def closure(self) -> Self:
        """Return the equivalent context with the smallest promises.

        A path from group g to another group and back has a length of outward[g] plus the outward
        promise of the other group. This may be less than inside[g]. Every other path is at least as
        long as the direct entry.
        """
        if len(self.outward) == 1 or self.inside == self.outward:
            return self
        minimum, second_minimum = nsmallest(2, self.outward)
        if second_minimum == inf:
            return self
        inside = list(self.inside)
        for g in np.flatnonzero(self.sizes > 1).tolist():
            return_length = second_minimum if self.outward[g] == minimum else minimum
            inside[g] = min(inside[g], self.outward[g] + return_length)
        if tuple(inside) == self.inside:
            return self
        closure = copy.copy(self)
        closure.inside = tuple(inside)
        for cached_property_name in ("exact_minimum", "_inside_floats"):
            vars(closure).pop(cached_property_name, None)
        return closure

    def simplify(self) -> "GroupedContext":
        """Return the simplest grouped context that makes the same promises."""
        return self

    def _epsilon(self, x: Symbols, x2: Symbols) -> Floats:
        g = self.group_of[x]
        return np.where(g == self.group_of[x2], self._inside_floats[g], self._outward_floats[g])

    @cached_property
    def _inside_floats(self) -> Floats:
        return np.fromiter(map(float, self.inside), np.float64, len(self.inside))

    @cached_property
    def _outward_floats(self) -> Floats:
        return np.fromiter(map(float, self.outward), np.float64, len(self.outward))


# --- the four kinds of grouped contexts -----------------------------------------------------------


class Uniform(GroupedContext):
    """``E[x, x2] = ε`` for every pair: ε-LDP (Acharya et al. 2020, Definition 1).

    >>> Uniform(["yes", "no"], 1.0).matrix()
    array([[0., 1.],
           [1., 0.]])
    """

    kind = "uniform"
    gist = "the same promise for every pair"
    max_recorded_size = 2**26  # the record's size does not depend on the number of symbols
    uniform_epsilon: Epsilon
    """The exact ε for every pair."""

    @shows_call("sf.Uniform(labels, epsilon=1)")
    def __init__(self, domain: DomainLike, epsilon: NumberLike) -> None:
        parsed_domain = as_domain(domain)
        self.uniform_epsilon = positive_epsilon(epsilon)
        super().__init__(parsed_domain, None, (self.uniform_epsilon,), (inf,))

    def to_record(self) -> Json:
        """Return the context as JSON-compatible data."""
        return self._record(epsilon=decimal_text(self.uniform_epsilon))

    @classmethod
    def from_record(cls, record: Fields) -> "Uniform":
        """Return the uniform context that a record describes."""
        fields, domain = cls._read_fields(record, "epsilon")
        return cls(domain, fields["epsilon"])

    def __repr__(self) -> str:
        return f"Uniform({self.domain!r}, epsilon={decimal_text(self.uniform_epsilon)})"


class HighLow(GroupedContext):
    """``E[x, x2] = ε`` for sensitive x and every x2, and ``inf`` for every other x.

    A report may favour a sensitive symbol over any other symbol by odds of at most e^ε. It may
    prove that the answer was a particular symbol that is *not* sensitive.
    Reference: Acharya et al. (2020), Definition 3.

    >>> HighLow(["park", "clinic"], sensitive=["clinic"], epsilon=1).matrix()
    array([[ 0., inf],
           [ 1.,  0.]])
    """

    kind = "high-low"
    gist = "some answers are sensitive"
    is_sensitive: Booleans
    """For each symbol, whether it is sensitive."""
    exact_inside: Epsilon
    """The exact ε promised for sensitive symbols."""

    @shows_call("sf.HighLow(labels, sensitive=labels[:1], epsilon=1)")
    def __init__(self, domain: DomainLike, sensitive: Iterable[Label], epsilon: NumberLike) -> None:
        parsed_domain = as_domain(domain)
        self.exact_inside = positive_epsilon(epsilon)
        self.is_sensitive = _sensitive_mask(parsed_domain, sensitive)
        self.is_sensitive.flags.writeable = False
        first_is_sensitive = bool(self.is_sensitive[0])
        class_of = (self.is_sensitive != first_is_sensitive).astype(np.int64)
        epsilons = [self.exact_inside if first_is_sensitive else inf]
        if class_of.any():
            epsilons.append(inf if first_is_sensitive else self.exact_inside)
        group_of, outward = _merge_classes(class_of, epsilons)
        super().__init__(parsed_domain, group_of, outward, outward)

    @property
    def as_high_low(self) -> "HighLow":
        """The context itself."""
        return self

    @property
    def sensitive(self) -> Symbols:
        """The sensitive symbols (A in Acharya et al. 2020), in domain order."""
        return np.flatnonzero(self.is_sensitive)

    def to_record(self) -> Json:
        """Return the context as JSON-compatible data."""
        epsilon = decimal_text(self.exact_inside)
        return self._record(epsilon=epsilon, sensitive=pack_u32(self.sensitive))

    @classmethod
    def from_record(cls, record: Fields) -> "HighLow":
        """Return the high-low context that a record describes."""
        fields, domain = cls._read_fields(record, "epsilon", "sensitive")
        sensitive = unpack_u32(fields["sensitive"], "sensitive", domain.size)
        return cls(domain, [domain.labels[x] for x in sensitive.tolist()], fields["epsilon"])

    def __repr__(self) -> str:
        epsilon = decimal_text(self.exact_inside)
        return f"HighLow({self.domain!r}, {self.sensitive.size} sensitive, epsilon={epsilon})"


class Blocks(GroupedContext):
    """``E[x, x2] = ε_j`` inside block j, and ``across`` between blocks.

    ``block_of`` gives the block of each symbol: a sequence in domain order (integers or names), or
    a mapping from label to block. Blocks are numbered in order of first appearance. ``epsilon`` is
    one number for all blocks, a mapping from block to ε, or a sequence in block order. By default,
    a report may reveal the block (Acharya et al. 2020, Definition 4). A finite ``across`` also
    protects the block, usually less strongly than the symbol inside it. The labels are the keys of
    the mapping; for a sequence, pass them as ``domain``.

    >>> labels = ["Rue A", "Rue B", "Via C"]
    >>> Blocks(["Paris", "Paris", "Rome"], epsilon=1, domain=labels).domain.labels
    ('Rue A', 'Rue B', 'Via C')
    >>> Blocks({"Rue A": "Paris", "Rue B": "Paris", "Via C": "Rome"}, epsilon=1).matrix()
    array([[ 0.,  1., inf],
           [ 1.,  0., inf],
           [inf, inf,  0.]])
    >>> Blocks([0, 0, 1, 1], {0: 1, 1: 0.5}, across=2).matrix()
    array([[0. , 1. , 2. , 2. ],
           [1. , 0. , 2. , 2. ],
           [2. , 2. , 0. , 0.5],
           [2. , 2. , 0.5, 0. ]])
    """

    kind = "blocks"
    gist = "answers are hidden within their block"
    block_names: tuple[Hashable, ...]
    """The names of the blocks, in order of first appearance."""

    @shows_call("sf.Blocks(block_of, epsilon=1, domain=labels)")
    def __init__(
        self,
        block_of: ClassesLike,
        epsilon: NumberLike | NumbersByClass,
        *,
        across: NumberLike = inf,
        domain: DomainLike | None = None,
    ) -> None:
        blocks = Assignment.parse(block_of, domain, "block")
        inside = _epsilons_inside(blocks, epsilon)
        outward = (positive_epsilon(across, "across"),) * len(inside)
        super().__init__(blocks.domain, blocks.class_of, inside, outward)
        self.block_names = blocks.names
        if self.exact_across != inf:
            self.gist = "one promise inside blocks, one between them"

    @property
    def as_blocks(self) -> "Blocks":
        """The context itself."""
        return self

    @property
    def block_of(self) -> Symbols:
        """The index of each symbol's block; blocks are numbered in order of first appearance."""
        return self.group_of

    @property
    def exact_epsilons(self) -> tuple[Epsilon, ...]:
        """The exact ε inside each block."""
        return self.inside

    @property
    def exact_across(self) -> Epsilon:
        """The exact ε between blocks; ``inf`` if a report may reveal the block."""
        return self.outward[0]

    @property
    def exact_inside(self) -> Epsilon:
        """The exact ε that all blocks share, if nothing is promised between blocks.

        Raises ``ContextMismatch`` if blocks differ in ε or there is a promise between them.
        """
        if not self._has_shared_epsilon or self.exact_across != inf:
            raise ContextMismatch(
                "no single ε describes these blocks: they differ in ε, or there is a promise "
                "between them. Use exact_epsilons and exact_across."
            )
        return self.inside[0]

    def simplify(self) -> GroupedContext:
        """Return the simplest grouped context that makes the same promises.

        If a report may reveal the block, the context is returned unchanged. Otherwise, implied
        promises are included, and the result may be uniform. A block whose ε equals ``across`` is
        split into single symbols.
        """
        if self.exact_across == inf:
            return self
        closure = self.closure()
        epsilons = set(closure._promises)
        if len(epsilons) <= 1:
            return Uniform(self.domain, min(epsilons, default=inf))
        blocks_to_split = set()
        for b, size in enumerate(self.sizes.tolist()):
            if size > 1 and closure.inside[b] == self.exact_across:
                blocks_to_split.add(b)
        if closure is self and not blocks_to_split:
            return self
        block_of: list[int] = []
        epsilon_of_block: dict[int, Epsilon] = {}
        for x, b in enumerate(self.block_of.tolist()):
            block = self.sizes.size + x if b in blocks_to_split else b
            block_of.append(block)
            # If the ε implied by a detour exceeds the largest valid ε, keep the original ε.
            inside = closure.inside[b]
            epsilon_of_block[block] = inside if inside <= LARGEST_EPSILON else self.inside[b]
        return Blocks(block_of, epsilon_of_block, across=self.exact_across, domain=self.domain)

    def to_record(self) -> Json:
        """Return the context as JSON-compatible data.

        The record has ``epsilons`` only if blocks differ in ε, and ``across`` only if it is finite.
        """
        fields: dict[str, Json] = {}
        if self._has_shared_epsilon:
            fields["epsilon"] = decimal_text(self.inside[0])
        else:
            fields["epsilons"] = [decimal_text(epsilon) for epsilon in self.inside]
        if self.exact_across != inf:
            fields["across"] = decimal_text(self.exact_across)
        return self._record(**fields, block_of=pack_u32(self.block_of))

    @classmethod
    def from_record(cls, record: Fields) -> "Blocks":
        """Return the blocks that a record describes."""
        epsilon_field = "epsilons" if "epsilons" in record else "epsilon"
        optional_fields = ["across"] if "across" in record else []
        fields, domain = cls._read_fields(record, epsilon_field, *optional_fields, "block_of")
        block_of = unpack_u32(fields["block_of"], "block_of", domain.size)
        across = fields.get("across", "inf")
        return cls(block_of, fields[epsilon_field], across=across, domain=domain)

    @property
    def _has_shared_epsilon(self) -> bool:
        first_epsilon = self.inside[0]
        return all(epsilon is first_epsilon or epsilon == first_epsilon for epsilon in self.inside)

    def __repr__(self) -> str:
        epsilon = decimal_text(min(self.inside))
        if not self._has_shared_epsilon:
            epsilon += f" to {decimal_text(max(self.inside))}"
        if self.exact_across != inf:
            epsilon += f", across={decimal_text(self.exact_across)}"
        return f"Blocks({len(self.inside)} blocks of {self.domain!r}, epsilon={epsilon})"


class Tiers(GroupedContext):
    """``E[x, x2] = ε_l`` for x in tier l and every x2: ``HighLow`` with any number of levels.

    A report may favour a symbol of tier l over any other symbol by odds of at most e^{ε_l}. If a
    tier's ε is ``inf``, a report may prove that the answer was one of its symbols.

    ``tier_of`` gives the tier of each symbol: a sequence in domain order (integers or names), or a
    mapping from label to tier. ``epsilons`` is a mapping from tier to ε, or a sequence in the order
    in which the tiers first appear.

    >>> tier_of = {"park": "public", "bar": "private", "clinic": "secret"}
    >>> Tiers(tier_of, {"secret": 0.5, "private": 2, "public": "inf"}).matrix()
    array([[0. , inf, inf],
           [2. , 0. , 2. ],
           [0.5, 0.5, 0. ]])
    """

    kind = "tiers"
    gist = "some answers are more sensitive than others"
    tier_of: Symbols
    """The index of each symbol's tier; tiers are numbered in order of first appearance."""
    tier_names: tuple[Hashable, ...]
    """The names of the tiers, in order of first appearance."""
    exact_epsilons: tuple[Epsilon, ...]
    """The exact ε of each tier."""

    @shows_call("sf.Tiers(tier_of, epsilons=epsilon_of_tier, domain=labels)")
    def __init__(
        self, tier_of: ClassesLike, epsilons: NumbersByClass, *, domain: DomainLike | None = None
    ) -> None:
        tiers = Assignment.parse(tier_of, domain, "tier")
        self.tier_of = tiers.class_of
        self.tier_names = tiers.names
        self.exact_epsilons = tiers.parse_epsilons(epsilons, "epsilons")
        group_of, outward = _merge_classes(self.tier_of, self.exact_epsilons)
        super().__init__(tiers.domain, group_of, outward, outward)

    def simplify(self) -> GroupedContext:
        """Return the simplest grouped context that makes the same promises.

        The result is uniform if all tiers have the same ε, and high-low if every ε is either
        ``inf`` or the same finite number.
        """
        if len(self.inside) == 1:
            return Uniform(self.domain, self.inside[0])
        if len(self.inside) == 2 and inf in self.inside:
            epsilon = min(self.inside)
            sensitive = np.flatnonzero(self.group_of == self.inside.index(epsilon))
            labels = [self.domain.labels[x] for x in sensitive.tolist()]
            return HighLow(self.domain, labels, epsilon)
        return self

    def to_record(self) -> Json:
        """Return the context as JSON-compatible data."""
        epsilons = [decimal_text(epsilon) for epsilon in self.exact_epsilons]
        return self._record(epsilons=epsilons, tier_of=pack_u32(self.tier_of))

    @classmethod
    def from_record(cls, record: Fields) -> "Tiers":
        """Return the tiers that a record describes."""
        fields, domain = cls._read_fields(record, "epsilons", "tier_of")
        tier_of = unpack_u32(fields["tier_of"], "tier_of", domain.size)
        return cls(tier_of, fields["epsilons"], domain=domain)

    def __repr__(self) -> str:
        tier_count = len(self.exact_epsilons)
        epsilons = [decimal_text(epsilon) for epsilon in self.exact_epsilons[:_MAX_SHOWN_TIERS]]
        if tier_count > _MAX_SHOWN_TIERS:
            epsilons.append("…")
        return f"Tiers({tier_count} tiers of {self.domain!r}, epsilons=[{', '.join(epsilons)}])"


def symbols_by_group(group_of: Symbols) -> list[Symbols]:
    """Return the symbols of each group, in ascending order.

    >>> symbols_by_group(np.array([0, 1, 0]))
    [array([0, 2]), array([1])]
    """
    order = np.argsort(group_of, kind="stable")
    return np.split(order, np.cumsum(np.bincount(group_of))[:-1])


def ranks_within(group_of: Symbols) -> Symbols:
    """Return the position of each symbol inside its group, from 0.

    >>> ranks_within(np.array([0, 1, 0, 2, 1]))
    array([0, 0, 1, 0, 1])
    """
    sizes = np.bincount(group_of)
    start = np.cumsum(sizes) - sizes  # the first position of each group after sorting by group
    order = np.argsort(group_of, kind="stable")
    rank = np.empty(group_of.size, dtype=np.int64)
    rank[order] = np.arange(group_of.size) - start[group_of[order]]
    return rank


def _merge_classes(
    class_of: Symbols, epsilons: Sequence[Epsilon]
) -> tuple[Symbols | None, tuple[Epsilon, ...]]:
    """Merge classes with equal ε; return the index of each symbol's group, and each group's ε.

    If there is only one group, ``None`` is returned instead of the indices.
    """
    index_of = {epsilon: g for g, epsilon in enumerate(dict.fromkeys(epsilons))}
    if len(index_of) == 1:
        return None, tuple(index_of)
    if len(index_of) == len(epsilons):
        return class_of, tuple(epsilons)
    group_of_class = np.array([index_of[epsilon] for epsilon in epsilons])
    return group_of_class[class_of], tuple(index_of)


def _epsilons_inside(blocks: Assignment, epsilon: object) -> tuple[Epsilon, ...]:
    """Return the ε inside each block; a single number applies to every block."""
    if is_collection(epsilon):
        return blocks.parse_epsilons(epsilon, "epsilon")
    return (positive_epsilon(epsilon),) * len(blocks.names)


def _sensitive_mask(domain: Domain, sensitive: object) -> Booleans:
    """Return, for each symbol, whether its label is in ``sensitive``."""
    require_unmasked(sensitive, "sensitive")
    if not is_collection(sensitive):
        raise InvalidContext("sensitive must be a list of labels. Put a single label in [...].")
    symbols = domain.label_symbols(sensitive, "sensitive")  # type: ignore[arg-type]
    is_sensitive = np.zeros(domain.size, dtype=np.bool_)
    is_sensitive[symbols] = True
    if int(is_sensitive.sum()) != symbols.size:
        raise InvalidContext("sensitive lists a label twice. List each label once.")
    return is_sensitive


def _numerators(epsilons: tuple[Epsilon, ...], denominator: int) -> Symbols:
    """Return the numerators of all ε over a common denominator, with −1 for inf.

    They are Python integers if one of them is 2^62 or more.
    """
    numerators = []
    for epsilon in epsilons:
        is_finite = isinstance(epsilon, Fraction)
        numerators.append(int(epsilon * denominator) if is_finite else -1)
    dtype = np.int64 if max(numerators) < _MAX_INT64_NUMERATOR else object
    return np.array(numerators, dtype=dtype)
