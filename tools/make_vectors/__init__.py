"""The factory of the test vectors: ``python -m tools.make_vectors test-vectors``.

The vectors depend on nothing but the code: they are always the same, to the byte.
"""
