"""What the default decoder must achieve, table by table."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from decoder_table import CaseResult, Ratios

__all__ = ["LIMITS", "Verdict"]

PREVIOUS = "previous default"
TREES = "prototype trees"
ORDERED_RIVALS = {PREVIOUS, "EMS", TREES, "prototype splines"}
SMALL_ERROR = 0.02  # errors as small as this may differ by SMALL_DIFFERENCE
SMALL_DIFFERENCE = 0.01
MAP_LIMITS = {
    "check-ins 3,674,208": {"LDP": 0.340, "(5, 7)": 0.164, "(25, 35)": 0.076, "(25, 70)": 0.063},
    "check-ins 643,148": {"LDP": 0.205, "(5, 7)": 0.086, "(25, 35)": 0.041, "(25, 70)": 0.038},
}
ORDINARY = ("Zipf(1)", "Zipf(1.5)", "Dirichlet(.05)", "even")  # crowds with no few large symbols


class Verdict(NamedTuple):
    """``text`` states the limit and the figure that it limits."""

    is_met: bool
    text: str


def judge_held_out(results: Sequence[CaseResult]) -> Iterator[Verdict]:
    yield from _worst(results, PREVIOUS, 1.05)


def judge_ordered(results: Sequence[CaseResult]) -> Iterator[Verdict]:
    yield from _mean(results, PREVIOUS, 0.45)
    yield from _worst(results, PREVIOUS, 1.05)
    on_record = [result for result in results if result.rivals.keys() & ORDERED_RIVALS]
    if on_record:
        exceptions = [result.name for result in on_record if not _is_near_best(result)]
        text = f"at most 4 cases above 1.10 × the best rival: {len(exceptions)}"
        text += f" ({'; '.join(exceptions)})"
        incomplete = [result.name for result in results if ORDERED_RIVALS - result.rivals.keys()]
        if incomplete:
            text += f"; not compared with every rival: {'; '.join(incomplete)}"
        yield Verdict(len(exceptions) <= 4, text)


def judge_maps(results: Sequence[CaseResult]) -> Iterator[Verdict]:
    for name, limits in MAP_LIMITS.items():
        for level, limit in limits.items():
            for result in results:
                if result.name == f"{name}, {level}":
                    text = f"{result.name}: at most {limit:.3f}: {result.error:.4f}"
                    yield Verdict(result.error <= limit, text)
    cities = [result for result in results if result.name.startswith("cities")]
    yield from _worst(cities, TREES, 1.01)


def judge_cells(results: Sequence[CaseResult]) -> Iterator[Verdict]:
    yield from _mean(results, "global projection", 0.36)
    yield from _worst(results, "global projection", 1.03)


def judge_few_large(results: Sequence[CaseResult]) -> Iterator[Verdict]:
    yield from _worst([r for r in results if not r.name.startswith(ORDINARY)], "projection", 1.02)
    yield from _worst([r for r in results if r.name.startswith(ORDINARY)], PREVIOUS, 1.02)


def judge_shuffled(results: Sequence[CaseResult]) -> Iterator[Verdict]:
    yield from _mean(results, PREVIOUS, 1.02)
    yield from _worst(results, PREVIOUS, 1.02)


LIMITS: dict[str, Callable[[Sequence[CaseResult]], Iterator[Verdict]]] = {
    "held-out": judge_held_out,
    "ordered": judge_ordered,
    "maps": judge_maps,
    "cells": judge_cells,
    "few-large": judge_few_large,
    "shuffled": judge_shuffled,
}


def _mean(results: Sequence[CaseResult], rival: str, limit: float) -> Iterator[Verdict]:
    ratios = Ratios.over(rival, results)
    if ratios.values:
        text = f"geometric mean at most {limit} × {rival}: {ratios.mean:.3f}"
        yield Verdict(ratios.mean <= limit, text)


def _worst(results: Sequence[CaseResult], rival: str, limit: float) -> Iterator[Verdict]:
    ratios = Ratios.over(rival, results)
    if ratios.values:
        text = f"no case above {limit} × {rival}: {ratios.above(limit)} of {len(ratios.values)}"
        text += f", worst {ratios.worst:.3f} ({ratios.worst_name})"
        yield Verdict(ratios.worst <= limit, text)


def _is_near_best(result: CaseResult) -> bool:
    """Return whether the error is at most 1.10 × the best rival's, or both are small."""
    best = min(result.rivals[rival] for rival in ORDERED_RIVALS & result.rivals.keys())
    is_small = best < SMALL_ERROR and result.error <= best + SMALL_DIFFERENCE
    return is_small or result.error <= 1.10 * best
