"""The factory of the test vectors: ``python -m tools.make_vectors test-vectors``.

Every module makes the cases of one file. The vectors depend on nothing but the code: they are always
the same, to the byte.
"""
