"""Domains: all labels a question can be answered with, in order (value → label → symbol)."""

import numpy as np

from sfumato.domains.domain import Domain, Label
from sfumato.domains.grid import GridDomain
from sfumato.domains.h3_cells import H3Domain
from sfumato.domains.integers import IntegerDomain

__all__ = ["Domain", "GridDomain", "H3Domain", "IntegerDomain", "Label", "as_domain"]


def as_domain(domain: object) -> Domain:
    """A domain from a domain, a number of symbols, or a sequence of labels.

    >>> as_domain(3).labels, as_domain(["yes", "no"]).labels
    (range(0, 3), ('yes', 'no'))
    """
    if isinstance(domain, Domain):
        return domain
    if isinstance(domain, int | np.integer) and not isinstance(domain, bool):
        return IntegerDomain(int(domain))
    return Domain(domain)
