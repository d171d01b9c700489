"""The dashboard of an aggregator."""
