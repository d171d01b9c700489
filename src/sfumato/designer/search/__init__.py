"""The search for the best mechanism: column generation over extreme rays."""
