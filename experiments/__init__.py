"""Experiments beyond the paper: what it proves, leaves out or asks for. Not part of the package.

Run one with ``python -m experiments bounds --quick``. Every experiment is a function of the same
name in the module of that name.
"""
