"""A comparison as a table with a legend, for terminals."""

from typing import TYPE_CHECKING

from sfumato.foundation.formatting import format_factor, format_number

if TYPE_CHECKING:
    from sfumato.simulation.compare import Comparison, Row, Spread

__all__ = ["in_text"]


def in_text(comparison: "Comparison") -> str:
    """What was compared, the table, and what its columns mean."""
    return "\n".join([*_head(comparison), "", *_table(comparison), "", *_legend(comparison)])


def _head(comparison: "Comparison") -> list[str]:
    people, labels, runs = comparison.people, comparison.size, comparison.draws.runs
    head = [
        "NOT PRIVATE: this read people's answers as they are.",
        f"people: {people:,}, labels: {labels:,}, runs of each mechanism: {runs:,}",
    ]
    if not comparison.uniform:
        head.append(
            "A classical mechanism has one ε for all pairs of labels; to keep what is promised here,"
        )
        head.append(f"it takes the smallest, ε = {format_number(comparison.epsilon)}.")
    return head


def _table(comparison: "Comparison") -> list[str]:
    names = [
        "",
        "ε",
        "error, all alike",
        f"error, {comparison.decoder}",
        "people",
        "bits",
        "leverage",
        "reach",
    ]
    lines = [names, *(_line(comparison, row) for row in comparison.rows)]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    return [
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])])
        for line in lines
    ]


def _line(comparison: "Comparison", row: "Row") -> list[str]:
    at_least = "≥ " if row is comparison.rows[0] and not comparison.uniform else ""
    return [
        row.what,
        at_least + format_number(row.epsilon),
        _spread(row.error),
        _spread(row.decoded_error),
        format_factor(comparison.people_needed(row)),
        f"{row.bits:,}",
        format_number(row.leverage),
        format_number(row.reach),
    ]


def _spread(spread: "Spread | None") -> str:
    if spread is None:
        return "–"
    return f"{spread.mean:.4f}" + (
        "" if spread.standard_error is None else f" ± {spread.standard_error:.4f}"
    )


def _legend(comparison: "Comparison") -> list[str]:
    spread = "" if comparison.draws.runs == 1 else ", mean ± standard error over the runs"
    return [
        f"error     total variation from the answers themselves{spread};",
        "          all alike: of the unbiased estimate, projected on the simplex;",
        f"          {comparison.decoder}: of the decoder with this name, for mechanisms of this package",
        "people    how many times as many it takes for the same mean squared error (unbiased, exact)",
        "bits      the length of one report",
        "leverage  the most that one fake report adds to a label, or takes from it, in people",
        "reach     how many people's worth of total variation it moves the whole unbiased estimate by, at most,",
        "          in the place of an average honest one",
    ]
