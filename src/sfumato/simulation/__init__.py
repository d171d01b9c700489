"""Simulation and comparison under a seed: repeatable, and therefore NOT PRIVATE."""

from sfumato.simulation.baselines import LocalHashing, Rival, UnaryEncoding
from sfumato.simulation.compare import Comparison, Row, compare
from sfumato.simulation.draws import Draws
from sfumato.simulation.seeded import SeededWords
from sfumato.simulation.simulate import Simulation, simulate

__all__ = [
    "Comparison",
    "Draws",
    "LocalHashing",
    "Rival",
    "Row",
    "SeededWords",
    "Simulation",
    "UnaryEncoding",
    "compare",
    "simulate",
]
