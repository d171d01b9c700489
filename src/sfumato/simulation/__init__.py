"""Seeded simulations, comparisons and attacks: reproducible, and therefore NOT PRIVATE."""

from sfumato.simulation.attack import AttackResult, attack
from sfumato.simulation.baselines import Baseline, LocalHashing, UnaryEncoding, binomial_counts
from sfumato.simulation.compare import Comparison, Row, compare
from sfumato.simulation.runs import (
    Draws,
    Population,
    Spread,
    column_population,
    run_jobs,
    survey_population,
    tally_population,
)
from sfumato.simulation.seeded import SeededWords, draw_order, draw_people, experiment_words
from sfumato.simulation.seeded_reports import reports
from sfumato.simulation.simulate import Simulation, simulate, simulate_files

__all__ = [
    "AttackResult",
    "Baseline",
    "Comparison",
    "Draws",
    "LocalHashing",
    "Population",
    "Row",
    "SeededWords",
    "Simulation",
    "Spread",
    "UnaryEncoding",
    "attack",
    "binomial_counts",
    "column_population",
    "compare",
    "draw_order",
    "draw_people",
    "experiment_words",
    "reports",
    "run_jobs",
    "simulate",
    "simulate_files",
    "survey_population",
    "tally_population",
]
