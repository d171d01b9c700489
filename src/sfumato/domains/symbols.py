"""The one gate through which symbols enter: integers in 0..k−1, checked once, never echoed."""

from contextlib import suppress

import numpy as np

from sfumato.errors import InvalidSymbols
from sfumato.foundation.arrays import Symbols

__all__ = ["all_below", "checked_symbols", "kind_of"]

_KINDS = {
    "f": "floats",
    "c": "complex numbers",
    "b": "booleans",
    "O": "objects",
    "U": "text",
    "S": "bytes",
}


def checked_symbols(symbols: object, size: int) -> Symbols:
    """``symbols`` as an array of integers in ``0 … size − 1``, of whatever shape they have.

    >>> checked_symbols([2, 0, 1], size=3)
    array([2, 0, 1])
    """
    array = _array(symbols)
    if array.dtype.kind not in "iu":
        raise InvalidSymbols(
            f"symbols must be integers in 0..{size - 1}; found {kind_of(array)}. "
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
    """NumPy's own message could hold a value, so ours is raised when it is gone."""
    with suppress(ValueError, TypeError):
        return np.asarray(symbols)
    raise InvalidSymbols("symbols must be an array of integers; found a ragged sequence.")


def all_below(array: np.ndarray, size: int) -> bool:
    """Whether integers lie in ``0 … size − 1``; in one pass where a negative one, without its sign, is too large.

    >>> all_below(np.array([-1], dtype=np.int8), 300), all_below(np.array([0, 299]), 300)
    (False, True)
    """
    if array.dtype.kind == "i" and array.dtype.isnative and size <= 2 ** (8 * array.itemsize - 1):
        return bool(array.view(f"u{array.itemsize}").max() < size)
    return bool(array.min() >= 0 and array.max() < size)


def kind_of(array: np.ndarray) -> str:
    """What an array holds, in words that reveal no entry."""
    if array.size == 0:
        return "nothing"
    return _KINDS.get(array.dtype.kind, "something else")
