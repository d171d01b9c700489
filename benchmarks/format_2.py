"""Compare format 2 with format 1: bytes per report, and time to write and read a batch.

    python benchmarks/format_2.py

Both formats are measured in turn, in one run, so that a busy machine slows both alike.
"""

import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np

import sfumato as sf
from sfumato.batches import (
    Batch,
    UploadRules,
    fresh_id,
    parse_arrow_batch,
    parse_batch,
    to_arrow,
    to_json,
)
from sfumato.cells import CellKey
from sfumato.foundation.periods import period_name

ROUNDS = 15
SINGLES = 4_000


def main() -> None:
    """Print one row for each kind of batch."""
    print(f"{'batch':<34}{'bytes 1':>9}{'bytes 2':>9}{'ratio':>7}{'time 2 / time 1':>17}")
    for repeat in ("once", "week"):
        for reports, write, parse in (
            (1, to_json, parse_batch),
            (1_000, to_json, parse_batch),
            (10_000, to_arrow, parse_arrow_batch),
        ):
            form = "JSON" if write is to_json else "Arrow"
            _print_row(f"{repeat}, {reports:,} reports, {form}", repeat, reports, write, parse)


def _print_row(
    name: str,
    repeat: str,
    report_count: int,
    write: Callable[[Batch], bytes],
    parse: Callable[[bytes, UploadRules], Batch],
) -> None:
    batches = [_make_batch(edition, repeat, report_count) for edition in (1, 2)]
    sizes = [len(write(batch)) for batch, _ in batches]
    repetitions = max(1, SINGLES // report_count)
    ratios = []
    for _ in range(ROUNDS):
        first, second = (_measure(*batch, write, parse, repetitions) for batch in batches)
        ratios.append(second / first)
    ratio = statistics.median(ratios)
    print(f"{name:<34}{sizes[0]:>9}{sizes[1]:>9}{sizes[1] / sizes[0]:>7.2f}{ratio:>17.2f}")


def _make_batch(edition: int, repeat: str, report_count: int) -> tuple[Batch, UploadRules]:
    often: Any = "once" if repeat == "once" else {"every": repeat, "distinct": 3}
    survey = sf.Survey("speed", sf.Uniform(500, 1), repeat=often, edition=edition)
    rules = UploadRules.from_survey(survey)
    period = period_name(rules.every, datetime.now(UTC)) if rules.every else ""
    generator = np.random.default_rng(1)
    reports = generator.integers(0, rules.outputs, report_count).astype(np.uint32)
    batch = Batch(fresh_id(), survey.fingerprint, reports, CellKey(period), edition)
    return batch, rules


def _measure(
    batch: Batch,
    rules: UploadRules,
    write: Callable[[Batch], bytes],
    parse: Callable[[bytes, UploadRules], Batch],
    repetitions: int,
) -> float:
    """Return the seconds to write, read and check a batch."""
    now = datetime.now(UTC)
    start = time.perf_counter()
    for _ in range(repetitions):
        parsed = parse(write(batch), rules)
        parsed.require(rules.outputs)
        rules.assign_cell(parsed, now)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
