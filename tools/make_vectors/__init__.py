"""Generate the test vectors: ``python -m tools.make_vectors test-vectors``.

The output depends only on the code: it is the same byte for byte every time.
"""
