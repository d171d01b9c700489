"""Simulation: repeatable, and therefore NOT PRIVATE."""

from sfumato.simulation.seeded import SeededWords
from sfumato.simulation.simulate import Simulation, simulate

__all__ = ["SeededWords", "Simulation", "simulate"]
