"""Uncertainty: intervals, totals, changes, ranks, fit, and what forgers can do."""
