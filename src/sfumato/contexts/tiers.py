"""Tiers: every symbol owes all others one promise, some a stronger one than others."""

from collections.abc import Hashable

from sfumato.contexts.assignment import Assignment
from sfumato.contexts.context import Context
from sfumato.contexts.exact import ExactMatrix
from sfumato.contexts.groups import Groups
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.foundation.canonical import Json, decimal_text, packed_u32
from sfumato.randomness.odds import Epsilon

__all__ = ["Tiers"]


class Tiers(Context):
    """``E[x, x2] = ε_l`` for x in tier l and every x2: high-low with more than two levels.

    No report may speak for a symbol of tier l by more than odds of e^{ε_l} against anything else. A tier
    of ``inf`` is free: a report may prove that the answer was one of its symbols.

    ``tier_of`` gives each symbol its tier: a sequence in domain order (integers or names), or a mapping
    from label to tier. ``epsilons`` gives each tier its ε: a mapping from tier to ε, or a sequence in the
    order of tiers, which is that of their first label.

    >>> tier_of = {"park": "public", "bar": "private", "clinic": "secret"}
    >>> Tiers(tier_of, {"secret": 0.5, "private": 2, "public": "inf"}).matrix()
    array([[0. , inf, inf],
           [2. , 0. , 2. ],
           [0.5, 0.5, 0. ]])
    """

    def __init__(self, tier_of: object, epsilons: object, *, domain: object = None) -> None:
        tiers = Assignment.read(tier_of, domain, "tier")
        super().__init__(tiers.domain)
        self._tier_of, self._tier_names = tiers.class_of, tiers.names
        self._epsilons = tiers.epsilons(epsilons, "epsilons")
        self._groups = Groups.of_rows(self._tier_of, self._epsilons)

    @property
    def tier_of(self) -> Symbols:
        """The tier of each symbol, numbered in the order of first labels."""
        return self._tier_of

    @property
    def tier_names(self) -> tuple[Hashable, ...]:
        """The names of the tiers as they were given."""
        return self._tier_names

    @property
    def groups(self) -> Groups:
        """The tiers; those of equal ε are one group."""
        return self._groups

    @property
    def exact_epsilons(self) -> tuple[Epsilon, ...]:
        """The ε of each tier, exactly."""
        return self._epsilons

    @property
    def exact_smallest(self) -> Epsilon:
        """The least ε of a tier; ``inf`` if all are free or there is no pair."""
        return self._groups.exact_smallest

    def exact_epsilon(self, x: int, x2: int) -> Epsilon:
        """The ε of the tier of x, 0 on the diagonal."""
        return self._groups.exact_epsilon(x, x2)

    def exact_matrix(self) -> ExactMatrix:
        """E written out exactly; refused above 4096 symbols."""
        self._refuse_large("written out")
        return self._groups.exact_matrix()

    def closure(self) -> "Tiers":
        """Itself: the first step of any path out of x costs ε of x's tier, as much as the direct way."""
        return self

    def record(self) -> Json:
        """The context as plain data."""
        return {
            "kind": "tiers",
            "domain": self.domain.record(),
            "epsilons": [decimal_text(epsilon) for epsilon in self._epsilons],
            "tier_of": packed_u32(self._tier_of),
        }

    def _epsilon(self, x: Symbols, x2: Symbols) -> Floats:
        return self._groups.epsilon(x, x2)

    def __repr__(self) -> str:
        shown = ", ".join(decimal_text(epsilon) for epsilon in self._epsilons[:4])
        more = ", …" if len(self._epsilons) > 4 else ""
        return f"Tiers({len(self._epsilons)} tiers of {self.domain!r}, epsilons=[{shown}{more}])"
