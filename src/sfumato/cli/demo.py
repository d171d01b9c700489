"""`sfumato demo`: the main job on a small built-in example, in the terminal."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from sfumato.estimation import Estimate

__all__ = ["ANSWERS", "demo"]

ANSWERS = {"park": 9000, "café": 6200, "clinic": 1400, "bar": 1000, "office": 2400}
"""Where 20,000 made-up people had lunch."""

SENSITIVE = ("clinic", "bar")


def demo() -> None:
    """Privatise, count, estimate and certify a small example.

    Example: sfumato demo
    """
    import numpy as np
    from rich.console import Console

    import sfumato as sf

    console = Console(highlight=False)
    places = sf.Domain(list(ANSWERS))
    context = sf.HighLow(places, sensitive=SENSITIVE, epsilon=1.0)
    mechanism = sf.mechanism_for(context)
    people = places.symbols(np.repeat(list(ANSWERS), list(ANSWERS.values())))

    console.print("[bold]20,000 people say where they had lunch.[/bold] Clinic and bar are sensitive (ε = 1).")
    reports = mechanism.privatize(people)
    console.print(f"1. On their devices: each answer becomes one report of {mechanism.bits} bits.")
    console.print(f"   The first five reports: {', '.join(map(str, reports[:5]))}.")
    tally = mechanism.tally(reports)
    console.print(f"2. On the server, which is trusted with nothing: {tally!r}.")
    console.print("3. For the analyst:")
    console.print(_table(sf.estimate(mechanism, tally)))
    certificate = sf.certify(mechanism)
    console.print(
        f"4. For the reviewer: {certificate.pairs} pairs × {certificate.outputs} reports compared in integers, "
        f"ε realised at most {certificate.realised_epsilon!r} of {certificate.promised_epsilon!r} promised."
    )
    console.print(f"   One forged report counts for at most {mechanism.leverage:.1f} honest people.")


def _table(estimate: "Estimate") -> "Table":
    from rich.table import Table

    table = Table("place", "truth", "estimate", "95 % interval", "")
    low, high = estimate.interval(0.95)
    total = sum(ANSWERS.values())
    for x, (place, count) in enumerate(ANSWERS.items()):
        bar = "█" * round(40 * estimate.frequencies[x])
        interval = f"{low[x]:.3f} to {high[x]:.3f}"
        name = f"{place} (sensitive)" if place in SENSITIVE else place
        table.add_row(name, f"{count / total:.3f}", f"{estimate.frequencies[x]:.3f}", interval, bar)
    return table
