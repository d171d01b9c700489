"""What an audit found: a bound and a resolution for each pair, and the verdict in words."""

import math
from collections.abc import Hashable
from dataclasses import dataclass
from html import escape

import numpy as np

from sfumato.arrays import Floats

__all__ = ["POWER", "Audit", "PairAudit"]

POWER = 0.99
"""The probability with which something at its pair's resolution would have been seen."""

_SHOWN = 10  # rows of a table for people
_NOTABLE = 0.01  # the share of rare reports from which on it is worth a sentence


@dataclass(frozen=True)
class PairAudit:
    """What the test says of ``E[x, x2]``.

    ``bound`` is a lower bound on the realised entry, at ``level``; ``promised`` is what it should not exceed.
    ``resolution`` is the least log-ratio on the event that would have been seen to exceed it, with probability 0.99.
    The event has ``event_size`` reports, of which ``event`` names the most telling ones; x sent one of them
    ``hits[0]`` times and x2 ``hits[1]`` times, in Poisson samples of mean size ``samples``.
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
    event: tuple[Hashable, ...]

    @property
    def violates(self) -> bool:
        """Whether the realised entry is above the promised one."""
        return self.bound > self.promised

    @property
    def excess(self) -> float:
        """By how much, at least; negative where nothing was shown."""
        return self.bound - self.promised

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
            "event": [str(report) for report in self.event],
        }


@dataclass(frozen=True, repr=False)
class Audit:
    """The outcome of an audit. With probability ``confidence`` none of its bounds is too large.

    ``pairs`` has a row for every ordered pair of the audited ``symbols`` with a finite promise. ``samples`` reports
    were drawn. ``rare`` is the share of reports that were seen too seldom to be judged: what they give away, an audit
    cannot see.
    """

    pairs: tuple[PairAudit, ...]
    symbols: tuple[int, ...]
    samples: int
    confidence: float
    rare: float

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
        if self.rare > _NOTABLE:
            said += (
                f" But {self._percent(self.rare)} of the reports are too rare to be judged: whatever they give away "
                "stays unseen. Audit a coarser report, or take more samples."
            )
        return said

    def _violation(self) -> str:
        worst = self.violations[0]
        several = f" {len(self.violations)} ordered pairs do." if len(self.violations) > 1 else ""
        return (
            f"Violates its promise, with confidence {self._percent(self.confidence)}: symbol {worst.x} against "
            f"{worst.x2} has ε of at least {worst.bound:.4g}, where {worst.promised:.4g} is promised. It shows on an "
            f"event of {_reports(worst.event_size)}, seen {worst.hits[0]:,} times of {worst.x} and {worst.hits[1]:,} "
            f"times of {worst.x2}.{several}"
        )

    def _resolved(self) -> str:
        said = "No violation found; this is no proof."
        seen = [pair for pair in self.pairs if math.isfinite(pair.resolution)]
        if seen:
            least = max(seen, key=lambda pair: pair.resolution - pair.promised)
            said += (
                f" On the events tested, anything above ε = {least.resolution:.4g} where {least.promised:.4g} is "
                f"promised would have been seen with probability {self._percent(POWER)}: so it is for symbol {least.x} "
                f"against {least.x2}, and other pairs show more."
            )
        if len(seen) < len(self.pairs):
            blind = len(self.pairs) - len(seen)
            said += f" For {blind:,} of {len(self.pairs):,} ordered pairs, no excess could have been seen on the event."
        return said

    def _by_excess(self) -> list[PairAudit]:
        return sorted(self.pairs, key=lambda pair: -pair.excess)

    @staticmethod
    def _percent(share: float) -> str:
        return f"{100 * share:.3g} %"

    def in_json(self) -> dict[str, object]:
        """The outcome in the words of the command."""
        return {
            "violates": self.violates,
            "verdict": self.verdict,
            "confidence": self.confidence,
            "samples": self.samples,
            "symbols": list(self.symbols),
            "rare": self.rare,
            "pairs": [pair.in_json() for pair in self.pairs],
        }

    def __str__(self) -> str:
        if not self.pairs:
            return self.verdict
        lines = [f"{'x':>5} {'x2':>5} {'promised':>9} {'at least':>9} {'resolution':>11} {'event':>12} {'seen':>17}"]
        lines += [f"{a:>5} {b:>5} {c:>9} {d:>9} {e:>11} {f:>12} {g:>17}" for a, b, c, d, e, f, g in self._rows()]
        more = len(self.pairs) - _SHOWN
        lines += [f"… and {more:,} ordered pairs that are further from their promise"] if more > 0 else []
        return "\n".join([*lines, "", f"{self.samples:,} samples. {self.verdict}"])

    def __repr__(self) -> str:
        found = "violates" if self.violates else "no violation found"
        return f"Audit({found}, {len(self.pairs):,} ordered pairs, {self.samples:,} samples)"

    def _repr_html_(self) -> str:
        """What notebooks show: the verdict, and the pairs that come closest to their promise."""
        if not self.pairs:
            return f"<p>{escape(self.verdict)}</p>"
        names = ("x", "x2", "promised", "at least", "resolution", "event", "seen")
        head = "".join(f'<th scope="col">{name}</th>' for name in names)
        rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in self._rows())
        found = "Violates" if self.violates else "No violation found"
        return (
            f"<p><b>{found}</b>, {self.samples:,} samples</p><p>{escape(self.verdict)}</p>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        )

    def _rows(self) -> list[tuple[str, ...]]:
        """The pairs that come closest to their promise, or exceed it most."""
        return [
            (
                str(pair.x),
                str(pair.x2),
                f"{pair.promised:.4g}",
                f"{pair.bound:.4g}",
                "–" if math.isinf(pair.resolution) else f"{pair.resolution:.4g}",
                _reports(pair.event_size),
                f"{pair.hits[0]:,} : {pair.hits[1]:,}",
            )
            for pair in self._by_excess()[:_SHOWN]
        ]


def _reports(count: int) -> str:
    return "1 report" if count == 1 else f"{count:,} reports"
