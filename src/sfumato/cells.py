"""Cells: a survey's tally, split by what its reports declare in the clear.

Each report belongs to one cell. Today a cell is a period of a repeated survey; a survey answered
once has a single cell. ``docs/format.md`` reserves further parts of a key: the public group, the
cohort, and the question or pair of questions. None of them depends on a person's answer.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, reduce
from operator import add

from sfumato.errors import InvalidTally
from sfumato.foundation.canonical import Json, canonical_bytes
from sfumato.tally import Tally

__all__ = ["NO_KEY", "CellKey", "TallyCells"]


@dataclass(frozen=True, order=True)
class CellKey:
    """The parts of a report that are not private. ``period`` is "" if there are no periods.

    >>> CellKey("2026-W46").text, CellKey().text
    ('{"period":"2026-W46"}', '')
    """

    period: str = ""

    @property
    def text(self) -> str:
        """The key as canonical JSON, or "" if it has no parts."""
        return _key_text(self)

    def to_record(self) -> dict[str, Json]:
        """Return the parts of the key that are set."""
        return {"period": self.period} if self.period else {}

    @classmethod
    def from_record(cls, record: object) -> "CellKey":
        """Build a key from its record. ``UploadRules`` checks the names of periods."""
        if not isinstance(record, Mapping) or not set(record) <= {"period"}:
            raise InvalidTally("the key of a cell may only have a period.")
        period = record.get("period", "")
        if not isinstance(period, str) or not period.isascii() or (period == "" and record):
            raise InvalidTally("the period of a cell must be text such as 2026-W46.")
        return cls(period)


@lru_cache(maxsize=1024)  # every upload needs the text, and uploads share a few keys
def _key_text(key: CellKey) -> str:
    record = key.to_record()
    return canonical_bytes(record).decode("utf-8") if record else ""


NO_KEY = CellKey()
"""The key of a survey's only cell."""


@dataclass(frozen=True, eq=False)
class TallyCells:
    """The tallies of a survey's cells. They add up in any order, cell by cell.

    >>> import numpy as np
    >>> week = TallyCells({CellKey("2026-W46"): Tally(np.array([1, 2]), "lunch")})
    >>> (week + week).total().counts
    array([2, 4])
    """

    cells: Mapping[CellKey, Tally]

    def __post_init__(self) -> None:
        if not self.cells:
            raise InvalidTally("a tally must have at least one cell.")
        first = next(iter(self.cells.values()))
        for tally in self.cells.values():
            tally.require(first.fingerprint, first.outputs)
        object.__setattr__(self, "cells", dict(sorted(self.cells.items())))

    @classmethod
    def single(cls, tally: Tally) -> "TallyCells":
        """Return a tally as the only cell of a survey that has no keys."""
        return cls({NO_KEY: tally})

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the survey."""
        return self._first.fingerprint

    @property
    def outputs(self) -> int:
        """The number of possible reports."""
        return self._first.outputs

    def total(self) -> Tally:
        """Return the sum of all cells."""
        return reduce(add, self.cells.values())

    def __add__(self, other: "TallyCells") -> "TallyCells":
        if not isinstance(other, TallyCells):
            return NotImplemented
        return TallyCells(_add_by_key([*self.cells.items(), *other.cells.items()]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TallyCells) and self.cells == other.cells

    def __hash__(self) -> int:
        return hash(tuple(self.cells.items()))

    @property
    def _first(self) -> Tally:
        return next(iter(self.cells.values()))


def _add_by_key(items: Iterable[tuple[CellKey, Tally]]) -> dict[CellKey, Tally]:
    sums: dict[CellKey, Tally] = {}
    for key, tally in items:
        sums[key] = sums[key] + tally if key in sums else tally
    return sums
