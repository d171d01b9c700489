"""What an observer can learn from a report.

**Errors** (Theorem 1 of Acharya et al., 2020). The observer knows that the value is x or x2, and
guesses from the report which one it is. Let ``P_FA = P(guess x | x2)`` be the false alarm rate and
``P_MD = P(guess x2 | x)`` the miss rate. A mechanism is E-LDP if and only if every test satisfies,
for every ordered pair,

    P_FA + exp(E[x2, x]) · P_MD ≥ 1     and     exp(E[x, x2]) · P_FA + P_MD ≥ 1.

**Odds** (Proposition 3 of the same paper). The observer has a prior belief, and a report multiplies
the odds of x against x2 by at most exp(E[x, x2]).
"""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from sfumato.contexts import Context
from sfumato.domains import Label, SymbolOrLabel
from sfumato.errors import InvalidArgument, InvalidSymbols, MissingExtra
from sfumato.foundation.arrays import Floats
from sfumato.foundation.correct_call import shows_call
from sfumato.foundation.formatting import format_epsilon, printable
from sfumato.foundation.installation import install_hint
from sfumato.foundation.notebook import FieldsView, facts_html, table_html
from sfumato.foundation.numpy_values import require_unmasked
from sfumato.mechanisms import Mechanism, MechanismHolder, context_of, mechanism_of
from sfumato.randomness import Epsilon, within_odds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MAX_EXPONENT = 700  # math.exp overflows just above 709
_MAX_SYMBOLS_IN_HTML = 12

Point = tuple[float, float]
ExactPoint = tuple[Fraction, Fraction]


@dataclass(frozen=True)
class ViolatingTest(FieldsView):
    """A test with smaller errors than the context allows.

    The test guesses x if the report is in ``x_outputs``, and x2 otherwise. ``inequality`` is the
    inequality that its errors violate.
    """

    x_outputs: frozenset[int]
    false_alarm: Fraction
    miss: Fraction
    inequality: str


@dataclass(frozen=True, repr=False)
class ErrorRegion:
    """The possible errors of tests of x against x2, as points ``(P_FA, P_MD)``.

    ``promised`` contains the vertices of the region that the context allows, from "never guess x"
    at (0, 1) through its corner to "always guess x" at (1, 0). ``realised`` contains the exact
    vertices of the mechanism's region, whose boundary consists of likelihood-ratio tests (Neyman
    and Pearson, 1933). Without a mechanism, ``realised`` is empty. ``violating_test`` is a test
    whose errors violate an inequality, or ``None`` if there is no such test.
    """

    x: int
    x2: int
    epsilon: Epsilon
    reverse_epsilon: Epsilon
    promised: tuple[Point, ...]
    realised: tuple[ExactPoint, ...]
    violating_test: ViolatingTest | None
    labels: tuple[Label, Label] = (0, 1)
    """The labels of x and x2."""

    def __repr__(self) -> str:
        label, label2 = (printable(repr(label)) for label in self.labels)
        return f"ErrorRegion({label} against {label2}, {self._summary()})"

    def _repr_html_(self) -> str:
        """Return the promise and the smallest errors as HTML, for notebooks."""
        facts = {
            "x": str(self.labels[0]),
            "x2": str(self.labels[1]),
            "promised": f"ε = {format_epsilon(float(self.epsilon))} for x against x2, "
            f"{format_epsilon(float(self.reverse_epsilon))} for x2 against x",
            "best test": self._summary(),
        }
        if self.realised:
            facts["kept"] = "yes" if self.violating_test is None else "no"
        return facts_html("ErrorRegion", facts)

    def _summary(self) -> str:
        if self.corner is None:
            return "blind guessing only"
        false_alarm, miss = self.corner
        return f"false alarm rate {false_alarm:.3g} at miss rate {miss:.3g}"

    @property
    def corner(self) -> Point | None:
        """The errors of the best possible test; ``None`` if only blind guessing is allowed."""
        return self.promised[1] if len(self.promised) == 3 else None

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the region on ``ax``, or on new axes. Requires the ``charts`` extra."""
        ax = _new_axes() if ax is None else ax
        _fill_region(ax, [*self.promised, (0.0, 1.0)], "#b9c7d8", "allowed by the context")
        if self.realised:
            _fill_region(ax, self.realised, "#35618f", "achieved by the mechanism")
        ax.plot(
            [0, 1], [1, 0], color="#555555", linewidth=0.8, linestyle="--", label="blind guessing"
        )
        if self.corner is not None:
            false_alarm, miss = self.corner
            ax.plot([miss], [false_alarm], "o", color="#b3402a", markersize=5)
            ax.annotate(
                f"({miss:.3g}, {false_alarm:.3g})",
                (miss, false_alarm),
                textcoords="offset points",
                xytext=(6, -12),
                fontsize=9,
            )
        ax.set(
            xlabel="miss rate $P_{MD}$",
            ylabel="false alarm rate $P_{FA}$",
            xlim=(0, 1),
            ylim=(0, 1),
            aspect="equal",
        )
        ax.legend(loc="upper right", frameon=False, fontsize=9)
        return ax


@shows_call('sf.error_region(context, "yes", "no")')
def error_region(
    context_or_mechanism: Context | Mechanism | MechanismHolder,
    x: SymbolOrLabel,
    x2: SymbolOrLabel,
) -> ErrorRegion:
    """Return the possible errors when guessing from a report whether the symbol is x or x2.

    Integers are symbols, and text is a label. For a survey, the errors are those of its mechanism.

    >>> from sfumato.contexts import PrivacyMatrix
    >>> region = error_region(PrivacyMatrix([[0, "0.6931"], ["1.3863", 0]]), 0, 1)
    >>> tuple(round(rate, 3) for rate in region.corner)
    (0.429, 0.143)
    """
    pair = SymbolPair.parse(context_or_mechanism, x, x2, "error_region")
    context = pair.context
    row = pair.row
    row2 = pair.row2
    a = context.exact_epsilon(pair.x, pair.x2)
    b = context.exact_epsilon(pair.x2, pair.x)
    return ErrorRegion(
        x=pair.x,
        x2=pair.x2,
        epsilon=a,
        reverse_epsilon=b,
        promised=_context_vertices(float(a), float(b)),
        realised=_mechanism_vertices(row, row2),
        violating_test=_find_violating_test(row, row2, a, b),
        labels=(context.domain.labels[pair.x], context.domain.labels[pair.x2]),
    )


@dataclass(frozen=True)
class SymbolPair:
    """Two different symbols of a context, and their rows in a mechanism.

    The rows are empty if there is only a context.
    """

    context: Context
    x: int
    x2: int
    row: list[int]
    row2: list[int]

    @classmethod
    def parse(
        cls,
        context_or_mechanism: Context | Mechanism | MechanismHolder,
        x: SymbolOrLabel,
        x2: SymbolOrLabel,
        function: str,
    ) -> "SymbolPair":
        """Parse the arguments of a function, whose name appears in error messages.

        Raise ``InvalidSymbols`` unless x and x2 are two different symbols, or their labels.
        """
        context = context_of(context_or_mechanism, f"{function}(context, x, x2)")
        symbol = parse_symbol(context, x)
        symbol2 = parse_symbol(context, x2)
        if symbol is None or symbol2 is None or symbol == symbol2:
            raise InvalidSymbols(
                f"x and x2 must be two different symbols in 0..{context.size - 1}, or the text of "
                "their labels."
            )
        mechanism = mechanism_of(context_or_mechanism)
        if mechanism is None:
            return cls(context, symbol, symbol2, [], [])
        row = mechanism.integer_row(symbol)
        return cls(context, symbol, symbol2, row, mechanism.integer_row(symbol2))


def parse_symbol(context: Context, x: object) -> int | None:
    """Return a symbol that is given as an integer or by the text of its label.

    Return ``None`` if it is neither, and raise ``UnknownLabel`` if there is no such label.
    """
    if isinstance(x, str):
        return int(context.domain.as_symbols(x))
    is_integer = isinstance(x, int | np.integer) and not isinstance(x, bool)
    if not is_integer or not 0 <= x < context.size:  # type: ignore[operator]
        return None
    return int(x)  # type: ignore[call-overload]


def _context_vertices(a: float, b: float) -> tuple[Point, ...]:
    """Return the ends of the boundary of the context's region, and the corner between them, if any.

    At the corner, ``P_FA = e^−a (1 − e^−b)/D`` and ``P_MD = e^−b (1 − e^−a)/D``, where
    ``D = 1 − e^−(a+b)``.
    """
    if a == 0 or b == 0:  # equal rows: only blind guessing
        return (0.0, 1.0), (1.0, 0.0)
    D = -math.expm1(-(a + b))
    false_alarm = -math.exp(-a) * math.expm1(-b) / D
    miss = -math.exp(-b) * math.expm1(-a) / D
    return (0.0, 1.0), (false_alarm, miss), (1.0, 0.0)


def _mechanism_vertices(row: Sequence[int], row2: Sequence[int]) -> tuple[ExactPoint, ...]:
    """Return the vertices of the mechanism's region, in order along its boundary.

    The first test never guesses x. Each subsequent test also guesses x for all reports with the
    next smaller likelihood ratio.
    """
    if not row:
        return ()
    total = sum(row)
    ratios = [_ratio(q, q2) for q, q2 in zip(row, row2, strict=True)]
    order = sorted(range(len(row)), key=ratios.__getitem__, reverse=True)
    false_alarm = 0
    miss = total
    points = [(Fraction(0), Fraction(1))]
    for y, next_y in zip(order, [*order[1:], None], strict=True):
        false_alarm += row2[y]
        miss -= row[y]
        # Reports with equal ratios lie on the same edge.
        if next_y is None or ratios[next_y] != ratios[y]:
            points.append((Fraction(false_alarm, total), Fraction(miss, total)))
    return tuple(dict.fromkeys(points))


def _find_violating_test(
    row: Sequence[int], row2: Sequence[int], a: Epsilon, b: Epsilon
) -> ViolatingTest | None:
    """Return a test whose errors violate an inequality, or ``None`` if there is no such test.

    The test guesses x only for the reports that favour x too strongly. If there are none, it
    guesses x2 only for the reports that favour x2 too strongly.
    """
    outputs_favouring_x: set[int] = set()
    outputs_favouring_x2: set[int] = set()
    for y, (q, q2) in enumerate(zip(row, row2, strict=True)):
        if not within_odds(q, q2, a):
            outputs_favouring_x.add(y)
        if not within_odds(q2, q, b):
            outputs_favouring_x2.add(y)
    if not outputs_favouring_x and not outputs_favouring_x2:
        return None
    x_outputs = frozenset(outputs_favouring_x or set(range(len(row))) - outputs_favouring_x2)
    total = sum(row)
    false_alarm = Fraction(sum(row2[y] for y in x_outputs), total)
    miss = 1 - Fraction(sum(row[y] for y in x_outputs), total)
    inequality = "P_FA + exp(E[x2, x]) P_MD >= 1"
    if outputs_favouring_x:
        inequality = "exp(E[x, x2]) P_FA + P_MD >= 1"
    return ViolatingTest(x_outputs, false_alarm, miss, inequality)


def _ratio(q: int, q2: int) -> Fraction | float:
    if q == q2 == 0:
        return -1.0  # this report is never sent, so it comes last
    return Fraction(q, q2) if q2 else math.inf


def _fill_region(ax: "Axes", points: Sequence[Point | ExactPoint], color: str, label: str) -> None:
    false_alarms, misses = np.array(points, dtype=np.float64).T
    ax.fill(misses, false_alarms, color=color, label=label)


def _new_axes() -> "Axes":
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra(f"plots require matplotlib: {install_hint('paper')}") from None
    return Figure(figsize=(4.5, 4.5), layout="constrained").subplots()


# --- odds -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class PosteriorOdds:
    """Bounds on the odds of x against x2 after a report, for an observer with a prior belief.

    ``P(x|y)/P(x2|y) ≤ exp(E[x, x2]) · p(x)/p(x2)`` for every report y, whatever else the observer
    knows. In all methods, integers are symbols, and text is a label.
    """

    context: Context
    prior: Floats

    def prior_odds(self, x: SymbolOrLabel, x2: SymbolOrLabel) -> float:
        """Return ``p(x)/p(x2)``, the odds before the report."""
        p = self.prior[self._symbol(x)]
        p2 = self.prior[self._symbol(x2)]
        if p == 0:
            return 0.0
        return float(p / p2) if p2 > 0 else math.inf

    def bound(self, x: SymbolOrLabel, x2: SymbolOrLabel) -> float:
        """Return an upper bound on the odds of x against x2 after any report."""
        symbol = self._symbol(x)
        symbol2 = self._symbol(x2)
        if symbol == symbol2 or self.prior[symbol] == 0:
            return self.prior_odds(symbol, symbol2)
        epsilon = float(self.context.epsilon(symbol, symbol2))
        if epsilon >= _MAX_EXPONENT:
            return math.inf
        return math.exp(epsilon) * self.prior_odds(symbol, symbol2)

    def _symbol(self, x: SymbolOrLabel) -> int:
        symbol = parse_symbol(self.context, x)
        if symbol is None:
            raise InvalidSymbols(
                f"x and x2 must be symbols in 0..{self.context.size - 1}, or the text of their "
                "labels."
            )
        return symbol

    def matrix(self) -> Floats:
        """Return the bounds for all pairs as a ``k × k`` array.

        Raises ``InvalidContext`` for more than 4096 symbols.
        """
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            prior_odds = self.prior[:, None] / self.prior[None, :]
            bounds = np.exp(self.context.matrix()) * prior_odds
        bounds[self.prior == 0] = 0.0
        np.fill_diagonal(bounds, 1.0)
        return bounds

    def in_words(self, x: SymbolOrLabel, x2: SymbolOrLabel) -> str:
        """Return the bound as a sentence."""
        label = repr(self.context.domain.labels[self._symbol(x)])
        label2 = repr(self.context.domain.labels[self._symbol(x2)])
        prior_text = _format_odds(self.prior_odds(x, x2))
        bound = self.bound(x, x2)
        if math.isinf(bound):
            change = f"from {prior_text} to certainty: nothing is promised for this pair"
        else:
            change = f"from {prior_text} to at most {_format_odds(bound)}"
        return f"A report can move the odds of {label} against {label2} {change}."

    def __repr__(self) -> str:
        prior = "uniform prior" if np.ptp(self.prior) == 0 else "given prior"
        return f"PosteriorOdds({self.context!r}, {prior})"

    def _repr_html_(self) -> str:
        """Return the largest odds after a report as an HTML table, for notebooks."""
        note = "bounds on the odds of the row against the column, after any report"
        shown = range(min(self.context.size, _MAX_SYMBOLS_IN_HTML))
        labels = [str(self.context.domain.labels[x]) for x in shown]
        rows = []
        for x in shown:
            cells = ["–" if x == x2 else _format_odds(self.bound(x, x2)) for x2 in shown]
            rows.append([labels[x], *cells])
        if self.context.size > len(labels):
            note += f"; the first {len(labels)} of {self.context.size:,} labels"
        return table_html("PosteriorOdds", ["", *labels], rows, note)


@shows_call("sf.posterior_odds(context)")
def posterior_odds(
    context: Context | Mechanism | MechanismHolder, prior: ArrayLike | None = None
) -> PosteriorOdds:
    """Return bounds on the posterior odds, for any mechanism that satisfies ``context``.

    ``prior`` is a distribution over the symbols, uniform by default. For a mechanism or a survey,
    the bounds are those of its context.

    >>> from sfumato.contexts import Uniform
    >>> posterior_odds(Uniform(["no", "yes"], 1.0)).in_words("yes", "no")
    "A report can move the odds of 'yes' against 'no' from 1:1 to at most 2.7:1."
    """
    context = context_of(context, "posterior_odds(context)")
    k = context.size
    if prior is None:
        prior = np.full(k, 1 / k)
    require_unmasked(prior, "prior", InvalidArgument)
    p = np.empty(0)
    with suppress(TypeError, ValueError):
        p = np.array(prior, dtype=np.float64)
    is_finite_vector = p.shape == (k,) and np.isfinite(p).all()
    if not is_finite_vector or p.min() < 0 or abs(p.sum() - 1) > 1e-9:
        raise InvalidArgument(
            f"prior must be a distribution over the {k} symbols: {k} non-negative numbers "
            "adding up to 1."
        )
    p.flags.writeable = False
    return PosteriorOdds(context, p)


def _format_odds(odds: float) -> str:
    """Return odds as text such as ``3:1``, with the larger number rounded to two digits."""
    if odds == 0:
        return "0:1"
    if math.isinf(odds):
        return "certainty"
    return f"{_round_to_two_digits(odds)}:1" if odds >= 1 else f"1:{_round_to_two_digits(1 / odds)}"


def _round_to_two_digits(number: float) -> str:
    scale = 10.0 ** (math.floor(math.log10(number)) - 1)
    return f"{round(number / scale) * scale:.10g}"
