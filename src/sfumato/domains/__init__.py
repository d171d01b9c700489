"""Domains: the possible answers to a question, in order, as labels and as symbols."""

from collections.abc import Iterable, Mapping

import numpy as np

from sfumato.domains.domain import (
    Domain,
    Label,
    SymbolOrLabel,
    all_in_range,
    describe_kind,
    require_symbols,
)
from sfumato.domains.grid import GridDomain
from sfumato.domains.h3_cells import H3Domain
from sfumato.domains.integers import IntegerDomain
from sfumato.errors import InvalidSurvey
from sfumato.foundation.canonical import record_kind, require_canonical

__all__ = [
    "DOMAIN_KINDS",
    "Domain",
    "DomainLike",
    "GridDomain",
    "H3Domain",
    "IntegerDomain",
    "Label",
    "SymbolOrLabel",
    "all_in_range",
    "as_domain",
    "describe_kind",
    "domain_from_record",
    "require_symbols",
]

_DOMAIN_CLASSES: tuple[type[Domain], ...] = (Domain, IntegerDomain, GridDomain, H3Domain)

DOMAIN_KINDS: Mapping[str, type[Domain]] = {cls.kind: cls for cls in _DOMAIN_CLASSES}
"""The domain classes, by kind."""

DomainLike = Domain | Iterable[Label] | int
"""A domain, its labels in order, or a number of symbols (their labels are the integers from 0)."""


def as_domain(domain: DomainLike) -> Domain:
    """Return a domain unchanged; convert a symbol count or a sequence of labels to a domain.

    >>> as_domain(3).labels, as_domain(["yes", "no"]).labels
    (range(0, 3), ('yes', 'no'))
    """
    if isinstance(domain, Domain):
        return domain
    if isinstance(domain, int | np.integer) and not isinstance(domain, bool):
        return IntegerDomain(int(domain))
    return Domain(domain)  # type: ignore[arg-type]  # rejects booleans


def domain_from_record(record: object) -> Domain:
    """Return the domain stored in a record, which may be of any kind."""
    kind = record_kind(record, "promise.context.domain")
    if kind not in DOMAIN_KINDS:
        raise InvalidSurvey(f"domain.kind {kind!r} is not supported by this version.")
    return require_canonical(DOMAIN_KINDS[kind].from_record(record), record, "domain")
