"""What runs inside the tasks of a Spark job: a stream of Arrow batches in, one of sums or of reports out.

A survey arrives as its resolved bytes and is rebuilt once in each Python worker. What is wrong with the data is handed
back as a row, not raised: Spark would try such a task again and again, and print where it stopped each time.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.engines.spark.keyed import keyed_reports_from
from sfumato.engines.spark.secret import Ticket
from sfumato.errors import SfumatoError, UnknownValue
from sfumato.foundation.arrays import Symbols
from sfumato.survey import Survey
from sfumato.tables import AnswerColumns, answer_batches, answer_reader
from sfumato.tally import Tally

__all__ = [
    "FLAGGED",
    "OUTCOME",
    "counts_bytes",
    "counts_of",
    "flag_unknown",
    "report_in_task",
    "tally_files_in_task",
    "tally_in_task",
]

OUTCOME = "part int, counts binary, error string, message string"
FLAGGED = "block binary, unknown int"

Batches = Iterable[Any]
"""Arrow record batches; pyarrow has no types."""

Counts = NDArray[np.int64]


# --- counting ---------------------------------------------------------------------------------------------------------


def tally_in_task(resolved: bytes, columns: AnswerColumns, batches: Batches) -> Iterator[Any]:
    """The tally of the task's people, as one row."""
    survey = _survey_of(resolved)
    yield _outcome(survey, _symbols(survey, columns, batches))


def tally_files_in_task(
    resolved: bytes, columns: AnswerColumns, paths: tuple[str, ...], batches: Batches
) -> Iterator[Any]:
    """The tally of the people in the task's files, as one row; batches hold numbers of paths."""
    survey = _survey_of(resolved)
    own = (paths[i] for batch in batches for i in batch.column(0).to_pylist())
    domain = survey.context.domain
    yield _outcome(
        survey, (symbols for path in own for symbols in answer_batches(path, columns, domain))
    )


def _outcome(survey: Survey, symbols: Iterator[Symbols]) -> Any:  # noqa: ANN401
    part = _partition()
    try:
        tally: Tally = survey.mechanism.privatize_and_tally(symbols)
    except SfumatoError as problem:
        return _row(part, None, type(problem).__name__, str(problem))
    return _row(part, counts_bytes(tally.counts), None, None)


def counts_bytes(counts: Counts) -> bytes:
    """Counts in the narrowest integers that hold them all, for the driver gets these bytes from every task.

    >>> list(counts_bytes(np.array([3, 0, 255]))), len(counts_bytes(np.array([3, 0, 256])))
    ([3, 0, 255], 6)
    """
    narrowest = np.min_scalar_type(int(counts.max()))
    return counts.astype(narrowest.newbyteorder("<")).tobytes()


def counts_of(held: bytes, outputs: int) -> Counts:
    """Counts as they were before ``counts_bytes``."""
    return np.frombuffer(held, dtype=f"<u{len(held) // outputs}").astype(np.int64)


def _row(part: int, counts: bytes | None, error: str | None, message: str | None) -> Any:  # noqa: ANN401
    columns = [
        ([part], pa.int32()),
        ([counts], pa.binary()),
        ([error], pa.string()),
        ([message], pa.string()),
    ]
    arrays = [pa.array(values, kind) for values, kind in columns]
    return pa.record_batch(arrays, names=["part", "counts", "error", "message"])


# --- reports under keys -----------------------------------------------------------------------------------------------


def flag_unknown(resolved: bytes, columns: AnswerColumns, batches: Batches) -> Iterator[Any]:
    """The block of each person, and in one row of each batch how many of its values are unknown."""
    survey = _survey_of(resolved)
    read = answer_reader(columns, survey.context.domain)
    for batch in batches:
        unknown = np.zeros(batch.num_rows, dtype=np.int32)
        if batch.num_rows:
            try:
                read(batch.drop_columns(["block"]))
            except UnknownValue as problem:
                unknown[0] = problem.count
        yield pa.record_batch(
            [batch.column("block"), pa.array(unknown)], names=["block", "unknown"]
        )


def report_in_task(
    resolved: bytes, columns: AnswerColumns, ticket: Ticket, batches: Batches
) -> Iterator[Any]:
    """The key and the report of each person, by the words that belong to the person's block and symbol."""
    survey = _survey_of(resolved)
    read = answer_reader(columns, survey.context.domain)
    secret = ticket.fetch()
    for batch in batches:
        if batch.num_rows:
            symbols = read(batch.drop_columns(["key", "block"]))
            blocks = b"".join(batch.column("block").to_pylist())
            reports = keyed_reports_from(survey.mechanism, symbols, blocks, secret).astype(np.int32)
            yield pa.record_batch([batch.column("key"), pa.array(reports)], names=["key", "report"])


# --- people's values --------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def _survey_of(resolved: bytes) -> Survey:
    return Survey.of_resolved(resolved)


def _symbols(survey: Survey, columns: AnswerColumns, batches: Batches) -> Iterator[Symbols]:
    """The symbols of a column, batch by batch; after the first unknown value only unknown values are counted."""
    read = answer_reader(columns, survey.context.domain)
    people = unknown = 0
    for batch in batches:
        people += batch.num_rows
        try:
            symbols = read(batch) if batch.num_rows else None
        except UnknownValue as problem:
            unknown += problem.count
            continue
        if symbols is not None and not unknown:
            yield symbols
    if unknown:
        raise UnknownValue(
            f"{unknown} of {people} values in partition {_partition()} are not in the domain, or missing. Correct "
            "them, add their labels, or give the domain an `other` label.",
            count=unknown,
        )


def _partition() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else int(context.partitionId())
