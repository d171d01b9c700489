"""Answers by their names, as HTML: quoted, escaped, cut where they are long, and counted where they are many."""

from dataclasses import dataclass
from html import escape

import numpy as np

from sfumato.domains import Domain, GridDomain, IntegerDomain, Label
from sfumato.foundation.arrays import Symbols
from sfumato.foundation.formatting import format_count
from sfumato.pages.style import LONGEST_LABEL, short_label

__all__ = ["MOST_NAMED", "Names", "collected_text"]

MOST_NAMED = 12


@dataclass(frozen=True, eq=False)
class Names:
    """The names of all answers of a domain, or of those of one block: symbol x of the block is ``symbols[x]``."""

    domain: Domain
    symbols: Symbols | None = None

    def inside(self, symbols: Symbols) -> "Names":
        """The names of some of these answers."""
        return Names(self.domain, symbols if self.symbols is None else self.symbols[symbols])

    @property
    def anyone(self) -> str:
        """Any of these answers."""
        return "any answer" if self.symbols is None else self.listed(np.arange(self.symbols.size))

    @property
    def others(self) -> str:
        """What an answer is compared with."""
        return "any other answer" if self.symbols is None else "any other answer of the block"

    def one(self, x: int) -> str:
        """The name of one answer."""
        return _quoted(self.domain.labels[x if self.symbols is None else int(self.symbols[x])])

    def listed(self, symbols: Symbols) -> str:
        """The names of some answers, the first ones if they are many."""
        named = ", ".join(self.one(int(x)) for x in symbols[:MOST_NAMED])
        more = symbols.size - MOST_NAMED
        return f"{named} and {format_count(more)} more" if more > 0 else named


def collected_text(domain: Domain) -> str:
    r"""What is asked for, in a sentence of HTML.

    >>> collected_text(Domain(["yes", "no"]))
    'One of 2 answers: “<bdi>yes</bdi>”, “<bdi>no</bdi>”.'
    >>> collected_text(IntegerDomain(100, start=18))
    'A whole number from 18 to 117.'
    """
    other = (
        ""
        if domain.other is None
        else f" Whatever else somebody answers counts as {_quoted(domain.other)}."
    )
    if isinstance(domain, IntegerDomain):
        return f"A whole number from {domain.labels[0]} to {domain.labels[-1]}."
    if isinstance(domain, GridDomain):
        edges = {name: str(edge).replace("-", "−") for name, edge in domain.record().items()}
        return (
            f"One of {format_count(domain.cells)} cells of a map, each {edges['step']}° wide and high and named by its "
            f"south-western corner: latitudes {edges['south']}° to {edges['north']}°, longitudes {edges['west']}° to "
            f"{edges['east']}°.{other}"
        )
    if domain.size == 1:
        return f"One answer: {_quoted(domain.labels[0])}."
    return f"One of {format_count(domain.size)} answers: {Names(domain).listed(np.arange(domain.size))}.{other}"


def _quoted(label: Label) -> str:
    """A label between quotation marks; its own direction of writing must not turn the sentence around."""
    return f"“<bdi>{escape(short_label(label, LONGEST_LABEL))}</bdi>”"
