"""Repeatable tables: their rows are the same each time Spark computes them.

Spark computes a table again for every action, every retried task and every speculative attempt. If
a person's value changes from one evaluation to the next, the person gets two reports, and two
different reports prove that the rows differ. Spark's own flag, ``deterministic``, does not rule
this out: it also allows a choice that depends on the order in which rows arrive
(``dropDuplicates``, ``mode``, ``row_number`` over ties) and any function that is not declared
random. So a plan is accepted only if every part of it is listed here:

- *sources*: files of a built-in format, reliable checkpoints, and values inside the plan itself;
- *steps* whose result depends only on the set of their input rows, not on their order;
- *expressions*: built-in functions of one row that read neither the clock nor the task.

The files must not change either. Compare two results of ``file_states`` to find out.
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
    "EXPRESSIONS",
    "FileState",
    "file_states",
    "require_driver_session",
    "require_repeatable",
]

Java = Any
"""A Java object, which has no Python type."""

FileState = tuple[str, int, int]
"""The path of a file, its size in bytes, and its modification time in milliseconds."""

_SPARK = "org.apache.spark.sql"
_LOGICAL = f"{_SPARK}.catalyst.plans.logical"
_SOURCES = f"{_SPARK}.execution.datasources"
_CATALYST = f"{_SPARK}.catalyst.expressions"


def _classes(package: str, names: str) -> set[str]:
    """Return the full names of the classes of a package, given their short names."""
    return {f"{package}.{name}" for name in names.split()}


# A join pairs all rows that match, and a union keeps all rows: neither chooses between rows.
# Aggregates, windows, limits and samples may choose by order, so they are not listed.
_STEPS = _classes(
    _LOGICAL,
    """
    Project Filter Join Union SubqueryAlias View ResolvedHint
    Sort Repartition RepartitionByExpression RebalancePartitions
    """,
)
_VALUES = _classes(_LOGICAL, "LocalRelation Range")
_RELATION = f"{_SOURCES}.LogicalRelation"
_ROWS_OF_RDD = f"{_SPARK}.execution.LogicalRDD"
_CACHE = f"{_SPARK}.execution.columnar.InMemoryRelation"

_FILES = f"{_SOURCES}.HadoopFsRelation"
_LISTINGS = _classes(_SOURCES, "InMemoryFileIndex CatalogFileIndex")
_BINARY_FORMATS = _classes(_SOURCES, "parquet.ParquetFileFormat orc.OrcFileFormat")
# Formats that write dates and times as text. Their meaning depends on the session's settings, and a
# bare time of day means today.
_TEXT_FORMATS = _classes(_SOURCES, "csv.CSVFileFormat json.JsonFileFormat")
_LINES_FORMAT = f"{_SOURCES}.text.TextFileFormat"
_FORMATS = _BINARY_FORMATS | _TEXT_FORMATS | {_LINES_FORMAT}
_SKIPPING = ("ignoreCorruptFiles", "ignoreMissingFiles")

EXPRESSIONS = _classes(
    _CATALYST,
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
_CAST = f"{_CATALYST}.Cast"
_LITERAL = f"{_CATALYST}.Literal"
_ATTRIBUTE = f"{_CATALYST}.AttributeReference"
# Spark marks its own columns with this key. They show how files were split among tasks, which may
# change each time.
_METADATA_KEY = "__metadata_col"
_NUMBER_TYPES = {"tinyint", "smallint", "int", "bigint", "float", "double", "decimal"}
_TIMELESS = _NUMBER_TYPES | {"string", "binary", "boolean"}
_MOMENTS = {"date", "timestamp", "timestamp_ntz"}
_FULL_DATE = re.compile(r"\s*\d{4,}-\d")

_WHAT_TO_DO = (
    "Write the table to files and pass the copy: frame.write.parquet(path), then "
    "spark.read.parquet(path). Or pass frame.checkpoint(), which also writes the rows to files. "
    "Delete the copy afterwards: it contains people's values."
)


def require_driver_session(dataframe: "DataFrame") -> None:
    """Refuse tables of a remote session: the driver's own process must draw the secret."""
    if getattr(dataframe, "_jdf", None) is None:
        raise InvalidTable(
            "reports need a session in the driver, which keeps the job's secret; this session is "
            "remote (Spark Connect). Run the job with spark-submit, or use tally_column."
        )


# --- the plan -------------------------------------------------------------------------------------


def require_repeatable(dataframe: "DataFrame") -> None:
    """Refuse a table unless every part of its plan is known to repeat the same rows."""
    if dataframe.isStreaming:
        raise _unrepeatable("a stream")
    _require_no_skipping(dataframe)
    # This plan shows what Spark would actually read: a cached step appears as its cache.
    plan = dataframe._jdf.queryExecution().withCachedData()
    for node in _tree(plan):
        _require_repeatable_node(node)
        for expression in _sequence(node.expressions()):
            for part in _tree(expression):
                _require_repeatable_expression(part)


def _require_repeatable_node(node: Java) -> None:
    kind = _class_name(node)
    if kind in _STEPS | _VALUES:
        return
    if kind == _RELATION:
        _require_plain_files(node.relation())
    elif kind == _ROWS_OF_RDD:
        _require_checkpoint(node)
    elif kind == _CACHE:
        raise InvalidTable(
            "the table must not be cached: Spark drops cached rows when memory is short, and "
            "computes them again from files that may have changed. Call unpersist() on the cached "
            "table first."
        )
    else:
        raise _unrepeatable(f"the step {_short_name(node)}")


def _require_no_skipping(dataframe: "DataFrame") -> None:
    for setting in _SKIPPING:
        if dataframe.sparkSession.conf.get(f"spark.sql.files.{setting}") == "true":
            raise _skipping(f"the setting spark.sql.files.{setting}")


def _require_plain_files(relation: Java) -> None:
    if _class_name(relation) != _FILES:
        raise _unrepeatable(f"the source {_short_name(relation)}")
    _require_no_skipping_option(relation)
    _require_known_source(relation.location(), _LISTINGS)
    _require_known_source(relation.fileFormat(), _FORMATS)
    if _class_name(relation.fileFormat()) in _TEXT_FORMATS:
        schema = json.loads(relation.dataSchema().json())
        if _has_moment(schema):
            raise _unrepeatable("a column of dates or times in a text file")


def _require_known_source(part: Java, known: set[str]) -> None:
    if _class_name(part) not in known:
        raise _unrepeatable(f"the source {_short_name(part)}")


def _has_moment(data_type: object) -> bool:
    """Whether a type in Spark's JSON schema is or contains a date or a time."""
    if not isinstance(data_type, dict):
        return data_type in _MOMENTS
    parts = [data_type.get(key) for key in ("type", "elementType", "keyType", "valueType")]
    parts += data_type.get("fields", [])
    return any(map(_has_moment, parts))


def _require_no_skipping_option(relation: Java) -> None:
    # Options keep the caller's spelling.
    options = {}
    for pair in _sequence(relation.options().toSeq()):
        options[pair._1().lower()] = pair._2().lower()
    for option in _SKIPPING:
        if options.get(option.lower()) == "true":
            raise _skipping(f"the option {option}")


def _require_checkpoint(node: Java) -> None:
    # Only reliable checkpoints that are complete have a folder. A local checkpoint may hold two
    # versions of a block.
    if node.rdd().getCheckpointFile().isEmpty():
        raise _unrepeatable("an RDD or a list of Python rows")


def _require_repeatable_expression(expression: Java) -> None:
    kind = _class_name(expression)
    if kind not in EXPRESSIONS:
        raise _unrepeatable(f"the expression {_short_name(expression)}")
    if kind == _CAST and not _reads_no_clock(expression):
        raise _unrepeatable("a cast to a date or time")
    if kind == _ATTRIBUTE and expression.metadata().contains(_METADATA_KEY):
        raise _unrepeatable(f"the metadata column {expression.name()}")


def _reads_no_clock(cast: Java) -> bool:
    """Whether a cast gives the same result at any time.

    Casts from text may not: 'now' and 'today' are dates too, and a bare time of day means today.
    """
    source = cast.child()
    if _type_name(cast) in _TIMELESS:
        return True
    if _type_name(source) in _MOMENTS:
        return True
    return _class_name(source) == _LITERAL and _FULL_DATE.match(str(source.value())) is not None


def _skipping(what: str) -> InvalidTable:
    return InvalidTable(
        f"the table must have the same rows each time Spark computes it, but {what} lets Spark "
        "skip files that it fails to read. Turn it off."
    )


def _unrepeatable(what: str) -> InvalidTable:
    return InvalidTable(
        "the table must have the same rows each time Spark computes it, and "
        f"{what} does not ensure that. {_WHAT_TO_DO}"
    )


# --- the files ------------------------------------------------------------------------------------


def file_states(dataframe: "DataFrame") -> frozenset[FileState]:
    """Return the current state of every file of the table; a deleted file has no state."""
    java: Java = dataframe.sparkSession.sparkContext._jvm
    settings = dataframe._jdf.sparkSession().sessionState().newHadoopConf()
    names = defaultdict(set)
    for address in _input_files(dataframe):
        path = java.org.apache.hadoop.fs.Path(java.java.net.URI(address))
        names[path.getParent().toString()].add(path.getName())
    states = set()
    for folder in names:
        for state in _listing(java, settings, folder):
            name = state[0].rpartition("/")[2]
            if name in names[folder]:
                states.add(state)
    for folder in _checkpoints(dataframe):
        states.update(_listing(java, settings, folder))
    return frozenset(states)


def _input_files(dataframe: "DataFrame") -> Iterator[str]:
    """Yield the addresses of the files that Spark would read now; pruned partitions are left out."""
    # Not `dataframe.inputFiles()`: its list of partitions may be stale, and it misses the files
    # behind a cache.
    optimizer = dataframe._jdf.sparkSession().sessionState().optimizer()
    plan = optimizer.execute(dataframe._jdf.queryExecution().analyzed())
    for node in _tree(plan):
        if _class_name(node) == _RELATION:
            yield from node.relation().location().inputFiles()


def _checkpoints(dataframe: "DataFrame") -> Iterator[str]:
    plan = dataframe._jdf.queryExecution().analyzed()
    for node in _tree(plan):
        if _class_name(node) == _ROWS_OF_RDD:
            yield node.rdd().getCheckpointFile().get()


def _listing(java: Java, settings: Java, folder: str) -> Iterator[FileState]:
    path = java.org.apache.hadoop.fs.Path(folder)
    system = path.getFileSystem(settings)
    if system.exists(path):
        for status in system.listStatus(path):
            yield status.getPath().toString(), status.getLen(), status.getModificationTime()


# --- Java objects ---------------------------------------------------------------------------------


def _tree(root: Java) -> Iterator[Java]:
    yield root
    for child in _sequence(root.children()):
        yield from _tree(child)


def _sequence(items: Java) -> list[Java]:
    return [items.apply(i) for i in range(items.size())]


def _class_name(item: Java) -> str:
    return str(item.getClass().getName())


def _short_name(item: Java) -> str:
    return _class_name(item).rpartition(".")[2].rstrip("$")


def _type_name(expression: Java) -> str:
    """Return the type without parameters or collation: ``decimal``, not ``decimal(10,2)``."""
    return re.split(r"[( ]", expression.dataType().simpleString())[0]
