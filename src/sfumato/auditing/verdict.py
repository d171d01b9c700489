"""What an audit found: a bound and a resolution for each pair, and the verdict in words."""

import math
from collections.abc import Hashable
from dataclasses import dataclass
from html import escape

import numpy as np

from sfumato.domains.domain import Label
from sfumato.foundation.arrays import Floats
from sfumato.foundation.printable import printable

__all__ = ["POWER", "Audit", "PairAudit"]

POWER = 0.99
"""The probability with which something at its pair's resolution would have been seen."""

_SHOWN = 10  # rows of a table for people
_LONGEST = 24  # letters of a label that are shown there
_COLUMNS = ("x", "x2", "promised", "at least", "resolution", "event", "seen")
_NOTABLE = 0.01  # the share of rare reports from which on it is worth a sentence


@dataclass(frozen=True)
class PairAudit:
    """What the test says of ``E[x, x2]``.

    ``bound`` is a lower bound on the realised entry, at ``level``; ``promised`` is what it should not exceed.
    ``resolution`` is the least log-ratio on the event that would have been seen to exceed it, with probability 0.99.
    The event has ``event_size`` reports, of which ``event`` names the most telling ones; x sent one of them
    ``hits[0]`` times and x2 ``hits[1]`` times, in Poisson samples of mean size ``samples``. With ``any_other``, one of
    the event's reports stands for all that were too rare to be looked at one by one; it is shown as "(any other)".
    """

    x: int
    x2: int
    promised: float
    bound: float
    resolution: float
    level: float
    suspect: bool
    hits: tuple[int, int]
    samples: tuple[float, float]
    event_size: int
    any_other: bool
    event: tuple[Hashable, ...]

    @property
    def violates(self) -> bool:
        """Whether the realised entry is above the promised one."""
        return self.bound > self.promised

    @property
    def excess(self) -> float:
        """By how much, at least; negative where nothing was shown."""
        return self.bound - self.promised

    @property
    def event_text(self) -> str:
        """How many reports the event has, in words."""
        listed = self.event_size - self.any_other
        named = "1 report" if listed == 1 else f"{listed:,} reports"
        return named if not self.any_other else f"{named} + other" if listed else "any other"

    def in_json(self) -> dict[str, object]:
        """The pair in the words of the command; ``None`` is a resolution that no event could have."""
        return {
            "x": self.x,
            "x2": self.x2,
            "promised": self.promised,
            "bound": self.bound,
            "violates": self.violates,
            "resolution": None if math.isinf(self.resolution) else self.resolution,
            "level": self.level,
            "suspect": self.suspect,
            "hits": list(self.hits),
            "samples": [round(mean, 1) for mean in self.samples],
            "event_size": self.event_size,
            "any_other": self.any_other,
            "event": [str(report) for report in self.event],
        }


@dataclass(frozen=True, repr=False)
class Audit:
    """The outcome of an audit. With probability ``confidence`` none of its bounds is too large.

    ``pairs`` has a row for every ordered pair of the audited ``symbols`` with a finite promise; ``labels`` are what
    these stand for. ``samples`` reports were drawn. ``rare`` is the share of reports that were seen too seldom to be
    judged one by one, for the symbol that has most of them: what a single one gives away, an audit cannot see.
    ``changed`` are the symbols whose reports in the test were not what they had been before it.
    """

    pairs: tuple[PairAudit, ...]
    symbols: tuple[int, ...]
    labels: tuple[Label, ...]
    samples: int
    confidence: float
    rare: float
    changed: tuple[int, ...]

    @property
    def violates(self) -> bool:
        """Whether any pair does."""
        return any(pair.violates for pair in self.pairs)

    @property
    def violations(self) -> tuple[PairAudit, ...]:
        """The pairs whose promise is broken, the worst first."""
        return tuple(pair for pair in self._by_excess() if pair.violates)

    @property
    def bounds(self) -> Floats:
        """Lower bounds on the realised E, by row and column of ``symbols``; ``nan`` where nothing is promised."""
        place = {symbol: i for i, symbol in enumerate(self.symbols)}
        bounds = np.full((len(place), len(place)), np.nan)
        np.fill_diagonal(bounds, 0.0)
        for pair in self.pairs:
            bounds[place[pair.x], place[pair.x2]] = pair.bound
        return bounds

    @property
    def verdict(self) -> str:
        """The outcome in a few sentences."""
        if not self.pairs:
            return "Nothing is promised between these symbols, so nothing can be broken."
        said = self._violation() if self.violates else self._resolved()
        return said + self._seen_together() + self._seen_for_a_time()

    def _violation(self) -> str:
        worst = self.violations[0]
        several = f" {len(self.violations)} ordered pairs do." if len(self.violations) > 1 else ""
        return (
            f"Violates its promise, with confidence {_percent(self.confidence)}: symbol {self._name(worst.x)} against "
            f"{self._name(worst.x2)} has ε of at least {worst.bound:.4g}, where {worst.promised:.4g} is promised. It "
            f"shows on an event ({worst.event_text}) that was seen {worst.hits[0]:,} times of {worst.x} and "
            f"{worst.hits[1]:,} times of {worst.x2}.{several}"
        )

    def _resolved(self) -> str:
        said = "No violation found; this is no proof."
        seen = [pair for pair in self.pairs if math.isfinite(pair.resolution)]
        if seen:
            least = max(seen, key=lambda pair: pair.resolution - pair.promised)
            said += (
                f" On the events tested, anything above ε = {least.resolution:.4g} where {least.promised:.4g} is "
                f"promised would have been seen with probability {_percent(POWER)}: so it is for symbol "
                f"{self._name(least.x)} against {self._name(least.x2)}"
            ) + (", and other pairs show more." if len(seen) > 1 else ".")
        if len(seen) < len(self.pairs):
            blind = len(self.pairs) - len(seen)
            said += f" For {blind:,} of {len(self.pairs):,} ordered pairs, no excess could have been seen on the event."
        return said

    def _by_excess(self) -> list[PairAudit]:
        return sorted(self.pairs, key=lambda pair: -pair.excess)

    def _seen_together(self) -> str:
        if self.rare <= _NOTABLE:
            return ""
        floored = math.floor(1000 * self.rare) / 1000  # "100 %" would say that nothing was known
        return (
            f" But {_percent(floored)} of the reports, for one symbol at least, are too rare to be judged one by one: "
            "they were judged together, and whatever else they give away stays unseen. Audit a coarser report, or take "
            "more samples."
        )

    def _seen_for_a_time(self) -> str:
        if not self.changed:
            return ""
        named = ", ".join(map(self._name, self.changed[:_SHOWN])) + (
            ", …" if len(self.changed) > _SHOWN else ""
        )
        return (
            f" The reports of {'symbol' if len(self.changed) == 1 else 'symbols'} {named} changed during the audit: "
            "what it says is about its own time, and may not hold at another."
        )

    def _name(self, symbol: int) -> str:
        """The symbol with what it stands for, where that is not the same."""
        label = self.labels[self.symbols.index(symbol)]
        text = printable(str(label))
        if len(text) > _LONGEST:
            text = f"{text[: _LONGEST - 1]}…"
        return str(symbol) if label == symbol else f"{symbol} ({text})"

    def in_json(self) -> dict[str, object]:
        """The outcome in the words of the command."""
        return {
            "violates": self.violates,
            "verdict": self.verdict,
            "confidence": self.confidence,
            "samples": self.samples,
            "symbols": list(self.symbols),
            "labels": list(self.labels),
            "rare": self.rare,
            "changed": list(self.changed),
            "pairs": [pair.in_json() for pair in self.pairs],
        }

    def __str__(self) -> str:
        if not self.pairs:
            return self.verdict
        rows = [_COLUMNS, *self._rows()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.rjust, row, widths)) for row in rows]
        more = len(self.pairs) - _SHOWN
        lines += (
            [f"… and {more:,} ordered pairs that are further from their promise"]
            if more > 0
            else []
        )
        return "\n".join([*lines, "", f"{self.samples:,} samples. {self.verdict}"])

    def __repr__(self) -> str:
        found = "violates" if self.violates else "no violation found"
        return f"Audit({found}, {len(self.pairs):,} ordered pairs, {self.samples:,} samples)"

    def _repr_html_(self) -> str:
        """What notebooks show: the verdict, and the pairs that come closest to their promise."""
        if not self.pairs:
            return f"<p>{escape(self.verdict)}</p>"
        head = "".join(f'<th scope="col">{name}</th>' for name in _COLUMNS)
        rows = "".join(
            f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>"
            for row in self._rows()
        )
        found = "Violates" if self.violates else "No violation found"
        return (
            f"<p><b>{found}</b>, {self.samples:,} samples</p><p>{escape(self.verdict)}</p>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        )

    def _rows(self) -> list[tuple[str, ...]]:
        """The pairs that come closest to their promise, or exceed it most."""
        return [
            (
                self._name(pair.x),
                self._name(pair.x2),
                f"{pair.promised:.4g}",
                f"{pair.bound:.4g}",
                "–" if math.isinf(pair.resolution) else f"{pair.resolution:.4g}",
                pair.event_text,
                f"{pair.hits[0]:,} : {pair.hits[1]:,}",
            )
            for pair in self._by_excess()[:_SHOWN]
        ]


def _percent(share: float) -> str:
    return f"{100 * share:.10g} %"
