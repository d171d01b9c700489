"""What is measured: a mechanism of a library, for a number of symbols and people."""

from dataclasses import dataclass

EPSILON = 1.0

LARGEST = 43_750
"""The largest domain, for which there are aims."""

OURS = "sfumato"

MECHANISMS = {
    "pure-ldp": ("Hadamard", "OUE", "OLH"),
    "multi-freq-ldpy": ("k-RR", "subsets", "OUE"),
    "OpenDP": ("k-RR",),
    OURS: ("Hadamard", "cyclic", "k-RR", "high-low", "blocks of 25"),
}


@dataclass(frozen=True)
class PeerCase:
    """A measurement.

    ``task``: "speed" or "accuracy". ``seconds``: how long a timed run must take at least. ``runs``:
    how many runs accuracy is a mean of.
    """

    task: str
    library: str
    mechanism: str
    size: int
    people: int
    seconds: float
    runs: int
