"""How far the default decoder is from the truth, in total variation, and whether it is good enough.

    python benchmarks/decoders.py                   all cases
    python benchmarks/decoders.py ordered           one table: held-out, maps, ordered, cells,
                                                    few-large or shuffled
    python benchmarks/decoders.py ordered --only bells --tallies 3
    python benchmarks/decoders.py ordered --decoder likelihood EMS
    python benchmarks/decoders.py maps --counts FILE --counts FILE
                                                    also check-ins on a grid of 125 × 350 cells
                                                    (CSV: row, column, count)
    python benchmarks/decoders.py --speed           seconds and memory

Tallies are drawn from the multinomial distribution of the reports, with fixed seeds: no people are
simulated. Each table shows the decoder's mean error, the errors that ``decoder_figures.json``
contains for the same tallies, and the ratio to them in brackets. Then it states whether the decoder
keeps the limits of ``decoder_limits.py``. The exit status is 1 if it misses one.

``held_out_cases.py`` says which packages the held-out cases need. Do not tune a decoder on them.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator

import numpy as np

from decoder_case import DecoderCase
from decoder_cases import cases_in_order, cases_out_of_order, cell_cases, few_large_cases
from decoder_figures import DecoderFigures, case_key, tally_checksum
from decoder_limits import LIMITS
from decoder_maps import map_cases, maps_out_of_order
from decoder_rivals import decode
from decoder_speed import print_speed
from decoder_table import CaseResult, print_table
from held_out_cases import HELD_OUT_CASES, load_held_out

TALLIES = {
    "held-out": 10,
    "ordered": 10,
    "maps": 5,
    "cells": 4,
    "few-large": 10,
    "shuffled": 5,
}
RIVALS = (
    "previous default",
    "projection",
    "global projection",
    "EMS",
    "prototype trees",
    "prototype splines",
    "prototype average",
)


def main() -> int:
    options = parse_options()
    is_good = True
    for decoder in options.decoder:
        if options.speed:
            is_good = print_speed(decoder) and is_good
            continue
        for group in LIMITS if options.group == "all" else [options.group]:
            is_good = judge_group(group, decoder, options) and is_good
    return 0 if is_good else 1


def judge_group(group: str, decoder: str, options: argparse.Namespace) -> bool:
    """Print a table and its verdicts. Return whether the decoder keeps all limits."""
    cases = cases_of(group, options.counts, options.only)
    tallies = options.tallies or TALLIES[group]
    try:
        results = measure(cases, decoder, tallies, DecoderFigures(), options.record)
    except ModuleNotFoundError as error:
        print(f"\n{group}: {error}", flush=True)
        return False
    if not results:
        return True
    print_table(f"{group}: {decoder}, {tallies} tallies", results, RIVALS)
    return print_verdicts(group, results)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("group", nargs="?", choices=("all", *LIMITS), default="all")
    parser.add_argument("--tallies", type=int, help="tallies per case")
    parser.add_argument("--only", default="", help="only cases whose name contains this")
    parser.add_argument("--decoder", nargs="+", default=["auto"])
    parser.add_argument("--counts", action="append", default=[], metavar="FILE")
    parser.add_argument("--speed", action="store_true", help="measure seconds and memory instead")
    parser.add_argument("--record", metavar="NAME", help="put the errors on record as NAME")
    return parser.parse_args()


def cases_of(group: str, count_files: list[str], only: str) -> Iterator[DecoderCase]:
    """Yield the cases of a table whose name contains ``only``."""
    if group == "held-out":
        for held_out in HELD_OUT_CASES:
            if only in held_out.name:
                yield load_held_out(held_out)
        return
    for case in development_cases(group, count_files):
        if only in case.name:
            yield case


def development_cases(group: str, count_files: list[str]) -> Iterator[DecoderCase]:
    if group == "ordered":
        yield from cases_in_order()
    elif group == "maps":
        yield from map_cases(count_files)
    elif group == "cells":
        yield from cell_cases()
    elif group == "few-large":
        yield from few_large_cases()
    else:
        yield from cases_out_of_order()
        yield from maps_out_of_order()


def measure(
    cases: Iterable[DecoderCase],
    decoder: str,
    tally_count: int,
    figures: DecoderFigures,
    record_name: str | None,
) -> list[CaseResult]:
    results = []
    for case in cases:
        print(f"\r{case.group}: {case.name:<50}", end="", file=sys.stderr, flush=True)
        tallies = [case.tally(number) for number in range(tally_count)]
        errors = []
        for tally in tallies:
            errors.append(case.error(decode(decoder, case.mechanism, tally)))
        key = case_key(case.group, case.name)
        checksums = [tally_checksum(tally) for tally in tallies]
        if record_name is not None:
            figures.record(key, record_name, checksums, errors)
            figures.save()
        rivals = {}
        for rival in RIVALS:
            on_record = figures.errors(key, rival, checksums)
            if on_record:
                rivals[rival] = float(np.mean(on_record))
        results.append(CaseResult(case.name, float(np.mean(errors)), rivals))
    print("\r" + " " * 70 + "\r", end="", file=sys.stderr, flush=True)
    return results


def print_verdicts(group: str, results: list[CaseResult]) -> bool:
    is_good = True
    for verdict in LIMITS[group](results):
        print(f"{'met   ' if verdict.is_met else 'MISSED'}  {verdict.text}", flush=True)
        is_good = is_good and verdict.is_met
    return is_good


if __name__ == "__main__":
    sys.exit(main())
