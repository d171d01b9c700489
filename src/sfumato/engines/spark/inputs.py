"""Checks that a table is repeatable: it has the same rows each time Spark computes it.

Spark recomputes a table for every action, every retried task and every speculative attempt. If a
person's value changes from one evaluation to the next, the person gets two reports, and if these
reports differ, they prove that the value changed. Spark's own flag, ``deterministic``, does not
rule this out: Spark also sets it for results that depend on the order in which rows arrive
(``dropDuplicates``, ``mode``, ``row_number`` over ties), and for any function that is not declared
nondeterministic. So a plan is accepted only if every part of it is listed in this file:

- *sources*: files in a built-in format, reliable checkpoints, and values inside the plan itself;
- *steps* whose result does not depend on the order of the rows they receive;
- *expressions*: built-in functions of a single row that read neither the clock nor task metadata.

The files must not change either. To check this, compare two results of ``file_states``.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sfumato.errors import InvalidTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = [
    "REPEATABLE_EXPRESSIONS",
    "FileState",
    "file_states",
    "require_driver_session",
    "require_repeatable",
]

JavaObject = Any
"""A Java object, for which Python has no type."""

FileState = tuple[str, int, int]
"""The path of a file, its size in bytes, and its modification time in milliseconds."""

_SQL_PACKAGE = "org.apache.spark.sql"
_PLAN_PACKAGE = f"{_SQL_PACKAGE}.catalyst.plans.logical"
_SOURCE_PACKAGE = f"{_SQL_PACKAGE}.execution.datasources"
_EXPRESSION_PACKAGE = f"{_SQL_PACKAGE}.catalyst.expressions"


def _full_names(package: str, short_names: str) -> set[str]:
    """Return the full names of a package's classes, given their short names as one string."""
    return {f"{package}.{name}" for name in short_names.split()}


# A join pairs all matching rows, and a union keeps all rows: neither selects among rows.
# Aggregates, windows, limits and samples may depend on the order of rows, so they are not listed.
_REPEATABLE_STEPS = _full_names(
    _PLAN_PACKAGE,
    """
    Project Filter Join Union SubqueryAlias View ResolvedHint
    Sort Repartition RepartitionByExpression RebalancePartitions
    """,
)
_VALUE_SOURCES = _full_names(_PLAN_PACKAGE, "LocalRelation Range")
_FILE_RELATION = f"{_SOURCE_PACKAGE}.LogicalRelation"
_RDD_NODE = f"{_SQL_PACKAGE}.execution.LogicalRDD"
_CACHE_NODE = f"{_SQL_PACKAGE}.execution.columnar.InMemoryRelation"

_HADOOP_RELATION = f"{_SOURCE_PACKAGE}.HadoopFsRelation"
_FILE_INDEXES = _full_names(_SOURCE_PACKAGE, "InMemoryFileIndex CatalogFileIndex")
_BINARY_FORMATS = _full_names(_SOURCE_PACKAGE, "parquet.ParquetFileFormat orc.OrcFileFormat")
# Formats that store dates and times as text. How Spark interprets such text depends on the
# session's settings, and a time without a date means a time today.
_TEXT_FORMATS = _full_names(_SOURCE_PACKAGE, "csv.CSVFileFormat json.JsonFileFormat")
_PLAIN_TEXT_FORMAT = f"{_SOURCE_PACKAGE}.text.TextFileFormat"
_FILE_FORMATS = _BINARY_FORMATS | _TEXT_FORMATS | {_PLAIN_TEXT_FORMAT}
_SKIPPING_OPTIONS = ("ignoreCorruptFiles", "ignoreMissingFiles")

REPEATABLE_EXPRESSIONS = _full_names(
    _EXPRESSION_PACKAGE,
    """
    Alias AttributeReference Cast Literal SortOrder
    EqualTo EqualNullSafe LessThan LessThanOrEqual GreaterThan GreaterThanOrEqual In
    And Or Not IsNull IsNotNull IsNaN AtLeastNNonNulls
    CaseWhen If Coalesce Nvl NaNvl Greatest Least
    Add Subtract Multiply Divide IntegralDivide Remainder Pmod UnaryMinus Abs
    Floor Ceil Round
    Upper Lower InitCap Concat ConcatWs Substring SubstringIndex Left Right Length
    StringTrim StringTrimLeft StringTrimRight StringReplace StringTranslate StringLPad
    StringRPad StringSplit StartsWith EndsWith Contains Like RLike
    RegExpReplace RegExpExtract
    Sha1 Sha2 Md5 XxHash64 Murmur3Hash Hex Unhex
    Year Month DayOfMonth DateAdd DateSub DateDiff
    CreateNamedStruct CreateArray GetStructField GetArrayItem
    """,
)
_CAST = f"{_EXPRESSION_PACKAGE}.Cast"
_LITERAL = f"{_EXPRESSION_PACKAGE}.Literal"
_ATTRIBUTE = f"{_EXPRESSION_PACKAGE}.AttributeReference"
# Spark marks its metadata columns with this key. Their values depend on how files are split among
# tasks, which may be different each time.
_METADATA_KEY = "__metadata_col"
_NUMBER_TYPES = {"tinyint", "smallint", "int", "bigint", "float", "double", "decimal"}
_TIME_INDEPENDENT_TYPES = _NUMBER_TYPES | {"string", "binary", "boolean"}
_TIME_TYPES = {"date", "timestamp", "timestamp_ntz"}
_DATE_PREFIX = re.compile(r"\s*\d{4,}-\d")

_REMEDY = (
    "Write the table to files and pass the copy: frame.write.parquet(path), then "
    "spark.read.parquet(path). Or pass frame.checkpoint(), which also writes the rows to files. "
    "Delete the copy afterwards: it contains people's values."
)


def require_driver_session(dataframe: "DataFrame") -> None:
    """Reject a table from a remote session, because this process must hold the secret."""
    if getattr(dataframe, "_jdf", None) is None:
        raise InvalidTable(
            "reports need a session in the driver, which holds the job's secret, but this session "
            "is remote (Spark Connect). Run the job with spark-submit, or use tally_column."
        )


# --- the plan -------------------------------------------------------------------------------------


def require_repeatable(dataframe: "DataFrame") -> None:
    """Reject a table unless every part of its plan is known to give the same rows each time."""
    if dataframe.isStreaming:
        raise _unrepeatable_error("a stream")
    _require_no_skipping_setting(dataframe)
    # This plan shows what Spark would actually read: a cached step appears as a cache node.
    plan = dataframe._jdf.queryExecution().withCachedData()
    for node in _walk_tree(plan):
        _require_repeatable_node(node)
        for root in _to_list(node.expressions()):
            for expression in _walk_tree(root):
                _require_repeatable_expression(expression)


def _require_repeatable_node(node: JavaObject) -> None:
    class_name = _class_name(node)
    if class_name in _REPEATABLE_STEPS | _VALUE_SOURCES:
        return
    if class_name == _FILE_RELATION:
        _require_plain_files(node.relation())
    elif class_name == _RDD_NODE:
        _require_checkpoint(node)
    elif class_name == _CACHE_NODE:
        raise InvalidTable(
            "the table must not be cached: Spark drops cached rows when memory is low, and "
            "recomputes them from files that may have changed. Call unpersist() on the cached "
            "table first."
        )
    else:
        raise _unrepeatable_error(f"the step {_short_name(node)}")


def _require_no_skipping_setting(dataframe: "DataFrame") -> None:
    for setting in _SKIPPING_OPTIONS:
        if dataframe.sparkSession.conf.get(f"spark.sql.files.{setting}") == "true":
            raise _skipping_error(f"the setting spark.sql.files.{setting}")


def _require_plain_files(relation: JavaObject) -> None:
    if _class_name(relation) != _HADOOP_RELATION:
        raise _unrepeatable_error(f"the source {_short_name(relation)}")
    _require_no_skipping_option(relation)
    _require_known_source(relation.location(), _FILE_INDEXES)
    _require_known_source(relation.fileFormat(), _FILE_FORMATS)
    if _class_name(relation.fileFormat()) in _TEXT_FORMATS:
        schema = json.loads(relation.dataSchema().json())
        if _contains_time_type(schema):
            raise _unrepeatable_error("a column of dates or times in a text file")


def _require_known_source(source: JavaObject, known_classes: set[str]) -> None:
    if _class_name(source) not in known_classes:
        raise _unrepeatable_error(f"the source {_short_name(source)}")


def _contains_time_type(data_type: object) -> bool:
    """Whether a type in Spark's JSON schema is, or contains, a date or time."""
    if not isinstance(data_type, dict):
        return data_type in _TIME_TYPES
    nested_types = [data_type.get(key) for key in ("type", "elementType", "keyType", "valueType")]
    nested_types += data_type.get("fields", [])
    return any(map(_contains_time_type, nested_types))


def _require_no_skipping_option(relation: JavaObject) -> None:
    # Options keep the caller's capitalisation, so compare them in lower case.
    options = {}
    for pair in _to_list(relation.options().toSeq()):
        options[pair._1().lower()] = pair._2().lower()
    for option in _SKIPPING_OPTIONS:
        if options.get(option.lower()) == "true":
            raise _skipping_error(f"the option {option}")


def _require_checkpoint(node: JavaObject) -> None:
    # Only a complete, reliable checkpoint has a folder. A local checkpoint has none, and it may
    # contain two versions of the same block.
    if node.rdd().getCheckpointFile().isEmpty():
        raise _unrepeatable_error("an RDD or a list of Python rows")


def _require_repeatable_expression(expression: JavaObject) -> None:
    class_name = _class_name(expression)
    if class_name not in REPEATABLE_EXPRESSIONS:
        raise _unrepeatable_error(f"the expression {_short_name(expression)}")
    if class_name == _CAST and not _is_time_independent_cast(expression):
        raise _unrepeatable_error("a cast whose result may depend on the time")
    if class_name == _ATTRIBUTE and expression.metadata().contains(_METADATA_KEY):
        raise _unrepeatable_error(f"the metadata column {expression.name()}")


def _is_time_independent_cast(cast: JavaObject) -> bool:
    """Whether a cast gives the same result whenever it is computed.

    A cast from text to a date or time may not: 'now' and 'today' are valid dates, and a time
    without a date means a time today.
    """
    source = cast.child()
    if _type_name(cast) in _TIME_INDEPENDENT_TYPES:
        return True
    if _type_name(source) in _TIME_TYPES:
        return True
    return _class_name(source) == _LITERAL and _DATE_PREFIX.match(str(source.value())) is not None


def _skipping_error(cause: str) -> InvalidTable:
    return InvalidTable(
        f"the table must have the same rows each time Spark computes it, but {cause} lets Spark "
        "skip files that it cannot read. Turn it off."
    )


def _unrepeatable_error(cause: str) -> InvalidTable:
    return InvalidTable(
        "the table must have the same rows each time Spark computes it, and "
        f"{cause} does not guarantee that. {_REMEDY}"
    )


# --- the files ------------------------------------------------------------------------------------


def file_states(dataframe: "DataFrame") -> frozenset[FileState]:
    """Return the current state of each file that the table reads. Deleted files are omitted."""
    jvm: JavaObject = dataframe.sparkSession.sparkContext._jvm
    hadoop_conf = dataframe._jdf.sparkSession().sessionState().newHadoopConf()
    names_by_folder = defaultdict(set)
    for uri in _input_files(dataframe):
        path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(uri))
        names_by_folder[path.getParent().toString()].add(path.getName())
    states = set()
    for folder, names in names_by_folder.items():
        for state in _list_folder(jvm, hadoop_conf, folder):
            name = state[0].rpartition("/")[2]
            if name in names:
                states.add(state)
    for folder in _checkpoint_folders(dataframe):
        states.update(_list_folder(jvm, hadoop_conf, folder))
    return frozenset(states)


def _input_files(dataframe: "DataFrame") -> Iterator[str]:
    """Yield the URIs of the files that Spark would read now, excluding pruned partitions."""
    # Do not use `dataframe.inputFiles()`: its list of partitions may be stale, and it omits the
    # files from which a cached table was read.
    optimizer = dataframe._jdf.sparkSession().sessionState().optimizer()
    plan = optimizer.execute(dataframe._jdf.queryExecution().analyzed())
    for node in _walk_tree(plan):
        if _class_name(node) == _FILE_RELATION:
            yield from node.relation().location().inputFiles()


def _checkpoint_folders(dataframe: "DataFrame") -> Iterator[str]:
    plan = dataframe._jdf.queryExecution().analyzed()
    for node in _walk_tree(plan):
        if _class_name(node) == _RDD_NODE:
            yield node.rdd().getCheckpointFile().get()


def _list_folder(jvm: JavaObject, hadoop_conf: JavaObject, folder: str) -> Iterator[FileState]:
    path = jvm.org.apache.hadoop.fs.Path(folder)
    file_system = path.getFileSystem(hadoop_conf)
    if file_system.exists(path):
        for status in file_system.listStatus(path):
            yield status.getPath().toString(), status.getLen(), status.getModificationTime()


# --- Java objects ---------------------------------------------------------------------------------


def _walk_tree(root: JavaObject) -> Iterator[JavaObject]:
    yield root
    for child in _to_list(root.children()):
        yield from _walk_tree(child)


def _to_list(items: JavaObject) -> list[JavaObject]:
    return [items.apply(i) for i in range(items.size())]


def _class_name(item: JavaObject) -> str:
    return str(item.getClass().getName())


def _short_name(item: JavaObject) -> str:
    return _class_name(item).rpartition(".")[2].rstrip("$")


def _type_name(expression: JavaObject) -> str:
    """Return the type without parameters or collation: ``decimal`` for ``decimal(10,2)``."""
    return re.split(r"[( ]", expression.dataType().simpleString())[0]
