"""The result of an audit: a bound and a resolution for each pair, and the verdict in words."""

import math
from collections.abc import Hashable
from dataclasses import dataclass
from html import escape

import numpy as np

from sfumato.auditing.sequences import SequenceTest
from sfumato.domains.domain import Label
from sfumato.foundation.arrays import Floats
from sfumato.foundation.formatting import align_table, format_percent, printable
from sfumato.foundation.notebook import FieldsView

POWER = 0.99
"""The probability that a log-ratio at a pair's resolution would have been detected."""

_MAX_LISTED = 10  # the maximum number of pairs in a table, or of symbols in a sentence
_MAX_LABEL_LENGTH = 24  # characters of a label in a table
_COLUMNS = ("x", "x2", "promised", "at least", "resolution", "event", "seen")
_NOTABLE_RARE_SHARE = 0.01  # the verdict mentions rare reports if their share is larger


@dataclass(frozen=True)
class PairAudit(FieldsView):
    """The result of testing ``E[x, x2]``.

    ``bound`` is a lower bound on the realised entry, at the significance level ``level``; it should
    not exceed ``promised``. ``resolution`` is the smallest log-ratio on the event that would have
    been detected with probability 0.99. The event consists of ``event_size`` reports, and ``event``
    lists the most informative ones. ``hits`` are the numbers of times that x and x2 produced a
    report in the event. ``samples`` are the means of their sample sizes, which are
    Poisson-distributed. If ``includes_other`` is true, one of the event's reports represents all
    reports that are not judged individually; it is shown as "(any other)".
    """

    x: int
    x2: int
    promised: float
    bound: float
    resolution: float
    level: float
    is_suspect: bool
    hits: tuple[int, int]
    samples: tuple[float, float]
    event_size: int
    includes_other: bool
    event: tuple[Hashable, ...]

    @property
    def violates(self) -> bool:
        """Whether the bound exceeds the promise."""
        return self.bound > self.promised

    @property
    def excess(self) -> float:
        """The bound minus the promise; positive only for a violation."""
        return self.bound - self.promised

    @property
    def event_text(self) -> str:
        """The size of the event, as text."""
        listed_count = self.event_size - self.includes_other
        if not listed_count:
            return "any other"
        text = "1 report" if listed_count == 1 else f"{listed_count:,} reports"
        return f"{text} + other" if self.includes_other else text

    def to_dict(self) -> dict[str, object]:
        """Return the pair as JSON-compatible data; an infinite resolution is ``None``."""
        return {
            "x": self.x,
            "x2": self.x2,
            "promised": self.promised,
            "bound": self.bound,
            "violates": self.violates,
            "resolution": None if math.isinf(self.resolution) else self.resolution,
            "level": self.level,
            "suspect": self.is_suspect,
            "hits": list(self.hits),
            "samples": [round(mean, 1) for mean in self.samples],
            "event_size": self.event_size,
            "any_other": self.includes_other,
            "event": list(map(str, self.event)),
        }


@dataclass(frozen=True, repr=False)
class Audit:
    """The result of an audit.

    With probability at least ``confidence``, none of its bounds is too large.

    ``pairs`` has an entry for every ordered pair of the audited ``symbols`` with a finite promise,
    and ``labels`` are the labels of these symbols. ``samples`` is the number of reports drawn.
    ``rare_share`` is the share of reports that were too rare to judge individually, for the symbol
    with the most of them. An audit cannot detect what a single rare report reveals.
    ``changed_symbols`` are the symbols whose reports had different frequencies in the test than
    before it. ``sequences`` are the tests of successive reports, and of first reports.
    """

    pairs: tuple[PairAudit, ...]
    symbols: tuple[int, ...]
    labels: tuple[Label, ...]
    samples: int
    confidence: float
    rare_share: float
    changed_symbols: tuple[int, ...]
    sequences: tuple[SequenceTest, ...] = ()

    @property
    def violates(self) -> bool:
        """Whether a pair or a sequence of reports breaks the promise."""
        return bool(self.violations or self.sequence_violations)

    @property
    def sequence_violations(self) -> tuple[SequenceTest, ...]:
        """The tests of successive and first reports that show a violation."""
        return tuple(test for test in self.sequences if test.violates)

    @property
    def violations(self) -> tuple[PairAudit, ...]:
        """The pairs whose bound exceeds their promise, the worst first."""
        return tuple(pair for pair in self._pairs_by_excess() if pair.violates)

    @property
    def bounds(self) -> Floats:
        """Lower bounds on the realised E, with a row and a column for each audited symbol.

        The bounds are ``nan`` for pairs without a promise.
        """
        bounds = np.full((len(self.symbols), len(self.symbols)), np.nan)
        np.fill_diagonal(bounds, 0.0)
        for pair in self.pairs:
            row = self.symbols.index(pair.x)
            column = self.symbols.index(pair.x2)
            bounds[row, column] = pair.bound
        return bounds

    @property
    def verdict(self) -> str:
        """The result in a few sentences."""
        if not self.pairs:
            return "Nothing is promised between these symbols, so no promise can be broken."
        finding = self._violation_text() if self.violates else self._no_violation_text()
        return finding + self._rare_text() + self._drift_text()

    def _violation_text(self) -> str:
        texts = [self._pair_violation_text()] if self.violations else []
        for test in self.sequence_violations:
            texts.append(self._sequence_violation_text(test))
        return " ".join(texts)

    def _sequence_violation_text(self, test: SequenceTest) -> str:
        evidence = f"p = {test.p_value:.1g}, {test.reports:,} reports"
        return (
            f"Violates its promise in {test.subject}, with confidence "
            f"{format_percent(self.confidence)}: they reveal more about a symbol than promised "
            f"({evidence})."
        )

    def _pair_violation_text(self) -> str:
        worst_pair = self.violations[0]
        x_text = self._symbol_text(worst_pair.x)
        x2_text = self._symbol_text(worst_pair.x2)
        x_hits, x2_hits = worst_pair.hits
        text = (
            f"Violates its promise, with confidence {format_percent(self.confidence)}: symbol "
            f"{x_text} against {x2_text} has ε of at least {worst_pair.bound:.4g}, but "
            f"{worst_pair.promised:.4g} is promised. The evidence is an event "
            f"({worst_pair.event_text}) that was seen {x_hits:,} times for {worst_pair.x} and "
            f"{x2_hits:,} times for {worst_pair.x2}."
        )
        if len(self.violations) > 1:
            text += f" In all, {len(self.violations)} ordered pairs violate their promise."
        return text

    def _no_violation_text(self) -> str:
        text = "No violation found; this is not a proof."
        resolved_pairs = [pair for pair in self.pairs if math.isfinite(pair.resolution)]
        if resolved_pairs:
            worst_pair = max(resolved_pairs, key=lambda pair: pair.resolution - pair.promised)
            text += (
                f" On the events tested, anything above ε = {worst_pair.resolution:.4g} where "
                f"{worst_pair.promised:.4g} is promised would have been detected with probability "
                f"{format_percent(POWER)}. This is for symbol {self._symbol_text(worst_pair.x)} "
                f"against {self._symbol_text(worst_pair.x2)}"
            )
            text += "; other pairs have a finer resolution." if len(resolved_pairs) > 1 else "."
        unresolved_count = len(self.pairs) - len(resolved_pairs)
        if unresolved_count:
            text += (
                f" For {unresolved_count:,} of {len(self.pairs):,} ordered pairs, no excess could "
                "have been detected on the event."
            )
        subjects = [f"{test.subject} ({test.reports:,})" for test in self.sequences]
        if subjects:
            text += f" Also tested: {', '.join(subjects)}."
        return text

    def _rare_text(self) -> str:
        if self.rare_share <= _NOTABLE_RARE_SHARE:
            return ""
        # Round down: "100%" would be misleading for a smaller share.
        share = math.floor(1000 * self.rare_share) / 1000
        return (
            f" But for at least one symbol, {format_percent(share)} of the reports are too rare to "
            "be judged individually. They were judged together, so anything that one of them "
            "reveals goes undetected. Audit coarser reports, or draw more samples."
        )

    def _drift_text(self) -> str:
        if not self.changed_symbols:
            return ""
        noun = "symbol" if len(self.changed_symbols) == 1 else "symbols"
        names = ", ".join(map(self._symbol_text, self.changed_symbols[:_MAX_LISTED]))
        if len(self.changed_symbols) > _MAX_LISTED:
            names += ", …"
        return (
            f" The reports of {noun} {names} changed during the audit, so the result applies only "
            "to the time of the audit."
        )

    def _symbol_text(self, symbol: int) -> str:
        """Return the symbol, followed by its label if they differ."""
        label = self.labels[self.symbols.index(symbol)]
        if label == symbol:
            return str(symbol)
        text = printable(str(label))
        if len(text) > _MAX_LABEL_LENGTH:
            text = f"{text[: _MAX_LABEL_LENGTH - 1]}…"
        return f"{symbol} ({text})"

    def _pairs_by_excess(self) -> list[PairAudit]:
        return sorted(self.pairs, key=lambda pair: -pair.excess)

    def to_dict(self) -> dict[str, object]:
        """Return the result as JSON-compatible data."""
        return {
            "violates": self.violates,
            "verdict": self.verdict,
            "confidence": self.confidence,
            "samples": self.samples,
            "symbols": list(self.symbols),
            "labels": list(self.labels),
            "rare": self.rare_share,
            "changed": list(self.changed_symbols),
            "sequences": [test.to_dict() for test in self.sequences],
            "pairs": [pair.to_dict() for pair in self.pairs],
        }

    def __str__(self) -> str:
        if not self.pairs:
            return self.verdict
        lines = align_table([_COLUMNS, *self._rows()])
        omitted_count = len(self.pairs) - _MAX_LISTED
        if omitted_count > 0:
            lines.append(f"… and {omitted_count:,} ordered pairs with more slack")
        lines += ["", f"{self.samples:,} samples. {self.verdict}"]
        return "\n".join(lines)

    def __repr__(self) -> str:
        outcome = "violates" if self.violates else "no violation found"
        return f"Audit({outcome}, {len(self.pairs):,} ordered pairs, {self.samples:,} samples)"

    def _repr_html_(self) -> str:
        """Return the verdict and the pairs with the largest excess as HTML, for notebooks."""
        if not self.pairs:
            return f"<p>{escape(self.verdict)}</p>"
        header = "".join(f'<th scope="col">{name}</th>' for name in _COLUMNS)
        rows = ""
        for row in self._rows():
            cells = "".join(f"<td>{escape(cell)}</td>" for cell in row)
            rows += f"<tr>{cells}</tr>"
        outcome = "Violates" if self.violates else "No violation found"
        return (
            f"<p><b>{outcome}</b>, {self.samples:,} samples</p><p>{escape(self.verdict)}</p>"
            f"<table><thead><tr>{header}</tr></thead><tbody>{rows}</tbody></table>"
        )

    def _rows(self) -> list[tuple[str, ...]]:
        """Return the table's rows as text, for the pairs with the largest excess."""
        rows: list[tuple[str, ...]] = []
        for pair in self._pairs_by_excess()[:_MAX_LISTED]:
            row = (
                self._symbol_text(pair.x),
                self._symbol_text(pair.x2),
                f"{pair.promised:.4g}",
                f"{pair.bound:.4g}",
                "–" if math.isinf(pair.resolution) else f"{pair.resolution:.4g}",
                pair.event_text,
                f"{pair.hits[0]:,} : {pair.hits[1]:,}",
            )
            rows.append(row)
        return rows
