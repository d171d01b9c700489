"""Compare a mechanism with k-RR, Hadamard response, OUE and OLH on one population."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sfumato.codes import HadamardCode, RandomizedCode
from sfumato.contexts import Context, Uniform
from sfumato.designer import mechanism_for
from sfumato.errors import ContextMismatch, InvalidSymbols, NotEnoughReports, NothingToLearn
from sfumato.estimation.decoders import Decoder, get_decoder
from sfumato.foundation.arrays import Floats, Symbols
from sfumato.foundation.formatting import format_factor, format_number
from sfumato.foundation.notebook import FieldsView, table_html
from sfumato.foundation.numpy_values import require_unmasked
from sfumato.foundation.simplex import project, total_variation
from sfumato.mechanisms import Mechanism, PlainResponse
from sfumato.simulation.baselines import Baseline, LocalHashing, UnaryEncoding
from sfumato.simulation.runs import Draws, Spread, tally_population
from sfumato.simulation.seeded import SeededWords

__all__ = ["Comparison", "Row", "compare"]

_TITLES = {
    "sfumato": "Sfumato",
    "k-rr": "k-RR",
    "hadamard": "Hadamard response",
    "oue": "OUE",
    "olh": "OLH",
}
_ROUNDING_TOLERANCE = 1e-12  # a mean squared error below this is a rounding error


@dataclass(frozen=True, eq=False, repr=False)
class Row(FieldsView):
    """The results for one mechanism.

    ``l2``: the exact root mean square Euclidean error of the unbiased estimate.
    ``leverage``: how many people one fake report can add to a label or remove from it.
    ``reach``: how far replacing one honest report with a fake one can move the unbiased estimate in
    total variation, as a number of people.
    ``errors``: the total variation error of each run with the decoding that is the same for all
    mechanisms: projecting the unbiased estimate onto the simplex.
    ``decoder_errors``: the errors with the chosen decoder; ``None`` for OUE and OLH, which cannot
    use it.
    """

    name: str
    epsilon: float
    bits: int
    leverage: float
    reach: float
    l2: float
    errors: Floats
    decoder_errors: Floats | None

    @property
    def title(self) -> str:
        """The name shown in tables."""
        return _TITLES[self.name]

    @property
    def error(self) -> Spread:
        """The mean of ``errors``, and its standard error."""
        return Spread.from_figures(self.errors)

    @property
    def decoder_error(self) -> Spread | None:
        """The mean of ``decoder_errors``, and its standard error."""
        return None if self.decoder_errors is None else Spread.from_figures(self.decoder_errors)

    def to_dict(self) -> dict[str, object]:
        """Return the row as ``sfumato compare --json`` prints it."""
        decoded = self.decoder_error
        return {
            "name": self.name,
            "epsilon": self.epsilon,
            "total_variation": self.error.to_dict(),
            "decoded_total_variation": None if decoded is None else decoded.to_dict(),
            "l2": self.l2,
            "bits": self.bits,
            "leverage": self.leverage,
            "reach": self.reach,
        }


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """The results of a comparison. The ``repr`` is a table with a legend.

    ``rows``: one row per mechanism, starting with your own.
    ``size``: the number of labels.
    ``epsilon``: the ε of the classical mechanisms, which is the smallest ε in the context.
    ``is_uniform``: whether the context has the same ε for all pairs.
    """

    people: int
    size: int
    epsilon: float
    is_uniform: bool
    decoder: str
    draws: Draws
    rows: tuple[Row, ...]

    def row(self, name: str) -> Row:
        """Return the row with this name: sfumato, k-rr, hadamard, oue or olh."""
        return next(row for row in self.rows if row.name == name)

    def people_ratio(self, row: Row) -> float | None:
        """Return how many times as many people a mechanism needs as your own mechanism.

        With that many people, both have the same mean squared error. The ratio is exact for the
        unbiased estimate and this population. Return ``None`` if your own mechanism has no error.
        """
        own_l2 = self.rows[0].l2
        if own_l2 == 0:
            return None
        return (row.l2 / own_l2) ** 2

    def to_dict(self) -> dict[str, object]:
        """Return the comparison as ``sfumato compare --json`` prints it."""
        rows = []
        for row in self.rows:
            fields = row.to_dict()
            fields["people_needed"] = self.people_ratio(row)
            rows.append(fields)
        return {
            "people": self.people,
            "labels": self.size,
            "classical_epsilon": self.epsilon,
            "runs": self.draws.runs,
            "seed": self.draws.seed,
            "decoder": self.decoder,
            "mechanisms": rows,
        }

    def __repr__(self) -> str:
        lines = [*_heading_lines(self), "", *_table_lines(self), "", *_legend_lines(self)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return the table as HTML, for notebooks."""
        header, *rows = _table_rows(self)
        return table_html("Comparison", header, rows, " ".join(_heading_lines(self)))


def compare(
    context: Context,
    counts: ArrayLike,
    *,
    mechanism: Mechanism | None = None,
    decoder: str | Decoder = "auto",
    draws: Draws | None = None,
    on_progress: Callable[[str], None] = lambda title: None,
) -> Comparison:
    """Let ``counts[x]`` people with symbol x answer through each mechanism, and compare the errors.

    ``mechanism``: your own mechanism, by default ``mechanism_for(context)``.
    ``on_progress``: called with the title of each mechanism before it runs.

    Classical mechanisms have one ε for all pairs. To satisfy the context, they use the smallest ε
    of any pair, ``context.smallest_epsilon``. All mechanisms are decoded in the same way, by
    Euclidean projection of the unbiased estimate onto the simplex. All except OUE and OLH are also
    decoded with ``decoder``. Errors are measured against the shares of these people, not against a
    distribution that they were drawn from.

    >>> from sfumato.contexts import HighLow
    >>> places = HighLow(["park", "café", "clinic", "bar"], sensitive=["clinic", "bar"], epsilon=1)
    >>> result = compare(places, [4000, 3000, 1000, 2000], decoder="projection")
    >>> for row in result.rows:
    ...     ratio = result.people_ratio(row)
    ...     print(f"{row.title:18} {row.bits:3} {row.leverage:5.2f} {ratio:5.2f}")
    Sfumato              2  2.16  1.00
    k-RR                 2  2.75  2.84
    Hadamard response    3  3.50  4.68
    OUE                  4  3.16  5.92
    OLH                 66  3.33  6.02
    """
    population = _require_counts(context, counts)
    own_mechanism = mechanism_for(context) if mechanism is None else mechanism
    if own_mechanism.context.domain != context.domain:
        raise ContextMismatch("the mechanism and the context must have the same domain.")
    if draws is None:
        draws = Draws()
    trial = _Trial(population, get_decoder(decoder), draws)
    rows = []
    for index, (name, participant) in enumerate(_participants(context, own_mechanism).items()):
        on_progress(_TITLES[name])
        if isinstance(participant, Baseline):
            rows.append(trial.baseline_row(name, index, participant))
        else:
            rows.append(trial.mechanism_row(name, index, participant))
    return Comparison(
        people=int(population.sum()),
        size=context.size,
        epsilon=context.smallest_epsilon,
        is_uniform=context.uniform_epsilon is not None,
        decoder=trial.decoder.name,
        draws=draws,
        rows=tuple(rows),
    )


def _participants(context: Context, own_mechanism: Mechanism) -> dict[str, Mechanism | Baseline]:
    """Return your own mechanism, and four classical ones that use the smallest ε of any pair."""
    epsilon = context.smallest_epsilon
    if not 0 < epsilon < math.inf:
        raise NothingToLearn(
            "classical mechanisms need a positive, finite ε; the smallest ε of this context is "
            f"{format_number(epsilon)}. Compare a survey that protects every pair of labels."
        )
    classical = Uniform(context.domain, context.exact_minimum)
    return {
        "sfumato": own_mechanism,
        "k-rr": PlainResponse(classical, RandomizedCode),
        "hadamard": PlainResponse(classical, HadamardCode),
        "oue": UnaryEncoding(context.size, epsilon),
        "olh": LocalHashing(context.size, epsilon),
    }


@dataclass(frozen=True, eq=False)
class _Trial:
    """The people, the decoder and the runs, which are the same for all mechanisms.

    The index of a mechanism selects its random words.
    """

    counts: Symbols
    decoder: Decoder
    draws: Draws

    def mechanism_row(self, name: str, index: int, mechanism: Mechanism) -> Row:
        def measure_run(words: SeededWords) -> tuple[float, float]:
            tally = tally_population(mechanism, self.counts, words)
            projected = project(mechanism.scores.unbiased(tally))
            decoded = self.decoder.decode(mechanism, tally).frequencies
            return self._error(projected), self._error(decoded)

        errors, decoder_errors = self.draws.measure(measure_run, index)
        # For these n people, the mean squared error is (Σ_y q(y) Σ_x A[x, y]² − 1)/n.
        squared_error = float(mechanism.forward(self._true_shares) @ mechanism.scores.squares()) - 1
        l2 = 0.0
        if squared_error > _ROUNDING_TOLERANCE:
            l2 = math.sqrt(squared_error / self.counts.sum())
        return Row(
            name,
            epsilon=mechanism.context.smallest_epsilon,
            bits=mechanism.bits,
            leverage=float(mechanism.scores.leverage),
            reach=mechanism.scores.reach.total_variation,
            l2=l2,
            errors=errors,
            decoder_errors=decoder_errors,
        )

    def baseline_row(self, name: str, index: int, baseline: Baseline) -> Row:
        def measure_run(words: SeededWords) -> tuple[float]:
            estimate = baseline.draw(self.counts, words.take(baseline.size))
            return (self._error(project(estimate)),)

        (errors,) = self.draws.measure(measure_run, index)
        return Row(
            name,
            epsilon=baseline.epsilon,
            bits=baseline.bits,
            leverage=baseline.leverage,
            reach=baseline.reach,
            l2=math.sqrt(baseline.variances(self.counts).sum()),
            errors=errors,
            decoder_errors=None,
        )

    @property
    def _true_shares(self) -> Floats:
        return self.counts / self.counts.sum()

    def _error(self, estimate: Floats) -> float:
        return total_variation(estimate, self._true_shares)


def _require_counts(context: Context, counts: ArrayLike) -> Symbols:
    require_unmasked(counts, "counts", InvalidSymbols)
    population = np.asarray(counts)
    is_complete = population.shape == (context.size,)
    is_integer = np.issubdtype(population.dtype, np.integer)
    if not is_complete or not is_integer or (population < 0).any():
        raise InvalidSymbols(
            "counts must be a list of non-negative integers, one for each of the "
            f"{context.size} symbols."
        )
    if not population.any():
        raise NotEnoughReports("the population is empty: all counts are 0.")
    return population.astype(np.int64)


# --- a table with a legend, for terminals --------------------------------------------------------


def _heading_lines(comparison: Comparison) -> list[str]:
    lines = [
        "NOT PRIVATE: this reads people's unprotected answers.",
        f"people: {comparison.people:,}, labels: {comparison.size:,}, "
        f"runs of each mechanism: {comparison.draws.runs:,}",
    ]
    if not comparison.is_uniform:
        lines += [
            "A classical mechanism has one ε for all pairs of labels. To keep the survey's",
            f"promise, it uses the smallest, ε = {format_number(comparison.epsilon)}.",
        ]
    return lines


def _table_lines(comparison: Comparison) -> list[str]:
    table = _table_rows(comparison)
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = []
    for title, *cells in table:
        padded_cells = [title.ljust(widths[0]), *map(str.rjust, cells, widths[1:])]
        lines.append("  ".join(padded_cells))
    return lines


def _table_rows(comparison: Comparison) -> list[list[str]]:
    """Return the header and one row of cells for each mechanism."""
    decoded = f"error, {comparison.decoder}"
    header = ["", "ε", "error, projected", decoded, "people", "bits", "leverage", "reach"]
    return [header, *(_row_cells(comparison, row) for row in comparison.rows)]


def _row_cells(comparison: Comparison, row: Row) -> list[str]:
    is_own = row is comparison.rows[0]
    prefix = "≥ " if is_own and not comparison.is_uniform else ""
    return [
        row.title,
        prefix + format_number(row.epsilon),
        str(row.error),
        "–" if row.decoder_error is None else str(row.decoder_error),
        format_factor(comparison.people_ratio(row)),
        f"{row.bits:,}",
        format_number(row.leverage),
        format_number(row.reach),
    ]


def _legend_lines(comparison: Comparison) -> list[str]:
    spread = "" if comparison.draws.runs == 1 else ", mean ± standard error over the runs"
    return [
        f"error     total variation distance from the answers{spread};",
        "          projected: the unbiased estimate, projected onto the simplex;",
        f"          {comparison.decoder}: this decoder, which OUE and OLH cannot use",
        "people    how many times as many people give the same mean squared error (exact)",
        "bits      the length of one report",
        "leverage  how many people one fake report can add to a label or remove from it",
        "reach     how far one fake report, in place of an average honest one, can move the",
        "          unbiased estimate in total variation, as a number of people",
    ]
