"""What is tested: the promises of a context, an event for each, and the few that look most like being broken."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.auditing.events import Event, chosen_event, frequent_reports
from sfumato.auditing.sampling import Histogram, table
from sfumato.contexts import Context
from sfumato.errors import InvalidContext
from sfumato.foundation.arrays import Floats, Symbols

__all__ = ["Choice", "PromisedPair", "choose", "promised_pairs"]

_OFTEN = 5  # how often some symbol must have sent a report when reports were ordered, for its place to mean anything


@dataclass(frozen=True)
class PromisedPair:
    """An ordered pair of symbols with a finite promise; ``rows`` are its places among the audited symbols."""

    x: int
    x2: int
    rows: tuple[int, int]
    promised: float


@dataclass(frozen=True, eq=False)
class Choice:
    """What two parts of the samples lead to, for a test that sees neither of them again.

    ``events`` has one event for each pair, of columns of ``reports`` and the one after them, which is any other report.
    ``suspicions`` says by how many standard errors each promise seemed broken. ``suspects`` are the places of the pairs
    that looked worst. ``counts`` is the table that all of this was chosen on.
    ``rare`` is the share of reports that were seen too seldom to be known one by one, of the symbol that has most.
    """

    reports: list[Hashable]
    events: list[Event]
    suspicions: Floats
    suspects: Symbols
    counts: Symbols
    rare: float

    @property
    def size(self) -> int:
        """How many samples of each symbol this was chosen on."""
        return int(self.counts[0].sum())


def promised_pairs(context: Context, symbols: Symbols) -> list[PromisedPair]:
    """All ordered pairs of these symbols that the context promises something for, each direction by itself.

    What is promised by way of a third symbol is promised, also where that symbol is not audited.
    """
    E = _closed(context).epsilon(symbols[:, None], symbols[None, :])
    finite = np.argwhere(np.isfinite(E) & ~np.eye(symbols.size, dtype=bool)).tolist()
    return [
        PromisedPair(int(symbols[i]), int(symbols[j]), (i, j), float(E[i, j])) for i, j in finite
    ]


def choose(
    pairs: Sequence[PromisedPair],
    ordering: Sequence[Histogram],
    choosing: Sequence[Histogram],
    suspects: int,
) -> Choice:
    """Events and suspects, from the reports of each symbol in two parts of the samples."""
    reports = frequent_reports(ordering)
    first, second = table(ordering, reports), table(choosing, reports)
    events = [chosen_event(_rows(first, pair), _rows(second, pair)) for pair in pairs]
    suspicions = np.array(
        [event.suspicion(pair.promised) for event, pair in zip(events, pairs, strict=True)]
    )
    worst = np.argsort(-suspicions, kind="stable")[:suspects]
    return Choice(reports, events, suspicions, worst, second, _rare(first, second))


def _closed(context: Context) -> Context:
    """The context with all that follows from it; as it stands, where that would be too large to write out."""
    try:
        return context.closure()
    except InvalidContext:
        return context


def _rare(ordering: Symbols, choosing: Symbols) -> float:
    """The largest share, over the symbols, of reports that none of them had sent often. The last column is a crowd."""
    known = choosing[:, :-1][:, ordering[:, :-1].max(axis=0, initial=0) >= _OFTEN].sum(axis=1)
    return float((1 - known / choosing.sum(axis=1)).max())


def _rows(counts: Symbols, pair: PromisedPair) -> tuple[Symbols, Symbols]:
    x, x2 = pair.rows
    return counts[x], counts[x2]
