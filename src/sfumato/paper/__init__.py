"""Reproduce the figures and the table of Acharya et al. (2020), next to Sfumato's best results.

Import the modules directly. Drawing requires the ``charts`` extra.
"""
