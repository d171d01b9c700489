"""Check symbols where they enter: integers in 0..k−1, never echoed in an error."""

from contextlib import suppress

import numpy as np

from sfumato.errors import InvalidSymbols
from sfumato.foundation.arrays import Symbols

__all__ = ["all_below", "kind_of", "require_symbols"]

_KINDS = {
    "f": "floats",
    "c": "complex numbers",
    "b": "booleans",
    "O": "objects",
    "U": "text",
    "S": "bytes",
}


def require_symbols(symbols: object, size: int) -> Symbols:
    """Return ``symbols`` as an array of integers in ``0 … size − 1``, of any shape.

    >>> require_symbols([2, 0, 1], size=3)
    array([2, 0, 1])
    """
    array = _array(symbols)
    if array.dtype.kind not in "iu":
        raise InvalidSymbols(
            f"symbols must be integers in 0..{size - 1}; got {kind_of(array)}. "
            "Turn values into symbols with the domain's `symbols` method."
        )
    if array.size and not all_below(array, size):
        outside = (array < 0) | (array >= size)
        first = int(np.argmax(outside.ravel()))
        raise InvalidSymbols(
            f"symbols must lie in 0..{size - 1}; {int(outside.sum())} of {array.size} do not "
            f"(the first at position {first})."
        )
    return array.astype(np.int64, copy=False)


def _array(symbols: object) -> np.ndarray:
    """Return an array; NumPy's own error could quote a value, so raise ours outside of it."""
    with suppress(ValueError, TypeError):
        return np.asarray(symbols)
    raise InvalidSymbols("symbols must be an array of integers; got a ragged sequence.")


def all_below(array: np.ndarray, size: int) -> bool:
    """Return whether integers lie in ``0 … size − 1``.

    One pass is enough where a negative integer, read without its sign, is too large.

    >>> all_below(np.array([-1], dtype=np.int8), 300), all_below(np.array([0, 299]), 300)
    (False, True)
    """
    if array.dtype.kind == "i" and array.dtype.isnative and size <= 2 ** (8 * array.itemsize - 1):
        return bool(array.view(f"u{array.itemsize}").max() < size)
    return bool(array.min() >= 0 and array.max() < size)


def kind_of(array: np.ndarray) -> str:
    """Say what an array contains, without revealing an entry."""
    if array.size == 0:
        return "nothing"
    return _KINDS.get(array.dtype.kind, "something else")
