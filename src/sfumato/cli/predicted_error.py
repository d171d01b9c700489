"""The error to expect from a new survey, and the people whom it needs."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sfumato.errors import InvalidTable
from sfumato.foundation.formatting import format_percent

if TYPE_CHECKING:
    from sfumato.mechanisms import Mechanism
    from sfumato.tables.proposed_domain import ProposedDomain

_MAX_PEOPLE_FACTOR = 1000  # a survey that needs this many times the rows is useless
_TARGET_ERROR = 0.05


def print_predicted_errors(mechanisms: "Mapping[str, Mechanism]", counts: Sequence[int]) -> int:
    """Print the expected error of each mechanism, and return the people needed for the last.

    ``mechanisms`` are given by the kind of their promise.

    The errors are those of the unbiased estimate. Decoders do better, especially if it is large.
    """
    import math

    import numpy as np
    from rich.console import Console
    from rich.table import Table

    people = sum(counts)
    p = np.array(counts) / people
    table = Table(
        "promise",
        "share of people counted under the wrong label",
        "bits per report",
        f"people needed for {format_percent(_TARGET_ERROR)}",
    )
    people_needed = 0
    for kind, mechanism in mechanisms.items():
        # Estimates are nearly normal, so their mean absolute error is √(2/π) standard deviations.
        standard_deviations = np.sqrt(mechanism.scores.variances(p, 1))
        one_person_error = math.sqrt(2 / math.pi) * float(standard_deviations.sum()) / 2
        error = min(one_person_error / math.sqrt(people), 1.0)
        people_needed = math.ceil((one_person_error / _TARGET_ERROR) ** 2)
        table.add_row(kind, f"{100 * error:.1f}%", str(mechanism.bits), f"{people_needed:,}")
    Console(stderr=True, highlight=False).print(table)
    return people_needed


def require_useful(people_needed: int, proposal: "ProposedDomain") -> None:
    """Reject labels for which a useful result would need far more people than the table has."""
    remedy = "--bins, --labels with --other"
    if proposal.columns.date is not None:
        remedy = "--date month or --date weekday"
    rows = sum(proposal.counts)
    if people_needed > _MAX_PEOPLE_FACTOR * rows:
        raise InvalidTable(
            f"with {proposal.domain.size:,} labels, a useful result needs about "
            f"{people_needed:,} people, more than {_MAX_PEOPLE_FACTOR:,} times the "
            f"{rows:,} in this table. Use fewer labels ({remedy}), or pass --force-labels."
        )
