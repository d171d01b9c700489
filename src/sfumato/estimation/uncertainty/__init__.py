"""Uncertainty: intervals, totals, changes, rankings, goodness of fit and manipulation."""
