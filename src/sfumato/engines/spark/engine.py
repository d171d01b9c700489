"""Surveys on Apache Spark: people's values are randomised and counted inside the tasks of a job.

Without a key only sums leave a task. Its randomness is fresh each time, and Spark counts one attempt of each task: a
task that was killed, or ran twice, changes nothing. With a key, which names the person of each row, reports may leave,
for then every attempt sends the same ones (`keyed.py`). The job's secret, from which they come, is never given to Spark
(`secret.py`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

import sfumato.errors
from sfumato.batches import fresh_id
from sfumato.engines.spark import tasks as spark_tasks
from sfumato.engines.spark.inputs import (
    FileState,
    file_states,
    require_driver_session,
    require_repeatable,
)
from sfumato.engines.spark.secret import offer_secret
from sfumato.errors import InvalidTable, MissingExtra, SfumatoError, UnknownValue
from sfumato.survey import Survey
from sfumato.tables import AnswerColumns
from sfumato.tally import Tally

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType

__all__ = ["keyed_reports", "privatize_to", "tally_column", "tally_files"]

_ROOM = (
    2**29
)  # bytes of counts that the driver may get from all tasks; Spark's own limit is twice that
_WHOLE = {"tinyint", "smallint", "int", "bigint"}
_NUMBERS = _WHOLE | {"float", "double"}
_ONE_VALUE = AnswerColumns("value")
_POSITIONS = AnswerColumns(None, "latitude", "longitude")


def tally_column(
    survey: Survey,
    dataframe: "DataFrame",
    *,
    column: str | None = None,
    latitude: str | None = None,
    longitude: str | None = None,
) -> Tally:
    """The tally of one report per row of a column, or of two columns of degrees.

    Guarantees: reports never leave the task that made them, only their counts do. Each row is counted once, whatever
    becomes of attempts: killed, repeated or overtaken. A value outside the domain refuses the whole table, and the
    error says how many there are, never which. ::

        tally = tally_column(survey, spark.read.parquet("answers"), column="place")
        survey.estimate(tally)
    """
    _require_pyspark()
    survey.certify()
    answers, columns = _answers(survey, dataframe, AnswerColumns(column, latitude, longitude))
    resolved = survey.resolved()

    def privatize_and_tally(batches: Iterable[Any]) -> Iterator[Any]:
        return spark_tasks.tally_in_task(resolved, columns, batches)

    # Counts go straight to the driver, which takes one attempt of each task. On the way through a shuffle, an attempt
    # that is lost and drawn again could be counted in part next to the old one.
    tasks = answers.coalesce(_max_tasks(dataframe.sparkSession, survey))
    return _sum_counts(survey, tasks.mapInArrow(privatize_and_tally, spark_tasks.OUTCOME).collect())


def tally_files(
    spark: "SparkSession", survey: Survey, paths: Sequence[str], columns: AnswerColumns
) -> Tally:
    """The tally of files of answers (CSV, gzip too, or Parquet) that every executor can open under the same path.

    Each task opens its own files, so rows never pass through Spark. The guarantees are those of ``tally_column``;
    errors name files and rows, never values. ::

        tally = tally_files(spark, survey, sorted(glob("/data/answers/*.csv.gz")), AnswerColumns("place"))
    """
    _require_pyspark()
    survey.certify()
    columns.check(survey.context.domain)
    named = _require_distinct(paths)
    resolved = survey.resolved()

    def privatize_and_tally(batches: Iterable[Any]) -> Iterator[Any]:
        return spark_tasks.tally_files_in_task(resolved, columns, named, batches)

    numbers = spark.range(0, len(named), 1, min(len(named), _max_tasks(spark, survey)))
    return _sum_counts(
        survey, numbers.mapInArrow(privatize_and_tally, spark_tasks.OUTCOME).collect()
    )


def privatize_to(
    survey: Survey,
    dataframe: "DataFrame",
    path: str,
    *,
    key: str,
    column: str | None = None,
    latitude: str | None = None,
    longitude: str | None = None,
) -> None:
    """Write one report per row to a new folder of Parquet files, which ``sfumato estimate`` reads as a whole.

    ``key`` is a column that names the person of each row: see ``keyed_reports`` for what is refused and guaranteed. It
    is not written. When the folder is complete, or the job has failed, the secret is dropped. ::

        privatize_to(survey, spark.read.parquet("answers"), "/data/reports", column="place", key="account")
    """
    with keyed_reports(
        survey, dataframe, key=key, column=column, latitude=latitude, longitude=longitude
    ) as reports:
        # The name carries survey and identifier into every file, as the header of a report file in CSV does.
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
) -> Iterator["DataFrame"]:
    """The reports of all rows with their keys, as columns ``key`` and ``report``, for as long as the block lasts.

    The words of a report belong to the person that ``key`` names: text, whole numbers or bytes.

    Guarantees: inside the block a person has one report, in every attempt of every task and however often the rows are
    computed again. After it the secret is gone, and rows that were not computed yet fail. Refused before there is any
    report: rows without a key, two rows with the same key, values outside the domain, and tables that may have other
    rows when Spark computes them again (`inputs.py`). If a file of the table changes inside the block, leaving
    the block raises ``InvalidTable``. Errors hold counts, never a key or a value.

    Two different reports of one person would prove that the person's rows differ. Each symbol has its own words, so
    that the contents of both would reveal at most twice the promise; but no promise covers that they differ. This is
    why such tables are refused.

    A report next to a key says whose it is: anyone who reads both over time sees when an answer changes. Drop the key
    unless you need it. Another block draws another secret, and is another answer of the same people. ::

        with keyed_reports(survey, answers, column="place", key="account") as reports:
            reports.select("report").write.save("reports", format="delta")
    """
    _require_pyspark()
    survey.certify()
    from pyspark.sql.types import IntegerType, StructField, StructType

    require_driver_session(dataframe)
    answers, columns = _answers(survey, dataframe, AnswerColumns(column, latitude, longitude), key)
    require_repeatable(answers)
    files = file_states(answers)
    _require_fit(survey, answers.drop("key"), columns)
    _require_unchanged(
        answers, files, "No report was made. Run the job again when nothing writes to them."
    )
    settings = dataframe.sparkSession.sparkContext.getConf()
    resolved = survey.resolved()
    host = settings.get("spark.driver.host", "localhost").strip("[]")
    listen_on = settings.get("spark.driver.bindAddress", host).strip("[]")
    with offer_secret(host, listen_on) as ticket:

        def privatize(batches: Iterable[Any]) -> Iterator[Any]:
            return spark_tasks.report_in_task(resolved, columns, ticket, batches)

        key_field = StructField("key", answers.schema["key"].dataType)
        yield answers.mapInArrow(
            privatize, StructType([key_field, StructField("report", IntegerType())])
        )
    _require_unchanged(
        answers,
        files,
        "Delete the reports of this block: a person may have two, and two that differ give away a change.",
    )


# --- what is refused before a job starts ------------------------------------------------------------------------------


def _require_pyspark() -> None:
    # PySpark itself asks for pandas when it passes Arrow batches on.
    if find_spec("pyspark") is None or find_spec("pandas") is None:
        raise MissingExtra(
            "Spark jobs need PySpark, pandas and Java 17: pip install 'sfumato[spark]'"
        )


def _answers(
    survey: Survey, dataframe: "DataFrame", asked: AnswerColumns, key: str | None = None
) -> tuple["DataFrame", AnswerColumns]:
    """The columns that are asked for, under names of our own; and with a key, the block of each person."""
    asked.check(survey.context.domain)
    if asked.value is not None:
        chosen = [
            _select_column(
                dataframe, asked.value, {"string", *_WHOLE}, "text or whole numbers"
            ).alias("value")
        ]
        columns = _ONE_VALUE
    else:
        pair = ((str(asked.latitude), "latitude"), (str(asked.longitude), "longitude"))
        chosen = [
            _select_column(dataframe, name, _NUMBERS, "numbers of degrees").alias(own)
            for name, own in pair
        ]
        columns = _POSITIONS
    if key is not None:
        named = _select_column(
            dataframe,
            key,
            {"string", "binary", *_WHOLE},
            "text, whole numbers or bytes, one per person",
        )
        kind = dataframe.schema[key].dataType
        chosen += [named.alias("key"), _block(survey.fingerprint, named, kind).alias("block")]
    return dataframe.select(*chosen), columns


def _select_column(dataframe: "DataFrame", name: str, kinds: set[str], wanted: str) -> "Column":
    count = dataframe.columns.count(name)
    if count != 1:
        first_columns = ", ".join(dataframe.columns[:8])
        raise InvalidTable(
            f"the table must have one column {name!r}; it has {count}. Its columns start with {first_columns}."
        )
    kind = (
        dataframe.schema[name].dataType.simpleString().partition(" ")[0]
    )  # a collation may follow
    if kind not in kinds:
        raise InvalidTable(f"column {name!r} must hold {wanted}; its type is {kind}. Convert it.")
    quoted = name.replace("`", "``")
    return dataframe[f"`{quoted}`"]


def _block(fingerprint: str, key: "Column", kind: "DataType") -> "Column":
    """``block_of`` of `keyed.py`, computed by Spark itself; a missing key has none."""
    from pyspark.sql import functions as sql

    plain = key if kind.typeName() == "binary" else key.cast("string").cast("binary")
    digest = sql.sha2(sql.concat(sql.unhex(sql.lit(fingerprint)), plain), 256)
    return sql.unhex(sql.substring(digest, 1, 32))


def _require_distinct(paths: Sequence[str]) -> tuple[str, ...]:
    """Absolute paths, each once."""
    if isinstance(paths, str) or not paths:
        raise InvalidTable("paths must be a list of at least one file.")
    relative = [path for path in paths if not PurePath(path).is_absolute()]
    if relative:
        raise InvalidTable(
            f"paths must be absolute, for tasks run elsewhere; {len(relative)} are not, {relative[0]} to begin with."
        )
    if len({PurePath(path) for path in paths}) < len(paths):
        raise InvalidTable("a file is named twice, and would be counted twice. Name each once.")
    return tuple(map(str, paths))


def _require_unchanged(answers: "DataFrame", before: frozenset[FileState], what_to_do: str) -> None:
    """Refuse a table whose files are no longer what they were: the same person may have had another value."""
    now = file_states(answers)
    changed = {path for path, _, _ in before ^ now}
    if changed:
        raise InvalidTable(
            f"the table's files must not change while its reports are made; {len(changed)} of {len(before)} changed. "
            f"{what_to_do}"
        )


def _require_fit(survey: Survey, answers: "DataFrame", columns: AnswerColumns) -> None:
    """Look at every key and value once, before there is any report."""
    from pyspark.sql import functions as sql

    resolved = survey.resolved()

    def look_up(batches: Iterable[Any]) -> Iterator[Any]:
        return spark_tasks.flag_unknown(resolved, columns, batches)

    people = answers.mapInArrow(look_up, spark_tasks.FLAGGED).groupBy("block")
    each = people.agg(sql.count(sql.lit(1)).alias("rows"), sql.sum("unknown").alias("unknown"))
    nobody = sql.col("block").isNull()
    shared = sql.col("rows") > 1
    totals = each.agg(
        sql.sum("rows").alias("rows"),
        sql.sum(sql.when(nobody, sql.col("rows"))).alias("nobody"),
        sql.sum(sql.when(shared & ~nobody, 1)).alias("shared"),
        sql.sum("unknown").alias("unknown"),
    ).collect()[0]
    if not totals["rows"]:
        raise InvalidTable("the table has no rows.")
    if totals["nobody"]:
        raise InvalidTable(
            f"{totals['nobody']} of {totals['rows']} rows have no key. Give each row its person's key."
        )
    if totals["shared"]:
        raise InvalidTable(
            f"{totals['shared']} keys stand in more than one row; each person answers once. Keep one row of each, write "
            "the result to files and pass the copy: frame.dropDuplicates([key]).write.parquet(path), then "
            "spark.read.parquet(path)."
        )
    if totals["unknown"]:
        raise UnknownValue(
            f"{totals['unknown']} of {totals['rows']} values are not in the domain, or missing. Correct them, add their "
            "labels, or give the domain an `other` label.",
            count=totals["unknown"],
        )


# --- from many sums to one --------------------------------------------------------------------------------------------


def _max_tasks(spark: "SparkSession", survey: Survey) -> int:
    """How many tasks may hand over their counts: what the driver has room for, but no core shall stand idle."""
    context = getattr(spark, "sparkContext", None)  # a remote session has none
    cores = 1 if context is None else context.defaultParallelism
    return max(cores, _ROOM // (8 * survey.mechanism.outputs), 1)


def _sum_counts(survey: Survey, outcomes: list[Any]) -> Tally:
    """The tally of all tasks: each has handed over its counts, or what was wrong."""
    problems = sorted(
        (row["part"], row["error"], row["message"]) for row in outcomes if row["error"] is not None
    )
    if problems:
        _, error, message = problems[0]
        more = (
            f" (There is more in {len(problems) - 1} further tasks.)" if len(problems) > 1 else ""
        )
        raise _error_class(error)(message + more)
    outputs = survey.mechanism.outputs
    total = np.zeros(outputs, dtype=np.int64)
    for row in outcomes:
        total += spark_tasks.counts_of(row["counts"], outputs)
    if not total.any():
        raise InvalidTable("the table has no rows.")
    return Tally(total, survey.fingerprint)


def _error_class(name: str) -> Callable[[str], SfumatoError]:
    """The class of an error that a task handed back."""
    error = getattr(sfumato.errors, name, SfumatoError)
    return error if isinstance(error, type) and issubclass(error, SfumatoError) else SfumatoError
