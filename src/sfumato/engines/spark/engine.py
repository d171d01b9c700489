"""Surveys on Apache Spark: a job's tasks randomize people's values and may count the reports.

Without a key, only counts leave a task. Each attempt draws new randomness, but the driver uses the
result of only one attempt, so it is safe to kill a task or run it twice. With a key, which
identifies the person in each row, reports may leave a task, because every attempt produces the same
reports (`tasks.py`). They are derived from the job's secret, which Spark never receives
(`secret.py`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from operator import itemgetter
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

import sfumato.errors
from sfumato.batches import fresh_id
from sfumato.domains import Label
from sfumato.engines.spark import tasks as spark_tasks
from sfumato.engines.spark.inputs import (
    FileState,
    file_states,
    require_driver_session,
    require_repeatable,
)
from sfumato.engines.spark.secret import offer_secret
from sfumato.errors import InvalidTable, MissingExtra, SfumatoError
from sfumato.foundation.installation import install_hint
from sfumato.survey import AnswerColumns, RowCounts, RowRules, Survey
from sfumato.tables import RowCounter
from sfumato.tally import Tally

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType

__all__ = ["keyed_reports", "privatize_to", "tally_column", "tally_files"]

# The maximum size of the counts that the driver collects. Spark's own default limit is twice that.
_MAX_COUNT_BYTES = 2**29

_INTEGER_TYPES = {"tinyint", "smallint", "int", "bigint"}
_NUMBER_TYPES = _INTEGER_TYPES | {"float", "double"}
_DATE_TYPES = {"date", "timestamp", "timestamp_ntz"}


def tally_column(
    survey: Survey,
    dataframe: "DataFrame",
    *,
    column: str | None = None,
    latitude: str | None = None,
    longitude: str | None = None,
    missing: Label | None = None,
) -> Tally:
    """Privatize each row of a table and return the tally of the reports.

    ``column``: the column that contains the values. For positions, pass ``latitude`` and
    ``longitude`` instead: two columns that contain degrees.
    ``missing``: what to do with missing answers, as in ``Survey.privatize``; the default is what
    the survey file says.

    Only counts leave a task, never reports. Each row is counted once, even if Spark kills or
    repeats attempts. If any value is outside the domain, the entire table is rejected. The error
    contains counts, never values. ::

        tally = tally_column(survey, spark.read.parquet("answers"), column="place")
        survey.estimate(tally)
    """
    _require_pyspark()
    survey.certify()
    answers, columns = _select_answers(
        survey, dataframe, _answer_columns(survey, column, latitude, longitude, missing)
    )
    resolved_survey = survey.resolved()

    def privatize_and_tally(batches: Iterable[Any]) -> Iterator[Any]:
        return spark_tasks.tally_in_task(resolved_survey, columns, batches)

    # Send counts directly to the driver, which uses one attempt per task. In a shuffle, parts
    # of a lost attempt could be counted together with parts of its retry.
    coalesced = answers.coalesce(_max_tasks(dataframe.sparkSession, survey))
    outcomes = coalesced.mapInArrow(privatize_and_tally, spark_tasks.OUTCOME_SCHEMA)
    return _sum_counts(survey, columns, outcomes.collect())


def tally_files(
    spark: "SparkSession", survey: Survey, paths: Sequence[str], columns: AnswerColumns
) -> Tally:
    """Privatize each answer in CSV (optionally gzipped) or Parquet files and return the tally.

    Pass absolute paths that every executor can open. Each task opens its own files, so rows never
    pass through Spark. The guarantees are those of ``tally_column``. Errors mention files and rows,
    never values. ::

        paths = sorted(glob("/data/answers/*.csv.gz"))
        tally = tally_files(spark, survey, paths, AnswerColumns("place"))
    """
    _require_pyspark()
    survey.certify()
    columns.check(survey.context.domain)
    valid_paths = _require_valid_paths(paths)
    resolved_survey = survey.resolved()

    def privatize_and_tally(batches: Iterable[Any]) -> Iterator[Any]:
        return spark_tasks.tally_files_in_task(resolved_survey, columns, valid_paths, batches)

    task_count = min(len(valid_paths), _max_tasks(spark, survey))
    indices = spark.range(0, len(valid_paths), 1, task_count)
    outcomes = indices.mapInArrow(privatize_and_tally, spark_tasks.OUTCOME_SCHEMA)
    return _sum_counts(survey, columns, outcomes.collect())


def privatize_to(
    survey: Survey,
    dataframe: "DataFrame",
    path: str,
    *,
    key: str,
    column: str | None = None,
    latitude: str | None = None,
    longitude: str | None = None,
    missing: Label | None = None,
) -> None:
    """Write one report per row to a new folder of Parquet files.

    ``sfumato estimate`` reads the folder. ``key`` is a column that identifies the person in each
    row; it is not written. See ``keyed_reports`` for the guarantees and for which tables are
    rejected. The secret is discarded when the folder is complete or the job has failed. ::

        answers = spark.read.parquet("answers")
        privatize_to(survey, answers, "/data/reports", column="place", key="account")
    """
    with keyed_reports(
        survey,
        dataframe,
        key=key,
        column=column,
        latitude=latitude,
        longitude=longitude,
        missing=missing,
    ) as reports:
        # Put the fingerprint and a fresh identifier into the column's name in every file, as in the
        # header of a CSV report file.
        name = f"report@{survey.fingerprint}#{fresh_id().hex()}"
        reports.select(reports["report"].alias(name)).write.mode("error").parquet(path)


@contextmanager
def keyed_reports(
    survey: Survey,
    dataframe: "DataFrame",
    *,
    key: str,
    column: str | None = None,
    latitude: str | None = None,
    longitude: str | None = None,
    missing: Label | None = None,
) -> Iterator["DataFrame"]:
    """Provide a table with one report per row, in columns ``key`` and ``report``.

    ``key`` is a column of text, integers or bytes that identifies the person in each row. A report
    is derived from the key and the value.

    Use the table inside the ``with`` block. There, a person has one report, no matter how often
    Spark computes the rows. After the block, the secret is gone, and computing any more rows fails.

    Before making any report, this function rejects rows without a key, two rows with the same key,
    values outside the domain, and tables whose rows may differ when Spark recomputes them
    (`inputs.py`). If one of the table's files changes inside the block, leaving the block raises
    ``InvalidTable``. Errors contain counts, never a key or a value.

    If one person had two different reports, this would prove that the person's rows differ. Each
    symbol has its own random words, so the contents of the two reports would reveal at most twice
    what the promise allows. But no promise covers the mere fact that they differ, so tables in
    which a person might get two reports are rejected.

    ``missing``: the label for missing answers, or "refuse". People cannot be skipped, because a key
    without a report would show whose answer is missing.

    A key shows whose report it is. Anyone who sees keys and reports over time can see when an
    answer changes. Drop the key unless you need it. Each ``with`` block generates a new secret, so
    its reports count as another answer from the same people. ::

        with keyed_reports(survey, answers, column="place", key="account") as reports:
            reports.select("report").write.save("reports", format="delta")
    """
    _require_pyspark()
    survey.certify()
    from pyspark.sql.types import IntegerType, StructField, StructType

    source_columns = _answer_columns(survey, column, latitude, longitude, missing)
    rules = RowRules(survey.context.domain, source_columns)
    rules.require_no_skipping("a key without a report shows whose answer is missing")
    require_driver_session(dataframe)
    answers, columns = _select_answers(survey, dataframe, source_columns, key)
    require_repeatable(answers)
    initial_states = file_states(answers)
    _require_valid_rows(survey, answers.drop("key"), columns)
    _require_unchanged(
        answers,
        initial_states,
        "No report was made. Run the job again once nothing writes to them.",
    )

    resolved_survey = survey.resolved()
    spark_conf = dataframe.sparkSession.sparkContext.getConf()
    host = spark_conf.get("spark.driver.host", "localhost").strip("[]")
    listen_on = spark_conf.get("spark.driver.bindAddress", host).strip("[]")
    with offer_secret(host, listen_on) as ticket:

        def privatize(batches: Iterable[Any]) -> Iterator[Any]:
            return spark_tasks.report_in_task(resolved_survey, columns, ticket, batches)

        key_field = StructField("key", answers.schema["key"].dataType)
        report_field = StructField("report", IntegerType())
        yield answers.mapInArrow(privatize, StructType([key_field, report_field]))

    _require_unchanged(
        answers,
        initial_states,
        "Delete the reports from this block: a person may have two reports, and if they differ, "
        "they reveal that the person's value changed.",
    )


# --- checks before a job starts -------------------------------------------------------------------


def _require_pyspark() -> None:
    # PySpark itself needs pandas to handle Arrow batches.
    if find_spec("pyspark") is None or find_spec("pandas") is None:
        raise MissingExtra(f"Spark jobs need PySpark, pandas and Java 17: {install_hint('spark')}")


def _answer_columns(
    survey: Survey,
    column: str | None,
    latitude: str | None,
    longitude: str | None,
    missing: Label | None,
) -> AnswerColumns:
    """Return the columns to read, with the survey file's rules for values."""
    rules = survey.description.table
    if missing is not None:
        rules = replace(rules, missing=missing)
    return replace(rules, value=column, latitude=latitude, longitude=longitude)


def _select_answers(
    survey: Survey, dataframe: "DataFrame", source_columns: AnswerColumns, key: str | None = None
) -> tuple["DataFrame", AnswerColumns]:
    """Select the answers under fixed column names. With a key, also add each person's block.

    Return the table and its answer columns.
    """
    source_columns.check(survey.context.domain)
    if source_columns.value is not None:
        value = _select_values(dataframe, source_columns)
        selection = [value.alias("value")]
        columns = replace(source_columns, value="value")
    else:
        latitude = _select_column(dataframe, str(source_columns.latitude), _NUMBER_TYPES, "degrees")
        longitude = _select_column(
            dataframe, str(source_columns.longitude), _NUMBER_TYPES, "degrees"
        )
        selection = [latitude.alias("latitude"), longitude.alias("longitude")]
        columns = replace(source_columns, latitude="latitude", longitude="longitude")
    if key is not None:
        allowed_types = {"string", "binary", *_INTEGER_TYPES}
        requirement = "text, integers or bytes, one per person"
        key_column = _select_column(dataframe, key, allowed_types, requirement)
        block = _block_column(survey.fingerprint, key_column, dataframe.schema[key].dataType)
        selection += [key_column.alias("key"), block.alias("block")]
    return dataframe.select(*selection), columns


def _select_values(dataframe: "DataFrame", columns: AnswerColumns) -> "Column":
    """Select the column of values. Rules of the survey file may allow further types."""
    name = str(columns.value)
    if columns.bins:
        return _select_column(dataframe, name, {"string", *_NUMBER_TYPES}, "text or numbers")
    if columns.date is not None:
        return _select_column(dataframe, name, {"string", *_DATE_TYPES}, "text or dates")
    return _select_column(dataframe, name, {"string", *_INTEGER_TYPES}, "text or integers")


def _select_column(
    dataframe: "DataFrame", name: str, allowed_types: set[str], requirement: str
) -> "Column":
    count = dataframe.columns.count(name)
    if count != 1:
        first_columns = ", ".join(dataframe.columns[:8])
        raise InvalidTable(
            f"the table must have exactly one column {name!r}, but it has {count}. "
            f"Its columns start with {first_columns}."
        )
    # A collation may follow the name of the type.
    type_name = dataframe.schema[name].dataType.simpleString().partition(" ")[0]
    if type_name not in allowed_types:
        raise InvalidTable(
            f"column {name!r} must contain {requirement}, but its type is {type_name}. "
            "Convert it first."
        )
    escaped_name = name.replace("`", "``")
    return dataframe[f"`{escaped_name}`"]


def _block_column(fingerprint: str, key: "Column", key_type: "DataType") -> "Column":
    """Compute ``person_block`` (`tasks.py`) in Spark itself. A missing key gives null."""
    from pyspark.sql import functions as sql

    key_bytes = key if key_type.typeName() == "binary" else key.cast("string").cast("binary")
    message = sql.concat(sql.unhex(sql.lit(fingerprint)), key_bytes)
    digest = sql.sha2(message, 256)  # hex-encoded
    return sql.unhex(sql.substring(digest, 1, 32))


def _require_valid_paths(paths: Sequence[str]) -> tuple[str, ...]:
    """Require at least one path, all absolute and distinct, and return them."""
    if isinstance(paths, str) or not paths:
        raise InvalidTable("paths must be a list of at least one file.")
    relative_paths = [path for path in paths if not PurePath(path).is_absolute()]
    if relative_paths:
        raise InvalidTable(
            "paths must be absolute, because tasks run in different folders; "
            f"{len(relative_paths)} are relative, such as {relative_paths[0]}."
        )
    distinct_paths = set(map(PurePath, paths))
    if len(distinct_paths) < len(paths):
        raise InvalidTable(
            "a file is listed twice and would be counted twice. List each file once."
        )
    return tuple(map(str, paths))


def _require_unchanged(answers: "DataFrame", old_states: frozenset[FileState], remedy: str) -> None:
    """Reject a table whose files have changed, because people's values may have changed too."""
    new_states = file_states(answers)
    changed_paths = {path for path, _, _ in old_states ^ new_states}
    if changed_paths:
        raise InvalidTable(
            "the table's files must not change while reports are made; "
            f"{len(changed_paths)} of {len(old_states)} changed. {remedy}"
        )


def _require_valid_rows(survey: Survey, answers: "DataFrame", columns: AnswerColumns) -> None:
    """Reject missing keys, repeated keys and unknown values, before any report is made."""
    from pyspark.sql import functions as sql

    resolved_survey = survey.resolved()

    def flag_unknown(batches: Iterable[Any]) -> Iterator[Any]:
        return spark_tasks.flag_unknown(resolved_survey, columns, batches)

    flags = answers.mapInArrow(flag_unknown, spark_tasks.FLAGS_SCHEMA)
    row_count_column = sql.count(sql.lit(1)).alias("rows")
    missing_column = sql.sum("missing").alias("missing")
    unknown_column = sql.sum("unknown").alias("unknown")
    rows_by_person = flags.groupBy("block").agg(row_count_column, missing_column, unknown_column)
    has_no_key = sql.col("block").isNull()
    is_duplicate = (sql.col("rows") > 1) & ~has_no_key
    totals = rows_by_person.agg(
        sql.sum("rows").alias("rows"),
        sql.sum(sql.when(has_no_key, sql.col("rows"))).alias("without_key"),
        sql.sum(sql.when(is_duplicate, 1)).alias("duplicates"),
        sql.sum("missing").alias("missing"),
        sql.sum("unknown").alias("unknown"),
    )
    (summary,) = totals.collect()
    row_count, keyless_count, duplicate_count, missing_count, unknown_count = summary
    if not row_count:
        raise InvalidTable("the table has no rows.")
    if keyless_count:
        raise InvalidTable(
            f"{keyless_count} of {row_count} rows have no key. Every row needs its person's key."
        )
    if duplicate_count:
        raise InvalidTable(
            f"{duplicate_count} keys occur in more than one row, but each person answers once. "
            "Keep one row per person, write the result to files and pass the copy: "
            "frame.dropDuplicates([key]).write.parquet(path), then spark.read.parquet(path)."
        )
    _check_rows(survey, columns, RowCounts(row_count, missing_count, unknown_count))


def _check_rows(survey: Survey, columns: AnswerColumns, counts: RowCounts) -> None:
    """Refuse a table with values that its rules do not allow, or without any answer."""
    counter = RowCounter(survey.context.domain, columns, "python")
    counter.add("the table", counts)
    counter.check()


# --- one tally from all tasks ---------------------------------------------------------------------


def _max_tasks(spark: "SparkSession", survey: Survey) -> int:
    """Return the maximum number of tasks.

    The counts from all tasks must fit in the driver's memory. Allow at least one task per core.
    """
    spark_context = getattr(spark, "sparkContext", None)  # None in a remote session
    core_count = 1 if spark_context is None else spark_context.defaultParallelism
    bytes_per_task = 8 * survey.mechanism.outputs
    return max(core_count, _MAX_COUNT_BYTES // bytes_per_task, 1)


def _sum_counts(survey: Survey, columns: AnswerColumns, outcomes: list[Any]) -> Tally:
    """Return the tally of all tasks, or raise the error of the first failed task."""
    failures = [row for row in outcomes if row["error"] is not None]
    if failures:
        first_failure = min(failures, key=itemgetter("part", "error", "message"))
        message = first_failure["message"]
        if len(failures) > 1:
            message += f" (Other failed tasks: {len(failures) - 1}.)"
        raise _error_class(first_failure["error"])(message)
    outputs = survey.mechanism.outputs
    total = np.zeros(outputs, dtype=np.int64)
    row_counts = RowCounts()
    for row in outcomes:
        total += spark_tasks.counts_from_bytes(row["counts"], outputs)
        row_counts += RowCounts(row["rows"], row["missing"], row["unknown"])
    if not row_counts.rows:
        raise InvalidTable("the table has no rows.")
    _check_rows(survey, columns, row_counts)
    return Tally(total, survey.fingerprint)


def _error_class(name: str) -> Callable[[str], SfumatoError]:
    """Return the error class with this name, or ``SfumatoError`` if no class has it."""
    error_class = getattr(sfumato.errors, name, None)
    if isinstance(error_class, type) and issubclass(error_class, SfumatoError):
        return error_class
    return SfumatoError
