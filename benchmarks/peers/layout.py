"""Print the rows as tables."""

from collections.abc import Iterable
from typing import Any

from case import EPSILON, LARGEST, OURS

Row = dict[str, Any]

STEPS = ("client", "server", "decode")
BASES = ("Hadamard", "cyclic", "k-RR")
"""Our mechanisms with a counterpart among the peers."""

AIMS = (("pure-ldp", "Hadamard", 1000), ("OpenDP", "k-RR", 10_000))
"""How many times as long as our Hadamard and cyclic clients a peer's client should take."""

LEGEND = f"""\
CPU time at ε = {EPSILON:g}, best of three. client: per person, in bulk; alone: per person, one call
each; server: per report; decode: once. A dash is a step that the library does not offer:
multi-freq-ldpy decodes while it counts, and OpenDP leaves both to you. Ratios of clients are to
ours in bulk. They use the faster of a peer's two times: peers have no call for many people, and
should not pay for keeping the reports."""


def print_speeds(rows: list[Row]) -> None:
    print(LEGEND)
    for k in dict.fromkeys(row["size"] for row in rows):
        print_size(k, [row for row in rows if row["size"] == k])
    print_aims(rows)


def print_size(k: int, rows: list[Row]) -> None:
    ours = {
        row["mechanism"]: row
        for row in rows
        if row["library"] == OURS and row["mechanism"] in BASES
    }
    print(f"\nk = {k:,}")
    print(" " * 30 + "".join(f"{name:>10}" for name in ("client", "alone", "server", "decode")))
    for row in rows:
        cells = (time_text(row.get(step)) for step in ("client", "alone", "server", "decode"))
        print_row(row, (f"{cell:>10}" for cell in cells))
    print(f"\nk = {k:,}: how many times as long as ours")
    print(" " * 30 + "".join(f"{step:>27}" for step in STEPS))
    print(" " * 30 + "".join(f"{base:>9}" for base in BASES) * len(STEPS))
    for row in rows:
        if row["library"] != OURS:
            print_row(
                row,
                (f"{times_text(row, ours.get(base), step):>9}" for step in STEPS for base in BASES),
            )


def print_row(row: Row, cells: Iterable[str]) -> None:
    print(f"{row['library']:<16}{row['mechanism']:<14}" + (row.get("error") or "".join(cells)))


def print_aims(rows: list[Row]) -> None:
    largest = {(row["library"], row["mechanism"]): row for row in rows if row["size"] == LARGEST}
    if not largest:
        return
    print(f"\nAims for the client, k = {LARGEST:,}:")
    for library, mechanism, aim in AIMS:
        for base in ("Hadamard", "cyclic"):
            ratio = times(largest[library, mechanism], largest[OURS, base], "client")
            verdict = (
                "not measured"
                if ratio is None
                else f"{ratio:,.0f}x, {'met' if ratio >= aim else 'missed'}"
            )
            print(f"  {library} {mechanism} over our {base}: at least {aim:,}x; {verdict}")


def print_accuracy(rows: list[Row]) -> None:
    k = rows[0]["size"]
    n = max(row.get("people", 0) for row in rows)
    print(f"\nTotal variation for a Zipf population, k = {k:,}, n = {n:,}, ε = {EPSILON:g}:")
    print("after the same projection on the simplex for all, and by the library's default;")
    print("mean ± its standard error.")
    print(" " * 30 + f"{'projected':>16}{'own':>16}{'runs':>6}")
    for row in rows:
        cells = (error_text(row, "projected"), error_text(row, "own"), f"{row.get('runs', 0):>6}")
        print_row(row, (f"{cells[0]:>16}", f"{cells[1]:>16}", cells[2]))


def times(peer: Row, ours: Row | None, step: str) -> float | None:
    if ours is None or peer.get(step) is None or ours.get(step) is None:
        return None
    seconds = min(peer["client"], peer["alone"]) if step == "client" else peer[step]
    return float(seconds / ours[step])


def times_text(peer: Row, ours: Row | None, step: str) -> str:
    ratio = times(peer, ours, step)
    if ratio is None:
        return "-"
    if ratio >= 1e6:
        return f"{ratio / 1e6:.1f}Mx"
    return f"{ratio:,.0f}x" if ratio >= 10 else f"{ratio:.2g}x"


def error_text(row: Row, name: str) -> str:
    if row.get(name) is None:
        return "-"
    error = row.get(f"{name}_error")
    return f"{row[name]:.3f}" + ("        " if error is None else f" ± {error:.3f}")


def time_text(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
