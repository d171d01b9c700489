"""Types of arguments that people write, such as a number that must be read exactly.

``DomainLike`` is in ``sfumato.domains``, because it refers to domains.
"""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from numpy.typing import NDArray

__all__ = ["ClassesLike", "MatrixLike", "NumberLike", "NumbersByClass"]

NumberLike = float | str | Fraction | Decimal
"""A number, or ``inf``. Text such as "0.1" or "1/3" is read exactly, and a float as it prints."""

MatrixLike = Sequence[Sequence[NumberLike] | NDArray[Any]] | NDArray[Any]
"""A matrix: an array, or rows of numbers."""

ClassesLike = Mapping[Any, str | int] | Iterable[str | int]
"""The class of each symbol (its block, tier or tile): a mapping from label to class, or a sequence
in domain order."""

NumbersByClass = Mapping[Any, NumberLike] | Iterable[NumberLike]
"""A number for each class: a mapping from class to number, or a sequence in class order."""
