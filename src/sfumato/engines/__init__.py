"""Engines: many people at a time, on the cores of one machine or on a cluster."""
