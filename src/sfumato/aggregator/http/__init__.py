"""The HTTP side of the aggregator: routes, limits, errors."""
