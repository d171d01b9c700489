"""Functions that run inside Spark tasks and convert Arrow batches to counts or reports.

A survey is sent in its resolved form, and each Python worker rebuilds it once. Tasks that tally
return errors as rows instead of raising them, because Spark would retry a failing task several
times and print its traceback each time.

With a key, a task that runs twice computes the same reports. The key identifies the person, F is
the survey's fingerprint as 32 bytes, and each job has a secret of 32 bytes:

    block of a person   SHA-256(F ‖ key)[:16]
    words of an answer  AES(AES(block) ⊕ symbol), AES-256 under the job's secret

The symbol is encoded as 8 little-endian bytes and combined with the first half of the block. This
is CBC-MAC over two blocks, which is pseudorandom for messages of a fixed length. So each pair of
key and symbol has its own independent words, which do not depend on rows, chunks, tasks or
attempts.

This protects a person as long as each key has a single value. If a key has two values, the person
sends two independent reports. Together their contents reveal at most 2E, but the mere fact that
they differ *proves* that the values differ, and no privacy matrix bounds that. Callers must
therefore rule out a second value. Deriving the words from the symbol as well as the key only limits
the damage.

Anyone with both the secret and a key can try every symbol.
"""

import hashlib
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import PurePath

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.engines.answer_tally import tally_answers
from sfumato.engines.spark.secret import Ticket
from sfumato.errors import SfumatoError
from sfumato.foundation.arrays import Arrow, Reports, Symbols, Words
from sfumato.mechanisms import Mechanism
from sfumato.randomness import words_at
from sfumato.survey import AnswerBatch, AnswerColumns, RowCounts, RowRules, Survey
from sfumato.tables import answer_batches, answer_reader

__all__ = [
    "FLAGS_SCHEMA",
    "OUTCOME_SCHEMA",
    "counts_from_bytes",
    "counts_to_bytes",
    "derive_reports",
    "flag_unknown",
    "person_block",
    "report_in_task",
    "tally_files_in_task",
    "tally_in_task",
]

OUTCOME_SCHEMA = (
    "part int, counts binary, error string, message string, "
    "rows bigint, missing bigint, unknown bigint"
)
FLAGS_SCHEMA = "block binary, missing int, unknown int"

Batches = Iterable[Arrow]
Counts = NDArray[np.int64]


# --- counting -------------------------------------------------------------------------------------


def tally_in_task(
    resolved_survey: bytes, columns: AnswerColumns, batches: Batches
) -> Iterator[Arrow]:
    """Yield the tally of the task's rows, and the counts of the rows, as one row."""
    survey = _load_survey(resolved_survey)
    read = answer_reader(columns, survey.context.domain)
    yield _outcome_row(survey, (read(batch) for batch in batches if batch.num_rows))


def tally_files_in_task(
    resolved_survey: bytes, columns: AnswerColumns, paths: tuple[str, ...], batches: Batches
) -> Iterator[Arrow]:
    """Yield the tally of the answers in the task's files, and the counts of the rows, as one row.

    ``batches`` contain the task's indices into ``paths``.
    """
    survey = _load_survey(resolved_survey)
    yield _outcome_row(survey, _read_files(survey, columns, paths, batches))


def _outcome_row(survey: Survey, batches: Iterator[AnswerBatch]) -> Arrow:
    counts = None
    error_name = None
    message = None
    row_counts = RowCounts()

    try:
        report_counts, row_counts = tally_answers(survey.mechanism, batches)
        counts = counts_to_bytes(report_counts)
    except SfumatoError as error:
        error_name = type(error).__name__
        message = str(error)
    columns = {
        "part": pa.array([_partition_id()], pa.int32()),
        "counts": pa.array([counts], pa.binary()),
        "error": pa.array([error_name], pa.string()),
        "message": pa.array([message], pa.string()),
        "rows": pa.array([row_counts.rows], pa.int64()),
        "missing": pa.array([row_counts.missing], pa.int64()),
        "unknown": pa.array([row_counts.unknown], pa.int64()),
    }
    return pa.record_batch(columns)


def counts_to_bytes(counts: Counts) -> bytes:
    """Serialize counts as the narrowest integers that fit, to save memory in the driver.

    >>> list(counts_to_bytes(np.array([3, 0, 255]))), len(counts_to_bytes(np.array([3, 0, 256])))
    ([3, 0, 255], 6)
    """
    narrowest_type = np.min_scalar_type(int(counts.max()))
    return counts.astype(narrowest_type.newbyteorder("<")).tobytes()


def counts_from_bytes(content: bytes, outputs: int) -> Counts:
    """Parse the result of ``counts_to_bytes``."""
    width = len(content) // outputs
    return np.frombuffer(content, dtype=f"<u{width}").astype(np.int64)


# --- keyed reports --------------------------------------------------------------------------------


def flag_unknown(
    resolved_survey: bytes, columns: AnswerColumns, batches: Batches
) -> Iterator[Arrow]:
    """Yield each row's block, and the counts of missing and unknown values.

    The first row of a batch has the counts for the entire batch; the other rows have 0.
    """
    survey = _load_survey(resolved_survey)
    read = answer_reader(columns, survey.context.domain)
    for batch in batches:
        missing_counts = np.zeros(batch.num_rows, dtype=np.int32)
        unknown_counts = np.zeros(batch.num_rows, dtype=np.int32)
        if batch.num_rows:
            counts = read(batch.drop_columns(["block"])).counts
            missing_counts[0] = counts.missing
            unknown_counts[0] = counts.unknown
        columns_by_name = {
            "block": batch.column("block"),
            "missing": pa.array(missing_counts),
            "unknown": pa.array(unknown_counts),
        }
        yield pa.record_batch(columns_by_name)


def report_in_task(
    resolved_survey: bytes, columns: AnswerColumns, ticket: Ticket, batches: Batches
) -> Iterator[Arrow]:
    """Yield each person's key and report. Reports are derived from blocks and symbols."""
    survey = _load_survey(resolved_survey)
    read = answer_reader(columns, survey.context.domain)
    rules = RowRules(survey.context.domain, columns)
    secret = ticket.fetch()
    for batch in batches:
        if not batch.num_rows:
            continue
        answers = read(batch.drop_columns(["key", "block"]))
        # The driver has refused such rows before. A row without a symbol must never get a report.
        rules.check(answers.counts)
        symbols = answers.symbol_of_row
        blocks = b"".join(batch.column("block").to_pylist())
        reports = derive_reports(survey.mechanism, symbols, blocks, secret)
        report_column = pa.array(reports.astype(np.int32))
        yield pa.record_batch({"key": batch.column("key"), "report": report_column})


def person_block(fingerprint: str, key: str | int | bytes) -> bytes:
    """Return a person's block. Text is hashed as UTF-8, integers as decimal text, bytes as is.

    >>> person_block("00" * 32, 7) == person_block("00" * 32, "7") == person_block("00" * 32, b"7")
    True

    Such collisions are harmless: all keys in a job have the same type, and each job has its own
    secret.
    """
    key_bytes = key if isinstance(key, bytes) else str(key).encode("utf-8")
    return hashlib.sha256(bytes.fromhex(fingerprint) + key_bytes).digest()[:16]


def derive_reports(mechanism: Mechanism, symbols: Symbols, blocks: bytes, secret: bytes) -> Reports:
    """Return one report per symbol. ``blocks``: 16 bytes per symbol, in the same order.

    >>> from sfumato import PlainResponse, Uniform
    >>> mechanism = PlainResponse(Uniform(5, 1))
    >>> blocks = person_block("00" * 32, "Ada") + person_block("00" * 32, "Bo")
    >>> reports = derive_reports(mechanism, np.array([3, 1]), blocks, bytes(32))
    >>> bo_report = derive_reports(mechanism, np.array([1]), blocks[16:], bytes(32))
    >>> bool(reports[1] == bo_report[0])
    True
    """
    unused_bits = np.uint64(64 - mechanism.word_bits)
    words = _derive_words(symbols, blocks, secret)[:, : mechanism.words]
    return mechanism.reports_from(symbols, words >> unused_bits)


def _derive_words(symbols: Symbols, blocks: bytes, secret: bytes) -> Words:
    """Return two words for each pair of block and symbol, shape ``(people, 2)``."""
    encrypted_blocks = words_at(secret, blocks).astype("<u8")
    encrypted_blocks[:, 0] ^= symbols.astype("<u8")
    return words_at(secret, encrypted_blocks.tobytes())


# --- people's values ------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def _load_survey(resolved_survey: bytes) -> Survey:
    return Survey.from_resolved(resolved_survey)


def _read_files(
    survey: Survey, columns: AnswerColumns, paths: tuple[str, ...], batches: Batches
) -> Iterator[AnswerBatch]:
    """Yield the answers in the files whose indices are in ``batches``.

    Refuse a file with missing or unknown values here, where its name and its rows are known. A file
    in which all people are skipped is no problem, unless this is so in all files.
    """
    domain = survey.context.domain
    rules = RowRules(domain, columns, "python")
    for batch in batches:
        for index in batch.column(0).to_pylist():
            counts = RowCounts()
            for answers in answer_batches(paths[index], columns, domain):
                counts += answers.counts
                yield answers
            name = PurePath(paths[index]).name
            rules.check(counts, name)
            rules.check_other_share(counts, name)


def _partition_id() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else int(context.partitionId())
