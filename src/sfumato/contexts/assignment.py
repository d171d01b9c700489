"""Assignments: each symbol of a domain in one named class (a block, a tier), and one ε for each class."""

import unicodedata
from collections.abc import Hashable, Iterable, Mapping, Set
from dataclasses import dataclass

import numpy as np

from sfumato.domains import Domain, as_domain
from sfumato.errors import ContextMismatch, InvalidContext
from sfumato.foundation.arrays import Symbols
from sfumato.randomness.odds import Epsilon, positive_epsilon

__all__ = ["Assignment", "is_collection"]


@dataclass(frozen=True, eq=False)
class Assignment:
    """Which class each symbol is in. Classes are numbered in the order of their first label.

    ``noun`` is the word for a class in messages.

    >>> found = Assignment.read({"Rue A": "Paris", "Via C": "Rome", "Rue B": "Paris"}, None, "block")
    >>> found.class_of, found.names
    (array([0, 1, 0]), ('Paris', 'Rome'))
    """

    domain: Domain
    class_of: Symbols
    names: tuple[Hashable, ...]
    noun: str

    @classmethod
    def read(cls, given: object, domain: object, noun: str) -> "Assignment":
        """From a sequence in domain order (integers or names), or a mapping from label to class."""
        names, found = _names_and_domain(given, domain, noun)
        number: dict[Hashable, int] = {}
        class_of = np.fromiter(
            (number.setdefault(name, len(number)) for name in names), np.int64, len(names)
        )
        class_of.flags.writeable = False
        return cls(found, class_of, tuple(number), noun)

    def epsilons(self, given: object, name: str) -> tuple[Epsilon, ...]:
        """One positive ε (or inf) for each class: from a sequence in the order of classes, or a mapping from names."""
        listed = self.one_each(given, name, "an ε")
        return tuple(
            positive_epsilon(epsilon, f"{name} of {self.noun} {class_name!r}")
            for epsilon, class_name in zip(listed, self.names, strict=True)
        )

    def one_each(self, given: object, name: str, what: str) -> list[object]:
        """What is given for each class, in the order of classes."""
        if isinstance(given, Mapping):
            return self._from_mapping(given, name, what)
        if not isinstance(given, Iterable) or isinstance(given, str | bytes | Set):
            raise InvalidContext(
                f"{name} must be a sequence in the order of {self.noun}s, or a mapping from {self.noun} to {what}."
            )
        listed = list(given)
        if len(listed) != len(self.names):
            raise ContextMismatch(
                f"{name} must have an entry for each of the {len(self.names)} {self.noun}s; it has {len(listed)}."
            )
        if self._may_be_misread():
            raise InvalidContext(
                f"{name} could be read two ways: the {self.noun}s are named by integers, but their first labels come "
                f"in another order. Pass a mapping from {self.noun} to {what}."
            )
        return listed

    def _from_mapping(self, given: Mapping[object, object], name: str, what: str) -> list[object]:
        by_name = {_name(key, self.noun): value for key, value in given.items()}
        if len(by_name) != len(given):
            raise InvalidContext(
                f"{name} must name each {self.noun} once; two names are one in Unicode's NFC form."
            )
        missing = next((one for one in self.names if one not in by_name), None)
        if missing is not None:
            raise ContextMismatch(
                f"{name} must give every {self.noun} {what}; {missing!r} has none."
            )
        strange = next((one for one in by_name if one not in set(self.names)), None)
        if strange is not None:
            raise ContextMismatch(
                f"{name} names {strange!r}, a {self.noun} that no label is in. Remove or correct it."
            )
        return [by_name[one] for one in self.names]

    def _may_be_misread(self) -> bool:
        """Whether an entry for each class, in order, could be taken for the order of integers that name them."""
        integers = [name for name in self.names if isinstance(name, int)]
        return len(integers) == len(self.names) and integers != sorted(integers)


def is_collection(given: object) -> bool:
    """Whether several things are meant and not one number, however it is written."""
    return isinstance(given, Iterable) and not isinstance(given, str | bytes)


def _names_and_domain(given: object, domain: object, noun: str) -> tuple[list[Hashable], Domain]:
    if isinstance(given, Mapping):
        found = as_domain(list(given) if domain is None else domain)
        symbols = found.label_symbols(given, f"{noun}_of")
        if len(given) != found.size or np.unique(symbols).size != found.size:
            raise ContextMismatch(
                f"{noun}_of must give each of the {found.size} labels of the domain one {noun}; it names "
                f"{np.unique(symbols).size} of them in {len(given)} entries."
            )
        by_symbol = dict(zip(symbols.tolist(), given.values(), strict=True))
        return [_name(by_symbol[x], noun) for x in range(found.size)], found
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InvalidContext(
            f"{noun}_of must be a sequence in domain order, or a mapping from label to {noun}."
        )
    names = [_name(name, noun) for name in given]
    found = as_domain(len(names) if domain is None else domain)
    if found.size != len(names):
        raise ContextMismatch(
            f"{noun}_of has {len(names)} entries; the domain has {found.size} labels."
        )
    return names, found


def _name(name: object, noun: str) -> Hashable:
    if isinstance(name, np.integer):
        return int(name)
    if isinstance(name, bool) or not isinstance(name, int | str):
        raise InvalidContext(
            f"a {noun} is named by text or an integer; found {type(name).__name__}."
        )
    # Two spellings of one name must not become two classes, which nothing would hide from each other.
    return unicodedata.normalize("NFC", name) if isinstance(name, str) else name
