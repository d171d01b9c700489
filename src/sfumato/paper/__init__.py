"""Reproduce the paper's figures and its table, next to the results of Sfumato's best schemes.

Import the modules directly. Drawing requires the ``charts`` extra.
"""
