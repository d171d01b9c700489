"""What is measured: a mechanism of a library, for so many symbols and people."""

from dataclasses import dataclass

EPSILON = 1.0

LARGEST = 43_750
"""The largest domain, in which aims are set."""

OURS = "sfumato"

MECHANISMS = {
    "pure-ldp": ("Hadamard", "OUE", "OLH"),
    "multi-freq-ldpy": ("k-RR", "subsets", "OUE"),
    "OpenDP": ("k-RR",),
    OURS: ("Hadamard", "cyclic", "k-RR", "high-low", "blocks of 25"),
}


@dataclass(frozen=True)
class Case:
    """``task`` is speed or accuracy. A timed run of ``seconds`` is long enough; accuracy is a mean of ``runs``."""

    task: str
    library: str
    mechanism: str
    size: int
    people: int
    seconds: float
    runs: int
