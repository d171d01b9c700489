"""The functions that run inside Spark tasks: Arrow batches in, counts or reports out.

A survey arrives as its resolved bytes, and each Python worker rebuilds it once. Tasks return data
errors as a row instead of raising them: Spark would retry a failing task again and again, and
print its traceback each time.

With a key, a task that runs twice computes the same reports. The key names the person, F is the
survey's fingerprint as 32 bytes, and each job has a secret of 32 bytes:

    block of a person   SHA-256(F ‖ key)[:16]
    words of an answer  AES(AES(block) ⊕ symbol), AES-256 under the job's secret

The symbol is 8 bytes, little-endian, on the first half of the block. This is CBC-MAC over two
blocks, which is pseudorandom for messages of one length: each pair of key and symbol has its own
independent words. Words do not depend on rows, chunks, tasks or attempts.

This protects a person as long as each key has a single value. If a key has two values, the person
sends two independent reports. Together their contents reveal at most 2E, but the bare fact that
they differ *proves* that the values differ, and no privacy matrix bounds that. Callers must
therefore rule out a second value; hashing the symbol only limits the damage. Anyone with both the
secret and a key can try every symbol.
"""

import hashlib
from collections.abc import Iterable, Iterator
from functools import lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.engines.spark.secret import Ticket
from sfumato.errors import SfumatoError, UnknownValue
from sfumato.foundation.arrays import Arrow, Reports, Symbols, Words
from sfumato.mechanisms import Mechanism
from sfumato.randomness import words_at
from sfumato.survey import Survey
from sfumato.tables import AnswerColumns, answer_batches, answer_reader

__all__ = [
    "FLAGS_SCHEMA",
    "OUTCOME_SCHEMA",
    "block_of",
    "counts_from_bytes",
    "counts_to_bytes",
    "flag_unknown",
    "report_in_task",
    "reports_under_keys",
    "tally_files_in_task",
    "tally_in_task",
]

OUTCOME_SCHEMA = "part int, counts binary, error string, message string"
FLAGS_SCHEMA = "block binary, unknown int"

Batches = Iterable[Arrow]
Counts = NDArray[np.int64]


# --- counting -------------------------------------------------------------------------------------


def tally_in_task(resolved: bytes, columns: AnswerColumns, batches: Batches) -> Iterator[Arrow]:
    """Yield the tally of the task's people, as one row."""
    survey = _load_survey(resolved)
    yield _outcome(survey, _symbols(survey, columns, batches))


def tally_files_in_task(
    resolved: bytes, columns: AnswerColumns, paths: tuple[str, ...], batches: Batches
) -> Iterator[Arrow]:
    """Yield the tally of the people in the task's files, as one row.

    ``batches`` hold the task's indices into ``paths``.
    """
    survey = _load_survey(resolved)
    yield _outcome(survey, _symbols_in_files(survey, columns, paths, batches))


def _outcome(survey: Survey, symbols: Iterator[Symbols]) -> Arrow:
    counts = None
    error = None
    message = None
    try:
        tally = survey.mechanism.privatize_and_tally(symbols)
        counts = counts_to_bytes(tally.counts)
    except SfumatoError as problem:
        error = type(problem).__name__
        message = str(problem)
    columns = {
        "part": pa.array([_partition()], pa.int32()),
        "counts": pa.array([counts], pa.binary()),
        "error": pa.array([error], pa.string()),
        "message": pa.array([message], pa.string()),
    }
    return pa.record_batch(columns)


def counts_to_bytes(counts: Counts) -> bytes:
    """Serialize counts in the narrowest integers that fit: the driver collects them from all tasks.

    >>> list(counts_to_bytes(np.array([3, 0, 255]))), len(counts_to_bytes(np.array([3, 0, 256])))
    ([3, 0, 255], 6)
    """
    narrowest = np.min_scalar_type(int(counts.max()))
    return counts.astype(narrowest.newbyteorder("<")).tobytes()


def counts_from_bytes(content: bytes, outputs: int) -> Counts:
    """Parse the result of ``counts_to_bytes``."""
    width = len(content) // outputs
    return np.frombuffer(content, dtype=f"<u{width}").astype(np.int64)


# --- reports under keys ---------------------------------------------------------------------------


def flag_unknown(resolved: bytes, columns: AnswerColumns, batches: Batches) -> Iterator[Arrow]:
    """Yield each person's block. The first row of a batch has its number of unknown values."""
    survey = _load_survey(resolved)
    read = answer_reader(columns, survey.context.domain)
    for batch in batches:
        unknown = np.zeros(batch.num_rows, dtype=np.int32)
        if batch.num_rows:
            try:
                read(batch.drop_columns(["block"]))
            except UnknownValue as problem:
                unknown[0] = problem.count
        yield pa.record_batch({"block": batch.column("block"), "unknown": pa.array(unknown)})


def report_in_task(
    resolved: bytes, columns: AnswerColumns, ticket: Ticket, batches: Batches
) -> Iterator[Arrow]:
    """Yield each person's key and report, from the words of the person's block and symbol."""
    survey = _load_survey(resolved)
    read = answer_reader(columns, survey.context.domain)
    secret = ticket.fetch()
    for batch in batches:
        if not batch.num_rows:
            continue
        symbols = read(batch.drop_columns(["key", "block"]))
        blocks = b"".join(batch.column("block").to_pylist())
        reports = reports_under_keys(survey.mechanism, symbols, blocks, secret)
        report_column = pa.array(reports.astype(np.int32))
        yield pa.record_batch({"key": batch.column("key"), "report": report_column})


def block_of(fingerprint: str, key: str | int | bytes) -> bytes:
    """Return a person's block. Hash text as UTF-8, integers as decimal digits, bytes unchanged.

    >>> block_of("00" * 32, 7) == block_of("00" * 32, "7") == block_of("00" * 32, b"7")
    True

    That is safe: all keys of a job have the same type, and each job has its own secret.
    """
    plain = key if isinstance(key, bytes) else str(key).encode("utf-8")
    return hashlib.sha256(bytes.fromhex(fingerprint) + plain).digest()[:16]


def reports_under_keys(
    mechanism: Mechanism, symbols: Symbols, blocks: bytes, secret: bytes
) -> Reports:
    """Return one report per symbol. ``blocks``: 16 bytes per person, in the order of the symbols.

    >>> from sfumato import PlainResponse, Uniform
    >>> mechanism = PlainResponse(Uniform(5, 1))
    >>> people = block_of("00" * 32, "Ada") + block_of("00" * 32, "Bo")
    >>> both = reports_under_keys(mechanism, np.array([3, 1]), people, bytes(32))
    >>> bo = reports_under_keys(mechanism, np.array([1]), people[16:], bytes(32))
    >>> bool(both[1] == bo[0])
    True
    """
    unused_bits = np.uint64(64 - mechanism.word_bits)
    words = _words_of(symbols, blocks, secret)[:, : mechanism.words]
    return mechanism.reports_from(symbols, words >> unused_bits)


def _words_of(symbols: Symbols, blocks: bytes, secret: bytes) -> Words:
    """Return two words for each pair of block and symbol, shape ``(people, 2)``."""
    chain = words_at(secret, blocks).astype("<u8")
    chain[:, 0] ^= symbols.astype("<u8")
    return words_at(secret, chain.tobytes())


# --- people's values ------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def _load_survey(resolved: bytes) -> Survey:
    return Survey.from_resolved(resolved)


def _symbols(survey: Survey, columns: AnswerColumns, batches: Batches) -> Iterator[Symbols]:
    """Yield the symbols of a column, batch by batch.

    After the first unknown value, only count the unknown values, and raise at the end.
    """
    read = answer_reader(columns, survey.context.domain)
    people = 0
    unknown = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        people += batch.num_rows
        try:
            symbols = read(batch)
        except UnknownValue as problem:
            unknown += problem.count
            continue
        if not unknown:
            yield symbols
    if unknown:
        raise UnknownValue(
            f"{unknown} of {people} values in partition {_partition()} are not in the domain, or "
            "missing. Correct them, add their labels, or give the domain an `other` label.",
            count=unknown,
        )


def _symbols_in_files(
    survey: Survey, columns: AnswerColumns, paths: tuple[str, ...], batches: Batches
) -> Iterator[Symbols]:
    """Yield the symbols of the files with the indices in ``batches``."""
    for batch in batches:
        for index in batch.column(0).to_pylist():
            yield from answer_batches(paths[index], columns, survey.context.domain)


def _partition() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else int(context.partitionId())
