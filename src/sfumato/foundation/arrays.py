"""Array types shared by all packages."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrow = Any
"""Any pyarrow object; pyarrow has no type annotations."""

Symbols = NDArray[np.int64]
"""Symbols (integers in 0..k-1), or other integers such as the group of each symbol."""

Reports = NDArray[np.uint32]
"""Reports: integers in 0..outputs-1, one per person."""

Words = NDArray[np.uint64]
"""Uniformly random 64-bit words, or outputs computed from them."""

PerPerson = Any
"""A number that a kernel computes: an ``int`` for one person, or an array of uint64 for many."""

KernelWords = Any
"""A kernel's random words: a list of ``int`` for one person, or an array of uint64 for many, with a
row for each word and a column for each person."""

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
