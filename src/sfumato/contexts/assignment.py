"""Assign each symbol of a domain to one named class, such as a block or a tier."""

import unicodedata
from collections.abc import Hashable, Mapping, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.domains import Domain, DomainLike, as_domain
from sfumato.errors import ContextMismatch, InvalidContext
from sfumato.foundation.arrays import Symbols
from sfumato.foundation.numpy_values import is_collection, require_unmasked
from sfumato.randomness import Epsilon, positive_epsilon

__all__ = ["Assignment"]


@dataclass(frozen=True, eq=False)
class Assignment:
    """The class index of each symbol, and the names of the classes.

    Classes are numbered in order of first appearance. ``noun`` is the word for a class in error
    messages, such as "block".

    >>> city_of = {"Rue A": "Paris", "Via C": "Rome", "Rue B": "Paris"}
    >>> cities = Assignment.parse(city_of, None, "block")
    >>> cities.class_of, cities.names
    (array([0, 1, 0]), ('Paris', 'Rome'))
    """

    domain: Domain
    class_of: Symbols
    names: tuple[Hashable, ...]
    noun: str

    @classmethod
    def parse(cls, classes: object, domain: DomainLike | None, noun: str) -> "Assignment":
        """Parse a sequence of class names in domain order, or a mapping from label to class name.

        Class names are text or integers. If ``domain`` is ``None``, the labels are the keys of the
        mapping or, for a sequence, the integers from 0.
        """
        if isinstance(classes, Mapping):
            class_names, parsed_domain = _parse_mapping(classes, domain, noun)
        else:
            class_names, parsed_domain = _parse_sequence(classes, domain, noun)
        index_of: dict[Hashable, int] = {}
        indices = (index_of.setdefault(name, len(index_of)) for name in class_names)
        class_of = np.fromiter(indices, np.int64, len(class_names))
        class_of.flags.writeable = False
        return cls(parsed_domain, class_of, tuple(index_of), noun)

    def parse_epsilons(self, values: object, name: str) -> tuple[Epsilon, ...]:
        """Return one positive ε (or inf) for each class, in class order.

        The arguments are the same as for ``order_values``.
        """
        ordered_values = self.order_values(values, name, "an ε")
        epsilons = []
        for class_name, epsilon in zip(self.names, ordered_values, strict=True):
            epsilons.append(positive_epsilon(epsilon, f"{name} of {self.noun} {class_name!r}"))
        return tuple(epsilons)

    def order_values(self, values: object, name: str, value_noun: str) -> list[object]:
        """Return one value for each class, in class order.

        ``values`` is a sequence in class order, or a mapping from class name to value. Error
        messages refer to this argument as ``name`` and to a single value as ``value_noun``.
        """
        require_unmasked(values, name)
        if isinstance(values, Mapping):
            return self._order_by_name(values, name, value_noun)
        if not is_collection(values) or isinstance(values, Set):
            raise InvalidContext(
                f"{name} must be a sequence in {self.noun} order, or a mapping from "
                f"{self.noun} to {value_noun}."
            )
        ordered_values = list(values)  # type: ignore[call-overload]
        if len(ordered_values) != len(self.names):
            raise ContextMismatch(
                f"{name} must have one entry for each of the {len(self.names)} {self.noun}s; "
                f"got {len(ordered_values)}."
            )
        if self._is_order_ambiguous():
            raise InvalidContext(
                f"the order of {name} is ambiguous: the {self.noun}s have integer names that do "
                f"not appear in ascending order. Pass a mapping from {self.noun} to {value_noun}."
            )
        return ordered_values

    def _order_by_name(
        self, values: Mapping[object, object], name: str, value_noun: str
    ) -> list[object]:
        value_by_name: dict[Hashable, object] = {}
        for key, value in values.items():
            value_by_name[_normalize_class_name(key, self.noun)] = value
        if len(value_by_name) != len(values):
            raise InvalidContext(
                f"{name} must contain each {self.noun} once; two names are the same after "
                "Unicode (NFC) normalization."
            )
        for class_name in self.names:
            if class_name not in value_by_name:
                raise ContextMismatch(
                    f"{name} must contain {value_noun} for every {self.noun}; {class_name!r} has "
                    "none."
                )
        if len(value_by_name) > len(self.names):
            unknown_class = next(iter(value_by_name.keys() - set(self.names)))
            raise ContextMismatch(
                f"{name} contains {unknown_class!r}, but no label belongs to that {self.noun}. "
                "Remove or correct it."
            )
        return [value_by_name[class_name] for class_name in self.names]

    def _is_order_ambiguous(self) -> bool:
        """Return whether all class names are integers, but not in ascending order."""
        integer_names = [name for name in self.names if isinstance(name, int)]
        has_only_integers = len(integer_names) == len(self.names)
        return has_only_integers and integer_names != sorted(integer_names)


def _parse_mapping(
    class_of_label: Mapping[Any, object], domain: DomainLike | None, noun: str
) -> tuple[list[Hashable], Domain]:
    """Return the class name of each symbol, and the domain."""
    parsed_domain = as_domain(list(class_of_label) if domain is None else domain)
    size = parsed_domain.size
    symbols = parsed_domain.label_symbols(class_of_label, f"{noun}_of")
    distinct_count = np.unique(symbols).size
    if len(class_of_label) != size or distinct_count != size:
        raise ContextMismatch(
            f"{noun}_of must contain each of the {size} labels of the domain once; it "
            f"contains {distinct_count} of them in {len(class_of_label)} entries."
        )
    class_by_symbol = dict(zip(symbols.tolist(), class_of_label.values(), strict=True))
    return [_normalize_class_name(class_by_symbol[x], noun) for x in range(size)], parsed_domain


def _parse_sequence(
    classes: object, domain: DomainLike | None, noun: str
) -> tuple[list[Hashable], Domain]:
    """Return the class name of each symbol, and the domain."""
    require_unmasked(classes, f"{noun}_of")
    if not is_collection(classes):
        raise InvalidContext(
            f"{noun}_of must be a sequence in domain order, or a mapping from label to {noun}."
        )
    names = [_normalize_class_name(name, noun) for name in classes]  # type: ignore[attr-defined]
    parsed_domain = as_domain(len(names) if domain is None else domain)
    if parsed_domain.size != len(names):
        raise ContextMismatch(
            f"{noun}_of has {len(names)} entries; the domain has {parsed_domain.size} labels."
        )
    return names, parsed_domain


def _normalize_class_name(name: object, noun: str) -> Hashable:
    if isinstance(name, np.integer):
        return int(name)
    if isinstance(name, str):
        # Different Unicode forms of the same name must not become different classes.
        return unicodedata.normalize("NFC", name)
    if isinstance(name, bool) or not isinstance(name, int):
        raise InvalidContext(
            f"a {noun} name must be text or an integer; got {type(name).__name__}."
        )
    return name
