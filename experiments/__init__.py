"""Experiments that go beyond the paper. They are not part of the package.

Run one with ``python -m experiments bounds --quick``. Each experiment is a function in the module
of the same name.
"""
