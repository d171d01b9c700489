"""Tables of errors next to those on record, with the geometric mean and the worst of each ratio."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["CaseResult", "Ratios", "print_table"]


@dataclass(frozen=True)
class CaseResult:
    """The mean error of a decoder in one case, and those of its rivals on the same tallies.

    ``rivals`` leaves out a rival whose errors on these tallies are not on record.
    """

    name: str
    error: float
    rivals: dict[str, float]

    def ratio(self, rival: str) -> float | None:
        error = self.rivals.get(rival)
        return None if error is None else self.error / error


@dataclass(frozen=True)
class Ratios:
    """The errors of a decoder over those of one rival, for the cases with both."""

    names: list[str]
    values: list[float]

    @classmethod
    def over(cls, rival: str, results: Sequence[CaseResult]) -> "Ratios":
        names = []
        values = []
        for result in results:
            ratio = result.ratio(rival)
            if ratio is not None:
                names.append(result.name)
                values.append(ratio)
        return cls(names, values)

    @property
    def mean(self) -> float:
        """The geometric mean."""
        return float(np.exp(np.log(self.values).mean()))

    @property
    def worst(self) -> float:
        return max(self.values)

    @property
    def worst_name(self) -> str:
        return self.names[self.values.index(self.worst)]

    def above(self, limit: float) -> int:
        return sum(value > limit for value in self.values)


def print_table(title: str, results: Sequence[CaseResult], rivals: Sequence[str]) -> None:
    """Print the error of each case, each rival's, and the ratio to it in brackets."""
    rivals = [rival for rival in rivals if any(rival in result.rivals for result in results)]
    width = max(len(result.name) for result in results)
    columns = "".join(f"{rival:>20}" for rival in rivals)
    print(f"\n{title}\n{'':{width}} {'error':>8}{columns}")
    for result in results:
        row = "".join(f"{_cell(result, rival):>20}" for rival in rivals)
        print(f"{result.name:{width}} {result.error:8.4f}{row}")
    if not rivals:
        print("No errors are on record for these tallies.", flush=True)
        return
    ratios = [Ratios.over(rival, results) for rival in rivals]
    means = "".join(f"{_bracket(each.mean):>20}" for each in ratios)
    worst = "".join(f"{_bracket(each.worst):>20}" for each in ratios)
    print(f"{'geometric mean':{width}} {'':8}{means}\n{'worst':{width}} {'':8}{worst}", flush=True)


def _cell(result: CaseResult, rival: str) -> str:
    ratio = result.ratio(rival)
    if ratio is None:
        return "–"
    return f"{result.rivals[rival]:.4f} {_bracket(ratio)}"


def _bracket(ratio: float) -> str:
    return f"({ratio:6.3f})"
